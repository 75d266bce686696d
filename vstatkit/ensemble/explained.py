"""What the other predictors say of one: out-of-bag predictions, and what they leave."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.formula.frames import is_number
from vstatkit.kernels.trees import tree_kernel
from vstatkit.native._engine import MOST_LEVELS
from vstatkit.sampling.iid import IidDesign

TREES = 100
"""Trees that predict a predictor from the others."""

SHARE = 0.632
"""Share of the rows that each of them sees, without replacement."""

LEAF = 5
"""Rows in a leaf at least."""

FEW_VALUES = 10
"""Most values of a number that is copied as if it were a category."""

MOST_TERMS = 500
"""Most columns of a regression in which terms are shrunk."""

PENALTIES = np.logspace(-8, 1, 28)
"""Penalties of it that are tried, in units of its largest squared singular value."""

LEAST_SPREAD = 0.1
"""Least spread of a number around its prediction, to the mean."""

WEIGHTS = np.linspace(0.0, 1.0, 21)
"""Weights of out-of-bag class shares that are tried, beside the overall shares."""


@dataclass(frozen=True)
class Explained:
    """A predictor, predicted from the others, and what is left of it.

    Attributes
    ----------
    column : Series of length n
        The predictor.
    centre : ndarray of shape (n,) or (n, L)
        Predicted mean of a number, or shares of the L levels.
    levels : Index or None
        Levels of a category (or of a number with few values); None for numbers.
    residual : ndarray of shape (n,)
        Value less `centre`, over `spread`; for levels a normal score of where the level
        lies in its shares, standard normal if these are right.
    spread : ndarray of shape (n,) or float
        Predicted mean of the absolute difference from `centre`; not used for levels.
    """

    column: pd.Series
    centre: Floats
    levels: pd.Index | None
    residual: Floats
    spread: Floats | float = 1.0

    def redrawn(self, residual: Floats) -> pd.Series:
        """Put other residuals on the same predictions.

        Numbers are moved to the nearest rank of the column's own values, so that the
        copy has the same values as the column, in another order.
        """
        if self.levels is None:
            order = np.argsort(self.centre + self.spread * residual, kind="stable")
            values = np.sort(self.column.to_numpy())
            copy = np.empty_like(values)
            copy[order] = values
            return pd.Series(copy, self.column.index)
        place = stats.norm.cdf(residual)[:, None]
        codes = (place > self.cumulated[:, :-1]).sum(axis=1)
        made = self.levels.take(codes)
        return pd.Series(made, self.column.index).astype(self.column.dtype)

    @cached_property
    def cumulated(self) -> Floats:
        """Cumulated shares of the levels."""
        return np.asarray(self.centre.cumsum(axis=1))


class Others(NamedTuple):
    """What a predictor is predicted from.

    Attributes
    ----------
    frame : DataFrame with n rows
        The other predictors; without columns, nothing explains the predictor.
    members : ndarray of shape (n,) or None
        Cluster of every row.
    n_jobs : int or None
        Workers.
    """

    frame: pd.DataFrame
    members: Ints | None = None
    n_jobs: int | None = None


def explain(column: pd.Series, others: Others, rng: np.random.Generator) -> Explained:
    """Predict a predictor from the others, each row by trees that have not seen it.

    Parameters
    ----------
    column : Series of length n
        The predictor, no value missing.
    others : Others
        What it is predicted from.
    rng : Generator
        Draws the trees' seed, and the scores of levels.

    Notes
    -----
    A number is regressed on four predictions that have not seen the row: of least
    squares in the others; in squares and hinges of them too; in products of two of
    them too, shrunk by the penalty that predicts best (Allen 1974); and of a small
    forest. Coefficients are not negative (Breiman 1996): predictions that leave a value
    out are low where it is high, by chance, and with the opposite sign they would
    repeat the very value. The residual is uncorrelated with the prediction, so that one
    of another row on top of it gives back the variance: predictions by themselves are
    noisy where there is little to predict, and a copy made from them would spread more
    than the predictor does. How far values lie from their predictions is predicted in
    the same way, and residuals change places in units of that.

    Shares of levels are mixed with the overall shares by the weight at which the
    out-of-bag log-likelihood is largest.

    References
    ----------
    Allen (1974), The relationship between variable selection and data augmentation and
    a method for prediction, Technometrics 16. doi:10.1080/00401706.1974.10489157

    Breiman (1996), Stacked regressions, Machine Learning 24. doi:10.1007/BF00117832
    """
    levels = _levels(column)
    if levels is None:
        x = column.to_numpy(dtype=np.float64)
        centre = _stacked(x, _guesses(x, others, rng))
        away = np.abs(x - centre)
        spread = _stacked(away, _guesses(away, others, rng))
        least = max(LEAST_SPREAD * away.mean(), np.finfo(float).tiny)
        spread = np.maximum(spread, least)
        return Explained(column, centre, None, (x - centre) / spread, spread)
    codes = levels.get_indexer(pd.Index(column))
    shares = _shares(codes, len(levels), others, rng)
    top = shares.cumsum(axis=1)[np.arange(len(codes)), codes]
    own = shares[np.arange(len(codes)), codes]
    place = top - own * (1 - rng.random(len(codes)))
    score = stats.norm.ppf(np.clip(place, 1e-12, 1 - 1e-12))
    return Explained(column, shares, levels, score)


def _levels(column: pd.Series) -> pd.Index | None:
    """List the levels that occur; None for numbers of many values."""
    if is_number(column) and column.nunique() > FEW_VALUES:
        return None
    used: pd.Index = pd.Categorical(column).remove_unused_categories().categories
    return used


def _stacked(x: Floats, guesses: list[Floats]) -> Floats:
    """Regress a number on predictions of it; no coefficient is negative."""
    if not guesses:
        return np.full(len(x), x.mean())
    table = np.column_stack(guesses)
    middle = table.mean(axis=0)
    slopes = optimize.nnls(table - middle, x - x.mean())[0]
    return np.asarray(x.mean() + (table - middle) @ slopes)


def _guesses(x: Floats, others: Others, rng: np.random.Generator) -> list[Floats]:
    """Predict a number from the others: by least squares, and by a forest."""
    if others.frame.shape[1] == 0:
        return []
    seen = _out_of_bag(x, None, others, rng)[:, 0]
    table = pd.get_dummies(others.frame, drop_first=True, dtype=np.float64)
    W = table.to_numpy(dtype=np.float64)
    W = np.where(np.isnan(W), np.nanmedian(W, axis=0), W)
    curves = _curves(W)
    fits = [_left_out(x, one) for one in (W, curves)]
    p = W.shape[1]
    if curves.shape[1] + p * (p - 1) // 2 <= MOST_TERMS:  # else they fill the memory
        fits.append(_shrunk_left_out(x, np.column_stack([curves, _products(W)])))
    return [*fits, np.where(np.isnan(seen), x.mean(), seen)]


def _scaled(W: Floats) -> Floats:
    """Centre columns, in units of their spread."""
    spread = W.std(axis=0)
    return np.asarray((W - W.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _products(W: Floats) -> Floats:
    """Multiply each two columns."""
    first, second = np.triu_indices(W.shape[1], 1)
    scaled = _scaled(W)
    return np.asarray(scaled[:, first] * scaled[:, second])


def _curves(W: Floats) -> Floats:
    """Add squares, and hinges at the quartiles, of columns with many values."""
    many = [j for j in range(W.shape[1]) if len(np.unique(W[:, j])) > FEW_VALUES]
    scaled = _scaled(W[:, many])
    knots = np.quantile(scaled, [0.25, 0.5, 0.75], axis=0)
    hinges = [np.maximum(scaled - knot, 0.0) for knot in knots]
    return np.column_stack([W, scaled**2, *hinges])


def _left_out(x: Floats, W: Floats) -> Floats:
    """Predict every value by least squares on the other rows."""
    if W.shape[1] > len(x) // 5:  # too many to be fitted without noise
        return np.full(len(x), x.mean())
    design = np.column_stack([np.ones(len(x)), _scaled(W)])
    left, roots, _ = np.linalg.svd(design, full_matrices=False)
    left = left[:, roots > 1e-10 * roots[0]]
    residual = x - left @ (left.T @ x)
    leverage = np.minimum(np.sum(left**2, axis=1), 1 - 1e-6)
    return np.asarray(x - residual / (1 - leverage))


def _shrunk_left_out(x: Floats, W: Floats) -> Floats:
    """Predict every value by ridge regression on the other rows."""
    table, away = _scaled(W), x - x.mean()
    squares, directions = np.linalg.eigh(table.T @ table)
    live = squares > 1e-12 * squares[-1]
    if not live.any():
        return np.full(len(x), x.mean())
    squares = squares[live]
    left = table @ (directions[:, live] / np.sqrt(squares))
    along, weight = left.T @ away, left**2
    errors = []
    for penalty in squares[-1] * PENALTIES:
        share = squares / (squares + penalty)
        leverage = np.minimum(weight @ share + 1 / len(x), 1 - 1e-6)
        errors.append((away - left @ (share * along)) / (1 - leverage))
    best = min(errors, key=lambda error: float(error @ error))
    return np.asarray(x - best)


def _shares(
    codes: Ints, n_levels: int, others: Others, rng: np.random.Generator
) -> Floats:
    """Predict the shares of levels."""
    overall = np.bincount(codes, minlength=n_levels) / len(codes)
    plain = np.broadcast_to(overall, (len(codes), n_levels))
    if others.frame.shape[1] == 0 or n_levels < 2:
        return plain
    seen = _out_of_bag(codes.astype(np.float64), n_levels, others, rng)
    if n_levels == 2:
        seen = np.column_stack([1 - seen, seen])
    seen = np.where(np.isnan(seen), plain, seen)
    own, base = seen[np.arange(len(codes)), codes], overall[codes]
    with np.errstate(divide="ignore"):
        likely = [np.log(w * own + (1 - w) * base).sum() for w in WEIGHTS]
    weight = WEIGHTS[int(np.argmax(likely))]
    return np.asarray(weight * seen + (1 - weight) * plain)


def _out_of_bag(
    y: Floats, n_classes: int | None, others: Others, rng: np.random.Generator
) -> Floats:
    """Predict by trees that have not seen the row (nor its cluster)."""
    W, levels = _coded(others.frame)
    members = others.members
    options: dict[str, Any] = {
        "max_features": -(-W.shape[1] // 2),
        "min_samples_leaf": LEAF,
    }
    kernel = tree_kernel(
        "forest",
        W,
        y,
        n_classes=n_classes,
        weights=None,
        options=options,
        levels=levels,
    )
    units = len(y) if members is None else int(members.max()) + 1
    k = int(np.clip(SHARE * units, 1, units - 1))
    design = IidDesign(units, k, replace=False, seed=int(rng.integers(2**63)))
    at = np.empty((0, W.shape[1]))
    task = Task(kernel, design, at, members, keep=False, most_oob=None)
    oob = evaluate(task, 0, TREES, n_jobs=others.n_jobs, progress=False).oob
    assert oob is not None
    return oob.mean


def _coded(others: pd.DataFrame) -> tuple[Floats, tuple[int, ...] | None]:
    """Code categories by numbers, whole factors where these are not too many."""
    columns, levels = [], []
    for name in others.columns:
        column = others[name]
        if is_number(column):
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            levels.append(0)
            continue
        held = pd.Categorical(column).remove_unused_categories()
        codes = held.codes.astype(np.float64)
        columns.append(np.where(codes < 0, np.nan, codes))
        many = len(held.categories)
        levels.append(many if 2 < many <= MOST_LEVELS else 0)
    found = tuple(levels) if any(levels) else None
    return np.column_stack(columns), found
