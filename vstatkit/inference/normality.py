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


def moment_tests(
    n: int, squares: Floats, cubes: Floats, fourths: Floats
) -> pd.DataFrame:
    """Do the same for values of which only sums of powers are known.

    Parameters
    ----------
    n : int
        Number of values.
    squares, cubes, fourths : ndarray of shape (m,)
        Sums of powers of the differences from the mean.

    Notes
    -----
    D'Agostino's test of the skewness, and Anscombe and Glynn's of the kurtosis.

    References
    ----------
    D'Agostino, Belanger and D'Agostino Jr. (1990), The American Statistician 44.
    """
    varies = squares > 0
    safe = np.where(varies, squares, 1.0)
    skew = np.where(varies, np.sqrt(n) * cubes / safe**1.5, 0.0)
    kurtosis = np.where(varies, n * fourths / safe**2, 0.0)
    omnibus = np.where(varies, _skew_z(skew, n) ** 2 + _kurtosis_z(kurtosis, n) ** 2, 0)
    jarque_bera = np.where(varies, n / 6 * (skew**2 + (kurtosis - 3) ** 2 / 4), 0.0)
    return pd.DataFrame(
        {
            "skew": skew,
            "kurtosis": kurtosis,
            "omnibus": omnibus,
            "omnibus_p": stats.chi2.sf(omnibus, 2),
            "jarque_bera": jarque_bera,
            "jarque_bera_p": stats.chi2.sf(jarque_bera, 2),
        }
    )


def _skew_z(skew: Floats, n: int) -> Floats:
    """Transform a skewness to a standard normal variable."""
    scaled = skew * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    fourth = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3)
    fourth /= (n - 2) * (n + 5) * (n + 7) * (n + 9)
    square = np.sqrt(2 * (fourth - 1)) - 1
    return np.asarray(
        np.arcsinh(scaled / np.sqrt(2 / (square - 1))) / _root_log(square)
    )


def _root_log(square: float) -> float:
    return float(np.sqrt(0.5 * np.log(square)))


def _kurtosis_z(kurtosis: Floats, n: int) -> Floats:
    """Transform a kurtosis to a standard normal variable."""
    mean = 3 * (n - 1) / (n + 1)
    spread = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    scaled = (kurtosis - mean) / np.sqrt(spread)
    skewness = 6 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    skewness *= np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    freedom = 6 + 8 / skewness * (2 / skewness + np.sqrt(1 + 4 / skewness**2))
    ratio = (1 - 2 / freedom) / (1 + scaled * np.sqrt(2 / (freedom - 4)))
    return np.asarray(
        (1 - 2 / (9 * freedom) - np.cbrt(ratio)) / np.sqrt(2 / (9 * freedom))
    )
