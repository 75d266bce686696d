"""Standard errors of forests with few trees, beside ranger and forestci.

The designs, the points and the reading are those of `few_trees.py`, on the same data
sets. ranger's are those of `predict(type = "se")`, its infinitesimal jackknife, which
is calibrated at random for more than twenty points, as here; scikit-learn's forest has
those of forestci, calibrated too. All forests draw n of n rows and try a third of the
features. Negative variances and missing standard errors of peers count as zero.

`python -m benchmarks.few_trees_peers` needs R with ranger, and the package forestci.
"""

import argparse
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import forestci
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs
from benchmarks.few_trees import ASIDE, DEVELOPMENT, summarise

N_POINTS = 25
RANGER = """
library(ranger)
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[1]); at <- read.csv(arguments[2])
forest <- ranger(y ~ ., data, num.trees = as.integer(arguments[3]), keep.inbag = TRUE,
                 mtry = as.integer(arguments[4]), min.node.size = 1, seed = 1)
found <- suppressWarnings(predict(forest, at, type = "se"))
write.csv(data.frame(found$predictions, found$se), arguments[5], row.names = FALSE)
"""
Answer = tuple[Any, Any]  # estimates and variances


def run_vstatkit(X: Any, y: Any, at: Any, B: int, seed: int) -> Answer:
    forest = vs.ForestRegressor(B, random_state=seed).fit(X, y)
    mean, error = forest.predict(at, return_std=True)
    return mean, error**2


def run_forestci(X: Any, y: Any, at: Any, B: int, seed: int) -> Answer:
    forest = RandomForestRegressor(B, max_features=1 / 3, random_state=seed).fit(X, y)
    variance = forestci.random_forest_error(forest, X.shape, at)
    return forest.predict(at), np.maximum(np.nan_to_num(variance), 0.0)


def run_ranger(X: Any, y: Any, at: Any, B: int, seed: int) -> Answer:
    names = [f"x{j}" for j in range(X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        script, train, query, out = (
            Path(folder) / name for name in ("a.R", "train.csv", "at.csv", "out.csv")
        )
        script.write_text(RANGER)
        table, options = np.column_stack([X, y]), {"delimiter": ",", "comments": ""}
        np.savetxt(train, table, header=",".join([*names, "y"]), **options)
        np.savetxt(query, at, header=",".join(names), **options)
        sizes = [str(B), str(max(1, X.shape[1] // 3))]
        command = ["Rscript", "--vanilla", script, train, query, *sizes, out]
        subprocess.run(list(map(str, command)), check=True)
        mean, error = np.genfromtxt(out, delimiter=",", skip_header=1).T
    return mean, np.nan_to_num(error) ** 2


METHODS = {"vstatkit": run_vstatkit, "ranger": run_ranger, "forestci": run_forestci}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--data-sets", type=int, default=50)
    parser.add_argument("--designs", nargs="+", default=["Friedman", "noise", "counts"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("median", "10 %", "90 %", "coverage", "width")
    print(f"{'design':12}{'n':>7}{'B':>6}  {'':10}" + "".join(f"{n:>9}" for n in names))
    for name in options.designs:
        draw, respond = {**DEVELOPMENT, **ASIDE}[name]
        at = draw(N_POINTS, np.random.default_rng(999))
        for n in options.n:
            for B in options.trees:
                for method, run in METHODS.items():
                    fits = []
                    for seed in range(options.data_sets):
                        rng = np.random.default_rng([seed, n])
                        X = draw(n, rng)
                        fits.append(run(X, respond(X, rng), at, B, seed))
                    estimates, variances = map(np.array, zip(*fits, strict=True))
                    row = summarise(estimates, variances)
                    numbers = "".join(f"{value:9.3f}" for value in row.values())
                    print(f"{name:12}{n:7}{B:6}  {method:10}{numbers}", flush=True)


if __name__ == "__main__":
    main()
