"""Ranges of estimates, intervals of probabilities within them, and bands."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.kernels.base import AnyKernel, PredictiveModel
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.validation import check_alpha

EPSILON = float(np.finfo(np.float64).eps)

MOST_TIMES = 4.0  # largest ratio of the N of a single probability to the typical one


@dataclass(frozen=True)
class Support:
    """The range of estimates that are probabilities, or combinations of them."""

    # (m,) or float: least and greatest value that an estimate can have
    low: Floats | float
    high: Floats | float
    nobs: float  # effective number of observations behind a single probability, at most
    # (m,) or bool: whether estimates combine several probabilities, and may be known
    # better
    average: Bools | bool = False

    def combine(self, coefs: Floats) -> "Support":
        """Compute the range of linear combinations (r, m) of the estimates."""
        several = (coefs != 0).sum(axis=1) > 1
        averages = (coefs != 0) & np.broadcast_to(self.average, coefs.shape[1])
        low, high = _combine_ends(coefs, self.low, self.high)
        return Support(low, high, self.nobs, several | averages.any(axis=1))

    @property
    def of_differences(self) -> "Support":
        """Range of the difference of two estimates that have the same range."""
        length = self.high - self.low
        return Support(-length, length, self.nobs)

    def join(self, other: "Support", m: int, e: int) -> "Support":
        """Join the range of m estimates with the range of e others."""
        low = _join(self.low, m, other.low, e)
        high = _join(self.high, m, other.high, e)
        return Support(low, high, self.nobs, _join(self.average, m, other.average, e))

    def interval(
        self,
        estimate: Floats,
        error: Floats,
        critical: Floats | float,
        least: float | None = None,
    ) -> tuple[Floats, Floats]:
        """Compute Agresti-Coull intervals for an effective number of observations.

        `critical` is the quantile that the standard errors are multiplied by, and
        `least` the one used if `nobs` applies instead; by default the same. The lower
        and the upper ends are inside the range, and around the estimate.

        A standard error s of the share p corresponds to `N = p (1 - p) / s**2`
        observations. Adding `z**2` of them, half to the class (z is `critical`), gives
        the share q and the interval `q ± z sqrt(q (1 - q) / (N + z**2))`, truncated to
        the range. N is at most `nobs` (see `effective_size`), except for averages and
        differences inside their range. If the standard error of these is zero, the
        interval is `[p - u p, p + u (1 - p)]`, where u is the upper bound of a single
        probability of zero. See "Intervals of probabilities" in docs/theory.md.

        Agresti and Coull (1998), Approximate is better than "exact" for interval
        estimation of binomial proportions, The American Statistician 52.
        doi:10.1080/00031305.1998.10480550
        """
        low, high = np.asarray(self.low), np.asarray(self.high)
        length = high - low
        unit = np.where(length > 0, length, 1.0)
        share = np.clip((estimate - low) / unit, 0.0, 1.0)
        # A share that is one up to rounding may have an error above zero.
        spread = np.maximum(share * (1 - share), EPSILON)
        several = ((low < 0) & (high > 0)) | self.average
        most = np.where(several & (spread > EPSILON), np.inf, self.nobs)
        lower_z = critical if least is None else least
        added = _added_share(critical, lower_z, spread, error / unit, most)
        centre = share + added * (0.5 - share)
        half = np.sqrt(added * centre * (1 - centre))
        lower = np.clip(centre - half, 0.0, share)
        upper = np.clip(centre + half, share, 1.0)
        # Upper bound of a probability that all learners estimate as zero
        zero = np.zeros(1)
        added = _added_share(lower_z, lower_z, zero + EPSILON, zero, zero + self.nobs)
        bound = np.minimum(added / 2 + np.sqrt(added**2 * (2 - added)) / 2, 1.0)
        agreed = several & (error <= EPSILON * unit)  # learners differ by rounding
        lower = np.where(agreed, share - bound * share, lower)
        upper = np.where(agreed, share + bound * (1 - share), upper)
        return low + length * lower, low + length * upper


def _combine_ends(
    coefs: Floats, low: Floats | float, high: Floats | float
) -> tuple[Floats, Floats]:
    """Compute the ends of the range of linear combinations (r, m)."""
    with np.errstate(invalid="ignore"):
        ends = np.stack([coefs * low, coefs * high])
    ends = np.where(coefs == 0, 0.0, ends)
    return ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)


def _join(a: Any, m: int, b: Any, e: int) -> Any:
    """Join a number, or numbers, of m estimates with those of e others."""
    return np.concatenate([np.broadcast_to(a, m), np.broadcast_to(b, e)])


def _added_share(
    critical: Floats | float,
    least: Floats | float,
    spread: Floats,
    error: Floats,
    most: Floats,
) -> Floats:
    """Compute the share `z**2 / (N + z**2)` of added observations, in [0, 1]."""
    # An overflow is infinite, and division by it gives zero, which is right.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        square = np.asarray(least, dtype=np.float64) ** 2
        by_error = 1 / (1 + spread / (critical * error) ** 2)
        by_nobs = 1 / (1 + most / square)
    return np.fmax(by_error, by_nobs)


@dataclass(frozen=True)
class Tails:
    """Range, skewness and typical error of estimates that are not probabilities."""

    # (m,) or float: typical standard error of predictions, the root of their mean
    # sampling variance; zero for other estimates
    error: Floats | float = 0.0
    # (m,) or float: typical skewness of predictions; NaN if the estimate's own is used
    skew: Floats | float = np.nan
    # (m,) or float: least and greatest value of an estimate, possibly infinite
    low: Floats | float = -np.inf
    high: Floats | float = np.inf

    def combine(self, coefs: Floats) -> "Tails":
        """Compute the tails of linear combinations (r, m) of the estimates.

        A multiple of a single prediction keeps the typical error and skewness; other
        combinations use their own skewness.
        """
        single = (coefs != 0).sum(axis=1) == 1
        error = np.where(single, (np.abs(coefs) * self.error).sum(axis=1), 0.0)
        skews = np.where(coefs != 0, np.broadcast_to(self.skew, coefs.shape[1]), 0.0)
        skew = np.where(single, (np.sign(coefs) * skews).sum(axis=1), np.nan)
        return Tails(error, skew, *_combine_ends(coefs, self.low, self.high))

    @property
    def of_averages(self) -> "Tails":
        """Tails of averages, in the same range."""
        return Tails(low=self.low, high=self.high)

    @property
    def of_differences(self) -> "Tails":
        """Tails of the difference of two estimates."""
        length = float(np.max(self.high) - np.min(self.low))
        return Tails(low=-length, high=length)

    def join(self, m: int, e: int) -> "Tails":
        """Join the tails of m estimates with those of e differences."""
        other = vars(self.of_differences)
        own = vars(self).items()
        return Tails(**{name: _join(ends, m, other[name], e) for name, ends in own})

    def shift(self, by: Floats) -> "Tails":
        """Shift the range with the estimates."""
        return replace(self, low=self.low + by, high=self.high + by)


def effective_size(share: Floats, variance: Floats, units: int) -> float:
    """Compute the largest effective number of observations of single probabilities.

    `share` and `variance` are probabilities at reference rows and their estimated
    variances. The result is from 1 to the number of units.

    Variances V of probabilities p correspond to `N = sum p (1 - p) / sum V`
    observations on average. At a single point, N is at most `MOST_TIMES` times as
    large: much larger values mean that learners agree by chance. The number of rows in
    leaves is not a valid bound, because pure leaves are large if the probability is
    underestimated.
    """
    spread, total = float(np.sum(share * (1 - share))), float(np.sum(variance))
    if spread <= 0 or total <= 0:
        return float(units)
    return float(np.clip(MOST_TIMES * spread / total, 1.0, units))


def value_limit(kernel: AnyKernel) -> float | None:
    """Return half the range of predictions: their largest standard deviation."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return getattr(kernel, "limit", None) if kernel.n_classes is None else 0.5


def prediction_support(
    kernel: PredictiveModel, nobs: float, *, average: bool = False
) -> Support | None:
    """Return the range of predictions that are probabilities; None for others."""
    return None if kernel.n_classes is None else Support(0.0, 1.0, nobs, average)


def prediction_tails(kernel: PredictiveModel) -> Tails | None:
    """Return the range of predictions as tails; None for probabilities."""
    if kernel.n_classes is not None:
        return None
    bounds = getattr(kernel, "bounds", None)
    return Tails() if bounds is None else Tails(low=bounds[0], high=bounds[1])


# Gaussian draws for a simultaneous critical value (error of about 0.3 %).
BAND_DRAWS = 20_000


def simultaneous_critical_value(
    matrix: Floats, alpha: float, df: float, seed: int
) -> float:
    """Compute the quantile of the largest |t| over all estimates, from seeded draws."""
    check_alpha(alpha)
    scale = np.sqrt(np.diag(matrix))
    live = scale > 0
    if not live.any():
        return float(stats.t.isf(alpha / 2, df))
    correlation = matrix[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    roots, vectors = np.linalg.eigh(correlation)
    half = vectors * np.sqrt(np.maximum(roots, 0.0))
    rng = stream(seed, 0, Purpose.BAND)
    normal = rng.standard_normal((BAND_DRAWS, half.shape[1])) @ half.T
    if np.isfinite(df):
        normal /= np.sqrt(rng.chisquare(df, BAND_DRAWS) / df)[:, None]
    return float(np.quantile(np.abs(normal).max(axis=1), 1 - alpha))


def band_critical_values(matrix: Floats, alpha: float, df: Floats, seed: int) -> Floats:
    """Compute the quantiles of a band, one for each estimate.

    Each estimate has its degrees of freedom, shape (m,). The largest of correlated
    normal variables gives the level of each interval. The quantile is Student's t of
    that level with the harmonic mean of the degrees of freedom, and at least that of
    the single interval: the smallest degrees of freedom would make bands much too wide,
    and a largest |t| with a common error of the standard errors too narrow.
    """
    largest = simultaneous_critical_value(matrix, alpha, np.inf, seed)
    level = 2 * float(stats.norm.sf(largest))
    inverse = float(np.mean(1 / df))
    common = stats.t.isf(level / 2, 1 / inverse if inverse > 0 else np.inf)
    return np.asarray(np.maximum(common, stats.t.isf(alpha / 2, df)))
