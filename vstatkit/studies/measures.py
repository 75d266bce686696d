"""What a study keeps from an ensemble: intervals, or variance components."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.estimates import stabilise
from vstatkit.studies.experiment import Record
from vstatkit.studies.prefixes import Prefix
from vstatkit.studies.variants import sampling_variance
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.registry import (
    ESTIMATORS,
    estimate_components,
    moment_components,
)

Interval = Literal["normal", "t"]


class Measure(Protocol):
    """What is kept from an ensemble."""

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""


@dataclass(frozen=True)
class Method:
    """A variance estimate, and the interval made from it.

    Attributes
    ----------
    label : str
        Name in tables.
    sampling : str
        Estimator of the sampling variance, of vstatkit or of the study.
    monte_carlo : bool
        Whether `zeta_k / B` is added.
    interval : {"normal", "t"}
        Normal quantile times the root of the raw variance; or what vstatkit
        reports, a stabilised variance and Student's t.
    """

    label: str
    sampling: str
    monte_carlo: bool = True
    interval: Interval = "normal"


@dataclass(frozen=True)
class Intervals:
    """Estimates, their variances and half the widths of their intervals.

    Attributes
    ----------
    methods : tuple of Method
        The second to last axis of `variance` and `half_width`.
    alpha : float
        One minus the nominal coverage.
    """

    methods: tuple[Method, ...]
    alpha: float = 0.05

    @property
    def beyond(self) -> bool:
        """Whether some method needs estimates beyond the first order."""
        known = [ESTIMATORS.get(method.sampling) for method in self.methods]
        return any(one is not None and one.beyond for one in known)

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        pairs = [self._interval(method, prefix) for method in self.methods]
        return {
            "mean": prefix.mean,
            "variance": np.stack([variance for variance, _ in pairs]),
            "half_width": np.stack([half for _, half in pairs]),
        }

    def _interval(self, method: Method, prefix: Prefix) -> tuple[Floats, Floats]:
        if method.interval == "t":
            estimates = stabilise(
                prefix.mean, _components(method.sampling, prefix), prefix.n_learners
            )
            return estimates.variance, estimates.half_width(self.alpha)
        variance = sampling_variance(method.sampling, prefix)
        if method.monte_carlo:
            variance = variance + learner_variance(prefix) / prefix.n_learners
        # A negative variance has no interval: NaN covers nothing.
        root = np.sqrt(np.where(variance < 0, np.nan, variance))
        return variance, stats.norm.isf(self.alpha / 2) * root


@dataclass(frozen=True)
class Components:
    """Estimates, and the variance components by several estimators.

    Attributes
    ----------
    methods : tuple of str
        The second to last axis of `sampling` and `zeta_1`.
    """

    methods: tuple[str, ...]

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        n, k = prefix.design.n, prefix.design.k
        sampling = np.stack([sampling_variance(name, prefix) for name in self.methods])
        return {
            "mean": prefix.mean,
            "sampling": sampling,
            "zeta_1": n / k**2 * sampling,
            "zeta_k": learner_variance(prefix),
        }


def learner_variance(prefix: Prefix) -> Floats:
    """Variance of a single learner, `zeta_k`."""
    return np.asarray(prefix.values.var(axis=0, ddof=1))


def _components(method: str, prefix: Prefix) -> VarianceComponents:
    if ESTIMATORS[method].source == "moments":
        replace = prefix.design.replace
        return moment_components(method, prefix.moments, replace=replace)
    orders = prefix.orders if ESTIMATORS[method].beyond else None
    return estimate_components(method, prefix.design, prefix.values, orders)
