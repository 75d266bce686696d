"""Estimates at reference rows, which describe predictions in general."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.estimates import Estimates, Estimation
from vstatkit.inference.intervals import (
    Support,
    Tails,
    effective_size,
    noise_of_skew,
    shrink_skew,
)
from vstatkit.variance.registry import compares_groups

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


TYPICAL_VALUES = 300  # most reference values whose moments are pooled
TYPICAL_LEARNERS = 5000  # most learners whose predictions of them are pooled
TYPICAL_DRAWS = 400_000_000  # most draws, learners times reference values, of them
FEWEST_LEARNERS = 50  # fewest learners from which their variances are estimated


def with_typical(results: "EnsembleResults") -> "EnsembleResults":
    """Add the support and tails of predictions in general, for their intervals."""
    predictor, rows = results.predictor, results.reference
    if predictor is None or rows is None:
        return results
    how = Estimation(
        results.design, results.variance, results._largest_limit, results.orders
    )
    typical = typical_estimates(predictor, rows, how, results.B)
    support, tails = results.support, results.tails
    if support is not None:
        support = typical_support(support, typical, results.design.n)
    if tails is not None and predictor.centre is not None:
        tails = Tails()  # stacked learners may leave the range of the response
    if tails is not None:
        tails = typical_tails(tails, typical)
    return replace(results, support=support, tails=tails)


def typical_estimates(
    predictor: Predictor, rows: Floats, how: Estimation, B: int
) -> Estimates | None:
    """Estimate at some reference rows; None if too few learners were kept."""
    some = rows[: max(1, TYPICAL_VALUES // predictor.kernel.n_outputs)]
    all_of_them = compares_groups(how.method) or how.design.complete
    draws = how.design.k * len(some) * predictor.kernel.n_outputs
    most = min(TYPICAL_LEARNERS, max(TYPICAL_DRAWS // draws, FEWEST_LEARNERS))
    L = B if all_of_them else min(B, predictor.n_kept, most)
    if min(B, FEWEST_LEARNERS) > L or predictor.n_kept < L:
        return None
    return how.of(predictor.first(L).values(some)[:L])


def typical_support(support: Support, typical: Estimates | None, units: int) -> Support:
    """Bound the effective number of observations behind a probability."""
    if typical is None:
        return replace(support, nobs=float(units))
    size = effective_size(typical.estimate, typical.components.total, units)
    return replace(support, nobs=size)


def typical_tails(tails: Tails, typical: Estimates | None) -> Tails:
    """Pool variance and skewness over reference rows.

    The skewness is the ratio of two sums, of third moments and of variances to the
    power 3/2. A mean of the skewness of single rows would be too small.
    """
    if typical is None or typical.scaled.skew is None:
        return tails
    unit = typical.unit.max()
    parts = typical.scaled.in_units(typical.unit / unit)
    variance = typical.positive * (typical.unit / unit) ** 2
    weight = variance**1.5
    if not weight.sum() > 0 or parts.noise is None or parts.concentration is None:
        return tails
    pooled = np.asarray(typical.scaled.skew @ weight / weight.sum())
    # All rows share the learners, and thus their noise.
    share = np.asarray(parts.noise.sum() / variance.sum())
    noise = noise_of_skew(share, np.asarray(parts.concentration.mean()), parts.n)
    skew = float(shrink_skew(pooled, noise))
    return replace(tails, error=float(np.sqrt(variance.mean()) * unit), skew=skew)
