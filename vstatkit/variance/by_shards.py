"""The variance between shards: replicates, not a jackknife."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.counts import dense
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.estimator import Source, VarianceEstimator
from vstatkit.variance.formulas import group_means
from vstatkit.variance.groups import checked_groups
from vstatkit.variance.noise import noise_variance
from vstatkit.variance.orders import HigherOrders


class ShardMoments(NamedTuple):
    """What the learners of disjoint shards say; q is m, or (m, m) for covariances.

    Attributes
    ----------
    n_shards : int
        Number G of shards.
    per_shard : int
        Learners L of each.
    between : ndarray of shape q
        Variance `S**2` of the shards' means.
    within : ndarray of shape q
        Variance `w` of the learners of one shard, pooled over the shards.
    """

    n_shards: int
    per_shard: int
    between: Floats
    within: Floats


def shard_moments(values: Floats, groups: Ints, *, joint: bool = False) -> ShardMoments:
    r"""Compute the variances between and within shards.

    Parameters
    ----------
    values : ndarray of shape (B, m)
        Kernel values.
    groups : ndarray of shape (B,)
        Shard of every learner; every shard has as many.
    joint : bool
        Whether covariances are wanted.

    Notes
    -----
    With the mean :math:`\bar h_g` of the L learners of shard g, out of G shards,

    .. math::

        S^2 = \frac{1}{G - 1} \sum_g (\bar h_g - \bar h)^2, \qquad
        w = \frac{1}{G (L - 1)} \sum_g \sum_{b \in g} (h_b - \bar h_g)^2 .

    Shards share no observation, so that their means are independent and identically
    distributed: :math:`S^2 / G` is unbiased for the variance of :math:`\bar h`, what
    random draws of subsamples add to it included, for any kernel and any L.
    :math:`w / (G L)` of it goes away with more learners.
    """
    centred = values - values.mean(axis=0)
    means = group_means(centred, groups)
    residuals = centred - means[groups]
    G, B = len(means), len(values)
    between = _products(means, joint) / (G - 1)
    within = _products(residuals, joint) / (B - G)
    return ShardMoments(G, B // G, between, within)


def _products(a: Floats, joint: bool) -> Floats:
    return a.T @ a if joint else np.einsum("bj,bj->j", a, a)


def shard_influence(values: Floats, groups: Ints) -> Floats:
    """Influence of every shard, shape (G, m): squares add up to `S**2 / G`."""
    means = group_means(values - values.mean(axis=0), groups)
    G = len(means)
    return np.asarray(means / np.sqrt(G * (G - 1)))


@dataclass(frozen=True)
class ShardEstimator(VarianceEstimator):
    """The variance between ensembles on disjoint shards, over their number."""

    source: ClassVar[Source] = "groups"

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        found = shard_moments(values, self._labels(design, len(values)))
        G, L = found.n_shards, found.per_shard
        monte_carlo = found.within / (G * L)
        sampling = found.between / G - monte_carlo
        # The variance is a sum of G squares, each with the noise of L learners; what is
        # seen in the squares is all of the noise at most.
        noise = np.minimum(monte_carlo, found.between / G) / (G - 1)
        return VarianceComponents(
            method=self.name,
            zeta_1=design.n / design.k**2 * sampling,
            zeta_k=found.between + (1 - 1 / L) * found.within,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=found.between / G,
            mc_se=np.sqrt(noise_variance(sampling, noise, G)),
            noise=noise,
            n=G,
            ceiling=np.full_like(sampling, np.inf),
            df=float(G - 1),
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        found = shard_moments(values, self._labels(design, len(values)), joint=True)
        monte_carlo = found.within / (found.n_shards * found.per_shard)
        return found.between / found.n_shards - monte_carlo, monte_carlo

    def _labels(self, design: SubsampleDesign, B: int) -> Ints:
        labels = checked_groups(self.name, design, B, least_size=2)
        if design.name == "given":
            _check_disjoint(design, labels)
        return labels


def _check_disjoint(design: SubsampleDesign, labels: Ints) -> None:
    """Refuse groups drawn elsewhere that are no shards."""
    counts = dense(design.counts(0, len(labels)))
    holders = sum(
        (counts[labels == g] > 0).any(axis=0).astype(int) for g in np.unique(labels)
    )
    shared = np.flatnonzero(np.asarray(holders) > 1)
    if shared.size:
        raise ValueError(
            "'shards' needs groups of learners whose subsamples come from disjoint "
            f"parts of the data; {shared.size} observation(s), the first {shared[0]}, "
            "are in subsamples of several groups."
        )


SHARDS = ShardEstimator("shards", "between shards", nonnegative=True, design="shards")
