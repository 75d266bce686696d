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
from vstatkit.sources.source import BATCH_ROWS, Part, required

PART_ROWS = 524_288
"""Most rows of a part, unless a single row group has more."""


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
        with reading(self.name):
            return int(self.dataset.count_rows())

    def parts(self) -> Sequence[Part]:
        """Divide Parquet files by their row groups; anything else is one part."""
        return (self,) if self._divided is None else self._divided

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, file after file."""
        if self._divided is not None:
            for part in self._divided:
                yield from part.batches(columns)
            return
        with reading(self.name):
            # Arrow reads ahead, up to a gigabyte where batches are used up slowly.
            for batch in self.dataset.to_batches(
                columns=list(columns), batch_size=BATCH_ROWS, fragment_readahead=1
            ):
                if batch.num_rows:
                    yield batch.to_pandas().reset_index(drop=True)

    @cached_property
    def _divided(self) -> tuple["ParquetPart", ...] | None:
        """Parts of Parquet files; None where the data are none, or are filtered."""
        with reading(self.name):
            try:
                files = list(self.dataset.get_fragments())
            except ValueError:  # it is filtered, or projected
                return None
            if not files or not all(hasattr(one, "row_groups") for one in files):
                return None
            schema = self.dataset.schema
            return tuple(ParquetPart(self.name, schema, one) for one in _grouped(files))


Pieces = tuple[tuple[Any, tuple[int, ...]], ...]
"""Parquet files, and row groups of each."""


@dataclass(frozen=True)
class ParquetPart:
    """Row groups of Parquet files, which follow each other.

    Attributes
    ----------
    name : str
        What messages call the data.
    schema : pyarrow.Schema
        All columns of the data.
    pieces : tuple
        The files, and the numbers of their row groups.
    """

    name: str
    schema: Any
    pieces: Pieces

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, file after file."""
        with reading(self.name):
            pa = required("pyarrow", f"reading {self.name}")
            wanted = pa.schema([self.schema.field(name) for name in columns])
            wanted = wanted.with_metadata(self.schema.metadata)
            for file, groups in self.pieces:
                for table in _file_tables(file, groups, wanted):
                    if table.num_rows:
                        yield table.to_pandas().reset_index(drop=True)


def _grouped(files: Sequence[Any]) -> Iterator[Pieces]:
    """Put row groups together up to `PART_ROWS`, never dividing one."""
    held: dict[int, list[int]] = {}
    n_rows = 0
    for number, file in enumerate(files):
        for group in file.row_groups:
            if held and n_rows + group.num_rows > PART_ROWS:
                yield tuple((files[at], tuple(ids)) for at, ids in held.items())
                held, n_rows = {}, 0
            held.setdefault(number, []).append(group.id)
            n_rows += group.num_rows
    if held:
        yield tuple((files[at], tuple(ids)) for at, ids in held.items())


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors of Arrow, and of the disk, into ours."""
    pa = required("pyarrow", f"reading {name}")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def _file_tables(file: Any, groups: Sequence[int], schema: Any) -> Iterator[Any]:
    """Read row groups of a Parquet file, never much more than a batch of it at a time.

    Columns that the file does not have are keys of the folder it lies in, or missing.
    """
    pa = required("pyarrow", "a Parquet file")
    pq = required("pyarrow.parquet", "a Parquet file")
    dataset = required("pyarrow.dataset", "a Parquet file")
    keys = dataset.get_partition_keys(file.partition_expression)
    with pq.ParquetFile(file.open(), pre_buffer=False) as opened:
        held = [name for name in schema.names if name in opened.schema_arrow.names]
        read = held or opened.schema_arrow.names[:1]  # rows need a column to be counted
        for batch in opened.iter_batches(BATCH_ROWS, list(groups), read):
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
            path.absolute(),  # workers may have another working directory
            format="parquet",
            partitioning="hive" if path.is_dir() else None,
        )
    except (ValueError, OSError) as error:  # Arrow's errors are ValueErrors
        raise DataError(
            f"{path} cannot be read as a Parquet {kind}: {error}"
        ) from error
    if not found.schema.names:
        raise DataError(f"{path} holds no Parquet files with columns.")
    return ArrowSource(found, str(path))
