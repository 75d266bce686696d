"""Tables of averages with standard errors."""

import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from vstatkit._typing import Labels, Restrictions
from vstatkit.inference.linear_tests import WaldTest
from vstatkit.pickling import pickled_plainly
from vstatkit.results.contrast_results import ContrastResults
from vstatkit.results.contrasts import effect_names
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.tables import setting_text
from vstatkit.results.transforming import Function, Transformed, transformed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary


class AverageTable(EstimateTable):
    """Averages of learners: combinations of them come from the same learners.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> effects = res.avg_effects()
    >>> effects.t_test("x1 = x4").params.size
    1
    """

    results: EnsembleResults

    @property
    def joint(self) -> EnsembleResults:
        """The averages as estimates."""
        return self.results

    @property
    def _named(self) -> EnsembleResults:
        """The averages, each by the name that restrictions and functions call it."""
        return self.results

    def t_test(self, R: Restrictions) -> ContrastResults:
        """Test linear combinations of the averages, one by one."""
        return self._named.t_test(R)

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions jointly."""
        return self._named.wald_test(R)

    def transform(self, f: Function) -> Transformed:
        """Estimate a function of the averages; see `EnsembleResults.transform`."""
        return transformed(self._named, f)


@pickled_plainly
@dataclass(frozen=True)
class Averages(AverageTable):
    """Averages over rows, with their uncertainty.

    Attributes
    ----------
    results : EnsembleResults
        The averages as estimates, with their joint covariance: `cov_params()`,
        `t_test(...)` and all else that results have. Each has a label of its own, such
        as `region[w]` if a predictor has several rows.
    settings : DataFrame
        What was averaged, one row per estimate: `from`, `to` and `step` where a
        predictor was moved, and the number of `rows`.
    what : str
        What was averaged, in words.
    rows : str
        Which rows, in words.
    se : str
        Kind of standard error, "sample" or "population".
    constant : tuple of str
        Predictors that were to move, and have the same value in every row.
    by : tuple of str
        Columns whose levels were averaged separately.
    notes : tuple of str
        Further notes below the table.
    """

    results: EnsembleResults
    settings: pd.DataFrame
    what: str
    rows: str
    se: str
    constant: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def _labels(self) -> Labels:
        """Labels of the rows: predictors, levels and classes; they may repeat."""
        return self.settings.index

    @property
    def distinct(self) -> "Averages":
        """The same averages; their `results` have labels that do not repeat."""
        if self.results.labels.is_unique:
            return self
        return replace(self, results=self._named)

    @property
    def texts(self) -> list[str]:
        """Name every row in words, levels with their column: "x4, married=1"."""
        return self._texts([str(name) for name in self._predictors])

    @property
    def _predictors(self) -> pd.Index:
        """What was moved in each row; the first level of the labels otherwise."""
        return self.settings.index.get_level_values(0)

    def _texts(self, names: list[str]) -> list[str]:
        """Put levels and classes behind the names of predictors."""
        labels = self.settings.index
        levels = [
            [f"{name}={setting_text(level)}" for level in labels.get_level_values(name)]
            for name in self.by
        ]
        if "predictor" in labels.names or not self.by:
            levels = [names, *levels]
        texts = [", ".join(parts) for parts in zip(*levels, strict=True)]
        if labels.names[-1] != "class":
            return texts
        classes = labels.get_level_values("class")
        return [f"{text} [{one}]" for text, one in zip(texts, classes, strict=True)]

    @property
    def _named(self) -> EnsembleResults:
        """The averages by the names of effects, where a factor has several levels."""
        names = [str(name) for name in self._predictors]
        if "to" in self.settings:
            frame = self.settings[["to"]].set_axis(self._predictors)
            names = effect_names(frame)
        return replace(self.results, labels=pd.Index(self._texts(names)))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate settings, estimates, tests and intervals of coverage 1 - alpha."""
        return pd.concat([self.settings, super().summary_frame(alpha)], axis=1)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.average_tables import summarise  # noqa: PLC0415 slow

        return summarise(self, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the averages with their intervals."""
        from vstatkit.results import pictures  # noqa: PLC0415 loads on demand

        return pictures.plot_averages(self, alpha=alpha, ax=ax)

    def __repr__(self) -> str:
        text = f"{len(self.settings)} {self.what} over {self.rows}, se={self.se!r}"
        return textwrap.shorten(f"<Averages: {text}", 90) + ">"
