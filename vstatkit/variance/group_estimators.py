"""Estimators that compare groups of learners: pins, bags, pairs, shards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.design import SubsampleDesign, to_dense
from vstatkit.variance.estimator import Source, VarianceComponents, VarianceEstimator
from vstatkit.variance.formulas import (
    centred_pairs,
    cross_products,
    group_means,
    grouped_monte_carlo,
    little_bags,
    matched_pairs,
    noise_variance,
    zeta_1_im,
)
from vstatkit.variance.higher_orders import HigherOrders


def check_groups(
    name: str, design: SubsampleDesign, B: int, least_size: int, paired: bool = False
) -> Ints:
    """Return the groups of B learners after checking them for the estimator `name`.

    Each needs `least_size` learners, or exactly two if they are `paired`.
    """
    labels = design.groups(B)
    if labels is None:
        raise ValueError(
            f"{name!r} compares groups of learners; give the group of every "
            "learner as `groups`."
        )
    sizes = np.unique(labels, return_counts=True)[1]
    if sizes.size < 2:
        raise ValueError(f"{name!r} needs at least two groups of learners; got 1.")
    if paired and np.any(sizes != 2):
        raise ValueError(f"{name!r} needs groups of exactly two learners.")
    if np.any(sizes != sizes[0]) or sizes[0] < least_size:
        raise ValueError(
            f"{name!r} needs groups of one size, at least two learners for "
            f"'little_bags' and 'shards'; got sizes {sizes.min()} to {sizes.max()}."
        )
    return labels


class Groups(NamedTuple):
    """Learners that come in groups."""

    values: Floats  # (B, m): kernel values
    labels: Ints  # (B,): group of every learner
    k: int  # subsample size
    n: int  # number of units
    redrawn_share: float  # see `grouped_monte_carlo`

    @property
    def zeta_k(self) -> Floats:
        """Variance of a single learner."""
        return np.asarray(self.values.var(axis=0, ddof=1))


@dataclass(frozen=True, kw_only=True)
class GroupEstimator(VarianceEstimator):
    """An estimator for a design that draws learners in groups.

    Attributes
    ----------
    sampling : callable
        `(groups, joint) -> variance`, shape (m,), or covariance, shape (m, m).
    error : callable
        `groups -> mc_se` of the variances, shape (m,).
    ceiling : callable
        `groups -> ` upper bounds of the variances, shape (m,).
    least_size : int
        Learners that a group needs.
    paired : bool
        Whether groups must have exactly two learners.
    """

    sampling: Callable[[Groups, bool], Floats]
    error: Callable[[Groups], Floats]
    ceiling: Callable[[Groups], Floats] = lambda groups: groups.zeta_k
    least_size: int = 1
    paired: bool = False

    source: ClassVar[Source] = "groups"

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        groups = self.groups(design, values)
        sampling = self.sampling(groups, False)
        monte_carlo = grouped_monte_carlo(values, groups.labels, groups.redrawn_share)
        return VarianceComponents(
            method=self.name,
            zeta_1=groups.n / groups.k**2 * sampling,
            zeta_k=groups.zeta_k,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=sampling + monte_carlo,
            mc_se=self.error(groups),
            noise=None,
            n=groups.n,
            ceiling=self.ceiling(groups),
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        groups = self.groups(design, values)
        share, labels = groups.redrawn_share, groups.labels
        monte_carlo = grouped_monte_carlo(values, labels, share, joint=True)
        return self.sampling(groups, True), monte_carlo

    def groups(self, design: SubsampleDesign, values: Floats) -> Groups:
        """Return the learners with their groups, after checking these."""
        B = len(values)
        labels = check_groups(self.name, design, B, self.least_size, self.paired)
        share = design.redrawn_share(np.unique(labels).size)
        return Groups(values, labels, design.k, design.n, share)


def _im(groups: Groups, joint: bool) -> Floats:
    zeta_1 = zeta_1_im(groups.values, groups.labels, joint=joint)
    return groups.k**2 / groups.n * zeta_1


def _im_error(groups: Groups) -> Floats:
    G = np.unique(groups.labels).size
    return np.asarray(_im(groups, False) * np.sqrt(2 / (G - 1)))


def _matched_error(groups: Groups) -> Floats:
    first, second = centred_pairs(groups.values, groups.labels)
    return np.asarray((first * second).std(axis=0, ddof=1) / np.sqrt(len(first)))


IM = GroupEstimator(
    "im",
    "IM",
    nonnegative=True,
    design="two-level",
    sampling=_im,
    error=_im_error,
    ceiling=lambda groups: groups.k / groups.n * groups.zeta_k,
)


class ShardMoments(NamedTuple):
    """Variances of learners on disjoint shards; q is m, or (m, m) for covariances."""

    n_shards: int  # number G of shards
    per_shard: int  # learners L of each
    between: Floats  # variance `S**2` of the shards' means
    within: Floats  # variance `w` of the learners of one shard, pooled over the shards


def shard_moments(values: Floats, groups: Ints, *, joint: bool = False) -> ShardMoments:
    r"""Compute the variances between and within shards of equal numbers of learners.

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
    between = cross_products(means, means, joint=joint) / (G - 1)
    within = cross_products(residuals, residuals, joint=joint) / (B - G)
    return ShardMoments(G, B // G, between, within)


def shard_influence(values: Floats, groups: Ints) -> Floats:
    """Compute the influence of shards, shape (G, m); squares add up to `S**2 / G`."""
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
        shards = shard_moments(values, self._labels(design, len(values)))
        G, L = shards.n_shards, shards.per_shard
        monte_carlo = shards.within / (G * L)
        sampling = shards.between / G - monte_carlo
        # The variance is a sum of G squares, each with the noise of L learners, which
        # cannot exceed the squares.
        noise = np.minimum(monte_carlo, shards.between / G) / (G - 1)
        return VarianceComponents(
            method=self.name,
            zeta_1=design.n / design.k**2 * sampling,
            zeta_k=shards.between + (1 - 1 / L) * shards.within,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=shards.between / G,
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
        shards = shard_moments(values, self._labels(design, len(values)), joint=True)
        monte_carlo = shards.within / (shards.n_shards * shards.per_shard)
        return shards.between / shards.n_shards - monte_carlo, monte_carlo

    def _labels(self, design: SubsampleDesign, B: int) -> Ints:
        labels = check_groups(self.name, design, B, least_size=2)
        if design.name == "given":
            _check_disjoint(design, labels)
        return labels


def _check_disjoint(design: SubsampleDesign, labels: Ints) -> None:
    counts = to_dense(design.counts(0, len(labels)))
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


GROUP_ESTIMATORS = (
    GroupEstimator(
        "little_bags",
        "little bags",
        nonnegative=True,
        design="little-bags",
        sampling=lambda groups, joint: little_bags(*groups[:2], joint=joint)[0],
        error=lambda groups: little_bags(*groups[:2])[1],
        least_size=2,
    ),
    GroupEstimator(
        "matched",
        "matched pairs",
        replace=False,
        design="matched",
        sampling=lambda groups, joint: matched_pairs(*groups[:2], joint=joint),
        error=_matched_error,
        paired=True,
    ),
    ShardEstimator("shards", "between shards", nonnegative=True, design="shards"),
)
