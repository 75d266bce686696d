"""How unequal the eigenvalues of a covariance are, from influences."""

from typing import NamedTuple

import numpy as np

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.moments import influence_values, sum_ensemble

ROWS = 4096
"""Units whose products are held at a time."""


class Traces(NamedTuple):
    """Traces of the second and third power of a covariance.

    `error` is the Monte Carlo error of the second.
    """

    second: float
    third: float
    error: float


def covariance_traces(
    design: SubsampleDesign, values: Floats, trace: float, monte_carlo: Floats
) -> Traces | None:
    r"""Estimate `tr C^2` and `tr C^3` of the covariance C of an ensemble's means.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values.
    trace : float
        Trace of the sampling part of C, by any estimator.
    monte_carlo : ndarray of shape (m, m)
        The other part of C, `zeta_k / B`.

    Returns
    -------
    Traces or None
        None where the influences are no larger than their noise.

    Notes
    -----
    The square of an estimated matrix is too large by the variance of its entries: by
    the noise of few learners, but also because there are only n units. Write the
    estimate as a sum over units,

    .. math::

        \hat C = \sum_i A_i, \qquad A_i = a (g_i g_i^\top - S) + M / n,

    :math:`g_i` being the influence of unit i on the m estimates, S the Monte Carlo
    covariance of one influence, M the Monte Carlo covariance of the estimates, and a
    the number that makes the trace what it is by the estimator in use. An influence
    is an error of the unit times a vector that depends on where the unit lies. Given
    where the units lie, and with normal errors, products of different units are free
    of bias, a square counts three times and a cube fifteen times. So the traces are

    .. math::

        \sum_{i \ne j} \operatorname{tr} A_i A_j
        + \frac{1}{3} \sum_i \operatorname{tr} A_i^2, \qquad
        \sum_{i, j, l \text{ different}} \operatorname{tr} A_i A_j A_l
        + \sum_{i \ne j} \operatorname{tr} A_i^2 A_j ,

    the noise being taken out of the terms with a square first. The cubes, one
    fifteenth, are left out: they matter only where few units do, and the approximation
    that the traces serve is then that of equal eigenvalues.
    """
    sums, n = sum_ensemble(design, values), design.n
    g = influence_values(sums)
    B = sums.n_learners
    spread = float(sums.count_squares / B - sums.appearances @ sums.appearances / B**2)
    S = spread / n * monte_carlo
    own = float(np.vdot(g, g)) - n * float(np.trace(S))
    if own <= 0 or trace <= 0:
        return None
    a = trace / own
    return _unbiased(np.sqrt(a) * g, a * S, monte_carlo)


def _unbiased(g: Floats, S: Floats, M: Floats) -> Traces:
    """Sum traces of products of `A_i = g_i g_i' - S + M / n`."""
    n, E = len(g), S - M / len(g)
    C = g.T @ g - n * E
    squares, mixed, cubes = _powers(g, E, C)
    noise = _noise_of_squares(C - M, S, n)
    kept = max(squares - float(np.trace(noise)), 0.0) / 3
    twice = mixed - cubes  # tr A_i^2 A_j of different units
    third = float(np.vdot(C @ C, C)) - 3 * twice - cubes
    third += max(twice - float(np.vdot(noise, C)), 0.0)
    error = _error_of_second(C - M, S, n)
    return Traces(float(np.vdot(C, C)) - squares + kept, third, error)


def _error_of_second(V: Floats, S: Floats, n: int) -> float:
    r"""Monte Carlo error of the sum of traces of products of different units.

    With normal noise of covariance S in the influences, whose squares sum up to V, the
    variance is :math:`4 n^2 ((\operatorname{tr} S^2)^2 + \operatorname{tr} S^4) + 8 n
    \operatorname{tr} V S V S + 16 \operatorname{tr} V^3 S`. The noise of V itself
    adds n times the first bracket to :math:`\operatorname{tr} V S V S`: taken off.
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
        by_E, by_C = (np.einsum("ij,ij->i", one, rows) for one in (gE, gC))
        squares += float(np.sum(d**2 - 2 * by_E))
        mixed += float(d @ by_C - 2 * np.vdot(gE, gC))
        cubes += float(np.sum(d**3 - 3 * d * by_E) + 3 * np.vdot(gE, gE))
    return squares, mixed, cubes


def _noise_of_squares(V: Floats, S: Floats, n: int) -> Floats:
    """Find what Monte Carlo noise adds to the sum of squares of the `A_i`."""
    t, VS = float(np.trace(S)), V @ S
    return np.asarray(t * V + float(np.trace(V)) * S + VS + VS.T + n * (t * S + S @ S))
