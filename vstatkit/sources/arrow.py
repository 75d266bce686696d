"""Parquet files, folders of them, and Arrow datasets."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.source import BATCH_ROWS, Part, import_optional

PART_ROWS = 524_288  # most rows of a part, unless a single row group has more


@dataclass(frozen=True)
class ArrowSource:
    """An Arrow dataset."""

    dataset: Any  # files, or anything else that Arrow scans
    name: str  # what messages call it

    def __str__(self) -> str:
        return self.name

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, without an index that pandas stored."""
        return tuple(_drop_index(self.dataset.schema).names)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, from the metadata of the files."""
        with _arrow_errors(self.name):
            return int(self.dataset.count_rows())

    def parts(self) -> Sequence[Part]:
        """Divide Parquet files by their row groups; anything else is one part."""
        return (self,) if self._parquet_parts is None else self._parquet_parts

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, file after file."""
        if self._parquet_parts is not None:
            for part in self._parquet_parts:
                yield from part.batches(columns)
            return
        with _arrow_errors(self.name):
            # Arrow reads ahead, up to a gigabyte if batches are used slowly.
            yield from _frames(
                self.dataset.to_batches(
                    columns=list(columns), batch_size=BATCH_ROWS, fragment_readahead=1
                )
            )

    @cached_property
    def _parquet_parts(self) -> tuple["ParquetPart", ...] | None:
        """Parts of Parquet files; None for other data, and filtered ones."""
        with _arrow_errors(self.name):
            try:
                files = list(self.dataset.get_fragments())
            except ValueError:  # it is filtered, or projected
                return None
            if not files or not all(hasattr(file, "row_groups") for file in files):
                return None
            schema, pieces = self.dataset.schema, _group_rows(files)
            return tuple(ParquetPart(self.name, schema, piece) for piece in pieces)


Pieces = tuple[tuple[Any, tuple[int, ...]], ...]  # files, and row groups of each


@dataclass(frozen=True)
class ParquetPart:
    """Row groups of Parquet files, which follow each other."""

    name: str  # what messages call the data
    schema: Any  # all columns of the data
    pieces: Pieces  # the files, and the numbers of their row groups

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, file after file."""
        with _arrow_errors(self.name):
            pa = import_optional("pyarrow", f"reading {self.name}")
            wanted = pa.schema([self.schema.field(name) for name in columns])
            wanted = wanted.with_metadata(self.schema.metadata)
            for file, groups in self.pieces:
                yield from _frames(_file_tables(file, groups, wanted))


def _frames(tables: Iterable[Any]) -> Iterator[pd.DataFrame]:
    """Convert Arrow tables to frames; skip empty ones."""
    for table in tables:
        if table.num_rows:
            yield table.to_pandas().reset_index(drop=True)


def _group_rows(files: Sequence[Any]) -> Iterator[Pieces]:
    """Put row groups together up to `PART_ROWS`, never dividing one."""
    parts: list[dict[int, list[int]]] = []
    n_rows = PART_ROWS
    for number, file in enumerate(files):
        for group in file.row_groups:
            if not parts or n_rows + group.num_rows > PART_ROWS:
                parts.append({})
                n_rows = 0
            parts[-1].setdefault(number, []).append(group.id)
            n_rows += group.num_rows
    for part in parts:
        yield tuple((files[at], tuple(ids)) for at, ids in part.items())


@contextmanager
def _arrow_errors(name: str) -> Iterator[None]:
    """Turn errors of Arrow, and of the disk, into ours."""
    pa = import_optional("pyarrow", f"reading {name}")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def _file_tables(file: Any, groups: Sequence[int], schema: Any) -> Iterator[Any]:
    """Read row groups of a Parquet file, never much more than a batch of it at a time.

    Columns that the file does not have are keys of the folder it lies in.
    """
    pa = import_optional("pyarrow", "a Parquet file")
    pq = import_optional("pyarrow.parquet", "a Parquet file")
    dataset = import_optional("pyarrow.dataset", "a Parquet file")
    keys = dataset.get_partition_keys(file.partition_expression)
    with pq.ParquetFile(file.open(), pre_buffer=False) as opened:
        stored = [name for name in schema.names if name in opened.schema_arrow.names]
        lacking = [name for name in schema.names if name not in (*stored, *keys)]
        if lacking:
            raise DataError(
                f"{file.path} has no column {lacking[0]!r}, which other files have: "
                "all of its rows would be missing. Add the column to the file, or read "
                "the files that have it."
            )
        read = stored or opened.schema_arrow.names[:1]  # to count the rows
        for batch in opened.iter_batches(BATCH_ROWS, list(groups), read):
            columns = [
                batch[field.name].cast(field.type)
                if field.name in stored
                else pa.repeat(pa.scalar(keys[field.name], field.type), batch.num_rows)
                for field in schema
            ]
            yield pa.table(columns, schema=schema)


def open_parquet(path: Path) -> ArrowSource:
    """Open a Parquet file, or a folder of them."""
    kind, keys = ("folder", "hive") if path.is_dir() else ("file", None)
    dataset = import_optional("pyarrow.dataset", f"the Parquet {kind} {path}")
    place = path.absolute()  # workers may have another working directory
    try:
        data = dataset.dataset(place, format="parquet", partitioning=keys)
    except (ValueError, OSError) as error:  # Arrow's errors are ValueErrors
        raise DataError(
            f"{path} cannot be read as a Parquet {kind}: {error}"
        ) from error
    if not data.schema.names:
        raise DataError(f"{path} holds no Parquet files with columns.")
    if path.is_dir():
        with _arrow_errors(str(path)):
            schema = _common_schema(path, data)
            data = dataset.dataset(place, schema, format="parquet", partitioning=keys)
    return ArrowSource(data, str(path))


def _common_schema(path: Path, data: Any) -> Any:
    """Join the columns of all files, which must have the same ones.

    Whole numbers and decimals are joined. Arrow takes the columns of the first file:
    others would be lost, and those that a file lacks would be missing in all its rows.
    """
    pa = import_optional("pyarrow", f"the Parquet folder {path}")
    files = list(data.get_fragments())
    schemas = [_drop_index(file.physical_schema) for file in files]
    keys = [name for name in data.schema.names if name not in schemas[0].names]
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        unlike = set(schema.names) ^ set(schemas[0].names)
        if unlike:
            name = min(unlike)
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
            if not _are_compatible(first.type, field.type):
                raise DataError(
                    f"column {field.name!r} must be of one kind in all files of "
                    f"{path}; it is {first.type} in {files[0].path} and "
                    f"{field.type} in {file.path}. Convert one of them."
                )
    joined = pa.unify_schemas(schemas, promote_options="permissive")
    fields = [joined.field(name) for name in schemas[0].names]
    fields += [data.schema.field(name) for name in keys]
    return pa.schema(fields, metadata=data.schema.metadata)


def _drop_index(schema: Any) -> Any:
    """Drop the columns that pandas stored as an index."""
    stored = (schema.metadata or {}).get(b"pandas")
    for name in json.loads(stored)["index_columns"] if stored else ():
        if name in schema.names:  # a range has no column
            schema = schema.remove(schema.get_field_index(name))
    return schema


def _are_compatible(first: Any, second: Any) -> bool:
    """Tell whether columns of two types can be read as one: numbers can."""
    pa = import_optional("pyarrow", "a Parquet file")

    def kind(dtype: Any) -> str:
        if pa.types.is_dictionary(dtype):
            return kind(dtype.value_type)
        numbers = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
        texts = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
        return "number" if numbers else "text" if texts else str(dtype)

    empty = pa.types.is_null(first) or pa.types.is_null(second)
    return empty or kind(first) == kind(second)
