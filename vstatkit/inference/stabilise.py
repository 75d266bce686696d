"""Variances that noise may have made negative, made positive."""

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates, ratio
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.noise import noise_variance, positive_mean
from vstatkit.variance.registry import ESTIMATORS

MIN_DF = 3.0
"""Least degrees of freedom; with fewer, a t interval is too wide to be useful."""


def stabilise(
    estimate: Floats,
    components: VarianceComponents,
    n_learners: float,
    *,
    unit: Floats | float = 1.0,
    limit: Floats | float = np.inf,
) -> Estimates:
    """Make the variance positive, bound it and find its degrees of freedom.

    Parameters
    ----------
    estimate : ndarray of shape (m,)
        Ensemble means.
    components : VarianceComponents
        Of the values divided by `unit`.
    n_learners : float
        Number B of learners.
    unit : ndarray of shape (m,) or float
        What the values were divided by.
    limit : ndarray of shape (m,) or float
        Largest standard deviation that an estimate can have, in its own unit.

    Notes
    -----
    The sampling variance V has Monte Carlo standard error s. Where V could be
    negative it is replaced by its posterior mean under a flat prior on positive
    values, `V+ = V + s phi(V/s) / Phi(V/s)`: positive, per query point,
    equivariant under changes of unit, without random numbers. In an ensemble too
    small to tell, it is at most what the spread of single learners allows; if that
    bound applies, the variance has the B - 1 degrees of freedom of the
    spread.

    The degrees of freedom are `2 (V+ + zeta_k/B)**2 / (mc + data)`: `mc` is the
    Monte Carlo variance of V, `data` the variance it would have with infinitely
    many learners (see `data_variance`), and what is not known about orders beyond
    the first is added. They are at least `MIN_DF`, and less than the number of
    units. A variance of replicates has its own, and is not bounded.
    """
    V, n = components.sampling, components.n
    nonnegative = ESTIMATORS[components.method].nonnegative
    positive = V if nonnegative else positive_mean(V, components.mc_se)
    scale = np.broadcast_to(np.asarray(unit, dtype=np.float64), V.shape)
    with np.errstate(over="ignore", under="ignore"):
        most = np.minimum(_ceiling(components), (limit / scale) ** 2)
    bounded = positive > most
    positive = np.minimum(positive, most)
    variance = positive + components.monte_carlo
    if components.noise is None or components.concentration is None:
        spread = components.mc_se**2
    else:
        data = positive**2 * data_variance(components.concentration, n)
        spread = noise_variance(positive, components.noise, n) + data
    if components.orders is not None:
        spread = spread + (components.orders.relative_error * positive) ** 2
    df = np.maximum(ratio(2 * variance**2, spread), MIN_DF)
    if components.df is not None:
        df = np.full_like(df, components.df)
    df = np.where(variance > 0, df, np.inf)  # estimates without error limit no others
    df = np.minimum(df, np.where(bounded, min(n, n_learners), n) - 1)
    df = np.maximum(df, 1.0)
    return Estimates(
        estimate, components, positive, bounded, df, n_learners, unit=scale
    )


def data_variance(concentration: Floats, n: int) -> Floats:
    """Variance of a variance estimate over data sets, relative to its square.

    Parameters
    ----------
    concentration : ndarray of shape (m,)
        `sum c**4 / (sum c**2)**2` of the influences.
    n : int
        Number of units.

    Notes
    -----
    The sample variance of n values with excess kurtosis g has the relative variance
    `2/(n - 1) + g/n`. The influences' own excess kurtosis, `n concentration - 3`, is
    bounded by n and much too small where units are few, so we use the estimate that is
    unbiased under normality.

    Examples
    --------
    >>> data_variance(np.array([3 / 102, 0.2]), 100).round(3)  # normal; five units
    array([0.02, 0.2 ])
    """
    excess = n * concentration - 3
    if n > 3:
        excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6)
    return np.maximum(2 / max(n - 1, 1) + excess / n, 0.0)


def _ceiling(components: VarianceComponents) -> Floats:
    """Bound of the sampling variance, infinite in ensembles that need none.

    An ensemble needs it if the Monte Carlo error at the bound is above half of
    the bound. Kernels that are linear in the observations attain it, and larger
    ensembles estimate it without bias: cutting off what exceeds it would bias them.
    """
    most = components.ceiling
    if components.noise is None:
        error = components.mc_se
    elif np.isinf(most).all():
        return most
    else:
        error = np.sqrt(noise_variance(most, components.noise, components.n))
    return np.where(error > most / 2, most, np.inf)
