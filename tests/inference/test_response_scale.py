"""The unit of the response: numbers of any size give the same answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from vstatkit.ensemble.oob_scores import score
from vstatkit.variance.moments import value_units

UNITS = (1e-300, 1e-200, 1e-80, 1e80, 1e200, 1e300)
ROUNDING = dict(rtol=1e-9)  # c * y is rounded, which the answers follow
DATA = vs.datasets.mars(120, rng=1)
KERNELS = {"forest": "forest", "ols": "ols", "neighbours": KNeighborsRegressor(3)}


def fitted(c, kernel, **options):
    data = DATA.assign(y=c * DATA["y"] + 2 * c)
    return vs.fit("y ~ x1 + x2 + x4", data, kernel=kernel, B=80, rng=1, **options)


@pytest.fixture(scope="module", params=KERNELS)
def plain(request):
    return KERNELS[request.param], fitted(1.0, KERNELS[request.param])


@pytest.mark.parametrize("c", UNITS)
def test_estimates_and_their_errors_follow_the_unit(plain, c):
    kernel, one = plain
    res = fitted(c, kernel)
    assert_allclose(res.params / c, one.params, **ROUNDING)
    assert_allclose(res.bse / c, one.bse, **ROUNDING)
    assert_allclose(res.conf_int() / c, one.conf_int(), **ROUNDING)
    assert_allclose(res.df, one.df, **ROUNDING)
    assert_allclose(res.zvalues, one.zvalues, **ROUNDING)
    assert_allclose(res.pvalues, one.pvalues, rtol=1e-7)
    assert_allclose(res.influence() / c, one.influence(), rtol=1e-7, atol=1e-12)
    assert_allclose(res.normality, one.normality, rtol=1e-6)
    ours, theirs = res.diagnostics, one.diagnostics
    numeric = ["monte_carlo_share", "relative_mc_error", "linear_share"]
    assert_allclose(ours[numeric], theirs[numeric], **ROUNDING)


@pytest.mark.parametrize("c", UNITS)
def test_predictions_effects_and_joint_statements_follow_the_unit(plain, c):
    kernel, one = plain
    res = fitted(c, kernel)
    ours, theirs = (each.get_prediction(DATA.head(4)) for each in (res, one))
    columns = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    columns += ["obs_ci_lower", "obs_ci_upper"]
    assert_allclose(
        ours.summary_frame()[columns] / c, theirs.summary_frame()[columns], **ROUNDING
    )
    assert_allclose(
        ours.conf_int(simultaneous=True) / c,
        theirs.conf_int(simultaneous=True),
        rtol=1e-7,  # a quantile of draws, between two of them
    )
    if res.effects is not None:
        assert_allclose(
            (res.effects["std_error"] / c).astype(float),
            one.effects["std_error"].astype(float),
            **ROUNDING,
        )
    matrix = np.eye(len(res.labels))
    assert_allclose(
        res.wald_test(matrix).statistic, one.wald_test(matrix).statistic, **ROUNDING
    )
    assert_allclose(res.scores.table["OOB RMSE"] / c, one.scores.table["OOB RMSE"])
    assert_allclose(
        res.scores.table["OOB R-squared"], one.scores.table["OOB R-squared"]
    )
    text = " ".join(str(res.summary()).split())
    assert "nan" not in text
    assert ("beyond the range of floating point" in text) == (abs(np.log10(c)) > 150)


@pytest.mark.parametrize("c", UNITS)
def test_growth_stops_at_the_same_size_in_any_unit(c):
    sizes = [
        vs.fit("y ~ x1 + x2", DATA.assign(y=unit * DATA["y"]), rng=1, tol=0.3).B
        for unit in (1.0, c)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
@pytest.mark.parametrize("c", UNITS)
def test_the_estimator_follows_the_unit(c):
    X, y = DATA.drop(columns="y"), DATA["y"]
    forest = vs.ForestRegressor(60, max_samples=40, random_state=1)
    mean, std = forest.fit(X, y).predict(X.head(5), return_std=True)
    moved, wide = forest.fit(X, c * y).predict(X.head(5), return_std=True)
    assert_allclose(moved / c, mean, **ROUNDING)
    assert_allclose(wide / c, std, **ROUNDING)


@pytest.mark.parametrize("c", UNITS)
@pytest.mark.parametrize("method", ["corrected_v", "jackknife", "bm"])
def test_ensembles_of_others_follow_the_unit(method, c):
    rng = np.random.default_rng(2)
    counts = rng.multinomial(10, np.full(25, 1 / 25), size=300)
    values = counts @ rng.normal(size=(25, 2))
    one = vs.from_arrays(counts, values, replace=True, variance=method)
    res = vs.from_arrays(counts, c * values, replace=True, variance=method)
    assert_allclose(res.bse / c, one.bse, **ROUNDING)
    assert_allclose(res.df, one.df, **ROUNDING)


def test_components_in_range_are_exact_and_others_infinite_or_zero():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(10, np.full(25, 1 / 25), size=300)
    values = counts @ rng.normal(size=25)
    one = vs.variance_components(counts, values)
    big = vs.variance_components(counts, 2.0**300 * values)
    assert_allclose(big.sampling * 2.0**-600, one.sampling, rtol=1e-14)
    assert_allclose(big.mc_se * 2.0**-600, one.mc_se, rtol=1e-14)
    assert_allclose(big.noise * 2.0**-600, one.noise, rtol=1e-14)
    small = vs.variance_components(counts, 2.0**-200 * values)
    assert_allclose(small.concentration, one.concentration, rtol=1e-14)
    assert np.isinf(vs.variance_components(counts, 2.0**600 * values).total).all()
    assert (vs.variance_components(counts, 2.0**-600 * values).total == 0).all()


def test_units_are_powers_of_two_near_the_spread():
    values = np.array([[1e8, 3.0, 7.0, -1e300], [1e8 + 5, 3.0, 6.0, 1e300]])
    units = value_units(values)
    assert units[1] == 1
    spread = np.abs(values[1] - values[0])
    for unit, width in zip(units[[0, 2, 3]], spread[[0, 2, 3]], strict=True):
        assert np.frexp(unit)[0] == 0.5
        assert 1 / 2 <= width / unit < 1


def test_scores_of_perfect_predictions_are_zero_and_one():
    y = np.array([1.0, 2.0, 4.0])
    table = score(y, y[:, None], None).table
    assert table == {"OOB R-squared": 1.0, "OOB RMSE": 0.0}
