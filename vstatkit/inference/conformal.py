"""Conformal quantiles: bounds of a new value, from observed values and their masses."""

import numpy as np

from vstatkit._typing import Floats, Ints

ROUNDING = 1e-9  # relative rounding error allowed in a sum of masses


def unit_masses(unit_of_row: Ints, weights: Floats | None = None) -> Floats:
    """Compute the mass of each observation; units have equal masses by default.

    Parameters
    ----------
    unit_of_row : ndarray of shape (s,)
        Unit (observation or cluster) of every observation.
    weights : ndarray of shape (s,), optional
        Weights of the observations.

    Returns
    -------
    ndarray of shape (s,)
        Weights divided by the size of the unit; the mean mass of a unit is one.

    Notes
    -----
    With clusters this is the distribution of an observation drawn at random from a
    cluster drawn at random, not that of a row drawn at random.

    References
    ----------
    Dunn, Wasserman and Ramdas (2023), Journal of the American Statistical
    Association 118, doi:10.1080/01621459.2022.2060112; Lee, Barber and Willett
    (2023), arXiv:2306.06342.

    Examples
    --------
    >>> unit_masses(np.array([0, 1, 1]))
    array([1. , 0.5, 0.5])
    """
    _, place, sizes = np.unique(unit_of_row, return_inverse=True, return_counts=True)
    masses: Floats = 1 / sizes[place]
    if weights is None:
        return masses
    weighted = masses * weights
    return np.asarray(weighted * (sizes.size / weighted.sum()))


def upper_quantile(values: Floats, masses: Floats, alpha: float) -> Floats | None:
    r"""Bound a new value from above, with probability 1 - alpha.

    Parameters
    ----------
    values : ndarray of shape (s,) or (s, m)
        Observed values, in columns.
    masses : ndarray of shape (s,)
        Mass of each value; a unit has mass one on average (see `unit_masses`).
    alpha : float
        One minus the level.

    Returns
    -------
    ndarray of shape () or (m,), or None
        None if there are too few units for the level.

    Notes
    -----
    The smallest value v with

    .. math:: \sum_{i: v_i \le v} p_i \ge (1 - \alpha) (\sum_i p_i + 1) :

    The new value has mass one and might be the largest. With masses of one this is the
    order statistic :math:`\lceil (1 - \alpha)(n + 1) \rceil` of split
    conformal prediction.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World;
    Tibshirani, Barber, Candes and Ramdas (2019), NeurIPS 32 (masses).

    Examples
    --------
    >>> float(upper_quantile(np.arange(1.0, 20.0), np.ones(19), 0.1))
    18.0
    >>> upper_quantile(np.arange(1.0, 20.0), np.ones(19), 0.01) is None
    True
    """
    total = float(masses.sum())
    target = (1 - alpha) * (total + 1) * (1 - ROUNDING)
    if values.size == 0 or total < target:
        return None
    if np.all(masses == 1):
        rank = max(int(np.ceil(target)), 1)
        return np.asarray(np.partition(values, rank - 1, axis=0)[rank - 1])
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(masses[order], axis=0) >= target
    # Rounding may keep the last cumulative sum below the total.
    reached[-1] = True
    first = np.expand_dims(reached.argmax(axis=0), 0)
    bound = np.take_along_axis(values, np.take_along_axis(order, first, axis=0), axis=0)
    return np.asarray(bound[0])


def lower_quantile(values: Floats, masses: Floats, alpha: float) -> Floats | None:
    """Bound a new value from below, with probability 1 - alpha."""
    bound = upper_quantile(-values, masses, alpha)
    return None if bound is None else -bound


def least_units(alpha: float) -> int:
    """Compute the smallest number of units for a one-sided level."""
    return max(int(np.ceil(1 / alpha * (1 - ROUNDING))) - 1, 1)
