"""Methods of results that test linear combinations of estimates and effects."""

from typing import TYPE_CHECKING, cast

from vstatkit._typing import Restrictions
from vstatkit.inference.linear_tests import WaldTest
from vstatkit.results.contrasts import contrasts, joint_test

if TYPE_CHECKING:
    from vstatkit.results.contrast_results import ContrastResults
    from vstatkit.results.ensemble_results import EnsembleResults


def _results(testing: "Testing") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", testing)


class Testing:
    """Methods of results that test linear restrictions."""

    def t_test(self, R: Restrictions) -> "ContrastResults":
        """Test linear combinations of the estimates or effects, one by one.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            "a = b, c = 0", or a list of such texts, with the names of estimates or of
            effects (predictors; `g[b]` where the factor g moves to several levels, all
            of which "g = 0" stands for), or a matrix with a column for each estimate.

        Returns
        -------
        ContrastResults
            Its estimates are `R @ params`; `tvalues` and `pvalues` compare them
            with the hypothesised values. A linear combination of kernels is a
            kernel, so standard errors come from the same learners. It has the names
            of statsmodels' tests too: `effect`, `sd`, `tvalue`, `pvalue`.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=1000, rng=1)
        >>> bool(res.t_test("x4 = 0").pvalues.item() < 0.01)
        True
        """
        return contrasts(_results(self), R)

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions jointly, by Wald's F.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            As in `t_test`.

        Returns
        -------
        WaldTest
            It does not depend on how the restrictions are written: equivalent ones
            give the same statistic, degrees of freedom and p-value, and a test of a
            factor does not depend on its reference level. Restrictions that follow
            from others are not counted, and printing the result reports them.

        Notes
        -----
        F is the mean of the squared t statistics of r combinations of the restrictions
        that are uncorrelated. Its denominator has 2 degrees of freedom plus the
        harmonic mean of those that the combinations have beyond 2: they count most
        whose standard error is imprecise. With one restriction, F is the square of t
        and has its degrees of freedom. See "Joint tests" in the theory.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=1000, rng=1)
        >>> res.wald_test("x1 = 0, x4 = 0").pvalue < 0.05
        True
        """
        return joint_test(_results(self), R)

    def f_test(self, R: Restrictions) -> WaldTest:
        """Test jointly, as `wald_test` does: statsmodels' other name."""
        return self.wald_test(R)
