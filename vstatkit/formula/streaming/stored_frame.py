"""Data frames on disk: written by column, read in parts, and summarised."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Ints
from vstatkit.formula.column_summaries import FrameVariables
from vstatkit.sources.disk_arrays import ArrayFile, GrowingArray, Place, PlacedArray

# Largest number of rows for medians and quantiles of all rows.
ORDERED_ROWS = 20_000_000
SAMPLED_ROWS = 4_000_000  # rows drawn at random for medians and quantiles of more rows
CHUNK_ROWS = 1_000_000  # rows of a column that are in memory at a time


class MemoryRows:
    """Rows in memory, with the interface of a `PlacedArray`."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[Any]] = []

    def append(self, block: NDArray[Any]) -> None:
        """Append rows."""
        self._blocks.append(block)

    def handed_over(self) -> NDArray[Any]:
        """Concatenate the rows."""
        return np.concatenate([np.empty(0, np.int32), *self._blocks])


class ColumnBlock(NamedTuple):
    """Rows of a column that another process wrote."""

    # Numbers, in their place of the file, or codes of `levels`; -1 is missing
    rows: Any
    levels: list[Any]  # levels of these rows, in order of appearance


class ColumnWriter:
    """Writes a column to disk: numbers unchanged, other values as codes."""

    def __init__(
        self, kind: Any, rows: GrowingArray | PlacedArray | MemoryRows | None = None
    ) -> None:
        self._kind = kind
        self._coded = not isinstance(kind, np.dtype) or kind == np.object_
        new = np.int32 if self._coded else kind
        self._rows: Any = GrowingArray(new) if rows is None else rows
        self._places: dict[Any, int] = {}

    def append(self, column: pd.Series) -> None:
        """Append rows."""
        if self._coded:
            codes, values = pd.factorize(column)
            self._rows.append(self._codes(values)[codes])
        else:
            self._rows.append(column.to_numpy())

    def _codes(self, values: Iterable[Any]) -> NDArray[np.int32]:
        """Return the codes of values, and -1, the code of missing ones, at the end."""
        places = [self._places.setdefault(value, len(self._places)) for value in values]
        return np.array([*places, -1], dtype=np.int32)

    def place(self, first: int) -> Place | None:
        """Return the place of numbers from row `first` on; codes have none yet."""
        place: Place | None = None if self._coded else self._rows.place(first)
        return place

    def handed_over(self) -> ColumnBlock:
        """Finish writing in another process."""
        return ColumnBlock(self._rows.handed_over(), list(self._places))

    def take(self, block: ColumnBlock) -> None:
        """Add rows that another process wrote."""
        if self._coded:
            self._rows.append(self._codes(block.levels)[block.rows])
        else:
            self._rows.take(block.rows)

    def finish(self) -> "StoredColumn":
        """Finish writing."""
        levels = list(self._places) if self._coded else None
        return StoredColumn(self._rows.to_file(), levels, self._kind)


@dataclass(frozen=True)
class StoredColumn:
    """A column on disk."""

    # (n,): values, or codes of `levels`; -1 is missing
    values: ArrayFile | NDArray[Any]
    levels: list[Any] | None  # levels of a column that is not numeric
    kind: Any  # dtype of the column

    def take_rows(self, rows: Ints | slice) -> pd.Series:
        """Read some rows."""
        values = self.values[rows]
        if self.levels is not None:
            lookup: NDArray[Any] = np.empty(len(self.levels) + 1, dtype=object)
            lookup[:-1] = self.levels  # the code -1 selects the last, None
            values = lookup[values]
        column: pd.Series = pd.Series(values, dtype=self.kind)
        return column

    def shorten(self) -> pd.Series:
        """Return a short column with the same levels and most frequent value."""
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
    """A data frame on disk."""

    columns: dict[str, StoredColumn]  # the columns
    index: pd.Index  # labels of the rows

    def __getitem__(self, names: Sequence[str]) -> "StoredFrame":
        return StoredFrame({name: self.columns[name] for name in names}, self.index)

    def to_frame(self) -> pd.DataFrame:
        """Read all rows into memory."""
        columns = {
            name: column.take_rows(slice(None)) for name, column in self.columns.items()
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.index)))

    @property
    def iloc(self) -> "_Rows":
        """Indexer of rows by position, as of a data frame."""
        return _Rows(self)

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Dtype of every column."""
        return {name: column.kind for name, column in self.columns.items()}

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""
        return {name: self._variables(name).median([name])[name] for name in names}

    def mode(self, name: str) -> Any:
        """Most frequent value; of several, the first in the data."""
        return self._variables(name).mode(name)

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns, of all rows."""
        return {name: self._ends(name) for name in names}

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns."""
        return {
            name: self._variables(name).quantiles([name], shares)[name]
            for name in names
        }

    def levels(self, name: str) -> list[Any]:
        """Levels of a category that occur in any row, in order."""
        column = self.columns[name]
        if column.levels is not None:
            return self._variables(name).levels(name)
        parts = [part.drop_duplicates() for part in self._chunks(name)]
        return FrameVariables(pd.DataFrame({name: pd.concat(parts)})).levels(name)

    def _variables(self, name: str) -> FrameVariables:
        """Read the rows from which one column is summarised."""
        column, n = self.columns[name], len(self.index)
        if column.levels is not None:
            values = column.shorten()
        elif n <= ORDERED_ROWS:
            values = column.take_rows(slice(None))
        else:
            drawn = np.random.default_rng(0).integers(n, size=SAMPLED_ROWS)
            values = column.take_rows(np.sort(drawn))  # in the order of the file
        return FrameVariables(pd.DataFrame({name: values}))

    def _ends(self, name: str) -> tuple[Any, Any]:
        ends = [[part.min(), part.max()] for part in self._chunks(name)]
        both = np.array(ends, dtype=self.columns[name].kind)
        return pd.Series(both[:, 0]).min(), pd.Series(both[:, 1]).max()

    def _chunks(self, name: str) -> Iterator[pd.Series]:
        for first in range(0, len(self.index), CHUNK_ROWS):
            yield self.columns[name].take_rows(slice(first, first + CHUNK_ROWS))


@dataclass(frozen=True)
class _Rows:
    """Indexer of the rows of a stored frame."""

    frame: StoredFrame

    def __getitem__(self, rows: Ints) -> pd.DataFrame:
        columns = self.frame.columns.items()
        taken = {name: column.take_rows(rows).array for name, column in columns}
        return pd.DataFrame(taken, index=self.frame.index[rows])
