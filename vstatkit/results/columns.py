"""Results as columns of a table that has several models side by side."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit.results.sections import setting_text
from vstatkit.results.tables import estimates_frame, label_texts

if TYPE_CHECKING:
    from vstatkit.results.averages import Averages
    from vstatkit.results.curves import Curve
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.importance import Importance
    from vstatkit.results.transforming import Transformed

NUMBERS = ["estimate", "std_error", "t", "p_value", "ci_lower", "ci_upper"]
"""What a column holds about each term."""

OBSERVATIONS, LEARNERS, R_SQUARED = "Observations", "Base learners B", "R-squared"


@dataclass(frozen=True)
class Column:
    """One model of a table.

    Attributes
    ----------
    response : str
        Dependent variable.
    kind : str
        What was fitted, or asked of a fit.
    frame : DataFrame
        `estimate std_error t p_value ci_lower ci_upper` of every term.
    stats : dict
        What is said of the whole model: observations, learners, scores.
    note : str
        What its terms are, where they are not coefficients.
    """

    response: str
    kind: str
    frame: pd.DataFrame
    stats: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def results_column(results: "EnsembleResults", alpha: float = 0.05) -> Column:
    """Make a column of an ensemble: its effects, or estimates where it has none."""
    effects = results.effects_frame(alpha)
    if effects is None:
        frame = estimates_frame(results.estimates, results.labels, alpha)
        frame = frame.set_axis(label_texts(results.labels))
        note = ""
    else:
        frame = effects.set_axis(move_names(effects))
        note = "change of the mean prediction, the others at the typical row"
    return Column(
        results.info.response,
        results.info.kernel,
        frame[NUMBERS].astype(float),
        fit_stats(results),
        note,
    )


def averages_column(averages: "Averages", alpha: float = 0.05) -> Column:
    """Make a column of averages, effects or slopes."""
    frame = averages.summary_frame(alpha)
    moved = "from" in frame
    names = move_names(frame) if moved else label_texts(frame.index)
    note = f"{averages.what} over {averages.rows}, se={averages.se!r}"
    return _asked(averages.results, averages.what, frame.set_axis(names), note)


def curve_column(curve: "Curve", alpha: float = 0.05) -> Column:
    """Make a column of the points of a curve."""
    frame = curve.summary_frame(alpha)
    settings = curve.grid[list(curve.variables)].to_numpy(dtype=object)
    names = [
        ", ".join(
            f"{name} = {setting_text(value)}"
            for name, value in zip(curve.variables, row, strict=True)
        )
        for row in settings
    ]
    if isinstance(frame.index, pd.MultiIndex) and frame.index.names[-1] == "class":
        classes = frame.index.get_level_values("class")
        names = [f"{name} [{one}]" for name, one in zip(names, classes, strict=True)]
    kind = curve.title.lower()
    return _asked(curve.results, kind, frame.set_axis(names), curve.rows)


def transformed_column(made: "Transformed", alpha: float = 0.05) -> Column:
    """Make a column of functions of estimates."""
    frame = made.summary_frame(alpha).set_axis(label_texts(made.linear.labels))
    return _asked(made.linear, "functions", frame, "by the delta method")


def importance_column(importance: "Importance", alpha: float = 0.05) -> Column:
    """Make a column of importances."""
    found, bounds = importance.frame, importance.conf_int(alpha)
    frame = pd.DataFrame(
        {
            "estimate": found["importance"],
            "std_error": found["std_error"],
            "t": found["importance"] / found["std_error"],
            "p_value": found["pvalue"],
            "ci_lower": bounds["lower"],
            "ci_upper": bounds["upper"],
        }
    )
    note = f"out-of-bag loss that is saved, how={importance.how!r}; one-sided p-values"
    stats = {OBSERVATIONS: importance.n_rows, "OOB loss": importance.loss}
    names = [str(name) for name in frame.index]
    return Column("loss", "importance", frame.set_axis(names), stats, note)


def _asked(
    results: "EnsembleResults", kind: str, frame: pd.DataFrame, note: str
) -> Column:
    """Make a column of what was asked of an ensemble."""
    numbers = frame[NUMBERS].astype(float)
    return Column(results.info.response, kind, numbers, fit_stats(results), note)


def move_names(frame: pd.DataFrame) -> list[str]:
    """Name moves of predictors with their ends, which coefficients do not have."""
    moves = [
        f"{setting_text(a)} → {setting_text(b)}"
        for a, b in zip(frame["from"], frame["to"], strict=True)
    ]
    if not isinstance(frame.index, pd.MultiIndex):
        return [f"{one}: {move}" for one, move in zip(frame.index, moves, strict=True)]
    return [
        f"{label[0]}: {move} [{label[-1]}]"
        for label, move in zip(frame.index, moves, strict=True)
    ]


def fit_stats(results: "EnsembleResults") -> dict[str, Any]:
    """Say what there is to say of a whole ensemble."""
    scores = {} if results.scores is None else results.scores.table
    return {OBSERVATIONS: results.nobs, LEARNERS: results.B, **scores}


def foreign_column(model: Any, alpha: float = 0.05) -> Column:
    """Make a column of somebody else's results, which look like statsmodels'."""
    needed = ("params", "bse", "pvalues")
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        raise TypeError(
            "a table takes results of vstatkit, or of statsmodels and the like, which "
            f"have {', '.join(needed)}; {type(model).__name__} has no "
            f"{', '.join(missing)}."
        )
    params = pd.Series(model.params)
    bse = np.asarray(model.bse, dtype=float)
    bounds = np.asarray(model.conf_int(alpha), dtype=float)
    columns = [params, bse, params / bse, model.pvalues, bounds[:, 0], bounds[:, 1]]
    frame = pd.DataFrame(
        {name: np.asarray(one) for name, one in zip(NUMBERS, columns, strict=True)},
        [str(name) for name in params.index],
    )
    stats: dict[str, Any] = {}
    if hasattr(model, "nobs"):
        stats[OBSERVATIONS] = int(model.nobs)
    if np.isfinite(getattr(model, "rsquared", np.nan)):
        stats[R_SQUARED] = float(model.rsquared)
    inner = getattr(model, "model", None)
    response = str(getattr(inner, "endog_names", "y"))
    kind = type(model if inner is None else inner).__name__
    return Column(response, kind, frame, stats)
