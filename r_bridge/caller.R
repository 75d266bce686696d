# Call a function and return its value with its output, messages and warnings. `quit()`
# would end Python silently; during the call it is an error.
function(f, arguments) {
  warned <- character()
  noted <- character()
  value <- NULL
  failed <- NULL
  interrupted <- FALSE
  exchange <- function(functions) {
    for (name in names(functions)) {
      unlockBinding(name, baseenv())
      assign(name, functions[[name]], envir = baseenv())
      lockBinding(name, baseenv())
    }
  }
  refuse <- function(save, status, runLast) {
    stop("quit() was called, which would end Python as well; R lives on", call. = FALSE)
  }
  before <- list(quit = base::quit, q = base::q)
  on.exit(exchange(before))
  exchange(list(quit = refuse, q = refuse))
  printed <- utils::capture.output(
    tryCatch(
      withCallingHandlers(
        {
          if (is.character(f)) {
            f <- eval(parse(text = f, keep.source = FALSE), globalenv())
          }
          value <- do.call(f, arguments, quote = TRUE)
        },
        warning = function(w) {
          warned <<- c(warned, conditionMessage(w))
          invokeRestart("muffleWarning")
        },
        message = function(m) {
          noted <<- c(noted, conditionMessage(m))
          invokeRestart("muffleMessage")
        }
      ),
      error = function(e) failed <<- conditionMessage(e),
      interrupt = function(i) interrupted <<- TRUE
    )
  )
  list(value = value, failed = failed, warned = unique(warned),
       printed = c(noted, printed), interrupted = interrupted)
}
