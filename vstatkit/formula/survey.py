"""A first pass over the data: the kinds of columns, their levels, a few rows."""

from collections.abc import Container, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.by_parts import by_parts
from vstatkit.formula.frames import as_frame
from vstatkit.formula.summary import Summary
from vstatkit.sources.source import Part, Source, parts_of
from vstatkit.workers import go_on


class Portion(NamedTuple):
    """A part of the data.

    Attributes
    ----------
    part : Part
        Reads it.
    first : int
        Number of its first row.
    complete : int
        Rows before it that lack nothing that is needed.
    """

    part: Part
    first: int
    complete: int


@dataclass(frozen=True)
class Survey:
    """What one pass over the data tells.

    Attributes
    ----------
    parts : tuple of Portion
        The data.
    kinds : dict
        Kind of every column that was read, as if it had been read at once.
    dates_with_gaps : tuple of str
        Columns of dates and times that have missing values.
    n_missing : dict
        Missing values of every column that was read.
    n_rows : int
        Number of rows.
    frame : DataFrame
        Some rows, among them every value of columns that are not numbers and stand
        by themselves in the formula; the index is their place in the data.
    """

    parts: tuple[Portion, ...]
    kinds: dict[str, Any]
    dates_with_gaps: tuple[str, ...]
    n_missing: dict[str, int]
    n_rows: int
    frame: pd.DataFrame

    def batches(self) -> Iterator[pd.DataFrame]:
        """Read the data again, in these kinds; the index goes on counting."""
        for part, first, _ in self.parts:
            yield from self.batches_of(part, first)

    def batches_of(self, part: Part, first: int) -> Iterator[pd.DataFrame]:
        """Read a part of the data again, in these kinds; the index counts on."""
        for batch in part.batches(list(self.kinds)):
            frame = conform(as_frame(batch), self.kinds)
            yield frame.set_axis(pd.RangeIndex(first, first + len(frame)))
            first += len(frame)

    def without_rows(self) -> "Survey":
        """Leave out what is not needed to read a part."""
        return replace(self, parts=(), frame=self.frame.iloc[:0])

    def plain(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Write missing dates and times as None, in all batches alike."""
        gaps = {
            name: frame[name].astype(object).where(frame[name].notna(), None)
            for name in self.dates_with_gaps
        }
        return frame.assign(**gaps) if gaps else frame


def survey(
    source: Source,
    columns: Sequence[str],
    finite: Sequence[str],
    bare: Container[str],
    *,
    needed: Container[str],
    n_jobs: int | None,
) -> Survey:
    """Read the data once.

    Parameters
    ----------
    source : Source
        Data.
    columns : sequence of str
        Columns to read; no others are.
    finite : sequence of str
        Those that must not have infinite values.
    bare : container of str
        Those that stand by themselves in the formula: if they are not numbers, their
        levels are wanted.
    needed : container of str
        Those that a row is dropped for, where they are missing.
    n_jobs : int or None
        Workers that read parts of the data; see `in_parallel`.
    """
    how = (columns, bare, needed)
    seen, parts = Summary(*how), parts_of(source)
    given = [(part,) for part in parts]
    answers = by_parts(_summarised, given, shared=how, n_jobs=n_jobs)
    portions = []
    with closing(answers):
        for part, found in zip(parts, answers, strict=True):
            portions.append(Portion(part, seen.n_rows, seen.n_complete))
            if found is not None and seen.has_room(found):
                seen.join(found)
            else:
                _read(part, columns, seen)
    if seen.n_rows == 0:
        raise FormulaError("`data` has no rows.")
    for name in finite:
        seen.columns[name].check_finite()
    kinds = {name: one.kind(str(source)) for name, one in seen.columns.items()}
    dates = [name for name, kind in kinds.items() if kind.kind in "mM"]
    gaps = tuple(name for name in dates if seen.columns[name].n_missing)
    return Survey(
        parts=tuple(portions),
        kinds=kinds,
        dates_with_gaps=gaps,
        n_missing={name: one.n_missing for name, one in seen.columns.items()},
        n_rows=seen.n_rows,
        frame=pd.concat([conform(rows, kinds) for rows in seen.rows]),
    )


def _summarised(
    columns: Sequence[str], bare: Container[str], needed: Container[str], part: Part
) -> Summary:
    """Read a part of the data by itself."""
    seen = Summary(columns, bare, needed)
    _read(part, columns, seen)
    return seen


def _read(part: Part, columns: Sequence[str], seen: Summary) -> None:
    for batch in part.batches(list(columns)):
        go_on()
        seen.add(batch)


def conform(frame: pd.DataFrame, kinds: dict[str, Any]) -> pd.DataFrame:
    """Bring the columns of a batch to the kinds that they have in all the data."""
    changed = {
        name: _cast(frame[name], kind)
        for name, kind in kinds.items()
        if frame[name].dtype != kind
    }
    return frame.assign(**changed) if changed else frame


def _cast(column: pd.Series, kind: Any) -> pd.Series:
    if kind == np.object_:
        return column.astype(object).where(column.notna(), None)
    return column.astype(kind)
