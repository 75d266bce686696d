library(grf)

forest <- regression_forest(X, Y, num.trees = 200, seed = 1, num.threads = 1)
found <- predict(forest, newdata, estimate.variance = TRUE)
head(data.frame(mean = found$predictions, se = sqrt(found$variance.estimates)), 3)
