"""Results of tests, by the names that statsmodels gives them."""

from dataclasses import fields

import pandas as pd

from vstatkit._typing import Floats
from vstatkit.results.ensemble_results import EnsembleResults


class ContrastResults(EnsembleResults):
    """Linear combinations with their tests: results, and statsmodels' names for them.

    The arrays have statsmodels' shapes too: a single test has `sd` and `tvalue` of
    shape (1, 1), and a `pvalue` of shape ().

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> test = vs.fit("y ~ x1 + x4", data, B=300, rng=1).t_test("x4 = 0, x1 = 0")
    >>> test.effect.shape, test.sd.shape, test.conf_int().shape
    ((2,), (2,), (2, 2))
    >>> bool(test.pvalue[0] == test.pvalues["x4 = 0"])
    True
    """

    @property
    def effect(self) -> Floats:
        """Estimates, as `params`."""
        return self.estimates.estimate

    @property
    def sd(self) -> Floats:
        """Standard errors, as `bse`."""
        return _shaped(self.estimates.bse)

    @property
    def tvalue(self) -> Floats:
        """Estimates less their hypothesised values over `sd`, as `tvalues`."""
        return _shaped(self.estimates.zvalues)

    @property
    def statistic(self) -> Floats:
        """The same as `tvalue`."""
        return self.tvalue

    @property
    def pvalue(self) -> Floats:
        """Two-sided p-values, as `pvalues`."""
        return self.estimates.pvalues.squeeze()

    @property
    def df_denom(self) -> Floats:
        """Degrees of freedom, as `df`: each test has its own."""
        return self.estimates.df.squeeze()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the tests with statsmodels' columns."""
        lower, upper = self.estimates.interval(alpha)
        return pd.DataFrame(
            {
                "coef": self.estimates.estimate,
                "std err": self.estimates.bse,
                "t": self.estimates.zvalues,
                "P>|t|": self.estimates.pvalues,
                "Conf. Int. Low": lower,
                "Conf. Int. Upp.": upper,
            },
            self.labels,
        )


def as_contrast(results: EnsembleResults) -> ContrastResults:
    """Give results the names of tests."""
    kept = {one.name: getattr(results, one.name) for one in fields(results)}
    return ContrastResults(**kept)


def _shaped(values: Floats) -> Floats:
    """Give a single value two dimensions, as statsmodels does."""
    return values.reshape(1, 1) if values.size == 1 else values
