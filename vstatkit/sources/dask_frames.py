"""Dask data frames, one partition after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vstatkit.sources.source import sliced


@dataclass(frozen=True)
class DaskSource:
    """A Dask data frame; its partitions are computed each time they are read.

    Attributes
    ----------
    frame : dask.dataframe.DataFrame
        The data; no more than one partition of it is held.
    """

    frame: Any

    def __str__(self) -> str:
        return "the Dask data frame"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.columns)

    @property
    def n_rows(self) -> None:
        """Only computing tells."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Compute some of the columns, in the order of the partitions."""
        wanted = self.frame[list(columns)]
        for number in range(wanted.npartitions):
            yield from sliced(wanted.get_partition(number).compute())
