"""What the learners of results say beyond the first order."""

from typing import TYPE_CHECKING

from vstatkit._typing import Floats
from vstatkit.variance.orders import HigherOrders, measure_orders
from vstatkit.variance.reference import spread_columns

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def measured_orders(results: "EnsembleResults") -> HigherOrders:
    """Compare learners at the reference rows, or where they were evaluated."""

    def values(L: int) -> Floats:
        """Values on which the first L learners are compared, shape (L, r)."""
        if results.predictor is None or results.reference is None:
            return results.values[:L, spread_columns(results.values.shape[1])]
        return results.predictor.first(L).values(results.reference)[:L]

    return measure_orders(results.design, results.B, values, results.kind)
