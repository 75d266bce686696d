# Fits: what R's generic functions give, held against each other and against lm().
library(vstatkit)
if (!vstatkit_available()) {
  if (nzchar(Sys.getenv("VSTATKIT_REQUIRED"))) vstatkit(dist ~ speed, cars)
  quit(status = 0)
}

same <- function(a, b, tolerance = 1e-10) {
  stopifnot(isTRUE(all.equal(a, b, tolerance = tolerance)))
}

set.seed(3)
n <- 120
d <- data.frame(x1 = runif(n), x2 = runif(n), g = sample(c("u", "v", "w"), n, TRUE))
d$y <- 3 * d$x1 + (d$g == "v") + rnorm(n)

# --- seeds and whole numbers
set.seed(7)
fit <- vstatkit(y ~ x1 + factor(g), d, B = 300, k = 40)
set.seed(7)
stopifnot(identical(coef(vstatkit(y ~ x1 + factor(g), d, B = 300, k = 40)), coef(fit)))
stopifnot(coef(vstatkit(y ~ x1 + factor(g), d, B = 300, k = 40)) != coef(fit))
drawn <- vstatkit(y ~ x1, d, B = 100, k = 40, rng = 12)
stopifnot(identical(coef(drawn), coef(vstatkit(y ~ x1, d, B = 100L, k = 40L, rng = 12L))))
state <- .Random.seed
large <- vstatkit(y ~ x1, d, B = 20, rng = 5e9)  # beyond R's integers; draws nothing from R
stopifnot(identical(state, .Random.seed), summary(large)$glance$seed == 5e9)

# --- estimates, their covariance and their intervals are one
table <- summary(fit)$coefficients
stopifnot(identical(names(coef(fit)), "typical"), identical(rownames(vcov(fit)), "typical"))
same(unname(sqrt(diag(vcov(fit)))), unname(table[, "std.error"]))
for (level in c(0.95, 0.8)) {
  reach <- qt((1 + level) / 2, table[, "df"]) * table[, "std.error"]
  same(unname(confint(fit, level = level)[1, ]), unname(coef(fit) + c(-1, 1) * reach))
}
stopifnot(identical(colnames(confint(fit, level = 0.9)), c("5 %", "95 %")))
stopifnot(identical(confint(fit, "typical"), confint(fit)), nobs(fit) == n)
stopifnot(identical(formula(fit), y ~ x1 + factor(g)))

# --- effects are differences of predictions
moved <- effects(fit)
stopifnot(identical(rownames(moved), c("x1", "g (u -> v)", "g (u -> w)")))
typical <- data.frame(x1 = median(d$x1), g = names(which.max(table(d$g))))
at <- function(...) unname(predict(fit, modifyList(typical, list(...))))
ends <- quantile(d$x1, c(0.1, 0.9), names = FALSE)
same(moved["x1", "estimate"], at(x1 = ends[2]) - at(x1 = ends[1]))
same(moved["g (u -> w)", "estimate"], at(g = "w") - at(g = "u"))
same(unname(coef(fit)), unname(predict(fit, typical)))

# --- predict() is like predict.lm()
new <- d[1:4, ]
given <- predict(fit, new, se.fit = TRUE, interval = "confidence", level = 0.9)
stopifnot(identical(dimnames(given$fit), list(as.character(1:4), c("fit", "lwr", "upr"))))
same(given$fit[, "fit"], predict(fit, new))
same(given$fit[, "upr"], given$fit[, "fit"] + qt(0.95, given$df) * given$se.fit)
same(predict(fit, new, interval = "confidence", level = 0.9), given$fit)
stopifnot(identical(names(predict(fit, new, se.fit = TRUE)), names(given)))
wide <- predict(fit, new, interval = "prediction")
stopifnot(wide[, "lwr"] < given$fit[, "lwr"], wide[, "upr"] > given$fit[, "upr"])
same(predict(fit), fitted(fit))
line <- lm(y ~ x1, d)
stopifnot(identical(dimnames(predict(line, new, interval = "confidence")),
                    dimnames(given$fit)))

# --- out-of-bag predictions
same(unname(fitted(fit) + residuals(fit)), d$y)
stopifnot(identical(names(fitted(fit)), rownames(d)))
left <- mean((predict(fit, d) - d$y)^2)
stopifnot(left < mean(residuals(fit)^2))  # seen rows are fitted better
glanced <- summary(fit)$glance
same(glanced$rmse, sqrt(mean(residuals(fit)^2)))
same(glanced$r.squared, 1 - sum(residuals(fit)^2) / sum((d$y - mean(d$y))^2))

# --- bagged coefficients lie around those of lm()
bagged <- vstatkit(y ~ x1 + x2, d, kernel = "ols", B = 2000, rng = 1)
line <- lm(y ~ x1 + x2, d)
stopifnot(abs(coef(bagged) - coef(line)) < 0.25 * sqrt(diag(vcov(line))))
stopifnot(abs(log(diag(vcov(bagged)) / diag(vcov(line)))) < log(2))
stopifnot(identical(names(coef(bagged)), c("Intercept", "x1", "x2")))
stopifnot(identical(rownames(confint(bagged, c("x1", "x2"))), c("x1", "x2")))
stopifnot(is.null(effects(bagged)))

# --- classes
kinds <- vstatkit(Species ~ ., iris, B = 100, rng = 1)
shares <- predict(kinds, iris[c(1, 60, 101), ])
stopifnot(identical(colnames(shares), levels(iris$Species)))
same(unname(rowSums(shares)), rep(1, 3))
stopifnot(as.character(predict(kinds, iris[c(1, 60, 101), ], type = "class")) ==
            levels(iris$Species))
ends <- predict(kinds, iris[c(1, 60), ], interval = "confidence", se.fit = TRUE)
stopifnot(identical(dim(ends$fit), c(2L, 3L, 3L)))
same(ends$fit[, , "fit"], predict(kinds, iris[c(1, 60), ]))
stopifnot(ends$fit[, , "lwr"] >= 0, ends$fit[, , "upr"] <= 1)
stopifnot(mean(colnames(fitted(kinds))[max.col(fitted(kinds))] == iris$Species) > 0.9)
same(predict(kinds), fitted(kinds))
seen <- predict(kinds, type = "class")
stopifnot(identical(levels(seen), levels(iris$Species)), names(seen) == 1:150)
stopifnot(levels(seen)[max.col(fitted(kinds), "first")] == seen)
two <- vstatkit(Species ~ ., droplevels(iris[51:150, ]), B = 60, rng = 1)
stopifnot((predict(two, type = "class") == "virginica") == (fitted(two) > 0.5))

# --- tables of broom's kind
if (requireNamespace("generics", quietly = TRUE)) {
  tidied <- generics::tidy(fit, conf.int = TRUE, conf.level = 0.9)
  stopifnot(identical(tidied$term, c(rownames(moved), "typical")))
  same(tidied$estimate, c(moved$estimate, unname(coef(fit))))
  same(tidied$conf.high[4], unname(confint(fit, level = 0.9)[, 2]))
  same(tidied$conf.low[1:3], effects(fit, 0.9)$ci.lower)
  stopifnot(!"conf.low" %in% names(generics::tidy(fit)))
  stopifnot(generics::tidy(fit, component = "estimates")$term == "typical")
  stopifnot(generics::glance(fit)$nobs == n, generics::glance(fit)$B == 300)
}

# --- printing, updating, drawing, saving
out <- capture.output(print(fit))
stopifnot(any(grepl("factor(g), data = d, B = 300", out, fixed = TRUE)))
stopifnot(any(grepl("^x1 ", out)), any(grepl("on 40 of 120 obs", out)))
stopifnot(any(grepl("Forest Results", capture.output(print(summary(fit))))))
stopifnot(any(grepl("summary(fit, full = TRUE)", summary(fit)$text, fixed = TRUE)))
stopifnot(any(grepl("zeta_k  ", summary(fit, full = TRUE)$text, fixed = TRUE)),
          !any(grepl("full = TRUE", summary(fit, full = TRUE)$text, fixed = TRUE)))
there <- vstatkit(y ~ x1, d, at = d[1:2, ], B = 40, rng = 1)
out <- capture.output(print(there))
stopifnot("Effects:" %in% out, "Estimates:" %in% out, length(coef(there)) == 2)
wider <- update(fit, . ~ . + x2)
stopifnot(identical(rownames(effects(wider))[4], "x2"))
file <- tempfile(fileext = ".pdf")
pdf(file)
plot(fit)
plot(fit, "fitted")
plot(bagged)
invisible(dev.off())
stopifnot(file.size(file) > 3000)
file <- tempfile()
vstatkit_save(fit, file)
loaded <- vstatkit_load(file)
stopifnot(identical(coef(loaded), coef(fit)))
same(predict(loaded, transform(new, g = factor(g))), predict(fit, new))

# --- observations have the names of their rows, also where others are dropped
odd <- transform(d, y = replace(y, 17, 90), x1 = replace(x1, 3, NA))
lone <- vstatkit(y ~ x1 + x2, odd, at = odd[17, ], B = 200, rng = 1)
stopifnot(names(which.max(abs(residuals(lone)))) == "17",
          grepl("one observation (17)", summary(lone)$text, fixed = TRUE))
