"""Code the data part by part, and write the rows that are kept to disk."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import DataError
from vstatkit.formula.batches import Level, Sides, first_levels, has_levels
from vstatkit.formula.by_parts import by_parts
from vstatkit.formula.engine import Learnt, Matrix
from vstatkit.formula.factors import recode
from vstatkit.formula.frames import check_finite
from vstatkit.formula.plain import PlainInfo
from vstatkit.formula.response import (
    Dropped,
    Response,
    class_codes,
    response_levels,
    response_values,
    split_levels,
)
from vstatkit.formula.stored import (
    CHUNK_ROWS,
    ColumnWriter,
    HeldRows,
    StoredFrame,
)
from vstatkit.formula.summary import HEAD
from vstatkit.formula.survey import Survey
from vstatkit.sources.source import Part
from vstatkit.sources.store import GrowingArray, PlacedArray
from vstatkit.workers import go_on

RESPONSE = -1
"""Stands, among levels, for the side of those that the response itself has."""


@dataclass(frozen=True)
class Plan:
    """What is known before rows are written.

    Attributes
    ----------
    seen : Survey
        The data.
    sides : Sides
        Codes a batch.
    used : list of str
        Columns that the formula reads.
    kept : ndarray
        Columns of the design matrix that are used.
    names : tuple of str
        Their names.
    info : Learnt
        What the columns of the design matrix are.
    """

    seen: Survey
    sides: Sides
    used: list[str]
    kept: Ints
    names: tuple[str, ...]
    info: Learnt

    @property
    def travels(self) -> bool:
        """Whether it can be sent to other processes: what the engine holds cannot."""
        sides = self.sides.left, self.sides.right
        return all(isinstance(one, PlainInfo) for one in sides)

    def matrix(self, right: Matrix) -> Floats:
        """Take the columns of the design matrix that are used."""
        return recode(right, self.info).values[:, self.kept]


@dataclass(frozen=True)
class Written:
    """Rows on disk.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Design matrix.
    response : Response
        Response; its numbers too are mapped from a file.
    rows : ndarray of shape (n,) or RangeIndex
        Places in the data of the rows kept; a range where all are.
    data : StoredFrame
        Columns that the formula reads.
    beside : StoredFrame
        Columns beside the formula.
    examples : DataFrame
        Some rows, in which every level that the engine learnt occurs, and which are
        enough to code the same way again.
    """

    X: Floats
    response: Response
    rows: Ints | pd.RangeIndex
    data: StoredFrame
    beside: StoredFrame
    examples: pd.DataFrame


def write_rows(plan: Plan, beside: Sequence[str], n_jobs: int | None = None) -> Written:
    """Read the data once more, and write the rows that are kept.

    Parameters
    ----------
    plan : Plan
        How they are coded.
    beside : sequence of str
        Columns to keep beside the formula.
    n_jobs : int or None
        Workers that code parts of the data; see `in_parallel`.

    Notes
    -----
    Workers write the rows of their parts to their place in the files. Where all
    columns are plain the place is known: the survey has counted the rows that lack
    nothing. The engine may drop others, so that rows of its parts are moved up.
    """
    writer = RowWriter(plan, beside, new_files(plan, beside))
    parts, travels = plan.seen.parts, plan.travels
    firsts = [part.complete if travels else part.first for part in parts]
    answers = by_parts(
        _coded,
        [
            (part.part, part.first, writer.places(first))
            for part, first in zip(parts, firsts, strict=True)
        ],
        shared=(replace(plan, seen=plan.seen.without_rows()), tuple(beside)),
        n_jobs=n_jobs,
        here=not travels,
    )
    with closing(answers):
        for part, found in zip(parts, answers, strict=True):
            if travels:
                writer.check_count(part.complete)
            if found is None:
                writer.read(part.part, part.first)
            else:
                writer.take(found)
    return writer.written()


def _coded(
    plan: Plan, beside: Sequence[str], part: Part, first: int, places: "Files"
) -> "CodedPart":
    """Code a part of the data by itself."""
    writer = RowWriter(plan, beside, _placed(plan, beside, places))
    writer.read(part, first)
    return writer.handed_over()


class Files(NamedTuple):
    """Where rows are written: files, places in them, or what was written there.

    Attributes
    ----------
    X, y, rows : GrowingArray, PlacedArray, Place or Block
        Design matrix; numbers or levels of the response; places in the data.
    columns : list of ColumnWriter, ColumnBlock, Place or None
        Columns that the formula reads, and those beside it.
    """

    X: Any
    y: Any
    rows: Any
    columns: list[Any]


def new_files(plan: Plan, beside: Sequence[str]) -> Files:
    """Make files."""
    kinds = plan.seen.kinds
    return Files(
        GrowingArray(np.float64, plan.kept.size),
        GrowingArray(np.float64),
        GrowingArray(np.int64),
        [ColumnWriter(kinds[name]) for name in (*plan.used, *beside)],
    )


def _placed(plan: Plan, beside: Sequence[str], places: Files) -> Files:
    """Write to places in files that somebody else has made."""
    columns = [
        ColumnWriter(
            plan.seen.kinds[name], HeldRows() if place is None else PlacedArray(place)
        )
        for name, place in zip((*plan.used, *beside), places.columns, strict=True)
    ]
    X, y, rows = map(PlacedArray, places[:3])
    return Files(X, y, rows, columns)


class CodedPart(NamedTuple):
    """Rows of a part of the data that were coded by themselves.

    Attributes
    ----------
    files : Files
        What was written where.
    firsts : dict
        The row in which each level comes first.
    head : list of int
        The first rows that are kept.
    examples : DataFrame
        All these rows.
    """

    files: Files
    firsts: dict[Level, int]
    head: list[int]
    examples: pd.DataFrame


class RowWriter:
    """Codes rows, and writes those that are kept.

    Parameters
    ----------
    plan : Plan
        How they are coded.
    beside : sequence of str
        Columns to keep beside the formula.
    files : Files
        Where they are written.
    """

    def __init__(self, plan: Plan, beside: Sequence[str], files: Files) -> None:
        self._plan, self._beside, self._files = plan, beside, files
        self._sides = plan.sides.left, plan.sides.right
        self._n_kept = 0
        self._firsts: dict[Level, int] = {}
        self._head: list[int] = []
        self._examples = [plan.seen.frame]

    def read(self, part: Part, first: int) -> None:
        """Code a part of the data, whose rows count from `first`."""
        for batch in self._plan.seen.batches_of(part, first):
            go_on()
            self.add(batch)

    def add(self, batch: pd.DataFrame) -> None:
        """Code a batch, and write its rows."""
        plan = self._plan
        plain = plan.seen.plain(batch)
        left, right = plan.sides.coded(plain)
        X = plan.matrix(right)
        passes = plan.sides.missing == "pass"
        check_finite(X, plan.names, allow_missing=passes, first=self._n_kept)
        y, levels = response_values(left, self._n_kept)
        firsts = {} if levels is None else _first_values(y, right.rows)
        if has_levels(*self._sides):
            firsts |= first_levels(self._sides, plan.sides.learnt(plain))
        self._note(batch, firsts, right.rows[:HEAD].tolist())
        whole = len(right.rows) == len(batch)
        kept = batch if whole else batch.loc[right.rows]
        for file, values in zip(self._files[:3], (X, y, right.rows), strict=True):
            file.append(values)
        names = (*plan.used, *self._beside)
        for name, column in zip(names, self._files.columns, strict=True):
            column.append(kept[name])
        self._n_kept += len(X)

    def _note(
        self, frame: pd.DataFrame, firsts: dict[Level, int], head: list[int]
    ) -> None:
        """Keep the first rows of all, and those in which a level comes first."""
        new = {one: row for one, row in firsts.items() if one not in self._firsts}
        first = head[: HEAD - len(self._head)]
        self._firsts.update(new)
        self._head += first
        if new or first:
            self._examples.append(frame.loc[sorted({*new.values(), *first})])

    def places(self, first: int) -> Files:
        """Give the places of rows that somebody else writes, from row `first` on."""
        X, y, rows = (file.place(first) for file in self._files[:3])
        columns = [column.place(first) for column in self._files.columns]
        return Files(X, y, rows, columns)

    def handed_over(self) -> CodedPart:
        """End the writing to places in somebody else's files."""
        X, y, rows = (file.handed_over() for file in self._files[:3])
        columns = [column.handed_over() for column in self._files.columns]
        files = Files(X, y, rows, columns)
        return CodedPart(files, self._firsts, self._head, _distinct(self._examples))

    def take(self, part: CodedPart) -> None:
        """Add the rows of a part that was coded by itself, as if it was read."""
        self._note(part.examples, part.firsts, part.head)
        for file, block in zip(self._files[:3], part.files[:3], strict=True):
            file.take(block)
        for column, block in zip(self._files.columns, part.files.columns, strict=True):
            column.take(block)
        self._n_kept += part.files.X.n_rows

    def check_count(self, n_kept: int) -> None:
        """Refuse data of which other rows are kept than were counted."""
        if self._n_kept != n_kept:
            raise DataError(
                f"{n_kept:,} complete rows were counted in parts of the data, where "
                f"{self._n_kept:,} are found now. The files must not change while they "
                "are read: fit again."
            )

    def written(self) -> Written:
        """End the writing."""
        plan, files = self._plan, self._files
        n_rows = plan.seen.n_rows
        whole = self._n_kept == n_rows
        rows = pd.RangeIndex(n_rows) if whole else files.rows.mapped()
        index = pd.Index(rows, copy=False)
        stored = [column.stored() for column in files.columns]
        used = dict(zip(plan.used, stored, strict=False))
        beside = dict(zip(self._beside, stored[len(used) :], strict=True))
        return Written(
            X=files.X.mapped(),
            response=self._response(rows.size),
            rows=rows,
            data=StoredFrame(used, index),
            beside=StoredFrame(beside, index),
            examples=_distinct(self._examples),
        )

    def _response(self, n_kept: int) -> Response:
        """Code the levels that occur; the numbers are mapped from a file."""
        levels = response_levels(self._plan.sides.left)
        if levels is None:
            return Response(self._files.y.mapped(), None, ())
        occurs = np.zeros(len(levels), dtype=bool)
        occurs[[place for side, _, place in self._firsts if side == RESPONSE]] = True
        seen = self._plan.seen
        dropped = Dropped(seen.n_rows - n_kept, seen.n_missing)
        classes, unused = split_levels(levels, occurs, dropped)
        places, codes = self._files.y.mapped(), class_codes(occurs)
        if not unused:
            return Response(places, classes, unused)
        y = GrowingArray(np.float64)
        for first in range(0, len(places), CHUNK_ROWS):
            y.append(codes[places[first : first + CHUNK_ROWS].astype(np.int64)])
        return Response(y.mapped(), classes, unused)


def _first_values(places: Floats, rows: Ints) -> dict[Level, int]:
    """Find the first row of every level of the response."""
    found, firsts = np.unique(places.astype(np.int64), return_index=True)
    labels = rows[firsts].tolist()
    return {
        (RESPONSE, "", one): row
        for one, row in zip(found.tolist(), labels, strict=True)
    }


def _distinct(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Put rows together in the order of the data, each once."""
    rows = pd.concat(frames)
    return rows[~rows.index.duplicated()].sort_index()
