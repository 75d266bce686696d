"""Show averages, curves and functions of estimates in statsmodels' tables."""

from typing import TYPE_CHECKING

import pandas as pd
from statsmodels.iolib.summary import Summary

from vstatkit.inference import stopping
from vstatkit.results.averages import Averages
from vstatkit.results.effect_notes import constant_note, margin_note, untested_note
from vstatkit.results.notes import many_more
from vstatkit.results.sections import (
    MAX_ROWS,
    averages_section,
    is_tested,
    percent_text,
)
from vstatkit.results.summary import composed
from vstatkit.results.tables import label_texts, setting_text
from vstatkit.results.transforming import BENT, Transformed
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from vstatkit.results.curves import Curve
    from vstatkit.results.ensemble_results import EnsembleResults

KINDS = {
    "sample": "for these rows as they are",
    "population": "for the population that these rows were drawn from",
}
"""What each kind of standard error is about."""

VAGUE = 0.25
"""Monte Carlo error of a standard error from which it is too large on average: a
variance that noise may have made negative is replaced by a positive one."""

HALF = ": for averages half of what it is for predictions."


def summarise(averages: Averages, alpha: float) -> Summary:
    """Compose the table of averages."""
    frame = averages.summary_frame(alpha)
    notes = [
        f"Averages over {averages.rows}; standard errors {KINDS[averages.se]} "
        f"(se={averages.se!r}).",
        *_notes(averages.results, HALF),
    ]
    if "step" in frame:
        notes += _slope_notes(frame)
    tested = is_tested(averages.results)
    others = [constant_note(averages.constant)]
    if tested:
        others.append(untested_note(frame, averages.texts))
    if averages.results.support is not None and "to" in frame:
        others.append(margin_note(frame, averages.texts, alpha))
    notes += [note for note in others if note is not None]
    notes += averages.notes
    texts = averages.texts
    section = averages_section("", frame.set_axis(texts), alpha, tested=tested)
    return composed([section], averages.what.capitalize(), notes)


def _slope_notes(frame: pd.DataFrame) -> list[str]:
    """Say what slopes are, and which rows of their table are none."""
    notes = []
    if frame["to"].isna().any():
        notes.append(
            "Slopes: differences between predictions at two observed values of the "
            "predictor, at least the step apart, divided by their distance."
        )
    if (frame["to"].notna() & frame["step"].notna()).any():
        notes.append(
            "A predictor with two values moves from one to the other, and the change "
            "is divided by their distance."
        )
    if frame["step"].isna().any():
        notes.append("Factors have contrasts between two levels in place of slopes.")
    return notes


def summarise_curve(curve: "Curve", alpha: float) -> Summary:
    """Compose the table of a curve."""
    notes = [
        f"{curve.rows}; standard errors {KINDS[curve.se]} (se={curve.se!r}).",
        *_notes(curve.results, HALF),
    ]
    frame = curve.summary_frame(alpha).drop(columns=list(curve.variables))
    texts = [", ".join(map(setting_text, row)) for row in curve.grid.to_numpy(object)]
    outputs = len(texts) // curve.n_points
    if outputs > 1:
        classes = frame.index.get_level_values("class")
        texts = [f"{text} [{one}]" for text, one in zip(texts, classes, strict=True)]
    name = ", ".join(map(str, curve.variables))
    tested = is_tested(curve.results)
    untested = untested_note(frame, texts) if tested else None
    notes += [] if untested is None else [untested]
    notes += curve.notes
    section = averages_section(name, frame.set_axis(texts), alpha, tested=tested)
    return composed([section], curve.title, notes)


def summarise_transformed(made: Transformed, alpha: float) -> Summary:
    """Compose the table of functions of estimates."""
    notes = ["Standard errors by the delta method.", *_notes(made.linear)]
    bent = made.bend[made.bend > BENT]
    if bent.size:
        notes.append(
            f"{bent.size} function(s) depart from a line by up to "
            f"{percent_text(float(bent.max()))} of its change within one standard "
            "error: the delta method may not hold there."
        )
    frame = made.summary_frame(alpha)
    untested = untested_note(frame, label_texts(frame.index))
    notes += [] if untested is None else [untested]
    title = "Functions of estimates"
    return composed([averages_section("", frame, alpha)], title, notes)


def _advice(results: "EnsembleResults") -> str:
    """Advise a number of learners, as far as there are enough to forecast one."""
    if results.estimates.bounded.any():
        return f"Grow {many_more(results.B)}; the table then says how many are needed."
    needed = float(results.tolerance.needed(results.estimates).max())
    return (
        f"About {stopping.about(needed)} learners are needed to know them to "
        f"{results.tolerance.tol:.0%}."
    )


def _notes(results: "EnsembleResults", about: str = ".") -> list[str]:
    """Say what the numbers rest on."""
    worst = float(results.estimates.relative_mc_error.max())
    error = percent_text(worst)
    label = ESTIMATORS[results.variance].label
    notes = [
        f"{results.B:,} learners of {results.k:,} {results.info.units}; variance: "
        f"{label}; Monte Carlo error of the standard errors: {error} at most."
    ]
    if worst > VAGUE and results.estimates.scaled.df is None:
        notes.append(
            "Standard errors this imprecise are too large on average. "
            f"{_advice(results)}"
        )
    orders = results.orders
    if orders is not None and ESTIMATORS[results.variance].beyond:
        notes.append(
            f"The sampling variance is the jackknife's over 1 + rho, rho = "
            f"{orders.rho:.2f} (standard error {orders.error:.2f}){about}"
        )
    if len(results.labels) > MAX_ROWS:
        hidden = len(results.labels) - MAX_ROWS
        notes.append(f"{hidden:,} rows are not shown; `frame` holds all.")
    return notes
