"""Profiles: predictions along one predictor, the others at typical values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit.formula.coding import variables_of
from vstatkit.formula.input_checks import nearest
from vstatkit.results.moves import is_factor, there_are
from vstatkit.results.rows import training_frame

if TYPE_CHECKING:
    from vstatkit.ensemble.prediction import Predictor
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.prediction_results import PredictionResults


@dataclass(frozen=True)
class Profile:
    """Predictions along one predictor.

    Attributes
    ----------
    x : ndarray or list
        Values of the predictor, none outside of the observed range; levels of a
        factor.
    factor : bool
        Whether it is one.
    prediction : PredictionResults
        Predictions there.
    observed : Series or None
        The predictor in the training data, where these are held.
    """

    x: Any
    factor: bool
    prediction: "PredictionResults"
    observed: pd.Series | None


def profile_of(results: "EnsembleResults", variable: str, n_points: int) -> Profile:
    """Predict along one predictor."""
    typical, predictor = _ready(results)
    if variable not in typical.columns:
        raise ValueError(
            f"`variable` must be a predictor; {variable!r} is none"
            f"{nearest(str(variable), typical.columns)} They are "
            f"{', '.join(map(str, typical.columns))}."
        )
    frame = training_frame(results)
    observed = None if frame is None else frame[variable]
    factor = is_factor(predictor, variable)
    x = (
        _levels(results, variable, observed)
        if factor
        else _grid(results, variable, observed, n_points)
    )
    rows = pd.concat([typical] * len(x), ignore_index=True)
    column = pd.Series(x)
    if isinstance(typical[variable].dtype, pd.CategoricalDtype):
        column = column.astype(typical[variable].dtype)
    prediction = results.get_prediction(rows.assign(**{variable: column}))
    return Profile(x, factor, prediction, observed)


def profiled(
    results: "EnsembleResults", given: str | Sequence[str] | None
) -> list[str]:
    """List the predictors that profiles are asked for; None is all of them."""
    typical, _ = _ready(results)
    if typical.columns.empty:
        raise ValueError(f"there is no profile to draw: {there_are([])}")
    if given is None:
        return [str(name) for name in typical.columns]
    return [given] if isinstance(given, str) else list(given)


def _ready(results: "EnsembleResults") -> "tuple[pd.DataFrame, Predictor]":
    typical, predictor = results.typical, results.predictor
    if typical is None or predictor is None:
        raise ValueError("a profile needs results of `fit` that predict.")
    return typical, predictor


def _grid(
    results: "EnsembleResults", name: str, observed: pd.Series | None, n_points: int
) -> Any:
    """Values from the smallest to the largest; those that occur, if they are few."""
    if n_points < 2:
        raise ValueError(f"`n_points` must be at least 2; got {n_points}.")
    if observed is not None:
        values = np.unique(observed.dropna().to_numpy(dtype=np.float64))
        if 1 < values.size <= n_points:
            return values
    return np.linspace(*results.info.ranges[name], n_points)


def _levels(
    results: "EnsembleResults", name: str, observed: pd.Series | None
) -> list[Any]:
    """Levels of a factor: those of the training data, or of the effects."""
    if observed is not None:
        return list(variables_of(observed.to_frame()).levels(name))
    moves = results.effect_values
    if moves is None or name not in moves.frame.index.get_level_values(0):
        raise ValueError(f"these results do not hold the levels of {name!r}.")
    found = moves.frame.loc[[name]]
    return list(dict.fromkeys([*found["from"], *found["to"]]))
