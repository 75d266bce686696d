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
refused(vstatkit(y ~ kind, d, kernel = mean), "`kernel` must be a string")
refused(predict(air, airquality["Wind"]), "lack column 'Temp'")
refused(vstatkit(y ~ log(x), data.frame(x = 0:9, y = 1:10), B = 20),
        "'log\\(x\\)' must be finite in every row; row 1 has -Inf")
refused(vstatkit(y ~ kind + (1 | text), d), "Use `groups`")
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

# --- Python is not used in forked processes, in which it may hang
if (.Platform$OS.type == "unix") {
  found <- parallel::mclapply(1:2, function(one) {
    tryCatch(predict(air, airquality[1:2, ]), vstatkit_error = conditionMessage)
  }, mc.cores = 2)
  stopifnot(all(grepl("forked", unlist(found))), all(grepl("n_jobs = ", unlist(found))))
  shown <- parallel::mclapply(1:2, function(one) {
    tryCatch(capture.output(print(air$results)), error = conditionMessage)
  }, mc.cores = 2)
  stopifnot(all(grepl("forked", unlist(shown))))
}

# --- functions and numbers are named as they were written
refused(vstatkit(mpg ~ C(factor(cyl), contr.sum), mtcars, B = 20),
        "R's `C\\(...\\)` with more than one argument")
old <- options(OutDec = ",", warn = 2)
refused(vstatkit(mpg ~ wt, mtcars, rng = 0.5), "got 0\\.5\\.")
refused(confint(air, level = 1.5), "got 1\\.5\\.")
shown <- capture.output(print(air))
options(old)

# --- tests by other packages: t tests with our df, or refused
points <- vstatkit(mpg ~ wt + hp, mtcars, at = mtcars[1:3, ], B = 100, rng = 1)
table <- generics::tidy(points, component = "estimates")
same(rep_len(unname(df.residual(points)), 3), table$df)
same(unname(2 * pt(-abs(coef(points)) / sqrt(diag(vcov(points))), df.residual(points))),
     table$p.value)
stopifnot(length(df.residual(air)) == 1)
if (requireNamespace("lmtest", quietly = TRUE)) {
  same(unname(lmtest::coeftest(points)[, 4]), table$p.value)
  many <- vstatkit(mpg ~ wt + hp, mtcars, at = mtcars[1:3, ], B = 1000, k = 10, rng = 1)
  stopifnot(length(df.residual(many)) == 3)
  same(lmtest::coefci(many), confint(many))
  same(lmtest::coefci(many, 2:3, level = 0.8), confint(many, 2:3, level = 0.8))
  refused(lmtest::coefci(points, vcov. = vcov(points)), "omit `vcov` and `df`")
}
refused(vstatkit:::set_coef.vstatkit(points, coef(points)), "avg_slopes\\(\\)")

# --- learners that all agree give no test
sure <- vstatkit(Species ~ Petal.Length, iris, B = 100, rng = 1)
moved <- effects(sure)
stopifnot(any(moved$std.error == 0), is.na(moved$t[moved$std.error == 0]),
          is.na(moved$p.value[moved$std.error == 0]))
stopifnot(!any(is.infinite(generics::tidy(sure)$statistic)))

# --- matrices of R's are restrictions
one <- points$results$t_test(rbind(c(1, -1, 0), c(0, 1, -1)))$summary_frame()
same(one$coef, unname(coef(points)[1:2] - coef(points)[2:3]))
same(one[1, "std err"], points$results$t_test(c(1, -1, 0))$summary_frame()[1, "std err"])
