"""Averages over rows: against literal loops, deletion, statsmodels and enumeration."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs
from tests.oracles.ensembles import secant_ends
from tests.oracles.literal import sampling_jackknife
from vstatkit.ensemble.prediction import OwnLearners
from vstatkit.inference.estimates import estimate
from vstatkit.inference.population import (
    RowInfluence,
    deletions,
    joint_influence,
    row_influence,
)
from vstatkit.inference.stopping import round_up
from vstatkit.results.summary import VAGUE
from vstatkit.sampling.given import given_ensemble
from vstatkit.variance.influence_summaries import influence_concentration
from vstatkit.variance.registry import estimate_covariance

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x2", "x4", "y"]]
    frame["g"] = np.where(frame["x2"] > 0.6, "b", "a")
    frame["h"] = pd.Categorical(np.array(["p", "q", "r"])[np.arange(60) % 3])
    frame["c"] = np.arange(60) // 4
    return frame


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g", data, B=150, k=30, rng=1, n_jobs=1)


@pytest.fixture(scope="module")
def other():
    return vs.datasets.mars(25, rng=8).assign(g=["a", "b", "a", "a", "b"] * 5)


def learner_values(res, frame):
    """Predictions of every learner, shape (B, rows)."""
    return res.predictor.values(res.predictor.rows(frame)[0])


def literal_estimates(res, values, limit):
    """Estimates with half the rho of predictions, known to half of that."""
    rho, error = res.orders.rho / 2, np.hypot(res.orders.error / 2, res.orders.rho / 4)
    mc_error = res.orders.mc_error / 2
    orders = replace(res.orders, rho=rho, error=error, mc_error=mc_error)
    return estimate(res.design, values, "hoeffding", limit, orders)


# The sums themselves


def test_sums_are_weighted_row_by_row(res, data, rng):
    X = res.predictor.rows(data)[0]
    shares = rng.normal(size=(3, len(X)))
    H = res.predictor.values(X)
    literal = [
        [sum(w * h for w, h in zip(s, one, strict=True)) for s in shares] for one in H
    ]
    found = res.predictor.sums(X, sparse.csr_array(shares))
    assert np.allclose(found.values, literal, rtol=1e-12, atol=1e-12)


def test_sums_do_not_depend_on_workers(res, data):
    X = res.predictor.rows(data)[0]
    shares = np.full((1, len(X)), 1 / len(X))
    own = OwnLearners(res.design, np.arange(len(X)))
    one = replace(res.predictor, n_jobs=1).sums(X, shares, own)
    two = replace(res.predictor, n_jobs=2).sums(X, shares, own)
    assert np.array_equal(one.values, two.values)
    assert np.array_equal(one.own, two.own)


def test_own_predictions_are_out_of_bag(res, data):
    X = res.predictor.rows(data)[0]
    shares = np.full((1, len(X)), 1 / len(X))
    H, counts = res.predictor.values(X), res.design.counts(0, res.B)
    absent = [H[counts[:, i] == 0, i].mean() for i in range(len(X))]
    found = res.predictor.sums(X, shares, OwnLearners(res.design, np.arange(len(X))))
    assert np.allclose(found.own[:, 0], absent, rtol=1e-12)
    assert np.allclose(found.own, res.recipe.oob.mean, rtol=1e-12)
    every = res.predictor.sums(X, shares, OwnLearners(res.design, None)).own[:, 0]
    assert np.allclose(every, H.mean(axis=0), rtol=1e-12)


def test_an_offset_costs_no_digits(data):
    far = vs.fit("y ~ x1 + x4", data.assign(y=data["y"] + 1e8), B=50, k=20, rng=1)
    near = vs.fit("y ~ x1 + x4", data, B=50, k=20, rng=1)
    one, two = (one.avg_effects("x4").frame for one in (far, near))
    assert np.allclose(one["std_error"], two["std_error"], rtol=1e-6)


# Averages for the rows as they are


def test_average_predictions_are_estimates_of_averages(res, data):
    found = res.avg_predictions().frame
    H = learner_values(res, data).mean(axis=1, keepdims=True)
    literal = literal_estimates(res, H, res.limit)
    assert np.isclose(found["estimate"].item(), res.predict(data).mean(), rtol=1e-12)
    assert np.isclose(found["std_error"].item(), literal.bse.item(), rtol=1e-10)
    assert np.isclose(found["df"].item(), literal.df.item(), rtol=1e-8)
    assert found["rows"].item() == 60


def test_levels_are_averaged_by_themselves(res, data):
    found = res.avg_predictions(by="h").frame
    H = learner_values(res, data)
    means = [H[:, (data["h"] == level).to_numpy()].mean(axis=1) for level in "pqr"]
    literal = literal_estimates(res, np.column_stack(means), res.limit)
    assert list(found.index) == ["p", "q", "r"]
    assert found.index.name == "h"
    assert np.allclose(found["estimate"], literal.estimate, rtol=1e-12)
    assert np.allclose(found["std_error"], literal.bse, rtol=1e-10)


def test_average_effects_move_one_predictor_row_by_row(res, data):
    found = res.avg_effects().frame
    ends = [data["x1"].quantile([0.1, 0.9]), data["x4"].quantile([0.1, 0.9])]
    assert np.allclose(found["from"].iloc[:2].astype(float), [one[0.1] for one in ends])
    assert np.allclose(found["to"].iloc[:2].astype(float), [one[0.9] for one in ends])
    assert found[["from", "to"]].iloc[2].to_list() == ["a", "b"]
    moves = [("x1", *ends[0]), ("x4", *ends[1]), ("g", "a", "b")]
    columns = []
    for name, low, high in moves:
        up, down = (learner_values(res, data.assign(**{name: x})) for x in (high, low))
        total = np.zeros(res.B)
        for i in range(len(data)):
            total += up[:, i] - down[:, i]
        columns.append(total / len(data))
    literal = literal_estimates(res, np.column_stack(columns), 2 * res.limit)
    assert np.allclose(found["estimate"], literal.estimate, rtol=1e-10)
    assert np.allclose(found["std_error"], literal.bse, rtol=1e-8)


def test_effects_by_levels_and_between_given_ends(res, data):
    found = res.avg_effects({"x4": (0.2, 0.7)}, by="g").frame
    up, down = (res.predict(data.assign(x4=x)) for x in (0.7, 0.2))
    means = (up - down).groupby(data["g"]).mean()
    assert found.index.to_list() == [("x4", "a"), ("x4", "b")]
    assert np.allclose(found["estimate"], means, rtol=1e-10)
    assert found["rows"].to_list() == data["g"].value_counts().sort_index().to_list()


def test_columns_set_after_the_fit_change_nothing(data):
    mine = data.copy()
    res = vs.fit("y ~ x1 + x4", mine, B=50, k=20, rng=1)
    before = res.avg_predictions().params.item()
    mine["x1"] = 0.0
    assert res.avg_predictions().params.item() == before


def test_other_rows_may_be_given(res, other):
    found = res.avg_predictions(other)
    assert found.rows == "25 other rows"
    assert np.isclose(found.params.item(), res.predict(other).mean(), rtol=1e-12)


def test_slopes_are_secants_between_observed_values(res, data):
    found = res.avg_slopes(["x4"], step=0.4)
    low, high = secant_ends(data["x4"], 0.4, data["x4"])
    assert (high - low >= 0.4).all()
    assert np.isin([low, high], data["x4"]).all()
    rise = res.predict(data.assign(x4=high)) - res.predict(data.assign(x4=low))
    slope = (rise / (high - low)).mean()
    assert np.isclose(found.frame["estimate"].item(), slope, rtol=1e-10)
    H = learner_values(res, data.assign(x4=high))
    H = (H - learner_values(res, data.assign(x4=low))) / (high - low)
    assert np.allclose(found.results.values[:, 0], H.mean(axis=1), rtol=1e-9)
    bound = 2 * res.limit * (1 / (high - low)).mean()
    assert np.allclose(found.results.limit, bound)
    assert np.allclose(res.avg_effects("x4").results.limit, 2 * res.limit)
    default = res.avg_slopes(["x1", "x4"]).frame
    assert np.allclose(default["step"], data[["x1", "x4"]].std(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::vstatkit.ExtrapolationWarning")
def test_secants_stay_within_the_training_data(res, other):
    """Rows of other data, by hand: those beyond the range have the slope at its end."""
    x4 = np.linspace(-1.0, 2.0, 25)
    rows = other.assign(x4=x4)
    low, high = secant_ends(x4, 0.5, res.recipe.data["x4"])
    found = res.avg_slopes("x4", rows, step=0.5, by="g", se="population")
    up, down = (res.predict(rows.assign(x4=end)) for end in (high, low))
    slopes = ((up - down) / (high - low)).to_numpy()
    for place, level in enumerate("ab"):
        one = (rows["g"] == level).to_numpy()
        assert np.isclose(found.params.iloc[place], slopes[one].mean(), rtol=1e-10)
        literal = row_influence(slopes[:, None], one / one.sum(), None, 25)
        moved = found.results.points.values[:, [place]]
        assert np.allclose(moved, literal, rtol=1e-9, atol=1e-12)


def test_steps_of_predictors_that_do_not_vary_or_are_missing():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x4", "y"]].assign(z=2.0)
    line = vs.fit("y ~ 0 + x1 + z", frame, kernel="ols", B=40, k=30, rng=1)
    slope = line.avg_slopes("z", step=1.0).params.item()
    assert np.isclose(slope, line.params["z"], rtol=1e-9)
    gaps = frame.assign(x4=frame["x4"].mask(frame.index % 5 == 0))
    res = vs.fit("y ~ x1 + x4", gaps, B=60, k=30, rng=1, missing="pass")
    some = gaps.dropna()
    for se in ("sample", "population"):
        known = res.avg_slopes("x4", some, step=0.3, se=se).frame
        every = res.avg_slopes(step=0.3, se=se).frame.loc[["x4"]]
        assert np.allclose(every.astype(float), known.astype(float), equal_nan=True)
        assert every["rows"].item() == len(some) == 48
    other = gaps.assign(x1=gaps["x1"] + 0.01)  # no training rows
    few = res.avg_slopes("x4", other, step=0.3, se="population").frame
    some = res.avg_slopes("x4", other.dropna(), step=0.3, se="population").frame
    assert np.isclose(few["estimate"].item(), some["estimate"].item(), rtol=1e-10)
    assert np.isclose(few["std_error"].item(), some["std_error"].item(), rtol=0.02)
    with pytest.raises(ValueError, match="x4 is missing in all rows of an average"):
        res.avg_slopes("x4", gaps.iloc[::5], step=0.3)


def test_probabilities_of_several_classes():
    iris = vs.datasets.iris().iloc[::3]
    formula = f"{iris.columns[-1]} ~ Q('{iris.columns[2]}') + Q('{iris.columns[3]}')"
    res = vs.fit(formula, iris, B=80, k=25, rng=2)
    found = res.avg_predictions(se="population")
    means = res.predict(iris).mean()
    assert found.params.index.names[-1] == "class"
    assert np.allclose(found.params, means, rtol=1e-10)
    assert np.isclose(found.params.sum(), 1.0)
    effects = res.avg_effects(iris.columns[2])
    assert len(effects.frame) == 3
    assert abs(effects.params.sum()) < 1e-12
    bounds = found.conf_int()
    assert bounds["lower"].min() >= 0
    assert bounds["upper"].max() <= 1


# Standard errors for the population


def test_deleting_an_observation_changes_both_parts(rng):
    """The influences are what deletion does, in a complete ensemble without noise."""
    n, k = 7, 3
    frame = pd.DataFrame({"x": rng.normal(size=n)}).assign(
        y=lambda d: d["x"] ** 2 + rng.normal(size=n)
    )
    options = {"k": k, "replace": False, "B": "complete", "variance": "jackknife"}
    res = vs.fit("y ~ x", frame, kernel="forest", **options, max_features=1.0)
    whole = res.predict(frame).mean()
    found = res.avg_predictions(se="population").results
    joined = joint_influence(found.design, found.values, "jackknife", found.points)
    for i in range(n):
        rest = frame.drop(index=i)
        less = vs.fit("y ~ x", rest, kernel="forest", **options, max_features=1.0)
        change = whole - less.predict(rest).mean()
        root = np.sqrt((n - 1) / n)
        parts = joined.learners[i, 0] + joined.points.values[i, 0]
        assert np.isclose(parts, root * change, rtol=1e-9, atol=1e-12)


def literal_population(res, H, W, units, own):
    """Variance of weighted means by the jackknife, with loops."""
    n, B = res.design.n, res.B
    Z = res.design.counts(0, B) > 0
    h = H @ W
    spread = h.var(ddof=1)
    t = np.array([h[~Z[:, u]].mean() for u in range(n)])
    c = np.sqrt((n - 1) / n) * (h.mean() - t)
    g = np.zeros(n)
    for i, u in enumerate(units):
        g[u] += W[i] * (own[i] - t[u])
    some = len({u for i, u in enumerate(units) if W[i]})
    g *= np.sqrt(some / (some - 1))
    V = sampling_jackknife(Z.astype(int), h, q=res.design.chance_absent)
    V /= 1 + res.orders.rho / 2
    cross = 2 * np.sum(c * g)
    return V, np.sum(g**2), cross, spread / B


@pytest.mark.parametrize("by", [None, "g"])
def test_population_variance_adds_rows_and_products(res, data, by):
    H = learner_values(res, data)
    own = res.recipe.oob.mean[:, 0]
    found = res.avg_predictions(by=by, se="population").results
    levels = [np.ones(60)] if by is None else [data["g"] == one for one in "ab"]
    for j, level in enumerate(levels):
        W = np.asarray(level, dtype=float) / np.sum(level)
        V, rows, cross, mc = literal_population(res, H, W, range(60), own)
        assert np.isclose(found.components.sampling[j], V + rows + cross, rtol=1e-9)
        assert np.isclose(found.components.monte_carlo[j], mc, rtol=1e-9)
        assert np.isclose(found.bse.iloc[j] ** 2, V + rows + cross + mc, rtol=1e-2)
        assert abs(cross) > 0.01 * V  # it matters


def test_population_of_clusters_sums_rows_within_them(data):
    res = vs.fit("y ~ x1 + x4", data, B=150, k=8, groups="c", rng=1)
    H, own = learner_values(res, data), res.recipe.oob.mean[:, 0]
    found = res.avg_predictions(se="population").results
    W = np.full(60, 1 / 60)
    V, rows, cross, _ = literal_population(res, H, W, data["c"], own)
    assert found.design.n == 15
    assert np.isclose(found.components.sampling[0], V + rows + cross, rtol=1e-9)


def test_degrees_of_freedom_see_both_influences(res):
    found = res.avg_predictions(se="population").results
    joined = joint_influence(res.design, found.values, "jackknife", found.points)
    all_of_them = joined.learners[:, 0] + joined.points.values[:, 0]
    q = res.design.chance_absent
    noise = (1 - q) / q * found.components.monte_carlo
    squares, fourths = (np.array([np.sum(all_of_them**j)]) for j in (2, 4))
    literal = influence_concentration(squares, fourths, noise, 60)
    assert np.allclose(found.estimates.scaled.concentration, literal, rtol=1e-9)
    alone = res.avg_predictions().results
    assert found.df.item() != alone.df.item()


def test_training_rows_are_known_by_labels_and_values(res, data):
    some = data.iloc[[5, 2, 40, 41, 33]]
    mine = res.avg_predictions(some, se="population")
    assert mine.rows == "5 training rows"
    H, own = learner_values(res, data), res.recipe.oob.mean[:, 0]
    W = np.zeros(60)
    W[[5, 2, 40, 41, 33]] = 1 / 5
    V, rows, cross, _ = literal_population(res, H, W, range(60), own)
    parts = mine.results.components
    assert np.isclose(parts.sampling[0], V + rows + cross, rtol=1e-9)
    changed = some.assign(x1=some["x1"] + 0.01)
    assert res.avg_predictions(changed).rows == "5 other rows"


def test_covariances_have_the_variances_on_their_diagonal(res, data):
    found = res.avg_effects(se="population")
    assert np.allclose(np.sqrt(np.diag(found.cov())), found.bse, rtol=1e-10)
    difference = found.t_test([[1.0, -1.0, 0.0]])
    direct = found.results.points.values @ [1.0, -1.0, 0.0]
    assert np.allclose(difference.points.values[:, 0], direct)
    joined = joint_influence(
        res.design, found.results.values, "jackknife", found.results.points
    )
    both = joined.added_variance(joint=True)
    assert np.allclose(both, both.T)
    assert np.allclose(np.diag(both), joined.added_variance())
    results = found.results
    parts = estimate_covariance("hoeffding", res.design, results.values, results.orders)
    matrix = sum(parts) + both
    scale = np.sqrt(np.diag(matrix))
    assert np.linalg.eigvalsh(matrix).min() > 0
    correlation = matrix / np.outer(scale, scale)
    assert np.allclose(results.covariances.correlation, correlation, rtol=1e-8)
    mine = np.array([1.0, -1.0, 0.0])
    one = joint_influence(res.design, difference.values, "jackknife", difference.points)
    assert np.isclose(one.added_variance()[0], mine @ both @ mine, rtol=1e-9)


def test_noise_has_no_part_in_the_products():
    """It has one if rows are held against the mean of all, not that without them."""
    n, B, blocks = 12, 60, 400
    rng = np.random.default_rng(5)
    y, W = rng.normal(size=n), np.full(n, 1 / n)
    found, plain = [], []
    for _ in range(blocks):
        counts = rng.multinomial(n, W, size=B)
        Z = counts > 0
        h = rng.normal(size=B) + (Z @ y) / Z.sum(axis=1)  # the same at every row
        design, values = given_ensemble(
            counts, h, replace=True, groups=None, compares_groups=False
        )
        own = np.array([h[~Z[:, i]].mean() + y[i] for i in range(n)])[:, None]
        t = h.mean() - deletions(design, values)[0]
        for centre, products in ((t, found), (None, plain)):
            g = row_influence(own, W, None, n, centre)
            points = RowInfluence(g, True)
            joined = joint_influence(design, values, "jackknife", points)
            products.append(joined.added_variance()[0] - np.sum(g**2))
    # Without noise: influences of y's mean over those present, and of y itself.
    counts = rng.multinomial(n, W, size=40_000)
    Z = counts > 0
    h = (Z @ y) / Z.sum(axis=1)
    t = np.array([h[~Z[:, i]].mean() for i in range(n)])
    g = row_influence((t + y)[:, None], W, None, n, t[:, None])[:, 0]
    true = 2 * np.sqrt((n - 1) / n) * np.sum((h.mean() - t) * g)
    error = np.std(found) / np.sqrt(blocks)
    assert abs(np.mean(found) - true) < 4 * error
    assert abs(np.mean(plain) - true) > 8 * error


def test_a_mean_has_the_same_error_for_rows_and_population():
    """Where learners predict one number everywhere, rows have no influence."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=20), "y": rng.normal(size=20)})
    stumps = {"min_samples_leaf": 50, "variance": "jackknife"}
    res = vs.fit("y ~ x", frame, k=6, B=400, rng=1, **stumps)
    both = [res.avg_predictions(se=se).results for se in ("sample", "population")]
    rows, population = (one.components.sampling[0] for one in both)
    assert np.isclose(rows, population, rtol=1e-9)


@pytest.mark.parametrize("se", ["sample", "population"])
def test_linear_models_against_the_delta_method(se):
    rng = np.random.default_rng(4)
    n = 150
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] * (1 + frame["b"]) + rng.normal(size=n)
    res = vs.fit("y ~ a * b", frame, kernel="ols", k=n, B=4000, rng=1)
    found = res.avg_slopes("a", step=2.0, se=se).frame
    fit = smf.ols("y ~ a * b", frame).fit()
    X, e = fit.model.exog, fit.resid.to_numpy()
    mean = frame["b"].mean()
    R = np.array([0.0, 1.0, 0.0, mean])
    influence = (X * e[:, None]) @ np.linalg.inv(X.T @ X) @ R
    if se == "population":
        influence = influence + fit.params["a:b"] * (frame["b"] - mean).to_numpy() / n
    assert np.isclose(found["estimate"].item(), fit.params @ R, rtol=0.02)
    literal = np.sqrt(np.sum(influence**2))
    assert np.isclose(found["std_error"].item(), literal, rtol=0.06)
    if se == "population":  # an average of predictions is the mean of y
        average = res.avg_predictions(se="population").bse.item()
        assert np.isclose(average, frame["y"].std() / np.sqrt(n), rtol=0.06)


@pytest.mark.parametrize("step", [0.3, 50.0])
@pytest.mark.parametrize("shift", [0.0, 0.7, 90.0])
def test_slopes_of_a_line_are_its_coefficients(data, step, shift):
    res = vs.fit("y ~ x1 + x4", data, kernel="ols", B=200, k=40, rng=1)
    rows = data[["x1", "x4"]] + shift  # some or all of them beyond the range
    found = res.avg_slopes(data=rows, step=step).frame
    assert np.allclose(found["estimate"], res.params[["x1", "x4"]], rtol=1e-9)
    assert np.allclose(found["std_error"], res.bse[["x1", "x4"]], rtol=1e-7)
    exact = smf.ols("y ~ x1 + x4", data).fit().params[["x1", "x4"]]
    assert np.allclose(found["estimate"], exact, rtol=0.1)


def test_estimators_by_counts_take_all_learners(data):
    res = vs.fit("y ~ x1 + x4", data, B=150, k=30, rng=1, variance="corrected_v")
    found = res.avg_predictions(se="population").results
    assert found.variance == "corrected_v"
    H, N = learner_values(res, data), res.design.counts(0, res.B)
    h, p = H.mean(axis=1), H.mean(axis=0)
    c = (N - N.mean(axis=0)).T @ (h - h.mean()) / res.B
    g = (p - p.mean()) / np.sqrt(60 * 59)
    sample = res.avg_predictions().results.components.sampling
    literal = sample + np.sum(g**2) + 2 * np.sum(c * g)
    assert np.allclose(found.components.sampling, literal, rtol=1e-9)


def test_without_replacement_influences_are_scaled(data):
    options = {"replace": False, "variance": "corrected_u"}
    res = vs.fit("y ~ x1", data, B=100, k=20, rng=1, kernel="ols", **options)
    found = res.avg_predictions(se="population").results
    joined = joint_influence(res.design, found.values, "corrected_u", found.points)
    N, h = res.design.counts(0, 100), found.values[:, 0]
    c = (N - N.mean(axis=0)).T @ (h - h.mean()) / 100
    assert np.allclose(joined.learners[:, 0], 60 / 40 * c)


def test_complete_ensembles_weight_their_learners(rng):
    frame = pd.DataFrame({"x": rng.normal(size=5)}).assign(y=lambda d: d["x"] ** 2)
    res = vs.fit("y ~ x", frame, k=2, B="complete", variance="jackknife")
    weights = res.design.weights(0, res.B)
    assert len(set(weights)) > 1
    X = res.predictor.rows(frame)[0]
    found = res.predictor.sums(X, np.full((1, 5), 0.2), OwnLearners(res.design, None))
    assert np.allclose(found.own[:, 0], res.predict(frame), rtol=1e-12)
    absent = res.predictor.sums(
        X, np.full((1, 5), 0.2), OwnLearners(res.design, np.arange(5))
    )
    H, counts = res.predictor.values(X), res.design.counts(0, res.B)
    literal = [
        np.average(H[counts[:, i] == 0, i], weights=weights[counts[:, i] == 0])
        for i in range(5)
    ]
    assert np.allclose(absent.own[:, 0], literal, rtol=1e-12)
    average = res.avg_predictions(se="population")
    assert np.isclose(average.params.item(), res.predict(frame).mean(), rtol=1e-12)
    assert average.results.components.monte_carlo.item() == 0


# What cannot be had is refused


def test_shards_average_for_the_rows_and_for_other_samples(data, other):
    res = vs.fit("y ~ x1", data, design="shards", n_shards=5, k=8, B=20, rng=1)
    assert res.variance == "shards"
    found = res.avg_predictions()
    G = np.arange(res.B)
    assert np.isfinite(found.bse.item())
    assert res.design.groups(res.B).shape == G.shape
    with pytest.raises(ValueError, match="compares groups of learners"):
        res.avg_predictions(se="population").bse  # noqa: B018
    both = res.avg_predictions(other, se="population")
    H, m = learner_values(res, other), len(other)
    apart = H - H.mean(axis=1, keepdims=True)
    shards = res.design.groups(res.B)
    means = np.array([apart[shards == one].mean(axis=0) for one in range(5)])
    noise = means.var(axis=0, ddof=1).sum() / 5 / (m * (m - 1))
    added = res.predict(other).var(ddof=1) / m - noise
    gained = both.bse.item() ** 2 - res.avg_predictions(other).bse.item() ** 2
    assert np.isclose(gained, added, rtol=1e-6)


def test_loaded_results_need_rows(res, data, tmp_path):
    res.save(tmp_path / "kept.zip")
    loaded = vs.load(tmp_path / "kept.zip")
    with pytest.raises(ValueError, match="Give rows as `data`"):
        loaded.avg_predictions()
    assert np.allclose(
        loaded.avg_effects("x4", data).frame["std_error"],
        res.avg_effects("x4").frame["std_error"],
        rtol=1e-9,
    )


def test_population_errors_are_not_saved(res, tmp_path):
    with pytest.raises(ValueError, match="which files of results do not contain"):
        res.avg_predictions(se="population").results.save(tmp_path / "no.zip")


def test_bad_requests_are_refused(res, data, other):
    with pytest.raises(ValueError, match="`se` must be 'sample'"):
        res.avg_predictions(se="both")
    with pytest.raises(ValueError, match="`by` must be a column of the data"):
        res.avg_predictions(by="nothing")
    with pytest.raises(ValueError, match="at most 50 levels"):
        res.avg_predictions(by="x1")
    with pytest.raises(ValueError, match="has missing values"):
        res.avg_predictions(data.assign(h=None), by="h")
    with pytest.raises(ValueError, match="must be predictors of the model"):
        res.avg_effects("x2")
    with pytest.raises(ValueError, match="must be a positive number"):
        res.avg_slopes("x1", step=0)
    with pytest.raises(ValueError, match="has no rows"):
        res.avg_predictions(data.iloc[:0])
    single = other.assign(one=["s"] + ["t"] * 24)
    with pytest.raises(ValueError, match="at least two units"):
        res.avg_predictions(single, by="one", se="population")
    statistic = vs.statistic("mean", data["y"].to_numpy(), k=5, B=50, rng=1)
    with pytest.raises(ValueError, match="no learners that predict"):
        statistic.avg_predictions()


def test_rows_that_all_learners_saw_have_no_prediction_out_of_bag(data):
    res = vs.fit("y ~ x1", data, B=4, k=54, rng=1, replace=False, variance="jackknife")
    with pytest.raises(ValueError, match="nothing predicts them out of bag"):
        res.avg_predictions(se="population")


def test_many_rows_are_drawn_by_the_seed(res, monkeypatch):
    monkeypatch.setattr("vstatkit.results.marginal_effects.MOST_ROWS", 12)
    monkeypatch.setattr(
        "vstatkit.results.marginal_effects.sample_of.__defaults__", (12,)
    )
    one, two = (res.avg_predictions() for _ in range(2))
    assert one.rows == "12 of 60 training rows"
    assert one.params.item() == two.params.item()


def test_averages_print_and_plot(res):
    found = res.avg_effects(by="g", se="population")
    text = str(found)
    assert "Averages over 60 training rows" in text
    assert "se='population'" in text
    assert "x4, g=b" in text
    assert len(found.plot().get_yticklabels()) == len(found.frame)
    assert res.plot(kind="average effects").get_yticklabels()
    assert "<table" in found._repr_html_()
    assert "Averages: 6 average effects" in repr(found)


def test_too_few_learners_are_told_with_the_number_needed(data):
    few = vs.fit("y ~ x1 + x4", data, B=60, k=30, rng=1)
    averages = few.avg_effects()
    assert averages.results.diagnostics["relative_mc_error"].max() > VAGUE
    text = " ".join(str(averages).split())
    needed = round_up(float(averages.results.diagnostics["learners_needed"].max()))
    assert (
        f"About {needed} learners are needed to reduce the Monte Carlo error to 10%"
        in text
    )
    joint = " ".join(str(averages.results.summary()).split())
    assert f"about {needed} learners would bring it to 10%" in joint
    many = vs.fit("y ~ x1 + x4", data, B=2000, k=30, rng=1).avg_effects()
    assert many.results.diagnostics["relative_mc_error"].max() < VAGUE
    assert "learners are needed" not in str(many)


@pytest.mark.parametrize("by", [None, "x1"])
@pytest.mark.parametrize("ask", ["avg_effects", "avg_slopes"])
def test_levels_of_a_factor_have_labels_of_their_own(data, ask, by):
    """The labels of `results` are the names that `t_test` takes."""
    data = data.assign(g=np.resize(list("abc"), len(data)), x1=data["x1"] > 0.5)
    res = vs.fit("y ~ g + x1", data, B=60, rng=1)
    found = getattr(res, ask)(by=by)
    ends = [""] if by is None else [", x1=False", ", x1=True"]
    names = [f"g[{level}]{end}" for level in "bc" for end in ends]
    assert found.results.labels.to_list()[: len(names)] == names
    text = str(found.results.summary())
    for name in names:
        assert name in text
        assert np.isclose(found.results.params[name], found.t_test(name).params.item())
    assert set(found.params.index.get_level_values(0)) == {"g", "x1"}
    assert found.frame.index.equals(found.cov().index)
    assert found.cov().attrs == found.results.cov_params().attrs
    assert found.frame.index.equals(found.conf_int().index)


@pytest.mark.parametrize("response", ["high", "kind"])
def test_average_probabilities_print_no_test_of_zero(data, response):
    high = np.where(data["y"] > data["y"].median(), "yes", "no")
    kind = np.digitize(data["y"], data["y"].quantile([0.3, 0.6])).astype(str)
    data = data.assign(high=high, kind=kind)
    res = vs.fit(f"{response} ~ x1 + x4", data, B=60, rng=1)
    average, curve = res.avg_predictions(), res.partial_dependence("x4", points=3)
    for table in (average, average.results, curve, curve.results):
        text = str(table.summary())
        assert "P>|t|" not in text
        assert "0.975]" in text
    assert {"t", "p_value"} <= set(average.frame.columns) & set(curve.frame.columns)
    for table in (res.avg_effects(), res.avg_slopes(), curve.contrast()):
        assert "P>|t|" in str(table.summary())
    assert "P>|t|" in str(average.t_test(np.eye(len(average.params))).summary())
    numbers = vs.fit("y ~ x1 + x4", data, B=60, rng=1).avg_predictions()
    assert "P>|t|" in str(numbers)


@pytest.mark.parametrize("B", [2, 10])
def test_no_number_is_advised_by_too_few_learners(data, B):
    """Bounded standard errors do not say how many learners are needed."""
    res = vs.fit("y ~ x1 + x4", data, B=B, k=30, rng=1)
    for table in (res.avg_slopes(), res.partial_dependence("x4", points=3)):
        assert table.results.estimates.bounded.any()
        text = " ".join(str(table.summary()).split())
        assert "learners are needed" not in text
        assert "Grow some hundreds of learners; the table then has" in text


@pytest.mark.parametrize("step", [0.5, 50.0])
def test_learners_needed_are_more_than_there_are_in_any_unit(data, step):
    """The error that never matters for predictions is no measure for slopes."""
    few = vs.fit("y ~ x1 + x4", data, B=60, k=30, rng=1)
    for found in (few.avg_slopes(step=step), few.avg_predictions()):
        table = found.results.diagnostics
        a, b = found.results.estimates.error_terms
        V = found.results.estimates.scaled_variance
        needed = table["learners_needed"].to_numpy()
        literal = np.sqrt(a / needed**2 + b / needed) / (2 * V)
        assert np.allclose(literal, 0.1, rtol=0.01)
        assert ((needed > few.B) == (table["relative_mc_error"] > 0.1)).all()


def test_functions_and_combinations_need_learners_by_their_relative_error(data):
    few = vs.fit("y ~ x1 + x4", data, B=60, k=30, rng=1)
    slopes = few.avg_slopes(step=50.0)
    by_words = slopes.t_test("x1 - x4 = 0")
    by_function = few.transform(lambda p: 1e-3 * p)
    for found in (by_words, by_function):
        assert found.tolerance.atol == 0.0
    worst = by_words.estimates.relative_mc_error.item()
    assert worst > 0.1
    assert by_words.diagnostics["learners_needed"].item() > few.B
    assert "learners would bring it to 10%." in " ".join(str(by_words).split())


def test_effects_of_a_factor_are_named_by_level(data):
    res = vs.fit("y ~ x1 + h", data, B=100, k=30, rng=1)
    found = res.avg_effects()
    assert list(found.frame.index) == ["x1", "h", "h"]
    made = found.t_test("h[r] - 2 * h[q] = 0, x1 = 0")
    by_hand = found.results.t_test([[0, -2, 1], [1, 0, 0]])
    assert np.allclose(made.params, by_hand.params, rtol=1e-12)
    assert np.allclose(made.bse, by_hand.bse, rtol=1e-12)
    joint = found.wald_test(["h[q] = 0", "h[r] = 0"])
    matrix = found.results.wald_test([[0, 1, 0], [0, 0, 1]])
    assert joint.statistic == pytest.approx(matrix.statistic, rel=1e-12)
    gap = found.transform(lambda p: {"gap": p["h[r]"] - p["h[q]"]})
    estimate = found.frame["estimate"].to_numpy()
    assert gap.params["gap"] == pytest.approx(estimate[2] - estimate[1], rel=1e-9)
    each = res.avg_effects("h", by="g")
    last = each.transform(lambda p: {"last": p["h[r], g=b"]}).params["last"]
    assert last == pytest.approx(each.frame["estimate"].iloc[3], rel=1e-9)


def test_constant_predictors_are_skipped_by_name(data):
    constant = data.assign(c=1.5, one="u")
    res = vs.fit("y ~ x1 + c + one + g", constant, B=60, k=30, rng=1)
    slopes, effects = res.avg_slopes(), res.avg_effects()
    assert list(slopes.frame.index) == ["x1", "g"]
    assert "No effect of c, one: the same value in every row." in str(slopes)
    assert "No effect of c, one: the same value in every row." in str(effects)
    for found in (res.avg_effects("x1"), res.avg_slopes("x1")):
        assert "No effect of" not in str(found)
    with pytest.raises(ValueError, match="'c' has the same value in every row"):
        res.avg_slopes(["c", "x1"])
    with pytest.raises(ValueError, match="nothing to move: c has the same value"):
        res.avg_effects("c")
    assert list(res.avg_slopes(step=1.0).frame.index) == ["x1", "c", "g"]


def test_adopted_forests_average_over_their_training_rows(data):
    X, y = data[["x1", "x4"]], data["y"]
    forest = RandomForestRegressor(60, max_samples=30, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X.iloc[:2])
    found = res.avg_predictions(se="population")
    assert found.rows == "60 training rows"
    assert np.isclose(found.params.item(), forest.predict(X).mean(), rtol=1e-9)
    assert res.avg_predictions(X).rows == "60 training rows"
    moved = [forest.predict(X.assign(x4=x)).mean() for x in (0.2, 0.9)]
    effect = res.avg_effects({"x4": (0.2, 0.9)})
    assert np.isclose(effect.params.item(), moved[1] - moved[0], rtol=1e-9)


def test_adopted_forests_without_names_number_their_columns(data):
    X, y = data[["x1", "x4"]].to_numpy(), data["y"]
    forest = RandomForestRegressor(40, max_samples=30, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X[:2])
    found = res.avg_effects()
    assert found.params.index.to_list() == ["x0", "x1"]
    moved = [X.copy() for _ in range(2)]
    for one, share in zip(moved, (0.1, 0.9), strict=True):
        one[:, 1] = np.quantile(X[:, 1], share)
    change = forest.predict(moved[1]).mean() - forest.predict(moved[0]).mean()
    assert np.isclose(found.params["x1"], change, rtol=1e-9)
    assert res.avg_predictions(X).rows == "60 training rows"
    assert res.avg_predictions(X[:7] + 0.1).rows == "7 other rows"


def test_enumerated_row_influence():
    p, w = np.array([1.0, 4.0, 2.0, 7.0]), np.array([0.1, 0.4, 0.2, 0.3])
    units = np.array([0, 1, 0, 2])
    found = row_influence(p[:, None], w, units, 4)[:, 0]
    mean = np.sum(w * p)
    literal = [
        sum(w[i] * (p[i] - mean) for i in range(4) if units[i] == u) for u in range(4)
    ]
    assert np.allclose(found, np.sqrt(3 / 2) * np.array(literal))
    assert list(itertools.compress(range(4), found == 0)) == [3]


def test_misspelled_columns_of_by_are_suggested(res):
    with pytest.raises(ValueError, match=r"got 'x11'; did you mean 'x1'\?"):
        res.avg_predictions(by="x11")


@pytest.mark.parametrize("se", ["sample", "population"])
@pytest.mark.parametrize("new_rows", [False, True])
@pytest.mark.parametrize(
    "switch",
    [*itertools.product(["ij", "corrected_v", "jackknife"], ["ij", "jackknife"])],
)
def test_averages_switch_estimators_as_fits_do(data, other, se, new_rows, switch):
    """A switch of the averages equals a switch before averaging, or raises an error."""
    old, new = switch
    res = vs.fit("y ~ x1 + x4 + g", data, B=80, k=60, rng=1, n_jobs=1, variance=old)
    rows = other if new_rows else None
    averages = res.avg_predictions(rows, by="g", se=se)
    literal = res.with_variance(new).avg_predictions(rows, by="g", se=se)
    differ = old != new and (new_rows or "jackknife" in switch)
    if se == "population" and differ:
        assert not np.allclose(averages.points.values, literal.points.values) or (
            not np.allclose(averages.points.noise.roots, literal.points.noise.roots)
        )
        with pytest.raises(ValueError, match=rf"must use .*'{old}'; got '{new}'"):
            averages.with_variance(new)
        assert new in averages.compare_variance().left_out
    else:
        np.testing.assert_allclose(averages.with_variance(new).bse, literal.bse)


@pytest.mark.parametrize("name", ["class", "predictor"])
@pytest.mark.parametrize("response", ["y", "size"])
def test_columns_may_have_the_names_of_our_levels(response, name):
    """Averages by a column `class` are not taken for averages of classes."""
    rng = np.random.default_rng(3)
    groups = rng.choice(list("ab"), 120)
    frame = pd.DataFrame({"x": rng.normal(size=120), name: groups})
    frame["y"] = frame["x"] + (groups == "a") + rng.normal(size=120)
    frame["size"] = pd.cut(frame["y"], 3, labels=["s", "m", "l"])
    res = vs.fit(f"{response} ~ x", frame, B=40, rng=1)
    sizes = [""] if response == "y" else [" [s]", " [m]", " [l]"]
    ends = [f"{name}={level}{size}" for level in "ab" for size in sizes]
    assert res.avg_predictions(by=name).texts == ends
    effects = res.avg_effects(by=name)
    assert effects.texts == [f"x, {end}" for end in ends]
    (low, high), size = effects.frame[["from", "to"]].iloc[0], sizes[0]
    moved = f"x, {name}=a: {low:.4g} → {high:.4g}{size}"
    assert effects._column().frame.index[0] == moved
