"""From kernel values to estimates, in chunks of bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.stabilise import stabilise
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.hoeffding import HigherOrders
from vstatkit.variance.large_moments import HeldDesign, is_wide
from vstatkit.variance.moment_estimators import MomentEstimator, PresenceEstimator
from vstatkit.variance.registry import ESTIMATORS, estimate_components, known_orders

ROUNDING = 32 * np.finfo(np.float64).eps
"""Share of a value within which a mean of values that cancel is uncertain."""

CHUNK_ENTRIES = 2_000_000
"""Numbers (observations x query points) held at a time."""


WIDE_VALUES = 4_000_000
"""Values of learners taken at a time where that table is not made."""


TABLELESS = (MomentEstimator, PresenceEstimator)
"""Estimators that need no table of observations times query points."""


HELD_ENTRIES = 16_000_000
"""Most counts that are kept."""


def value_units(values: Floats) -> Floats:
    """Power of two near the spread of every column, shape (m,); one for constants.

    Dividing by it is exact, so that the numbers do not depend on it.

    Examples
    --------
    >>> value_units(np.array([[1.0, 5.0], [3.5, 5.0]]))
    array([4., 1.])
    """
    first = values[0]
    spread = np.maximum(values.max(axis=0) - first, first - values.min(axis=0))
    exponent = np.frexp(spread)[1]
    return np.ldexp(1.0, np.where(spread > 0, exponent, 0))


def estimate(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    limit: Floats | float | None = None,
    orders: HigherOrders | None = None,
) -> Estimates:
    """Estimate means, variances and degrees of freedom of an ensemble.

    Query points are taken in chunks: memory does not grow with their number
    times the number of observations.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values.
    method : str
        A resolved name of an estimator.
    limit : ndarray of shape (m,) or float, optional
        Largest standard deviation that a value can have, where it is known.
    orders : HigherOrders, optional
        Beyond the first order, for estimators that use it; by default measured on
        the values.
    """
    orders = known_orders(method, design, values, orders)
    B, m = values.shape
    rows = table_rows(design, method, B, m)
    step = max(1, CHUNK_ENTRIES // rows if rows else WIDE_VALUES // B)
    limits = np.broadcast_to(np.inf if limit is None else limit, m)
    parts = [slice(j, j + step) for j in range(0, m, step)]
    return join_estimates(
        [
            _estimate_chunk(design, values[:, j], method, limits[j], orders)
            for j in parts
        ]
    )


@dataclass(frozen=True)
class Estimation:
    """How the values of learners become estimates; see `estimate`."""

    design: SubsampleDesign
    method: str
    limit: float | None = None
    orders: HigherOrders | None = None

    def of(self, values: Floats) -> Estimates:
        """Estimate from values of shape (B, m)."""
        return estimate(self.design, values, self.method, self.limit, self.orders)

    def of_many(self, B: int, n_values: int) -> "Estimation":
        """Get ready for many values, of which a part is given at a time."""
        return replace(self, design=held(self.design, B, n_values))

    @property
    def without_table(self) -> bool:
        """Whether few values cost, each, as little as many do."""
        groups = ESTIMATORS[self.method].source == "groups"
        return groups or isinstance(self.design, HeldDesign)

    def table_rows(self, B: int, n_values: int) -> int:
        """Count the rows of the table that is made; see `table_rows`."""
        return table_rows(self.design, self.method, B, n_values)


def table_rows(design: SubsampleDesign, method: str, B: int, n_values: int) -> int:
    """Count the rows of the table of units times values; none where it is not made."""
    estimator = ESTIMATORS[method]
    if estimator.source == "groups":
        return 0
    tableless = isinstance(estimator, TABLELESS)
    return 0 if tableless and is_wide(design, B, n_values) else design.n


def held(design: SubsampleDesign, B: int, n_values: int) -> SubsampleDesign:
    """Keep the counts of B learners, as many query points will need them.

    Parameters
    ----------
    design : SubsampleDesign
        Draws the counts again each time it is asked.
    B : int
        Learners.
    n_values : int
        Values that every learner has, at all query points together.

    Returns
    -------
    SubsampleDesign
        A design with the same counts; the design itself where keeping them is not worth
        the memory, or where learners have groups or weights.
    """
    entries = B * min(design.n, 2 * design.k)
    plain = design.groups(B) is None and design.weights(0, B) is None
    if not plain or entries > HELD_ENTRIES:
        return design
    table = design.sparse_counts(0, B)  # as many values need them
    drawn = design.n, design.k, design.replace, design.seed
    return HeldDesign(*drawn, table, n_values=n_values)


def _estimate_chunk(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    limit: Floats,
    orders: HigherOrders | None,
) -> Estimates:
    unit = value_units(values)
    components = estimate_components(method, design, values / unit, orders)
    weights = design.weights(0, len(values))
    B = float(len(values)) if weights is None else float(weights.sum())
    mean = ensemble_mean(design, values)
    return stabilise(mean, components, B, unit=unit, limit=limit)


def ensemble_mean(design: SubsampleDesign, values: Floats) -> Floats:
    """Average the learners, by their weights in a complete design."""
    return weighted_mean(values, design.weights(0, len(values)))


def weighted_mean(values: Floats, weights: Floats | None) -> Floats:
    """Average learners about the first one, equally where `weights` is None.

    A mean that is zero but for rounding is zero.

    Examples
    --------
    >>> weighted_mean(np.array([[0.1], [0.2], [-0.3]]), None)
    array([0.])
    """
    first = values[0]
    mean = np.average(values - first, axis=0, weights=weights) + first
    return np.where(np.abs(mean) <= ROUNDING * np.abs(first), 0.0, mean)


def join_estimates(parts: Sequence[Estimates]) -> Estimates:
    """Join the estimates of several chunks of query points."""
    if len(parts) == 1:
        return parts[0]
    return Estimates(
        estimate=np.concatenate([part.estimate for part in parts]),
        scaled=VarianceComponents.join([part.scaled for part in parts]),
        positive=np.concatenate([part.positive for part in parts]),
        bounded=np.concatenate([part.bounded for part in parts]),
        df=np.concatenate([part.df for part in parts]),
        n_learners=parts[0].n_learners,
        unit=np.concatenate([part.unit for part in parts]),
    )
