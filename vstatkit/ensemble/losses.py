"""How far out-of-bag predictions are from what was observed, row by row."""

import numpy as np
from scipy import stats

from vstatkit._typing import Floats, Ints


def row_losses(y: Floats, predicted: Floats, n_classes: int | None) -> Floats:
    """Squared error of every row; of classes, that of their probabilities.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Response, or class codes.
    predicted : ndarray of shape (n, c)
        Predictions; NaN where there are none.
    n_classes : int or None
        None for regression.

    Examples
    --------
    >>> row_losses(np.array([0.0, 1.0]), np.array([[0.5], [0.5]]), 2)
    array([0.25, 0.25])
    """
    if n_classes is None or n_classes == 2:
        return np.asarray((y - predicted[:, 0]) ** 2)
    own = np.arange(n_classes) == y[:, None]
    return np.asarray(((own - predicted) ** 2).sum(axis=1))


def mean_and_error(
    losses: Floats, members: Ints | None
) -> tuple[float, float, int, float]:
    """Average over rows, with a standard error over units.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        A number for each row.
    members : ndarray of shape (n,) or None
        Cluster of every row.

    Returns
    -------
    mean, error : float
        Mean, and its standard error: the standard deviation of the rows over the root
        of their number; of clusters, that of their sums about the mean.
    df : int
        Units less one.
    pvalue : float
        One-sided, by Student's t: the chance of such a mean if the true one is zero.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 2.0, 3.0]), None)[:3]
    (2.0, 0.5773502691896258, 2)
    """
    mean = float(losses.mean())
    away = losses - mean
    if members is not None:
        codes = np.unique(members, return_inverse=True)[1]
        away = np.bincount(codes, away)
    units = len(away)
    if units < 2:
        return mean, np.nan, 0, 1.0
    error = float(np.sqrt(units / (units - 1) * np.sum(away**2))) / len(losses)
    if error == 0:
        return mean, 0.0, units - 1, 1.0 if mean <= 0 else 0.0
    return mean, error, units - 1, float(stats.t.sf(mean / error, units - 1))
