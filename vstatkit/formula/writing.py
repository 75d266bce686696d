"""Code the data part by part, and write the rows that are kept to disk."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.batches import Level, Sides, first_levels, has_levels
from vstatkit.formula.by_parts import by_parts
from vstatkit.formula.engine import Matrix
from vstatkit.formula.frames import check_finite
from vstatkit.formula.plain import PlainInfo
from vstatkit.formula.response import (
    Response,
    class_codes,
    response_levels,
    response_values,
    split_levels,
)
from vstatkit.formula.stored import ColumnBlock, ColumnWriter, StoredFrame
from vstatkit.formula.summary import HEAD
from vstatkit.formula.survey import Survey
from vstatkit.formula.whole import with_whole_factors
from vstatkit.sources.source import Part
from vstatkit.sources.store import Block, GrowingArray, scratch_folder
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
    whole_factors : bool
        Whether unordered factors are kept in one column each.
    """

    seen: Survey
    sides: Sides
    used: list[str]
    kept: Ints
    names: tuple[str, ...]
    whole_factors: bool

    @property
    def travels(self) -> bool:
        """Whether it can be sent to other processes: what the engine holds cannot."""
        sides = self.sides.left, self.sides.right
        return all(isinstance(one, PlainInfo) for one in sides)

    def matrix(self, right: Matrix) -> Floats:
        """Take the columns of the design matrix that are used."""
        if self.whole_factors:
            right = with_whole_factors(right, self.seen.frame)
        return right.values[:, self.kept]


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
    """
    writer = RowWriter(plan, beside)
    sent = replace(plan, seen=plan.seen.without_rows())
    with scratch_folder() as folder:
        answers = by_parts(
            _coded,
            plan.seen.parts,
            shared=(sent, tuple(beside), folder),
            n_jobs=n_jobs,
            here=not plan.travels,
        )
        for part, found in zip(plan.seen.parts, answers, strict=True):
            if found is None:
                writer.read(*part)
            else:
                writer.take(found)
    return writer.written()


def _coded(
    plan: Plan, beside: Sequence[str], folder: Path, part: Part, first: int
) -> "CodedPart":
    """Code a part of the data by itself."""
    writer = RowWriter(plan, beside, folder)
    writer.read(part, first)
    return writer.handed_over()


class CodedPart(NamedTuple):
    """Rows of a part of the data, in files that another process may have written.

    Attributes
    ----------
    X, y, rows : Block
        Design matrix; numbers or levels of the response; places in the data.
    columns : list of ColumnBlock
        Columns that the formula reads, and those beside it.
    firsts : dict
        The row in which each level comes first.
    head : list of int
        The first rows that are kept.
    examples : DataFrame
        All these rows.
    """

    X: Block
    y: Block
    rows: Block
    columns: list[ColumnBlock]
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
    folder : Path, optional
        Where files are made.
    """

    def __init__(
        self, plan: Plan, beside: Sequence[str], folder: Path | None = None
    ) -> None:
        self._plan, self._used, self._beside = plan, plan.used, list(beside)
        self._X = GrowingArray(np.float64, plan.kept.size, folder)
        self._y = GrowingArray(np.float64, None, folder)
        self._rows = GrowingArray(np.int64, None, folder)
        self._columns = [
            ColumnWriter(plan.seen.kinds[name], folder)
            for name in (*self._used, *self._beside)
        ]
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
        self._X.append(X)
        self._y.append(y)
        self._rows.append(right.rows)
        for name, column in zip(self._names, self._columns, strict=True):
            column.append(kept[name])
        self._n_kept += len(X)

    @property
    def _names(self) -> list[str]:
        return [*self._used, *self._beside]

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

    def handed_over(self) -> CodedPart:
        """End the writing; the files are now somebody else's."""
        return CodedPart(
            X=self._X.handed_over(),
            y=self._y.handed_over(),
            rows=self._rows.handed_over(),
            columns=[column.handed_over() for column in self._columns],
            firsts=self._firsts,
            head=self._head,
            examples=_distinct(self._examples),
        )

    def take(self, part: CodedPart) -> None:
        """Write the rows of a part that was coded by itself, as if it was read."""
        self._note(part.examples, part.firsts, part.head)
        self._X.take(part.X)
        self._y.take(part.y)
        self._rows.take(part.rows)
        for column, block in zip(self._columns, part.columns, strict=True):
            column.take(block)
        self._n_kept += part.X.n_rows

    def written(self) -> Written:
        """End the writing."""
        n_rows = self._plan.seen.n_rows
        whole = self._n_kept == n_rows
        rows = pd.RangeIndex(n_rows) if whole else self._rows.mapped()
        index = pd.Index(rows, copy=False)
        stored = [column.stored() for column in self._columns]
        columns = dict(zip(self._names, stored, strict=True))
        return Written(
            X=self._X.mapped(),
            response=self._response(),
            rows=rows,
            data=StoredFrame({name: columns[name] for name in self._used}, index),
            beside=StoredFrame({name: columns[name] for name in self._beside}, index),
            examples=_distinct(self._examples),
        )

    def _response(self) -> Response:
        """Code the levels that occur; the numbers are mapped from a file."""
        levels = response_levels(self._plan.sides.left)
        if levels is None:
            return Response(self._y.mapped(), None, ())
        occurs = np.zeros(len(levels), dtype=bool)
        occurs[[place for side, _, place in self._firsts if side == RESPONSE]] = True
        classes, unused = split_levels(levels, occurs)
        if not unused:
            return Response(self._y.mapped(), classes, unused)
        places = self._y.handed_over()
        y, codes = GrowingArray(np.float64), class_codes(occurs)
        for chunk in places.chunks(np.float64):
            y.append(codes[chunk.astype(np.int64)])
        places.path.unlink()
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
