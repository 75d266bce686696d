"""What the typical row, the ranges and the effects need to know of the variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

FEW_VALUES = 10
"""Distinct values up to which quantiles of a column are observed values."""

LOOK_AT = 1000
"""First values of a column that are looked at before all of them are."""


class Variables(Protocol):
    """Summaries of columns, over the rows that are used."""

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Kind of every column, in their order."""

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""

    def mode(self, name: str) -> Any:
        """Most frequent value; of several, the one that comes first in the data."""

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns."""

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns: observed values, if a column has few."""

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
        """Most frequent value; of several, the one that comes first in the data.

        So the order of levels does not matter.
        """
        column = self.frame[name]
        modes = column.mode()
        return modes.iloc[0] if len(modes) == 1 else column[column.isin(modes)].iloc[0]

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
        """Quantiles of numeric columns: observed values, if a column has few."""
        found: dict[str, list[float]] = {}
        for alike in self._by_kind(names):
            ends = self.frame[alike].quantile(list(shares)).to_numpy()
            found |= dict(zip(alike, ends.T.tolist(), strict=True))
        for name in names:
            column = self.frame[name]
            if has_few_values(column):
                nearest = column.quantile(list(shares), interpolation="nearest")
                found[name] = nearest.astype(float).to_list()
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


def has_few_values(column: pd.Series) -> bool:
    """Whether values between the observed ones make no sense: a 0/1 column, counts.

    Examples
    --------
    >>> has_few_values(pd.Series([0, 1, 1, 0])), has_few_values(pd.Series(range(50)))
    (True, False)
    """
    some = column.iloc[:LOOK_AT].nunique() <= FEW_VALUES  # most columns end here
    return some and column.nunique() <= FEW_VALUES


def variables_of(frame: pd.DataFrame | Variables) -> Variables:
    """Take a data frame as what can be summarised."""
    return HeldVariables(frame) if isinstance(frame, pd.DataFrame) else frame
