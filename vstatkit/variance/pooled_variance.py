r"""Expected sampling variances of forests, from what is well known with few trees.

The jackknife at a point has the Monte Carlo error :math:`\sqrt{2 n} \, s_2`, which
exceeds the variance V(x) itself unless there are very many trees. Two other quantities
are known well with few trees: the variance :math:`\zeta_k(x)` of a single tree, and the
variance A(x) that the prediction would have if all splits were fixed
(`leaf_influence`). The variance is expected to be

.. math::

    V_0(x) = A(x) + \beta \, \zeta_k(x)
    + \gamma \max \{ A(x) - 2 a \, \zeta_k(x), 0 \} , \qquad
    \beta = (c - 1) \, a, \qquad a = \frac{\sum_x A(x)}{\sum_x \zeta_k(x)} ,

with sums over new points, each of which takes its features from several training rows.
The ratio c of V to A at new points is the same for samples of different sizes, but for
a slow drift. It is measured where V is known: as the variance between small forests on
disjoint blocks of the data. :math:`\gamma` makes the sum of :math:`V_0` over training
rows, which are near to the data, equal to that of the jackknife, which is precise
enough once it is summed.

The estimate is the mean of :math:`V_0` and the jackknife V, weighted by precision,

.. math::

    V_w = w V + (1 - w) V_0, \qquad
    w = \frac{(\tau V_0)^2}{(\tau V_0)^2 + s^2} , \qquad
    s^2 = 2 n s_2^2 + 4 s_2 V_0 ,

where :math:`\tau` is the spread of the true variances about the expected ones, relative
to these. With many trees, s and 1 - w tend to zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vstatkit._typing import Floats
from vstatkit.text import short_repr
from vstatkit.variance.formulas import noise_variance

# Relative spread of variances about the expected ones, besides the error of the ratio:
# 0.03 to 0.26 over the points of eight designs.
SPREAD = 0.27
# The drift of the ratio: its logarithm is lower by this, over the root of the number of
# leaves, than for large trees. It was 1 to 5 in designs of 50 to 2,000 rows.
DRIFT = 3.0
# Values of A over the typical one from which a point is near to the data.
NEAR = 2.0
LEAST_RATIO = 0.5  # smallest ratio of the variance to A


@dataclass(frozen=True)
class PooledVariance:
    """What the variances of a forest have in common."""

    ratio: float  # V over A at new points, c
    # Monte Carlo error of the ratio, and of the expected variances, relative to it
    error: float
    typical: float  # A over the variance of a single tree at new points, a
    near: float  # additional part of A at points near to the data, gamma
    spread: float  # relative spread of variances about the expected ones, tau

    __repr__ = short_repr

    def expected(self, fixed: Floats, zeta_k: Floats) -> Floats:
        """Return the expected variances, from A and the variance of single trees.

        They are zero where all trees agree.
        """
        least = 0.1 * self.typical * zeta_k  # A is a difference, and may be negative
        A = np.maximum(fixed, least)
        excess = np.maximum(A - NEAR * self.typical * zeta_k, 0.0)
        far = min(self.ratio, 1.0) * A + self.split * zeta_k
        return np.where(zeta_k > 0, far + self.near * excess, 0.0)

    @property
    def split(self) -> float:
        """The part of the variance of a single tree that is due to its splits, beta."""
        return max(self.ratio - 1.0, 0.0) * self.typical

    def typical_share(self, noise: float, n: int) -> float:
        """Return the weight of the expected variance at a new point.

        `noise` is the Monte Carlo variance of one influence over the variance of a
        single tree, and n the number of units.
        """
        typical = np.array(self.ratio * self.typical)
        square = float(noise_variance(typical, np.array(noise), n))
        return square / (square + float(self.spread * typical) ** 2)


class ExpectedVariance(NamedTuple):
    """Expected variances of m estimates, and how far they are known."""

    variance: Floats  # (m,)
    # (m,): sum of fourth powers of influences over the squared variance
    concentration: Floats
    spread: float  # relative standard deviation of the true variances about them
    error: float  # their relative Monte Carlo error

    @staticmethod
    def join(parts: Sequence["ExpectedVariance"]) -> "ExpectedVariance":
        """Join the expected variances of several sets of estimates."""
        return parts[0]._replace(
            variance=np.concatenate([part.variance for part in parts]),
            concentration=np.concatenate([part.concentration for part in parts]),
        )


def correct_drift(ratio: float, on_blocks: float, leaves: float) -> float:
    """Extrapolate the ratio from trees on blocks to trees with more leaves.

    >>> round(correct_drift(2.0, 400, 10_000), 3)
    2.255
    """
    return float(ratio * np.exp(DRIFT * (on_blocks**-0.5 - leaves**-0.5)))
