# Predictions, with the interface of predict.lm().

predict.vstatkit <- function(object, newdata, se.fit = FALSE,
                             interval = c("none", "confidence", "prediction"),
                             level = 0.95, type = c("response", "class", "prob"), ...) {
  interval <- match.arg(interval)
  type <- match.arg(type)
  extra <- list(...)
  known <- c("newdata", "se.fit", "interval", "level", "type", "obs_method")
  refuse_others(extra, known, "predict")
  if (!isTRUE(se.fit) && !isFALSE(se.fit)) {
    fail("`se.fit` must be TRUE or FALSE. Write interval = \"confidence\" for intervals.")
  }
  alpha <- alpha_of(level)
  classes <- about(object)$classes
  if (interval == "prediction" && !is.null(classes)) {
    fail("prediction intervals are for a numeric response; this one has classes.")
  }
  if (type != "response") check_classes(type, classes, interval != "none" || se.fit)
  if (missing(newdata) || is.null(newdata)) {
    return(predict_own_rows(object, interval != "none" || se.fit, type, classes))
  }
  frame <- new_frame(object$recipe, newdata)
  gaps <- rows_with_gaps(object, frame)
  whole <- frame[!gaps, , drop = FALSE]
  if (type != "response") {
    shares <- new_shares(object, whole, gaps, classes, row.names(frame))
    return(if (type == "prob") shares else most_probable(object, shares))
  }
  if (interval == "none" && !se.fit) {
    if (!nrow(whole)) return(spread(numeric(), gaps, row.names(frame), classes))
    found <- call_method(object, "predict", data = whole)
    return(spread(unlist(found, use.names = FALSE), gaps, row.names(frame), classes))
  }
  # Missing limits of new observations raise an error below if they were requested.
  table <- withCallingHandlers(
    prediction_table(object, whole, alpha, extra),
    warning = function(w) {
      if (grepl("^obs_ci_lower", conditionMessage(w))) invokeRestart("muffleWarning")
    }
  )
  if (interval == "prediction" && is.null(table$obs_ci_lower)) {
    fail(paste("prediction intervals need out-of-bag residuals, and these results have",
               if (is.null(object$model)) "none: the fit has oob = FALSE."
               else "none: they are not known for this forest."))
  }
  if (interval == "prediction" && all(is.na(table$obs_ci_lower))) {
    fail(paste0(
      "prediction intervals at level = ", number_text(level), " need out-of-bag residuals of ",
      ceiling(2 / alpha) - 1, " rows or more; there are fewer. Use a smaller level."
    ))
  }
  as_predict_lm(table, interval, se.fit, gaps, row.names(frame), classes)
}

# Without new data, as in randomForest and grf: out-of-bag predictions, which have no
# standard errors.
predict_own_rows <- function(object, uncertain, type, classes) {
  if (uncertain) {
    fail(paste(
      "without newdata, rows are predicted out of bag, which has no standard errors.",
      "Give the training data as newdata for the predictions of the whole ensemble."
    ))
  }
  found <- fitted(object)
  if (type == "response") return(found)
  if (is.factor(found)) {
    if (type == "class") return(found)
    fail(paste("this forest has out-of-bag classes, but no probabilities.",
               "Give the data as newdata, or fit it with probability = TRUE."))
  }
  rows <- if (is.matrix(found)) row.names(found) else names(found)
  shares <- named_shares(shares_of(found, classes), classes, rows)
  if (type == "prob") shares else most_probable(object, shares)
}

# Rows with a missing variable are not predicted, as in predict.lm().
rows_with_gaps <- function(object, frame) {
  if (is.null(object$recipe) || identical(object$missing, "pass")) {
    return(rep(FALSE, nrow(frame)))
  }
  used <- c(object$recipe$variables, names(object$recipe$made))
  used <- intersect(used, names(frame))
  if (!length(used)) rep(FALSE, nrow(frame)) else !complete.cases(frame[used])
}

prediction_table <- function(object, frame, alpha, extra) {
  if (!nrow(frame)) fail("no row of newdata is complete.")
  found <- do.call(call_method, c(list(object, "get_prediction", data = frame), extra))
  table <- ask("method", found, "summary_frame", list(alpha = alpha))
  table$df <- as.numeric(found$estimates$df)
  table
}

# Insert NA for rows that were not predicted; more than two classes have a column each.
spread <- function(values, gaps, rows, classes) {
  many <- length(classes) > 2
  columns <- if (many) length(classes) else 1
  made <- matrix(NA_real_, length(gaps), columns, dimnames = list(rows, NULL))
  made[!gaps, ] <- values
  if (!many) return(setNames(made[, 1], rows))
  colnames(made) <- unlist(classes)
  made
}

as_predict_lm <- function(table, interval, se.fit, gaps, rows, classes) {
  many <- length(classes) > 2
  # The table goes point by point; a matrix is filled column by column.
  take <- function(name) {
    values <- table[[name]]
    if (many) values <- matrix(values, ncol = length(classes), byrow = TRUE)
    spread(values, gaps, rows, classes)
  }
  fit <- take("mean")
  if (interval != "none") {
    ends <- if (interval == "confidence") "mean_ci_" else "obs_ci_"
    parts <- list(fit = fit, lwr = take(paste0(ends, "lower")),
                  upr = take(paste0(ends, "upper")))
    fit <- if (many) simplify2array(parts) else do.call(cbind, parts)
  }
  if (!se.fit) return(fit)
  list(fit = fit, se.fit = take("mean_se"), df = take("df"))
}

# Probabilities of all classes, with a column for each; NA if a variable is missing.
new_shares <- function(object, frame, gaps, classes, rows) {
  shares <- matrix(NA_real_, length(gaps), length(classes))
  if (nrow(frame)) {
    found <- call_method(object, "predict", data = frame)
    if (length(classes) == 2) found <- unlist(found)
    shares[!gaps, ] <- shares_of(found, classes)
  }
  named_shares(shares, classes, rows)
}

check_classes <- function(type, classes, uncertain) {
  if (is.null(classes)) {
    fail(paste0("type = \"", type, "\" needs a response that has classes; this one is ",
                "numeric."))
  }
  if (uncertain) {
    fail(paste0("standard errors and intervals are those of probabilities: omit ",
                "type = \"", type, "\"."))
  }
}

# For two classes only the probability of the second is returned by Python.
shares_of <- function(found, classes) {
  if (length(classes) == 2) cbind(1 - found, found) else as.matrix(found)
}

named_shares <- function(shares, classes, rows) {
  dimnames(shares) <- list(rows, unlist(classes))
  shares
}

# Classes as the response has them: TRUE and FALSE, or a factor with all its levels.
most_probable <- function(object, shares) {
  best <- rep(NA_integer_, nrow(shares))
  known <- complete.cases(shares)
  best[known] <- max.col(shares[known, , drop = FALSE], ties.method = "first")
  labels <- colnames(shares)
  like <- response_like(object)
  found <- if (is.logical(like) && all(labels %in% c("FALSE", "TRUE"))) {
    as.logical(labels[best])
  } else if (is.factor(like) && all(labels %in% levels(like))) {
    factor(labels[best], levels(like), ordered = is.ordered(like))
  } else {
    factor(labels[best], labels)
  }
  setNames(found, row.names(shares))
}

# An empty vector of the type of the response.
response_like <- function(object) {
  if (is.null(object$model)) object$recipe$response
  else object$data[[about(object)$response]][0]
}
