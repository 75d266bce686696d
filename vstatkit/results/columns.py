"""Results as columns of a table that has several models side by side."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit.results.tables import estimates_frame, label_texts, setting_text

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
    own_test : bool
        Whether p-values do not follow from estimates and standard errors, so that they
        are shown.
    """

    response: str
    kind: str
    frame: pd.DataFrame
    stats: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    own_test: bool = False


def results_column(results: "EnsembleResults", alpha: float = 0.05) -> Column:
    """Make a column of an ensemble: its effects, or estimates where it has none."""
    effects = results.effects_frame(alpha)
    if effects is None:
        frame = estimates_frame(results.estimates, results.labels, alpha)
        frame = frame.set_axis(label_texts(results.labels))
        note = ""
    else:
        frame = effects.set_axis(_add_moves(effects, label_texts(effects.index)))
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
    frame, names = averages.summary_frame(alpha), averages.texts
    if "step" in frame:
        names = _slope_names(frame, names)
    elif "from" in frame:
        names = _add_moves(frame, names)
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
    """Make a column of importances.

    They have no t: the standard error of the test is that under the null, and the one
    that is shown is not. Importances of permuted predictors have no test.
    """
    found, bounds = importance.frame, importance.conf_int(alpha)
    tested = "p_value" in found
    frame = pd.DataFrame(
        {
            "estimate": found["importance"],
            "std_error": found["std_error"],
            "t": np.nan,
            "p_value": found["p_value"] if tested else np.nan,
            "ci_lower": bounds["lower"],
            "ci_upper": bounds["upper"],
        }
    )
    note = f"out-of-bag loss that is saved, how={importance.how!r}; "
    note += "one-sided p-values of no saving" if tested else "no tests"
    stats = {OBSERVATIONS: importance.n_rows, "OOB loss": importance.loss}
    names = [str(name) for name in frame.index]
    frame = frame.set_axis(names)
    return Column("loss", "importance", frame, stats, note, own_test=tested)


def _asked(
    results: "EnsembleResults", kind: str, frame: pd.DataFrame, note: str
) -> Column:
    """Make a column of what was asked of an ensemble."""
    numbers = frame[NUMBERS].astype(float)
    return Column(results.info.response, kind, numbers, fit_stats(results), note)


def _add_moves(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Add the ends of moves to names, which coefficients do not have."""
    classes = [""] * len(names)
    if frame.index.names[-1] == "class":
        classes = [f" [{level}]" for level in frame.index.get_level_values("class")]
    rows = zip(names, classes, frame["from"], frame["to"], strict=True)
    return [
        f"{name.removesuffix(own)}: {setting_text(a)} → {setting_text(b)}{own}"
        for name, own, a, b in rows
    ]


def _slope_names(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Name slopes as regressions name coefficients: by the predictor, or its level."""
    predictors = frame.index.get_level_values(0)
    rows = zip(names, predictors, frame["to"], frame["step"].isna(), strict=True)
    return [
        f"{name}[T.{to}]{text.removeprefix(str(name))}" if contrast else text
        for text, name, to, contrast in rows
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
    tested = np.where(bse == 0, np.nan, bse)
    columns = [params, bse, params / tested, model.pvalues, bounds[:, 0], bounds[:, 1]]
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
