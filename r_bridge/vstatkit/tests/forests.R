# Forests of ranger, randomForest and grf, as they are.
library(vstatkit)
if (!vstatkit_available()) quit(status = 0)

same <- function(a, b) stopifnot(isTRUE(all.equal(a, b, tolerance = 1e-10)))

set.seed(5)
n <- 80
d <- data.frame(x = runif(n), g = factor(sample(c("a", "b", "c"), n, TRUE)))
d$y <- sin(5 * d$x) + (d$g == "b") + rnorm(n, sd = 0.3)
new <- d[1:5, ]
sampling <- function(fit) as.numeric(fit$results$get_prediction(new)$components$sampling)

if (requireNamespace("ranger", quietly = TRUE)) {
  forest <- ranger::ranger(y ~ x + g, d, num.trees = 300, keep.inbag = TRUE, seed = 1,
                           num.threads = 1)
  fit <- vstatkit(forest, data = d, newdata = new, variance = "ij_u")
  theirs <- suppressWarnings(predict(forest, new, type = "se", num.threads = 1))
  same(unname(coef(fit)), theirs$predictions)
  same(sampling(fit), theirs$se^2)
  same(unname(predict(fit, new)), theirs$predictions)
  stopifnot(identical(dim(predict(fit, new, interval = "confidence")), c(5L, 3L)))
  same(fitted(fit), forest$predictions)
  same(residuals(fit), d$y - forest$predictions)
  # The data are those of its own call; the typical row is where it is estimated.
  own <- vstatkit(forest)
  stopifnot(identical(names(coef(own)), "typical"), nobs(own) == n)
  same(unname(coef(own)), unname(predict(own, data.frame(
    x = median(d$x), g = names(which.max(table(d$g)))
  ))))
  bare <- ranger::ranger(y ~ x + g, d, num.trees = 20, num.threads = 1)
  stopifnot(grepl("keep.inbag = TRUE", try(vstatkit(bare, d), silent = TRUE)))
  stopifnot(grepl("80 rows; got 9", try(vstatkit(forest, d[1:9, ]), silent = TRUE)))
}

if (requireNamespace("randomForest", quietly = TRUE)) {
  forest <- randomForest::randomForest(y ~ x + g, d, ntree = 100, keep.inbag = TRUE)
  fit <- vstatkit(forest, d, new)
  same(unname(coef(fit)), unname(predict(forest, new)))
  same(fitted(fit), forest$predicted)
  same(predict(fit), forest$predicted)
  # Rows that were left out are left out here.
  gaps <- d
  gaps$x[c(2, 9)] <- NA
  few <- randomForest::randomForest(y ~ x + g, gaps, ntree = 50, keep.inbag = TRUE,
                                    na.action = na.omit, subset = g != "c")
  fit <- vstatkit(few)
  stopifnot(nobs(fit) == sum(complete.cases(gaps) & d$g != "c"))
  same(predict(fit, new), predict(few, new))
  same(residuals(fit), few$y - few$predicted)
  filled <- randomForest::randomForest(y ~ x + g, gaps, ntree = 50, keep.inbag = TRUE,
                                       na.action = randomForest::na.roughfix)
  stopifnot(grepl("data = randomForest::na.roughfix", try(vstatkit(filled), silent = TRUE)))
  stopifnot(nobs(vstatkit(filled, randomForest::na.roughfix(gaps))) == n)
  stopifnot(grepl("did you mean `newdata`", try(vstatkit(filled, nwdata = d), TRUE)))
  votes <- randomForest::randomForest(factor(y > 0) ~ x, d, ntree = 50, keep.inbag = TRUE)
  fit <- vstatkit(votes, d)
  same(fitted(fit), votes$votes[, 2])
  stopifnot(predict(fit, type = "class")[votes$votes[, 2] != 0.5] ==
              votes$predicted[votes$votes[, 2] != 0.5])
}

if (requireNamespace("grf", quietly = TRUE)) {
  x <- as.matrix(d["x"])
  forest <- grf::regression_forest(x, d$y, num.trees = 200, seed = 1)
  same(residuals(vstatkit(forest)), d$y - predict(forest)$predictions)
  fit <- vstatkit(forest, d, new["x"])
  theirs <- predict(forest, as.matrix(new["x"]), estimate.variance = TRUE)
  same(unname(coef(fit)), theirs$predictions)
  says <- tryCatch(predict(fit, new["x"], interval = "prediction"),
                   vstatkit_error = conditionMessage)
  stopifnot(grepl("they are not known for this forest", says))
  average <- fit$results$avg_predictions()
  same(average$frame$estimate, mean(predict(forest, x)$predictions))
}

if (requireNamespace("ranger", quietly = TRUE)) {
  forest <- ranger::ranger(mpg ~ wt + hp, mtcars, num.trees = 100, keep.inbag = TRUE,
                           num.threads = 1, seed = 1)
  fit <- vstatkit(forest, mtcars)
  average <- fit$results$avg_predictions(mtcars)$summary_frame()
  same(average$estimate, mean(predict(forest, mtcars, num.threads = 1)$predictions))
  stopifnot(average$std_error > 0, average$std_error < coef(fit) / 5)
  # The training rows are those of the call.
  same(fit$results$avg_predictions()$frame, average)
  stopifnot(row.names(fit$results$avg_effects()$frame) == c("wt", "hp"))
  said <- tryCatch(effects(fit), message = conditionMessage)
  stopifnot(grepl("fit$results$avg_effects()", said, fixed = TRUE))
  stopifnot(identical(tryCatch(nrow(generics::tidy(fit)), message = identity), 1L))
}
