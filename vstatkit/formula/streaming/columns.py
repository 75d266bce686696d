"""Columns on disk, with their summaries and selected rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Ints
from vstatkit.formula.coding import FrameVariables
from vstatkit.sources.disk_arrays import ArrayFile, GrowingArray, Place

ORDERED_ROWS = 20_000_000
"""Rows up to which medians and quantiles are those of all rows."""

SAMPLED_ROWS = 4_000_000
"""Rows, drawn at random, that they are taken from where there are more."""

CHUNK_ROWS = 1_000_000
"""Rows of a column that are held at a time where all of them count."""


def is_coded(kind: Any) -> bool:
    """Tell columns that are stored as codes of their values from numbers."""
    return not isinstance(kind, np.dtype) or kind == np.object_


class MemoryRows:
    """Rows that grow in memory."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[Any]] = []

    def append(self, block: NDArray[Any]) -> None:
        """Add rows below those that are there."""
        self._blocks.append(block)

    def handed_over(self) -> NDArray[Any]:
        """Put the rows together."""
        return np.concatenate([np.empty(0, np.int32), *self._blocks])


class ColumnBlock(NamedTuple):
    """Rows of a column that another process may have made.

    Attributes
    ----------
    rows : Block or ndarray
        Numbers, at their place in the file, or codes of levels, -1 where they are
        missing: what a code stands for is known when all rows before are.
    levels : list
        What the codes stand for.
    """

    rows: Any
    levels: list[Any]


class ColumnWriter:
    """A column that grows on disk: numbers as they are, other values as codes.

    Parameters
    ----------
    kind : dtype
        Kind of the column.
    rows : GrowingArray, PlacedArray or MemoryRows, optional
        Where they are written; by default to a new file.
    """

    def __init__(self, kind: Any, rows: Any = None) -> None:
        self._kind = kind
        self._coded = is_coded(kind)
        new = np.int32 if self._coded else kind
        self._rows: Any = GrowingArray(new) if rows is None else rows
        self._places: dict[Any, int] = {}

    def append(self, column: pd.Series) -> None:
        """Write rows below those that are there."""
        if not self._coded:
            self._rows.append(column.to_numpy())
            return
        codes, values = pd.factorize(column)
        self._rows.append(self._codes(values)[codes])

    def _codes(self, values: Iterable[Any]) -> NDArray[np.int32]:
        """Give the codes of values, new ones included; missing ones, -1, come last."""
        places = [self._places.setdefault(value, len(self._places)) for value in values]
        return np.array([*places, -1], dtype=np.int32)

    def place(self, first: int) -> Place | None:
        """Give the place of numbers from row `first` on; codes have none yet."""
        place: Place | None = None if self._coded else self._rows.place(first)
        return place

    def handed_over(self) -> ColumnBlock:
        """End the writing in another process."""
        return ColumnBlock(self._rows.handed_over(), list(self._places))

    def take(self, block: ColumnBlock) -> None:
        """Add rows that another process has made."""
        if self._coded:
            self._rows.append(self._codes(block.levels)[block.rows])
        else:
            self._rows.take(block.rows)

    def finish(self) -> "StoredColumn":
        """End the writing."""
        levels = list(self._places) if self._coded else None
        return StoredColumn(self._rows.filed(), levels, self._kind)


@dataclass(frozen=True)
class StoredColumn:
    """A column on disk.

    Attributes
    ----------
    values : ArrayFile or ndarray of shape (n,)
        Values, or codes of levels, -1 where they are missing.
    levels : list or None
        What the codes stand for.
    kind : dtype
        Kind of the column.
    """

    values: ArrayFile | NDArray[Any]
    levels: list[Any] | None
    kind: Any

    def take_rows(self, rows: Ints | slice) -> pd.Series:
        """Read some rows."""
        values = self.values[rows]
        if self.levels is not None:
            lookup: NDArray[Any] = np.empty(len(self.levels) + 1, dtype=object)
            lookup[:-1] = self.levels  # the last, None, is where the code -1 leads
            values = lookup[values]
        column: pd.Series = pd.Series(values, dtype=self.kind)
        return column

    def shorten(self) -> pd.Series:
        """Make a short column of the same levels and the same most frequent value."""
        counts = np.zeros(len(self.levels or ()), dtype=np.int64)
        for first in range(0, len(self.values), CHUNK_ROWS):
            codes = self.values[first : first + CHUNK_ROWS]
            counts += np.bincount(codes[codes >= 0], minlength=counts.size)
        used, most = np.flatnonzero(counts), np.flatnonzero(counts == counts.max())
        return StoredColumn(np.r_[used, most], self.levels, self.kind).take_rows(
            slice(None)
        )


@dataclass(frozen=True)
class StoredFrame:
    """Columns on disk that stand for a data frame.

    Attributes
    ----------
    columns : dict of str to StoredColumn
        The columns.
    index : Index
        Labels of the rows.
    """

    columns: dict[str, StoredColumn]
    index: pd.Index

    def select_columns(self, names: Sequence[str]) -> "StoredFrame":
        """Take some of the columns."""
        return StoredFrame({name: self.columns[name] for name in names}, self.index)

    def to_frame(self) -> pd.DataFrame:
        """Read all rows into memory."""
        columns = {
            name: column.take_rows(slice(None)) for name, column in self.columns.items()
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.index)))

    @property
    def iloc(self) -> "_Rows":
        """Take rows by their places, as from a data frame."""
        return _Rows(self)

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Kind of every column, in their order."""
        return {name: column.kind for name, column in self.columns.items()}

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""
        medians: dict[str, Any] = {}
        for name in names:
            medians |= self._variables(name).median([name])
        return medians

    def mode(self, name: str) -> Any:
        """Most frequent value; of several, the one that comes first in the data."""
        return self._variables(name).mode(name)

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns, of all rows."""
        return {name: self._ends(name) for name in names}

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns."""
        quantiles: dict[str, list[float]] = {}
        for name in names:
            quantiles |= self._variables(name).quantiles([name], shares)
        return quantiles

    def levels(self, name: str) -> list[Any]:
        """Levels of a category that occur in any row, in order."""
        column = self.columns[name]
        if column.levels is not None:
            return self._variables(name).levels(name)
        parts = [part.drop_duplicates() for part in self._chunks(name)]
        return FrameVariables(pd.DataFrame({name: pd.concat(parts)})).levels(name)

    def _variables(self, name: str) -> FrameVariables:
        """Hold what summaries of one column are taken from."""
        column = self.columns[name]
        if column.levels is not None:
            return FrameVariables(pd.DataFrame({name: column.shorten()}))
        rows = _rows_to_summarise(len(self.index))
        return FrameVariables(pd.DataFrame({name: column.take_rows(rows)}))

    def _ends(self, name: str) -> tuple[Any, Any]:
        ends = [[part.min(), part.max()] for part in self._chunks(name)]
        both = np.array(ends, dtype=self.columns[name].kind)
        return pd.Series(both[:, 0]).min(), pd.Series(both[:, 1]).max()

    def _chunks(self, name: str) -> Iterator[pd.Series]:
        for first in range(0, len(self.index), CHUNK_ROWS):
            yield self.columns[name].take_rows(slice(first, first + CHUNK_ROWS))


@dataclass(frozen=True)
class _Rows:
    """The rows of a stored frame, by their places."""

    frame: StoredFrame

    def __getitem__(self, rows: Ints) -> pd.DataFrame:
        columns = self.frame.columns.items()
        taken = {name: column.take_rows(rows).array for name, column in columns}
        return pd.DataFrame(taken, index=self.frame.index[rows])


def _rows_to_summarise(n: int) -> Ints | slice:
    """Choose rows that quantiles are taken from: all, or a random sample."""
    if n <= ORDERED_ROWS:
        return slice(None)
    drawn = np.random.default_rng(0).integers(n, size=SAMPLED_ROWS)
    return np.sort(drawn)  # in the order in which they lie on the disk
