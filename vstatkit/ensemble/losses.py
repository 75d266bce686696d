"""Out-of-bag losses with a predictor and with copies of it, and their difference."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.refitted import Reader
from vstatkit.sampling.design import SubsampleDesign

CHUNK_VALUES = 8_000_000
"""Predictions held at a time: learners x rows x tables x outputs."""


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
    by_learner : ndarray of shape (L,)
        What the mean of `saved` would change by if all learners were like one of
        them, to the first order; its mean is zero.
    """

    base: Floats
    saved: Floats
    by_learner: Floats


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
    gains. Summed over the rows, and over full and reduced, this is the learner's part.
    """
    n_outputs = reduced.task.kernel.n_outputs  # type: ignore[union-attr]
    L, tables = len(full.learners), 1 + len(reduced.tables)
    step = max(1, CHUNK_VALUES // (L * tables * n_outputs))
    base, saved = np.empty(len(rows)), np.empty(len(rows))
    part = np.zeros(L)
    for first in range(0, len(rows), step):
        place = slice(first, first + step)
        own, weights = full.outside(rows[place])
        values = np.concatenate([own, reduced.outside(rows[place])[0]], axis=2)
        target = _targets(y[rows[place]], n_classes)[:, None]
        losses, parts = _losses(values, weights, target)
        base[place] = losses[:, 0]
        saved[place] = losses[:, 1:].mean(axis=1) - losses[:, 0]
        part += parts[:, 1:].mean(axis=1) - parts[:, 0]
    known = np.isfinite(base).sum()
    return Saved(base, saved, L * part / max(known, 1))


def _losses(values: Floats, weights: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Losses of rows, shape (r, tables), and each learner's part, (L, tables)."""
    times = weights.sum(axis=0)
    often = np.where(times > 0, times, np.nan)[:, None, None]
    mean = values.sum(axis=0) / often
    away = target - mean
    away_known = np.where(np.isfinite(away), away, 0.0)
    slope = -2 * away_known / np.where(times > 0, times, 1.0)[:, None, None]
    centre = np.where(np.isfinite(mean), mean, 0.0)
    parts = np.einsum("brtc,rtc->bt", values, slope)
    parts -= np.einsum("br,rtc,rtc->bt", weights, centre, slope)
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
    the mean, and :math:`t_j = -\bar g_{(-j)}` what it does through the learners that
    saw it, :math:`\bar g_{(-j)}` being the mean part of those that did not. Then

    .. math::

        \operatorname{var} = \frac{n}{n - 1} \sum_j (r_j^2 + r_j t_j) + \zeta_g / L .

    The first term is the variance that the rows have if the learners are given. Under
    the null :math:`d_i` is nearly a sum over the rows j that learners of row i saw, of
    products of the errors of i and j. The same product is in :math:`d_j`, and the sum
    of their covariances is the second term: the jackknife :math:`\sum_j (r_j + t_j)^2`
    would count it twice. :math:`\zeta_g` is the variance of the parts, so that the last
    term is what other learners would change. The standard error is never below that of
    the rows by themselves.
    """
    known = np.isfinite(found.saved)
    saved, units = found.saved[known], units[known]
    n, r = design.n, len(saved)
    mean = float(saved.mean())
    rows = np.bincount(units, saved - mean, minlength=n) / r
    there = len(np.unique(units))
    factor = there / max(there - 1, 1)
    own = factor * float(rows @ rows)
    variance = own
    if through:
        g = found.by_learner
        both = rows - _left_out(g, design)
        variance = factor * float(rows @ both) + float(g.var(ddof=1)) / len(g)
    error = float(np.sqrt(max(variance, own)))
    return MeanSaved(mean, error, float(np.sqrt(own)), there - 1)


def _left_out(g: Floats, design: SubsampleDesign) -> Floats:
    """Mean over the learners without each unit, shape (n,); zero if there are none."""
    L = len(g)
    present = design.sparse_counts(0, L) > 0
    absent = L - np.asarray(present.sum(axis=0)).ravel()
    missing = g.sum() - present.T.astype(np.float64) @ g
    mean = np.divide(missing, absent, out=np.zeros(design.n), where=absent > 0)
    return np.asarray(mean)
