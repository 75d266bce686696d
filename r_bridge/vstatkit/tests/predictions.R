# Probabilities of classes, and data with predictions beside them.
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

# --- probabilities have a column for each class, also of two
some <- iris[c(1, 60, 101), ]
some$Petal.Width[2] <- NA
three <- vstatkit(Species ~ Petal.Width, iris, B = 60, rng = 1)
shares <- predict(three, some, type = "prob")
stopifnot(identical(dimnames(shares), list(c("1", "60", "101"), levels(iris$Species))))
same(shares, predict(three, some))
stopifnot(is.na(shares["60", ]), rowSums(shares)[-2] == 1)
same(predict(three, type = "prob"), fitted(three))
later <- droplevels(iris[51:150, ])
two <- vstatkit(Species ~ Petal.Width, later, B = 60, rng = 1)
both <- predict(two, some[-1, ], type = "prob")
stopifnot(identical(dimnames(both), list(c("60", "101"), c("versicolor", "virginica"))))
same(both[, "virginica"], predict(two, some[-1, ]))
same(both[, "versicolor"], 1 - predict(two, some[-1, ]))
stopifnot(is.na(predict(two, some[2, ], type = "prob")))
seen <- predict(two, type = "prob")
same(seen[, "virginica"], fitted(two))
same(seen[, "versicolor"], 1 - fitted(two))
stopifnot(predict(two, type = "class") == colnames(seen)[max.col(seen, "first")])
stopifnot(identical(levels(predict(two, some, type = "class")), colnames(both)))
for (type in c("prob", "class")) {
  says(predict(two, some, type = type, se.fit = TRUE), "omit type = ")
  says(predict(two, some, type = type, interval = "confidence"), "those of probabilities")
}
line <- vstatkit(dist ~ speed, cars, B = 60, rng = 1)
says(predict(line, cars, type = "prob"), "type = \"prob\" needs a response that has classes")
if (requireNamespace("randomForest", quietly = TRUE)) {
  grown <- randomForest::randomForest(Species ~ Petal.Width, iris, ntree = 60,
                                      keep.inbag = TRUE)
  taken <- vstatkit(grown, iris)
  same(predict(taken, iris[c(1, 60), ], type = "prob"),
       unclass(predict(grown, iris[c(1, 60), ], type = "prob"))[, ])
}
if (requireNamespace("ranger", quietly = TRUE)) {
  grown <- ranger::ranger(Species ~ Petal.Width, iris, num.trees = 60, keep.inbag = TRUE)
  says(predict(vstatkit(grown, iris), type = "prob"), "no probabilities")
}

# --- augment(): new data
if (!requireNamespace("generics", quietly = TRUE)) quit(status = 0)
augment <- generics::augment
new <- cars[c(3, 9, 20), ]
new$speed[2] <- NA
plain <- augment(line, newdata = new)
stopifnot(identical(names(plain), c("speed", "dist", ".fitted", ".resid")))
stopifnot(identical(row.names(plain), c("3", "9", "20")))
same(plain$.fitted, unname(predict(line, new)))
same(plain$.resid, new$dist - plain$.fitted)
whole <- augment(line, newdata = new, se_fit = TRUE, interval = "confidence",
                 conf.level = 0.8)
wanted <- predict(line, new, se.fit = TRUE, interval = "confidence", level = 0.8)
same(whole$.se.fit, unname(wanted$se.fit))
same(unname(as.matrix(whole[c(".fitted", ".lower", ".upper")])), unname(wanted$fit))
wide <- augment(line, newdata = new, interval = "prediction", conf.level = 0.8)
stopifnot(is.null(wide$.se.fit), (wide$.upper > whole$.upper)[-2])
stopifnot(is.null(augment(line, newdata = new["speed"])$.resid))
dist <- rep(1, 3)  # of no row of the data
stopifnot(is.null(augment(line, newdata = new["speed"])$.resid))
logs <- vstatkit(log(dist) ~ speed, cars, B = 60, rng = 1)
made <- augment(logs, newdata = cars[5:6, ])
same(made$.resid, log(cars$dist[5:6]) - unname(predict(logs, cars[5:6, ])))
says(augment(line, newdata = new, se.fit = TRUE), "did you mean `se_fit`?")

# --- augment(): its own rows, out of bag
own <- augment(line)
same(own$.fitted, unname(fitted(line)))
same(own$.resid, unname(residuals(line)))
same(own[c("speed", "dist")], cars[c("speed", "dist")])
more <- transform(cars[50:1, ], other = 50:1)
same(augment(line, more)$.resid, unname(residuals(line))[50:1])
same(augment(line, more)$other, 50:1)
says(augment(line, transform(cars, speed = speed + 1)), "Give other rows as newdata")
says(augment(line, cars[0, ]), "Give other rows as newdata")
says(augment(line, se_fit = TRUE), "predicted out of bag")
gap <- transform(cars, speed = replace(speed, 7, NA))
lacks <- augment(vstatkit(dist ~ speed, gap, B = 60, rng = 1))
stopifnot(nrow(lacks) == 50, which(is.na(lacks$.fitted)) == 7, is.na(lacks$.resid[7]))

# --- augment(): classes
pair <- augment(two, newdata = some[-1, ], se_fit = TRUE)
same(pair$.fitted, unname(predict(two, some[-1, ])))
stopifnot(is.null(pair$.resid), is.null(augment(two)$.resid), !anyNA(pair$.se.fit[-1]))
each <- augment(three, newdata = some)
same(as.vector(each$.prob.setosa), unname(shares[, "setosa"]))
stopifnot(identical(each$.fitted, unname(predict(three, some, type = "class"))))
same(augment(three)$.prob.virginica, unname(fitted(three)[, "virginica"]))
says(augment(three, newdata = some, se_fit = TRUE), "of more than two classes")
if (requireNamespace("randomForest", quietly = TRUE)) {
  grown <- randomForest::randomForest(dist ~ speed, cars, ntree = 60, keep.inbag = TRUE)
  taken <- vstatkit(grown, cars)
  same(augment(taken)$.fitted, unname(grown$predicted))
  same(augment(taken)$.resid, unname(cars$dist - grown$predicted))
  same(augment(taken, newdata = new[-2, ])$.resid,
       new$dist[-2] - unname(predict(grown, new[-2, ])))
}

# --- classes are those of R: they compare with the response, and have its levels
d <- mtcars
d$big <- d$mpg > 20
d$f <- factor(d$cyl, levels = c(8, 4, 6, 99))
d$o <- factor(d$cyl, ordered = TRUE)
logical <- vstatkit(big ~ wt, d, B = 60, rng = 1)
stopifnot(is.logical(predict(logical, d, type = "class")),
          mean(predict(logical, d, type = "class") == d$big) > 0.8,
          mean(predict(logical, type = "class") == d$big) > 0.8,
          identical(colnames(predict(logical, d, type = "prob")), c("FALSE", "TRUE")))
condition <- vstatkit(mpg > 20 ~ wt, d, B = 60, rng = 1)
same(predict(condition, d), predict(logical, d))
same(predict(condition, d, type = "class"), predict(logical, d, type = "class"))
numbers <- vstatkit(factor(cyl) ~ wt, d, B = 60, rng = 1)
stopifnot(identical(levels(predict(numbers, d, type = "class")), c("4", "6", "8")),
          mean(predict(numbers, d, type = "class") == d$cyl) > 0.8,
          identical(names(coef(numbers)), paste0("typical [", c(4, 6, 8), "]")))
levelled <- vstatkit(f ~ wt, d, B = 60, rng = 1)
stopifnot(identical(levels(predict(levelled, d, type = "class")), levels(d$f)),
          mean(predict(levelled, d, type = "class") == d$f) > 0.8)
stopifnot(is.ordered(predict(vstatkit(o ~ wt, d, B = 60, rng = 1), d, type = "class")))
stopifnot(identical(levels(generics::augment(levelled)$.fitted), levels(d$f)))

# --- factors of new data may have any selection and order of the levels
d$g <- factor(d$gear, levels = c(5, 3, 4))
d$i <- interaction(d$am, d$vs)
fit <- vstatkit(mpg ~ g + i + relevel(f, "4") + interaction(vs, am), d, B = 60, rng = 1)
new <- d[c(1, 3, 5, 9), ]
wanted <- unname(predict(fit, new))
changed <- function(...) unname(predict(fit, transform(new, ...)))
same(changed(g = droplevels(g), i = droplevels(i), f = droplevels(f)), wanted)
same(changed(g = relevel(g, "4")), wanted)
same(changed(g = factor(as.character(g))), wanted)
same(changed(g = as.character(g)), wanted)
same(changed(g = as.integer(as.character(g))), wanted)
same(changed(g = factor(g, c(levels(g), "77"))), wanted)
same(changed(i = interaction(am, vs, drop = TRUE)), wanted)
for (j in 1:4) same(unname(predict(fit, droplevels(new[j, ]))), wanted[j])
says(changed(g = factor(c("3", "4", "5", "7"))), "'7' in 'g'")
points <- vstatkit(mpg ~ g, d, at = droplevels(new[2:3, ]), B = 60, rng = 1)
same(unname(coef(points)), unname(predict(points, new[2:3, ])))
