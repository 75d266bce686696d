"""When standard errors are known well enough, and how many learners that takes."""

from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference import Estimates, ratio

TOL = 0.1
"""Relative Monte Carlo error of a standard error that counts as none."""

SMALL = 0.02
"""Standard error, as a share of half the range of the response, that is small.

Smaller ones need not be known better than this one: at the default `TOL` to within
a thousandth of the range, 0.001 for probabilities.
"""


@dataclass(frozen=True)
class Tolerance:
    """Monte Carlo errors of standard errors that are small enough.

    Attributes
    ----------
    tol : float
        Largest error, relative to the standard error.
    atol : ndarray of shape (m,) or float
        Error that never matters, in the unit of the estimates.
    pooled : bool
        Whether the estimates are points that stand for many others: then the root
        mean square of the errors counts, and `tol` is relative to the root mean
        square of the standard errors. Otherwise every estimate counts by itself.
    """

    tol: float
    atol: Floats | float = 0.0
    pooled: bool = False

    def cautious(self) -> "Tolerance":
        """Tighten the tolerance, because the variance is estimated too.

        An ensemble that happens to overestimate its variance V looks precise early.
        So the error s of V is held against V - 2 s: `s / (2 (V - 2 s)) <= tol` is
        `s / (2 V) <= tol / (1 + 4 tol)`.
        """
        margin = 1 + 4 * self.tol
        return Tolerance(self.tol / margin, self.atol / margin, self.pooled)

    def allowed(self, estimates: Estimates) -> Floats:
        """Largest relative error of every estimate by itself, shape (m,)."""
        deviation = np.sqrt(estimates.scaled_variance)
        absolute = np.broadcast_to(self.atol / estimates.unit, deviation.shape)
        return np.maximum(self.tol, ratio(absolute, deviation, zero=0.0))

    def excess(self, estimates: Estimates) -> float:
        """Largest error over what is allowed: at most one where it is met."""
        reached = estimates.relative_mc_error
        if not self.pooled:
            return float(np.max(reached / self.allowed(estimates)))
        weights, target = self._pool(estimates)
        return float(np.sqrt(np.sum(weights * reached**2) / target))

    def needed(self, estimates: Estimates) -> Floats:
        """Learners that meet the tolerance: for every estimate, or for all as one.

        The forecast takes the variances for known. Where `excess` is one it is the
        number of learners that there are.
        """
        if not self.pooled:
            return estimates.learners_needed(self.allowed(estimates))
        weights, target = self._pool(estimates)
        squares = (2 * estimates.scaled_variance) ** 2
        a, b = (
            np.atleast_1d(np.sum(weights * ratio(part, squares, zero=0.0)))
            for part in estimates.error_law
        )
        return (b + np.sqrt(b**2 + 4 * a * target)) / (2 * target)

    def _pool(self, estimates: Estimates) -> tuple[Floats, float]:
        """Weights of squared relative errors, and what their sum may be.

        Standard errors are taken relative to the largest: squares of huge and tiny
        ones would leave the range of floating point.
        """
        largest = float(estimates.bse.max())
        if largest == 0:
            return np.zeros_like(estimates.bse), 1.0
        weights = (estimates.bse / largest) ** 2
        absolute = float(np.sum(np.square(self.atol / largest * np.ones(weights.size))))
        return weights, max(self.tol**2 * float(weights.sum()), absolute)


def tolerance_of(
    tol: float | None, atol: float | None, limit: Floats | float | None
) -> Tolerance:
    """Fill in what was not given.

    Parameters
    ----------
    tol : float or None
        Relative tolerance; None for `TOL`.
    atol : float or None
        Absolute tolerance; None for `tol` times a `SMALL` standard error.
    limit : ndarray of shape (m,), float or None
        Half the range of what learners predict; None where it is unknown.
    """
    tol = TOL if tol is None else tol
    if atol is not None:
        return Tolerance(tol, atol)
    return Tolerance(tol, 0.0 if limit is None else tol * SMALL * limit)


def about(number: float) -> str:
    """Write a forecast with two significant digits, rounded up.

    Examples
    --------
    >>> about(53_964.2), about(87), about(130.0)
    ('54,000', '87', '130')
    """
    if not np.isfinite(number) or number < 1:
        return f"{number:,.0f}"
    step = 10 ** max(0, int(np.floor(np.log10(number))) - 1)
    return f"{int(np.ceil(number / step)) * step:,}"
