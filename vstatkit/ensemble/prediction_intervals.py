"""Intervals for new observations, from out-of-bag residuals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.conformal import lower_quantile, unit_masses, upper_quantile
from vstatkit.kernels.base import OutOfBag
from vstatkit.kernels.residual_trees import stored_kernel
from vstatkit.kernels.tree import StoredTreeKernel, tree_kernel
from vstatkit.sampling.design import IidDesign, SubsampleDesign
from vstatkit.sampling.registry import subsample_size
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.text import short_repr

N_TREES = 64  # trees of the forest
LEAF = 10  # least observations in a leaf
LEAST_SPREAD = 0.05  # smallest expected error, as a share of the mean error
LEAST_UNITS = 4  # units below which the expected error is taken to be constant


@dataclass(frozen=True)
class ResidualScale:
    """The expected absolute error as a function of the predictors."""

    kernel: StoredTreeKernel  # predicts with the trees
    trees: list[Any]  # the trees; empty if the expected error is constant
    least: float  # least expected error

    def at(self, X: Floats, n_jobs: int | None = None) -> Floats:
        """Predict the error at rows of the design matrix, shape (rows,)."""
        if not self.trees:
            return np.full(len(X), self.least)
        forest = Predictor(self.kernel, self.trees, None, None, n_jobs)
        return np.maximum(forest.mean(X), self.least)


def fit_residual_scale(
    X: Floats,
    sizes: Floats,
    units: Ints,
    *,
    weights: Floats | None,
    levels: Sequence[int] | None,
    seed: int,
    n_jobs: int | None = None,
) -> tuple[ResidualScale, Floats]:
    """Fit a forest that predicts the size of the errors.

    The absolute errors `sizes`, shape (s,), are known at rows X, shape (s, p), each
    with its unit; units are drawn whole. See `tree_kernel` for `levels`. The trees have
    streams of their own, from the `seed` of the ensemble. Return, besides, the expected
    errors of the rows themselves, by trees that did not see their unit.

    Notes
    -----
    Trees on `ceil(n**0.8)` units drawn with replacement, with leaves of ten rows or
    more; all columns are tried at every split. Expected errors are at least a twentieth
    of their mean, because errors that are zero by chance do not predict new ones.
    """
    names, codes = np.unique(units, return_inverse=True)
    n = names.size
    mean = float(np.average(sizes, weights=weights))
    least = LEAST_SPREAD * mean if mean > 0 else 1.0
    options = {"min_samples_leaf": LEAF}
    kernel = tree_kernel(
        "tree", X, sizes, options=options, weights=weights, levels=levels
    )
    stored = stored_kernel(kernel)
    if n < LEAST_UNITS or mean == 0:
        constant = mean if mean > 0 else 1.0
        return ResidualScale(stored, [], constant), np.full(len(sizes), constant)
    own_seed = int(stream(seed, 0, Purpose.SPREAD).integers(2**63))
    design = IidDesign(n, subsample_size(None, n), True, own_seed)
    clusters = None if n == len(sizes) else codes
    task = Task(kernel, design, X[:1], clusters, keep=True, most_oob=None)
    forest = evaluate(task, 0, N_TREES, n_jobs=n_jobs, progress=False)
    predicted = cast("OutOfBag", forest.oob).mean[:, 0]
    # It is very unlikely that all trees saw a unit.
    expected = np.where(np.isfinite(predicted), predicted, mean)
    return ResidualScale(stored, forest.learners, least), np.maximum(expected, least)


@dataclass(frozen=True)
class OutOfBagErrors:
    """Out-of-bag errors of the observations that have one."""

    # (s,): residuals; for classes one minus the probability of the observed class
    sizes: Floats
    units: Ints  # (s,): unit of the design that each belongs to
    masses: Floats  # (s,): how much each counts; a unit one on average
    codes: Ints | None = None  # (s,): observed classes, as codes; None for numbers
    expected: Floats | None = None  # (s,): absolute errors, by trees without the unit
    spread: ResidualScale | None = None  # predicts the size of errors elsewhere

    __repr__ = short_repr

    @property
    def n_units(self) -> int:
        """Number of units that the errors belong to."""
        return int(np.unique(self.units).size)


def collect_errors(
    scores: Scores, kernel: Any, clusters: Ints | None, *, seed: int, n_jobs: int | None
) -> OutOfBagErrors | None:
    """Collect out-of-bag errors, and fit their size as a function of the predictors.

    The kernel's design matrix `X`, `weights` and `levels` are used if it has them;
    without a matrix the size of errors is not fitted. `clusters` has the unit of every
    observation. Observations with zero weight are left out. There are no errors if
    their rows are unknown.
    """
    rows = scores.rows
    if rows is None or rows.size == 0:
        return None
    sizes = scores.residuals if scores.shares is None else 1 - scores.shares
    codes, weights = scores.codes, getattr(kernel, "weights", None)
    if not isinstance(weights, np.ndarray):  # other kernels may have other weights
        weights = None
    else:
        counted = weights[rows] > 0
        rows, sizes = rows[counted], sizes[counted]
        codes = None if codes is None else codes[counted]
        weights = weights[rows]
        if rows.size == 0:
            return None
    units = rows if clusters is None else clusters[rows]
    masses, X = unit_masses(units, weights), getattr(kernel, "X", None)
    if codes is not None or not isinstance(X, np.ndarray):
        return OutOfBagErrors(sizes, units, masses, codes)
    spread, expected = fit_residual_scale(
        np.asarray(X[rows], dtype=np.float64),
        np.abs(sizes),
        units,
        weights=weights,
        levels=getattr(kernel, "levels", None),
        seed=seed,
        n_jobs=n_jobs,
    )
    return OutOfBagErrors(sizes, units, masses, None, expected, spread)


# Lower and upper limits of new observations, each of shape (m,).
Limits = tuple[Floats, Floats]
# Most draws that are held in memory while chunks of points are computed.
HELD_DRAWS = 16_000_000
DRAWN_AT_ONCE = 1_000_000  # draws that are counted at a time
# Arrays of errors times points that are held for a piece of the points.
ARRAYS_OF_A_PIECE = 5


def local_limits(
    errors: OutOfBagErrors, mean: Floats, expected: Floats, alpha: float
) -> Limits | None:
    r"""Compute limits from out-of-bag errors, scaled by the expected error at a point.

    The predictions, `mean`, and their `expected` absolute errors have shape (m,); the
    coverage is 1 - alpha. There are no limits if there are too few units for it.

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
    errors: OutOfBagErrors,
    predictor: Predictor,
    design: SubsampleDesign,
    X: Floats,
    alpha: float,
) -> Limits | None:
    r"""Compute the jackknife+ after bootstrap, piece after piece of the points.

    The nominal coverage at points X, shape (m, p), is `1 - alpha`; at least
    `1 - 2 alpha` is guaranteed.

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
    seen = _Membership(design, len(predictor.learners), errors)
    R = np.abs(errors.sizes)[:, None]
    pieces = []
    for values in predictor.chunks(X, ARRAYS_OF_A_PIECE * len(R)):
        without = seen.means_without(values)
        low = lower_quantile(without - R, errors.masses, alpha)
        high = upper_quantile(without + R, errors.masses, alpha)
        pieces.append((low, high))
    low, high = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return low, high


class _Membership:
    """Which of B learners saw the units of errors."""

    def __init__(self, design: SubsampleDesign, B: int, errors: OutOfBagErrors) -> None:
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
        # Around their mean all values sum to zero, which gives the sum outside.
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
    errors: OutOfBagErrors, n_classes: int, alpha: float, *, by_class: bool
) -> Floats:
    r"""Compute the probability from which a class is in the prediction set.

    The coverage is `1 - alpha`, of every class if it is `by_class`. Return the smallest
    probabilities, one for each class; NaN if there are too few units for the level.

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
        bound = upper_quantile(errors.sizes[chosen], masses, alpha)
        if bound is not None:
            least[c] = 1 - bound
    return least
