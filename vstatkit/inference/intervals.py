"""Intervals of probabilities and of their differences: inside their range."""

from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.kernels.protocol import AnyKernel, Predictive

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Support:
    """The range of estimates that are probabilities, or combinations of them.

    Attributes
    ----------
    low, high : ndarray of shape (m,) or float
        Least and greatest value that an estimate can have.
    nobs : int
        Observations behind the estimates.
    """

    low: Floats | float
    high: Floats | float
    nobs: int

    def combined(self, coefs: Floats) -> "Support":
        """Range of linear combinations of the estimates.

        Parameters
        ----------
        coefs : ndarray of shape (r, m)
            Coefficients, one combination per row.
        """
        ends = np.stack([coefs * self.low, coefs * self.high])
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        return Support(low, high, self.nobs)

    @property
    def of_differences(self) -> "Support":
        """Range of the difference of two estimates that have the same range."""
        length = self.high - self.low
        return Support(-length, length, self.nobs)

    def beside(self, other: "Support", m: int, e: int) -> "Support":
        """Range of m estimates with this range and e with another, one by one."""
        ends = [
            np.concatenate([np.broadcast_to(a, m), np.broadcast_to(b, e)])
            for a, b in ((self.low, other.low), (self.high, other.high))
        ]
        return Support(ends[0], ends[1], self.nobs)

    def interval(
        self, estimate: Floats, error: Floats, critical: Floats | float
    ) -> tuple[Floats, Floats]:
        """Agresti and Coull's intervals, on an effective number of observations.

        Parameters
        ----------
        estimate, error : ndarray of shape (m,)
            Estimates and their standard errors.
        critical : ndarray of shape (m,) or float
            Quantile that the standard errors are multiplied by.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            Inside the range, and around the estimate.

        Notes
        -----
        The share p of a class among N independent observations has the variance
        `p (1 - p) / N`, so a standard error s stands for `N = p (1 - p) / s**2` of
        them. To these `z**2` are added, half to the class and half to its complement
        (z is `critical`), and the interval is that of the share q among `N + z**2`:
        `q ± z sqrt(q (1 - q) / (N + z**2))`, cut off at the ends. N is at most
        `nobs`: no probability is taken to be known better than the share of a class
        among all observations. Where all learners agree on p = 0 the upper bound is
        about 4.6/nobs at 95 %.

        Differences, whose range has zero inside, may well be known better than
        that, and N has no bound but at the very ends.

        References
        ----------
        Agresti and Coull (1998), Approximate is better than "exact" for interval
        estimation of binomial proportions, The American Statistician 52.
        doi:10.1080/00031305.1998.10480550

        Examples
        --------
        >>> lower, upper = Support(0.0, 1.0, 200).interval(
        ...     np.array([0.0, 0.5]), np.array([0.0, 0.1]), 2.0
        ... )
        >>> lower.round(3), upper.round(3)
        (array([0.   , 0.314]), array([0.024, 0.686]))
        """
        low, high = np.asarray(self.low), np.asarray(self.high)
        length = high - low
        unit = np.where(length > 0, length, 1.0)
        share = np.clip((estimate - low) / unit, 0.0, 1.0)
        # A share of one to the last digit may have an error above zero.
        spread = np.maximum(share * (1 - share), EPSILON)
        differences = (low < 0) & (high > 0) & (spread > EPSILON)
        most = np.where(differences, np.inf, self.nobs)
        added = _added_share(critical, spread, error / unit, most)
        centre = share + added * (0.5 - share)
        half = np.sqrt(added * centre * (1 - centre))
        lower = np.clip(centre - half, 0.0, share)
        upper = np.clip(centre + half, share, 1.0)
        return low + length * lower, low + length * upper


def _added_share(
    critical: Floats | float, spread: Floats, error: Floats, most: Floats
) -> Floats:
    """Share `z**2 / (N + z**2)` of the observations that are added, in [0, 1]."""
    # An overflow is infinite, and a division by it is zero, as it should be.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        square = np.asarray(critical, dtype=np.float64) ** 2
        by_error = 1 / (1 + spread / (critical * error) ** 2)
        by_nobs = 1 / (1 + most / square)
    return np.fmax(by_error, by_nobs)


def value_limit(kernel: AnyKernel) -> float | None:
    """Largest standard deviation that a prediction can have, where it is known.

    Half the range of what a learner can predict: probabilities lie between zero
    and one, means of responses between the smallest and the largest.
    """
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return getattr(kernel, "limit", None) if kernel.n_classes is None else 0.5


def prediction_support(kernel: Predictive, nobs: int) -> Support | None:
    """Range of the predictions, where they are probabilities."""
    return None if kernel.n_classes is None else Support(0.0, 1.0, nobs)


def value_support(kernel: AnyKernel, nobs: int) -> Support | None:
    """Range of the kernel's values, where they are probabilities."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return prediction_support(kernel, nobs)
