"""CSV and tab-separated files, compressed ones too."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.source import BATCH_ROWS


@dataclass(frozen=True)
class CsvSource:
    """A CSV file, or one with another separator, with a header row.

    Attributes
    ----------
    path : Path
        The file; its name says how it is compressed.
    sep, encoding, decimal : str
        What stands between fields; how letters are written as bytes; what stands
        before decimals.
    missing : tuple of str
        Texts that stand for missing values, besides the usual ones.
    """

    path: Path
    sep: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the header row."""
        with self._reading():
            return tuple(pd.read_csv(self.path, nrows=0, **self._written).columns)

    @property
    def _written(self) -> dict[str, Any]:
        """How the file is written, in pandas' words."""
        return {
            "sep": self.sep,
            "encoding": self.encoding,
            "decimal": self.decimal,
            "na_values": list(self.missing),
        }

    @property
    def n_rows(self) -> None:
        """Only reading tells."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns; their kinds are found batch by batch."""
        wanted = list(columns)
        with (
            self._reading(),
            pd.read_csv(
                self.path,
                usecols=wanted,
                chunksize=BATCH_ROWS,
                low_memory=False,  # one kind for every column of a batch
                **self._written,
            ) as reader,
        ):
            for batch in reader:
                if len(batch):
                    yield batch[wanted].reset_index(drop=True)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError, EOFError) as error:
            # pandas' own errors are ValueErrors; ours say enough already.
            if isinstance(error, DataError):
                raise
            raise DataError(f"{self.path} cannot be read as CSV: {error}") from error
