"""Data frames that are computed on demand: Dask data frames, polars LazyFrames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.scratch import remove_with, scratch_file
from vstatkit.sources.arrow import ArrowSource, open_parquet
from vstatkit.sources.source import import_optional, split_batches


@dataclass(frozen=True)
class DaskSource:
    """A Dask data frame; its partitions are computed each time they are read."""

    frame: Any  # at most one partition of it is in memory
    n_rows = None  # unknown before the frame is computed

    def __str__(self) -> str:
        return "the Dask data frame"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Compute some of the columns, in the order of the partitions."""
        wanted = self.frame[list(columns)]
        for number in range(wanted.npartitions):
            yield from split_batches(wanted.get_partition(number).compute())


@dataclass(frozen=True)
class LazySource:
    """A polars LazyFrame.

    The query is run once, by streaming, into a temporary Parquet file: a second run
    could take as long again, or give other rows.
    """

    frame: Any  # the query
    n_rows = None  # unknown before the query is run
    _results: dict[tuple[str, ...], ArrowSource] = field(
        default_factory=dict, repr=False
    )

    def __str__(self) -> str:
        return "the LazyFrame"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.collect_schema().names())

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Run the query for some of its columns, and read its result."""
        wanted = tuple(columns)
        if wanted not in self._results:
            self._results[wanted] = self._run_query(wanted)
        return self._results[wanted].batches(wanted)

    def _run_query(self, columns: tuple[str, ...]) -> ArrowSource:
        pl = import_optional("polars", "a LazyFrame")
        import_optional("pyarrow", "a LazyFrame")
        path = scratch_file(".parquet")
        remove_with(self, path)
        schema = self.frame.collect_schema()
        query = self.frame.select(_convert(pl, name, schema) for name in columns)
        try:
            query.sink_parquet(path)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"the LazyFrame cannot be run: {error}") from error
        return open_parquet(path)


def _convert(pl: Any, name: str, schema: Any) -> Any:
    """Give a column the type that polars' frames in memory are read with."""
    column, kind = pl.col(name), schema[name]
    if kind in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if kind == pl.Float32:
        return column.cast(pl.Float64)
    if kind.is_integer() and kind != pl.UInt64:
        return column.cast(pl.Int64)
    return column
