"""Intervals of grf's and EconML's forests, on the data sets of `benchmarks.truth`.

grf's regression forest and its local linear forest, and EconML's regression forest,
with their defaults but for the number of trees, and normal intervals, where they are
installed. One process of R takes all data sets of a design. EconML knows no clusters.
"""

import importlib.util
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vstatkit.studies.dgps import DGP
from vstatkit.studies.validity_experiments import encode_data, encode_factors

TREES = 2000

GRF = """
given <- commandArgs(TRUE)
place <- function(name) file.path(given[1], paste0(name, ".csv"))
at <- read.csv(place("at"))
library(grf)
kinds <- list(grf = regression_forest, "grf local linear" = ll_regression_forest)
for (number in given[-(1:2)]) {
  data <- read.csv(place(paste0("data", number)))
  x <- setdiff(names(data), c("y", "cluster"))
  found <- lapply(names(kinds), function(kind) {
    forest <- kinds[[kind]](as.matrix(data[x]), data$y, clusters = data$cluster,
                            num.trees = as.integer(given[2]), num.threads = 1,
                            seed = as.integer(number))
    answer <- predict(forest, as.matrix(at[x]), estimate.variance = TRUE,
                      num.threads = 1)
    data.frame(method = kind, point = seq_len(nrow(at)) - 1, data = as.integer(number),
               estimate = answer$predictions, se = sqrt(answer$variance.estimates))
  })
  write.csv(do.call(rbind, found), place(paste0("out", number)), row.names = FALSE)
}
"""


def grf_intervals(dgp: DGP, frames: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """List grf's 95 % intervals at a design's points, for data sets by number."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        encode_factors(dgp.points).to_csv(folder / "at.csv", index=False)
        for number, frame in frames.items():
            encode_data(dgp, frame).to_csv(folder / f"data{number}.csv", index=False)
        _run(name, list(frames))
        parts = [pd.read_csv(folder / f"out{number}.csv") for number in frames]
    found = pd.concat(parts, ignore_index=True)
    half = 1.96 * found["se"]
    return found.assign(lower=found["estimate"] - half, upper=found["estimate"] + half)


def has_econml() -> bool:
    """Whether EconML is installed."""
    return importlib.util.find_spec("econml") is not None


def econml_intervals(dgp: DGP, frames: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """List EconML's 95 % intervals at a design's points, for data sets by number."""
    from econml.grf import RegressionForest  # noqa: PLC0415

    at = encode_factors(dgp.points).to_numpy(dtype=float)
    parts = []
    for number, frame in frames.items():
        X = encode_factors(frame[dgp.points.columns]).to_numpy(dtype=float)
        forest = RegressionForest(n_estimators=TREES, n_jobs=1, random_state=number)
        forest.fit(X, frame["y"].to_numpy())
        lower, upper = forest.predict_interval(at, alpha=0.05)
        found = {"estimate": forest.predict(at), "lower": lower, "upper": upper}
        part = pd.DataFrame({name: one.ravel() for name, one in found.items()})
        part["se"] = (part["upper"] - part["lower"]) / 3.92
        parts.append(part.assign(method="econml", point=range(len(part)), data=number))
    return pd.concat(parts, ignore_index=True)


def _run(folder: str, numbers: Sequence[int]) -> None:
    command = ["Rscript", "--vanilla", "-e", GRF, folder, str(TREES)]
    subprocess.run([*command, *map(str, numbers)], check=True, capture_output=True)
