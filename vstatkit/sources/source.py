"""Interface of data sources: columns by name, in batches."""

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Protocol

import pandas as pd

from vstatkit.exceptions import MissingPackageError

BATCH_ROWS = 131_072  # most rows of a batch


class Part(Protocol):
    """Rows of a source that follow each other, and can be read by themselves."""

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, always in the same order of rows.

        No batch is empty or has more than `BATCH_ROWS` rows; other columns are not
        read. The index of a batch counts its own rows from 0.
        """


class Source(Part, Protocol):
    """Observations in rows, which are read in batches; messages show its `str`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in order."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None if it is unknown before reading."""


def parts_of(source: Source) -> Sequence[Part]:
    """Divide a source into parts that can be read in parallel.

    A source that can be divided has a method `parts`. Its parts can be pickled, and
    have the same rows and batches in the same order. Any other source is one part.
    """
    divided = getattr(source, "parts", None)
    return (source,) if divided is None else divided()


def split_batches(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a frame into batches; its index is dropped."""
    for first in range(0, len(frame), BATCH_ROWS):
        yield frame.iloc[first : first + BATCH_ROWS].reset_index(drop=True)


def import_optional(package: str, purpose: str) -> ModuleType:
    """Import an optional package; if it is missing, the error names the purpose."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {name}, which is not installed: "
            f"pip install {name}."
        ) from error
