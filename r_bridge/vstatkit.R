# vstatkit from R, through reticulate:
#
#   library(reticulate)
#   vstatkit <- import("vstatkit")
#   vstatkit$fit(y ~ x1 + x2, df)
#
# `import("vstatkit")` reads this file. Formulas are translated for Python; NA of any
# type becomes missing, in data frames and in vectors; fitted models are passed as
# files. Data frames are returned as data frames and series as named vectors, for all
# versions of reticulate and pandas, and results print as tables.

local({
  reticulate_has <- function(name) exists(name, asNamespace("reticulate"))
  register <- function(generic, class, method, home = "reticulate") {
    registerS3method(generic, class, method, envir = asNamespace(home))
  }
  # reticulate's own calls find a method in its namespace before any other.
  replace_in_reticulate <- function(name, method) {
    if (!reticulate_has(name)) return()
    home <- asNamespace("reticulate")
    unlockBinding(name, home)
    assign(name, method, home)
    lockBinding(name, home)
  }
  # Functions taken without `$` are called without the conversion below.
  bridge <- reticulate::import("r_bridge.reticulate", convert = FALSE)
  ask <- function(name, ...) {
    reticulate::py_call(reticulate::py_get_attr(bridge, name), ...)
  }

  # A fork copies the lock of Python's interpreter, but not the thread that may hold it.
  process <- Sys.getpid()
  check_process <- function() {
    if (identical(process, Sys.getpid())) return(invisible())
    stop("Python cannot be used in a process that was forked after it was started, as ",
         "by parallel::mclapply(): it may hang. Use n_jobs = for threads within a fit, ",
         "or a cluster of new processes, parallel::makeCluster().", call. = FALSE)
  }

  # --- to Python -----------------------------------------------------------

  as_text <- function(x) paste(deparse(x, width.cutoff = 500L), collapse = " ")

  part <- function(kind, values, ...) list(kind = kind, values = as.list(values), ...)

  # A column or vector in parts that every version of reticulate converts: doubles
  # have NaN for NA, text and logical values have a mask.
  take_apart <- function(x) {
    if (is.factor(x)) {
      part("factor", as.double(x), levels = as.list(levels(x)), ordered = is.ordered(x))
    } else if (inherits(x, "Date")) {
      part("date", as.double(x))
    } else if (inherits(x, "POSIXt")) {
      zone <- attr(as.POSIXct(x), "tzone")[1]
      part("time", as.double(as.POSIXct(x)), zone = if (is.null(zone)) "" else zone)
    } else if (is.character(x)) {
      part("text", ifelse(is.na(x), "", x), missing = as.list(is.na(x)))
    } else {
      part(if (is.logical(x)) "logical" else if (is.integer(x)) "integer" else "number",
           as.double(x))
    }
  }

  known <- function(x) {
    is.null(dim(x)) && (inherits(x, c("factor", "Date", "POSIXt")) ||
      (is.atomic(x) && !is.complex(x) && !is.raw(x) && !inherits(x, "integer64")))
  }

  frame_to_py <- function(x) {
    strange <- names(x)[!vapply(x, known, logical(1))]
    if (length(strange)) {
      stop("column '", strange[1], "' is of class ", class(x[[strange[1]]])[1],
           ", which has no place in a data frame of vstatkit's; convert it, or leave ",
           "it out.", call. = FALSE)
    }
    rows <- attr(x, "row.names")
    # In a part of a larger frame, rows have numbers that do not only count them.
    named <- is.character(rows) || !identical(as.integer(rows), seq_len(nrow(x)))
    ask("frame_from_parts", as.list(names(x)), unname(lapply(x, take_apart)),
        as.list(if (named) as.character(rows)), nrow(x))
  }

  holds_na <- function(x) {
    if (inherits(x, "POSIXlt")) x <- as.POSIXct(x)
    if (is.list(x)) any(vapply(x, holds_na, logical(1))) else anyNA(x)
  }

  vector_to_py <- function(x) {
    classed <- inherits(x, c("factor", "Date", "POSIXt"))
    if (!classed && !anyNA(x)) x
    else if (!inherits(x, c("Date", "POSIXt")) && length(x) == 1 && anyNA(x)) NaN
    else ask("vector_from_part", take_apart(x))
  }

  # reticulate before 1.38 cannot make arrays of numpy 2.
  is_matrix <- function(x) !is.null(dim(x)) && (is.numeric(x) || is.logical(x))

  matrix_to_py <- function(x) {
    values <- as.double(x)
    ask("array_from_parts", as.list(values), as.list(dim(x)))
  }

  model_to_py <- function(x) {
    file <- tempfile("model", fileext = ".rds")
    saveRDS(x, file)
    file
  }

  to_py <- function(x) {
    if (is.null(x) || is.function(x) || inherits(x, "python.builtin.object")) x
    else if (inherits(x, "formula")) ask("translate_formula", as_text(x))
    else if (is.data.frame(x)) frame_to_py(x)
    else if (known(x)) vector_to_py(x)
    else if (is.list(x) && is.object(x)) model_to_py(x)
    else if (is.list(x)) lapply(x, to_py)
    else if (is_matrix(x)) matrix_to_py(x)
    else if (!is.double(x) && (is.integer(x) || is.logical(x)) && anyNA(x)) x + 0.0
    else x
  }

  # Vectors without a class are converted where no method is asked: calls of ours
  # convert their arguments first.
  if (reticulate_has("py_to_r_wrapper")) {
    for (class in c("python.builtin.function", "python.builtin.method",
                    "python.builtin.type")) {
      register("py_to_r_wrapper", class, function(x) {
        force(x)
        if (!is.function(x) || !reticulate::py_to_r(ask("is_ours", x))) return(x)
        function(...) {
          check_process()
          do.call(x, lapply(list(...), to_py), quote = TRUE)
        }
      })
    }
  }

  register("r_to_py", "formula", function(x, convert = FALSE) {
    ask("translate_formula", as_text(x))
  })

  # Frames that `r_to_py` makes, or Python takes by `r.df`, differ where NA is.
  theirs <- utils::getS3method("r_to_py", "data.frame",
                               envir = asNamespace("reticulate"))
  with_na <- function(x, convert = FALSE) {
    ours <- all(vapply(x, known, logical(1))) && holds_na(x)
    if (ours) frame_to_py(x) else theirs(x, convert)
  }
  register("r_to_py", "data.frame", with_na)
  replace_in_reticulate("r_to_py.data.frame", with_na)

  # --- to R ----------------------------------------------------------------

  plain <- function(column) {
    if (!is.list(column)) return(column)
    column[vapply(column, is.null, logical(1))] <- NA
    unlist(column)
  }

  for (class in c("pandas.Series", "pandas.core.series.Series")) {
    register("py_to_r", class, function(x) {
      parts <- reticulate::py_to_r(ask("series_values", x))
      stats::setNames(plain(parts$values), parts$names)
    })
  }

  # reticulate before 1.38 does not know numpy 2, and leaves its arrays and numbers.
  if (!reticulate::py_numpy_available()) {
    from_numpy <- function(x) {
      parts <- reticulate::py_to_r(ask("array_values", x))
      values <- plain(parts$values)
      if (length(parts$shape) < 2) values else array(values, unlist(parts$shape))
    }
    numbers <- paste0("numpy.", c("float64", "float32", "int64", "int32", "bool"))
    for (class in c("numpy.ndarray", numbers)) register("py_to_r", class, from_numpy)
    replace_in_reticulate("py_to_r.numpy.ndarray", from_numpy)
  }

  # reticulate before pandas 3 does not know where its data frames live now.
  if (is.null(utils::getS3method("py_to_r", "pandas.DataFrame", optional = TRUE,
                                 envir = asNamespace("reticulate")))) {
    register("py_to_r", "pandas.DataFrame", function(x) {
      parts <- reticulate::py_to_r(ask("frame_columns", x))
      made <- lapply(parts$values, plain)
      names(made) <- parts$names
      data.frame(made, row.names = parts$rows, check.names = FALSE)
    })
  }

  show <- function(x, ...) {
    check_process()
    cat(reticulate::py_str(x), "\n", sep = "")
    invisible(x)
  }
  for (class in c("model_description.TabularModel", "summary.EnsembleSummary",
                  "predictor_tests.JointTest", "reliability_checks.VarianceComparison",
                  "reliability_checks.NormalityCheck", "bootstrap.Bootstrap")) {
    register("print", paste0("vstatkit.results.", class), show, home = "base")
  }
  register("print", "vstatkit.inference.linear_tests.WaldTest", show, home = "base")
  register("print", "vstatkit.results.prediction_results.PredictionResults",
           function(x, ...) {
             print(x$summary_frame(), ...)
             invisible(x)
           }, home = "base")
  register("summary", "vstatkit.results.estimate_table.EstimateTable",
           function(object, ...) object$summary(...), home = "base")
})
