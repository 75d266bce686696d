# Pictures in base graphics.

plot.vstatkit <- function(x, which = c("effects", "fitted"), level = 0.95, ...) {
  which <- match.arg(which)
  if (which == "effects") plot_effects(x, level, ...) else plot_fitted(x, ...)
  invisible(x)
}

plot_effects <- function(x, level, xlab = NULL, ylab = "", main = "Effects", ...) {
  table <- effects(x, level)
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
  margins <- par("mai")
  room <- max(graphics::strwidth(labels, units = "inches")) + 0.4
  old <- par(mai = c(margins[1], max(margins[2], room), margins[3:4]))
  on.exit(par(old))
  plot(range(table$ci.lower, table$ci.upper, if (main == "Effects") 0),
       c(0.5, n + 0.5), type = "n", yaxt = "n", xlab = xlab, ylab = ylab, main = main,
       ...)
  if (main == "Effects") abline(v = 0, lty = 3)
  segments(table$ci.lower, places, table$ci.upper, places)
  points(table$estimate, places, pch = 19)
  axis(2, places, labels, las = 1)
}

plot_fitted <- function(x, xlab = "out-of-bag prediction", ylab = NULL, ...) {
  if (is.null(ylab)) ylab <- about(x)$response
  predicted <- fitted(x)
  plot(predicted, predicted + residuals(x), xlab = xlab, ylab = ylab, ...)
  abline(0, 1, lty = 3)
}
