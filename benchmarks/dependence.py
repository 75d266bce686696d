"""CPU time of partial dependence beside scikit-learn's, in one run.

Run `python -m benchmarks.dependence`. Friedman's function of ten predictors, 500 rows,
500 trees that try a third of the features. Ratios are to scikit-learn's own forest with
method="recursion", which weighs branches by the training rows; all others average over
the rows that are given, and agree with each other.
"""

import statistics
import time
import warnings

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence

import vstatkit as vs

ROWS, TREES, REPEATS = 500, 500, 5
GRIDS = {"curve, 100 points": ([0], 100), "map, 20 x 20 points": ([0, 1], 20)}


def ways(ours, theirs, X, features, points):
    """Give what is timed, by name; the first is what others are compared with."""
    how = {"grid_resolution": points, "kind": "average"}
    own = {"grid_resolution": points}
    names = [f"x{j}" for j in features]
    return {
        "scikit-learn, recursion": lambda: partial_dependence(
            theirs, X, features, method="recursion", **how
        ),
        "forest.partial_dependence": lambda: ours.partial_dependence(
            X, features, **own
        ),
        "the same, return_std=True": lambda: ours.partial_dependence(
            X, features, return_std=True, **own
        ),
        "results_.partial_dependence": lambda: (
            ours.results_.partial_dependence(names, points=points).frame
        ),
        "scikit-learn's function, our forest": lambda: partial_dependence(
            ours, X, features, **how
        ),
        "scikit-learn, brute": lambda: partial_dependence(
            theirs, X, features, method="brute", **how
        ),
    }


def seconds(call):
    """CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main():
    warnings.simplefilter("ignore", vs.MonteCarloWarning)
    X, y = make_friedman1(ROWS, random_state=1)
    options = {"max_features": 1 / 3, "random_state": 1}
    ours = vs.ForestRegressor(TREES, **options).fit(X, y)
    theirs = RandomForestRegressor(TREES, **options).fit(X, y)
    for grid, (features, points) in GRIDS.items():
        calls = ways(ours, theirs, X, features, points)
        found = {name: [] for name in calls}
        for name, call in calls.items():
            call()  # what is made once
            slow = name in (
                "scikit-learn's function, our forest",
                "scikit-learn, brute",
            )
            for _ in range(1 if slow else REPEATS):
                found[name].append(seconds(call))
        first = statistics.median(found["scikit-learn, recursion"])
        print(f"\n{grid}: {ROWS} rows, {TREES} trees")
        for name, times in found.items():
            middle = statistics.median(times)
            print(f"{name:38s} {middle:8.3f} s {middle / first:8.2f}")
        exact = ours.partial_dependence(X, features, grid_resolution=points).average
        brute = partial_dependence(ours, X, features, grid_resolution=points).average
        print(f"largest difference from brute force {np.abs(exact - brute).max():.1e}")


if __name__ == "__main__":
    main()
