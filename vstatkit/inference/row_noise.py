"""How much of the spread of predictions over rows is their own error."""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.inference.estimate import Estimation, value_units
from vstatkit.variance.registry import estimate_covariance

COLUMNS = 200
"""Errors whose covariances are estimated at a time."""


@dataclass(frozen=True)
class RowNoise:
    """A covariance of averages, as squares that are added and subtracted.

    Its roots are linear in the averages, as influences are, so that combinations and
    other units need no squares of large numbers.

    Attributes
    ----------
    roots : ndarray of shape (r, m)
        What is squared.
    signs : ndarray of shape (r,)
        One for squares that are added, minus one for those that are subtracted:
        estimated covariances may be indefinite.
    """

    roots: Floats
    signs: Floats

    def combined(self, coefs: Floats) -> "RowNoise":
        """Noise of linear combinations, shape (r, m), of the averages."""
        return replace(self, roots=self.roots @ coefs.T)

    def divided(self, unit: Floats) -> "RowNoise":
        """Noise of the averages in other units."""
        return replace(self, roots=self.roots / unit)

    @property
    def covariance(self) -> Floats:
        """The covariance, shape (m, m)."""
        return np.asarray((self.roots.T * self.signs) @ self.roots)


def row_noise(
    estimation: Estimation, errors: Floats, codes: Ints, n_levels: int
) -> RowNoise:
    r"""Estimate what the errors of predictions add to the squared influences of rows.

    Parameters
    ----------
    estimation : Estimation
        How variances of predictions are estimated.
    errors : ndarray of shape (B, p, v, c)
        Influences of p rows by every learner, on v averages of c outputs each.
    codes : ndarray of shape (p,)
        Level whose averages each row is in.
    n_levels : int
        Number of levels.

    Returns
    -------
    RowNoise
        Of the v * n_levels * c averages, in this order.

    Notes
    -----
    The influence of a row, :math:`g_j = w_j (\hat f(x_j) - \sum_i w_i \hat f(x_i))` but
    for a factor, is the mean of the same by every learner, so it has a variance as a
    prediction does, from the data and from the number of learners. The noise is

    .. math:: \sum_j \operatorname{Cov}(g_j, g_j') ,

    raw and not made positive: its mean over rows is without bias. Averages of different
    levels have no rows in common.
    """
    B, _, v, c = errors.shape
    roots, signs = [], []
    for level in range(n_levels):
        own = errors[:, codes == level].reshape(B, -1, v * c)
        unit = value_units(own.reshape(-1, v * c))
        values, vectors = np.linalg.eigh(summed_covariance(estimation, own / unit))
        placed = np.zeros((v * c, v, n_levels, c))
        scaled = np.sqrt(np.abs(values))[:, None] * vectors.T * unit
        placed[:, :, level] = scaled.reshape(-1, v, c)
        roots.append(placed.reshape(v * c, -1))
        signs.append(np.sign(values))
    return RowNoise(np.concatenate(roots), np.concatenate(signs))


def summed_covariance(estimation: Estimation, values: Floats) -> Floats:
    """Add up, over rows, the covariance of what every row contributes.

    Parameters
    ----------
    estimation : Estimation
        How variances are estimated.
    values : ndarray of shape (B, p, m)
        Contributions of p rows to m averages, by every learner.

    Returns
    -------
    ndarray of shape (m, m)
        Sampling and Monte Carlo part together.
    """
    B, p, m = values.shape
    step = max(1, COLUMNS // m)
    total = np.zeros((m, m))
    for first in range(0, p, step):
        some = values[:, first : first + step]
        sampling, monte_carlo = estimate_covariance(
            estimation.method,
            estimation.design,
            some.reshape(B, -1),
            estimation.orders,
        )
        blocks = (sampling + monte_carlo).reshape(2 * some.shape[1:])
        total += np.einsum("pipj->ij", blocks)
    return total
