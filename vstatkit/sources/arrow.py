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

READ_AHEAD = 2
"""Batches that are read before they are asked for: more would only take memory."""


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
        pa = required("pyarrow", f"reading {self.name}")
        with self._reading():
            for batch in self.dataset.to_batches(
                columns=list(columns),
                batch_size=BATCH_ROWS,
                batch_readahead=READ_AHEAD,
                fragment_readahead=1,
                # What was read once would stay in memory otherwise.
                cache_metadata=False,
            ):
                if batch.num_rows:
                    frame = pa.Table.from_batches([batch]).to_pandas()
                    yield frame.reset_index(drop=True)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        pa = required("pyarrow", f"reading {self.name}")
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name} cannot be read: {error}") from error


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
