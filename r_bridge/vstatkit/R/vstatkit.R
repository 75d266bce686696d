# Fits.

vstatkit <- function(formula, ...) UseMethod("vstatkit")

vstatkit.default <- function(formula, ...) {
  fail(paste0(
    "vstatkit() takes a formula like y ~ x1 + x2, or a forest of ranger, randomForest ",
    "or grf; got an object of class ", paste(class(formula), collapse = " "), "."
  ), "TypeError")
}

vstatkit.formula <- function(formula, data = NULL, ..., subset = NULL, weights = NULL,
                             groups = NULL, rng = NULL) {
  # As in lm(), these are looked up in the data first; a text names a column.
  beside <- if (is.data.frame(data)) data else list()
  rows <- eval(substitute(subset), beside, parent.frame())
  weights <- column_or_values(substitute(weights), beside, parent.frame())
  groups <- column_or_values(substitute(groups), beside, parent.frame())
  options <- list(...)
  check_names(options)
  check_points(options$at)
  check_seed(rng)
  named <- Filter(is_name, list(weights, groups))
  recipe <- read_formula(formula, data, unlist(named), rows)
  if (!is.null(rows)) {
    weights <- values_at(weights, recipe)
    groups <- values_at(groups, recipe)
  }
  if (!is.null(options$at)) {
    options$at <- with_row_names(as.data.frame(options$at, optional = TRUE))
  }
  if (is.function(options$kernel)) {
    fail(paste(
      "`kernel` must be a string such as \"forest\", \"tree\", \"ols\" or \"logit\";",
      "R functions are not supported."
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

is_name <- function(x) is.character(x) && length(x) == 1

# `subset` also applies to values that are not columns of the data.
values_at <- function(values, recipe) {
  if (is_name(values) || length(values) != recipe$n_given) values
  else values[recipe$rows]
}

check_points <- function(at) {
  if (!is.null(at) && !is.list(at)) {
    fail(paste0("`at` must be a data frame of query points; got ", class(at)[1], "."),
         "TypeError")
  }
}

check_seed <- function(rng) {
  if (is.null(rng) || inherits(rng, "python.builtin.object")) return(invisible())
  single <- is.numeric(rng) && length(rng) == 1 && !is.na(rng)
  if (!single || rng < 0 || rng != round(rng)) {
    fail(paste0("`rng` must be a whole number, 0 or above; got ",
                number_text(rng), ". By default, set.seed() is used."))
  }
}

# Rows always have names in R, at least their numbers; Python would count from 0.
with_row_names <- function(data) {
  attr(data, "row.names") <- as.character(row.names(data))
  data
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

new_vstatkit <- function(results, ...) {
  structure(list(results = results, ...), class = "vstatkit")
}

about <- function(object) ask("about", results_of(object))
