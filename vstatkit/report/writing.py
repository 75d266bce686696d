"""Composition of a report: one HTML page with everything in it."""

import os
from os import PathLike
from pathlib import Path

from vstatkit.report import pictures, tables
from vstatkit.report.html_markup import Chapter, Part, Words, page
from vstatkit.report.style import STYLE
from vstatkit.report.words import in_short, lead, outcome
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.summary_notes import summary_notes
from vstatkit.sources.disk_arrays import check_directory
from vstatkit.storage.archive import write_text_whole

SUFFIXES = (".html", ".htm")


def write_report(
    results: EnsembleResults,
    path: str | PathLike[str],
    alpha: float = 0.05,
    title: str | None = None,
) -> None:
    """Write a report of results; see `EnsembleResults.report`."""
    place = _checked(path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text; got {type(title).__name__}.")
    write_text_whole(place, report_page(results, alpha, title))


def _checked(path: str | PathLike[str]) -> Path:
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
    chapters = [
        Chapter("In short", (Words(tuple(in_short(results, alpha))),)),
        _effects(results, alpha),
        _estimates(results, alpha),
        _curves(results, alpha),
        _precision(results),
        _influence(results),
        Chapter("Notes", (Words(tuple(summary_notes(results, alpha)), numbered=True),)),
        _settings(results),
    ]
    return page(
        f"{info.title}: {info.response}" if title is None else title,
        lead(results),
        [chapter for chapter in chapters if chapter is not None],
        "This page holds all that it shows; it loads nothing and runs nothing.",
        STYLE,
    )


def _chapter(heading: str, *parts: Part | None) -> Chapter:
    return Chapter(heading, tuple(part for part in parts if part is not None))


def _effects(results: EnsembleResults, alpha: float) -> Chapter | None:
    frame = results.effects_frame(alpha)
    if frame is None or frame.empty:
        return None
    words = (
        f"How much {outcome(results)} changes when one predictor moves and the others "
        "stay at typical values. Numbers move from their 10% to their 90% quantile, "
        "categories from their reference level to each other one."
    )
    return _chapter(
        "What each predictor does",
        Words((words,)),
        tables.effects_table(frame, alpha),
        pictures.interval_picture(results, "effects", len(frame), alpha),
        tables.typical_table(results),
    )


def _estimates(results: EnsembleResults, alpha: float) -> Chapter:
    coefficients = results.info.coefficients and results.info.formula is not None
    typical = "typical" in results.labels.get_level_values(0)
    words = "The typical row has medians, and the most frequent levels."
    several = len(results.labels) > 1
    return _chapter(
        "Coefficients" if coefficients else "Estimates",
        Words((words,)) if typical else None,
        tables.estimates_table(results, alpha),
        pictures.interval_picture(results, "estimates", len(results.labels), alpha)
        if several
        else None,
    )


def _curves(results: EnsembleResults, alpha: float) -> Chapter | None:
    drawn = pictures.curve_pictures(results, alpha)
    if not drawn:
        return None
    words = (
        "Predictions along the numeric predictors with the largest effects, within the "
        "range of the data."
    )
    return _chapter("Curves", Words((words,)), *drawn)


def _precision(results: EnsembleResults) -> Chapter:
    words = (
        "Sampling variance is what other data would change, and remains with "
        "infinitely many learners; Monte Carlo variance is what other draws of "
        "subsamples would change, and falls as learners are added. Raw estimates are "
        "shown, negative ones too; the standard errors rest on a positive version."
    )
    return _chapter(
        "Are there enough learners?",
        Words((words,)),
        tables.precision_table(results),
        pictures.convergence_picture(results),
    )


def _influence(results: EnsembleResults) -> Chapter | None:
    table = tables.normality_table(results)
    if table is None:
        return None
    units = "shards" if results.design.name == "shards" else results.info.units
    words = (
        f"How much single {units} move an estimate. Where a few of them move it far "
        "more than the others (a large kurtosis, small p-values, points off the line), "
        "the answer rests on them, and normal intervals are less certain."
    )
    return _chapter(
        "Does the answer rest on a few?",
        Words((words,)),
        table,
        pictures.influence_picture(results),
    )


def _settings(results: EnsembleResults) -> Chapter:
    given = results.design.name == "given" or results.design.complete
    again = "" if given else f" and rng={results.seed}"
    words = (
        f"The same data, settings{again} give the same numbers. Versions are those of "
        "what wrote this page."
    )
    return _chapter(
        "Settings and versions",
        Words((words,)),
        tables.settings_table(results),
        tables.versions_table(),
    )
