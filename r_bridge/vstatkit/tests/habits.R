# What users of R expect: names that are refused, rows by their names, `subset`, words.
library(vstatkit)
if (!vstatkit_available()) quit(status = 0)

same <- function(a, b) stopifnot(isTRUE(all.equal(a, b, tolerance = 1e-10)))

says <- function(code, message) {
  found <- tryCatch({
    code
    "nothing"
  }, vstatkit_error = conditionMessage)
  if (!grepl(message, found, fixed = TRUE)) stop("'", message, "' is not in: ", found)
}

set.seed(4)
n <- 60
d <- data.frame(x1 = runif(n), x2 = runif(n), g = rep(1:3, 20), z = rep(c("a", "b"), 30))
d$y <- d$x1 + rnorm(n)
fit <- vstatkit(y ~ x1 + factor(g), d, B = 60, rng = 1)

# --- methods refuse arguments that they have not
says(predict(fit, intervall = "confidence"), "predict() has no argument `intervall`; did")
says(predict(fit, d, intervall = "confidence"), "did you mean `interval`?")
says(predict(fit, d, "confidence"), "`se.fit` must be TRUE or FALSE")
says(summary(fit, alpha = 0.1), "summary() has no argument `alpha`; did you mean `level`?")
says(confint(fit, lvel = 0.9), "did you mean `level`?")
says(effects(fit, alpha = 0.1), "effects() has no argument `alpha`; did you mean `level`?")
says(fitted(fit, type = "response"), "fitted() has no argument `type`; it takes only the fit")
says(residuals(fit, type = "pearson"), "`type` must be \"response\"")
says(vcov(fit, robust = TRUE), "vcov() has no argument `robust`; it has `complete`.")
says(coef(fit, "x1"), "coef() takes no further arguments without a name")
same(residuals(fit, type = "response"), residuals(fit))
same(coef(fit, complete = FALSE), coef(fit))
if (requireNamespace("generics", quietly = TRUE)) {
  says(generics::tidy(fit, conf_int = TRUE), "did you mean `conf.int`?")
  says(generics::tidy(fit, alpha = 0.1), "did you mean `conf.level`?")
  # Other packages hand over arguments of their own.
  stopifnot(nrow(generics::glance(fit, component = "effects", gof_map = NULL)) == 1)
  same(generics::tidy(fit, exponentiate = FALSE, vcov = NULL), generics::tidy(fit))
}
says(vstatkit(y ~ x1, d, missin = "raise"), "did you mean 'missing'?")

# --- rows have the names that they have in R
new <- d[c(7, 3), ]
there <- vstatkit(y ~ x1, d, at = new, B = 40, rng = 1)
stopifnot(identical(names(coef(there)), c("7", "3")))
stopifnot(identical(rownames(confint(there)), c("7", "3")))
stopifnot(identical(dimnames(vcov(there)), list(c("7", "3"), c("7", "3"))))
stopifnot(any(grepl("^7 ", strsplit(summary(there)$text, "\n")[[1]])))
counted <- vstatkit(y ~ x1, d, at = data.frame(x1 = c(0.2, 0.4)), B = 40, rng = 1)
stopifnot(identical(names(coef(counted)), c("1", "2")))
named <- vstatkit(mpg ~ wt, mtcars, at = mtcars[2:3, ], B = 40, rng = 1)
stopifnot(identical(names(coef(named)), rownames(mtcars)[2:3]))
half <- d[31:60, ]
part <- vstatkit(y ~ x1, half, B = 40, rng = 1)
stopifnot(identical(names(fitted(part)), rownames(half)))

# --- subset, as data[rows, ]
w <- runif(n)
rows <- d$x2 > 0.4
rows[1] <- NA
kept <- which(rows)
some <- vstatkit(y ~ x1 + z, d, B = 40, rng = 1, subset = rows, weights = w, groups = g)
same(coef(some), coef(vstatkit(y ~ x1 + z, d[kept, ], B = 40, rng = 1,
                               weights = w[kept], groups = d$g[kept])))
stopifnot(nobs(some) == length(kept))
same(fitted(vstatkit(y ~ x1, d, B = 40, rng = 1, subset = x2 > 0.4)),
     fitted(vstatkit(y ~ x1, d[d$x2 > 0.4, ], B = 40, rng = 1)))
same(coef(vstatkit(y ~ x1, d, B = 40, rng = 1, subset = -(1:9))),
     coef(vstatkit(y ~ x1, d[-(1:9), ], B = 40, rng = 1)))
same(coef(vstatkit(mpg ~ wt, mtcars, B = 40, rng = 1, subset = rownames(mtcars)[1:20])),
     coef(vstatkit(mpg ~ wt, mtcars[1:20, ], B = 40, rng = 1)))
beside <- d$x1^2
same(unname(coef(vstatkit(y ~ beside, d, B = 40, rng = 1, subset = x2 > 0.4))),
     unname(coef(vstatkit(y ~ b, transform(d, b = beside)[d$x2 > 0.4, ], B = 40,
                          rng = 1))))
only <- vstatkit(y ~ z, transform(d, z = c("c", z[-1])), B = 40, rng = 1, subset = -1)
says(predict(only, data.frame(z = "c")), "have 'c' in 'z'; the model knows 'a', 'b'.")
says(vstatkit(y ~ x1, d, subset = c(TRUE, FALSE)), "each of the 60 rows; got 2.")
says(vstatkit(y ~ x1, d, subset = 61), "`subset` names rows that the data do not have")
says(vstatkit(y ~ x1, d, subset = x1 > 2), "`subset` selects no row")

# --- without newdata, out of bag
same(predict(fit), fitted(fit))
says(predict(fit, interval = "confidence"), "predicted out of bag")
says(predict(fit, se.fit = TRUE), "Give the training data as newdata")
says(predict(fit, type = "class"), "this one is numeric")

# --- advice is R's
says(vstatkit(y ~ x1, transform(d, x1 = as.character(x1))),
     "data$x1 <- as.numeric(data$x1); or write factor(x1)")
says(vstatkit(y ~ x1, transform(d, x1 = sub(".", ",", x1, fixed = TRUE))),
     "data$x1 <- as.numeric(sub(\",\", \".\", data$x1, fixed = TRUE)); or write")
says(vstatkit(y ~ x1, transform(d, x1 = as.Date("2020-01-01") + 1:n)),
     "data$x1 <- as.numeric(as.Date(data$x1)); or write factor(x1)")
gap <- transform(d, x1 = replace(x1, 5, NA))
says(vstatkit(y ~ x1, gap, missing = "raise"),
     "'x1' must have a value in every row; 1 of 60 are missing. Use missing = \"drop\"")
says(vstatkit(y ~ x1, d, at = gap[1:5, ]),
     "'x1' is missing in row '5' (1 such row(s)). Leave them out, data[!is.na(data[[\"x1\"]]), ]")
says(vstatkit(y ~ x1, d, weights = replace(w, 9, NA)), "the first in row 9.")
says(vstatkit(y ~ x1, d[11:30, ], weights = replace(w[11:30], 2, NA)),
     "the first in row '12'.")
says(vstatkit(y ~ x1, d, weights = z), "`weights` must be numbers; got values such as 'a'")
says(predict(fit, data.frame(x1 = 1, g = 7)), "have '7' in 'g'; the training data have 1, 2")
says(vstatkit(y ~ x1, d, rng = "one"), "`rng` must be a whole number, 0 or above; got one")
says(vstatkit(y ~ x1, d, rng = -1), "got -1. By default, set.seed()")
says(vstatkit(y ~ x1, d, at = 3), "`at` must be a data frame of query points; got numeric")
says(vstatkit_save(fit, file.path(tempdir(), "none", "fit")), file.path(tempdir(), "none"))
says(vstatkit_load(tempdir()), "is a folder; give the name of a file")
stopifnot(grepl("target = \"truth\"", summary(fit)$text, fixed = TRUE))
stopifnot("1 row with missing values dropped" %in%
            capture.output(vstatkit(y ~ x1, gap, B = 40, rng = 1)))

# --- pictures in small parts of a page, and margins as they were
long <- vstatkit(y ~ a_predictor_with_a_very_long_name + z,
                 transform(d, a_predictor_with_a_very_long_name = x1), B = 40, rng = 1)
pdf(NULL)
for (parts in list(c(1, 1), c(2, 2), c(5, 5), c(1, 6), c(6, 1))) {
  par(mfrow = parts)
  before <- par("mar", "mai", "mfrow", "cex")
  plot(long)
  plot(long, "fitted")
  same(par("mar", "mai", "mfrow", "cex"), before)
}
invisible(dev.off())

# --- tables of estimates print their numbers
cars_fit <- vstatkit(dist ~ speed, cars, B = 60, rng = 1)
means <- cars_fit$results$avg_effects()
shows <- function(x, word) stopifnot(any(grepl(word, capture.output(print(x)), fixed = TRUE)))
shows(means, format(means$frame$estimate, digits = 4))
shows(cars_fit$results$importance(), "importance  std_error")
shows(cars_fit$results$partial_dependence("speed", points = 3L), "Partial dependence")
shows(cars_fit$results$get_prediction(cars[1:2, ]), "mean_ci_lower")
