"""First pass over data in batches: dtypes of columns, levels, a few rows."""

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula.column_checks import check_no_infinite, is_number_kind
from vstatkit.formula.data_frames import as_frame, as_objects
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
    """Yield `function(*shared, *part)` for every part, in the order of the parts.

    None means that the caller has to process the part: there are no other workers, or
    the call failed. An error of the data is raised again then, after the parts before
    it; a file that the worker cannot see is read after all. Close the iterator, or
    exhaust it, so that no call is left running. See `in_parallel` for `shared`,
    `n_jobs` and `here`.
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
    except Exception:  # any error: the caller repeats the call, and raises it again
        return None


HEAD = 8  # number of first rows that are always kept
MAX_VALUES = 1_000_000  # largest number of levels of a column


class RowSummary:
    """Summary of successive rows.

    The levels of `bare` columns, which are terms of the formula by themselves, are
    collected if they are not numeric. Rows with missing values in `needed` columns are
    dropped.
    """

    def __init__(
        self, names: Iterable[str], bare: Container[str], needed: Container[str] = ()
    ) -> None:
        self.columns = {name: ColumnSummary(name, name in bare) for name in names}
        # The first rows, and those with new levels; the index is the row number
        self.rows: list[pd.DataFrame] = []
        self.n_rows = self.n_complete = 0  # complete rows are not dropped
        self._needed = [name for name in self.columns if name in needed]

    def add(self, batch: pd.DataFrame) -> None:
        """Add the next batch."""
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
        """Whether the levels of the next rows are not too many to be joined."""
        return all(
            len(seen.firsts.keys() | later.columns[name].firsts.keys()) <= MAX_VALUES
            for name, seen in self.columns.items()
        )

    def join(self, later: "RowSummary") -> None:
        """Join the summary of the next rows."""
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
    """Summary of one column."""

    name: str  # the column
    collects: bool  # whether to collect its levels if it is not numeric
    known: list[Any] = field(default_factory=list)  # dtypes of batches with values
    absent: list[Any] = field(default_factory=list)  # dtypes of the other batches
    firsts: dict[Any, int] = field(default_factory=dict)  # the first row of each level
    n_missing: int = 0  # number of missing values
    n_infinite: int = 0  # number of infinite values
    first_infinite: int = 0  # the first row that is infinite

    def add(self, column: pd.Series, first: int) -> list[int]:
        """Add a batch whose first row is `first`; return the rows with new levels."""
        kind = column.dtype
        n_missing = int(column.isna().sum())
        self.n_missing += n_missing
        kinds = self.absent if n_missing == len(column) else self.known
        if kind not in kinds:
            kinds.append(kind)
        if kind.kind == "f" and is_number_kind(kind):
            rows = np.flatnonzero(np.isinf(column.to_numpy()))
            if rows.size and not self.n_infinite:
                self.first_infinite = first + int(rows[0])
            self.n_infinite += rows.size
        if not self.collects or is_number_kind(kind) or kind.kind in "mM":
            return []
        return self._new_levels(column, first)

    def _new_levels(self, column: pd.Series, first: int) -> list[int]:
        try:
            codes, levels = pd.factorize(column)
        except TypeError:
            raise DataError(
                f"column {self.name!r} must have numbers or levels; it has other "
                "values, such as lists. Remove it from the formula, or convert it."
            ) from None
        fresh = [j for j, level in enumerate(levels) if level not in self.firsts]
        if len(self.firsts) + len(fresh) > MAX_VALUES:
            raise DataError(
                f"a categorical column may have {MAX_VALUES:,} levels; {self.name!r} "
                "has more. Remove it from the formula, or convert it to numbers."
            )
        if not fresh:
            return []
        # Codes count from 0 in the order in which they come; -1 is missing.
        known, rows = np.unique(codes, return_index=True)
        rows = first + rows[known >= 0]
        return self._note({levels[j]: int(rows[j]) for j in fresh})

    def _note(self, firsts: dict[Any, int]) -> list[int]:
        new = {level: row for level, row in firsts.items() if level not in self.firsts}
        self.firsts.update(new)
        return list(new.values())

    def join(self, later: "ColumnSummary", first: int) -> list[int]:
        """Join the summary of the rows from `first` on; return rows with new levels."""
        for kinds, more in ((self.known, later.known), (self.absent, later.absent)):
            kinds.extend(kind for kind in more if kind not in kinds)
        self.n_missing += later.n_missing
        if later.n_infinite and not self.n_infinite:
            self.first_infinite = first + later.first_infinite
        self.n_infinite += later.n_infinite
        return self._note({level: first + row for level, row in later.firsts.items()})

    def kind(self, source: str) -> Any:
        """Return the dtype of the column over all batches."""
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
            f"column {self.name!r} of {source} must have one dtype; it has "
            f"{', '.join(map(str, kinds))}. Convert it, for example to text."
        )


def _join_categories(kinds: list[Any]) -> pd.CategoricalDtype:
    """Join categories in the order of their first appearance."""
    first, *others = (kind for kind in kinds if isinstance(kind, pd.CategoricalDtype))
    joined = first.categories
    for kind in others:
        joined = joined.append(kind.categories.difference(joined, sort=False))
    return pd.CategoricalDtype(joined, ordered=first.ordered) if others else first


class Portion(NamedTuple):
    """A part of the data."""

    part: Part  # reads the rows
    first: int  # number of the first row
    complete: int  # number of complete rows before it


@dataclass(frozen=True)
class Survey:
    """Result of the first pass over the data."""

    parts: tuple[Portion, ...]  # the data
    kinds: dict[str, Any]  # dtype of every column over all batches
    # Columns of dates and times that have missing values
    dates_with_gaps: tuple[str, ...]
    n_missing: dict[str, int]  # missing values of every column
    n_rows: int  # number of rows
    # Some rows, with every level of columns that are terms of the formula by
    # themselves; the index is the row number
    frame: pd.DataFrame

    def batches(self) -> Iterator[pd.DataFrame]:
        """Read the data again, with these dtypes; the index is the row number."""
        for part, first, _ in self.parts:
            yield from self.batches_of(part, first)

    def batches_of(self, part: Part, first: int) -> Iterator[pd.DataFrame]:
        """Read one part again, with these dtypes; the index is the row number."""
        for batch in part.batches(list(self.kinds)):
            frame = conform(as_frame(batch), self.kinds)
            yield frame.set_axis(pd.RangeIndex(first, first + len(frame)))
            first += len(frame)

    def replace_missing_dates(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Write missing dates and times as None, in all batches."""
        gaps = {name: as_objects(frame[name]) for name in self.dates_with_gaps}
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
    """Read some columns once, and check those in `finite`; see `RowSummary`."""
    how = (columns, bare, needed)
    seen, parts, portions = RowSummary(*how), parts_of(source), []
    given = [(part,) for part in parts]
    answers = map_parts(_summarise, given, shared=how, n_jobs=n_jobs)
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
        column = seen.columns[name]
        check_no_infinite(name, column.n_infinite, column.first_infinite)
    kinds = {name: column.kind(str(source)) for name, column in seen.columns.items()}
    n_missing = {name: column.n_missing for name, column in seen.columns.items()}
    return Survey(
        parts=tuple(portions),
        kinds=kinds,
        dates_with_gaps=tuple(
            name
            for name, kind in kinds.items()
            if kind.kind in "mM" and n_missing[name]
        ),
        n_missing=n_missing,
        n_rows=seen.n_rows,
        frame=pd.concat([conform(rows, kinds) for rows in seen.rows]),
    )


def _summarise(
    columns: Sequence[str], bare: Container[str], needed: Container[str], part: Part
) -> RowSummary:
    seen = RowSummary(columns, bare, needed)
    _read(part, columns, seen)
    return seen


def _read(part: Part, columns: Sequence[str], seen: RowSummary) -> None:
    for batch in part.batches(list(columns)):
        go_on()
        seen.add(batch)


def conform(frame: pd.DataFrame, kinds: dict[str, Any]) -> pd.DataFrame:
    """Convert the columns of a batch to the dtypes of all the data."""
    changed = {
        name: as_objects(frame[name])
        if kind == np.object_
        else frame[name].astype(kind)
        for name, kind in kinds.items()
        if frame[name].dtype != kind
    }
    return frame.assign(**changed) if changed else frame
