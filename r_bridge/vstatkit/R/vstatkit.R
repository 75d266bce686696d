# Fits, and forests of other packages.

vstatkit <- function(formula, ...) UseMethod("vstatkit")

vstatkit.default <- function(formula, ...) {
  fail(paste0(
    "vstatkit() takes a formula like y ~ x1 + x2, or a forest of ranger, randomForest ",
    "or grf; got an object of class ", paste(class(formula), collapse = " "), "."
  ), "TypeError")
}

vstatkit.formula <- function(formula, data = NULL, ..., weights = NULL,
                             groups = NULL, rng = NULL) {
  options <- list(...)
  check_names(options)
  # As in lm(), these are looked up in the data first; a text names a column.
  beside <- if (is.data.frame(data)) data else list()
  weights <- column_or_values(substitute(weights), beside, parent.frame())
  groups <- column_or_values(substitute(groups), beside, parent.frame())
  named <- Filter(function(one) is.character(one) && length(one) == 1,
                  list(weights, groups))
  recipe <- read_formula(formula, data, unlist(named))
  if (is.function(options$kernel)) {
    fail(paste(
      "`kernel` must be a text such as \"forest\", \"tree\", \"ols\" or \"logit\";",
      "functions of R's are not called for every subsample."
    ), "TypeError")
  }
  if (is.null(rng)) rng <- sample.int(.Machine$integer.max, 1L)
  options <- as_python(c(options, list(weights = weights, groups = groups, rng = rng)))
  results <- ask("fit", recipe$text, recipe$data, options)
  new_vstatkit(results, call = generic_call(match.call()), formula = formula,
               recipe = recipe, missing = options$missing)
}

# The bare name of a column is that column, which `.` then leaves out.
column_or_values <- function(given, data, where) {
  if (is.symbol(given) && as.character(given) %in% names(data)) {
    return(as.character(given))
  }
  eval(given, data, where)
}

# As in lm(), a formula may be a text.
vstatkit.character <- function(formula, ...) {
  call <- match.call()
  call[[1]] <- quote(vstatkit::vstatkit)
  call$formula <- stats::as.formula(formula, env = parent.frame())
  eval(call, parent.frame())
}

# update() evaluates the call again.
generic_call <- function(call) {
  call[[1]] <- quote(vstatkit)
  call
}

vstatkit.ranger <- function(formula, data = NULL, newdata = NULL, ...) {
  call <- generic_call(match.call())
  adopted(formula, data, newdata, list(...), call, parent.frame())
}

vstatkit.randomForest <- vstatkit.ranger

vstatkit.grf <- vstatkit.ranger

adopted <- function(model, data, newdata, options, call, where) {
  check_names(options)
  if (is.null(data)) data <- data_of(model, where)
  data <- as.data.frame(data)
  if (is.null(newdata)) newdata <- typical_row(data)
  options <- as_python(options)
  results <- ask("adopt", model, data, as.data.frame(newdata), options)
  new_vstatkit(results, call = call, model = model, data = data)
}

data_of <- function(model, where) {
  call <- model$call
  if (inherits(model, "ranger")) {
    named <- function() match.call(getExportedValue("ranger", "ranger"), call)
    call <- tryCatch(named(), error = function(e) call)
  }
  found <- tryCatch(eval(call$data, where), error = function(e) NULL)
  if (is.data.frame(found)) return(found)
  fail(paste(
    "`data` must be the data frame that the forest was fitted to, row by row: the",
    "forest itself does not keep it."
  ))
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

new_vstatkit <- function(results, ...) {
  structure(list(results = results, ...), class = "vstatkit")
}

about <- function(object) ask("about", results_of(object))
