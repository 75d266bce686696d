# Access to Python: import, calls, and conversion of errors.

the <- new.env(parent = emptyenv())

bridge <- function() {
  check_process()
  if (is.null(the$bridge)) {
    the$bridge <- tryCatch(
      reticulate::import("r_bridge.r_package"),
      error = function(e) fail(missing_python(conditionMessage(e)), "ImportError")
    )
    the$process <- Sys.getpid()
  }
  the$bridge
}

.onLoad <- function(libname, pkgname) the$process <- Sys.getpid()

# A fork copies the lock of Python's interpreter, but not the thread that may hold it.
check_process <- function() {
  if (identical(the$process, Sys.getpid())) return(invisible())
  if (!reticulate::py_available(initialize = FALSE)) return(invisible())
  fail(paste(
    "Python cannot be used in a process that was forked after it was started, as by",
    "parallel::mclapply(): it may hang. Use n_jobs = for threads within a fit, or a",
    "cluster of new processes, parallel::parLapply(parallel::makeCluster(2), ...)."
  ), "RuntimeError")
}

missing_python <- function(why) {
  config <- tryCatch(reticulate::py_config()$python, error = function(e) "none")
  paste0(
    "Python must have the package vstatkit; that of reticulate (", config, ") does not: ",
    trimws(strsplit(why, "\n")[[1]][1]), "\nStart R with RETICULATE_PYTHON set to a ",
    "Python that has it, or see ?vstatkit_available."
  )
}

vstatkit_available <- function() {
  tryCatch(!is.null(bridge()), error = function(e) FALSE)
}

# Errors are conditions of class "vstatkit_error", with Python's message only.
fail <- function(message, kind = "ValueError") {
  stop(structure(
    class = c("vstatkit_error", "error", "condition"),
    list(message = message, call = NULL, kind = kind)
  ))
}

ask <- function(name, ...) {
  answer <- bridge()$ask(name, ...)
  for (text in unlist(answer$warned)) warning(in_r_words(text), call. = FALSE)
  if (!is.null(answer$failed)) fail(in_r_words(answer$failed), answer$kind)
  answer$value
}

call_method <- function(object, name, ...) {
  ask("method", results_of(object), name, list(...))
}

results_of <- function(object) {
  if (reticulate::py_is_null_xptr(object$results)) {
    fail(paste(
      "the results are not available: they are Python objects, which saveRDS() and",
      "save.image() do not store. Refit, or use vstatkit_save() and vstatkit_load()."
    ))
  }
  object$results
}

vstatkit_save <- function(object, file) {
  call_method(object, "save", path = path.expand(file))
  invisible(file)
}

vstatkit_load <- function(file) {
  if (dir.exists(file)) fail(paste0(file, " is a folder; give the name of a file."))
  results <- ask("load", path.expand(file))
  new_vstatkit(results, call = sys.call())
}

# Whole numbers need no L in R. For k, 1 could be a share or a count.
as_python <- function(options) {
  for (name in names(options)) {
    value <- options[[name]]
    whole <- is.numeric(value) && is.null(dim(value)) && !is.object(value) &&
      length(value) == 1 && is.finite(value) && value == round(value)
    if (!whole) next
    if (name == "k" && is.double(value) && value == 1) {
      fail(paste(
        "k = 1 could be one row or all rows. Write k = 1L for subsamples of one row,",
        "or the number of rows of the data for all of them."
      ))
    }
    options[[name]] <- whole_number(value)
  }
  options
}

whole_number <- function(value) {
  if (abs(value) <= .Machine$integer.max) return(as.integer(value))
  reticulate::import_builtins(convert = FALSE)$int(value)
}

# Other packages' names for arguments, and ours.
OTHER_NAMES <- c(
  num.trees = "B", ntree = "B", n.trees = "B", trees = "B", nboot = "B",
  mtry = "max_features", sample.fraction = "k", sampsize = "k",
  min.node.size = "min_samples_leaf", nodesize = "min_samples_leaf",
  max.depth = "max_depth", maxnodes = "max_depth", case.weights = "weights",
  sample.weights = "weights", clusters = "groups", cluster = "groups",
  num.threads = "n_jobs", importance = "", probability = "", na.action = ""
)

check_names <- function(options) {
  given <- names(options)
  if (length(options) && (is.null(given) || any(given == ""))) {
    fail("all arguments after `data` must be named, like B = 500.", "TypeError")
  }
  twice <- given[duplicated(given)]
  if (length(twice)) fail(paste0("`", twice[1], "` is given twice."), "TypeError")
  for (name in intersect(given, names(OTHER_NAMES))) {
    ours <- OTHER_NAMES[[name]]
    advice <- switch(name,
      importance = "is not needed: tests of predictors work on any fit.",
      probability = "is not needed: a factor as response gives probabilities.",
      na.action = "is not an argument: use missing = \"drop\", \"raise\" or \"pass\".",
      paste0("is called `", ours, "` here.")
    )
    fail(paste0("`", name, "` ", advice), "TypeError")
  }
  if ("seed" %in% given) {
    fail("`seed` is called `rng` here; by default, set.seed() is used.", "TypeError")
  }
}
