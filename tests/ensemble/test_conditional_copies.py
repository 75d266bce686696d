"""Copies of predictors: alike given the others, and made from data and seed alone."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from vstatkit.ensemble.conditional_copies import (
    LEAST_SPREAD,
    Copier,
    fit_conditional_model,
    shuffle_residuals,
)
from vstatkit.ensemble.regression_on_other_predictors import (
    MOST_FREEDOM,
    MOST_TERMS,
    PENALTIES,
    OtherPredictors,
    Ridge,
    _curves,
    _guesses,
    _least_squares,
    _out_of_bag,
    _products,
    _shrink_outliers,
    _smoother,
    _stack,
    _standardise,
)


@pytest.fixture
def frame(rng):
    n = 300
    x1 = rng.normal(size=n)
    g = np.where(x1 + 0.3 * rng.normal(size=n) > 0, "up", "down")
    return pd.DataFrame(
        {
            "x1": x1,
            "x2": 0.95 * x1 + np.sqrt(1 - 0.95**2) * rng.normal(size=n),
            "x3": rng.uniform(size=n),
            "g": pd.Categorical(g, categories=["down", "up", "never"]),
            "few": rng.integers(3, size=n),
        }
    )


def copier(frame, seed=1, **options):
    return Copier(frame, seed, **options)


def one(frame, names, how="conditional", seed=1, **options):
    return next(copier(frame, seed, **options).copies(names, how, 1))


def test_only_the_predictor_changes_and_keeps_its_values(frame):
    made = one(frame, ["x2"])
    assert_array_equal(np.sort(made["x2"]), np.sort(frame["x2"]))
    assert not np.array_equal(made["x2"], frame["x2"])
    pd.testing.assert_frame_equal(made.drop(columns="x2"), frame.drop(columns="x2"))


def test_copies_depend_on_data_and_seed_alone(frame):
    first, second = copier(frame).copies(["x2"], "conditional", 2)
    again = one(frame, ["x2"])
    pd.testing.assert_frame_equal(first, again)
    assert not np.array_equal(first["x2"], second["x2"])
    assert not np.array_equal(first["x2"], one(frame, ["x2"], seed=2)["x2"])


def test_a_conditional_copy_is_related_to_the_others_as_the_predictor_is(frame):
    made = one(frame, ["x2"])
    expected = np.corrcoef(frame["x1"], frame["x2"])[0, 1]
    assert abs(np.corrcoef(frame["x1"], made["x2"])[0, 1] - expected) < 0.03
    # Given x1, the copy says nothing of the predictor itself: 0.95**2 is left.
    assert abs(np.corrcoef(frame["x2"], made["x2"])[0, 1] - 0.95**2) < 0.06
    moved = one(frame, ["x2"], "permute")
    assert abs(np.corrcoef(frame["x1"], moved["x2"])[0, 1]) < 0.2


@pytest.mark.parametrize("name", ["g", "few"])
def test_levels_are_drawn_from_their_shares(frame, name):
    made = one(frame, [name])
    assert made[name].dtype == frame[name].dtype
    assert set(made[name]) == set(frame[name])
    agree = (made[name] == frame[name]).mean()
    assert agree > 0.75 if name == "g" else agree < 0.5
    assert (one(frame, ["g"], "permute")["g"] == frame["g"]).mean() < 0.65


def test_several_predictors_come_from_the_same_row(rng, frame):
    frame = frame.assign(x4=frame["x3"] + 0.01 * rng.normal(size=len(frame)))
    together = one(frame, ["x3", "x4"])
    assert np.corrcoef(together["x3"], together["x4"])[0, 1] > 0.95
    apart = one(frame, ["x3"]).assign(x4=one(frame, ["x4"], "permute")["x4"])
    assert abs(np.corrcoef(apart["x3"], apart["x4"])[0, 1]) < 0.3


def test_missing_values_stay_where_they_are(frame):
    holes = frame.assign(x2=frame["x2"].mask(frame.index % 5 == 0))
    made = one(holes, ["x2"])
    assert_array_equal(made["x2"].isna(), holes["x2"].isna())
    assert_array_equal(np.sort(made["x2"].dropna()), np.sort(holes["x2"].dropna()))
    assert one(holes, ["x1"])["x1"].notna().all()  # others may be missing


def test_predictors_of_clusters_stay_constant_within_them(rng, frame):
    members = np.arange(len(frame)) // 6
    frame = frame.assign(c=rng.normal(size=50)[members])
    made = one(frame, ["c"], unit_of_row=members)
    assert all(len(set(made["c"][members == j])) == 1 for j in range(50))
    assert_array_equal(np.sort(made["c"]), np.sort(frame["c"]))
    assert (
        one(frame, ["x1"], unit_of_row=members)["x1"].groupby(members).nunique().min()
        > 1
    )


@pytest.mark.parametrize("name", ["x2", "g", "few"])
def test_own_residuals_give_the_predictor_back(frame, rng, name):
    found = fit_conditional_model(
        frame[name], OtherPredictors(frame.drop(columns=name)), rng
    )
    back = found.copy_with(found.residual)
    assert_array_equal(back.to_numpy(), frame[name].to_numpy())


def test_residuals_of_numbers_are_uncorrelated_with_predictions(frame, rng):
    found = fit_conditional_model(
        frame["x2"], OtherPredictors(frame.drop(columns="x2")), rng
    )
    away = found.spread * found.residual
    assert abs(found.centre @ away) < 1e-8
    assert abs(away.sum()) < 1e-8
    assert_allclose(found.centre + away, frame["x2"])
    left = 1 - away.var() / frame["x2"].var()
    assert abs(left - 0.95**2) < 0.05
    alone = fit_conditional_model(frame["x2"], OtherPredictors(frame[[]]), rng)
    assert_allclose(alone.centre, frame["x2"].mean())
    assert_allclose(alone.spread, np.abs(frame["x2"] - frame["x2"].mean()).mean())


def test_shares_are_of_normal_scores(frame, rng):
    found = fit_conditional_model(
        frame["g"], OtherPredictors(frame.drop(columns="g")), rng
    )
    assert_allclose(found.centre.sum(axis=1), 1)
    assert set(found.levels) == {"down", "up"}  # not the level that never occurs
    assert abs(found.residual.mean()) < 0.2
    assert 0.8 < found.residual.std() < 1.2


def test_least_squares_leaves_each_row_out(frame):
    frame = frame.head(40)
    x = frame["x2"].to_numpy()
    dummies = (frame["g"] == "up").to_numpy(dtype=float)
    W = np.column_stack([np.ones(40), frame["x1"], frame["x3"], dummies])
    expected = [
        W[i] @ np.linalg.lstsq(np.delete(W, i, 0), np.delete(x, i), rcond=None)[0]
        for i in range(40)
    ]
    assert_allclose(_least_squares(x, W[:, 1:], None), expected, rtol=1e-8)
    assert_array_equal(_least_squares(x, np.ones((40, 9)), None), np.full(40, x.mean()))


def ridge_left_out(x, W, penalty):
    """Fit every row's value to the other rows, columns centred and scaled by all."""
    Z = (W - W.mean(axis=0)) / W.std(axis=0)
    Z = np.column_stack([np.ones(len(x)), Z])
    shrink = np.diag([0.0, *[penalty] * W.shape[1]])
    guesses = []
    for i in range(len(x)):
        A, b = np.delete(Z, i, 0), np.delete(x, i)
        guesses.append(Z[i] @ np.linalg.solve(A.T @ A + shrink, A.T @ b))
    return np.array(guesses)


def test_ridge_leaves_each_row_out_at_the_penalty_that_predicts_best(rng):
    W = rng.normal(size=(30, 4))
    x = W[:, 0] + rng.normal(size=30)
    Z = (W - W.mean(axis=0)) / W.std(axis=0)
    largest = np.linalg.svd(Z)[1][0] ** 2
    tried = [ridge_left_out(x, W, largest * one) for one in PENALTIES]
    errors = [np.mean((x - one) ** 2) for one in tried]
    best = int(np.argmin(errors))
    assert 0 < best < len(PENALTIES) - 1
    ridge = Ridge.of(_standardise(W))
    found, loss = ridge.left_out(x, None)
    assert_allclose(found.mean, tried[best], rtol=1e-6)
    assert_allclose(loss, 30 * errors[best])
    assert_allclose(ridge.left_out(x, None, 2)[0].mean, tried[best - 2], rtol=1e-6)
    constant = Ridge.of(_standardise(np.ones((30, 2)))).left_out(x, None)[0]
    assert_array_equal(constant.mean, np.full(30, x.mean()))


def test_clusters_are_left_out_as_a_whole(rng):
    W, members = rng.normal(size=(24, 2)), np.repeat(np.arange(6), 4)[::-1]
    x = W[:, 0] + rng.normal(size=6)[members]
    design = np.column_stack([np.ones(24), W])
    expected = np.empty(24)
    for g in range(6):
        out = members == g
        slopes = np.linalg.lstsq(design[~out], x[~out], rcond=None)[0]
        expected[out] = design[out] @ slopes
    assert_allclose(_least_squares(x, W, members), expected, rtol=1e-5)


def kernel_matrix(W, length, degree):
    S = _shrink_outliers(W)
    gaps = S[:, None] - S[None]
    return np.exp(-(gaps**2) / (2 * length**2)).mean(axis=2) ** degree


@pytest.mark.parametrize("degree", [1, 2])
def test_smoothers_are_kernel_ridge_regressions(degree, rng):
    W = rng.normal(size=(25, 2))
    x = np.sin(2 * W[:, 0]) + 0.1 * rng.normal(size=25)
    K, centre = kernel_matrix(W, 0.6, degree), np.eye(25) - 1 / 25
    found, _ = _smoother(W, 0.6, degree).left_out(x, None)
    squares = np.linalg.eigvalsh(centre @ K @ centre)[-1] * PENALTIES
    hats = [
        centre @ K @ centre @ np.linalg.inv(centre @ K @ centre + one * np.eye(25))
        for one in squares
    ]
    hats = [one + 1 / 25 for one in hats if np.trace(one) <= MOST_FREEDOM * 25]
    tried = [x - (x - H @ x) / (1 - np.diag(H)) for H in hats]
    best = int(np.argmin([np.sum((x - one) ** 2) for one in tried]))
    assert_allclose(found.mean, tried[best], rtol=1e-5)
    assert_allclose(found.leverage, np.diag(hats[best]), rtol=1e-5)


def test_predictions_never_repeat_the_values(rng):
    """Many predictors and little to predict: the best guess is near the mean."""
    frame = pd.DataFrame(rng.normal(size=(150, 12))).add_prefix("v")
    x = rng.normal(size=150)
    for guess in _guesses(x, OtherPredictors(frame), rng)[0]:
        assert abs(np.corrcoef(guess, x)[0, 1]) < 0.4 or guess.std() < 1e-12


def test_a_wave_is_learnt_from_few_rows(rng):
    """The prediction misses a wave by a third of what curves and forests do."""
    x1 = rng.normal(size=200)
    frame = pd.DataFrame({"x1": x1, "x2": rng.normal(size=200)})
    wave = np.sin(2 * x1)
    guesses, _ = _guesses(
        wave + 0.4 * rng.normal(size=200), OtherPredictors(frame), rng
    )
    errors = [np.mean((one - wave) ** 2) for one in guesses]
    curves, smooth, forest = errors[1], errors[3], errors[-1]
    assert smooth < 0.5 * min(curves, forest)


def test_many_rows_are_projected_on_some(rng):
    W = rng.normal(size=(500, 2))
    x = np.sin(2 * W[:, 0]) + np.cos(W[:, 1])
    found, _ = _smoother(W, 0.6, 1).left_out(x, None)
    assert np.mean((found.mean - x) ** 2) < 1e-3


@pytest.mark.parametrize(("p", "fits"), [(31, 6), (32, 5)])
def test_products_are_left_out_where_they_are_many(p, fits, rng):
    assert (p + p * (p - 1) // 2 <= MOST_TERMS) == (fits == 6)
    W = pd.DataFrame(rng.integers(2, size=(40, p)).astype(float))
    W.columns = [f"v{j}" for j in range(p)]
    assert len(_guesses(rng.normal(size=40), OtherPredictors(W), rng)[0]) == fits


def test_products_that_are_too_many_are_not_made(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 400)))
    frame.columns = [f"v{j}" for j in range(400)]
    tracemalloc.start()
    fit_conditional_model(frame["v0"], OtherPredictors(frame.drop(columns="v0")), rng)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20e6  # all products: 38 MB


def test_no_prediction_counts_with_the_opposite_sign(rng):
    x = rng.normal(size=200)
    left_out = (x.sum() - x) / 199  # low where the value is high
    assert_allclose(_stack(x, [left_out]), x.mean())
    good, bad = x + rng.normal(size=200), -x
    slope = np.cov(good, x)[0, 1] / good.var(ddof=1)
    expected = x.mean() + slope * (good - good.mean())
    assert_allclose(_stack(x, [good, bad]), expected)


def test_products_are_of_each_two_columns(rng):
    W = rng.normal(size=(50, 3))
    a, b, c = ((W - W.mean(axis=0)) / W.std(axis=0)).T
    assert_allclose(_products(W), np.column_stack([a * b, a * c, b * c]))


def test_products_and_spreads_are_copied(rng):
    x = rng.normal(size=(400, 2))
    noise = rng.normal(size=(400, 2))
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame["product"] = x[:, 0] * x[:, 1] + 0.3 * noise[:, 0]
    frame["fan"] = np.exp(x[:, 0]) * noise[:, 1]
    made = one(frame, ["product"])
    parts = x[:, 0] * x[:, 1]
    now, then = (
        np.corrcoef(parts, each)[0, 1] for each in (made["product"], frame["product"])
    )
    assert abs(now - then) < 0.03
    made = one(frame, ["fan"])
    now, then = (
        stats.spearmanr(x[:, 0], np.abs(each))[0]
        for each in (made["fan"], frame["fan"])
    )
    assert then > 0.6
    assert now > 0.5


def test_values_that_others_say_exactly_are_copied_exactly(rng):
    x = rng.normal(size=100)
    frame = pd.DataFrame({"a": x, "b": 2 * x + 1})
    assert_allclose(one(frame, ["b"])["b"], frame["b"])


def test_no_row_has_a_residual_in_units_of_nothing(rng):
    a = rng.uniform(-1, 1, size=300)
    frame = pd.DataFrame({"a": a, "b": np.where(a > 0, rng.normal(size=300), 0.0)})
    found = fit_conditional_model(frame["b"], OtherPredictors(frame[["a"]]), rng)
    least = LEAST_SPREAD * np.abs(frame["b"] - found.centre).mean()
    assert np.isclose(found.spread.min(), least)


def test_curves_are_squares_and_hinges(rng):
    W = np.column_stack([rng.normal(size=50), np.arange(50) % 2])
    z = (W[:, 0] - W[:, 0].mean()) / W[:, 0].std()
    low, middle, high = np.quantile(z, [0.25, 0.5, 0.75])
    expected = [z**2, *(np.where(z > q, z - q, 0) for q in (low, middle, high))]
    assert_allclose(_curves(W), np.column_stack([W, *expected]))


def test_curved_relations_are_copied(rng):
    x1 = rng.normal(size=300)
    frame = pd.DataFrame({"x1": x1, "x2": x1**2 + 0.5 * rng.normal(size=300)})
    made = one(frame, ["x2"])
    now, then = (np.corrcoef(x1**2, each)[0, 1] for each in (made["x2"], frame["x2"]))
    assert abs(now - then) < 0.02


def test_shuffling_moves_rows_together(rng):
    table = np.column_stack([np.arange(20.0), np.arange(20.0) ** 2])
    moved = shuffle_residuals(table, None, rng)
    assert_array_equal(moved[:, 1], moved[:, 0] ** 2)
    assert_array_equal(np.sort(moved[:, 0]), table[:, 0])


def test_shuffling_of_clusters_keeps_means_and_deviations(rng):
    members = np.repeat(np.arange(5), 4)
    means = 100.0 * np.arange(5)
    away = np.tile([-3.0, -1.0, 1.0, 3.0], 5)
    moved = shuffle_residuals((means[members] + away)[:, None], members, rng)[:, 0]
    nearest = np.round(moved / 100) * 100
    assert all(len(set(nearest[members == j])) == 1 for j in range(5))
    assert_array_equal(np.sort(nearest), np.sort(means[members]))
    assert_allclose(np.sort(moved - nearest), np.sort(away))
    assert not np.array_equal(nearest, means[members])
    assert not np.array_equal(np.round(moved - nearest), away)


def test_other_ways_are_refused(frame):
    with pytest.raises(ValueError, match="`how` must be one of 'conditional'"):
        one(frame, ["x1"], "shuffle")


def test_shares_that_follow_a_wave_are_learnt(rng):
    """The error is well below that of a forest alone."""
    x1 = rng.normal(size=300)
    chance = 0.5 + 0.45 * np.sin(2 * x1)
    flag = pd.Series((rng.random(300) < chance).astype(int))
    others = OtherPredictors(pd.DataFrame({"x1": x1, "x2": rng.normal(size=300)}))
    found = fit_conditional_model(flag, others, rng)
    assert_allclose(found.centre.sum(axis=1), 1)
    error = np.mean((found.centre[:, 1] - chance) ** 2)
    forest = _out_of_bag(flag.to_numpy(float), 2, others, rng)[:, 0]
    assert error < 0.6 * np.mean((forest - chance) ** 2)
