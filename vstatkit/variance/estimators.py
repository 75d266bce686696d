"""Variance components, and the estimators: from counts, from presence, from groups."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints, Labels
from vstatkit.sampling.design import SubsampleDesign, to_dense
from vstatkit.text import short_repr
from vstatkit.variance.formulas import (
    centred_pairs,
    grouped_monte_carlo,
    jackknife_after_bootstrap,
    little_bags,
    matched_pairs,
    noise_variance,
    shard_moments,
    zeta_1_bm,
    zeta_1_corrected_u,
    zeta_1_corrected_v,
    zeta_1_corrected_v_simple,
    zeta_1_ij,
    zeta_1_ij_u,
    zeta_1_im,
)
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.influence_summaries import (
    influence_ceiling,
    influence_concentration,
    influence_skew,
)
from vstatkit.variance.learner_pairs import LearnerPairs
from vstatkit.variance.moments import (
    EnsembleMoments,
    EnsembleSums,
    PresenceMoments,
    moments_from_sums,
    moments_of,
    presence_moments,
    presence_of,
    sum_ensemble,
)


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """An estimated variance and its components; nothing is clipped.

    Attributes
    ----------
    method : str
        Name of the estimator.
    zeta_1 : ndarray of shape (m,)
        Variance of a learner's conditional mean given one observation.
    zeta_k : ndarray of shape (m,)
        Variance of a single learner.
    sampling : ndarray of shape (m,)
        `k**2/n * zeta_1`: the variance with infinitely many learners. Negative if
        the noise of a small ensemble exceeds it.
    monte_carlo : ndarray of shape (m,)
        `zeta_k / B`: the part that more learners remove.
    total : ndarray of shape (m,)
        The sum `sampling + monte_carlo`.
    mc_se : ndarray of shape (m,)
        Monte Carlo standard error of `total`.
    noise : ndarray of shape (m,) or None
        Monte Carlo variance of one observation's influence, if the estimator is a
        sum of squared influences.
    n : int
        Number of independent units.
    ceiling : ndarray of shape (m,)
        Largest possible sampling variance, given the variance of single learners;
        infinite if unknown.
    concentration : ndarray of shape (m,) or None
        `sum c**4 / (sum c**2)**2` of the influences c, without their noise: one over
        the number of influential units. It is scale-free.
    skew : ndarray of shape (m,) or None
        Skewness `sum c**3 / (sum c**2)**1.5` of the estimate, from the same influences
        without their noise. It is scale-free.
    orders : HigherOrders or None
        The correction beyond the first order, if the estimator uses it.
    df : float or None
        Degrees of freedom of `total`, if it is a variance of replicates.
    """

    method: str
    zeta_1: Floats
    zeta_k: Floats
    sampling: Floats
    monte_carlo: Floats
    total: Floats
    mc_se: Floats
    noise: Floats | None
    n: int
    ceiling: Floats
    concentration: Floats | None = None
    skew: Floats | None = None
    orders: HigherOrders | None = None
    df: float | None = None

    __repr__ = short_repr

    @property
    def rho(self) -> float | None:
        """`Q_2 / Q_1`, if the estimator goes beyond the first order."""
        return None if self.orders is None else self.orders.rho

    @property
    def rho_se(self) -> float | None:
        """Standard error of `rho`."""
        return None if self.orders is None else self.orders.error

    @property
    def q_1(self) -> Floats | None:
        """The jackknife variance `Q_1 = V_1 + 2 V_2 + 3 V_3 + ...`."""
        return None if self.orders is None else self.sampling / self.orders.factor

    @property
    def q_2(self) -> Floats | None:
        """`Q_2 = V_2 + 3 V_3 + ...`, `rho` times `Q_1`."""
        q_1 = self.q_1
        return None if self.orders is None or q_1 is None else self.orders.rho * q_1

    @staticmethod
    def join(parts: Sequence["VarianceComponents"]) -> "VarianceComponents":
        """Join the components of several chunks of query points."""
        first = parts[0]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in (*COMPONENTS, "noise", "ceiling", "concentration", "skew")
            if getattr(first, name) is not None
        }
        return replace(first, **joined)

    def in_units(self, unit: Floats) -> "VarianceComponents":
        """Scale components of values that were divided by `unit`; they may overflow."""
        with np.errstate(over="ignore", under="ignore"):
            scaled = {
                name: getattr(self, name) * unit * unit
                for name in (*COMPONENTS, "noise", "ceiling")
                if getattr(self, name) is not None
            }
        return replace(self, **scaled)

    def to_frame(self, index: Labels | None = None) -> pd.DataFrame:
        """Tabulate the components, one row per estimate."""
        frame = pd.DataFrame({name: getattr(self, name) for name in COMPONENTS}, index)
        if self.orders is None:
            return frame
        beyond = {name: getattr(self, name) for name in ("q_1", "q_2", "rho", "rho_se")}
        return frame.assign(**beyond)


# Components of every estimator, in the order of the tables.
COMPONENTS = ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se")


Source = Literal["moments", "presence", "groups"]


@dataclass(frozen=True)
class VarianceEstimator(ABC):
    """A variance estimator: its name, when it applies, and its computation.

    Attributes
    ----------
    name : str
        Its name in `variance=`.
    label : str
        Name in printed tables.
    source : {"moments", "presence", "groups"}
        The input of the estimator.
    nonnegative : bool
        Whether it cannot be negative.
    replace : bool or None
        The sampling it is valid for; None for both.
    design : str or None
        The design that it needs.
    inflated : bool
        Whether it is inflated for sampling without replacement.
    beyond : bool
        Whether it goes beyond the first order, by a `rho`.
    """

    name: str
    label: str
    nonnegative: bool = False
    replace: bool | None = None
    design: str | None = None
    inflated: bool = False
    beyond: bool = False

    source: ClassVar[Source]

    @abstractmethod
    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""

    @abstractmethod
    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""


@dataclass(frozen=True)
class SumEstimator(VarianceEstimator):
    """An estimator from sums over learners, which can be extended and added up."""

    @abstractmethod
    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums; of indicators for source "presence"."""


@dataclass(frozen=True, kw_only=True)
class MomentEstimator(SumEstimator):
    """An estimator of `zeta_1` that is linear in the moments of the counts.

    Attributes
    ----------
    zeta_1 : callable
        `(moments, replace) -> zeta_1`, for variances and covariances alike.
    """

    zeta_1: Callable[[EnsembleMoments, bool], Floats]

    source: ClassVar[Source] = "moments"

    def sampling(self, moments: EnsembleMoments, *, replace: bool) -> Floats:
        """Estimate the sampling variance (m,), or covariance of joint moments."""
        return moments.size**2 / moments.n * self.zeta_1(moments, replace)

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self.from_moments(moments_of(design, values), replace=design.replace)

    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums over learners."""
        moments = moments_from_sums(sums, complete=design.complete)
        return self.from_moments(moments, replace=design.replace)

    def from_moments(
        self, moments: EnsembleMoments, *, replace: bool
    ) -> VarianceComponents:
        """Estimate the components from moments."""
        n, k, B = moments.n, moments.size, moments.n_learners
        concentration, skew = _shape(moments)
        sampling = self.sampling(moments, replace=replace)
        inflation = (n / (n - k)) ** 2 if self.inflated and not replace else 1.0
        noise = inflation * moments.count_variance * moments.monte_carlo
        return VarianceComponents(
            method=self.name,
            zeta_1=n / k**2 * sampling,
            zeta_k=moments.zeta_k,
            sampling=sampling,
            monte_carlo=moments.monte_carlo,
            total=sampling + moments.monte_carlo,
            mc_se=np.sqrt(noise_variance(sampling, noise, n)),
            noise=noise,
            n=n,
            ceiling=influence_ceiling(noise, B, n, complete=moments.complete),
            concentration=concentration,
            skew=skew,
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        sums = sum_ensemble(design, values, joint=True)
        moments = moments_from_sums(sums, complete=design.complete)
        return self.sampling(moments, replace=design.replace), moments.monte_carlo


def _shape(moments: EnsembleMoments) -> tuple[Floats | None, Floats | None]:
    """Compute concentration and skewness of the covariances with the counts."""
    if moments.cubic is None or moments.quartic is None:
        return None, None
    n, noise = moments.n, moments.count_variance * moments.monte_carlo
    squares = moments.size**2 / n * zeta_1_ij(moments)
    powers = (moments.jackknife, moments.cubic, moments.quartic)
    concentration = influence_concentration(squares, moments.quartic, noise, n)
    return concentration, influence_skew(*powers, noise, n)


@dataclass(frozen=True)
class PresenceEstimator(SumEstimator):
    """The jackknife after bootstrap, with or without a correction."""

    source: ClassVar[Source] = "presence"

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self._from_presence(design, presence_of(design, values), orders)

    def from_pairs(
        self,
        design: SubsampleDesign,
        pairs: LearnerPairs,
        values: Floats,
        orders: HigherOrders | None,
    ) -> VarianceComponents:
        """Estimate the components from pairs of learners, without their shape."""
        zeta_k = values.var(axis=0, ddof=1)
        factor = 1.0 if orders is None else orders.factor
        sampling = factor * pairs.jackknife(values)
        return self._assemble(
            *(design, len(values), sampling, zeta_k), odds=pairs.odds, orders=orders
        )

    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums with indicators in place of counts."""
        presence = presence_moments(sums, design.chance_absent)
        return self._from_presence(design, presence, orders)

    def _from_presence(
        self,
        design: SubsampleDesign,
        presence: PresenceMoments,
        orders: HigherOrders | None,
    ) -> VarianceComponents:
        n, B, odds = design.n, presence.n_learners, presence.odds
        sampling, monte_carlo = _parts(presence, design.complete, orders)
        zeta_k = presence.squares / (B - 1)
        noise = odds * monte_carlo
        powers = (presence.left_out, presence.cubic, presence.quartic)
        return replace(
            self._assemble(*(design, B, sampling, zeta_k), odds=odds, orders=orders),
            concentration=influence_concentration(
                presence.left_out, presence.quartic, noise, n
            ),
            skew=influence_skew(*powers, noise, n),
        )

    def _assemble(
        self,
        design: SubsampleDesign,
        B: float,
        sampling: Floats,
        zeta_k: Floats,
        *,
        odds: float,
        orders: HigherOrders | None,
    ) -> VarianceComponents:
        """Assemble the components, but for the shape of the influences."""
        n, k = design.n, design.k
        monte_carlo = zeta_k * 0.0 if design.complete else zeta_k / B
        influence_noise = odds * monte_carlo
        noise = influence_noise if orders is None else orders.factor * influence_noise
        mc_se = np.sqrt(noise_variance(sampling, noise, n))
        if orders is not None:
            common = orders.relative_mc_error * np.maximum(sampling, 0.0)
            mc_se = np.hypot(mc_se, common)
        ceiling = influence_ceiling(noise, B, n, complete=design.complete)
        if not design.complete:  # a mean varies at most as much as one learner
            ceiling = np.minimum(ceiling, zeta_k - monte_carlo)
        return VarianceComponents(
            method=self.name,
            zeta_1=n / k**2 * sampling,
            zeta_k=zeta_k,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=sampling + monte_carlo,
            mc_se=mc_se,
            noise=noise,
            n=n,
            ceiling=ceiling,
            orders=orders,
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        sums = sum_ensemble(design, values, joint=True, presence=True)
        presence = presence_moments(sums, design.chance_absent)
        return _parts(presence, design.complete, orders)


def _parts(
    presence: PresenceMoments, complete: bool, orders: HigherOrders | None
) -> tuple[Floats, Floats]:
    """Split variances, or covariances, into sampling and Monte Carlo part."""
    B = presence.n_learners
    factor = 1.0 if orders is None else orders.factor
    sampling = factor * jackknife_after_bootstrap(presence, complete=complete)
    zeta_k = presence.squares / (B - 1)
    return sampling, zeta_k * 0.0 if complete else zeta_k / B


def check_groups(
    name: str, design: SubsampleDesign, B: int, least_size: int, paired: bool = False
) -> Ints:
    """Return the groups of B learners, each of `least_size`, or two if `paired`."""
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
        if design.name != "given":
            return labels
        counts = to_dense(design.counts(0, B))
        holders = [(counts[labels == g] > 0).any(axis=0) for g in np.unique(labels)]
        shared = np.flatnonzero(np.sum(holders, axis=0) > 1)
        if shared.size == 0:
            return labels
        raise ValueError(
            "'shards' needs groups of learners whose subsamples come from disjoint "
            f"parts of the data; {shared.size} observation(s), the first {shared[0]}, "
            "are in subsamples of several groups."
        )


# The estimators of the package, in the order of messages and comparisons.
BUILT_IN: tuple[VarianceEstimator, ...] = (
    GroupEstimator(
        "im",
        "IM",
        nonnegative=True,
        design="two-level",
        sampling=_im,
        error=_im_error,
        ceiling=lambda groups: groups.k / groups.n * groups.zeta_k,
    ),
    MomentEstimator("bm", "BM", nonnegative=True, zeta_1=lambda mo, _: zeta_1_bm(mo)),
    MomentEstimator("ij", "IJ", nonnegative=True, zeta_1=lambda mo, _: zeta_1_ij(mo)),
    MomentEstimator(
        "ij_u",
        "IJ-U",
        inflated=True,
        zeta_1=lambda mo, replace: zeta_1_ij_u(mo, replace=replace),
    ),
    PresenceEstimator("jackknife", "J-U"),
    PresenceEstimator("hoeffding", "Hoeffding", beyond=True),
    MomentEstimator(
        "corrected_v",
        "corrected-V",
        replace=True,
        zeta_1=lambda mo, _: zeta_1_corrected_v(mo),
    ),
    MomentEstimator(
        "corrected_v_simple",
        "corrected-V (simple)",
        replace=True,
        zeta_1=lambda mo, _: zeta_1_corrected_v_simple(mo),
    ),
    MomentEstimator(
        "corrected_u",
        "corrected-U",
        replace=False,
        inflated=True,
        zeta_1=lambda mo, _: zeta_1_corrected_u(mo),
    ),
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
