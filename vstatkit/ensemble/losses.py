"""Out-of-bag losses with a predictor and with copies of it, and their difference."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.refitted import Reader
from vstatkit.sampling.design import SubsampleDesign

CHUNK_VALUES = 8_000_000
"""Predictions held at a time: learners x rows x tables x outputs."""

MOST_PAIRED = 1000
"""Units of which all pairs are looked at."""

PAIRING_SEED = 20
"""Draws them from more units."""


def row_losses(y: Floats, predicted: Floats, n_classes: int | None) -> Floats:
    """Squared error of every row; of classes, that of their probabilities.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Response, or class codes.
    predicted : ndarray of shape (n, c)
        Predictions; NaN where there are none.
    n_classes : int or None
        None for regression.

    Examples
    --------
    >>> row_losses(np.array([0.0, 1.0]), np.array([[0.5], [0.5]]), 2)
    array([0.25, 0.25])
    """
    return np.asarray(((_targets(y, n_classes) - predicted) ** 2).sum(axis=1))


def _targets(y: Floats, n_classes: int | None) -> Floats:
    """Give what predictions aim at, shape (n, c)."""
    if n_classes is None or n_classes == 2:
        return np.asarray(y[:, None])
    return np.asarray(np.arange(n_classes) == y[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Saved:
    """What a predictor saves of the loss, row by row.

    Attributes
    ----------
    base : ndarray of shape (r,)
        Loss of the fit; NaN where every learner has seen the row.
    saved : ndarray of shape (r,)
        Loss with copies of the predictor, on average, less `base`.
    parts : ndarray of shape (L, r)
        What each learner does to `saved`, to the first order; zero where it has seen
        the row. Over the learners they add up to zero.
    """

    base: Floats
    saved: Floats
    parts: Floats


def saved_losses(
    full: Reader, reduced: Reader, y: Floats, rows: Ints, n_classes: int | None
) -> Saved:
    r"""Compare out-of-bag losses of a fit with those that copies leave.

    Parameters
    ----------
    full : Reader
        The fit and its predictors, one table.
    reduced : Reader
        The same learners, or learners of the same subsamples, with copies.
    y : ndarray of shape (n,)
        Response, or class codes.
    rows : ndarray of shape (r,)
        Rows to predict.
    n_classes : int or None
        None for regression.

    Notes
    -----
    With the out-of-bag prediction :math:`\hat f_i = \sum_b w_{bi} h_b(x_i) /
    \sum_b w_{bi}`, the squared error of row i changes by :math:`-2 (y_i - \hat f_i)
    w_{bi} (h_b(x_i) - \hat f_i) / \sum_b w_{bi}` per unit of weight that learner b
    gains. The learner's part is this with copies, less this without.
    """
    n_outputs = reduced.task.kernel.n_outputs  # type: ignore[union-attr]
    L, tables = len(full.learners), 1 + len(reduced.tables)
    step = max(1, CHUNK_VALUES // (L * tables * n_outputs))
    base, saved = np.empty(len(rows)), np.empty(len(rows))
    parts = np.empty((L, len(rows)))
    for first in range(0, len(rows), step):
        place = slice(first, first + step)
        values, weights = _outside(full, reduced, rows[place])
        target = _targets(y[rows[place]], n_classes)[:, None]
        losses, part = _losses(values, weights, target)
        base[place] = losses[:, 0]
        # Differences first: copies that change nothing save nothing at all.
        saved[place] = (losses[:, 1:] - losses[:, :1]).mean(axis=1)
        parts[:, place] = (part[:, :, 1:] - part[:, :, :1]).mean(axis=2)
    return Saved(base, saved, parts)


def _outside(full: Reader, reduced: Reader, rows: Ints) -> tuple[Floats, Floats]:
    """Predict rows out of bag, first as they are, then with copies."""
    if full.learners is reduced.learners:  # one call for each learner
        return replace(full, tables=(*full.tables, *reduced.tables)).outside(rows)
    own, weights = full.outside(rows)
    return np.concatenate([own, reduced.outside(rows)[0]], axis=2), weights


def _losses(values: Floats, weights: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Losses of rows, shape (r, tables), and each learner's part, (L, r, tables)."""
    times = weights.sum(axis=0)
    often = np.where(times > 0, times, np.nan)[:, None, None]
    mean = values.sum(axis=0) / often
    away = target - mean
    away_known = np.where(np.isfinite(away), away, 0.0)
    slope = -2 * away_known / np.where(times > 0, times, 1.0)[:, None, None]
    centre = np.where(np.isfinite(mean), mean, 0.0)
    parts = np.einsum("brtc,rtc->brt", values, slope)
    parts -= np.einsum("br,rtc,rtc->brt", weights, centre, slope)
    return np.asarray((away**2).sum(axis=2)), np.asarray(parts)


@dataclass(frozen=True)
class MeanSaved:
    """The mean of what is saved, with its standard error.

    Attributes
    ----------
    mean, error : float
        Mean over rows; its standard error.
    own : float
        The standard error that rows would have if learners were given.
    df : int
        Units less one.
    """

    mean: float
    error: float
    own: float
    df: int

    @property
    def pvalue(self) -> float:
        """Chance of such a mean, or a larger one, if the true one is zero."""
        if not self.error > 0:
            return 0.0 if self.mean > 0 else 1.0
        return float(stats.t.sf(self.mean / self.error, self.df))


def mean_saved(
    found: Saved, design: SubsampleDesign, units: Ints, *, through: bool = True
) -> MeanSaved:
    r"""Average what is saved over rows, with a standard error over units.

    Parameters
    ----------
    found : Saved
        What is saved, row by row.
    design : SubsampleDesign
        The design that the learners were drawn by.
    units : ndarray of shape (r,)
        Unit (row, or cluster) of every row.
    through : bool
        Whether units also count through the learners that saw them.

    Notes
    -----
    Let :math:`r_j = \sum_{i \in j} (d_i - \bar d) / r` be what the rows of unit j do to
    the mean, :math:`p_{bj}` the part of it that is by learner b, :math:`g_b = \sum_j
    p_{bj}`, and C what pairs of units have in common, see `_common`. Then

    .. math::

        \operatorname{var} = \frac{n}{n - 1} \sum_j \Bigl( r_j^2 - \sum_b p_{bj}^2
        \Bigr) + C + \frac{L}{L - 1} \sum_b g_b^2 .

    The first term is the variance that the rows have if the learners are given. Under
    the null :math:`d_i` is nearly a sum over the rows j that learners of row i saw, of
    products of the errors of i and j. The same product is in :math:`d_j`: that is C.
    The last term is what other learners would change. That chance is in the first
    term too, row by row, where it is no part of the variance of the mean: the second
    term takes it out. The variance is never below that of the rows by themselves, the
    first two terms, or, where it is not known what units do through learners, the
    first alone.
    """
    known = np.isfinite(found.saved)
    saved, r = found.saved[known], int(known.sum())
    held, place = np.unique(units[known], return_inverse=True)
    mean, there = float(saved.mean()), len(held)
    rows = np.bincount(place, saved - mean) / r
    factor = there / max(there - 1, 1)
    own = factor * float(rows @ rows)
    if not through:
        return MeanSaved(mean, float(np.sqrt(own)), float(np.sqrt(own)), there - 1)
    L = len(found.parts)
    by_unit = _summed(found.parts[:, known], place) / r
    g = by_unit.sum(axis=0)
    alone = own - factor * float(np.vdot(by_unit, by_unit))
    chance = L / (L - 1) * float(g @ g)
    variance = max(alone + _common(by_unit, design, held), alone, 0.0) + chance
    return MeanSaved(mean, float(np.sqrt(variance)), float(np.sqrt(own)), there - 1)


def _common(by_unit: Floats, design: SubsampleDesign, held: Ints) -> float:
    r"""Sum what pairs of units have in common through the learners that saw one.

    Parameters
    ----------
    by_unit : ndarray of shape (units, L)
        Part of the rows of a unit that is by each learner.
    design : SubsampleDesign
        The design that the learners were drawn by.
    held : ndarray of shape (units,)
        The units.

    Notes
    -----
    What unit j does to the rows of unit i, through the learners that saw it, is seen in
    the :math:`a_j` learners that did not: :math:`c_{ij} = -(L / a_j) \sum_{b \not\ni j}
    p_{bi}`. The sum is that of :math:`c_{ij} c_{ji}` over all pairs, less what the
    chance of the :math:`a_{ij}` learners without both does to it,

    .. math::

        \frac{L^2}{a_i a_j} \Bigl(1 - \frac{a_{ij}}{a_i}\Bigr)
        \Bigl(1 - \frac{a_{ij}}{a_j}\Bigr) \sum_b p_{bi} p_{bj} ,

    since :math:`p_{bi}` add up to zero over the learners without i. The sum of
    :math:`r_j \sum_i c_{ij}` over j is quicker, but has products of three units in it
    too. These are large when the mean is, and a test by their error is too careful.

    From `MOST_PAIRED` units on, pairs are those of as many units drawn from them.
    """
    units = len(held)
    some = np.arange(units)
    if units > MOST_PAIRED:
        some = np.random.default_rng(PAIRING_SEED).choice(units, MOST_PAIRED, False)
    p, L = by_unit[some], by_unit.shape[1]
    present = design.sparse_counts(0, L)[:, held[some]]
    absent = np.asarray((present > 0).toarray() == 0, dtype=np.float64)
    often = absent.sum(axis=0)
    inverse = np.divide(1.0, often, out=np.zeros(len(some)), where=often > 0)
    effect = (p @ absent) * inverse
    saw = 1 - (absent.T @ absent) * inverse  # of the learners without j, those with i
    noise = (p @ p.T) * np.outer(inverse, inverse) * saw * saw.T
    drawn = len(some) * (len(some) - 1)
    scale = units * (units - 1) / drawn if drawn else 0.0
    # A unit by itself is in neither sum: no learner without it saw it.
    return float(scale * L**2 * (effect * effect.T - noise).sum())


def _summed(parts: Floats, place: Ints) -> Floats:
    """Sum the parts of the rows of every unit, shape (units, L)."""
    n_units, r = int(place.max()) + 1, len(place)
    units = sparse.csr_array((np.ones(r), (place, np.arange(r))), (n_units, r))
    return np.asarray(units @ parts.T)
