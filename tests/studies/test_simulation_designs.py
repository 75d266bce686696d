"""The laws of the validity study are what they say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.studies.dgps import DGPS, select_dgps

MANY = 20_000


def predictors(dgp, n=MANY, seed=1):
    return dgp.predictors(np.random.default_rng(seed), n)


@pytest.fixture(params=list(DGPS))
def dgp(request):
    return DGPS[request.param]


def test_there_are_laws_of_every_kind():
    assert len(DGPS) == 17
    assert [dgp.name for dgp in DGPS.values() if dgp.held_out] == [
        "jumps",
        "counts",
        "exclusive",
        "lognormal",
    ]
    assert [name for name, dgp in DGPS.items() if not dgp.null] == ["mars"]


def test_data_sets_have_their_size_and_columns(dgp):
    frame = dgp(np.random.default_rng(3))
    assert len(frame) == dgp.n
    expected = [*dgp.points.columns, *([dgp.groups] if dgp.groups else []), "y"]
    assert sorted(frame.columns) == sorted(expected)
    again = dgp(np.random.default_rng(3))
    pd.testing.assert_frame_equal(frame, again)


def test_idle_predictors_do_nothing_and_the_others_something(dgp):
    X = predictors(dgp, 600)
    shuffle = np.random.default_rng(2).permutation(len(X))
    idle = {*dgp.null, *dgp.proxies}
    for name in dgp.points.columns:
        moved = X.assign(**{name: X[name].array[shuffle]})
        same = np.array_equal(dgp.mean(moved), dgp.mean(X))
        assert same is (name in idle), name
    if idle:
        moved = X.assign(**{name: X[name].array[shuffle] for name in idle})
        one, two = (dgp.response(np.random.default_rng(5), x) for x in (X, moved))
        assert_array_equal(np.asarray(one), np.asarray(two))


def test_dead_predictors_are_independent_of_the_others(dgp):
    X = predictors(dgp).drop(columns=dgp.groups or [])
    codes = X.apply(lambda column: pd.Series(column).rank(method="dense"))
    if dgp.groups:
        codes = codes.iloc[::6]  # rows of a cluster share some values
    correlation = codes.corr().abs()
    for name in dgp.null:
        assert correlation[name].drop(name).max() < 5 / np.sqrt(len(codes))


def test_means_are_the_means_of_responses(dgp):
    X = predictors(dgp)
    mean = dgp.mean(X)
    drawn = dgp.respond(np.random.default_rng(4), X, mean)
    if dgp.classes:
        assert_allclose(mean.sum(axis=1), 1)
        shares = np.eye(len(dgp.classes))[drawn.astype(int)]
        assert_allclose(shares.mean(axis=0), mean.mean(axis=0), atol=0.015)
    else:
        error = (drawn - mean).std() / np.sqrt(len(X) / (6 if dgp.groups else 1))
        assert abs((drawn - mean).mean()) < 4 * error


@pytest.mark.parametrize(("name", "rate"), [("binary", 0.5), ("rare", 0.05)])
def test_classes_have_the_rates_they_are_named_for(name, rate):
    dgp = DGPS[name]
    mean = dgp.mean(predictors(dgp, 100_000))
    assert mean[:, 1].mean() == pytest.approx(rate, abs=0.003)
    drawn = dgp(np.random.default_rng(1))["y"]
    assert list(drawn.cat.categories) == ["no", "yes"]


def test_three_classes_are_all_frequent():
    shares = DGPS["three"].mean(predictors(DGPS["three"])).mean(axis=0)
    assert len(shares) == 3
    assert shares.min() > 0.25


def test_mars_is_the_one_of_the_data_sets():
    dgp = DGPS["mars"]
    expected = vs.datasets.mars(dgp.n, rng=np.random.default_rng(9))
    drawn = dgp(np.random.default_rng(9))
    assert_allclose(drawn[expected.columns], expected, rtol=1e-12)


def test_the_factor_has_twelve_levels_each_with_a_mean_of_its_own():
    dgp = DGPS["levels"]
    X = predictors(dgp)
    assert X["g"].cat.categories.size == 12
    assert X["h"].cat.categories.size == 4
    centred = pd.Series(dgp.mean(X) - 2 * X["x1"].to_numpy())
    found = centred.groupby(X["g"].to_numpy()).agg(["min", "max"])
    assert_allclose(found["min"], found["max"], atol=1e-12)
    assert found["min"].round(9).nunique() == 12


def test_clusters_share_effects_and_two_predictors():
    dgp = DGPS["clusters"]
    frame = dgp(np.random.default_rng(1))
    sizes = frame.groupby("cluster").size()
    assert (len(sizes), set(sizes)) == (40, {6})
    within = frame.groupby("cluster")[["x1", "x2", "x3", "x4"]].nunique().max()
    assert within.to_dict() == {"x1": 6, "x2": 1, "x3": 6, "x4": 1}
    X = predictors(dgp, 6 * 5000)
    rest = dgp.respond(np.random.default_rng(2), X, np.zeros(len(X))).reshape(-1, 6)
    assert rest.mean(axis=1).var() == pytest.approx(1 + 1 / 6, rel=0.1)
    assert rest.var(axis=1, ddof=1).mean() == pytest.approx(1, rel=0.05)


def test_values_are_missing_at_the_shares_given():
    dgp = DGPS["missing"]
    hidden = dgp.hide(np.random.default_rng(1), predictors(dgp))
    assert_allclose(hidden.isna().mean(), [0.2, 0.1, 0.3, 0], atol=0.01)
    assert dgp.missing == "pass"
    assert dgp.points["x1"].isna().sum() == 1


def test_neighbours_of_the_chain_are_correlated():
    X = predictors(DGPS["correlated"])
    correlation = X.corr().to_numpy()
    assert_allclose(np.diag(correlation, 1)[:4], 0.9, atol=0.01)
    assert_allclose(X.std(), 1, atol=0.03)


@pytest.mark.parametrize(("name", "ratio"), [("spread", (0.2 + 2.0) / 0.2)])
def test_errors_fan_out(name, ratio):
    dgp = DGPS[name]
    ends = [
        pd.DataFrame(np.full((MANY, 4), x), columns=dgp.points.columns) for x in (0, 1)
    ]
    low, high = (
        dgp.respond(np.random.default_rng(1), X, np.zeros(MANY)).std() for X in ends
    )
    assert high / low == pytest.approx(ratio)


def test_heavy_tails_are_those_of_three_degrees():
    dgp = DGPS["heavy"]
    X = predictors(dgp, 100_000)
    errors = dgp.respond(np.random.default_rng(1), X, np.zeros(len(X)))
    quantiles = [-3.18245, -0.76489, 0, 0.76489, 3.18245]  # of t with 3 degrees
    shares = [(errors < q).mean() for q in quantiles]
    assert_allclose(shares, [0.025, 0.25, 0.5, 0.75, 0.975], atol=0.006)


def test_the_exclusive_or_acts_through_both_predictors_only():
    dgp = DGPS["exclusive"]
    X = predictors(dgp)
    mean = dgp.mean(X)
    assert set(np.unique(mean)) == {-2.0, 2.0}
    low = X["x1"].to_numpy() < 0.5
    assert abs(mean[low].mean() - mean[~low].mean()) < 0.1


def test_counts_are_counts_and_lognormal_is_skewed():
    counts = DGPS["counts"](np.random.default_rng(1))["y"]
    assert_array_equal(counts, counts.round())
    assert counts.min() >= 0
    skewed = DGPS["lognormal"](np.random.default_rng(1))["y"]
    assert skewed.min() > 0
    assert skewed.skew() > 1


def test_query_points_lie_inside_and_bands_are_drawn_once(dgp):
    X = predictors(dgp)
    assert 4 <= len(dgp.points) <= 6
    for name in dgp.points.columns:
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            assert dgp.points[name].isin(X[name].cat.categories).all()
        else:
            low, high = X[name].quantile([0.2, 0.8])
            assert dgp.points[name].dropna().between(low, high).all()
    band = dgp.band()
    assert len(band) == 20
    assert list(band.columns) == list(dgp.points.columns)
    assert not band.duplicated().any()
    pd.testing.assert_frame_equal(band, dgp.band())


def test_laws_are_chosen_by_name():
    assert [dgp.name for dgp in select_dgps(["rare", "mars"])] == ["mars", "rare"]
    assert len(select_dgps(None)) == len(DGPS)
    with pytest.raises(ValueError, match=r"some of mars, .*; got 'moon'"):
        select_dgps(["moon"])
