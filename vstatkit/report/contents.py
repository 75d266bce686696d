"""Contents of a report: its sentences and chapters, written to one HTML page."""

import os
from os import PathLike
from pathlib import Path

import pandas as pd

from vstatkit.report import figures, tables
from vstatkit.report.html_page import Parts, compose_page, text_markup
from vstatkit.report.tables import level_text, p_value_text
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.labels import label_texts, number_text, setting_text
from vstatkit.results.summary_notes import summary_notes
from vstatkit.sources.disk_arrays import check_directory
from vstatkit.storage.atomic_files import write_text_whole

SUFFIXES = (".html", ".htm")

MAX_SENTENCES = 6  # effects and estimates that are written out as sentences


def write_report(
    results: EnsembleResults,
    path: str | PathLike[str],
    alpha: float = 0.05,
    title: str | None = None,
) -> None:
    """Write a report of results; see `EnsembleResults.report`."""
    place = _check_path(path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text; got {type(title).__name__}.")
    write_text_whole(place, report_page(results, alpha, title))


def _check_path(path: str | PathLike[str]) -> Path:
    """Check that a page can be written there, before anything is computed."""
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"`path` must end with .html; got {str(place)!r}. A browser prints the "
            "page to PDF."
        )
    if place.is_dir():
        raise IsADirectoryError(f"`path` must be a file; {place} is a directory.")
    check_directory(place)
    target = place if place.exists() else place.parent
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{target} must be writable; it is not.")
    return place


def report_page(
    results: EnsembleResults, alpha: float = 0.05, title: str | None = None
) -> str:
    """Compose the page."""
    info = results.info
    sentences = (
        *_effect_lines(results, alpha),
        *_estimate_lines(results, alpha),
        *_score_lines(results),
        _precision_line(results),
    )
    coefficients = info.coefficients and info.formula is not None
    chapters: dict[str, Parts] = {
        "In short": [text_markup(*sentences)],
        "Effects of the predictors": _effects(results, alpha),
        "Coefficients" if coefficients else "Estimates": _estimates(results, alpha),
        "Curves": _curves(results, alpha),
        "Are there enough learners?": [
            text_markup(
                "The sampling variance is due to the data, and remains with infinitely "
                "many learners. The Monte Carlo variance is due to the draw of "
                "subsamples, and decreases as learners are added. The table shows raw "
                "estimates, which may be negative; the standard errors use a positive "
                "version."
            ),
            tables.precision_table(results),
            figures.convergence_figure(results),
        ],
        "Influence of single units": _influence(results),
        "Notes": [text_markup(*summary_notes(results, alpha), numbered=True)],
        "Settings and versions": _settings(results),
    }
    return compose_page(
        f"{info.title}: {info.response}" if title is None else title,
        describe_fit(results),
        chapters,
        "This page is complete: it loads nothing and runs nothing.",
    )


def _effects(results: EnsembleResults, alpha: float) -> Parts:
    frame = results.effects_frame(alpha)
    if frame is None or frame.empty:
        return []
    return [
        text_markup(
            f"The change of {_name_outcome(results)} when one predictor moves and the "
            "others stay at typical values. Numeric predictors move from their 10% to "
            "their 90% quantile, categories from their reference level to each other "
            "level."
        ),
        tables.effects_table(frame, alpha),
        figures.interval_figure(results, "effects", len(frame), alpha),
        tables.typical_table(results),
    ]


def _estimates(results: EnsembleResults, alpha: float) -> Parts:
    typical = "typical" in results.labels.get_level_values(0)
    text = "The typical row has medians, and the most frequent levels."
    rows, figure = len(results.labels), None
    if rows > 1:
        figure = figures.interval_figure(results, "estimates", rows, alpha)
    introduction = text_markup(text) if typical else None
    return [introduction, tables.estimates_table(results, alpha), figure]


def _curves(results: EnsembleResults, alpha: float) -> Parts:
    curves = figures.curve_figures(results, alpha)
    text = text_markup(
        "Predictions along the numeric predictors with the largest effects, within the "
        "range of the data."
    )
    return [text, *curves] if curves else []


def _influence(results: EnsembleResults) -> Parts:
    table = tables.normality_table(results)
    if table is None:
        return []
    units = "shards" if results.design.name == "shards" else results.info.units
    text = text_markup(
        f"The influence of single {units} on an estimate. If a few of them have far "
        "more influence than the others (a large kurtosis, small p-values, points off "
        "the line), the result depends on them, and normal intervals are less "
        "reliable."
    )
    return [text, table, figures.influence_figure(results)]


def _settings(results: EnsembleResults) -> Parts:
    given = results.design.name == "given" or results.design.complete
    again = "" if given else f" and rng={results.seed}"
    text = text_markup(
        f"The same data, settings{again} give the same numbers. The versions are those "
        "of the software that wrote this page."
    )
    return [text, tables.settings_table(results), tables.versions_table()]


def describe_fit(results: EnsembleResults) -> str:
    """Describe the ensemble in one or two sentences."""
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


def _name_outcome(results: EnsembleResults) -> str:
    """Name the quantity that the effects change."""
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
    if len(frame) > MAX_SENTENCES:
        shown = frame.sort_values("p_value", kind="stable").head(MAX_SENTENCES)
    lines = []
    for label, row in shown.iterrows():
        name, what = label, _name_outcome(results)
        if isinstance(label, tuple):
            name, what = label[0], f"the probability of {label[-1]}"
        lines.append(
            f"{name} from {setting_text(row['from'])} to {setting_text(row['to'])}: "
            f"{what} changes by {_interval(row, alpha)}."
        )
    if len(frame) > MAX_SENTENCES:
        lines.append(
            f"These are the {MAX_SENTENCES} effects with the smallest p-values of "
            f"{len(frame):,}."
        )
    return lines


def _interval(row: pd.Series, alpha: float) -> str:
    p_value = p_value_text(row["p_value"])
    test = f"p {p_value}" if p_value.startswith("<") else f"p = {p_value}"
    if p_value == "-":
        test = "no test, because all learners agree"
    return (
        f"{number_text(row['estimate'])} ({level_text(alpha)} interval "
        f"{number_text(row['ci_lower'])} to {number_text(row['ci_upper'])}; {test})"
    )


def _estimate_lines(results: EnsembleResults, alpha: float) -> list[str]:
    if len(results.labels) > MAX_SENTENCES:
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
    what = f"the probability of {parts[-1]}" if several else _name_outcome(results)
    return f"At {row} {what}"


def _score_lines(results: EnsembleResults) -> list[str]:
    if results.scores is None:
        return []
    scores = ", ".join(
        f"{name.removeprefix('OOB ')} {number_text(value)}"
        for name, value in results.scores.table.items()
    )
    return [f"On rows that a learner had not seen (out of bag): {scores}."]


def _precision_line(results: EnsembleResults) -> str:
    if results.design.complete:
        return "Every subsample was evaluated, so there is no Monte Carlo error."
    effects = results.effect_estimates
    shown = [results.estimates] if effects is None else [results.estimates, effects]
    error = max(float(table.relative_mc_error.max(initial=0.0)) for table in shown)
    return (
        f"More learners would change the standard errors by about {error:.1%} at most "
        "(their Monte Carlo error)."
    )
