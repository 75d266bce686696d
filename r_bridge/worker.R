# R in a separate process. Requests and answers are files in the given folder. A line on
# standard input announces a request; the given line on standard output announces the
# answer. Objects that stay in R are numbered.
local({
  given <- commandArgs(trailingOnly = TRUE)
  folder <- given[1]
  answered <- given[2]
  call_function <- eval(parse(file.path(folder, "caller.R"), keep.source = FALSE))
  kept <- new.env()
  count <- 0L

  stay <- function(x) {
    count <<- count + 1L
    assign(as.character(count), x, envir = kept)
    list(handle = structure(count, class = "vstatkit_handle"), classes = class(x))
  }

  unpack <- function(x) {
    if (inherits(x, "vstatkit_handle")) get(as.character(unclass(x)), envir = kept)
    else if (is.list(x)) { x[] <- lapply(x, unpack); x }
    else x
  }

  plain <- function(x) {
    shape <- dim(x)
    attributes(x) <- NULL
    if (is.character(x)) x <- enc2utf8(x)
    dim(x) <- shape
    x
  }

  pack <- function(x) {
    if (is.null(x)) NULL
    else if (is.list(x)) stats::setNames(lapply(unclass(x), pack), names(x))
    else if (typeof(x) %in% c("double", "integer", "logical", "character")) plain(x)
    else stay(x)
  }

  answer <- function(request) {
    rm(list = intersect(as.character(request$gone), ls(kept)), envir = kept)
    arguments <- stats::setNames(unpack(request$arguments), request$names)
    said <- call_function(unpack(request$f), arguments)
    said["value"] <- list(if (request$keep) stay(said$value) else
      pack(said$value))
    said$printed <- enc2utf8(as.character(said$printed))
    said$warned <- enc2utf8(as.character(said$warned))
    if (!is.null(said$failed)) said$failed <- enc2utf8(said$failed)
    said
  }

  input <- file("stdin", "r")
  repeat {
    if (!length(readLines(input, 1))) break
    file <- file.path(folder, "request")
    said <- answer(unserialize(readBin(file, "raw", file.size(file))))
    writeBin(serialize(said, NULL, xdr = TRUE, version = 2L),
             file.path(folder, "answer"))
    cat("\n", answered, "\n", sep = "")
    flush(stdout())
  }
  # The other process is gone, perhaps without a chance to remove it.
  unlink(folder, recursive = TRUE)
})
