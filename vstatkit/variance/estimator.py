"""What a variance estimator is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.orders import HigherOrders
from vstatkit.variance.sums import EnsembleSums, sum_ensemble

Source = Literal["moments", "presence", "groups"]


@dataclass(frozen=True)
class VarianceEstimator(ABC):
    """A variance estimator: what it is called, when it applies, what it computes.

    Attributes
    ----------
    name : str
        What `variance=` calls it.
    label : str
        Name in printed tables.
    source : {"moments", "presence", "groups"}
        What it is computed from.
    nonnegative : bool
        Whether it cannot be negative, so that it needs no stabilising.
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
    """An estimator that sees additive sums over the learners and nothing else.

    Such sums can be extended by more learners, and added up over workers.
    """

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self.from_sums(design, self.sums(design, values), orders)

    def sums(
        self, design: SubsampleDesign, values: Floats, *, joint: bool = False
    ) -> EnsembleSums:
        """Add up what the estimator needs, with indicators where it sees presence."""
        presence = self.source == "presence"
        return sum_ensemble(design, values, joint=joint, presence=presence)

    @abstractmethod
    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums over learners."""
