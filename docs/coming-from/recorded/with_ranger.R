library(ranger)

data <- read.csv("mars.csv")
forest <- ranger(y ~ x1 + x2 + x4, data, num.trees = 2000, sample.fraction = 0.3,
                 min.node.size = 1, keep.inbag = TRUE, seed = 1, num.threads = 1)
found <- predict(forest, head(data, 3), type = "se", se.method = "infjack",
                 num.threads = 1)
cat("ranger", as.character(packageVersion("ranger")), "\n")
print(round(data.frame(mean = found$predictions, se = found$se), 3))
