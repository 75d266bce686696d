"""R's values through reticulate: NA of every kind is missing here.

R says which rows are complete; scripts stop where vstatkit disagrees.
"""

import numpy as np
import pandas as pd
import pytest

from r_bridge.reticulate import frame_from_parts, is_ours, vector_from_part

HEAD = """
library(reticulate)
vstatkit <- import("vstatkit")
"""

SOURCED = HEAD + 'source(import("r_bridge")$r_file())\n'

REFUSED = """
refused <- function(code, message) {
  found <- try(code, silent = TRUE)
  if (!inherits(found, "try-error") || !grepl(message, found)) {
    stop("not refused with '", message, "': ", format(found))
  }
}
"""

# Every kind of column, each with NA in rows of its own.
MIXED = """
set.seed(2)
n <- 60
hole <- function(x, rows) { x[rows] <- NA; x }
mixed <- data.frame(
  y = rnorm(n),
  whole = hole(1:n, 1:2),
  truth = hole(rep(c(TRUE, FALSE, FALSE), n / 3), 3:5),
  text = hole(rep(c("a", "NA", "b"), n / 3), 6:9),
  kind = hole(factor(rep(c("u", "v"), n / 2)), 10:14),
  grade = hole(factor(rep(c("lo", "hi"), n / 2), c("lo", "hi"), ordered = TRUE), 15),
  number = hole(hole(runif(n), 16:17), 18),
  day = hole(as.Date("2024-01-01") + 1:n, 19:20),
  moment = hole(as.POSIXct("2024-01-01", tz = "Europe/Berlin") + 1:n, 21:23),
  stringsAsFactors = FALSE
)
mixed$number[18] <- NaN
"""


@pytest.mark.r
@pytest.mark.parametrize("head", [HEAD, SOURCED], ids=["import alone", "sourced"])
@pytest.mark.parametrize("formula", ["Ozone ~ Wind + Temp", '"Ozone ~ Wind + Temp"'])
def test_rows_with_na_are_left_out_as_by_lm(reticulate, head, formula):
    reticulate(
        f"""{head}
        res <- vstatkit$fit({formula}, airquality, kernel="ols", B=500L, rng=1L)
        line <- lm(Ozone ~ Wind + Temp, airquality)
        complete <- na.omit(airquality[c("Ozone", "Wind", "Temp")])
        same <- vstatkit$fit({formula}, complete, kernel="ols", B=500L, rng=1L)
        params <- as.numeric(res$params)
        stopifnot(nobs(line) == 116, res$nobs == 116)
        stopifnot(identical(params, as.numeric(same$params)))
        # Bagged coefficients lie around those of lm, within their standard errors.
        stopifnot(abs(params - coef(line)) < 2 * sqrt(diag(vcov(line))))
        """
    )


@pytest.mark.r
def test_na_of_every_kind_is_missing_in_data_and_new_data(reticulate):
    reticulate(
        HEAD
        + MIXED
        + REFUSED
        + """
        gap <- "missing|finite|value (None|nan)"
        for (name in setdiff(names(mixed), c("y", "day", "moment"))) {
          formula <- reformulate(name, "y")
          res <- vstatkit$fit(formula, mixed, B = 20L, rng = 1L)
          stopifnot(res$nobs == nrow(na.omit(mixed[c("y", name)])), res$nobs < n)
          bad <- mixed[which(is.na(mixed[[name]]))[1], ]
          good <- na.omit(mixed)[1:2, ]
          refused(res$predict(bad), gap)
          refused(res$get_prediction(bad), gap)
          refused(vstatkit$fit(formula, mixed, at = bad, B = 20L), gap)
          # The rest of the frame must not spoil what is known.
          stopifnot(length(res$predict(good)) == 2)
        }
        res <- vstatkit$fit(y ~ C(day), mixed, kernel = "tree", B = 5L, rng = 1L)
        stopifnot(res$nobs == sum(!is.na(mixed$day)), res$nobs < n)
        """
    )


@pytest.mark.r
def test_frames_arrive_with_the_kinds_and_gaps_that_r_has(reticulate, tmp_path):
    reticulate(
        HEAD
        + MIXED
        + """
        gaps <- vapply(mixed, is.na, logical(n))
        py_run_string("r.mixed.to_pickle('mixed.pkl')")
        write.csv(gaps, "gaps.csv", row.names = FALSE)
        """
    )
    found = pd.read_pickle(tmp_path / "mixed.pkl")
    gaps = pd.read_csv(tmp_path / "gaps.csv")
    assert list(found.columns) == list(gaps.columns)
    assert found.isna().to_numpy().tolist() == gaps.to_numpy().tolist()
    assert gaps.sum().tolist() == [0, 2, 3, 4, 5, 1, 3, 2, 3]
    assert found["text"].iloc[10] == "NA"
    assert found["whole"].iloc[2:].tolist() == list(range(3, 61))
    assert found["grade"].cat.ordered
    assert found["grade"].cat.categories.tolist() == ["lo", "hi"]
    assert found["day"].iloc[0] == pd.Timestamp("2024-01-02")
    first = pd.Timestamp("2024-01-01 00:00:01", tz="Europe/Berlin")
    assert found["moment"].iloc[0] == first


@pytest.mark.r
def test_na_in_vectors_is_missing(reticulate):
    reticulate(
        HEAD
        + REFUSED
        + """
        set.seed(1)
        df <- data.frame(x = runif(40), y = rnorm(40))
        fit <- function(...) vstatkit$fit(y ~ x, df, kernel = "ols", B = 20L,
                                          rng = 1L, ...)
        hole <- function(x) { x[3] <- NA; x }
        whole <- rep(1:20, 2)
        given <- list(whole, whole > 10, paste0("g", whole), factor(whole),
                      whole + 0.5, as.Date("2024-01-01") + whole,
                      as.POSIXct("2024-01-01", tz = "UTC") + whole)
        for (groups in given) {
          stopifnot(fit(groups = groups)$design$n == length(unique(groups)))
          refused(fit(groups = hole(groups)), "`groups` must not have missing")
        }
        for (weights in given[c(1, 2, 5)]) {
          fit(weights = weights)
          refused(fit(weights = hole(weights)), "`weights` must not have missing")
        }
        for (at in list(list(x = c(1L, NA)), list(x = NA_integer_))) {
          refused(vstatkit$fit(y ~ x, df, B = 20L, at = at), "'x' is missing in row")
        }
        refused(fit(k = NA_integer_), "`k`")
        # A model without a class is a dict of columns, NA and all.
        res <- vstatkit$fit("y ~ x", list(x = hole(whole), y = df$y), B = 20L)
        stopifnot(res$nobs == 39)
        """
    )


def test_a_vector_in_parts_is_a_list_or_its_only_value():
    def made(kind, values, **rest):
        return vector_from_part({"kind": kind, "values": values, **rest})

    nan = float("nan")
    assert made("integer", [1.0, nan]) == [1, None]
    assert made("integer", [7.0]) == 7
    assert made("logical", [1.0, 0.0, nan]) == [True, False, None]
    assert made("text", ["NA", ""], missing=[False, True]) == ["NA", None]
    levels = {"levels": ["u", "v"], "ordered": False}
    assert made("factor", [2.0, nan, 1.0], **levels) == ["v", None, "u"]
    day = pd.Timestamp("1970-01-03")
    assert made("date", [2.0]) == day
    found = made("time", [172800.0, nan], zone="UTC")
    assert found[0] == day.tz_localize("UTC")
    assert found[1] is pd.NaT


def test_a_frame_in_parts_keeps_its_row_names_and_whole_numbers():
    parts = [
        {"kind": "integer", "values": [1.0, 2.0]},
        {"kind": "integer", "values": [1.0, float("nan")]},
    ]
    made = frame_from_parts(["a", "b"], parts, ["u", "v"], 2)
    assert made.index.tolist() == ["u", "v"]
    assert made["a"].dtype == np.int64
    assert made["b"].isna().tolist() == [False, True]
    assert frame_from_parts(["a"], parts[:1], [], 2).index.equals(pd.RangeIndex(2))


def test_only_functions_of_ours_convert_their_arguments():
    forest = __import__("vstatkit").ForestRegressor(3)
    assert is_ours(frame_from_parts)
    assert is_ours(forest.fit)
    assert is_ours(forest.get_params)  # scikit-learn's, of an object of ours
    assert not is_ours(pd.DataFrame)
    assert not is_ours(len)
