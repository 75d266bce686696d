"""Variance beyond the first order of Hoeffding's decomposition.

The decomposition splits the variance of an ensemble into orders, `V = V_1 + V_2 + ...`:
the part of single observations, the part of pairs, and so on. The jackknife counts the
c-th order c times, `Q_1 = sum c V_c`; pairs of observations give
`Q_2 = sum c (c - 1) / 2 V_c`. If orders decrease geometrically,
`V = Q_1 / (1 + rho)` with `rho = Q_2 / Q_1`, which is estimated here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import SubsampleDesign, count_members, to_dense
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.text import short_repr
from vstatkit.variance.formulas import positive_mean

BLOCK = 256  # learners in a block that is compared with all others
MOST_REFERENCES = 300  # most reference values
PILOT = 256  # learners in the first comparison, which determines how many are needed
MOST_LEARNERS = 2000  # most learners whose pairs are compared
# Most multiplications for the overlaps of pairs, which bounds the learners.
MOST_PRODUCTS = 4_000_000_000
DENSE_ENTRIES = 32_000_000  # most indicators of presence in a dense array
# Sufficient error of a measured rho, relative to that of the expected one.
ENOUGH = 0.75
# Relative error of a measured rho above which measuring is not worth its cost.
HOPELESS = 2.0


class PairChances(NamedTuple):
    """Chances that observations are in a subsample."""

    one: float  # one observation is present
    both: float  # both of two are present
    split: float  # the first of two is present and the second absent
    none: float  # neither of two is present


def pair_chances(n: int, k: int, *, replace: bool) -> PairChances:
    """Compute the chances that observations are in a subsample of k out of n."""
    if replace:
        absent, none = (1 - 1 / n) ** k, (1 - 2 / n) ** k
        return PairChances(1 - absent, 1 - 2 * absent + none, absent - none, none)
    both, none = k * (k - 1) / (n * (n - 1)), (n - k) * (n - k - 1) / (n * (n - 1))
    return PairChances(k / n, both, k * (n - k) / (n * (n - 1)), none)


def pair_weights(
    overlap: Floats, size: Floats, other: Floats, n: int, chances: PairChances
) -> tuple[Floats, Floats]:
    """Compute weights of products of two learners' values in `Q_1` and `Q_2`.

    The subsamples have `size` and `other` distinct observations out of n, and share
    `overlap` of them.

    `Q_1` is a sum over observations of squared differences between the mean of the
    learners that hold it and of those that do not, `Q_2` a sum over pairs of squared
    second differences. Each square is a double sum over learners, whose weights depend
    on how many observations are in both subsamples, in one of them, or in neither. With
    subsamples of fixed size, and all of them, the c-th order has the coefficient
    `c (n-1)/(n-c)` in `Q_1` and `c (c-1)/2 (n-2)(n-3)/((n-c)(n-c-1))` in `Q_2`.
    """
    one, both, split, none = chances
    sizes = size + other
    # Both polynomials come from counting observations that are in both subsamples
    # (overlap), in one (sizes - 2 overlap) and in neither (n - sizes + overlap).
    single = 1 / one + 1 / (1 - one)
    singles = overlap * single**2 - sizes * (single / (1 - one))
    singles += n / (1 - one) ** 2
    in_both, in_one, in_none = 1 / both, 1 / split, 1 / none
    second = (in_both + 2 * in_one + in_none) ** 2 / 2
    mixed = -(in_both + 2 * in_one + in_none) * (in_one + in_none)
    slope = (
        -(in_both**2) / 2
        + n * in_one**2
        + in_both * in_none
        + 2 * n * in_one * in_none
        + (2 * n - 1) * in_none**2 / 2
    )
    tilt = -in_both * in_none / 2 - n * in_one * in_none - (2 * n - 1) * in_none**2 / 2
    pairs = overlap * (second * overlap + mixed * sizes + slope)
    pairs += sizes * (sizes * (in_none * (in_both + in_none) / 2 + in_one * in_none))
    pairs += sizes * tilt
    pairs += size * other * (in_one**2 - in_both * in_none)
    pairs += n * (n - 1) * in_none**2 / 2
    return (n - 1) / n * one**2 * singles, (n - 3) / (n - 1) * both**2 * pairs


class PairSums(NamedTuple):
    """`Q_1` and `Q_2`, pooled, and the terms of the error of their ratio."""

    q_1: float
    q_2: float
    rows: Floats  # (2, L): the parts of the two from each learner
    # (3,): mean squares of the terms of `Q_1`, of the products of the terms of both,
    # and of the terms of `Q_2`
    squares: Floats

    @property
    def rho(self) -> float:
        """Ratio of the second to the first; NaN if the first is not positive."""
        return self.q_2 / self.q_1 if self.q_1 > 0 else np.nan

    @property
    def error(self) -> float:
        """Monte Carlo error of `rho`: a U-statistic's over pairs of learners."""
        return self._error_of(-self.rho, 1.0) / self.q_1 if self.q_1 > 0 else np.nan

    def likely_share(self, typical: float) -> float:
        """Average `q_1`, the measured share of standardised values, and a typical one.

        The standard error of the typical share is the share itself.
        """
        error = self.share_error
        weight = typical**2 / (typical**2 + error**2)
        mean = weight * self.q_1 + (1 - weight) * typical
        return float(positive_mean(np.array(mean), np.array(np.sqrt(weight) * error)))

    @property
    def share_error(self) -> float:
        """Monte Carlo error of `q_1`."""
        return self._error_of(1.0, 0.0)

    def _error_of(self, first: float, second: float) -> float:
        """Monte Carlo error of a combination of the two sums."""
        L = self.rows.shape[1]
        pair = float(np.array([first**2, 2 * first * second, second**2]) @ self.squares)
        row = float((first * self.rows[0] + second * self.rows[1]).var(ddof=1))
        single = max(row - pair / (L - 1), 0.0)
        return float(np.sqrt(4 * single / L + 2 * pair / (L * (L - 1))))

    @property
    def outlook(self) -> float:
        """Error that falls with the number of learners, for any sign of `Q_1`."""
        L = self.rows.shape[1]
        first, _, second = np.sqrt(2 * np.abs(self.squares) / (L * (L - 1)))
        return float(second / max(self.q_1, first)) if first > 0 else np.inf


def sum_pairs(
    presence: Any,
    values: Floats,
    chances: PairChances,
    weights: Floats | None = None,
    *,
    standardise: bool = True,
) -> PairSums:
    """Compare all pairs of learners with reference values (L, r), block after block.

    `presence` are indicators (L, n) in single precision, dense or sparse: overlaps are
    whole numbers, which it holds exactly. `weights` are those of the learners of a
    complete design, in which a learner is compared with itself too: a mean over all
    subsamples has no Monte Carlo bias. Unless every value is to be standardised, they
    all are divided by one number, so that their mean variance is one.
    """
    L, n = presence.shape
    share = np.full(L, 1.0) if weights is None else weights * (L / weights.sum())
    h = _standardise(values, share)
    if not standardise:
        deviation = values[:, np.ptp(values, axis=0) > 0].std(axis=0)
        h = h * (deviation / np.sqrt(np.mean(deviation**2)))
    size = np.asarray(presence.sum(axis=1, dtype=np.float64))
    rows, squares = np.zeros((2, L)), np.zeros(3)
    for start in range(0, L, BLOCK):
        stop = min(start + BLOCK, L)
        block = slice(start, stop)
        # Pairs are compared once: with learners of the block and after it.
        overlap = to_dense(presence[block] @ presence[start:].T).astype(np.float64)
        terms = pair_weights(overlap, size[block, None], size[start:], n, chances)
        product = h[block] @ h[start:].T
        if weights is None:
            np.einsum("ii->i", product[:, : stop - start])[:] = 0.0
        for row, term in zip(rows, terms, strict=True):
            np.multiply(term, product, out=term)
            row[block] += term.sum(axis=1)
            row[stop:] += term[:, stop - start :].sum(axis=0)
        squares += 2 * _products(*terms)
        squares -= _products(*(term[:, : stop - start] for term in terms))
    pairs = L * (L - 1) if weights is None else L * L
    q_1, q_2 = rows.sum(axis=1) / pairs
    return PairSums(float(q_1), float(q_2), rows / (L - 1), squares / pairs)


def compare_presence(
    design: SubsampleDesign, L: int, values: Floats, *, standardise: bool = True
) -> PairSums:
    """Compare the pairs of the first L learners, with values of shape (L, r)."""
    chances = pair_chances(design.n, design.k, replace=design.replace)
    presence = _indicators(design.counts(0, L))
    return sum_pairs(presence, values, chances, standardise=standardise)


def _products(first: Floats, second: Floats) -> Floats:
    """Sum the squares of the first, the products, and the squares of the second."""
    a, b = first.ravel(), second.ravel()
    return np.array([a @ a, a @ b, b @ b])


def _standardise(values: Floats, share: Floats) -> Floats:
    """Centre and scale the columns that vary."""
    centred = values - values[0]
    centred = centred - np.average(centred, axis=0, weights=share)
    spread = np.abs(centred).max(axis=0, initial=0.0)
    live = spread > 0
    scaled = centred[:, live] / spread[live]
    scaled /= np.sqrt(np.average(scaled**2, axis=0, weights=share))
    scaled *= share[:, None] / np.sqrt(max(scaled.shape[1], 1))
    return np.asarray(scaled)


def spread_columns(m: int) -> Ints:
    """Choose reference values among m, evenly."""
    return np.unique(np.linspace(0, m - 1, min(m, MOST_REFERENCES)).astype(np.int64))


def reference_rows(X: Floats, seed: int, n_outputs: int = 1) -> Floats:
    """Draw rows that resemble the data but are not in it, from the seed alone.

    Each takes every feature from one of two rows, since learners fit their own rows.
    """
    rows = reference_places(len(X), X.shape[1], seed, n_outputs)
    return np.asarray(np.take_along_axis(X, rows, axis=0))


def reference_places(n: int, p: int, seed: int, n_outputs: int = 1) -> Ints:
    """Draw the row that each feature of every reference row is taken from, (m, p)."""
    rng = stream(seed, 0, Purpose.REFERENCE)
    m = max(1, MOST_REFERENCES // n_outputs)
    first, second = rng.integers(n, size=(2, m, 1))
    return np.asarray(np.where(rng.random((m, p)) < 0.5, first, second))


@dataclass(frozen=True)
class HigherOrders:
    """An estimate of `rho`, the ratio of `Q_2` to `Q_1`."""

    # The value in use: the measured and the expected one, weighted by their precisions
    rho: float
    error: float  # its standard error
    mc_error: float  # the Monte Carlo part of the error
    # `Q_2 / Q_1` from pairs of learners, pooled over reference values, and its Monte
    # Carlo error; NaN if nothing was measured
    measured: float
    measured_error: float
    expected: float  # the value that is expected for such kernels
    expected_error: float  # its uncertainty
    n_learners: int  # learners compared
    n_reference: int  # values of each that were pooled
    # `Q_1` over the variance `zeta_k` of a single learner, measured and typical value
    # weighted in the same way; NaN if unknown. It determines how many learners are
    # needed before a variance is known.
    share: float = np.nan

    __repr__ = short_repr

    @property
    def factor(self) -> float:
        """`V / Q_1`, the factor of the jackknife variance."""
        return 1 / (1 + self.rho)

    @property
    def relative_error(self) -> float:
        """Uncertainty of the factor, relative to it."""
        return self.error * self.factor

    @property
    def relative_mc_error(self) -> float:
        """Monte Carlo error of the factor, relative to it."""
        return self.mc_error * self.factor


def combine(
    measured: float,
    measured_error: float,
    prior: tuple[float, float],
    n_learners: int = 0,
    n_reference: int = 0,
    *,
    share: float = np.nan,
) -> HigherOrders:
    """Average measured and expected value by their precisions; none is negative."""
    expected, spread = prior
    if np.isfinite(measured_error) and spread + measured_error > 0:
        weight = spread**2 / (spread**2 + measured_error**2)
        rho = weight * measured + (1 - weight) * expected
    else:
        weight, rho = 0.0, expected
    return HigherOrders(
        rho=max(rho, 0.0),
        error=float(np.sqrt(1 - weight) * spread),
        mc_error=weight * measured_error if weight > 0 else 0.0,
        measured=measured,
        measured_error=measured_error,
        expected=expected,
        expected_error=spread,
        n_learners=n_learners,
        n_reference=n_reference,
        share=share,
    )


def typical_share(design: SubsampleDesign, kind: KernelKind) -> float:
    """Return the typical variance of an ensemble, relative to that of a learner."""
    return min(design.k / design.n, 1.0) / kind.typical_ratio


def expected_orders(design: SubsampleDesign, kind: KernelKind) -> HigherOrders:
    """Return the expected orders of a kernel, before its learners are compared."""
    chances = pair_chances(design.n, design.k, replace=design.replace)
    typical = typical_share(design, kind)
    return combine(np.nan, np.nan, kind.expected_rho(chances.one), share=typical)


def most_learners_compared(n: int) -> int:
    """Return the most learners on n observations that are compared."""
    return min(MOST_LEARNERS, int(np.sqrt(MOST_PRODUCTS / n)))


def measure_orders(
    design: SubsampleDesign, B: int, values: Callable[[int], Floats], kind: KernelKind
) -> HigherOrders:
    r"""Measure rho on pairs of learners, if that is worth its cost.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    B : int
        Number of learners.
    values : callable
        Returns the reference values of the first L learners, shape (L, r).
    kind : KernelKind
        What is known of the kernel.

    Notes
    -----
    Let :math:`Z_{bi}` say whether observation i is present in subsample b, which has
    probability p; both of two observations are present with probability
    :math:`p_{11}`, only the first with :math:`p_{10}`, and neither with
    :math:`p_{00}`. With the values :math:`\tilde h_b` of L learners, centred and
    scaled to variance one, products being averaged over the reference values,

    .. math::

        Q_1 &= \frac{n - 1}{n} \, \frac{p^2}{L (L - 1)} \sum_{b \ne b'}
        \tilde h_b \tilde h_{b'} \sum_i d_{bi} d_{b'i}, \qquad
        d_{bi} = \frac{Z_{bi}}{p} - \frac{1 - Z_{bi}}{1 - p}, \\
        Q_2 &= \frac{n - 3}{n - 1} \, \frac{p_{11}^2}{L (L - 1)} \sum_{b \ne b'}
        \tilde h_b \tilde h_{b'} \sum_{i < j} e_{bij} e_{b'ij}, \\
        e_{bij} &= \frac{Z_{bi} Z_{bj}}{p_{11}} - \frac{Z_{bi} (1 - Z_{bj})
        + (1 - Z_{bi}) Z_{bj}}{p_{10}} + \frac{(1 - Z_{bi}) (1 - Z_{bj})}{p_{00}}, \\
        \hat\rho &= Q_2 / Q_1, \qquad V = Q_1 / (1 + \rho) .

    The measured :math:`\hat\rho`, with error s, and the value :math:`\rho_0` that is
    expected of the kernel, with error :math:`s_0`, are averaged with the weights
    :math:`s_0^2 / (s_0^2 + s^2)` and :math:`s^2 / (s_0^2 + s^2)`; see `combine`. In a
    complete design a learner is compared with itself too.

    The error falls with the number of learners compared, so a first comparison of a few
    determines how many are needed, or that even all of them are too few.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Annals of Statistics
    9. doi:10.1214/aos/1176345462

    Hoeffding (1948), A class of statistics with asymptotically normal distribution,
    Annals of Mathematical Statistics 19. doi:10.1214/aoms/1177730196
    """
    n = design.n
    chances = pair_chances(n, design.k, replace=design.replace)
    prior = kind.expected_rho(chances.one)
    most = min(B, most_learners_compared(n))
    if prior[1] == 0 or n < 4 or most < 3 or min(chances) <= 0:
        return expected_orders(design, kind)
    if design.complete:
        return _complete_orders(design, B, values(B), chances)
    L = min(PILOT, most)
    first = values(L)
    sums = compare_presence(design, L, first)
    if most > L and sums.outlook * L / most <= HOPELESS * prior[1]:
        needed = L * sums.outlook / (ENOUGH * prior[1])
        L = int(np.clip(np.ceil(needed / PILOT) * PILOT, L, most))
        sums = compare_presence(design, L, values(L))
    share = sums.likely_share(typical_share(design, kind))
    return combine(sums.rho, sums.error, prior, L, first.shape[1], share=share)


def _indicators(counts: Counts) -> Any:
    """Convert counts to indicators; large sparse counts stay sparse."""
    if sparse.issparse(counts) and counts.shape[0] * counts.shape[1] > DENSE_ENTRIES:
        return (counts > 0).astype(np.float32)
    return (to_dense(counts) > 0).astype(np.float32)


def _complete_orders(
    design: SubsampleDesign, B: int, values: Floats, chances: PairChances
) -> HigherOrders:
    """Compare all subsamples, or a random sample of them if there are too many."""
    weights = design.weights(0, B)
    weights = np.ones(B) if weights is None else weights
    members, L = design.members(0, B), min(B, MOST_LEARNERS)
    if L == B:
        presence = _indicators(count_members(members, design.n))
        sums = sum_pairs(presence, values, chances, weights)
        error = 0.0 if sums.q_1 > 0 else np.nan
    else:
        rng = stream(design.seed, 1, Purpose.REFERENCE)
        drawn = rng.choice(B, size=L, p=weights / weights.sum())
        presence = _indicators(count_members(members[drawn], design.n))
        sums = sum_pairs(presence, values[drawn], chances)
        error = sums.error
    prior = KernelKind.UNKNOWN.expected_rho(chances.one)
    return combine(sums.rho, error, prior, L, values.shape[1])
