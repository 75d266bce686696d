"""Normality tests, laid out as in a statsmodels summary."""

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats

MIN_OBSERVATIONS = 8
"""Fewest observations that the omnibus test is defined for."""


def normality_tests(values: Floats | pd.Series | pd.DataFrame) -> pd.DataFrame:
    """Test columns of numbers for normality.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, m)
        At least eight observations in rows.

    Returns
    -------
    DataFrame
        One row a column of `values`: `skew`, `kurtosis` (3 for a normal law),
        the D'Agostino-Pearson `omnibus` statistic and `omnibus_p`, the
        `jarque_bera` statistic and `jarque_bera_p`. A column that does not vary
        has statistics 0 and p-values 1.

    Examples
    --------
    >>> table = normality_tests(np.arange(20.0))
    >>> table["skew"].item()
    0.0
    """
    frame = pd.DataFrame(values)
    if len(frame) < MIN_OBSERVATIONS:
        raise ValueError(
            f"`values` must have at least {MIN_OBSERVATIONS} observations for the "
            f"omnibus test; got {len(frame)}."
        )
    array = frame.to_numpy(dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("`values` must be finite; drop missing values first.")
    rows = [_test_column(column) for column in array.T]
    return pd.DataFrame(rows, index=frame.columns)


def _test_column(x: Floats) -> dict[str, float]:
    spread = np.ptp(x)
    if spread <= 1e-12 * np.abs(x).max():
        return {
            "skew": 0.0,
            "kurtosis": 0.0,
            "omnibus": 0.0,
            "omnibus_p": 1.0,
            "jarque_bera": 0.0,
            "jarque_bera_p": 1.0,
        }
    z = (x - x.mean()) / spread
    omnibus = stats.normaltest(z)
    jarque_bera = stats.jarque_bera(z)
    return {
        "skew": float(stats.skew(z)),
        "kurtosis": float(stats.kurtosis(z, fisher=False)),
        "omnibus": float(omnibus.statistic),
        "omnibus_p": float(omnibus.pvalue),
        "jarque_bera": float(jarque_bera.statistic),
        "jarque_bera_p": float(jarque_bera.pvalue),
    }
