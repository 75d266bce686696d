"""Predictions of data that need not fit into memory, written to a file as they come."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula.input_checks import as_frame, nearest
from vstatkit.results.learners import predictor_of
from vstatkit.scratch import is_alive, removed_if_ended
from vstatkit.sources.find import find_source, read_few
from vstatkit.sources.source import Source, required, sliced
from vstatkit.sources.store import check_directory

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults

KINDS = (".parquet", ".pq", ".csv")
"""Files that predictions are written to."""

Tabulate = Callable[[pd.DataFrame], pd.DataFrame]
"""Predicts a batch."""


def write_predictions(
    results: "EnsembleResults",
    data: DataLike,
    out: str | PathLike[str],
    tabulate: Tabulate,
) -> Path:
    """Predict batch after batch, and write every batch to a file.

    Parameters
    ----------
    results : EnsembleResults
        The ensemble that predicts.
    data : Any
        New data, in memory or read batch after batch.
    out : str or path
        File to write, Parquet or CSV by its name. Until all is written it has
        another name, and an older file stays as it was.
    tabulate : callable
        Predicts a batch: one row for each, or one for each and class.

    Returns
    -------
    Path
        The file.
    """
    path = Path(out)
    if path.suffix.lower() not in KINDS:
        raise DataError(f"`out` must end in {', '.join(KINDS)}; got {path}.")
    check_directory(path)
    with _placed(path) as beside, _writer(path, beside) as write:
        first = 0
        for batch in _batches(results, data):
            with _named_rows(first):
                table = tabulate(batch.set_axis(_places(first, len(batch))))
            write(_flat(table))
            first += len(batch)
    return path


def held_data(results: "EnsembleResults", data: DataLike) -> DataLike:
    """Read new data into memory, if they are not there and are few."""
    source = find_source(data)
    if source is None:
        return data
    advice = "Give `out`, a file to which the predictions are written batch by batch."
    return read_few(source, _needed(results, source), advice)


def _batches(results: "EnsembleResults", data: DataLike) -> Iterator[pd.DataFrame]:
    """Read the columns that are needed to predict."""
    source = find_source(data)
    if source is None:
        yield from sliced(as_frame(data))
        return
    some = False
    for batch in source.batches(_needed(results, source)):
        some = True
        yield batch
    if not some:
        raise DataError(f"{source} has no rows.")


def _needed(results: "EnsembleResults", source: Source) -> list[str]:
    predictor = predictor_of(results)
    if predictor.coding is not None:
        names = list(predictor.coding.variables)
    else:
        names = list(predictor.columns or source.columns)
    for name in names:
        if name not in source.columns:
            columns = pd.Index(source.columns)
            raise FormulaError(
                f"{source} lacks the column {name!r}{nearest(name, columns)}"
            )
    return names


def _places(first: int, length: int) -> pd.RangeIndex:
    return pd.RangeIndex(first, first + length)


@contextmanager
def _named_rows(first: int) -> Iterator[None]:
    """Say, where a batch is refused, where its rows are in the data."""
    try:
        yield
    except FormulaError as error:
        if first == 0:
            raise
        raise FormulaError(
            f"{error} (This is among the rows from row {first} of the data on.)"
        ) from error


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Write the class of every row, where there are several, into a column."""
    if isinstance(table.index, pd.MultiIndex):
        return table.reset_index()
    return table.reset_index(drop=True)


@contextmanager
def _placed(path: Path) -> Iterator[Path]:
    """Give a name to write under; what was written whole is moved into place."""
    machine = f".{path.name}.{socket.gethostname()}"
    _remove_abandoned(path.parent, machine)
    beside = path.with_name(f"{machine}.{os.getpid()}.part")
    with removed_if_ended(beside):
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _remove_abandoned(directory: Path, machine: str) -> None:
    """Remove parts that killed processes of this machine have left."""
    for part in directory.iterdir():
        rest = part.name.removeprefix(f"{machine}.").removesuffix(".part")
        named = part.name == f"{machine}.{rest}.part" and rest.isdecimal()
        if named and not is_alive(int(rest)):
            with suppress(OSError):  # another process was faster, or has it open
                part.unlink()


@contextmanager
def _writer(path: Path, beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    writing = _csv if path.suffix.lower() == ".csv" else _parquet
    with writing(beside) as write:
        yield write


@contextmanager
def _csv(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with beside.open("w", newline="", encoding="utf-8") as file:

        def write(table: pd.DataFrame) -> None:
            table.to_csv(file, header=file.tell() == 0, index=False)

        yield write


@contextmanager
def _parquet(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    pa = required("pyarrow", "writing predictions to a Parquet file")
    pq = required("pyarrow.parquet", "writing predictions to a Parquet file")
    opened: list[Any] = []

    def write(table: pd.DataFrame) -> None:
        made = pa.Table.from_pandas(table, preserve_index=False)
        if not opened:
            opened.append(pq.ParquetWriter(beside, made.schema))
        opened[0].write_table(made)

    try:
        yield write
    finally:
        for one in opened:
            one.close()
