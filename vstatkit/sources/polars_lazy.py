"""Lazy frames of polars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.scratch import remove_with, scratch_file
from vstatkit.sources.arrow import ArrowSource, parquet
from vstatkit.sources.source import required


@dataclass(frozen=True)
class LazySource:
    """A polars LazyFrame.

    The query is run once, by streaming, into a temporary Parquet file: a second run
    could take as long again, or give other rows.

    Attributes
    ----------
    frame : polars.LazyFrame
        The query.
    """

    frame: Any
    _run: dict[tuple[str, ...], ArrowSource] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "the LazyFrame"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.collect_schema().names())

    @property
    def n_rows(self) -> None:
        """Only running the query tells."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Run the query for some of its columns, and read what it gave."""
        wanted = tuple(columns)
        if wanted not in self._run:
            self._run[wanted] = self._written(wanted)
        return self._run[wanted].batches(wanted)

    def _written(self, columns: tuple[str, ...]) -> ArrowSource:
        pl = required("polars", "a LazyFrame")
        required("pyarrow", "a LazyFrame")
        path = scratch_file(".parquet")
        remove_with(self, path)
        schema = self.frame.collect_schema()
        query = self.frame.select(_as_listed(pl, name, schema) for name in columns)
        try:
            query.sink_parquet(path)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"the LazyFrame cannot be run: {error}") from error
        return parquet(path)


def _as_listed(pl: Any, name: str, schema: Any) -> Any:
    """Take a column as frames of polars are read: as a list of its values."""
    column, kind = pl.col(name), schema[name]
    if kind in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if kind == pl.Float32:
        return column.cast(pl.Float64)
    if kind.is_integer() and kind != pl.UInt64:
        return column.cast(pl.Int64)
    return column
