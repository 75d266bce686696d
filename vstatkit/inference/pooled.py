"""A joint test that many estimates are zero, from their pooled squares."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.estimate import ensemble_mean, value_units
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.estimate import (
    estimate_components,
    estimate_covariance,
    known_orders,
)
from vstatkit.variance.noise import positive_mean
from vstatkit.variance.orders import HigherOrders


@dataclass(frozen=True)
class PooledTest:
    """A test that many estimates are all zero.

    Attributes
    ----------
    statistic : float
        Sum of the squared estimates over the sum of their variances.
    df_num, df_denom : float
        Degrees of freedom of F.
    pvalue : float
        By the survival function of F.
    """

    statistic: float
    df_num: float
    df_denom: float
    pvalue: float


def pooled_test(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    orders: HigherOrders | None = None,
) -> PooledTest:
    r"""Test that the means of an ensemble's values are all zero.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values, in one unit.
    method : str
        A resolved name of a variance estimator.
    orders : HigherOrders, optional
        Beyond the first order, for estimators that use it.

    Notes
    -----
    Let d be the m estimates and C the estimate of their covariance, without repairs.

    .. math::

        F = \frac{\sum_j d_j^2}{\operatorname{tr} C}, \qquad
        f_1 = \frac{(\operatorname{tr} C)^2}{\operatorname{tr} C^2}, \qquad
        f_2 = \frac{2 (\operatorname{tr} C)^2}{\operatorname{var}(\operatorname{tr} C)}

    is compared with F of :math:`f_1` and :math:`f_2` degrees of freedom. No matrix is
    inverted: with a few hundred learners the inverse of C would be mostly Monte Carlo
    noise, while its trace is known well, the noise of many points being pooled.

    The influence of one unit on the estimates carries Monte Carlo noise with a
    covariance S that is known. So C has noise around its mean, which adds
    :math:`n ((\operatorname{tr} S)^2 + \operatorname{tr} S^2) + 2 \operatorname{tr} V
    \operatorname{tr} S + 2 \operatorname{tr} V S` to :math:`\operatorname{tr} C^2`, V
    being the sampling part of C; this is taken off, and :math:`f_1` lies between one
    and m. The variance of tr C is :math:`2 n \operatorname{tr} S^2 + 4
    \operatorname{tr} V S`, and what is not known about the orders beyond the first.

    References
    ----------
    Box (1954), Some theorems on quadratic forms, Annals of Mathematical Statistics 25.
    doi:10.1214/aoms/1177728786

    Brunner, Dette and Munk (1997), Box-type approximations in nonparametric factorial
    designs, JASA 92. doi:10.1080/01621459.1997.10473671
    """
    unit = value_units(values).max()
    scaled = values / unit
    orders = known_orders(method, design, scaled, orders)
    parts = estimate_components(method, design, scaled, orders)
    sampling, monte_carlo = estimate_covariance(method, design, scaled, orders)
    mean = ensemble_mean(design, scaled)
    squares = float(mean @ mean)
    trace, df_num, df_denom = _denominator(parts, sampling, monte_carlo)
    if trace <= 0:  # all learners agree
        beyond = squares > 0
        return PooledTest(
            np.inf if beyond else 0.0, df_num, df_denom, 0.0 if beyond else 1.0
        )
    statistic = squares / trace
    pvalue = float(stats.f.sf(statistic, df_num, df_denom))
    return PooledTest(statistic, df_num, df_denom, pvalue)


def _denominator(
    parts: VarianceComponents, sampling: Floats, monte_carlo: Floats
) -> tuple[float, float, float]:
    """Give the trace of the covariance, and both degrees of freedom."""
    total, m = sampling + monte_carlo, len(sampling)
    square = float(np.sum(total**2))
    if parts.df is not None:  # of replicates
        df, trace = parts.df, float(np.trace(total))
        # Unbiased for normal replicates, up to a factor.
        square = (square - trace**2 / df) * df**2 / ((df - 1) * (df + 2))
        return trace, _ratio(trace**2, square, m), df
    if parts.noise is None:
        error, extra = float(parts.mc_se.sum()), 0.0  # as if they erred together
    else:
        error, extra = _noise(parts, sampling, monte_carlo)
    V = float(np.trace(sampling))
    positive = float(positive_mean(np.array(V), np.array(error)))
    trace = positive + float(np.trace(monte_carlo))
    unknown = 0.0 if parts.orders is None else parts.orders.relative_error
    spread = error**2 + (unknown * positive) ** 2
    df_denom = 2 * trace**2 / spread if spread > 0 else np.inf
    return trace, _ratio(trace**2, square - extra, m), df_denom


def _noise(
    parts: VarianceComponents, sampling: Floats, monte_carlo: Floats
) -> tuple[float, float]:
    """Monte Carlo error of the trace, and what it adds to the squared covariances."""
    assert parts.noise is not None
    live = parts.monte_carlo > 0
    if not live.any():
        return 0.0, 0.0
    ratio = float(parts.noise[live].sum() / parts.monte_carlo[live].sum())
    S, n = ratio * monte_carlo, parts.n
    trace, squares = float(np.trace(S)), float(np.sum(S**2))
    cross = max(float(np.sum(S * sampling)), 0.0)
    V = max(float(np.trace(sampling)), 0.0)
    error = np.sqrt(2 * n * squares + 4 * cross)
    return float(error), n * (trace**2 + squares) + 2 * V * trace + 2 * cross


def _ratio(square: float, squares: float, m: int) -> float:
    """Divide, between one and m."""
    return float(np.clip(square / squares, 1, m)) if squares > 0 else float(m)
