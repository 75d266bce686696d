# Formulas: Python computes the terms it supports, R computes the others.
#
# A name that is not a column is looked up in the environment of the formula: a vector
# as long as the data becomes a column, a single value is inserted into the formula. A
# call that Python's formulas do not support, such as a function of the user, becomes
# a column named by the call, and is computed again for new data.

BETWEEN_TERMS <- c("~", "+", "-", "*", "/", "^", ":", "%in%", "(")

WITHIN_TERMS <- c("+", "-", "*", "/", "^", "(", "<", ">", "<=", ">=", "==", "!=")

as_text <- function(e) paste(deparse(e, width.cutoff = 500L), collapse = " ")

known_functions <- function() {
  if (is.null(the$functions)) the$functions <- unlist(ask("known_functions"))
  the$functions
}

# Name of the function that is called, without its package; "" if it has none.
function_of <- function(e) {
  head <- e[[1]]
  packaged <- is.call(head) && as.character(head[[1]])[1] %in% c("::", ":::")
  if (is.symbol(head)) as.character(head)
  else if (packaged) as.character(head[[3]])
  else ""
}

# Some functions have more arguments in R than in Python's formulas.
in_python <- function(e) {
  if (!is.call(e)) return(TRUE)
  name <- function_of(e)
  if (name == "factor" && length(e) > 2) return(FALSE)
  (name %in% c(WITHIN_TERMS, known_functions())) &&
    all(vapply(as.list(e)[-1], in_python, logical(1)))
}

# With `rows`, as in lm(), the others are left out before anything is computed.
read_formula <- function(formula, data, leave_out = character(), rows = NULL) {
  where <- environment(formula)
  if (is.null(where)) where <- parent.frame(2)
  if (length(formula) != 3) {
    fail("the formula must have a response, like y ~ x1 + x2.", "FormulaError")
  }
  data <- as_data(data, formula, where)
  if ("." %in% all.vars(formula)) {
    formula <- formula(terms(formula, data = data[setdiff(names(data), leave_out)]))
    environment(formula) <- where
  }
  n <- nrow(data)
  rows <- chosen_rows(rows, data)
  at_rows <- function(frame) if (is.null(rows)) frame else frame[rows, , drop = FALSE]
  outside <- list()
  known <- TRUE

  variable <- function(e, alone) {
    name <- as.character(e)
    if (name %in% names(data)) return(e)
    value <- get0(name, envir = where)
    if (is.null(value) || is.function(value) || is.list(value)) {
      known <<- FALSE  # Python knows which column was meant
      return(e)
    }
    single <- !alone && is.atomic(value) && length(value) == 1 && !is.na(value)
    if (single && n != 1) return(value)
    if (length(value) != n || !is.null(dim(value))) {
      fail(paste0(
        "'", name, "' is not a column of the data, and the variable '", name, "' in the ",
        "environment of the formula has ", length(value), " values; the data have ", n,
        " rows."
      ), "FormulaError")
    }
    outside[[name]] <<- value
    e
  }

  # Names within a call; constants of R are not columns.
  within <- function(e) {
    if (is.symbol(e)) {
      if (as.character(e) %in% c("T", "F", "pi") && !as.character(e) %in% names(data)) {
        return(eval(e, baseenv()))
      }
      return(variable(e, alone = FALSE))
    }
    if (!is.call(e)) return(e)
    e[[1]] <- as.name(function_of(e))
    e[-1] <- lapply(e[-1], within)
    e
  }

  side <- function(e) {
    made <- list()
    walk <- function(e) {
      if (is.symbol(e)) return(variable(e, alone = TRUE))
      if (!is.call(e)) return(e)
      if (function_of(e) %in% c("|", "||")) {
        fail(paste0("`", as_text(e), "`: conditioning and random effects are not ",
                    "supported. Use `groups` to resample whole clusters."),
             "FormulaError")
      }
      if (function_of(e) %in% BETWEEN_TERMS) {
        e[-1] <- lapply(e[-1], walk)
        return(e)
      }
      # Python raises the specific error.
      if (function_of(e) == "offset" || in_python(e)) return(within(e))
      name <- as_text(e)
      made[[name]] <<- e
      as.name(name)
    }
    found <- walk(e)
    list(found = found, made = made)
  }

  # The response is arithmetic, not terms: R computes calls that Python's formulas do
  # not support, and classes, so that they have R's names.
  response <- function(e) {
    check_sums(e)
    if (is.symbol(e)) return(list(found = variable(e, alone = TRUE), made = list()))
    value <- tryCatch(eval(e, data, where), error = function(e) NULL)
    classes <- is.factor(value) || is.logical(value)
    if (!is.call(e) || (in_python(e) && !classes)) {
      return(list(found = within(e), made = list()))
    }
    name <- as_text(e)
    list(found = as.name(name), made = setNames(list(e), name))
  }

  left <- response(formula[[2]])
  right <- side(formula[[3]])
  written <- formula
  written[[2]] <- left$found
  written[[3]] <- right$found
  frame <- data
  for (name in names(outside)) frame[[name]] <- outside[[name]]
  frame <- with_computed(at_rows(frame), c(left$made, right$made), where)
  response <- NULL
  if (is.symbol(left$found)) {
    name <- as.character(left$found)
    response <- frame[[name]][0]
    if (is.logical(response)) frame[[name]] <- factor(frame[[name]], c(FALSE, TRUE))
  }
  used <- unique(c(all.vars(written), leave_out))
  used_data <- as.list(at_rows(data[intersect(names(data), all.vars(formula))]))
  list(
    text = as_text(written),
    # With an unknown name, pass all columns, so that the error can suggest one.
    data = if (known) frame[intersect(names(frame), used)] else frame,
    made = right$made, outside = names(outside), where = where,
    levels = lapply(Filter(is_category, used_data), function(x) levels(factor(x))),
    factors = lapply(Filter(is.factor, used_data), function(x) x[0]), response = response,
    variables = setdiff(all.vars(written[[3]]), names(right$made)),
    rows = rows, n_given = n
  )
}

# A sum of columns could be several responses; within other arithmetic it is a sum.
check_sums <- function(e) {
  whole <- e
  while (is.call(e) && function_of(e) %in% c("+", "-", "(") && length(e) > 1) {
    reads <- vapply(as.list(e)[-1], function(part) length(all.vars(part)) > 0, logical(1))
    if (function_of(e) == "+" && sum(reads) == 2) {
      text <- as_text(whole)
      fail(paste0("'", text, "' could mean several responses, or their sum. Write I(",
                  text, ") for the sum, or fit one response at a time."), "FormulaError")
    }
    e <- e[[2]]
  }
}

# Positions of the rows in `subset`: by TRUE and FALSE, by number or by name.
chosen_rows <- function(subset, data) {
  if (is.null(subset)) return(NULL)
  n <- nrow(data)
  if (is.logical(subset) && length(subset) != n) {
    fail(paste0("`subset` must have a value for each of the ", n, " rows; got ",
                length(subset), "."))
  }
  if (is.character(subset)) subset <- match(subset, row.names(data))
  found <- seq_len(n)[if (is.logical(subset)) subset & !is.na(subset) else subset]
  if (anyNA(found)) fail("`subset` names rows that the data do not have.")
  if (!length(found)) fail("`subset` selects no row of the data.")
  found
}

is_category <- function(x) is.factor(x) || is.character(x)

as_data <- function(data, formula, where) {
  if (is.data.frame(data)) return(as.data.frame(data))
  if (is.environment(data)) {
    where <- data
    data <- NULL
  }
  if (is.list(data)) return(as.data.frame(data, optional = TRUE))
  if (!is.null(data)) {
    fail(paste0("`data` must be a data frame; got ", class(data)[1], "."), "TypeError")
  }
  # Without data, the response determines the number of rows.
  response <- tryCatch(eval(formula[[2]], where), error = function(e) NULL)
  n <- length(response)
  if (!is.null(dim(response)) || n < 2) {
    fail(paste0("`data` is missing, and there is no variable '", as_text(formula[[2]]),
                "'."))
  }
  made <- data.frame(row.names = seq_len(n))
  for (name in setdiff(all.vars(formula), ".")) {
    value <- get0(name, envir = where)
    if (is.atomic(value) && is.null(dim(value)) && length(value) == n) {
      made[[name]] <- value
    }
  }
  made
}

with_computed <- function(frame, calls, where) {
  made <- list()
  for (name in names(calls)) {
    value <- tryCatch(
      eval(calls[[name]], frame, where),
      error = function(e) {
        fail(paste0("`", name, "` cannot be computed: ", conditionMessage(e)),
             "FormulaError")
      }
    )
    if (is.list(value) || !is.null(dim(value)) || length(value) != nrow(frame)) {
      shape <- if (is.null(dim(value))) paste(length(value), "values") else "a matrix"
      fail(paste0("`", name, "` gives ", shape, "; one value is needed for each of the ",
                  nrow(frame), " rows."), "FormulaError")
    }
    made[[name]] <- value
  }
  for (name in names(made)) frame[[name]] <- made[[name]]
  frame
}

# New data as the formula reads them.
new_frame <- function(recipe, newdata) {
  if (is.list(newdata) && !is.data.frame(newdata)) {
    newdata <- as.data.frame(newdata, optional = TRUE)
  }
  if (!is.data.frame(newdata)) {
    fail(paste0("`newdata` must be a data frame; got ", class(newdata)[1], "."),
         "TypeError")
  }
  newdata <- as.data.frame(newdata)
  if (is.null(recipe)) return(newdata)
  lacking <- setdiff(recipe$outside, names(newdata))
  if (length(lacking)) {
    fail(paste0("newdata lack '", lacking[1], "', which the formula took from its ",
                "environment; add it as a column."))
  }
  for (name in intersect(names(newdata), names(recipe$levels))) {
    known <- recipe$levels[[name]]
    given <- newdata[[name]]
    strange <- setdiff(as.character(given), c(known, NA))
    if (length(strange) && name %in% recipe$variables) {
      fail(paste0("newdata have '", strange[1], "' in '", name, "'; the model knows ",
                  some_of(known), "."))
    }
    # Any selection and order of the levels, and text, are the factor of the fit.
    like <- recipe$factors[[name]]
    if (!is.null(like) && !length(strange)) {
      newdata[[name]] <- factor(as.character(given), levels(like),
                                ordered = is.ordered(like))
    }
  }
  with_computed(newdata, recipe$made, recipe$where)
}
