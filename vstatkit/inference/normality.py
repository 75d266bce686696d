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
        One row per column of `values`: `skew`, `kurtosis` (3 if normal),
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
    return pd.DataFrame(_test_rows(np.ascontiguousarray(array.T)), index=frame.columns)


def _test_rows(x: Floats) -> dict[str, Floats]:
    """Test every row of an array, shape (m, n)."""
    names = (
        *("skew", "kurtosis", "omnibus", "omnibus_p"),
        *("jarque_bera", "jarque_bera_p"),
    )
    table = {name: np.full(len(x), 1.0 if name[-2:] == "_p" else 0.0) for name in names}
    spread = np.ptp(x, axis=1)
    varies = spread > 1e-12 * np.abs(x).max(axis=1)
    if not varies.any():
        return table
    z = x[varies]
    z = (z - z.mean(axis=1, keepdims=True)) / spread[varies, None]
    omnibus = stats.normaltest(z, axis=1)
    jarque_bera = stats.jarque_bera(z, axis=1)
    found = (
        stats.skew(z, axis=1),
        stats.kurtosis(z, axis=1, fisher=False),
        *(omnibus.statistic, omnibus.pvalue),
        *(jarque_bera.statistic, jarque_bera.pvalue),
    )
    for name, column in zip(names, found, strict=True):
        table[name][varies] = column
    return table
