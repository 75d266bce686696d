# Formulas: what is looked up where, and what R computes.
library(vstatkit)
if (!vstatkit_available()) quit(status = 0)

same <- function(a, b) stopifnot(isTRUE(all.equal(a, b, tolerance = 1e-10)))

set.seed(4)
n <- 90
d <- data.frame(x = runif(n, 1, 2), z = rnorm(n), g = factor(sample(c("a", "b"), n, TRUE)))
d$y <- d$x^2 + d$z + rnorm(n)
small <- function(formula, data = d, ...) {
  vstatkit(formula, data, kernel = "ols", B = 60, rng = 1, ...)
}

# --- the formula's environment: vectors are columns, single values are written in
local({
  outside <- d$z
  power <- 2
  same(unname(coef(small(y ~ x + outside))), unname(coef(small(y ~ x + z))))
  same(coef(small(y ~ I(x^power))), coef(small(y ~ I(x^2))))
  fit <- small(y ~ x + outside)
  found <- try(predict(fit, d[1:2, ]), silent = TRUE)
  stopifnot(grepl("lack 'outside'", found))
  same(unname(predict(fit, transform(d[1:2, ], outside = z))),
       unname(predict(small(y ~ x + z), d[1:2, ])))
  short <- 1:3
  stopifnot(grepl("'short' in the environment of the formula has 3 values; the data have 90",
                  try(small(y ~ short), silent = TRUE)))
})
made_elsewhere <- function() {
  hidden <- d$z
  y ~ hidden
}
same(unname(coef(small(made_elsewhere()))), unname(coef(small(y ~ z))))
with(d, same(coef(vstatkit(y ~ x + z, kernel = "ols", B = 60, rng = 1)),
             coef(small(y ~ x + z))))

same(unname(coef(vstatkit(d$y ~ d$x, kernel = "ols", B = 60, rng = 1))),
     unname(coef(small(y ~ x))))
same(coef(small("y ~ x + z")), coef(small(y ~ x + z)))

# --- functions of the user's, and of R's that formulas do not have in Python
half <- function(v) v / 2
fit <- small(y ~ half(x) + interaction(g, z > 0))
expected <- small(y ~ h + i, transform(d, h = x / 2, i = interaction(g, z > 0)))
same(unname(coef(fit)), unname(coef(expected)))
same(predict(fit, d[1:5, ]),
     predict(expected, transform(d, h = x / 2, i = interaction(g, z > 0))[1:5, ]))
same(unname(coef(small(sqrt(abs(y)) ~ x))),
     unname(coef(small(w ~ x, transform(d, w = sqrt(abs(y)))))))
one <- small(y ~ relevel(g, ref = "b"))
same(unname(predict(one, data.frame(g = c("a", "b")))),
     unname(predict(one, data.frame(g = factor(c("a", "b"))))))
stopifnot(grepl("gives a matrix", try(small(cbind(x, z) ~ g), silent = TRUE)))
stopifnot(grepl("cannot be computed: ", try(small(y ~ stop("no")), silent = TRUE)))
same(unname(coef(small(y ~ stats::poly(x, 2)))), unname(coef(small(y ~ poly(x, 2)))))

# --- `.` leaves out the response, clusters and weights
d$id <- rep(1:30, 3)
d$w <- runif(n)
stopifnot(identical(names(coef(small(y ~ ., groups = "id", weights = "w"))),
                    names(coef(small(y ~ x + z + g)))))
stopifnot(identical(names(coef(small(log(y + 9) ~ . - g))),
                    c("Intercept", "x", "z", "id", "w")))
same(coef(small(y ~ x, groups = id, weights = w)),
     coef(small(y ~ x, groups = "id", weights = "w")))
same(coef(small(y ~ ., groups = id, weights = w)),
     coef(small(y ~ ., groups = "id", weights = "w")))
grouped <- small(y ~ x, groups = id)
stopifnot(grouped$results$design$n == 30, nobs(grouped) == n)
stopifnot(any(grepl("of 30 clusters each", capture.output(print(grouped)))))

# --- awkward names, data of other classes
odd <- setNames(d[c("y", "x")], c("the y", "2nd.x"))
same(unname(coef(small(`the y` ~ `2nd.x`, odd))), unname(coef(small(y ~ x))))
same(unname(coef(small(`the y` ~ ., odd))), unname(coef(small(y ~ x))))
same(coef(small(y ~ x, as.list(d))), coef(small(y ~ x)))
tibble <- structure(d, class = c("tbl_df", "tbl", "data.frame"))
same(coef(small(y ~ x, tibble)), coef(small(y ~ x)))

# --- columns of polynomials and splines are R's: learners on all rows are lm()
for (one in list(y ~ poly(x, 2) + g, y ~ I(x^2) + log(x), y ~ scale(x) + z,
                 y ~ splines::ns(x, df = 3), y ~ log(x, 2), y ~ cut(x, c(1, 1.4, 2)),
                 y ~ splines::bs(x, df = 4), y ~ x %in% g, y ~ (x + z)^2)) {
  fit <- vstatkit(one, d, kernel = "ols", k = 90, B = 600, rng = 2)
  line <- lm(one, d)
  gap <- abs(predict(fit, d) - fitted(line)) / predict(line, d, se.fit = TRUE)$se.fit
  stopifnot(mean(gap) < 0.15, max(gap) < 1)  # bagging moves them a little
}

# --- the response is arithmetic: the same fit as to a column computed beforehand
p <- 3
for (one in list(y - x ~ z, y^2 ~ z, log(x) - z ~ g, z/x ~ g, -y ~ x, 1/x ~ z, y %/% 2 ~ x,
                 y/p ~ x, y - rank(z) ~ x, y * cumsum(x) %% 3 ~ z, I(y + z) ~ x,
                 y + 1 ~ x, (y + z)/2 ~ x, y/sd(y) ~ x)) {
  computed <- d
  computed$response <- eval(one[[2]], d)
  other <- update(one, response ~ .)
  fit <- small(one)
  expected <- small(other, computed)
  same(coef(fit), coef(expected))
  same(vcov(fit), vcov(expected))
  same(unname(residuals(fit)), unname(residuals(expected)))
  same(predict(fit, d[1:3, ]), predict(expected, computed[1:3, ]))
}
ratio <- small(z/x ~ g)
same(generics::augment(ratio, newdata = d[1:3, ])$.resid,
     unname((d$z / d$x)[1:3] - predict(ratio, d[1:3, ])))
stopifnot(any(grepl("^y\\^2 by", capture.output(print(small(y^2 ~ z))))))
stopifnot(identical(names(coef(small(y - x ~ . - id - w))), c("Intercept", "g[T.b]", "z")))
for (sum in list(y + x ~ z, y - x + cumsum(z) ~ g)) {
  stopifnot(grepl(paste0("Write I(", deparse(sum[[2]]), ") for the sum"),
                  try(small(sum), silent = TRUE), fixed = TRUE))
}
