"""Joint tests of linear restrictions."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats


@dataclass(frozen=True)
class WaldTest:
    """A joint test of linear restrictions.

    Attributes
    ----------
    statistic : float
        Wald's chi-square over `df_num`.
    df_num : int
        Number of independent restrictions.
    df_denom : float
        Degrees of freedom of the variance estimates.
    pvalue : float
        By the survival function of F; nan, as the statistic, if nothing varies, or if
        a difference that is not zero does not vary.
    null : str
        What was tested.
    """

    statistic: float
    df_num: int
    df_denom: float
    pvalue: float
    null: str

    @property
    def fvalue(self) -> float:
        """The statistic, by statsmodels' name."""
        return self.statistic

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return (
            f"Wald test of {self.null}: F({self.df_num}, {self.df_denom:.4g}) = "
            f"{self.statistic:.4g}, P>F = {self.pvalue:.4g}"
        )


def wald_test(
    difference: Floats,
    matrix: Floats,
    df: float,
    null: str,
    *,
    replicates: bool = False,
) -> WaldTest:
    """Test that differences with covariance `matrix` are all zero.

    Parameters
    ----------
    difference : ndarray of shape (r,)
        Estimates less their hypothesised values.
    matrix : ndarray of shape (r, r)
        Covariance.
    df : float
        Degrees of freedom of the variances.
    null : str
        What is tested.
    replicates : bool
        Whether the covariance is that of `df + 1` replicates, over their number: then
        the test is Hotelling's, exact for normal replicates.
    """
    scale = np.sqrt(np.diag(matrix))
    unit = np.where(scale > 0, scale, 1.0)
    if not scale.any() or np.any((scale == 0) & (difference != 0)):  # nothing varies
        return WaldTest(np.nan, int(np.sum(difference != 0)), df, np.nan, null)
    correlation = matrix / np.outer(unit, unit)
    rank = int(np.linalg.matrix_rank(correlation, tol=1e-8, hermitian=True))
    z = difference / unit
    inverse = np.linalg.pinv(correlation, rcond=1e-8, hermitian=True)
    statistic = float(z @ inverse @ z) / rank
    if replicates:
        statistic, df = _hotelling(statistic, rank, df, len(difference))
    return WaldTest(statistic, rank, df, float(stats.f.sf(statistic, rank, df)), null)


def _hotelling(
    statistic: float, rank: int, df: float, asked: int
) -> tuple[float, float]:
    """Turn Wald's F of replicates into Hotelling's, and its degrees of freedom."""
    if asked > rank >= df:  # the replicates span no more directions
        raise ValueError(
            f"a joint test of {asked} restrictions needs more than {asked} shards; "
            f"there are {df + 1:g}. Test fewer at once, or use more shards."
        )
    left = df - rank + 1
    return statistic * left / df, left
