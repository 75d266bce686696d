# Methods for broom and modelsummary. The generic functions are those
# of the package generics; NAMESPACE registers the methods when it is loaded.

TIDY_ARGUMENTS <- c("conf.int", "conf.level", "component")

tidy.vstatkit <- function(x, conf.int = FALSE, conf.level = 0.95,
                          component = c("all", "effects", "estimates"), ...) {
  component <- match.arg(component)
  refuse_mistyped(names(list(...)), TIDY_ARGUMENTS, "tidy")
  estimates <- call_method(x, "tidy", alpha = alpha_of(conf.level))
  names(estimates) <- gsub("_", ".", names(estimates))
  moved <- effects_table(x, conf.level)
  columns <- c("term", "estimate", "std.error", "statistic", "p.value",
               "conf.low", "conf.high", "df")
  made <- estimates[intersect(columns, names(estimates))]
  made$component <- rep("estimates", nrow(made))
  if (!is.null(moved) && nrow(moved)) {
    other <- data.frame(
      term = row.names(moved), estimate = moved$estimate, std.error = moved$std.error,
      statistic = moved$t, p.value = moved$p.value,
      conf.low = moved$ci.lower, conf.high = moved$ci.upper, df = moved$df,
      component = "effects"
    )
    made <- rbind(other[names(made)], made)
  }
  if (component != "all") made <- made[made$component == component, , drop = FALSE]
  if (!conf.int) made <- made[setdiff(names(made), c("conf.low", "conf.high"))]
  row.names(made) <- NULL
  made
}

glance.vstatkit <- function(x, ...) {
  row <- call_method(x, "glance")
  names(row) <- gsub("_", ".", sub("^oob_", "", names(row)))
  first <- intersect(c("r.squared", "rmse", "accuracy", "log.loss", "nobs"), names(row))
  row[c(first, setdiff(names(row), first))]
}
