"""Parquet files, folders of them, and Arrow datasets."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.source import BATCH_ROWS, required


@dataclass(frozen=True)
class ArrowSource:
    """An Arrow dataset, or what can be opened as one.

    Attributes
    ----------
    dataset : pyarrow.dataset.Dataset
        Files, or anything else that Arrow scans.
    name : str
        What messages call it.
    """

    dataset: Any
    name: str

    def __str__(self) -> str:
        return self.name

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; an index that pandas stored is none of them."""
        schema = self.dataset.schema
        stored = (schema.metadata or {}).get(b"pandas")
        index = json.loads(stored)["index_columns"] if stored else []
        return tuple(name for name in schema.names if name not in index)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, which the files say without being read."""
        with self._reading():
            return int(self.dataset.count_rows())

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, file after file."""
        with self._reading():
            for table in self._tables(list(columns)):
                if table.num_rows:
                    yield table.to_pandas().reset_index(drop=True)

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        pa = required("pyarrow", f"reading {self.name}")
        try:
            files = list(self.dataset.get_fragments())
        except ValueError:  # it is filtered, or projected
            files = []
        if not files or not all(hasattr(one, "row_groups") for one in files):
            # Arrow reads ahead, up to a gigabyte where batches are used up slowly.
            for batch in self.dataset.to_batches(
                columns=columns, batch_size=BATCH_ROWS, fragment_readahead=1
            ):
                yield pa.Table.from_batches([batch])
            return
        wanted = pa.schema([self.dataset.schema.field(name) for name in columns])
        wanted = wanted.with_metadata(self.dataset.schema.metadata)
        for file in files:
            yield from _file_tables(file, wanted)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        pa = required("pyarrow", f"reading {self.name}")
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name} cannot be read: {error}") from error


def _file_tables(file: Any, schema: Any) -> Iterator[Any]:
    """Read a Parquet file, never much more than a batch of it at a time.

    Columns that the file does not have are keys of the folder it lies in, or missing.
    """
    pa = required("pyarrow", "a Parquet file")
    pq = required("pyarrow.parquet", "a Parquet file")
    dataset = required("pyarrow.dataset", "a Parquet file")
    keys = dataset.get_partition_keys(file.partition_expression)
    with pq.ParquetFile(file.open(), pre_buffer=False) as opened:
        held = [name for name in schema.names if name in opened.schema_arrow.names]
        read = held or opened.schema_arrow.names[:1]  # rows need a column to be counted
        for batch in opened.iter_batches(BATCH_ROWS, columns=read):
            columns = [
                batch[field.name].cast(field.type)
                if field.name in held
                else pa.repeat(
                    pa.scalar(keys.get(field.name), field.type), batch.num_rows
                )
                for field in schema
            ]
            yield pa.table(columns, schema=schema)


def parquet(path: Path) -> ArrowSource:
    """Open a Parquet file, or a folder of them."""
    kind = "folder" if path.is_dir() else "file"
    dataset = required("pyarrow.dataset", f"the Parquet {kind} {path}")
    try:
        found = dataset.dataset(
            path, format="parquet", partitioning="hive" if path.is_dir() else None
        )
    except (ValueError, OSError) as error:  # Arrow's errors are ValueErrors
        raise DataError(
            f"{path} cannot be read as a Parquet {kind}: {error}"
        ) from error
    if not found.schema.names:
        raise DataError(f"{path} holds no Parquet files with columns.")
    return ArrowSource(found, str(path))
