"""Standard errors that hold at practical B, intervals, bands and tests."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.inference.intervals import (
    Support,
    Tails,
    bend,
    beyond_small,
    known_skew,
    least_error,
    quantile_of,
    reach,
    trusted_share,
)
from vstatkit.options import check_alpha
from vstatkit.showing import short_repr
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.noise import noise_variance, positive_mean


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
        Range of probabilities, which their intervals do not leave; None for other
        estimates.
    tails : Tails or None
        What is known of the tails of other estimates, besides their own influences.
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
    tails: Tails | None = None

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
        """Distance from the null in standard errors; nan if these are zero."""
        return self._tested(ratio(self.estimate - self.null, self.bse))

    def _tested(self, numbers: Floats) -> Floats:
        """Replace the numbers of tests by nan if learners do not vary.

        A standard error of zero says nothing about other data, so there is no test.
        """
        return np.where(self.bse == 0, np.nan, numbers)

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-values of the null.

        By Student's t. Where intervals allow for skewness, p-values do so too: one is
        below alpha if the 1 - alpha interval does not hold the null. For probabilities
        the two may disagree. They are nan if the standard error is zero.
        """
        if self.support is not None:
            return two_sided(self.zvalues, self.df)
        distance = ratio(self.estimate - self.null, self._reaching_error)
        curvature = np.sign(distance) * self._curvature
        found = two_sided(quantile_of(np.abs(distance), curvature), self.df)
        return self._tested(found)

    @cached_property
    def own_skew(self) -> Floats:
        """Skewness that the influences show, without noise and chance.

        It is zero if the Monte Carlo error of the standard error is large; see
        `trusted_share`.
        """
        skew, concentration = self.scaled.skew, self.scaled.concentration
        if skew is None or concentration is None or self.scaled.noise is None:
            return np.zeros_like(self.estimate)
        noise = ratio(self.scaled.noise, self.positive, zero=np.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            found = known_skew(skew, noise, concentration, self.scaled.n)
        found = found * trusted_share(self.relative_mc_error)
        return np.where(np.isfinite(noise), found, 0.0)

    @cached_property
    def skew(self) -> Floats:
        """Skewness that intervals allow for; zero if it is small."""
        known = np.nan if self.tails is None else self.tails.skew
        return beyond_small(np.where(np.isnan(known), self.own_skew, known))

    @property
    def _curvature(self) -> Floats:
        return bend(self.skew, np.asarray(stats.t.isf(stats.norm.sf(2), self.df)))

    @property
    def _reaching_error(self) -> Floats:
        """Standard errors that intervals use: at least a share of typical ones."""
        if self.tails is None:
            return self.bse
        return np.maximum(self.bse, least_error(self.skew, self.tails.error))

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
            Inside their `support`, if there is one. Others are symmetric about the
            estimates unless these are skewed: such intervals are longer on the side of
            the long tail. None leaves the range that responses have.
        """
        t = self._quantile(alpha) if critical is None else critical
        if self.support is not None:
            least = float(stats.norm.isf(alpha / 2)) if critical is None else None
            return self.support.interval(self.estimate, self.bse, t, least)
        error, curvature = self._reaching_error, self._curvature
        lower = self.estimate - reach(t, curvature) * error
        upper = self.estimate + reach(t, -curvature) * error
        if self.tails is None:
            return lower, upper
        lower = np.maximum(lower, np.minimum(self.tails.low, self.estimate))
        return lower, np.minimum(upper, np.maximum(self.tails.high, self.estimate))

    @property
    def relative_mc_error(self) -> Floats:
        """Monte Carlo error of the standard error, relative to it.

        Relative to the standard error that is likely (see `likely_sampling`), which
        the error itself does not inflate.
        """
        noise = np.sqrt(self._noise_at(self.likely_sampling))
        return ratio(noise, 2 * self.likely_variance, zero=0.0)

    @property
    def monte_carlo_share(self) -> Floats:
        """Share of the variance that more learners would remove."""
        return ratio(self.scaled.monte_carlo, self.scaled_variance, zero=0.0)

    @cached_property
    def likely_sampling(self) -> Floats:
        r"""The sampling variance by which Monte Carlo errors are measured.

        In squares of `unit`. A variance made positive grows with its own error s, so
        that ensembles that are much too small would seem to need few learners more.
        Where the share of a learner's variance is known that is typical of the
        ensemble's (`HigherOrders.share`), the estimate V and the typical :math:`V_0`
        are averaged with the weights :math:`\tau^2` and :math:`s^2`,

        .. math:: \tau^2 = V_0^2 + \max((V - V_0)^2 - (2 s)^2, 0) ,

        the second part for :math:`V > V_0` only: a variance that is clearly larger
        than the typical one counts as it is.
        """
        parts, orders = self.scaled, self.scaled.orders
        if parts.noise is None or orders is None or not orders.share > 0:
            return self.positive
        V, s2 = parts.sampling, parts.mc_se**2
        typical = orders.factor * orders.share * parts.zeta_k
        above = np.maximum(V - typical, 0.0) ** 2 - 4 * s2
        spread = typical**2 + np.maximum(above, 0.0)
        weight = ratio(spread, spread + s2)
        mean = weight * V + (1 - weight) * typical
        return positive_mean(mean, np.sqrt(weight * s2))

    @property
    def likely_variance(self) -> Floats:
        """Likely squared standard errors, in squares of `unit`."""
        return self.likely_sampling + self.scaled.monte_carlo

    def _noise_at(self, sampling: Floats) -> Floats:
        """Monte Carlo variance of a sampling variance, in fourth powers of `unit`."""
        noise = self.scaled.noise
        if noise is None:
            return self.scaled.mc_se**2
        return noise_variance(sampling, noise, self.scaled.n)

    @property
    def bse_mc_error(self) -> Floats:
        """Monte Carlo error of the standard errors, in their unit.

        By the delta method: that of the variance over twice the standard error.
        """
        twice = 2 * np.sqrt(self.scaled_variance)
        return ratio(self.scaled.mc_se, twice, zero=0.0) * self.unit

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
        likely = np.maximum(self.likely_sampling, 0.0)  # replicates leave it as it is
        return 2 * self.scaled.n * (noise * B) ** 2, 4 * noise * B * likely

    def learners_needed(self, tol: Floats | float) -> Floats:
        """Estimate the B at which the relative Monte Carlo error is `tol`."""
        return learners_at((2 * tol * self.likely_variance) ** 2, *self.error_law)


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
