"""A joint test that many estimates are zero, from their pooled squares."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from vstatkit._typing import Floats
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.formulas import positive_mean
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.moments import influence_values, sum_ensemble, value_units
from vstatkit.variance.registry import (
    estimate_components,
    estimate_covariance,
    known_orders,
)

ROWS = 4096  # number of units whose products are in memory at a time


class Traces(NamedTuple):
    """Traces of the second and third power of a covariance."""

    second: float
    third: float
    error: float  # Monte Carlo error of the second


def covariance_traces(
    design: SubsampleDesign, values: Floats, trace: float, monte_carlo: Floats
) -> Traces | None:
    r"""Estimate `tr C^2` and `tr C^3` of the covariance C of an ensemble's means.

    `trace` is that of the sampling part of C, by any estimator, and `monte_carlo` the
    other part, `zeta_k / B`. The result is None if the influences are not larger than
    their noise.

    The square of an estimated matrix is too large by the variance of its entries, due
    to the finite numbers of learners and units. Write the estimate as a sum over units,

    .. math::

        \hat C = \sum_i A_i, \qquad A_i = a (g_i g_i^\top - S) + M / n,

    where :math:`g_i` is the influence of unit i on the m estimates, S the Monte Carlo
    covariance of one influence, M the Monte Carlo covariance of the estimates, and a
    scales the trace to that of the variance estimator. An influence is the error of the
    unit times a vector that depends on its predictors. Given these, and for normal
    errors, products of different units are unbiased, squares are three times and cubes
    fifteen times too large. The traces are

    .. math::

        \sum_{i \ne j} \operatorname{tr} A_i A_j
        + \frac{1}{3} \sum_i \operatorname{tr} A_i^2, \qquad
        \sum_{i, j, l \text{ different}} \operatorname{tr} A_i A_j A_l
        + \sum_{i \ne j} \operatorname{tr} A_i^2 A_j ,

    after the noise is subtracted from the terms with a square. The cubes, divided by
    fifteen, are omitted, because they matter only if few units matter.
    """
    sums, n = sum_ensemble(design, values), design.n
    g = influence_values(sums)
    B = sums.n_learners
    spread = float(sums.count_squares / B - sums.appearances @ sums.appearances / B**2)
    S = spread / n * monte_carlo
    squared_influence = float(np.vdot(g, g)) - n * float(np.trace(S))
    if squared_influence <= 0 or trace <= 0:
        return None
    a = trace / squared_influence
    return _unbiased_traces(np.sqrt(a) * g, a * S, monte_carlo)


def _unbiased_traces(g: Floats, S: Floats, M: Floats) -> Traces:
    """Sum traces of products of `A_i = g_i g_i' - S + M / n`."""
    n, E = len(g), S - M / len(g)
    C = g.T @ g - n * E
    squares, mixed, cubes = _powers(g, E, C)
    noise = _noise_of_squares(C - M, S, n)
    diagonal = max(squares - float(np.trace(noise)), 0.0) / 3
    twice = mixed - cubes  # tr A_i^2 A_j of different units
    third = float(np.vdot(C @ C, C)) - 3 * twice - cubes
    third += max(twice - float(np.vdot(noise, C)), 0.0)
    error = _error_of_second(C - M, S, n)
    return Traces(float(np.vdot(C, C)) - squares + diagonal, third, error)


def _error_of_second(V: Floats, S: Floats, n: int) -> float:
    r"""Compute the Monte Carlo error of the sum of traces over different units.

    With normal noise of covariance S in the influences, whose squares sum up to V, the
    variance is :math:`4 n^2 ((\operatorname{tr} S^2)^2 + \operatorname{tr} S^4) + 8 n
    \operatorname{tr} V S V S + 16 \operatorname{tr} V^3 S`. The noise of V adds n times
    the first bracket to :math:`\operatorname{tr} V S V S`, which is subtracted.
    """
    S2, VS = S @ S, V @ S
    noise = float(np.trace(S2)) ** 2 + float(np.vdot(S2, S2))
    both = max(float(np.vdot(VS, VS.T)) - n * noise, 0.0)
    linear = max(float(np.vdot(V @ V, VS.T)), 0.0)
    return float(np.sqrt(4 * n**2 * noise + 8 * n * both + 16 * linear))


def _powers(g: Floats, E: Floats, C: Floats) -> tuple[float, float, float]:
    """Sum `tr A_i^2`, `tr A_i^2 C` and `tr A_i^3` over units, `A_i = g_i g_i' - E`."""
    n, E2 = len(g), E @ E
    squares = n * float(np.vdot(E, E))
    mixed, cubes = n * float(np.vdot(E2, C)), -n * float(np.vdot(E2, E))
    for first in range(0, n, ROWS):
        rows = g[first : first + ROWS]
        gE, gC = rows @ E, rows @ C
        d = np.einsum("ij,ij->i", rows, rows)
        by_E, by_C = (np.einsum("ij,ij->i", product, rows) for product in (gE, gC))
        squares += float(np.sum(d**2 - 2 * by_E))
        mixed += float(d @ by_C - 2 * np.vdot(gE, gC))
        cubes += float(np.sum(d**3 - 3 * d * by_E) + 3 * np.vdot(gE, gE))
    return squares, mixed, cubes


def _noise_of_squares(V: Floats, S: Floats, n: int) -> Floats:
    """Compute the bias of the sum of squares of the `A_i` due to Monte Carlo noise."""
    t, VS = float(np.trace(S)), V @ S
    return np.asarray(t * V + float(np.trace(V)) * S + VS + VS.T + n * (t * S + S @ S))


SEEN = 2.0  # standard errors that a trace must exceed for the shape to be estimated
MOST_DF = 1e8  # degrees of freedom from which on a denominator is treated as known
NODES = 2001  # points at which the distribution of the denominator is evaluated


@dataclass(frozen=True)
class PooledTest:
    """A test that many estimates are all zero."""

    statistic: float  # sum of the squared estimates over the sum of their variances
    df_num: float  # degrees of freedom of the sum of squares
    df_denom: float  # degrees of freedom of the sum of variances
    # By `pooled_sf`. If learners do not vary it is 1 if all differences are zero, and
    # nan otherwise.
    pvalue: float
    # Degrees of freedom by the skewness of the sum of squares: `df_num` if all its
    # directions have equal variances, otherwise fewer
    df_tail: float


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
        Name of a variance estimator.
    orders : HigherOrders, optional
        Correction beyond the first order, for estimators that use it.

    Notes
    -----
    Let d be the m estimates and C their covariance, which is estimated.

    .. math::

        F = \frac{\sum_j d_j^2}{\operatorname{tr} C}, \qquad
        f_1 = \frac{(\operatorname{tr} C)^2}{\operatorname{tr} C^2}, \qquad
        f_2 = \frac{2 (\operatorname{tr} C)^2}{\operatorname{var}(\operatorname{tr} C)},
        \qquad h = \frac{(\operatorname{tr} C^2)^3}{(\operatorname{tr} C^3)^2} .

    Under the null the sum of squares is a sum of chi-squares with the eigenvalues of
    C for weights. It has the mean tr C and the variance :math:`2 \operatorname{tr}
    C^2`, and its skewness is that of a chi-square of h degrees of freedom; see
    `pooled_sf`. C is not inverted: with a few hundred learners its inverse would be
    mostly Monte Carlo noise, while its trace pools the noise of many points.

    The traces of :math:`C^2` and :math:`C^3` are those of `covariance_traces`;
    :math:`f_1` lies between one and m, h between one and :math:`f_1`. The trace of
    :math:`C^2` is replaced by its posterior mean under a flat prior within these
    bounds, which matters for few learners. If the influences do not exceed their
    noise, the shape of the Monte Carlo part is used. The variance of tr C is
    :math:`2 n \operatorname{tr} S^2 + 4 \operatorname{tr} V S` plus the squared error
    of the orders beyond the first, where S is the Monte Carlo covariance of one
    influence and V the sampling part of C.

    References
    ----------
    Box (1954), Some theorems on quadratic forms, Annals of Mathematical Statistics 25.
    doi:10.1214/aoms/1177728786

    Brunner, Dette and Munk (1997), Box-type approximations in nonparametric factorial
    designs, JASA 92. doi:10.1080/01621459.1997.10473671

    Imhof (1961), Computing the distribution of quadratic forms in normal variables,
    Biometrika 48. doi:10.1093/biomet/48.3-4.419
    """
    unit = value_units(values).max()
    scaled = values / unit
    orders = known_orders(method, design, scaled, orders)
    parts = estimate_components(method, design, scaled, orders)
    sampling, monte_carlo = estimate_covariance(method, design, scaled, orders)
    mean = ensemble_mean(design, scaled)
    squares = float(mean @ mean)
    if parts.df is None:
        denominator = _denominator(design, scaled, parts, sampling, monte_carlo)
    else:
        denominator = _replicate_denominator(sampling + monte_carlo, parts.df)
    trace, df_num, df_denom, df_tail = denominator
    if trace <= 0:  # all learners agree
        statistic, pvalue = (np.nan, np.nan) if squares > 0 else (0.0, 1.0)
    else:
        statistic = squares / trace
        pvalue = pooled_sf(statistic, df_num, df_denom, df_tail)
    return PooledTest(statistic, df_num, df_denom, pvalue, df_tail)


def pooled_sf(
    statistic: float, df_num: float, df_denom: float, df_tail: float
) -> float:
    r"""Compute the probability of a statistic at least this large under the null.

    With :math:`f_1, f_2` and h for the degrees of freedom, see `PooledTest`, and h at
    most :math:`f_1`, the statistic is compared with

    .. math::

        \frac{1 + (\chi^2_h - h) / \sqrt{h f_1}}{\chi^2_{f_2} / f_2} ,

    whose numerator has the mean 1, the variance :math:`2 / f_1` and the skewness of
    :math:`\chi^2_h`. For :math:`h = f_1` this is F.

    >>> round(pooled_sf(2.0, 10.0, np.inf, 10.0), 4)  # chi-square: 20 at 10
    0.0293
    >>> round(pooled_sf(2.0, 10.0, np.inf, 3.0), 4)  # some directions vary more
    0.0371
    """
    if df_tail >= df_num and df_denom < MOST_DF:
        return float(stats.f.sf(statistic, df_num, df_denom))
    slope = np.sqrt(df_tail * df_num)
    ratios, weights = _spread_of_denominator(df_denom)
    tail = special.chdtrc(
        df_tail, np.maximum(df_tail + (statistic * ratios - 1) * slope, 0.0)
    )
    return min(float(tail @ weights), 1.0)  # the weights are rounded


def _spread_of_denominator(df: float) -> tuple[Floats, Floats]:
    """Return values of a chi-square over its degrees of freedom, and their weights."""
    if df >= MOST_DF:
        return np.ones(1), np.ones(1)
    low, high = (np.log(edge / df) for edge in stats.chi2.ppf([1e-18, 1.0 - 1e-15], df))
    log = np.linspace(low, high, NODES)
    density = df / 2 * (log - np.exp(log))  # of the logarithm, up to a factor
    weights = np.exp(density - density.max())
    return np.exp(log), weights / weights.sum()


class _Denominator(NamedTuple):
    """Trace of the covariance, and degrees of freedom."""

    trace: float
    df_num: float
    df_denom: float
    df_tail: float


def _replicate_denominator(total: Floats, df: float) -> _Denominator:
    """Compute trace and degrees of freedom from the covariance of replicates."""
    trace, square = float(np.trace(total)), float(np.vdot(total, total))
    # Unbiased for normal replicates, up to a factor.
    square = (square - trace**2 / df) * df**2 / ((df - 1) * (df + 2))
    m = len(total)
    df_num = float(np.clip(trace**2 / square, 1, m)) if square > 0 else float(m)
    return _Denominator(trace, df_num, df, df_num)


def _denominator(
    design: SubsampleDesign,
    values: Floats,
    parts: VarianceComponents,
    sampling: Floats,
    monte_carlo: Floats,
) -> _Denominator:
    """Compute trace and degrees of freedom of a covariance that is a sum over units."""
    V, M = float(np.trace(sampling)), float(np.trace(monte_carlo))
    error = _error_of_trace(parts, sampling, monte_carlo)
    positive = float(positive_mean(np.array(V), np.array(error)))
    trace = positive + M
    unknown = 0.0 if parts.orders is None else parts.orders.relative_error
    spread = error**2 + (unknown * positive) ** 2
    df_denom = 2 * trace**2 / spread if spread > 0 else np.inf
    seen = SEEN * error < V
    traces = covariance_traces(design, values, V, monte_carlo) if seen else None
    if traces is None:
        powers = monte_carlo @ monte_carlo, monte_carlo
        traces = Traces(float(np.trace(powers[0])), float(np.vdot(*powers)), 0.0)
        V, error = 0.0, 0.0
    df_num, df_tail = _degrees(traces, V + M, error, len(sampling))
    return _Denominator(trace, df_num, df_denom, df_tail)


def _degrees(traces: Traces, trace: float, error: float, m: int) -> tuple[float, float]:
    """Convert traces of powers to degrees of freedom, with the error of the trace."""
    if trace <= 0:
        return 1.0, 1.0
    square = trace**2 - error**2
    second = _truncated_mean(traces.second / square, traces.error / square, 1 / m, 1.0)
    third = traces.third / (trace**3 - 3 * trace * error**2)
    third = float(np.clip(third, second**2, second**1.5))
    return 1 / second, second**3 / third**2


def _truncated_mean(estimate: float, error: float, low: float, high: float) -> float:
    """Compute the posterior mean under a flat prior between two bounds."""
    if low >= high or error <= 1e-6 * (high - low):  # a single difference has no shape
        return float(np.clip(estimate, low, high))
    a, b = (low - estimate) / error, (high - estimate) / error
    return float(np.clip(stats.truncnorm.mean(a, b, estimate, error), low, high))


def _error_of_trace(
    parts: VarianceComponents, sampling: Floats, monte_carlo: Floats
) -> float:
    if parts.noise is None:
        return float(parts.mc_se.sum())  # as if perfectly correlated
    live = parts.monte_carlo > 0
    if not live.any():
        return 0.0
    S = float(parts.noise[live].sum() / parts.monte_carlo[live].sum()) * monte_carlo
    cross = max(float(np.vdot(S, sampling)), 0.0)
    return float(np.sqrt(2 * parts.n * float(np.vdot(S, S)) + 4 * cross))
