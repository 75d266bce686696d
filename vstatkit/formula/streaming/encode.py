"""Encode data batch by batch, and write the rows to disk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula import design_matrix, factor_coding, parse
from vstatkit.formula.column_checks import check_finite
from vstatkit.formula.design_matrix import Missing, code_side, learn_side
from vstatkit.formula.parse import Response
from vstatkit.formula.patsy_engine import (
    Environment,
    Matrix,
    OnMissing,
    SideInfo,
    level_places,
)
from vstatkit.formula.plain_columns import PlainInfo
from vstatkit.formula.streaming.scan import HEAD, Survey, map_parts
from vstatkit.formula.streaming.stored_frame import (
    CHUNK_ROWS,
    ColumnWriter,
    MemoryRows,
    StoredFrame,
)
from vstatkit.formula.terms import Codes, Model
from vstatkit.sources.disk_arrays import GrowingArray, Place, PlacedArray
from vstatkit.sources.source import Part
from vstatkit.workers import go_on

Batches = Callable[[], Iterator[pd.DataFrame]]  # reads the data from the beginning
# A level of a factor: number of the side, code of the factor, place of the level.
Level = tuple[int, str, int]
RESPONSE = -1  # number of the side, in a `Level`, of the levels of the response itself


@dataclass(frozen=True)
class Sides:
    """Both sides of a formula, learnt from batches."""

    left: SideInfo
    right: SideInfo
    missing: Missing  # treatment of missing values
    stateful: list[str]  # columns that stateful transforms read
    variables: Sequence[str]  # columns that the right-hand side reads

    def training_rows(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Select the rows of a batch that the engine learns from."""
        if self.missing == "pass":
            return batch.loc[code_side(self.left, batch, "drop").rows]
        return drop_incomplete_rows(self.stateful, batch)

    def code(self, batch: pd.DataFrame) -> tuple[Matrix, Matrix]:
        """Code a batch as `build_matrices` would code it within all the data."""
        how = self.missing
        if how == "pass":
            design_matrix.check_missing_categories(batch, self.variables)
            left = code_side(self.left, batch, "drop")
            if len(left.rows) < len(batch):
                batch = batch.loc[left.rows]
            return left, code_side(self.right, batch, "keep")
        batch = drop_incomplete_rows(self.stateful, batch)
        return design_matrix.common_rows(
            code_side(self.left, batch, how), code_side(self.right, batch, how)
        )


def learn_sides(
    model: Model,
    rows: pd.DataFrame,
    batches: Batches,
    *,
    environment: Environment,
    missing: Missing,
    variables: Sequence[str],
) -> Sides:
    """Learn both sides; see `learn_side`."""
    stateful = [] if missing != "drop" else model.stateful_columns(rows.columns)

    complete = partial(drop_incomplete_rows, stateful)

    def learn(terms: Sequence[Codes], select: Any, how: OnMissing) -> SideInfo:
        return learn_side(
            model,
            terms,
            rows,
            lambda: skip_empty(map(select, batches())),
            environment=environment,
            missing=how,
        )

    if missing != "pass":
        left = learn(model.left, complete, missing)
        right = learn(model.right, complete, missing)
        return Sides(left, right, missing, stateful, variables)
    left = learn(model.left, complete, "drop")
    sides = Sides(left, left, missing, stateful, variables)
    return replace(sides, right=learn(model.right, sides.training_rows, "keep"))


def drop_incomplete_rows(stateful: list[str], batch: pd.DataFrame) -> pd.DataFrame:
    """Drop rows with a missing value in a column that a stateful transform reads."""
    return batch.dropna(subset=stateful) if stateful else batch


def skip_empty(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Skip batches without rows; raise an error if there are no others."""
    some = False
    for batch in batches:
        if len(batch):
            some = True
            yield batch
    if not some:
        raise FormulaError(
            "all rows have missing values in the columns of the formula. Fill them in, "
            "or remove such columns from the formula."
        )


def has_levels(info: SideInfo) -> bool:
    """Whether the engine learnt levels, which a few rows need not contain."""
    return not isinstance(info, PlainInfo) and any(
        levels is not None for levels in info.levels.values()
    )


def first_levels(sides: Sequence[SideInfo], batch: pd.DataFrame) -> dict[Level, int]:
    """Find the label of the first row of every level that the engine learnt."""
    if len(batch) == 0:
        return {}
    labels = batch.index.to_numpy()
    return {
        (number, code, level): row
        for number, info in enumerate(sides)
        for code, places in level_places(info, batch).items()
        for level, row in _first_labels(places, labels)
        if level >= 0
    }


def _first_labels(places: Ints, labels: Ints) -> Iterator[tuple[int, int]]:
    """Pair every level with the label of its first row."""
    levels, firsts = np.unique(places, return_index=True)
    return zip(levels.tolist(), labels[firsts].tolist(), strict=True)


@dataclass(frozen=True)
class Plan:
    """How rows are coded."""

    seen: Survey  # the data
    sides: Sides  # codes a batch
    used: list[str]  # columns that the formula reads
    columns: Ints  # columns of the design matrix that are used
    names: tuple[str, ...]  # names of these columns
    info: SideInfo  # describes all columns of the design matrix


class StoredRows(NamedTuple):
    """Rows on disk."""

    X: Floats  # (n, p): design matrix, mapped from a file
    response: Response  # response, mapped from a file
    rows: Ints | pd.RangeIndex  # (n,) or RangeIndex: positions of the rows in the data
    data: StoredFrame  # columns of the data
    # Some rows, with every level that the engine learnt; coding them gives the same
    # columns again
    examples: pd.DataFrame


def write_rows(plan: Plan, n_jobs: int | None = None) -> StoredRows:
    """Read the data again, and write the rows that are not dropped.

    Notes
    -----
    Workers write the rows of their parts to their place in the files. If all columns
    are plain, the survey has counted the complete rows, and the place is known. The
    engine may drop further rows; the rows of its parts are moved up.
    """
    writer, parts = RowWriter(plan), plan.seen.parts
    # Without what the workers, who read one part each, do not need.
    seen = replace(plan.seen, parts=(), frame=plan.seen.frame.iloc[:0])
    # Other processes cannot use the engine's objects.
    sides = plan.sides.left, plan.sides.right
    travels = all(isinstance(side, PlainInfo) for side in sides)
    firsts = [part.complete if travels else part.first for part in parts]
    answers = map_parts(
        _code_part,
        [
            (part.part, part.first, writer.places(first))
            for part, first in zip(parts, firsts, strict=True)
        ],
        shared=(replace(plan, seen=seen),),
        n_jobs=n_jobs,
        here=not travels,
    )
    with closing(answers):
        for part, coded in zip(parts, answers, strict=True):
            if travels:
                writer.check_count(part.complete)
            if coded is None:
                writer.read(part.part, part.first)
            else:
                writer.take(coded)
    return writer.finish()


def _code_part(
    plan: Plan, part: Part, first: int, places: list[Place | None]
) -> "CodedPart":
    writer = RowWriter(plan, places)
    writer.read(part, first)
    return writer.handed_over()


class CodedPart(NamedTuple):
    """Rows of one part of the data."""

    n_rows: int  # how many were not dropped
    blocks: list[Any]  # what was stored, one for each file
    firsts: dict[Level, int]  # the first row of each level
    head: list[int]  # the first rows that were not dropped
    examples: pd.DataFrame  # all these rows


class RowWriter:
    """Codes rows by a plan, and writes those that are not dropped to files.

    There is a file for the design matrix, for numbers or levels of the response, for
    positions in the data, and for every column. With `places`, another process made
    them.
    """

    def __init__(self, plan: Plan, places: list[Place | None] | None = None) -> None:
        self._plan, kinds = plan, plan.seen.kinds.values()
        if places is None:
            size = plan.columns.size
            self._files: list[Any] = [
                GrowingArray(np.float64, size),
                *map(GrowingArray, (np.float64, np.int64)),
                *map(ColumnWriter, kinds),
            ]
        else:
            arrays = [
                MemoryRows() if place is None else PlacedArray(place)
                for place in places
            ]
            self._files = [*arrays[:3], *map(ColumnWriter, kinds, arrays[3:])]
        self._sides = plan.sides.left, plan.sides.right
        self._n_kept = 0
        self._firsts: dict[Level, int] = {}
        self._head: list[int] = []
        self._examples = [plan.seen.frame]

    def read(self, part: Part, first: int) -> None:
        """Code a part of the data; `first` is the number of its first row."""
        for batch in self._plan.seen.batches_of(part, first):
            go_on()
            self.add(batch)

    def add(self, batch: pd.DataFrame) -> None:
        """Code a batch, and write its rows."""
        plan = self._plan
        plain = plan.seen.replace_missing_dates(batch)
        left, right = plan.sides.code(plain)
        X = factor_coding.recode_matrix(right, plan.info).values[:, plan.columns]
        passes = plan.sides.missing == "pass"
        check_finite(X, plan.names, allow_missing=passes, first=self._n_kept)
        y, levels = parse.response_values(left, self._n_kept)
        firsts: dict[Level, int] = {}
        if levels is not None:
            for level, row in _first_labels(y.astype(np.int64), right.rows):
                firsts[RESPONSE, "", level] = row
        if any(map(has_levels, self._sides)):
            firsts |= first_levels(self._sides, plan.sides.training_rows(plain))
        self._note(batch, firsts, right.rows[:HEAD].tolist())
        whole = len(right.rows) == len(batch)
        rows = batch if whole else batch.loc[right.rows]
        columns = (rows[name] for name in plan.seen.kinds)
        for file, values in zip(self._files, (X, y, right.rows, *columns), strict=True):
            file.append(values)
        self._n_kept += len(X)

    def _note(
        self, frame: pd.DataFrame, firsts: dict[Level, int], head: list[int]
    ) -> None:
        """Keep the first rows, and the first row of each level."""
        new = {level: row for level, row in firsts.items() if level not in self._firsts}
        first = head[: HEAD - len(self._head)]
        self._firsts.update(new)
        self._head += first
        if new or first:
            self._examples.append(frame.loc[sorted({*new.values(), *first})])

    def places(self, first: int) -> list[Place | None]:
        """Return the places that another process writes to, from row `first` on."""
        return [file.place(first) for file in self._files]

    def handed_over(self) -> CodedPart:
        """Finish writing to the files of another process."""
        blocks = [file.handed_over() for file in self._files]
        examples = _join_rows(self._examples)
        return CodedPart(self._n_kept, blocks, self._firsts, self._head, examples)

    def take(self, part: CodedPart) -> None:
        """Add the rows of a part that another process coded."""
        self._note(part.examples, part.firsts, part.head)
        for file, block in zip(self._files, part.blocks, strict=True):
            file.take(block)
        self._n_kept += part.n_rows

    def check_count(self, n_kept: int) -> None:
        """Raise an error if the data changed after the survey."""
        if self._n_kept != n_kept:
            raise DataError(
                "the files must not change while they are read; the first pass counted "
                f"{n_kept:,} complete rows, the second {self._n_kept:,}. Fit again."
            )

    def finish(self) -> StoredRows:
        """Close the files, and map them."""
        n_rows, (X, y, positions, *columns) = self._plan.seen.n_rows, self._files
        whole = self._n_kept == n_rows
        rows = pd.RangeIndex(n_rows) if whole else positions.map_array()
        stored = (column.finish() for column in columns)
        return StoredRows(
            X=X.map_array(),
            response=self._response(y),
            rows=rows,
            data=StoredFrame(
                dict(zip(self._plan.seen.kinds, stored, strict=True)),
                pd.Index(rows, copy=False),
            ),
            examples=_join_rows(self._examples),
        )

    def _response(self, file: GrowingArray) -> Response:
        levels = parse.response_levels(self._plan.sides.left)
        if levels is None:
            return Response(file.map_array(), None, ())
        occurs = np.zeros(len(levels), dtype=bool)
        occurs[[place for side, _, place in self._firsts if side == RESPONSE]] = True
        seen = self._plan.seen
        n_dropped = seen.n_rows - self._n_kept
        classes, unused = parse.split_levels(levels, occurs, n_dropped, seen.n_missing)
        places, codes = file.map_array(), parse.class_codes(occurs)
        if not unused:
            return Response(places, classes, unused)
        y = GrowingArray(np.float64)
        for first in range(0, len(places), CHUNK_ROWS):
            y.append(codes[places[first : first + CHUNK_ROWS].astype(np.int64)])
        return Response(y.map_array(), classes, unused)


def _join_rows(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate rows in the order of the data, each once."""
    rows = pd.concat(frames)
    return rows[~rows.index.duplicated()].sort_index()
