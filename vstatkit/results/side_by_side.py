"""Several models in one table, whatever package fitted them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary

from vstatkit.results.averages import Averages
from vstatkit.results.columns import (
    NUMBERS,
    Column,
    averages_column,
    curve_column,
    foreign_column,
    importance_column,
    results_column,
    transformed_column,
)
from vstatkit.results.curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.importance import Importance
from vstatkit.results.sections import Section, number_text
from vstatkit.results.summary import composed
from vstatkit.results.transforming import Transformed
from vstatkit.validation import check_alpha

STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
"""Marks of p-values, as in statsmodels' `summary_col`."""


def column_of(model: Any, alpha: float = 0.05) -> Column:
    """Make a column of results, averages, curves, functions, importances, or others."""
    makers: tuple[tuple[type, Any], ...] = (
        (EnsembleResults, results_column),
        (Averages, averages_column),
        (Curve, curve_column),
        (Transformed, transformed_column),
        (Importance, importance_column),
    )
    for kind, maker in makers:
        if isinstance(model, kind):
            made: Column = maker(model, alpha)
            return made
    return foreign_column(model, alpha)


def compose_table(
    models: list[Any],
    *,
    names: Sequence[str] | None,
    alpha: float | None,
    stars: bool,
    title: str,
) -> Summary:
    """Compose the table of several models; see `vstatkit.table`."""
    if not models:
        raise ValueError("`models` must hold at least one model; got none.")
    level = 0.05 if alpha is None else alpha
    check_alpha(level)
    columns = [column_of(model, level) for model in models]
    headings = _headings(columns, names)
    terms, stats = _terms(columns, alpha, stars=stars), _stats(columns)
    responses = [one.response for one in columns]
    top, bottom = _aligned((headings, terms), (responses, stats))
    sections = [Section("", *part) for part in (top, bottom) if len(part[1])]
    return composed(sections, title, _notes(columns, headings, alpha, stars=stars))


def _aligned(
    *parts: tuple[list[str], pd.DataFrame],
) -> list[tuple[list[str], pd.DataFrame]]:
    """Give all parts of a table columns of the same widths."""
    stub = max(len(name) for _, frame in parts for name in frame.index)
    widths = [
        max(len(text) for headers, frame in parts for text in [headers[j], *frame[j]])
        for j in range(len(parts[0][0]))
    ]
    return [
        (
            [text.rjust(width) for text, width in zip(headers, widths, strict=True)],
            frame.set_axis([name.ljust(stub) for name in frame.index]),
        )
        for headers, frame in parts
    ]


def _headings(columns: list[Column], names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"({j}) {one.kind}" for j, one in enumerate(columns, start=1)]
    if isinstance(names, str) or len(names) != len(columns):
        raise ValueError(
            f"`names` must be a list with a name for each of the {len(columns)} "
            f"models; got {names!r}."
        )
    return [str(name) for name in names]


def _terms(columns: list[Column], alpha: float | None, *, stars: bool) -> pd.DataFrame:
    """Two lines for every term: the estimate, and below how well it is known."""
    order = list(dict.fromkeys(term for one in columns for term in one.frame.index))
    rows: dict[str, list[str]] = {}
    for term in order:
        cells = [_cells(one, term, alpha, stars=stars) for one in columns]
        rows[term] = [top for top, _ in cells]
        rows[f"{term}\0"] = [below for _, below in cells]
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return frame.set_axis(["" if name.endswith("\0") else name for name in rows])


def _cells(
    column: Column, term: str, alpha: float | None, *, stars: bool
) -> tuple[str, str]:
    if term not in column.frame.index:
        return "", ""
    row = dict(zip(NUMBERS, column.frame.loc[term].to_numpy(), strict=True))
    mark = ""
    if stars:
        mark = next((text for p, text in STARS if row["p_value"] < p), "")
    below = _uncertainty(row, alpha)
    if column.own_test:
        below += f" p{_chance_text(row['p_value'])}"
    return number_text(row["estimate"]) + mark, below


def _uncertainty(row: dict[str, float], alpha: float | None) -> str:
    """Write a standard error or an interval; nothing if it is not known."""
    if np.isnan(row["std_error"]):
        return ""
    if alpha is None:
        return f"({number_text(row['std_error'])})"
    return f"[{number_text(row['ci_lower'])}, {number_text(row['ci_upper'])}]"


def _chance_text(chance: float) -> str:
    return "<0.001" if chance < 0.001 else f"={chance:.3f}"


def _stats(columns: list[Column]) -> pd.DataFrame:
    names = list(dict.fromkeys(name for one in columns for name in one.stats))
    cells = [[_stat(one.stats.get(name)) for one in columns] for name in names]
    return pd.DataFrame(cells, index=names, columns=range(len(columns)))


def _stat(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else number_text(float(value))


def _notes(
    columns: list[Column], headings: list[str], alpha: float | None, *, stars: bool
) -> list[str]:
    below = "standard errors" if alpha is None else f"{1 - alpha:.4g} intervals"
    notes = [f"In brackets: {below}. OOB scores are out of bag."]
    notes += [
        f"{heading}: {one.note}."
        for heading, one in zip(headings, columns, strict=True)
        if one.note
    ]
    if stars:
        marks = ", ".join(f"{text} p<{p:g}" for p, text in reversed(STARS))
        notes.append(f"{marks}.")
    return notes
