# Plots in base graphics.

plot.vstatkit <- function(x, which = c("effects", "fitted"), level = 0.95, ...) {
  which <- match.arg(which)
  if (which == "effects") plot_effects(x, level, ...) else plot_fitted(x, ...)
  invisible(x)
}

plot_effects <- function(x, level, xlab = NULL, ylab = "", main = "Effects", ...) {
  table <- effects_table(x, level)
  if (is.null(table) || !nrow(table)) {
    table <- estimates_table(x, level)
    names(table) <- sub("^conf.low$", "ci.lower", sub("^conf.high$", "ci.upper",
                                                      names(table)))
    main <- "Estimates"
  }
  n <- nrow(table)
  if (is.null(xlab)) {
    xlab <- paste0("with intervals of ", format(100 * level), " %")
    if (main == "Effects") xlab <- paste("change of", about(x)$response, xlab)
  }
  places <- rev(seq_len(n))
  labels <- row.names(table)
  wide <- max(graphics::strwidth(labels, units = "inches"))
  old <- par(mai = margins(par("mai"), wide + LABEL_GAP, par("fin")))
  on.exit(par(old))
  size <- max(0.3, min(1, (par("mai")[2] - LABEL_GAP) / wide))
  plot(range(table$ci.lower, table$ci.upper, if (main == "Effects") 0),
       c(0.5, n + 0.5), type = "n", yaxt = "n", xlab = xlab, ylab = ylab, main = main,
       ...)
  if (main == "Effects") abline(v = 0, lty = 3)
  segments(table$ci.lower, places, table$ci.upper, places)
  points(table$estimate, places, pch = 19)
  axis(2, places, labels, las = 1, cex.axis = par("cex.axis") * size)
}

# Inches between the axis and its labels.
LABEL_GAP <- 0.4

# Margins wide enough for the labels on the left, but at most half of the figure, which
# may be small, as with par(mfrow = c(3, 3)).
margins <- function(given, needed, size) {
  made <- c(given[1], max(given[2], needed), given[3:4])
  for (side in 1:2) {
    both <- c(side, side + 2)
    most <- size[3 - side] / 2
    if (sum(made[both]) > most) made[both] <- made[both] * most / sum(made[both])
  }
  made
}

plot_fitted <- function(x, xlab = "out-of-bag prediction", ylab = NULL, ...) {
  old <- par(mai = margins(par("mai"), 0, par("fin")))
  on.exit(par(old))
  if (is.null(ylab)) ylab <- about(x)$response
  predicted <- fitted(x)
  plot(predicted, predicted + residuals(x), xlab = xlab, ylab = ylab, ...)
  abline(0, 1, lty = 3)
}
