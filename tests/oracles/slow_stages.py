"""Learners of several stages, literally: numpy's ridge, exact trees."""

import math
from fractions import Fraction

import numpy as np

from tests.oracles.slow_tree import SlowTree, mix, shuffled

PENALTIES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
HALVES, HALF, SECOND = 0x68616C7665730004, 0x68616C6600000005, 0x7365636F6E640007


def ridge(X, y, weights):
    """Predictions of a ridge regression with the penalty that GCV likes best."""
    share = weights / weights.sum()
    mean = share @ y
    known = ~np.isnan(X)
    columns = zip(X.T, known.T, strict=True)
    centre = np.array([np.average(x[j], weights=share[j]) for x, j in columns])
    Z = np.where(known, X - centre, 0)
    scale = np.sqrt(share @ Z**2)
    scale[np.ptp(np.where(known, X, centre), axis=0) == 0] = np.inf
    Z = Z / scale
    m, p = X.shape
    slopes, best = np.zeros(p), np.inf
    if m >= 4:
        best = share @ (y - mean) ** 2 / (1 - 1 / m) ** 2
    root = np.sqrt(share)[:, None]
    for penalty in PENALTIES if m >= 4 else ():
        gram = (Z * root).T @ (Z * root)
        inverse = np.linalg.inv(gram + penalty * np.eye(p))
        hat = (Z * root) @ inverse @ (Z * root).T
        found = inverse @ (Z.T @ (share * (y - mean)))
        df = 1 + np.trace(hat)
        score = share @ (y - mean - Z @ found) ** 2 / (1 - df / m) ** 2
        if df <= m / 2 and score < best:
            slopes, best = found, score

    def predict(at):
        return mean + np.where(np.isnan(at), 0, at - centre) / scale @ slopes

    return predict


def tree(X, y, weights, key, options):
    """One tree, grown in exact arithmetic."""
    options = {"max_features": X.shape[1], **options}
    exact = [[Fraction(float(one)) for one in part] for part in (y, weights)]
    nodes = SlowTree(X.tolist(), *exact, None, **options).grow(key).nodes

    def value(x):
        place = 0
        while nodes[place][0] != "leaf":
            feature, cut, missing_left, right = nodes[place]
            known = not math.isnan(x[feature])
            left = x[feature] <= cut if known else missing_left
            place = place + 1 if left else right
        return float(nodes[place][1][0])

    return lambda at: np.array([value(x) for x in at])


def halves(units, key):
    """Which of the rows are in the first half."""
    distinct = sorted({int(one) for one in units})
    count = len(distinct) // 2
    chosen, _ = shuffled(distinct, count, mix(int(key) ^ HALVES))
    return np.isin(units, chosen[:count])


def learner(X, y, counts, key, *, trend, boost, units=None, **options):
    """The learner's predictions, as a function of points."""
    key = int(key)
    rows = np.flatnonzero(counts)
    X, left, weights = X[rows], y[rows].astype(float), counts[rows]
    units = rows if units is None else units[rows]
    stages = []
    if trend:
        stages.append(ridge(X, left, weights))
        left = left - stages[0](X)
    if boost and np.unique(units).size > 1:
        first = halves(units, key)
        trees = [
            tree(X[side], left[side], weights[side], mix(key ^ (HALF + j)), options)
            for j, side in enumerate((first, ~first))
        ]
        errors = left - np.where(first, trees[1](X), trees[0](X))
        stages.append(lambda at: (trees[0](at) + trees[1](at)) / 2)
        stages.append(tree(X, errors, weights, mix(key ^ SECOND), options))
    else:
        stages.append(tree(X, left, weights, key, options))
    return lambda at: sum(stage(at) for stage in stages)
