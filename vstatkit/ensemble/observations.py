"""Where a new observation will fall: limits made of out-of-bag errors."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from scipy import sparse

from vstatkit._typing import Floats
from vstatkit.ensemble.errors import Errors
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.conformal import lower_quantile, upper_quantile
from vstatkit.sampling.design import SubsampleDesign

Limits = tuple[Floats, Floats]
"""Lower and upper limits of new observations, each of shape (m,)."""

HELD_DRAWS = 16_000_000
"""Most draws that are held while points are taken piece by piece."""

DRAWN_AT_ONCE = 1_000_000
"""Draws that are counted at a time."""

ARRAYS_OF_A_PIECE = 5
"""Arrays of errors times points that are held for a piece of the points."""


def local_limits(
    errors: Errors, mean: Floats, expected: Floats, alpha: float
) -> Limits | None:
    r"""Scale out-of-bag errors by what is to be expected at each point.

    Parameters
    ----------
    errors : Errors
        With their expected sizes.
    mean, expected : ndarray of shape (m,)
        Predictions, and the absolute errors that are expected of them.
    alpha : float
        One minus the coverage.

    Returns
    -------
    tuple of ndarray, or None
        None where there are too few units for the level.

    Notes
    -----
    With out-of-bag residuals :math:`r_i`, expected absolute residuals
    :math:`\hat\sigma_{-i}(x_i)` by trees that did not see unit i, and the quantiles
    :math:`q` of their ratios at the levels :math:`\alpha/2` and
    :math:`1 - \alpha/2` (see `upper_quantile`), the limits are

    .. math:: \hat\mu(x) + q \, \hat\sigma(x) .

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), Journal of the American
    Statistical Association 113, section 5.2, doi:10.1080/01621459.2017.1307116;
    Johansson, Bostrom, Lofstrom and Linusson (2014), Machine Learning 97,
    doi:10.1007/s10994-014-5453-0 (out-of-bag calibration).
    """
    ratios = errors.sizes / cast("Floats", errors.expected)
    low = lower_quantile(ratios, errors.masses, alpha / 2)
    high = upper_quantile(ratios, errors.masses, alpha / 2)
    if low is None or high is None:
        return None
    return mean + low * expected, mean + high * expected


def jackknife_limits(
    errors: Errors,
    predictor: Predictor,
    design: SubsampleDesign,
    X: Floats,
    alpha: float,
) -> Limits | None:
    r"""Compute the jackknife+ after bootstrap, piece after piece of the points.

    Parameters
    ----------
    errors : Errors
        Residuals, each with its unit.
    predictor : Predictor
        Predicts with every learner.
    design : SubsampleDesign
        Which units each learner saw.
    X : ndarray of shape (m, p)
        Points.
    alpha : float
        One minus the coverage that is aimed at; at least `1 - 2 alpha` is guaranteed.

    Notes
    -----
    With :math:`\hat\mu_{-i}` the mean of the learners that did not see observation i
    (nor its cluster) and :math:`R_i = |y_i - \hat\mu_{-i}(x_i)|`, the limits are the
    :math:`\lfloor \alpha (n + 1) \rfloor`-th smallest of
    :math:`\hat\mu_{-i}(x) - R_i` and the
    :math:`\lceil (1 - \alpha) (n + 1) \rceil`-th smallest of
    :math:`\hat\mu_{-i}(x) + R_i`.

    References
    ----------
    Kim, Xu and Barber (2020), NeurIPS 33, arXiv:2002.09025.
    """
    if upper_quantile(errors.sizes, errors.masses, alpha) is None:
        return None
    seen = _Seen(design, len(predictor.learners), errors)
    R = np.abs(errors.sizes)[:, None]
    pieces = []
    for values in predictor.chunks(X, ARRAYS_OF_A_PIECE * len(R)):
        without = seen.means_without(values)
        low = lower_quantile(without - R, errors.masses, alpha)
        high = upper_quantile(without + R, errors.masses, alpha)
        pieces.append((low, high))
    low, high = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return low, high


class _Seen:
    """Which learners saw the units of errors.

    Parameters
    ----------
    design : SubsampleDesign
        Draws the units again.
    B : int
        Learners.
    errors : Errors
        Each with its unit.
    """

    def __init__(self, design: SubsampleDesign, B: int, errors: Errors) -> None:
        self._design, self._B = design, B
        self._units, self._place = np.unique(errors.units, return_inverse=True)
        weights = design.weights(0, B)
        self._weights = np.ones(B) if weights is None else weights
        few = B * min(design.n, design.k) <= HELD_DRAWS
        self._held = list(self._drawn()) if few else None
        self._outside = self._weights.sum() - self._sums(np.ones((B, 1)))

    def means_without(self, values: Floats) -> Floats:
        """Average the learners that did not see each error's unit, shape (s, m)."""
        origin = np.average(values, axis=0, weights=self._weights)
        # About their mean the sum of all is zero: those outside have what is missing.
        inside = self._sums(values - origin)
        means = origin - inside / self._outside
        return np.asarray(means[self._place])

    def _sums(self, values: Floats) -> Floats:
        """Sum weighted values of the learners that saw each unit."""
        total = np.zeros((self._units.size, values.shape[1]))
        weighted = values * self._weights[:, None]
        for first, present in self._held or self._drawn():
            total += present.T @ weighted[first : first + present.shape[0]]
        return total

    def _drawn(self) -> Iterator[tuple[int, Any]]:
        """Draw the units of some learners after others."""
        step = max(1, DRAWN_AT_ONCE // self._design.k)
        for first in range(0, self._B, step):
            counts = self._design.sparse_counts(first, min(first + step, self._B))
            present = sparse.csr_array(counts)[:, self._units]
            present.sum_duplicates()
            present.eliminate_zeros()
            present.data = np.ones(present.data.size)
            yield first, present


def class_thresholds(
    errors: Errors, n_classes: int, alpha: float, *, by_class: bool
) -> Floats:
    r"""Find how probable a class must be to be one of those that may be observed.

    Parameters
    ----------
    errors : Errors
        Of observed classes.
    n_classes : int
        Number K of classes.
    alpha : float
        One minus the coverage.
    by_class : bool
        Whether the coverage must hold within every class.

    Returns
    -------
    ndarray of shape (K,)
        Least probability; NaN where there are too few units for the level.

    Notes
    -----
    One minus the quantile at :math:`1 - \alpha` of :math:`1 - \hat p_{y_i, -i}(x_i)`,
    the out-of-bag probability that an observation has another class than it has: over
    all observations, or over those of a class. The sets that hold all classes at
    least as probable are the smallest of this coverage, if the probabilities are
    right.

    References
    ----------
    Sadinle, Lei and Wasserman (2019), Journal of the American Statistical Association
    114, doi:10.1080/01621459.2017.1395341.
    """
    least = np.full(n_classes, np.nan)
    for c in range(n_classes):
        chosen = errors.codes == c if by_class else np.ones(len(errors.sizes), bool)
        masses = errors.masses[chosen]
        if masses.size and by_class:
            units = np.unique(errors.units[chosen]).size
            masses = masses * (units / masses.sum())
        found = upper_quantile(errors.sizes[chosen], masses, alpha)
        if found is not None:
            least[c] = 1 - found
    return least
