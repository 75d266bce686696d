"""Variance components, and the interface of variance estimators."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.text import short_repr
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.moments import EnsembleSums


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
        """Scale the components of values that were divided by `unit`, shape (m,).

        Values beyond the range of floating point become infinite or zero.
        """
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
    """An estimator that uses only additive sums over the learners.

    Such sums can be extended by more learners, and added over workers.
    """

    @abstractmethod
    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums; of indicators for source "presence"."""
