"""What tables of estimates have in common, whatever they are tables of."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.inference.estimates import Estimates
from vstatkit.results.estimated import Estimated
from vstatkit.results.tables import estimates_frame
from vstatkit.results.tabular import Tabular
from vstatkit.validation import with_advice

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults


class EstimateTable(Estimated, Tabular):
    """Estimates as a table: numbers, intervals, covariances, text and HTML.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> effects = res.avg_effects()
    >>> effects.pvalues.index.to_list(), effects.conf_int(simultaneous=True).shape
    (['x1', 'x4'], (2, 2))
    """

    @property
    @abstractmethod
    def joint(self) -> "EnsembleResults":
        """Results whose labels and joint covariance the estimates have."""

    @property
    def _labels(self) -> Labels:
        """Labels of the rows."""
        return self.joint.labels

    @property
    def estimates(self) -> Estimates:
        """Estimates as arrays."""
        return self.joint.estimates

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, with intervals of 95 %."""
        return self.summary_frame()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate estimates, tests and intervals of coverage 1 - alpha."""
        return estimates_frame(self.estimates, self._labels, alpha)

    def _series(self, values: Floats, name: str) -> pd.Series:
        return pd.Series(values, self._labels, name=name)

    @property
    def nobs(self) -> int:
        """Observations that the learners were drawn from."""
        return self.joint.nobs

    @with_advice
    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals, one by one or all at once."""
        critical = self.joint.band_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self._labels, ["lower", "upper"])

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the estimates, positive semi-definite."""
        found = self.joint.cov_params()
        return found.set_axis(self._labels, axis=0).set_axis(self._labels, axis=1)

    @abstractmethod
    def summary(self, alpha: float = 0.05) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())
