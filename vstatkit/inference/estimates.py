"""Standard errors that hold at practical B, intervals, bands and tests."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.inference.intervals import Support
from vstatkit.showing import short_repr
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.noise import noise_variance


@dataclass(frozen=True)
class Estimates:
    """Estimates with their standard errors and degrees of freedom.

    Attributes
    ----------
    estimate : ndarray of shape (m,)
        Ensemble means.
    scaled : VarianceComponents
        Raw variance components, negative or not, in squares of `unit`.
    positive : ndarray of shape (m,)
        The sampling variance, made positive and bounded, in squares of `unit`.
    bounded : ndarray of shape (m,)
        Whether the bound was needed.
    df : ndarray of shape (m,)
        Degrees of freedom of the variance: at least `MIN_DF`, unless there are
        fewer units or learners, and less than the number of units.
    n_learners : float
        Number B of learners.
    unit : ndarray of shape (m,)
        Unit of the standard errors, a power of two: squares and fourth powers of
        the values themselves may leave the range of floating point.
    null : ndarray of shape (m,) or float
        Values that the tests compare the estimates with.
    support : Support or None
        Range of probabilities, which their intervals do not leave; None for
        intervals that are symmetric about the estimate.
    """

    estimate: Floats
    scaled: VarianceComponents
    positive: Floats
    bounded: Bools
    df: Floats
    n_learners: float
    unit: Floats
    null: Floats | float = 0.0
    support: Support | None = None

    __repr__ = short_repr

    @cached_property
    def components(self) -> VarianceComponents:
        """Raw variance components, negative or not."""
        return self.scaled.in_units(self.unit)

    @property
    def sampling(self) -> Floats:
        """The sampling variance, made positive and bounded."""
        return self._squared_units(self.positive)

    @property
    def variance(self) -> Floats:
        """Variance behind the standard errors."""
        return self._squared_units(self.scaled_variance)

    @property
    def scaled_variance(self) -> Floats:
        """The same in squares of `unit`."""
        return self.positive + self.scaled.monte_carlo

    def _squared_units(self, number: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return number * self.unit * self.unit

    @property
    def bse(self) -> Floats:
        """Standard errors."""
        return np.sqrt(self.scaled_variance) * self.unit

    @property
    def zvalues(self) -> Floats:
        """Distance from the null in standard errors; infinite where these are zero."""
        return ratio(self.estimate - self.null, self.bse)

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-values of the null, by Student's t."""
        return two_sided(self.zvalues, self.df)

    def _quantile(self, alpha: float) -> Floats:
        check_alpha(alpha)
        return np.asarray(stats.t.isf(alpha / 2, self.df))

    def half_width(self, alpha: float) -> Floats:
        """Half the width of the symmetric 1 - alpha interval."""
        return self._quantile(alpha) * self.bse

    def interval(
        self, alpha: float, critical: Floats | float | None = None
    ) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the 1 - alpha intervals.

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        critical : ndarray of shape (m,) or float, optional
            Multiplier of the standard errors; Student's t by default.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            Symmetric about the estimates, or inside their `support`.
        """
        t = self._quantile(alpha) if critical is None else critical
        if self.support is None:
            half = t * self.bse
            return self.estimate - half, self.estimate + half
        return self.support.interval(self.estimate, self.bse, t)

    @property
    def relative_mc_error(self) -> Floats:
        """Monte Carlo error of the standard error, relative to it."""
        return ratio(self._variance_noise, 2 * self.scaled_variance, zero=0.0)

    @property
    def monte_carlo_share(self) -> Floats:
        """Share of the variance that more learners would remove."""
        return ratio(self.scaled.monte_carlo, self.scaled_variance, zero=0.0)

    @property
    def _variance_noise(self) -> Floats:
        noise = self.scaled.noise
        if noise is None:
            return self.scaled.mc_se
        return np.sqrt(noise_variance(self.positive, noise, self.scaled.n))

    @property
    def error_law(self) -> tuple[Floats, Floats]:
        """How the Monte Carlo variance of the variance falls: `a/B**2 + b/B`.

        Returns
        -------
        a, b : ndarray of shape (m,)
            In fourth powers of `unit`.
        """
        B, noise = self.n_learners, self.scaled.noise
        if noise is None:
            return np.zeros_like(self.positive), B * self.scaled.mc_se**2
        positive = np.maximum(self.positive, 0.0)  # replicates leave it as it is
        return 2 * self.scaled.n * (noise * B) ** 2, 4 * noise * B * positive

    def learners_needed(self, tol: Floats | float) -> Floats:
        """Estimate the B at which the relative Monte Carlo error is `tol`."""
        return learners_at((2 * tol * self.scaled_variance) ** 2, *self.error_law)


def learners_at(target: Floats, a: Floats, b: Floats) -> Floats:
    """Solve `a/B**2 + b/B = target` for B; zero where the target is."""
    return ratio(b + np.sqrt(b**2 + 4 * a * target), 2 * target, zero=0.0)


def ratio(a: Floats, b: Floats, *, zero: float | None = None) -> Floats:
    """Divide, with 0/0 = 0 and x/0 = `zero`, or signed infinity by default.

    What is not known stays so: nan over or under anything is nan.
    """
    beyond = np.copysign(np.inf if zero is None else zero, a)
    beyond = np.where(a == 0, 0.0, np.where(np.isnan(a), np.nan, beyond))
    return np.divide(a, b, out=beyond, where=(b > 0) | np.isnan(b))


def two_sided(statistic: Floats, df: Floats) -> Floats:
    """Two-sided p-values by the survival function."""
    return np.asarray(2 * stats.t.sf(np.abs(statistic), df))


def check_alpha(alpha: float) -> None:
    """Refuse levels outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(
            f"`alpha` must lie strictly between 0 and 1 (0.05 gives 95 % intervals); "
            f"got {alpha}."
        )
