"""Sentences of a report."""

import numpy as np
import pandas as pd

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.labels import label_texts, setting_text
from vstatkit.results.summary_notes import number_text

MOST_SAID = 6
"""Effects and estimates that are written out as sentences."""


def level_text(alpha: float) -> str:
    """Write the level of intervals.

    Examples
    --------
    >>> level_text(0.05)
    '95%'
    """
    return f"{100 * (1 - alpha):.4g}%"


def chance_text(value: float) -> str:
    """Write a p-value.

    Examples
    --------
    >>> chance_text(0.00004)
    '< 0.001'
    """
    if np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def lead(results: EnsembleResults) -> str:
    """Say in two sentences what was done."""
    info, design = results.info, results.design
    drawn = "with" if results.replace else "without"
    learners = f"{results.B:,} {'learner' if results.B == 1 else 'learners'}"
    each = f"{results.k:,} of {design.n:,} {info.units}, drawn {drawn} replacement"
    if info.formula is None and info.coefficients:
        first = f"{info.response}: the mean of its values on {results.B:,} subsamples"
        return f"{first}, each of {each}."
    what = "The coefficients are means over" if info.coefficients else "The mean of"
    tail = "" if info.coefficients else f", predicts {info.response}"
    text = f"{what} {learners} ({info.kernel}), each fitted to {each}{tail}."
    return text if info.formula is None else f"{text} The formula: {info.formula}"


def in_short(results: EnsembleResults, alpha: float) -> list[str]:
    """Say what was found, the effects first."""
    lines = [
        *_effect_lines(results, alpha),
        *_estimate_lines(results, alpha),
        *_score_lines(results),
        _precision_line(results),
    ]
    return [line for line in lines if line]


def outcome(results: EnsembleResults) -> str:
    """Name what the effects change."""
    if results.support is None or results.info.coefficients:
        return results.info.response
    classes = None if results.predictor is None else results.predictor.classes
    if classes is None or len(classes) != 2:
        return f"the probability of each {results.info.response}"
    return f"the probability of {classes[1]}"


def _effect_lines(results: EnsembleResults, alpha: float) -> list[str]:
    frame = results.effects_frame(alpha)
    if frame is None:
        return []
    shown = frame
    if len(shown) > MOST_SAID:
        shown = shown.sort_values("p_value", kind="stable").head(MOST_SAID)
    several = isinstance(frame.index, pd.MultiIndex)
    lines = []
    for label, row in shown.iterrows():
        name = label[0] if several else label  # type: ignore[index]
        what = f"the probability of {label[-1]}" if several else outcome(results)  # type: ignore[index]
        lines.append(
            f"{name} from {setting_text(row['from'])} to {setting_text(row['to'])}: "
            f"{what} changes by {_interval(row, alpha)}."
        )
    if len(frame) > MOST_SAID:
        lines.append(
            f"These are the {MOST_SAID} effects with the smallest p-values of "
            f"{len(frame):,}."
        )
    return lines


def _interval(row: pd.Series, alpha: float) -> str:
    chance = chance_text(row["p_value"])
    test = f"p {chance}" if chance.startswith("<") else f"p = {chance}"
    if np.isnan(row["p_value"]):
        test = "no test, because all learners agree"
    return (
        f"{number_text(row['estimate'])} ({level_text(alpha)} interval "
        f"{number_text(row['ci_lower'])} to {number_text(row['ci_upper'])}; {test})"
    )


def _estimate_lines(results: EnsembleResults, alpha: float) -> list[str]:
    if len(results.labels) > MOST_SAID:
        return []
    bounds, level = results.conf_int(alpha), level_text(alpha)
    return [
        f"{_subject(results, place)} is {number_text(value)} ({level} interval "
        f"{number_text(low)} to {number_text(high)})."
        for place, (value, low, high) in enumerate(
            zip(results.params, bounds["lower"], bounds["upper"], strict=True)
        )
    ]


def _subject(results: EnsembleResults, place: int) -> str:
    """Name an estimate: a prediction by its row, others by their label."""
    label = results.labels[place]
    if results.predictor is None or results.info.coefficients:
        return f"The estimate for {label_texts(results.labels)[place]}"
    parts = label if isinstance(label, tuple) else (label,)
    row = "the typical row" if parts[0] == "typical" else f"row {parts[0]}"
    several = isinstance(results.labels, pd.MultiIndex)
    what = f"the probability of {parts[-1]}" if several else outcome(results)
    return f"At {row} {what}"


def _score_lines(results: EnsembleResults) -> list[str]:
    if results.scores is None:
        return []
    found = ", ".join(
        f"{name.removeprefix('OOB ')} {number_text(value)}"
        for name, value in results.scores.table.items()
    )
    return [f"On rows that a learner had not seen (out of bag): {found}."]


def _precision_line(results: EnsembleResults) -> str:
    if results.design.complete:
        return "Every subsample was evaluated, so there is no Monte Carlo error."
    moved = results.effect_estimates
    shown = [results.estimates] if moved is None else [results.estimates, moved]
    error = max(float(one.relative_mc_error.max(initial=0.0)) for one in shown)
    return (
        f"More learners would change the standard errors by about {error:.1%} at most "
        "(their Monte Carlo error)."
    )
