"""Estimators that compare groups of learners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.estimator import Source, VarianceEstimator
from vstatkit.variance.formulas import (
    centred_pairs,
    grouped_monte_carlo,
    little_bags,
    matched_pairs,
    zeta_1_im,
)
from vstatkit.variance.groups import checked_groups
from vstatkit.variance.orders import HigherOrders


class Groups(NamedTuple):
    """Learners that come in groups.

    Attributes
    ----------
    values : ndarray of shape (B, m)
        Kernel values.
    labels : ndarray of shape (B,)
        Group of every learner.
    k, n : int
        Subsample size and number of units.
    """

    values: Floats
    labels: Ints
    k: int
    n: int

    @property
    def zeta_k(self) -> Floats:
        """Variance of a single learner."""
        return np.asarray(self.values.var(axis=0, ddof=1))


@dataclass(frozen=True, kw_only=True)
class GroupEstimator(VarianceEstimator):
    """An estimator made for a design that draws learners in groups.

    Attributes
    ----------
    sampling : callable
        `(groups, joint) -> variance`, shape (m,), or covariance, shape (m, m).
    error : callable
        `groups -> mc_se` of the variances, shape (m,).
    ceiling : callable
        `groups -> ` the most that the variances can be, shape (m,).
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
        labels = self.labels(design, len(values))
        share = design.redrawn_share(np.unique(labels).size)
        return self.from_groups(Groups(values, labels, design.k, design.n), share)

    def from_groups(
        self, groups: Groups, redrawn_share: float = 1.0
    ) -> VarianceComponents:
        """Estimate the components.

        Parameters
        ----------
        groups : Groups
            Learners and their groups.
        redrawn_share : float
            Share of the variance between groups that another draw of them would
            show.
        """
        sampling = self.sampling(groups, False)
        monte_carlo = grouped_monte_carlo(groups.values, groups.labels, redrawn_share)
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
        labels = self.labels(design, len(values))
        sampling = self.sampling(Groups(values, labels, design.k, design.n), True)
        share = design.redrawn_share(np.unique(labels).size)
        return sampling, grouped_monte_carlo(values, labels, share, joint=True)

    def labels(self, design: SubsampleDesign, B: int) -> Ints:
        """Return the groups of the learners, checked for the estimator."""
        return checked_groups(
            self.name, design, B, least_size=self.least_size, paired=self.paired
        )


def _im(groups: Groups, joint: bool) -> Floats:
    between = zeta_1_im(groups.values, groups.labels, joint=joint)
    return groups.k**2 / groups.n * between


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

LITTLE_BAGS = GroupEstimator(
    "little_bags",
    "little bags",
    nonnegative=True,
    design="little-bags",
    sampling=lambda groups, joint: little_bags(*groups[:2], joint=joint)[0],
    error=lambda groups: little_bags(*groups[:2])[1],
    least_size=2,
)

MATCHED = GroupEstimator(
    "matched",
    "matched pairs",
    replace=False,
    design="matched",
    sampling=lambda groups, joint: matched_pairs(*groups[:2], joint=joint),
    error=_matched_error,
    paired=True,
)
