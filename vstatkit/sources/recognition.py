"""Recognition of data that are read in batches."""

from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.arrow import ArrowSource, open_parquet
from vstatkit.sources.csv_files import CsvSource
from vstatkit.sources.lazy_frames import DaskSource, LazySource
from vstatkit.sources.source import Source

PARQUET = (".parquet", ".pq")
PACKED = ("", ".gz", ".bz2", ".xz", ".zst")
CSV = tuple(f".csv{packed}" for packed in PACKED)
TSV = tuple(f".tsv{packed}" for packed in PACKED)
READ_ROWS = 1_000_000  # most rows that are read into memory if a few are expected


def find_source(data: Any) -> Source | None:
    """Open data that are read batch after batch; None for data in memory, or no data.

    These are a path to a Parquet, CSV or TSV file or a folder of Parquet files, an
    Arrow dataset, a Dask data frame, a LazyFrame of polars, and a `CsvSource`.
    """
    if isinstance(data, CsvSource):
        return data
    path = isinstance(data, str | PathLike)
    source = _open_file(Path(fspath(data))) if path else _wrap_lazy(data)
    if source is not None:
        _check_names(source)
    return source


def _wrap_lazy(data: Any) -> Source | None:
    """Recognise lazy data by their package, without importing it."""
    package = type(data).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(data, "scanner"):
        return ArrowSource(data, "the Arrow dataset")
    if package.startswith("dask") and hasattr(data, "npartitions"):
        if not hasattr(data, "columns"):
            raise TypeError(
                f"`data` must be a Dask data frame; got a Dask {type(data).__name__}."
            )
        return DaskSource(data)
    if package == "polars" and type(data).__name__ == "LazyFrame":
        return LazySource(data)
    return None


def _open_file(path: Path) -> Source:
    if not path.exists():
        raise FileNotFoundError(f"`data` names no file or folder: there is no {path}.")
    name = path.name.lower()
    if path.is_dir() or name.endswith(PARQUET):
        return open_parquet(path)
    if name.endswith(CSV):
        return CsvSource(path)
    if name.endswith(TSV):
        return CsvSource(path, sep="\t")
    raise DataError(
        "`data` must be a folder of Parquet files or a file whose name ends in "
        f"{', '.join(PARQUET + CSV + TSV)}; got {path}. Read it into a DataFrame first."
    )


def _check_names(source: Source) -> None:
    names: set[str] = set()
    for name in source.columns:
        if not isinstance(name, str):
            raise DataError(
                f"column names must be strings; {source} has {name!r} "
                f"({type(name).__name__})."
            )
        if name in names:
            raise DataError(
                f"column names must be unique; {source} has {name!r} twice."
            )
        names.add(name)


def read_few(source: Source, columns: list[str] | None, advice: str) -> pd.DataFrame:
    """Read all columns, or some, into memory; give advice if there are many rows."""
    parts: list[pd.DataFrame] = []
    n_rows = source.n_rows or 0
    for batch in source.batches(source.columns if columns is None else columns):
        parts.append(batch)
        if max(n_rows, sum(map(len, parts))) > READ_ROWS:
            raise DataError(
                f"{source} has more than {READ_ROWS:,} rows, too many to hold here. "
                f"{advice}"
            )
    if not parts:
        raise DataError(f"{source} has no rows.")
    return pd.concat(parts, ignore_index=True)
