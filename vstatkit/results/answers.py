"""Answers to questions about predictors: a test, and the differences behind it."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from vstatkit.inference.pooled_test import PooledTest
from vstatkit.pickling import pickled_plainly
from vstatkit.results.tables import estimates_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults


@pickled_plainly
@dataclass(frozen=True, repr=False)
class Answer:
    """A joint test that differences of predictions are zero.

    Attributes
    ----------
    question : str
        What was asked.
    null : str
        The hypothesis that is tested.
    test : PooledTest
        The joint test.
    differences : EnsembleResults
        The differences, with standard errors, as `params`, `bse`, `conf_int()`.
    points : DataFrame
        Where they were taken, one row for each point.
    details : dict
        Further columns of the table.
    """

    question: str
    null: str
    test: PooledTest
    differences: "EnsembleResults"
    points: pd.DataFrame
    details: dict[str, Any]

    @property
    def statistic(self) -> float:
        """Sum of squared differences over the sum of their variances."""
        return self.test.statistic

    @property
    def df_num(self) -> float:
        """Degrees of freedom of the differences."""
        return self.test.df_num

    @property
    def df_denom(self) -> float:
        """Degrees of freedom of their variances."""
        return self.test.df_denom

    @property
    def pvalue(self) -> float:
        """Probability of such a statistic if nothing differs."""
        return self.test.pvalue

    @property
    def frame(self) -> pd.DataFrame:
        """The test in one row; answers can be put together by `pandas.concat`."""
        row = {
            "statistic": self.statistic,
            "df_num": self.df_num,
            "df_denom": self.df_denom,
            "p_value": self.pvalue,
            **self.details,
            "points": len(self.points),
            "learners": self.differences.B,
        }
        return pd.DataFrame([row], index=[self.question])

    def table(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the differences one by one, with standard errors and intervals."""
        found = self.differences
        return estimates_frame(found.estimates, found.labels, alpha)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the differences with their intervals."""
        from vstatkit.results.answer_plots import draw_differences  # noqa: PLC0415

        return draw_differences(self, ax)

    def __str__(self) -> str:
        return f"{self.null}\n{_written(self.frame)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.question}, p = {self.pvalue:.4g}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.null)}</p>{self.frame.to_html()}"


def _written(frame: pd.DataFrame) -> str:
    """Write a table with four digits."""
    return frame.to_string(float_format=lambda number: f"{number:.4g}")


class InteractionTest(Answer):
    """A test that predictors act additively.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    >>> list(res.interaction_test("x1", "x4", grid=2).points)[:4]
    ['first', 'second', 'from_first', 'to_first']
    """


class FitComparison(Answer):
    """Two fits side by side, and a test that they predict the same.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    >>> line = vs.fit("y ~ x1 + x4", data, kernel="ols", B=100, rng=1)
    >>> vs.compare(res, line).question
    'forest - ols'
    """

    def __str__(self) -> str:
        shown = self.table()
        if len(shown) > 2 * SHOWN:
            shown = pd.concat([shown.head(SHOWN), shown.tail(SHOWN)])
        kept = ["estimate", "std_error", "p_value", "ci_lower", "ci_upper"]
        return f"{super().__str__()}\n\n{_written(shown[kept])}"


SHOWN = 10
"""Rows that are printed from either end of a long table."""
