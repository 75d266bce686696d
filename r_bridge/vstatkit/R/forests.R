# Forests fitted by other packages.

vstatkit.ranger <- function(formula, data = NULL, newdata = NULL, ...) {
  call <- generic_call(match.call())
  adopted(formula, data, newdata, list(...), call, parent.frame())
}

vstatkit.randomForest <- vstatkit.ranger

vstatkit.grf <- vstatkit.ranger

adopted <- function(model, data, newdata, options, call, where) {
  check_names(options)
  refuse_others(options, c("data", "newdata", "variance", "threads"), "vstatkit")
  if (is.null(data)) data <- data_of(model, where)
  data <- used_rows(model, as.data.frame(data))
  newdata <- if (is.null(newdata)) typical_row(data) else as.data.frame(newdata)
  results <- ask("adopt", model, data, with_row_names(newdata), as_python(options))
  new_vstatkit(results, call = call, model = model, data = data)
}

data_of <- function(model, where) {
  if (inherits(model, "grf")) return(as.data.frame(model[["X.orig"]]))
  call <- model$call
  if (inherits(model, "ranger")) {
    named <- function() match.call(getExportedValue("ranger", "ranger"), call)
    call <- tryCatch(named(), error = function(e) call)
  }
  found <- tryCatch(eval(call$data, where), error = function(e) NULL)
  if (is.data.frame(found)) return(found)
  fail(paste(
    "`data` must be the data frame that the forest was fitted to, in the same order;",
    "the forest does not contain it."
  ))
}

# randomForest leaves out rows by `na.action` and `subset`, and names those it used.
used_rows <- function(model, data) {
  if (!inherits(model, "randomForest")) return(data)
  filled <- grepl("na.roughfix$", as_text(model$call$na.action))
  if (filled && anyNA(data[intersect(names(data), row.names(model$importance))])) {
    fail(paste(
      "this forest was fitted to data in which na.roughfix() filled in missing values.",
      "Give these data: vstatkit(forest, data = randomForest::na.roughfix(data))."
    ))
  }
  rows <- names(model$predicted)
  fewer <- !is.null(model$terms) && length(rows) < nrow(data)
  if (fewer && all(rows %in% row.names(data))) data[rows, , drop = FALSE] else data
}

# Medians, and the most frequent levels.
typical_row <- function(data) {
  typical <- function(x) {
    if (is.numeric(x)) return(median(x, na.rm = TRUE))
    counts <- table(x)
    level <- names(counts)[which.max(counts)]
    if (is.factor(x)) factor(level, levels(x), ordered = is.ordered(x))
    else if (is.logical(x)) as.logical(level)
    else level
  }
  made <- as.data.frame(lapply(data, typical), optional = TRUE)
  names(made) <- names(data)
  row.names(made) <- "typical"
  made
}

# Out-of-bag predictions of such a forest for its training rows.
fitted_by_model <- function(model) {
  found <- if (inherits(model, "randomForest")) {
    if (model$type == "classification") model$votes else model$predicted
  } else if (inherits(model, "grf")) {
    predict(model)$predictions
  } else {
    model$predictions
  }
  if (!is.matrix(found)) return(found)
  # For two classes, the probability of the second, as everywhere here.
  if (ncol(found) <= 2) found[, ncol(found)] else found
}

response_of_model <- function(object) {
  y <- if (inherits(object$model, "grf")) as.numeric(object$model[["Y.orig"]])
    else object$data[[about(object)$response]]
  if (!is.numeric(y)) fail("the response is not among the data.")
  y
}
