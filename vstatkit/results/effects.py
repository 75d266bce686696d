"""Effects: what changes when a predictor moves."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit.ensemble.query import EffectValues
from vstatkit.inference.estimates import Estimates, estimate
from vstatkit.results.tables import estimates_frame

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def effect_estimates(results: "EnsembleResults") -> Estimates | None:
    """Estimate the effects; an effect is the difference of two values."""
    moves = results.effect_values
    if moves is None:
        return None
    limit = None if results.limit is None else 2 * np.max(results.limit)
    support = None if results.support is None else results.support.of_differences
    moved = estimate(
        results.design, moves.values, results.variance, limit, results.orders
    )
    tails = None if results.tails is None else results.tails.of_differences
    return replace(moved, support=support, tails=tails)


def effects_table(
    moves: EffectValues | None, moved: Estimates | None, alpha: float
) -> pd.DataFrame | None:
    """Put the settings and the estimates of the effects side by side."""
    if moves is None or moved is None:
        return None
    frame = moves.frame
    return pd.concat([frame, estimates_frame(moved, frame.index, alpha)], axis=1)
