"""Predict a column from others, every row by regressions that have not seen it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
from scipy import linalg, optimize

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.formula.column_checks import is_number
from vstatkit.kernels.base import OutOfBag
from vstatkit.kernels.tree import tree_kernel
from vstatkit.native._engine import MOST_LEVELS
from vstatkit.sampling.design import IidDesign

TREES = 100  # trees that predict a predictor from the others

SHARE = 0.632  # share of the rows in the subsample of each of them, without replacement

LEAF = 5  # least number of rows in a leaf

FEW_VALUES = 10  # most distinct values of a number that is treated as a category
MOST_TERMS = 500  # most columns of the ridge regression with products

# Penalties of ridge regressions, in units of the largest squared singular value.
PENALTIES = np.logspace(-8, 1, 28)

# Most degrees of freedom of a ridge regression, divided by the number of rows.
MOST_FREEDOM = 0.5

# Lengths of the kernels of smoothers, in units of the spread of a predictor.
LENGTHS = (0.3, 0.6, 1.2)

# Degrees of smoothers: sums of curves; sums of surfaces in each two predictors.
DEGREES = (1, 2)

MARKS = 200  # rows at which the kernels of smoothers are centred, drawn from more

MARKING_SEED = 21  # seed that draws these rows

# Most rows for which smoothers are held in memory rather than recomputed.
MOST_HELD = 10_000

STEPS_BELOW = 2  # penalties by which smoothers are rougher than those that predict best

# Most levels whose shares are predicted by smoothers too, not by a forest alone.
MOST_SMOOTHED = 12

# Weights of out-of-bag class shares relative to the overall shares.
WEIGHTS = np.linspace(0.0, 1.0, 21)


@dataclass(frozen=True)
class OtherPredictors:
    """The predictors from which another one, or the response, is predicted."""

    frame: pd.DataFrame  # the other predictors; without any, the mean is predicted
    unit_of_row: Ints | None = None  # (n,): cluster of every row
    n_jobs: int | None = None  # workers

    @property
    def coded(self) -> Iterator[tuple[Floats, int | None]]:
        """Numbers, and codes of categories with the number of their levels."""
        for _, column in self.frame.items():
            if is_number(column):
                yield column.to_numpy(dtype=np.float64, na_value=np.nan), None
                continue
            levels = levels_by_rows(column)
            codes = levels.get_indexer(pd.Index(column)).astype(np.float64)
            yield np.where(codes < 0, np.nan, codes), len(levels)

    @cached_property
    def table(self) -> Floats:
        """Numbers and indicators of levels, missing values at the median.

        Factors of two levels have one indicator, others one for every level.
        """
        columns = []
        for values, n_levels in self.coded:
            if n_levels is None:
                columns.append(values)
                continue
            codes = range(1 if n_levels == 2 else 0, n_levels)
            columns += [(values == code).astype(np.float64) for code in codes]
        if not columns:
            return np.empty((len(self.frame), 0))
        W = np.column_stack(columns)
        return np.where(np.isnan(W), np.nanmedian(W, axis=0), W)

    def smoothers(self, degree: int) -> "Iterable[Ridge]":
        """Give the smoothers of one degree, one for each length of the kernel."""
        if len(self.frame) > MOST_HELD:
            return (_smoother(self.table, length, degree) for length in LENGTHS)
        return self._smoothers[degree]

    @cached_property
    def _smoothers(self) -> "dict[int, list[Ridge]]":
        return {
            degree: [_smoother(self.table, length, degree) for length in LENGTHS]
            for degree in DEGREES
        }


class LeaveOneOut(NamedTuple):
    """Predictions of every value by a fit that has not seen it."""

    mean: Floats  # (n,): the predictions
    # (n,): weight of a value in its own prediction by a smoother that has seen it: near
    # one where no other row is close
    leverage: Floats


def predict_leave_one_out(
    x: Floats, others: OtherPredictors, rng: np.random.Generator
) -> LeaveOneOut:
    """Predict a number from other predictors; see `fit_conditional_model`."""
    guesses, leverage = _guesses(x, others, rng)
    return LeaveOneOut(_stack(x, guesses), leverage)


def levels_by_rows(column: pd.Series) -> pd.Index:
    """List levels in the order of the rows, so that their own order has no effect."""
    levels: pd.Index = pd.Index(column[column.notna()].unique())
    return levels


def _stack(x: Floats, guesses: list[Floats]) -> Floats:
    """Regress a number on predictions of it; no coefficient is negative."""
    if not guesses:
        return np.full(len(x), x.mean())
    table = np.column_stack(guesses)
    middle = table.mean(axis=0)
    slopes = optimize.nnls(table - middle, x - x.mean())[0]
    return np.asarray(x.mean() + (table - middle) @ slopes)


def _guesses(
    x: Floats, others: OtherPredictors, rng: np.random.Generator
) -> tuple[list[Floats], Floats]:
    """Predict a number from the others in several ways; give leverages too."""
    if others.frame.shape[1] == 0:
        return [], np.full(len(x), 1 / len(x))
    seen = _out_of_bag(x, None, others, rng)[:, 0]
    W, unit_of_row = others.table, others.unit_of_row
    curves = _curves(W)
    fits = [_least_squares(x, columns, unit_of_row) for columns in (W, curves)]
    p = W.shape[1]
    if curves.shape[1] + p * (p - 1) // 2 <= MOST_TERMS:  # else they fill the memory
        ridge = Ridge.of(_standardise(np.column_stack([curves, _products(W)])))
        fits.append(ridge.left_out(x, unit_of_row)[0].mean)
    smooth = []  # of every degree the length of the kernel that predicts best
    for degree in DEGREES:
        by_length = (
            smoother.left_out(x, unit_of_row, STEPS_BELOW)
            for smoother in others.smoothers(degree)
        )
        smooth.append(min(by_length, key=lambda fit: fit[1])[0])
    guesses = [*fits, *(fit.mean for fit in smooth)]
    guesses.append(np.where(np.isnan(seen), x.mean(), seen))
    return guesses, smooth[0].leverage


def _standardise(W: Floats) -> Floats:
    """Centre columns, in units of their spread."""
    spread = W.std(axis=0)
    return np.asarray((W - W.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _products(W: Floats) -> Floats:
    first, second = np.triu_indices(W.shape[1], 1)
    scaled = _standardise(W)
    return np.asarray(scaled[:, first] * scaled[:, second])


def _curves(W: Floats) -> Floats:
    """Add squares, and hinges at the quartiles, of columns with many values."""
    many = [j for j in range(W.shape[1]) if len(np.unique(W[:, j])) > FEW_VALUES]
    scaled = _standardise(W[:, many])
    knots = np.quantile(scaled, [0.25, 0.5, 0.75], axis=0)
    hinges = [np.maximum(scaled - knot, 0.0) for knot in knots]
    return np.column_stack([W, scaled**2, *hinges])


def _least_squares(x: Floats, W: Floats, unit_of_row: Ints | None) -> Floats:
    """Predict every value by least squares on the other rows."""
    if W.shape[1] > len(x) // 5:  # too many to be fitted without noise
        return np.full(len(x), x.mean())
    left, roots, _ = np.linalg.svd(_standardise(W), full_matrices=False)
    left = left[:, roots > 1e-10 * max(roots[0], np.finfo(float).tiny)]
    return x - _errors(x, left, np.ones(left.shape[1]), unit_of_row)


@dataclass(frozen=True)
class Ridge:
    """A ridge regression, ready for any response."""

    left: Floats  # (n, d): left singular vectors of its centred columns
    squares: Floats  # (d,): squared singular values

    @classmethod
    def of(cls, table: Floats) -> "Ridge":
        """Take centred columns."""
        squares, directions = np.linalg.eigh(table.T @ table)
        live = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)
        left = table @ (directions[:, live] / np.sqrt(squares[live]))
        return cls(left, squares[live])

    def left_out(
        self, x: Floats, unit_of_row: Ints | None, below: int = 0
    ) -> tuple[LeaveOneOut, float]:
        """Predict every value by the other rows, or clusters; add the sum of squares.

        The penalty is `below` steps smaller than the one that predicts best, row by
        row. The sum is that of the squared errors at the best penalty.
        """
        if not len(self.squares):
            centre = np.full(len(x), x.mean())
            left_out = LeaveOneOut(centre, np.full(len(x), 1 / len(x)))
            return left_out, float(np.sum((x - centre) ** 2))
        along, weight = self.left.T @ (x - x.mean()), self.left**2
        table = self.squares / (self.squares + self.squares[-1] * PENALTIES[:, None])
        # A fit that repeats the values leaves errors of rounding, not of prediction.
        rough = table.sum(axis=1) > MOST_FREEDOM * len(x)
        shares = table[min(int(rough.sum()), len(table) - 1) :]
        losses = []
        for share in shares:
            error = x - x.mean() - self.left @ (share * along)
            error = error / (1 - _bound_leverage(weight @ share + 1 / len(x)))
            losses.append(float(error @ error))
        best = int(np.argmin(losses))
        share = shares[max(best - below, 0)]
        leverage = _bound_leverage(weight @ share + 1 / len(x))
        predicted = x - _errors(x, self.left, share, unit_of_row)
        return LeaveOneOut(predicted, leverage), losses[best]


def _bound_leverage(leverage: Floats) -> Floats:
    return np.minimum(leverage, 1 - 1e-6)


def _errors(x: Floats, left: Floats, share: Floats, unit_of_row: Ints | None) -> Floats:
    """Errors of predictions by the other rows, or by the other clusters."""
    n = len(x)
    away = x - x.mean()
    residual = away - left @ (share * (left.T @ away))
    if unit_of_row is None:
        leverage = (left**2) @ share + 1 / n
        return np.asarray(residual / (1 - _bound_leverage(leverage)))
    errors = np.empty(n)
    order = np.argsort(unit_of_row, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(unit_of_row[order])) + 1):
        block = (left[rows] * share) @ left[rows].T + 1 / n
        roots, vectors = np.linalg.eigh(block)
        turned = (vectors.T @ residual[rows]) / (1 - _bound_leverage(roots))
        errors[rows] = vectors @ turned
    return errors


def _smoother(W: Floats, length: float, degree: int) -> Ridge:
    r"""Make a kernel ridge regression of numbers and indicators.

    Notes
    -----
    The kernel is :math:`(\frac{1}{p} \sum_j \exp(-(u_j - v_j)^2 / (2 \ell^2)))^d`
    of columns about their median, in units of their quartile range, on the scale of
    the inverse hyperbolic sine, so that far values do not stand alone. From `MARKS`
    rows on it is that of the projection on as many rows (Nystroem).

    References
    ----------
    Duvenaud, Nickisch and Rasmussen (2011), Additive Gaussian processes, NeurIPS 24.
    """
    S = _shrink_outliers(W)
    marks = np.arange(len(S))
    if len(S) > MARKS:
        rng = np.random.default_rng(MARKING_SEED)
        marks = np.sort(rng.choice(len(S), MARKS, replace=False))
    K = np.zeros((len(S), len(marks)))
    for column in S.T:
        K += np.exp(-((column[:, None] - column[marks]) ** 2) / (2 * length**2))
    K = (K / S.shape[1]) ** degree
    if len(marks) == len(S):
        K = K - K.mean(axis=0)
        squares, left = np.linalg.eigh(K - K.mean(axis=1, keepdims=True))
        live = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)
        return Ridge(left[:, live], squares[live])
    inner = K[marks] + 1e-8 * np.eye(len(marks))
    table = linalg.solve_triangular(np.linalg.cholesky(inner), K.T, lower=True).T
    return Ridge.of(table - table.mean(axis=0))


def _shrink_outliers(W: Floats) -> Floats:
    """Centre and scale columns, and shrink outliers."""
    low, middle, high = np.quantile(W, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.349
    spread = np.where(spread > 0, spread, W.std(axis=0))
    return np.asarray(np.arcsinh((W - middle) / np.where(spread > 0, spread, 1.0)))


def predict_shares(
    codes: Ints, n_levels: int, others: OtherPredictors, rng: np.random.Generator
) -> Floats:
    """Predict the share of every level at every row, without the row itself."""
    overall = np.bincount(codes, minlength=n_levels) / len(codes)
    plain = np.broadcast_to(overall, (len(codes), n_levels))
    if others.frame.shape[1] == 0 or n_levels < 2:
        return plain
    seen = _out_of_bag(codes.astype(np.float64), n_levels, others, rng)
    if n_levels == 2:
        seen = np.column_stack([1 - seen, seen])
    predicted = [np.where(np.isnan(seen), plain, seen)]
    if n_levels <= MOST_SMOOTHED:
        predicted.append(_smooth_shares(codes, n_levels, others, rng))
    likelihoods = np.empty((len(predicted), len(WEIGHTS)))
    for row, shares in zip(likelihoods, predicted, strict=True):
        share, base = shares[np.arange(len(codes)), codes], overall[codes]
        with np.errstate(divide="ignore"):
            row[:] = [np.log(w * share + (1 - w) * base).sum() for w in WEIGHTS]
    kind, weight = np.unravel_index(np.argmax(likelihoods), likelihoods.shape)
    mixed = WEIGHTS[weight] * predicted[kind]
    return np.asarray(mixed + (1 - mixed.sum(axis=1, keepdims=True)) * plain)


def _smooth_shares(
    codes: Ints, n_levels: int, others: OtherPredictors, rng: np.random.Generator
) -> Floats:
    """Predict the indicator of each level as a number, and make shares of them."""
    n = len(codes)
    free = range(1, n_levels) if n_levels == 2 else range(n_levels)
    guesses = [
        predict_leave_one_out((codes == code).astype(np.float64), others, rng).mean
        for code in free
    ]
    if n_levels == 2:
        guesses = [1 - guesses[0], *guesses]
    shares = np.clip(np.column_stack(guesses), 1 / n, None)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _out_of_bag(
    y: Floats, n_classes: int | None, others: OtherPredictors, rng: np.random.Generator
) -> Floats:
    """Predict by trees that have not seen the row (nor its cluster)."""
    columns, sizes = zip(*others.coded, strict=True)
    W, unit_of_row = np.column_stack(columns), others.unit_of_row
    # Whole factors, unless they have too many levels or are indicators.
    levels = [size if size and 2 < size <= MOST_LEVELS else 0 for size in sizes]
    kernel = tree_kernel(
        "forest",
        W,
        y,
        options={"max_features": -(-W.shape[1] // 2), "min_samples_leaf": LEAF},
        n_classes=n_classes,
        levels=tuple(levels) if any(levels) else None,
    )
    units = len(y) if unit_of_row is None else int(unit_of_row.max()) + 1
    k = int(np.clip(SHARE * units, 1, units - 1))
    design = IidDesign(units, k, replace=False, seed=int(rng.integers(2**63)))
    at = np.empty((0, W.shape[1]))
    task = Task(kernel, design, at, unit_of_row, keep=False, most_oob=None)
    oob = evaluate(task, 0, TREES, n_jobs=others.n_jobs, progress=False).oob
    return cast("OutOfBag", oob).mean
