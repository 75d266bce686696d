# Missing values, errors, warnings, long runs and interrupts.
library(vstatkit)
if (!vstatkit_available()) quit(status = 0)

refused <- function(code, message, kind = NULL) {
  found <- tryCatch({
    code
    NULL
  }, vstatkit_error = identity)
  if (is.null(found)) stop("not refused: ", message)
  text <- conditionMessage(found)
  if (!grepl(message, text)) stop("'", message, "' is not in: ", text)
  stopifnot(is.null(kind) || found$kind == kind, is.null(conditionCall(found)))
  stopifnot(!grepl("Traceback|py_call|True|False|None|nan|pd\\.|data\\[", text))
  stopifnot(nchar(text) < 400)
}

same <- function(a, b) stopifnot(isTRUE(all.equal(a, b, tolerance = 1e-10)))

# --- NA of every kind
set.seed(2)
n <- 60
hole <- function(x, rows) {
  x[rows] <- NA
  x
}
d <- data.frame(
  y = rnorm(n),
  whole = hole(1:n, 1:2),
  truth = hole(rep(c(TRUE, FALSE, FALSE), n / 3), 3:5),
  text = hole(rep(c("a", "NA", "b"), n / 3), 6:9),
  kind = hole(factor(rep(c("u", "v"), n / 2)), 10:14),
  grade = hole(factor(rep(c("lo", "hi"), n / 2), c("lo", "hi"), ordered = TRUE), 15),
  number = hole(runif(n), 16:18)
)
d$number[18] <- NaN
for (name in setdiff(names(d), "y")) {
  fit <- vstatkit(reformulate(name, "y"), d, B = 40, rng = 1)
  complete <- d[complete.cases(d[c("y", name)]), ]
  stopifnot(nobs(fit) == nrow(complete), nobs(fit) < n)
  same(coef(fit), coef(vstatkit(reformulate(name, "y"), complete, B = 40, rng = 1)))
  lacking <- is.na(d[[name]])
  stopifnot(identical(is.na(unname(predict(fit, d))), lacking))
  same(predict(fit, d)[!lacking], predict(fit, d[!lacking, ]))
  both <- predict(fit, d, se.fit = TRUE, interval = "confidence")
  stopifnot(identical(unname(is.na(both$fit[, "lwr"])), lacking))
  stopifnot(identical(unname(is.na(both$se.fit)), lacking))
  stopifnot(identical(names(residuals(fit)), rownames(complete)))
}
printed <- capture.output(vstatkit(y ~ ., d, B = 40, rng = 1))
stopifnot("18 rows with missing values dropped" %in% printed)
refused(vstatkit(y ~ number, d, missing = "raise"), "missing")
air <- vstatkit(Ozone ~ Wind + Temp, airquality, B = 40, rng = 1)
stopifnot(nobs(air) == nobs(lm(Ozone ~ Wind + Temp, airquality)))
d$id <- hole(rep(1:20, 3), 5)
refused(vstatkit(y ~ kind, d, groups = id), "`groups` must not have missing")

# --- errors say what is wrong, in one line, without Python's words
refused(vstatkit(y ~ numbr, d), "'numbr' is not a column.*number", "FormulaError")
refused(vstatkit(y ~ kind, d, B = -3), "`B` must")
refused(vstatkit(y ~ kind, d, k = 100, replace = FALSE), "at most n = 55.*replace = TRUE")
refused(vstatkit(y ~ kind, d, k = 1), "one row or all rows")
refused(vstatkit(y ~ kind, d, kernel = "forrest"), "forest")
refused(vstatkit(y ~ kind, d, num.trees = 100), "`num.trees` is called `B`")
refused(vstatkit(y ~ kind, d, seed = 1), "set.seed")
refused(vstatkit(y ~ kind, d, 100), "must be named")
refused(vstatkit(y ~ kind + offset(number), d), "offset")
refused(vstatkit(~kind, d), "must have a response")
refused(vstatkit(y ~ kind, "data.csv"), "must be a data frame; got character")
refused(vstatkit(lm(y ~ kind, d)), "got an object of class lm")
refused(vstatkit(y ~ kind, d, kernel = mean), "`kernel` must be a text")
refused(predict(air, airquality["Wind"]), "lack column 'Temp'")
refused(vstatkit(y ~ log(x), data.frame(x = 0:9, y = 1:10), B = 20),
        "'log\\(x\\)' must be finite in every row; row 1 has -Inf")
refused(vstatkit(y ~ kind + (1 | text), d), "resampled by `groups`")
sexes <- vstatkit(y ~ kind + text, d, B = 20, rng = 1)
refused(predict(sexes, data.frame(kind = "w", text = "a")),
        "newdata have 'w' in 'kind'; the model knows 'u', 'v'")
refused(predict(sexes, data.frame(kind = "u", text = "z")), "have 'z' in 'text'")
refused(predict(air, 3), "must be a data frame; got numeric")
refused(predict(air, airquality, interval = "confidence", level = 95), "between 0 and 1")
refused(confint(air, "Wind"), "no estimate 'Wind'; there are 'typical'. .* effects\\(fit")
refused(confint(air, "Moon"), "no estimate 'Moon'; there are 'typical'\\.$")
refused(predict(vstatkit(mpg ~ wt, mtcars, B = 40), mtcars, interval = "prediction"),
        "level = 0.95 need out-of-bag residuals of 39 rows or more")
refused(predict(vstatkit(kind ~ y, d, B = 20), d, interval = "prediction"), "classes")
refused(residuals(vstatkit(kind ~ y, d, B = 20)), "numeric response")
stopifnot(inherits(try(vstatkit(y ~ numbr, d), silent = TRUE), "try-error"))

# --- warnings are R's
warned <- tryCatch(vstatkit(y ~ kind, d, k = 1L, B = 20), warning = identity)
stopifnot(inherits(warned, "warning"), grepl("one observation", conditionMessage(warned)))

# --- saveRDS() does not keep what is in Python, and says so
file <- tempfile()
saveRDS(air, file)
refused(coef(readRDS(file)), "vstatkit_save")

# --- a long run ends when it is interrupted, and R goes on
rows <- data.frame(x = runif(4000), y = rnorm(4000))
interrupted <- function(code) {
  command <- sprintf("(sleep 2; kill -INT %d) > /dev/null 2>&1 &", Sys.getpid())
  system(command)
  found <- tryCatch({
    code
    "finished"
  }, interrupt = function(i) "interrupted")
  found
}
if (.Platform$OS.type == "unix") {
  found <- interrupted(vstatkit(y ~ x, rows, B = 3e6, k = 2000, rng = 1,
                                memory_limit = "64GB"))
  stopifnot(found == "interrupted")
  same(coef(vstatkit(Ozone ~ Wind + Temp, airquality, B = 40, rng = 1)), coef(air))
}

# --- a run of many seconds comes to its end, whatever R does besides
long <- vstatkit(y ~ x, rows, B = 4000, k = 500, rng = 1)
stopifnot(long$results$B == 4000, is.finite(coef(long)))
