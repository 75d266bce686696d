# Methods of R's generic functions.

coef.vstatkit <- function(object, ...) {
  refuse_others(list(...), "complete", "coef")
  ask_field(object, "params")
}

ask_field <- function(object, name) {
  frame <- call_method(object, "tidy")
  setNames(frame[[c(params = "estimate", bse = "std_error")[[name]]]], frame$term)
}

vcov.vstatkit <- function(object, ...) {
  refuse_others(list(...), "complete", "vcov")
  found <- as.matrix(call_method(object, "cov_params"))
  terms <- call_method(object, "tidy")$term
  dimnames(found) <- list(terms, terms)
  found
}

confint.vstatkit <- function(object, parm, level = 0.95, ...) {
  refuse_others(list(...), c("parm", "level"), "confint")
  frame <- call_method(object, "tidy", alpha = alpha_of(level))
  found <- cbind(frame$conf_low, frame$conf_high)
  dimnames(found) <- list(frame$term, percents(level))
  if (missing(parm)) return(found)
  strange <- if (is.character(parm)) setdiff(parm, frame$term)
  if (length(strange)) {
    moved <- strange[1] %in% row.names(effects_table(object))
    fail(paste0("there is no estimate '", strange[1], "'; there are ",
                some_of(frame$term), ".",
                if (moved) paste0(" The effect of ", strange[1], " with its interval is ",
                                  "in effects(fit, level = ", number_text(level), ").")))
  }
  found[parm, , drop = FALSE]
}

alpha_of <- function(level) {
  if (!is.numeric(level) || length(level) != 1 || is.na(level) || level <= 0 ||
        level >= 1) {
    fail(paste0("`level` must be a number between 0 and 1; got ",
                number_text(level), "."))
  }
  round(1 - level, 12)
}

percents <- function(level) {
  ends <- 100 * c((1 - level) / 2, (1 + level) / 2)
  paste(format(ends, trim = TRUE, digits = 3), "%")
}

nobs.vstatkit <- function(object, ...) about(object)$nobs

# Tests by other packages, such as lmtest::coeftest(), are t tests with these.
df.residual.vstatkit <- function(object, ...) {
  frame <- call_method(object, "tidy")
  df <- setNames(as.numeric(frame$df), frame$term)
  if (length(unique(df)) == 1) unname(df[1]) else df
}

# lmtest's own method takes one number of degrees of freedom for both limits.
coefci.vstatkit <- function(x, parm = NULL, level = 0.95, ...) {
  others <- Filter(Negate(is.null), list(...))
  if (any(names(others) %in% c("vcov", "vcov.", "df"))) {
    fail(paste(
      "coefci() uses the standard errors and degrees of freedom of the fit; omit",
      "`vcov` and `df`."
    ))
  }
  refuse_others(others, c("parm", "level"), "coefci")
  if (is.null(parm)) confint(x, level = level) else confint(x, parm, level)
}

# marginaleffects differentiates predictions with respect to coefficients; those of an
# ensemble do not depend on them, so all its standard errors would be zero.
set_coef.vstatkit <- function(model, coefs, ...) {
  fail(paste(
    "marginaleffects computes standard errors from the coefficients of a model, on",
    "which predictions of an ensemble do not depend. Use effects(fit),",
    "fit$results$avg_slopes() or fit$results$avg_effects(), which have standard errors,",
    "or vcov = FALSE for estimates only."
  ))
}

formula.vstatkit <- function(x, ...) {
  if (is.null(x$formula)) fail("this model was not fitted by a formula.")
  x$formula
}

effects.vstatkit <- function(object, level = 0.95, ...) {
  refuse_others(list(...), "level", "effects")
  found <- effects_table(object, level)
  if (is.null(found)) {
    message("There is no table of effects: ", if (!is.null(object$model)) {
      paste("this forest was fitted by another package. Use fit$results$avg_effects(),",
            "the average effects over the training rows.")
    } else {
      "the estimates, coef(fit), are coefficients, or no predictor varies."
    })
  }
  if (is.null(found)) invisible() else found
}

# NULL where there are none.
effects_table <- function(object, level = 0.95) {
  found <- ask("effects", results_of(object), alpha_of(level))
  if (is.null(found)) return(NULL)
  for (end in c("from", "to")) found[[end]] <- as_numbers(found[[end]])
  names(found) <- gsub("_", ".", names(found))
  row.names(found) <- found$term
  found$term <- NULL
  # If all learners agree, a standard error of zero is not evidence for a test.
  certain <- !is.na(found$std.error) & found$std.error == 0
  found[certain, c("t", "p.value")] <- NA_real_
  found
}

# If some predictors are factors, the ends of all are text.
as_numbers <- function(ends) {
  numbers <- suppressWarnings(as.numeric(ends))
  if (!anyNA(numbers)) return(numbers)
  ifelse(is.na(numbers), ends, format(signif(numbers, 4), trim = TRUE, drop0 = TRUE))
}

fitted.vstatkit <- function(object, ...) {
  refuse_others(list(...), character(), "fitted")
  if (!is.null(object$model)) return(fitted_by_model(object$model))
  found <- ask("out_of_bag", results_of(object))
  columns <- lapply(found$fitted, function(one) as.numeric(unlist(one)))
  if (length(columns) == 1) return(setNames(columns[[1]], found$rows))
  matrix(unlist(columns), ncol = length(columns),
         dimnames = list(found$rows, unlist(found$classes)))
}

residuals.vstatkit <- function(object, type = "response", ...) {
  refuse_others(list(...), "type", "residuals")
  if (!identical(type, "response")) {
    fail(paste0("`type` must be \"response\": the response minus its out-of-bag ",
                "prediction; got ", paste(format(type), collapse = " "), "."))
  }
  if (!is.null(about(object)$classes)) {
    fail("residuals are for a numeric response; this one has classes.")
  }
  if (!is.null(object$model)) return(response_of_model(object) - fitted(object))
  found <- ask("out_of_bag", results_of(object))
  setNames(as.numeric(unlist(found$y)) - as.numeric(unlist(found$fitted[[1]])),
           found$rows)
}

print.vstatkit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  said <- about(x)
  if (!is.null(x$call)) {
    cat("\nCall:\n", paste(deparse(x$call), collapse = "\n"), "\n", sep = "")
  }
  cat("\n", said$response, " by ", count_text(said$B), " learners (",
      said$kernel, ") on ", said$k, " of ", count_text(said$n_units), " ",
      said$units, " each, with", if (!said$replace) "out", " replacement\n", sep = "")
  if (said$n_units != said$nobs) cat(count_text(said$nobs), "observations\n")
  if (said$n_dropped > 0) {
    rows <- if (said$n_dropped == 1) "row" else "rows"
    cat(said$n_dropped, rows, "with missing values dropped\n")
  }
  effects <- effects_table(x)
  if (!is.null(effects) && nrow(effects)) {
    cat("\nEffects:\n")
    shown <- c("from", "to", "estimate", "std.error", "p.value")
    print(effects[intersect(shown, names(effects))], digits = digits)
  }
  if (is.null(effects) || !identical(names(coef(x)), "typical")) {
    cat("\nEstimates:\n")
    print(cbind(estimate = coef(x), std.error = ask_field(x, "bse")), digits = digits)
  }
  scores <- unlist(said$scores)
  if (length(scores)) {
    cat("\n", paste(names(scores), format(scores, digits = digits), sep = ": ",
                    collapse = ", "), "\n", sep = "")
  }
  invisible(x)
}

summary.vstatkit <- function(object, level = 0.95, full = FALSE, ...) {
  refuse_others(list(...), c("level", "full"), "summary")
  table <- call_method(object, "summary", alpha = alpha_of(level), full = isTRUE(full))
  structure(
    list(
      text = options_of_r(gsub("summary(full=True)", "summary(fit, full = TRUE)",
                               ask("texts", table), fixed = TRUE)),
      coefficients = as.matrix(estimates_table(object, level)),
      effects = effects_table(object, level),
      glance = glance.vstatkit(object),
      call = object$call
    ),
    class = "summary.vstatkit"
  )
}

estimates_table <- function(object, level) {
  frame <- call_method(object, "tidy", alpha = alpha_of(level))
  row.names(frame) <- frame$term
  frame$term <- NULL
  names(frame) <- gsub("_", ".", names(frame))
  frame
}

print.summary.vstatkit <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}
