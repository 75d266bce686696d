"""What the typical row, the ranges and the effects need to know of the variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd


class Variables(Protocol):
    """Summaries of columns, over the rows that are used."""

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Kind of every column, in their order."""

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""

    def mode(self, name: str) -> Any:
        """Most frequent value; the first of several."""

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns."""

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns."""

    def levels(self, name: str) -> list[Any]:
        """Levels of a category that occur, in order."""


@dataclass(frozen=True)
class HeldVariables:
    """Columns that are held in memory.

    Attributes
    ----------
    frame : DataFrame
        The columns.
    """

    frame: pd.DataFrame

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Kind of every column, in their order."""
        return {str(name): kind for name, kind in self.frame.dtypes.items()}

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""
        medians = self.frame[list(names)].median().to_dict()
        return {str(name): median for name, median in medians.items()}

    def mode(self, name: str) -> Any:
        """Most frequent value; the first of several."""
        return self.frame[name].mode().iloc[0]

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns."""
        found: dict[str, tuple[Any, Any]] = {}
        for alike in self._by_kind(names):
            columns = self.frame[alike]
            ends = zip(columns.min().to_numpy(), columns.max().to_numpy(), strict=True)
            found |= dict(zip(alike, ends, strict=True))
        return found

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns."""
        found: dict[str, list[float]] = {}
        for alike in self._by_kind(names):
            ends = self.frame[alike].quantile(list(shares)).to_numpy()
            found |= dict(zip(alike, ends.T.tolist(), strict=True))
        return found

    def _by_kind(self, names: Sequence[str]) -> list[list[str]]:
        """List columns of one kind together: many columns are fast at a time."""
        kinds = self.kinds
        return [
            [name for name in names if kinds[name] == kind]
            for kind in dict.fromkeys(kinds[name] for name in names)
        ]

    def levels(self, name: str) -> list[Any]:
        """Levels of a category that occur, in order."""
        used = pd.Categorical(self.frame[name]).remove_unused_categories()
        return list(used.categories)


def variables_of(frame: pd.DataFrame | Variables) -> Variables:
    """Take a data frame as what can be summarised."""
    return HeldVariables(frame) if isinstance(frame, pd.DataFrame) else frame
