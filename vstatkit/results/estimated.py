"""Estimates as labelled series, by statsmodels' names."""

from abc import ABC, abstractmethod

import pandas as pd

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates


class Estimated(ABC):
    """What has estimates: results, averages, curves, functions of estimates."""

    @property
    @abstractmethod
    def estimates(self) -> Estimates:
        """Estimates as arrays, with stabilised variances."""

    @abstractmethod
    def _series(self, values: Floats, name: str) -> pd.Series:
        """Label numbers, one for each estimate."""

    @property
    def params(self) -> pd.Series:
        """Estimates."""
        return self._series(self.estimates.estimate, "params")

    @property
    def bse(self) -> pd.Series:
        """Standard errors, from the stabilised variance."""
        return self._series(self.estimates.bse, "bse")

    @property
    def zvalues(self) -> pd.Series:
        """Estimates over standard errors."""
        return self._series(self.estimates.zvalues, "zvalues")

    @property
    def tvalues(self) -> pd.Series:
        """The same as `zvalues`, by the name that goes with Student's t."""
        return self.zvalues.rename("tvalues")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values for the null of zero, by Student's t with `df`."""
        return self._series(self.estimates.pvalues, "pvalues")

    @property
    def df(self) -> pd.Series:
        """Degrees of freedom of the variance estimates."""
        return self._series(self.estimates.df, "df")
