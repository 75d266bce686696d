"""Components and covariances by any of the estimators."""

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.kind import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.by_groups import GroupEstimator, Groups
from vstatkit.variance.by_moments import MomentEstimator
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.estimator import SumEstimator
from vstatkit.variance.moments import EnsembleMoments
from vstatkit.variance.orders import HigherOrders, measure_orders
from vstatkit.variance.reference import spread_columns
from vstatkit.variance.registry import ESTIMATORS
from vstatkit.variance.sums import EnsembleSums


def estimate_components(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> VarianceComponents:
    """Estimate the components of an ensemble.

    Parameters
    ----------
    method : str
        Name of the estimator.
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Kernel values.
    orders : HigherOrders, optional
        Beyond the first order, for the estimators that use it; by default measured
        on the values.
    """
    orders = known_orders(method, design, values, orders)
    return ESTIMATORS[method].components(design, values, orders)


def estimate_covariance(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> tuple[Floats, Floats]:
    """Estimate the sampling and the Monte Carlo covariance, each (m, m).

    Nothing is repaired: with few learners the sampling part may be indefinite.
    """
    orders = known_orders(method, design, values, orders)
    return ESTIMATORS[method].covariance(design, values, orders)


def known_orders(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> HigherOrders | None:
    """Find what an estimator has to know beyond the first order.

    Measured on the values themselves where it is not given; None for estimators
    that do not use it.
    """
    if not ESTIMATORS[method].beyond:
        return None
    if orders is not None:
        return orders
    columns = spread_columns(values.shape[1])
    return measure_orders(design, len(values), lambda L: values[:L, columns], kind)


def components_from_sums(
    method: str,
    design: SubsampleDesign,
    sums: EnsembleSums,
    orders: HigherOrders | None,
) -> VarianceComponents:
    """Estimate the components from sums over learners.

    `sums` are taken with indicators for the estimators that see presence.
    """
    estimator = ESTIMATORS[method]
    if isinstance(estimator, SumEstimator):
        return estimator.from_sums(design, sums, orders)
    raise ValueError(f"{method!r} is not computed from sums over learners.")


def moment_components(
    method: str, moments: EnsembleMoments, *, replace: bool
) -> VarianceComponents:
    """Estimate the components from moments, by a moment-based estimator."""
    return _by_moments(method).from_moments(moments, replace=replace)


def moment_sampling(method: str, moments: EnsembleMoments, *, replace: bool) -> Floats:
    """Estimate the sampling variance (m,), or covariance of joint moments."""
    return _by_moments(method).sampling(moments, replace=replace)


def _by_moments(method: str) -> MomentEstimator:
    estimator = ESTIMATORS[method]
    if isinstance(estimator, MomentEstimator):
        return estimator
    raise ValueError(f"{method!r} is not computed from moments.")


def group_components(
    method: str, values: Floats, groups: Ints, *, k: int, n: int
) -> VarianceComponents:
    """Estimate the components from groups of learners of unknown origin."""
    return _by_groups(method).from_groups(Groups(values, groups, k, n))


def learner_groups(method: str, design: SubsampleDesign, B: int) -> Ints:
    """Return the groups of the learners, checked for the estimator."""
    return _by_groups(method).labels(design, B)


def _by_groups(method: str) -> GroupEstimator:
    estimator = ESTIMATORS[method]
    if isinstance(estimator, GroupEstimator):
        return estimator
    raise ValueError(f"{method!r} does not compare groups of learners.")
