# Data with columns of predictions, for augment() of broom.

AUGMENT_ARGUMENTS <- c("data", "newdata", "se_fit", "interval", "conf.level")

augment.vstatkit <- function(x, data = NULL, newdata = NULL, se_fit = FALSE,
                             interval = c("none", "confidence", "prediction"),
                             conf.level = 0.95, ...) {
  interval <- match.arg(interval)
  refuse_mistyped(names(list(...)), AUGMENT_ARGUMENTS, "augment")
  classes <- about(x)$classes
  uncertain <- isTRUE(se_fit) || interval != "none"
  if (length(classes) > 2 && uncertain) {
    fail(paste("of more than two classes, augment() gives no standard errors and",
               "intervals; predict() does, as an array."))
  }
  if (is.null(newdata)) {
    if (uncertain) predict_own_rows(x, uncertain, "response", classes)  # says why not
    return(augment_own_rows(x, data, classes))
  }
  newdata <- as.data.frame(newdata)
  if (length(classes) > 2) {
    return(with_shares(x, newdata, predict(x, newdata, type = "prob")))
  }
  found <- predict(x, newdata, se.fit = TRUE, interval = interval, level = conf.level)
  fit <- as.matrix(found$fit)
  made <- newdata
  made$.fitted <- unname(fit[, 1])
  if (interval != "none") {
    made$.lower <- unname(fit[, "lwr"])
    made$.upper <- unname(fit[, "upr"])
  }
  if (isTRUE(se_fit)) made$.se.fit <- unname(found$se.fit)
  with_residuals(made, response_in(x, newdata), classes)
}

# Out-of-bag predictions, as in fitted() and residuals().
augment_own_rows <- function(x, data, classes) {
  found <- fitted(x)
  known <- if (is.null(x$model)) x$recipe$data else x$data
  rows <- if (is.matrix(found)) row.names(found) else names(found)
  if (is.null(rows)) rows <- row.names(known)
  if (is.null(data)) data <- if (is.null(known)) data.frame(row.names = rows) else known
  data <- as.data.frame(data)
  places <- match(row.names(data), rows)
  check_own_rows(data, known, rows[places])
  if (is.factor(found)) {
    data$.fitted <- unname(found[places])
    return(data)
  }
  if (length(classes) > 2) return(with_shares(x, data, found[places, , drop = FALSE]))
  data$.fitted <- unname(found[places])
  if (is.null(classes)) data$.resid <- unname(as.numeric(residuals(x))[places])
  data
}

# Rows are found by their names, which other data may have too.
check_own_rows <- function(data, known, rows) {
  shared <- intersect(names(data), names(known))
  there <- !is.na(rows)
  plain <- function(frame, at) {
    lapply(frame[at, shared, drop = FALSE], function(one) {
      if (is.numeric(one)) as.numeric(one) else as.character(one)
    })
  }
  alike <- is.null(known) ||
    isTRUE(all.equal(plain(data, which(there)), plain(known, rows[there])))
  if (!any(there) || !alike) {
    fail(paste("`data` must be the data that the model was fitted to. Give other rows",
               "as newdata."))
  }
}

with_shares <- function(x, data, shares) {
  data$.fitted <- unname(most_probable(x, shares))
  for (name in colnames(shares)) data[[paste0(".prob.", name)]] <- unname(shares[, name])
  data
}

with_residuals <- function(made, y, classes) {
  if (is.null(classes) && is.numeric(y)) made$.resid <- unname(y) - made$.fitted
  made
}

# The response, if new data have it; variables outside the data belong to other rows.
response_in <- function(x, newdata) {
  written <- if (is.null(x$formula)) as.name(about(x)$response) else x$formula[[2]]
  if (!all(all.vars(written) %in% names(newdata))) return(NULL)
  where <- if (is.null(x$recipe)) parent.frame() else x$recipe$where
  tryCatch(eval(written, newdata, where), error = function(e) NULL)
}
