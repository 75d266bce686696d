"""Interface of data sources: columns by name, in batches."""

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Protocol

import pandas as pd

from vstatkit.exceptions import MissingPackageError

BATCH_ROWS = 131_072
"""Most rows of a batch."""


class Source(Protocol):
    """Observations in rows, which are read batch after batch.

    Its `str` says, in messages, what the data are.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in order."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None where only reading tells."""

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns, always in the same order of rows.

        No batch has more than `BATCH_ROWS` rows or none at all; other columns
        are not read. The index of a batch counts its own rows from 0.
        """


class Part(Protocol):
    """Rows of a source that follow each other, and can be read by themselves."""

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns; see `Source.batches`."""


def parts_of(source: Source) -> Sequence[Part]:
    """Divide a source into parts that can be read side by side.

    A source that can be divided has a method `parts`, whose parts can be pickled, have
    its rows in its order, and its very batches. Any other is one part.
    """
    divided = getattr(source, "parts", None)
    return (source,) if divided is None else divided()


def sliced(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a frame into batches; its index is dropped."""
    for first in range(0, len(frame), BATCH_ROWS):
        yield frame.iloc[first : first + BATCH_ROWS].reset_index(drop=True)


def required(package: str, purpose: str) -> ModuleType:
    """Import a package that is installed only where it is needed.

    Raises
    ------
    MissingPackageError
        When it is missing, with what it is needed for.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {name}, which is not installed: "
            f"pip install {name}."
        ) from error
