"""A first pass over batches: the kinds of columns, their levels, a few rows."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula.frames import as_frame, is_number_kind
from vstatkit.sources.source import Source

HEAD = 8
"""Rows at the beginning that are kept in any case."""

MAX_VALUES = 1_000_000
"""Different values of a column that is a category."""


@dataclass(frozen=True)
class Survey:
    """What one pass over the data tells.

    Attributes
    ----------
    source : Source
        The data.
    kinds : dict
        Kind of every column that was read, as if it had been read at once.
    dates_with_gaps : tuple of str
        Columns of dates and times that have missing values.
    n_rows : int
        Number of rows.
    frame : DataFrame
        Some rows, among them every value of columns that are not numbers and stand
        by themselves in the formula; the index is their place in the data.
    """

    source: Source
    kinds: dict[str, Any]
    dates_with_gaps: tuple[str, ...]
    n_rows: int
    frame: pd.DataFrame

    def batches(self) -> Iterator[pd.DataFrame]:
        """Read the data again, in these kinds; the index goes on counting."""
        first = 0
        for batch in self.source.batches(list(self.kinds)):
            frame = conform(as_frame(batch), self.kinds)
            yield frame.set_axis(pd.RangeIndex(first, first + len(frame)))
            first += len(frame)

    def plain(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Write missing dates and times as None, in all batches alike."""
        gaps = {
            name: frame[name].astype(object).where(frame[name].notna(), None)
            for name in self.dates_with_gaps
        }
        return frame.assign(**gaps) if gaps else frame


def survey(
    source: Source, columns: Sequence[str], finite: Sequence[str], bare: Container[str]
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
    """
    seen = {name: _Seen(name, name in bare) for name in columns}
    rows: list[pd.DataFrame] = []
    n_rows = 0
    for batch in source.batches(list(columns)):
        frame = as_frame(batch)
        new = np.arange(len(frame)) < HEAD - n_rows
        for name in columns:
            new |= seen[name].add(frame[name], n_rows)
        if new.any():
            places = np.flatnonzero(new)
            rows.append(frame.iloc[places].set_axis(pd.Index(places + n_rows)))
        n_rows += len(frame)
    if n_rows == 0:
        raise FormulaError("`data` has no rows.")
    for name in finite:
        seen[name].check_finite()
    kinds = {name: seen[name].kind(str(source)) for name in columns}
    dates = [name for name, kind in kinds.items() if kind.kind in "mM"]
    return Survey(
        source=source,
        kinds=kinds,
        dates_with_gaps=tuple(name for name in dates if seen[name].n_missing),
        n_rows=n_rows,
        frame=pd.concat([conform(part, kinds) for part in rows]),
    )


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


@dataclass
class _Seen:
    """What was seen of one column so far."""

    name: str
    collects: bool
    known: list[Any] = field(default_factory=list)
    absent: list[Any] = field(default_factory=list)
    values: set[Any] = field(default_factory=set)
    n_missing: int = 0
    n_infinite: int = 0
    first_infinite: int = 0

    def add(self, column: pd.Series, first: int) -> Any:
        """Take a batch; tell rows with new values, where they are wanted."""
        kind = column.dtype
        n_missing = int(column.isna().sum())
        self.n_missing += n_missing
        kinds = self.absent if n_missing == len(column) else self.known
        if kind not in kinds:
            kinds.append(kind)
        if is_number_kind(kind):
            self._count_infinite(column, first)
        if not self.collects or is_number_kind(kind) or kind.kind in "mM":
            return np.zeros(len(column), dtype=bool)
        return self._new_values(column)

    def _count_infinite(self, column: pd.Series, first: int) -> None:
        if column.dtype.kind != "f":
            return
        rows = np.flatnonzero(np.isinf(column.to_numpy()))
        if rows.size and not self.n_infinite:
            self.first_infinite = first + int(rows[0])
        self.n_infinite += rows.size

    def _new_values(self, column: pd.Series) -> Any:
        try:
            codes, found = pd.factorize(column)
        except TypeError:
            raise DataError(
                f"column {self.name!r} holds values that are no categories, such as "
                "lists. Leave it out, or convert it."
            ) from None
        fresh = [place for place, one in enumerate(found) if one not in self.values]
        self.values.update(found[place] for place in fresh)
        if len(self.values) > MAX_VALUES:
            raise DataError(
                f"column {self.name!r} is a category of more than {MAX_VALUES:,} "
                "different values. Leave it out, or convert it to numbers."
            )
        new = np.zeros(len(column), dtype=bool)
        if fresh:
            firsts = np.unique(codes, return_index=True)
            places = dict(zip(firsts[0].tolist(), firsts[1].tolist(), strict=True))
            new[[places[place] for place in fresh]] = True
        return new

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
        if all(isinstance(one, pd.CategoricalDtype) for one in kinds):
            return _joined_categories([*self.known, *self.absent])
        if all(is_number_kind(one) for one in kinds):
            joined = np.result_type(*kinds)
            whole = joined.kind in "iu" and self.n_missing > 0
            return np.dtype(np.float64) if whole else joined
        if all(one == np.bool_ for one in kinds):
            return np.dtype(object if self.n_missing else bool)
        if len(kinds) == 1:
            return kinds[0]
        if all(one in (np.dtype(object), np.dtype(bool)) for one in kinds):
            return np.dtype(object)
        raise DataError(
            f"column {self.name!r} of {source} is of several kinds: "
            f"{', '.join(map(str, kinds))}. Numbers and text, for example, do not mix: "
            "give the column one kind, as Parquet files do."
        )


def _joined_categories(kinds: list[Any]) -> pd.CategoricalDtype:
    """Join categories in the order in which they first come."""
    given = [kind for kind in kinds if isinstance(kind, pd.CategoricalDtype)]
    if len(given) == 1:
        return given[0]
    joined = given[0].categories
    for one in given[1:]:
        joined = joined.append(one.categories.difference(joined, sort=False))
    return pd.CategoricalDtype(joined, ordered=given[0].ordered)
