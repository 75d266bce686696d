"""How much of an ensemble's variance is beyond the first order.

Hoeffding's decomposition splits the variance of an ensemble into orders,
`V = V_1 + V_2 + ...`: what single observations explain, what pairs add, and so
on. The jackknife counts the c-th order c times, `Q_1 = sum c V_c`; pairs of
observations give `Q_2 = sum c (c - 1) / 2 V_c`. Where orders fall geometrically
`V = Q_1 / (1 + rho)` with `rho = Q_2 / Q_1`, which is measured here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats
from vstatkit.kernels.kind import KernelKind
from vstatkit.sampling.counts import count_members, dense
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.showing import short_repr
from vstatkit.variance.noise import positive_mean
from vstatkit.variance.pairs import PairChances, PairSums, pair_chances, sum_pairs

PILOT = 256
"""Learners compared in a first look, which tells how many are needed."""


MOST_LEARNERS = 2000
"""Most learners whose pairs are compared."""


MOST_PRODUCTS = 4_000_000_000
"""Most multiplications for the overlaps of pairs, which bounds the learners."""


DENSE_ENTRIES = 32_000_000
"""Most indicators of presence that are held as they are."""


ENOUGH = 0.75
"""Error of a measured rho, relative to that of the expected one, that is enough."""


HOPELESS = 2.0
"""Error of a measured rho, relative to that of the expected one, that says too
little for its cost."""


@dataclass(frozen=True)
class HigherOrders:
    """What is known of `rho`, the ratio of `Q_2` to `Q_1`.

    Attributes
    ----------
    rho : float
        The value in use: what was measured and what was expected, weighted by
        their precisions.
    error : float
        Standard deviation of what remains unknown about it.
    mc_error : float
        The part of it that other learners would change.
    measured, measured_error : float
        `Q_2 / Q_1` from pairs of learners, pooled over reference values, and its
        Monte Carlo error; NaN where nothing could be measured.
    expected, expected_error : float
        What is expected of such kernels.
    n_learners, n_reference : int
        Learners compared, and values of each that were pooled.
    share : float
        `Q_1` over the variance `zeta_k` of a single learner, what was measured and what
        is typical weighted alike; NaN where it is not known. It says how many learners
        are needed, before a single variance is known at all.
    """

    rho: float
    error: float
    mc_error: float
    measured: float
    measured_error: float
    expected: float
    expected_error: float
    n_learners: int
    n_reference: int
    share: float = np.nan

    __repr__ = short_repr

    @property
    def factor(self) -> float:
        """`V / Q_1`, what the jackknife variance is multiplied by."""
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
    *,
    n_learners: int = 0,
    n_reference: int = 0,
    share: float = np.nan,
) -> HigherOrders:
    """Average what was measured and what was expected, weighted by their precisions.

    A negative `rho`, which no sequence of orders has, counts as zero.
    """
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
    """Share of a learner's variance that is typical of the ensemble's."""
    return min(design.k / design.n, 1.0) / kind.typical_ratio


def likely_share(found: PairSums, typical: float) -> float:
    """Weigh a measured share, `q_1` of standardised values, and the typical one.

    The typical share is uncertain by itself; the answer is positive.
    """
    error = found.q_1_error
    weight = typical**2 / (typical**2 + error**2)
    mean = weight * found.q_1 + (1 - weight) * typical
    return float(positive_mean(np.array(mean), np.array(np.sqrt(weight) * error)))


def expected_orders(design: SubsampleDesign, kind: KernelKind) -> HigherOrders:
    """Say what is expected of a kernel, before its learners are compared."""
    chances = pair_chances(design.n, design.k, replace=design.replace)
    typical = typical_share(design, kind)
    return combine(np.nan, np.nan, kind.expected(chances.one), share=typical)


def most_compared(n: int) -> int:
    """Count the learners of n observations that are compared at most."""
    return min(MOST_LEARNERS, int(np.sqrt(MOST_PRODUCTS / n)))


def measure_orders(
    design: SubsampleDesign,
    B: int,
    values: Callable[[int], Floats],
    kind: KernelKind,
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

    The error falls with the number of learners compared, so a first look at a few of
    them tells how many are needed, or that even all of them would say nothing.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Annals of Statistics
    9. doi:10.1214/aos/1176345462

    Hoeffding (1948), A class of statistics with asymptotically normal distribution,
    Annals of Mathematical Statistics 19. doi:10.1214/aoms/1177730196
    """
    n = design.n
    chances = pair_chances(n, design.k, replace=design.replace)
    prior = kind.expected(chances.one)
    most = min(B, most_compared(n))
    if prior[1] == 0 or n < 4 or most < 3 or min(chances) <= 0:
        return combine(np.nan, np.nan, prior, share=typical_share(design, kind))
    if design.complete:
        return _complete_orders(design, B, values(B), chances)
    L = min(PILOT, most)
    first = values(L)
    found = _compare(design, L, first, chances)
    if most > L and found.outlook * L / most <= HOPELESS * prior[1]:
        needed = L * found.outlook / (ENOUGH * prior[1])
        L = int(np.clip(np.ceil(needed / PILOT) * PILOT, L, most))
        found = _compare(design, L, values(L), chances)
    return combine(
        found.rho,
        found.error,
        prior,
        n_learners=L,
        n_reference=first.shape[1],
        share=likely_share(found, typical_share(design, kind)),
    )


def _compare(
    design: SubsampleDesign, L: int, values: Floats, chances: PairChances
) -> PairSums:
    presence = _indicators(design.counts(0, L))
    return sum_pairs(presence, values, chances)


def _indicators(counts: Counts) -> Any:
    """Mark what is present; sparse counts of many observations stay sparse."""
    if sparse.issparse(counts) and counts.shape[0] * counts.shape[1] > DENSE_ENTRIES:
        return (counts > 0).astype(np.float32)
    return (dense(counts) > 0).astype(np.float32)


def _complete_orders(
    design: SubsampleDesign, B: int, values: Floats, chances: PairChances
) -> HigherOrders:
    """Compare all subsamples, or a draw of them where there are too many."""
    weights = design.weights(0, B)
    weights = np.ones(B) if weights is None else weights
    members = design.members(0, B)
    if B <= MOST_LEARNERS:
        found = sum_pairs(
            _indicators(count_members(members, design.n)), values, chances, weights
        )
        error = 0.0 if found.q_1 > 0 else np.nan
        L = B
    else:
        L = MOST_LEARNERS
        rng = stream(design.seed, 1, Purpose.REFERENCE)
        drawn = rng.choice(B, size=L, p=weights / weights.sum())
        presence = _indicators(count_members(members[drawn], design.n))
        found = sum_pairs(presence, values[drawn], chances)
        error = found.error
    prior = KernelKind.UNKNOWN.expected(chances.one)
    return combine(found.rho, error, prior, n_learners=L, n_reference=values.shape[1])
