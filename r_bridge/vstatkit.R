# vstatkit from R, through reticulate:
#
#   library(reticulate)
#   vstatkit <- import("vstatkit")
#   source(import("r_bridge")$r_file())
#   vstatkit$fit(y ~ x1 + x2, df)
#
# Formulas go to Python translated, data frames come back as data frames and series
# as named vectors whatever the versions of reticulate and pandas, and results print
# as tables.

local({
  register <- function(generic, class, method, home = "reticulate") {
    registerS3method(generic, class, method, envir = asNamespace(home))
  }

  register("r_to_py", "formula", function(x, convert = FALSE) {
    text <- paste(deparse(x, width.cutoff = 500L), collapse = " ")
    bridge <- reticulate::import("r_bridge", convert = FALSE)
    bridge$translate_formula(text)
  })

  plain <- function(column) {
    if (!is.list(column)) return(column)
    column[vapply(column, is.null, logical(1))] <- NA
    unlist(column)
  }

  for (class in c("pandas.Series", "pandas.core.series.Series")) {
    register("py_to_r", class, function(x) {
      parts <- reticulate::import("r_bridge.reticulate")$series_values(x)
      stats::setNames(plain(parts$values), parts$names)
    })
  }

  # reticulate before pandas 3 does not know where its data frames live now.
  known <- utils::getS3method("py_to_r", "pandas.DataFrame", optional = TRUE,
                              envir = asNamespace("reticulate"))
  if (is.null(known)) {
    register("py_to_r", "pandas.DataFrame", function(x) {
      parts <- reticulate::import("r_bridge.reticulate")$frame_columns(x)
      made <- lapply(parts$values, plain)
      names(made) <- parts$names
      data.frame(made, row.names = parts$rows, check.names = FALSE)
    })
  }

  show <- function(x, ...) {
    cat(reticulate::py_str(x), "\n", sep = "")
    invisible(x)
  }
  for (class in c("vstatkit.results.EnsembleResults",
                  "vstatkit.summary.EnsembleSummary")) {
    register("print", class, show, home = "base")
  }
  register("summary", "vstatkit.results.EnsembleResults",
           function(object, ...) object$summary(...), home = "base")
})
