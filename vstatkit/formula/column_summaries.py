"""Summaries of columns: medians, modes, extremes, quantiles and levels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import pandas as pd

if TYPE_CHECKING:
    from vstatkit.formula.streaming.stored_frame import StoredFrame

FEW_VALUES = 10  # distinct values up to which quantiles of a column are observed values
LOOK_AT = 1000  # first values of a column that are looked at before all of them are


# Summaries of columns, over the rows that are used.
Variables = Union["FrameVariables", "StoredFrame"]


@dataclass(frozen=True)
class FrameVariables:
    """Columns that are held in memory."""

    frame: pd.DataFrame  # the columns

    @property
    def kinds(self) -> Mapping[str, Any]:
        """Kind of every column, in their order."""
        return {str(name): kind for name, kind in self.frame.dtypes.items()}

    def median(self, names: Sequence[str]) -> dict[str, Any]:
        """Medians of numeric columns."""
        medians = self.frame[list(names)].median().to_dict()
        return {str(name): median for name, median in medians.items()}

    def mode(self, name: str) -> Any:
        """Most frequent value; of several, the one that comes first in the data."""
        column = self.frame[name]
        modes = column.mode()
        return modes.iloc[0] if len(modes) == 1 else column[column.isin(modes)].iloc[0]

    def extremes(self, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Smallest and largest values of numeric columns."""
        extremes: dict[str, tuple[Any, Any]] = {}
        for group in self._group_by_kind(names):
            columns = self.frame[group]
            ends = zip(columns.min().to_numpy(), columns.max().to_numpy(), strict=True)
            extremes |= dict(zip(group, ends, strict=True))
        return extremes

    def quantiles(
        self, names: Sequence[str], shares: Sequence[float]
    ) -> dict[str, list[float]]:
        """Quantiles of numeric columns: observed values, if a column has few."""
        quantiles: dict[str, list[float]] = {}
        for group in self._group_by_kind(names):
            ends = self.frame[group].quantile(list(shares)).to_numpy()
            quantiles |= dict(zip(group, ends.T.tolist(), strict=True))
        for name in names:
            column = self.frame[name]
            # Values between those of a 0/1 column, or of counts, make no sense. The
            # first rows show of most columns that they have more values.
            some = column.iloc[:LOOK_AT].nunique() <= FEW_VALUES
            if some and column.nunique() <= FEW_VALUES:
                nearest = column.quantile(list(shares), interpolation="nearest")
                quantiles[name] = nearest.astype(float).to_list()
        return quantiles

    def _group_by_kind(self, names: Sequence[str]) -> list[list[str]]:
        """List columns of one kind together: many columns are fast at a time."""
        kinds, groups = self.kinds, dict[Any, list[str]]()
        for name in names:
            groups.setdefault(kinds[name], []).append(name)
        return list(groups.values())

    def levels(self, name: str) -> list[Any]:
        """Levels of a category that occur, in order."""
        used = pd.Categorical(self.frame[name]).remove_unused_categories()
        return list(used.categories)


def as_variables(frame: pd.DataFrame | Variables) -> Variables:
    """Take a data frame as what can be summarised."""
    return FrameVariables(frame) if isinstance(frame, pd.DataFrame) else frame
