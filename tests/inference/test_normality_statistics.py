import numpy as np
import pandas as pd
import pytest
from scipy import stats

import vstatkit as vs


def test_statistics_are_scipys(rng):
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.exponential(size=60)})
    table = vs.normality_tests(frame)
    for name in frame:
        omnibus = stats.normaltest(frame[name])
        jarque_bera = stats.jarque_bera(frame[name])
        row = table.loc[name]
        assert row["skew"] == pytest.approx(stats.skew(frame[name]))
        assert row["kurtosis"] == pytest.approx(
            stats.kurtosis(frame[name], fisher=False)
        )
        assert row["omnibus"] == pytest.approx(omnibus.statistic)
        assert row["omnibus_p"] == pytest.approx(omnibus.pvalue)
        assert row["jarque_bera"] == pytest.approx(jarque_bera.statistic)
        assert row["jarque_bera_p"] == pytest.approx(jarque_bera.pvalue)


def test_units_do_not_matter(rng):
    x = rng.normal(size=40)
    plain, tiny = vs.normality_tests(x), vs.normality_tests(x * 1e-200)
    pd.testing.assert_frame_equal(plain, tiny)


def test_constants_have_zero_statistics():
    table = vs.normality_tests(np.full(20, 3.0))
    assert table["omnibus"].item() == 0
    assert table["jarque_bera_p"].item() == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.arange(7.0), "at least 8"), (np.append(np.arange(9.0), np.nan), "finite")],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        vs.normality_tests(values)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_columns_that_vary_little_beside_their_mean_are_tested(offset):
    x = np.random.default_rng(1).exponential(size=50)
    ours = vs.normality_tests(np.column_stack([offset + x, np.full(50, 3.0)]))
    assert ours["skew"].iloc[0] == pytest.approx(stats.skew(x), rel=1e-6)
    assert ours["omnibus_p"].iloc[0] == pytest.approx(
        stats.normaltest(x).pvalue, rel=1e-5
    )
    assert ours.iloc[1].tolist() == [0, 0, 0, 1, 0, 1]
