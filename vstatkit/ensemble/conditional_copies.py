"""Conditional copies of predictors, given the other predictors."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from scipy import linalg, optimize, stats

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.formula.input_checks import is_number
from vstatkit.kernels.tree import tree_kernel
from vstatkit.native._engine import MOST_LEVELS
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.streams import Purpose, stream

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

MOST_FREEDOM = 0.5
"""Most degrees of freedom of such a regression, to the number of rows."""

LENGTHS = (0.3, 0.6, 1.2)
"""Lengths of the kernels of smoothers, in units of the spread of a predictor."""

DEGREES = (1, 2)
"""Degrees of smoothers: sums of curves; sums of surfaces in each two predictors."""

MARKS = 200
"""Rows at which the kernels of smoothers are centred, drawn from more."""

MARKING_SEED = 21
"""Draws them."""

MOST_HELD = 10_000
"""Most rows of which smoothers are held in memory; of more they are made again."""

STEPS_BELOW = 2
"""Penalties by which smoothers are rougher than those that predict best."""

MOST_SMOOTHED = 12
"""Most levels whose shares are predicted by smoothers too, not by a forest alone."""

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


@dataclass(frozen=True)
class Others:
    """What a predictor, or the response, is predicted from.

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

    @cached_property
    def table(self) -> Floats:
        """Numbers and indicators of levels, missing values at the median.

        Of two levels one has an indicator, of more each: none is the reference.
        """
        columns = []
        for column in (self.frame[name] for name in self.frame.columns):
            if is_number(column):
                columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
                continue
            levels = _levels_by_rows(column)
            codes = levels.get_indexer(pd.Index(column))
            shown = range(1 if len(levels) == 2 else 0, len(levels))
            columns += [(codes == code).astype(np.float64) for code in shown]
        if not columns:
            return np.empty((len(self.frame), 0))
        W = np.column_stack(columns)
        return np.where(np.isnan(W), np.nanmedian(W, axis=0), W)

    def smoothers(self, degree: int) -> "Iterable[Ridge]":
        """Give the smoothers of one degree, one for each length of the kernel."""
        if len(self.frame) > MOST_HELD:
            return (_smoother(self.table, length, degree) for length in LENGTHS)
        return self._held[degree]

    @cached_property
    def _held(self) -> "dict[int, list[Ridge]]":
        return {
            degree: [_smoother(self.table, length, degree) for length in LENGTHS]
            for degree in DEGREES
        }


class LeftOut(NamedTuple):
    """Predictions of every value by a fit that has not seen it.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        The predictions.
    leverage : ndarray of shape (n,)
        Weight of a value in its own prediction by a smoother that has seen it: near
        one where no other row is close.
    """

    mean: Floats
    leverage: Floats


def predict_left_out(x: Floats, others: Others, rng: np.random.Generator) -> LeftOut:
    """Predict a number from other predictors; see the notes of `explain`."""
    guesses, leverage = _guesses(x, others, rng)
    return LeftOut(_stacked(x, guesses), leverage)


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
    A number is regressed on predictions that have not seen the row: of least
    squares in the others; in squares and hinges of them too; in products of two of
    them too, shrunk by the penalty that predicts best (Allen 1974); of kernel ridge
    regressions, whose kernels are sums of Gaussian kernels of single predictors, or
    squares of such sums; and of a small forest. Coefficients are not negative (Breiman
    1996): predictions that leave a value out are low where it is high, by chance, and
    with the opposite sign they would repeat the very value. The residual is
    uncorrelated with the prediction, so that one of another row on top of it gives back
    the variance: predictions by themselves are noisy where there is little to predict,
    and a copy made from them would spread more than the predictor does. How far values
    lie from their predictions is predicted in the same way, and residuals change places
    in units of that.

    Shares of levels are predicted by a forest or, of at most `MOST_SMOOTHED` levels, in
    the same way as numbers, and mixed with the overall shares: by the kind and the
    weight with the largest log-likelihood of values that were left out.

    References
    ----------
    Allen (1974), The relationship between variable selection and data augmentation and
    a method for prediction, Technometrics 16. doi:10.1080/00401706.1974.10489157

    Breiman (1996), Stacked regressions, Machine Learning 24. doi:10.1007/BF00117832
    """
    levels = _levels(column)
    if levels is None:
        x = column.to_numpy(dtype=np.float64)
        centre = predict_left_out(x, others, rng).mean
        away = np.abs(x - centre)
        spread = predict_left_out(away, others, rng).mean
        least = max(LEAST_SPREAD * away.mean(), np.finfo(float).tiny)
        spread = np.maximum(spread, least)
        return Explained(column, centre, None, (x - centre) / spread, spread)
    codes = levels.get_indexer(pd.Index(column))
    shares = _shares(codes, len(levels), others, rng)
    top = shares.cumsum(axis=1)[np.arange(len(codes)), codes]
    share = shares[np.arange(len(codes)), codes]
    place = top - share * (1 - rng.random(len(codes)))
    score = stats.norm.ppf(np.clip(place, 1e-12, 1 - 1e-12))
    return Explained(column, shares, levels, score)


def _levels(column: pd.Series) -> pd.Index | None:
    """List the levels that occur; None for numbers of many values."""
    if not is_number(column):
        return _levels_by_rows(column)
    if column.nunique() > FEW_VALUES:
        return None
    used: pd.Index = pd.Categorical(column).categories
    return used


def _levels_by_rows(column: pd.Series) -> pd.Index:
    """List levels as they come in the rows: their own order has no effect."""
    levels: pd.Index = pd.Index(column[column.notna()].unique())
    return levels


def _stacked(x: Floats, guesses: list[Floats]) -> Floats:
    """Regress a number on predictions of it; no coefficient is negative."""
    if not guesses:
        return np.full(len(x), x.mean())
    table = np.column_stack(guesses)
    middle = table.mean(axis=0)
    slopes = optimize.nnls(table - middle, x - x.mean())[0]
    return np.asarray(x.mean() + (table - middle) @ slopes)


def _guesses(
    x: Floats, others: Others, rng: np.random.Generator
) -> tuple[list[Floats], Floats]:
    """Predict a number from the others in several ways; give leverages too."""
    if others.frame.shape[1] == 0:
        return [], np.full(len(x), 1 / len(x))
    seen = _out_of_bag(x, None, others, rng)[:, 0]
    W, members = others.table, others.members
    curves = _curves(W)
    fits = [_least_squares(x, columns, members) for columns in (W, curves)]
    p = W.shape[1]
    if curves.shape[1] + p * (p - 1) // 2 <= MOST_TERMS:  # else they fill the memory
        ridge = Ridge.of(_scaled(np.column_stack([curves, _products(W)])))
        fits.append(ridge.left_out(x, members)[0].mean)
    smooth = [_smoothed(x, others, degree) for degree in DEGREES]
    guesses = [*fits, *(fit.mean for fit in smooth)]
    guesses.append(np.where(np.isnan(seen), x.mean(), seen))
    return guesses, smooth[0].leverage


def _smoothed(x: Floats, others: Others, degree: int) -> LeftOut:
    """Predict by the smoother of one degree whose length predicts best."""
    fits = (
        smoother.left_out(x, others.members, STEPS_BELOW)
        for smoother in others.smoothers(degree)
    )
    return min(fits, key=lambda fit: fit[1])[0]


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


def _least_squares(x: Floats, W: Floats, members: Ints | None) -> Floats:
    """Predict every value by least squares on the other rows."""
    if W.shape[1] > len(x) // 5:  # too many to be fitted without noise
        return np.full(len(x), x.mean())
    left, roots, _ = np.linalg.svd(_scaled(W), full_matrices=False)
    left = left[:, roots > 1e-10 * max(roots[0], np.finfo(float).tiny)]
    return x - _errors(x, left, np.ones(left.shape[1]), members)


@dataclass(frozen=True)
class Ridge:
    """A ridge regression, ready for any response.

    Attributes
    ----------
    left : ndarray of shape (n, d)
        Left singular vectors of its centred columns.
    squares : ndarray of shape (d,)
        Squared singular values.
    """

    left: Floats
    squares: Floats

    @classmethod
    def of(cls, table: Floats) -> "Ridge":
        """Take centred columns."""
        squares, directions = np.linalg.eigh(table.T @ table)
        live = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)
        left = table @ (directions[:, live] / np.sqrt(squares[live]))
        return cls(left, squares[live])

    def left_out(
        self, x: Floats, members: Ints | None, below: int = 0
    ) -> tuple[LeftOut, float]:
        """Predict every value by the other rows, or clusters.

        Parameters
        ----------
        x : ndarray of shape (n,)
            What is predicted.
        members : ndarray of shape (n,) or None
            Cluster of every row.
        below : int
            Steps by which the penalty is smaller than the one that predicts best.

        Returns
        -------
        found : LeftOut
            Predictions.
        loss : float
            Sum of squared errors at the penalty that predicts best, row by row.
        """
        if not len(self.squares):
            centre = np.full(len(x), x.mean())
            left_out = LeftOut(centre, np.full(len(x), 1 / len(x)))
            return left_out, float(np.sum((x - centre) ** 2))
        along, weight = self.left.T @ (x - x.mean()), self.left**2
        table = self.squares / (self.squares + self.squares[-1] * PENALTIES[:, None])
        # A fit that repeats the values leaves errors of rounding, not of prediction.
        rough = table.sum(axis=1) > MOST_FREEDOM * len(x)
        shares = table[min(int(rough.sum()), len(table) - 1) :]
        losses = []
        for share in shares:
            error = x - x.mean() - self.left @ (share * along)
            error = error / (1 - _bounded(weight @ share + 1 / len(x)))
            losses.append(float(error @ error))
        best = int(np.argmin(losses))
        share = shares[max(best - below, 0)]
        leverage = _bounded(weight @ share + 1 / len(x))
        predicted = x - _errors(x, self.left, share, members)
        return LeftOut(predicted, leverage), losses[best]


def _bounded(leverage: Floats) -> Floats:
    """Keep leverages below one."""
    return np.minimum(leverage, 1 - 1e-6)


def _errors(x: Floats, left: Floats, share: Floats, members: Ints | None) -> Floats:
    """Errors of predictions by the other rows, or by the other clusters."""
    n = len(x)
    away = x - x.mean()
    residual = away - left @ (share * (left.T @ away))
    if members is None:
        leverage = (left**2) @ share + 1 / n
        return np.asarray(residual / (1 - _bounded(leverage)))
    errors = np.empty(n)
    order = np.argsort(members, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(members[order])) + 1):
        block = (left[rows] * share) @ left[rows].T + 1 / n
        roots, vectors = np.linalg.eigh(block)
        turned = (vectors.T @ residual[rows]) / (1 - _bounded(roots))
        errors[rows] = vectors @ turned
    return errors


def _smoother(W: Floats, length: float, degree: int) -> Ridge:
    r"""Make a kernel ridge regression of numbers and indicators.

    Parameters
    ----------
    W : ndarray of shape (n, p)
        Columns.
    length : float
        Length of the kernel.
    degree : int
        Power of the kernel.

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
    S = _drawn_in(W)
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


def _drawn_in(W: Floats) -> Floats:
    """Centre columns and scale them, far values less than near ones."""
    low, middle, high = np.quantile(W, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.349
    spread = np.where(spread > 0, spread, W.std(axis=0))
    return np.asarray(np.arcsinh((W - middle) / np.where(spread > 0, spread, 1.0)))


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
    tried = [np.where(np.isnan(seen), plain, seen)]
    if n_levels <= MOST_SMOOTHED:
        tried.append(_smooth_shares(codes, n_levels, others, rng))
    candidates = []
    for shares in tried:
        share, base = shares[np.arange(len(codes)), codes], overall[codes]
        with np.errstate(divide="ignore"):
            likely = [np.log(w * share + (1 - w) * base).sum() for w in WEIGHTS]
        best = int(np.argmax(likely))
        candidates.append((likely[best], WEIGHTS[best] * shares))
    best = int(np.argmax([likely for likely, _ in candidates]))
    mixed = candidates[best][1]
    return np.asarray(mixed + (1 - mixed.sum(axis=1, keepdims=True)) * plain)


def _smooth_shares(
    codes: Ints, n_levels: int, others: Others, rng: np.random.Generator
) -> Floats:
    """Predict the indicator of each level as a number, and make shares of them."""
    n = len(codes)
    free = range(1, n_levels) if n_levels == 2 else range(n_levels)
    guesses = [
        predict_left_out((codes == code).astype(np.float64), others, rng).mean
        for code in free
    ]
    if n_levels == 2:
        guesses = [1 - guesses[0], *guesses]
    shares = np.clip(np.column_stack(guesses), 1 / n, None)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


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
        known = _levels_by_rows(column)
        codes = known.get_indexer(pd.Index(column)).astype(np.float64)
        columns.append(np.where(codes < 0, np.nan, codes))
        many = len(known)
        levels.append(many if 2 < many <= MOST_LEVELS else 0)
    factor_levels = tuple(levels) if any(levels) else None
    return np.column_stack(columns), factor_levels


How = Literal["conditional", "permute"]
"""What takes the place of a predictor."""


@dataclass(frozen=True)
class Copier:
    """Makes copies of predictors, from the data and the seed alone.

    Attributes
    ----------
    frame : DataFrame with n rows
        All predictors.
    seed : int
        Seed of the copies.
    members : ndarray of shape (n,) or None
        Cluster of every row.
    n_jobs : int or None
        Workers.
    """

    frame: pd.DataFrame
    seed: int
    members: Ints | None = None
    n_jobs: int | None = None

    def others(self, names: Sequence[str]) -> Others:
        """Take all predictors but some."""
        rest = [name for name in self.frame.columns if name not in names]
        return Others(self.frame[rest], self.members, self.n_jobs)

    def copies(
        self,
        names: Sequence[str],
        how: How,
        number: int,
        others: Others | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yield the data, time after time, with other values of some predictors.

        Parameters
        ----------
        names : sequence of str
            Predictors that are replaced, together.
        how : {"conditional", "permute"}
            "conditional": what the other predictors say of it, plus what they leave
            unexplained, taken from another row. "permute": its value in another row.
        number : int
            How many copies.
        others : Others, optional
            All other predictors, so that what was computed of them is used again.

        Notes
        -----
        Several predictors are taken from the same row, so that they stay related to
        each other. Where rows come in clusters, the clusters' means and the rows'
        deviations from them change places separately, and a predictor that is
        constant within clusters stays so. Rows where a value is missing keep theirs.
        """
        check_how(how)
        names = list(names)
        live = self.frame[names].notna().all(axis=1).to_numpy()
        key = zlib.crc32("\0".join([how, *names]).encode())
        rng = stream(self.seed, key, Purpose.COPY)
        if others is None or how != "conditional":
            others = self.others(names)
        known = self._explained(names, how, live, others, rng)
        for _ in range(number):
            yield self.frame.assign(**known.drawn(self.frame, live, rng))

    def _explained(
        self,
        names: list[str],
        how: How,
        live: Bools,
        others: Others,
        rng: np.random.Generator,
    ) -> "_Known":
        frame = self.frame[live]
        members = None if self.members is None else self.members[live]
        spread = None
        if members is not None:
            # Clusters that lost all their rows to missing values are not counted.
            members = np.unique(members, return_inverse=True)[1]
            if _constant_within(frame[names], members):
                frame, spread, members = _per_cluster(frame, members), members, None
        rest = list(others.frame.columns) if how == "conditional" else []
        if rest != list(others.frame.columns) or spread is not None or not live.all():
            others = Others(frame[rest], members, self.n_jobs)
        explained = {name: explain(frame[name], others, rng) for name in names}
        return _Known(explained, members, spread)


@dataclass(frozen=True)
class _Known:
    """Predictors that are explained, and how their residuals change places.

    Attributes
    ----------
    found : dict
        The predictors.
    members : ndarray or None
        Cluster of every row, if these matter.
    spread : ndarray or None
        Cluster of every row, if the predictors have one value for each.
    """

    found: dict[str, Explained]
    members: Ints | None
    spread: Ints | None

    def drawn(
        self, frame: pd.DataFrame, live: Bools, rng: np.random.Generator
    ) -> dict[str, pd.Series]:
        """Draw copies of all of them."""
        table = np.column_stack(
            [explained.residual for explained in self.found.values()]
        )
        moved = shuffled(table, self.members, rng)
        copies = {}
        for (name, explained), residual in zip(
            self.found.items(), moved.T, strict=True
        ):
            copy = explained.redrawn(residual)
            if self.spread is not None:
                copy = copy.iloc[self.spread]
            column = frame[name].copy()
            column[live] = copy.to_numpy() if is_number(column) else copy.array
            copies[name] = column
        return copies


def shuffled(
    residuals: Floats, members: Ints | None, rng: np.random.Generator
) -> Floats:
    """Let the rows of residuals change places.

    Parameters
    ----------
    residuals : ndarray of shape (n, q)
        One column for each predictor.
    members : ndarray of shape (n,) or None
        Cluster of every row: clusters' means and rows' deviations from them change
        places separately.
    rng : Generator
        Draws the order.
    """
    n = len(residuals)
    if members is None:
        return np.asarray(residuals[rng.permutation(n)])
    sizes = np.bincount(members)
    sums = [np.bincount(members, column) for column in residuals.T]
    means = np.column_stack(sums) / sizes[:, None]
    away = residuals - means[members]
    other = rng.permutation(len(sizes))
    return np.asarray(means[other][members] + away[rng.permutation(n)])


def _constant_within(columns: pd.DataFrame, members: Ints) -> bool:
    """Whether columns have one value in each cluster."""
    values = columns.groupby(members, observed=True).nunique()
    return int(values.to_numpy().max()) <= 1


def _per_cluster(frame: pd.DataFrame, members: Ints) -> pd.DataFrame:
    """Make one row of each cluster: means of numbers, first levels of categories."""
    grouped = frame.groupby(members)
    first = grouped.first()
    means = {
        name: grouped[name].mean()
        for name in frame.columns
        if is_number(frame[name]) and grouped[name].nunique().max() > 1
    }
    return first.assign(**means)


def check_how(how: str) -> None:
    """Refuse other ways to replace a predictor."""
    if how not in get_args(How):
        names = ", ".join(map(repr, get_args(How)))
        raise ValueError(f"`how` must be one of {names}; got {how!r}.")
