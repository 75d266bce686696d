"""A first pass over data in batches: kinds of columns, levels, a few rows."""

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula.input_checks import as_frame, is_number_kind
from vstatkit.sources.source import Part, Source, parts_of
from vstatkit.workers import CalledOffError, go_on, in_parallel, one_at_a_time

Answer = TypeVar("Answer")


def map_parts(
    function: Callable[..., Answer],
    parts: Sequence[tuple[Any, ...]],
    *,
    shared: tuple[Any, ...],
    n_jobs: int | None,
    here: bool = False,
) -> Generator[Answer | None, None, None]:
    """Call a function for every part, and yield the answers in the order of the parts.

    Close the iterator, or read it to its end: then no call is left running.

    Parameters
    ----------
    function : callable
        What to call: `function(*shared, *part)`.
    parts : sequence of tuple
        A part of the data, and what else differs between the calls.
    shared, n_jobs, here
        See `in_parallel`.

    Yields
    ------
    object or None
        None where the caller is to do the part by itself: there is no other to work
        beside it, or the call has failed. What fails for a reason of its own fails
        again, with the message that it has after all that came before; what a worker
        could not do, such as read a file that it does not see, is done all the same.
    """
    if len(parts) == 1 or one_at_a_time(n_jobs, here=here):
        yield from (None for _ in parts)
        return
    answers = in_parallel(
        _try_call, parts, n_jobs=n_jobs, shared=(function, *shared), here=here
    )
    with closing(answers):
        yield from answers


def _try_call(function: Callable[..., Answer], *arguments: Any) -> Answer | None:
    try:
        return function(*arguments)
    except CalledOffError:
        raise
    except Exception:  # the caller meets it again
        return None


HEAD = 8
"""Rows at the beginning that are kept in any case."""

MAX_VALUES = 1_000_000
"""Different values of a column that is a category."""


class RowSummary:
    """What is seen of rows that follow each other.

    Parameters
    ----------
    names : iterable of str
        Columns.
    bare : container of str
        Those that stand by themselves in the formula: if they are not numbers, their
        levels are wanted.
    needed : container of str
        Those that a row is dropped for, where they are missing.

    Attributes
    ----------
    columns : dict of str to ColumnSummary
        What was seen of each column.
    rows : list of DataFrame
        The first rows, and those in which levels come first; the index counts rows.
    n_rows, n_complete : int
        Number of rows, and of those that lack nothing that is needed.
    """

    def __init__(
        self, names: Iterable[str], bare: Container[str], needed: Container[str] = ()
    ) -> None:
        self.columns = {name: ColumnSummary(name, name in bare) for name in names}
        self.rows: list[pd.DataFrame] = []
        self.n_rows = self.n_complete = 0
        self._needed = [name for name in self.columns if name in needed]

    def add(self, batch: pd.DataFrame) -> None:
        """Take the batch that follows."""
        frame, first = as_frame(batch), self.n_rows
        before = sum(self.columns[name].n_missing for name in self._needed)
        self.n_rows += len(frame)
        new = set(range(first, min(HEAD, self.n_rows)))
        for name, seen in self.columns.items():
            new.update(seen.add(frame[name], first))
        self.n_complete += len(frame)
        if sum(self.columns[name].n_missing for name in self._needed) > before:
            gaps = frame[self._needed].isna().to_numpy().any(axis=1)
            self.n_complete -= int(gaps.sum())
        if new:
            places = np.array(sorted(new))
            self.rows.append(frame.iloc[places - first].set_axis(pd.Index(places)))

    def has_room(self, later: "RowSummary") -> bool:
        """Tell whether what was seen of the rows that follow can be joined."""
        columns = self.columns.items()
        return all(seen.has_room(later.columns[name]) for name, seen in columns)

    def join(self, later: "RowSummary") -> None:
        """Take what was seen of the rows that follow, as if they had been added."""
        first = self.n_rows
        self.n_rows += later.n_rows
        self.n_complete += later.n_complete
        new = set(range(first, min(HEAD, self.n_rows)))
        for name, seen in self.columns.items():
            new.update(seen.join(later.columns[name], first))
        for frame in later.rows:
            places = frame.index + first
            needed = places.isin(list(new))
            if needed.any():
                self.rows.append(frame[needed].set_axis(places[needed]))


@dataclass
class ColumnSummary:
    """What was seen of one column so far.

    Attributes
    ----------
    name : str
        The column.
    collects : bool
        Whether its levels are wanted, if it is not a number.
    known, absent : list
        Kinds of batches, in order; `absent` are those of batches without any value.
    firsts : dict
        The row in which each level comes first.
    n_missing, n_infinite : int
        Missing and infinite values.
    first_infinite : int
        The first row that is infinite.
    """

    name: str
    collects: bool
    known: list[Any] = field(default_factory=list)
    absent: list[Any] = field(default_factory=list)
    firsts: dict[Any, int] = field(default_factory=dict)
    n_missing: int = 0
    n_infinite: int = 0
    first_infinite: int = 0

    def add(self, column: pd.Series, first: int) -> list[int]:
        """Take a batch, whose rows count from `first`; tell rows with new levels."""
        kind = column.dtype
        n_missing = int(column.isna().sum())
        self.n_missing += n_missing
        kinds = self.absent if n_missing == len(column) else self.known
        if kind not in kinds:
            kinds.append(kind)
        if is_number_kind(kind):
            self._count_infinite(column, first)
        if not self.collects or is_number_kind(kind) or kind.kind in "mM":
            return []
        return self._new_levels(column, first)

    def _count_infinite(self, column: pd.Series, first: int) -> None:
        if column.dtype.kind != "f":
            return
        rows = np.flatnonzero(np.isinf(column.to_numpy()))
        if rows.size and not self.n_infinite:
            self.first_infinite = first + int(rows[0])
        self.n_infinite += rows.size

    def _new_levels(self, column: pd.Series, first: int) -> list[int]:
        try:
            codes, levels = pd.factorize(column)
        except TypeError:
            raise DataError(
                f"column {self.name!r} holds values that are no categories, such as "
                "lists. Leave it out, or convert it."
            ) from None
        fresh = [
            place for place, level in enumerate(levels) if level not in self.firsts
        ]
        if len(self.firsts) + len(fresh) > MAX_VALUES:
            raise DataError(
                f"column {self.name!r} is a category of more than {MAX_VALUES:,} "
                "different values. Leave it out, or convert it to numbers."
            )
        if not fresh:
            return []
        # Codes count from 0 in the order in which they come; -1 is missing.
        known, rows = np.unique(codes, return_index=True)
        rows = first + rows[known >= 0]
        return self._note({levels[place]: int(rows[place]) for place in fresh})

    def _note(self, firsts: dict[Any, int]) -> list[int]:
        new = {level: row for level, row in firsts.items() if level not in self.firsts}
        self.firsts.update(new)
        return list(new.values())

    def has_room(self, later: "ColumnSummary") -> bool:
        """Tell whether the levels of later rows are not too many."""
        more = sum(level not in self.firsts for level in later.firsts)
        return len(self.firsts) + more <= MAX_VALUES

    def join(self, later: "ColumnSummary", first: int) -> list[int]:
        """Take what was seen of the rows from `first` on; tell rows with new levels."""
        for kinds, more in ((self.known, later.known), (self.absent, later.absent)):
            kinds.extend(kind for kind in more if kind not in kinds)
        self.n_missing += later.n_missing
        if later.n_infinite and not self.n_infinite:
            self.first_infinite = first + later.first_infinite
        self.n_infinite += later.n_infinite
        return self._note({level: first + row for level, row in later.firsts.items()})

    def check_finite(self) -> None:
        """Refuse infinite values."""
        if self.n_infinite:
            raise FormulaError(
                f"column {self.name!r} must be finite; {self.n_infinite} value(s) are "
                f"infinite, the first in row {self.first_infinite}. Remove or replace "
                "them."
            )

    def kind(self, source: str) -> Any:
        """Give the kind that the column has when all batches are read at once."""
        kinds = self.known or self.absent[:1]
        if all(isinstance(kind, pd.CategoricalDtype) for kind in kinds):
            return _join_categories([*self.known, *self.absent])
        if all(is_number_kind(kind) for kind in kinds):
            joined = np.result_type(*kinds)
            whole = joined.kind in "iu" and self.n_missing > 0
            return np.dtype(np.float64) if whole else joined
        if all(kind == np.bool_ for kind in kinds):
            return np.dtype(object if self.n_missing else bool)
        if len(kinds) == 1:
            return kinds[0]
        if all(kind in (np.dtype(object), np.dtype(bool)) for kind in kinds):
            return np.dtype(object)
        raise DataError(
            f"column {self.name!r} of {source} is of several kinds: "
            f"{', '.join(map(str, kinds))}. Numbers and text, for example, do not mix: "
            "give the column one kind, as Parquet files do."
        )


def _join_categories(kinds: list[Any]) -> pd.CategoricalDtype:
    """Join categories in the order in which they first come."""
    given = [kind for kind in kinds if isinstance(kind, pd.CategoricalDtype)]
    if len(given) == 1:
        return given[0]
    joined = given[0].categories
    for kind in given[1:]:
        joined = joined.append(kind.categories.difference(joined, sort=False))
    return pd.CategoricalDtype(joined, ordered=given[0].ordered)


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

    def drop_rows(self) -> "Survey":
        """Leave out what is not needed to read a part."""
        return replace(self, parts=(), frame=self.frame.iloc[:0])

    def replace_missing_dates(self, frame: pd.DataFrame) -> pd.DataFrame:
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
    seen, parts = RowSummary(*how), parts_of(source)
    given = [(part,) for part in parts]
    answers = map_parts(_summarise, given, shared=how, n_jobs=n_jobs)
    portions = []
    with closing(answers):
        for part, summary in zip(parts, answers, strict=True):
            portions.append(Portion(part, seen.n_rows, seen.n_complete))
            if summary is not None and seen.has_room(summary):
                seen.join(summary)
            else:
                _read(part, columns, seen)
    if seen.n_rows == 0:
        raise FormulaError("`data` has no rows.")
    for name in finite:
        seen.columns[name].check_finite()
    kinds = {name: column.kind(str(source)) for name, column in seen.columns.items()}
    dates = [name for name, kind in kinds.items() if kind.kind in "mM"]
    gaps = tuple(name for name in dates if seen.columns[name].n_missing)
    return Survey(
        parts=tuple(portions),
        kinds=kinds,
        dates_with_gaps=gaps,
        n_missing={name: column.n_missing for name, column in seen.columns.items()},
        n_rows=seen.n_rows,
        frame=pd.concat([conform(rows, kinds) for rows in seen.rows]),
    )


def _summarise(
    columns: Sequence[str], bare: Container[str], needed: Container[str], part: Part
) -> RowSummary:
    """Read a part of the data by itself."""
    seen = RowSummary(columns, bare, needed)
    _read(part, columns, seen)
    return seen


def _read(part: Part, columns: Sequence[str], seen: RowSummary) -> None:
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
