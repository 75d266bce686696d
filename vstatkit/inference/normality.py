"""Normality tests: of numbers, of their moments, and of influences."""

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.influence_summaries import influence_blocks
from vstatkit.variance.large_moments import equal_weights, is_wide, sum_powers
from vstatkit.variance.moments import value_units

MIN_OBSERVATIONS = 8  # fewest observations that the omnibus test is defined for
# Columns of the tables
TESTS = ("skew", "kurtosis", "omnibus", "omnibus_p", "jarque_bera", "jarque_bera_p")


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
    table = {name: np.full(len(x), 1.0 if name[-2:] == "_p" else 0.0) for name in TESTS}
    spread = np.ptp(x, axis=1)
    varies = spread > 1e-12 * np.abs(x).max(axis=1)
    if not varies.any():
        return table
    z = x[varies]
    z = (z - z.mean(axis=1, keepdims=True)) / spread[varies, None]
    omnibus = stats.normaltest(z, axis=1)
    jarque_bera = stats.jarque_bera(z, axis=1)
    columns = (
        stats.skew(z, axis=1),
        stats.kurtosis(z, axis=1, fisher=False),
        *(omnibus.statistic, omnibus.pvalue),
        *(jarque_bera.statistic, jarque_bera.pvalue),
    )
    for name, column in zip(TESTS, columns, strict=True):
        table[name][varies] = column
    return table


def moment_tests(
    n: int, squares: Floats, cubes: Floats, fourths: Floats
) -> pd.DataFrame:
    """Test for normality given only sums of powers of n differences from the mean.

    The omnibus test combines D'Agostino's test of the skewness, and Anscombe and
    Glynn's of the kurtosis.

    D'Agostino, Belanger and D'Agostino Jr. (1990), The American Statistician 44.
    """
    varies = squares > 0
    safe = np.where(varies, squares, 1.0)
    skew = np.where(varies, np.sqrt(n) * cubes / safe**1.5, 0.0)
    kurtosis = np.where(varies, n * fourths / safe**2, 0.0)
    omnibus = np.where(varies, _skew_z(skew, n) ** 2 + _kurtosis_z(kurtosis, n) ** 2, 0)
    jarque_bera = np.where(varies, n / 6 * (skew**2 + (kurtosis - 3) ** 2 / 4), 0.0)
    pvalues = stats.chi2.sf(omnibus, 2), stats.chi2.sf(jarque_bera, 2)
    columns = (skew, kurtosis, omnibus, pvalues[0], jarque_bera, pvalues[1])
    return pd.DataFrame(dict(zip(TESTS, columns, strict=True)))


def _skew_z(skew: Floats, n: int) -> Floats:
    """Transform a skewness to a standard normal variable."""
    scaled = skew * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    fourth = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3)
    fourth /= (n - 2) * (n + 5) * (n + 7) * (n + 9)
    square = np.sqrt(2 * (fourth - 1)) - 1
    root_log = np.sqrt(0.5 * np.log(square))
    return np.asarray(np.arcsinh(scaled / np.sqrt(2 / (square - 1))) / root_log)


def _kurtosis_z(kurtosis: Floats, n: int) -> Floats:
    """Transform a kurtosis to a standard normal variable."""
    mean = 3 * (n - 1) / (n + 1)
    spread = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    scaled = (kurtosis - mean) / np.sqrt(spread)
    skewness = 6 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    skewness *= np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    freedom = 6 + 8 / skewness * (2 / skewness + np.sqrt(1 + 4 / skewness**2))
    ratio = (1 - 2 / freedom) / (1 + scaled * np.sqrt(2 / (freedom - 4)))
    share = 2 / (9 * freedom)
    return np.asarray((1 - share - np.cbrt(ratio)) / np.sqrt(share))


def influence_normality(design: SubsampleDesign, values: Floats) -> pd.DataFrame:
    """Test the influence values, one row for each estimate."""
    if is_wide(design, *values.shape):
        # Influences add up to zero: their powers are moments about the mean.
        unit = value_units(values)
        powers = sum_powers(design, values / unit, equal_weights, presence=False).powers
        return moment_tests(design.n, powers.squares, powers.cubes, powers.fourths)
    tables = [normality_tests(block) for block in influence_blocks(design, values)]
    return pd.concat(tables, ignore_index=True)
