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
        index = stored_index(self.dataset.schema)
        return tuple(name for name in self.dataset.schema.names if name not in index)

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


def stored_index(schema: Any) -> list[str]:
    """List the columns that pandas stored as an index."""
    stored = (schema.metadata or {}).get(b"pandas")
    index = json.loads(stored)["index_columns"] if stored else []
    return [name for name in index if name in schema.names]  # a range has no column


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

    Columns that the file does not have are keys of the folder it lies in.
    """
    pa = required("pyarrow", "a Parquet file")
    pq = required("pyarrow.parquet", "a Parquet file")
    dataset = required("pyarrow.dataset", "a Parquet file")
    keys = dataset.get_partition_keys(file.partition_expression)
    with pq.ParquetFile(file.open(), pre_buffer=False) as opened:
        held = [name for name in schema.names if name in opened.schema_arrow.names]
        lacking = [name for name in schema.names if name not in (*held, *keys)]
        if lacking:
            raise DataError(
                f"{file.path} has no column {lacking[0]!r}, which other files have: "
                "all of its rows would be missing. Add the column to the file, or read "
                "the files that have it."
            )
        read = held or opened.schema_arrow.names[:1]  # rows need a column to be counted
        for batch in opened.iter_batches(BATCH_ROWS, list(groups), read):
            columns = [
                batch[field.name].cast(field.type)
                if field.name in held
                else pa.repeat(pa.scalar(keys[field.name], field.type), batch.num_rows)
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
    if path.is_dir():
        with reading(str(path)):
            schema = _common_schema(path, found)
            found = dataset.dataset(
                path.absolute(), schema, format="parquet", partitioning="hive"
            )
    return ArrowSource(found, str(path))


def _common_schema(path: Path, found: Any) -> Any:
    """Join the columns of all files; refuse files that lack some of them.

    Whole numbers and decimals are joined. Arrow takes the columns of the first file:
    others would be lost, and what a file lacks would be missing in all of its rows.
    """
    pa = required("pyarrow", f"the Parquet folder {path}")
    files = list(found.get_fragments())
    schemas = [_without_index(file.physical_schema) for file in files]
    keys = [name for name in found.schema.names if name not in schemas[0].names]
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        unlike = set(schema.names) ^ set(schemas[0].names)
        if unlike:
            name = sorted(unlike)[0]
            here, there = file.path, files[0].path
            if name in schema.names:
                here, there = there, here
            raise DataError(
                f"the files of {path} must have the same columns; {there} has a column "
                f"{name!r}, and {here} has none. Add it there, or read the files that "
                "have the same columns."
            )
        for field in schema:
            first = schemas[0].field(field.name)
            if not _joins(first.type, field.type):
                raise DataError(
                    f"column {field.name!r} must be of one kind in all files of "
                    f"{path}; it is {first.type} in {files[0].path} and "
                    f"{field.type} in {file.path}. Convert one of them."
                )
    joined = pa.unify_schemas(schemas, promote_options="permissive")
    fields = [joined.field(name) for name in schemas[0].names]
    fields += [found.schema.field(name) for name in keys]
    return pa.schema(fields, metadata=found.schema.metadata)


def _without_index(schema: Any) -> Any:
    """Leave out an index that pandas stored."""
    for name in stored_index(schema):
        schema = schema.remove(schema.get_field_index(name))
    return schema


def _joins(one: Any, other: Any) -> bool:
    """Tell whether two kinds of columns can be read as one: numbers can."""
    pa = required("pyarrow", "a Parquet file")

    def kind(dtype: Any) -> str:
        if pa.types.is_dictionary(dtype):
            return kind(dtype.value_type)
        numbers = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
        texts = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
        return "number" if numbers else "text" if texts else str(dtype)

    nothing = pa.types.is_null(one) or pa.types.is_null(other)
    return nothing or kind(one) == kind(other)
