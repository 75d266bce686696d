"""Averages over rows of another sample: errors of predictions are counted once."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import sparse

import vstatkit as vs
from tests.oracles.ensembles import secant_ends
from tests.oracles.literal import sampling_jackknife
from vstatkit.ensemble.marginal_averages import PICKED, RowWeights
from vstatkit.inference.estimates import Estimation, estimate
from vstatkit.inference.population import (
    JointInfluence,
    RowInfluence,
    RowNoise,
    joint_influence,
    row_influence,
    row_noise,
)
from vstatkit.results.marginal_effects import averager_of, sample_of
from vstatkit.sampling.design import CompleteDesign
from vstatkit.sampling.given import given_ensemble
from vstatkit.variance.influence_summaries import influence_concentration

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x2", "x4", "y"]]
    return frame.assign(g=np.where(frame["x2"] > 0.6, "b", "a"), c=np.arange(60) // 4)


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g", data, B=150, k=30, rng=1, n_jobs=1)


@pytest.fixture(scope="module")
def other():
    return vs.datasets.mars(25, rng=8).assign(g=["a", "b", "a", "a", "b"] * 5)


def learner_values(res, frame):
    """Predictions of every learner, shape (B, rows)."""
    return res.predictor.values(res.predictor.rows(frame)[0])


def literal_variance(res, h):
    """Total variance of a mean of learners, beyond the first order, with loops."""
    B = res.B
    V = sampling_jackknife(res.design.counts(0, B), h, q=res.design.chance_absent)
    return V / (1 + res.orders.rho) + h.var(ddof=1) / B


def literal_noise(res, H):
    """Variance of the differences between rows and their mean, over m (m - 1)."""
    m, mean = H.shape[1], H.mean(axis=1)
    return sum(literal_variance(res, H[:, j] - mean) for j in range(m)) / (m * (m - 1))


# What is added


def added(res, other, **options):
    """Sampling variances for the population, less those for the rows as they are."""
    results = [
        res.avg_predictions(other, se=se, **options).results.components.sampling
        for se in ("sample", "population")
    ]
    return results[1] - results[0]


def test_other_rows_add_their_spread_without_errors(res, other):
    H = learner_values(res, other)
    spread, noise = H.mean(axis=0).var(ddof=1) / 25, literal_noise(res, H)
    assert noise > 0.05 * spread
    assert_allclose(added(res, other), spread - noise, rtol=1e-9)


def test_the_noise_is_a_mean_variance_less_that_of_the_mean(res, other):
    """The same by the covariance of two rows: sum of w^2 (V_i - C)."""
    plain = res.with_variance("jackknife")
    H = learner_values(res, other)
    each = estimate(res.design, H, "jackknife").components.total.mean()
    whole = estimate(res.design, H.mean(axis=1)[:, None], "jackknife")
    C = (whole.components.total - each / 25) / (1 - 1 / 25)
    found = plain.avg_predictions(other, se="population").results.points.noise
    assert_allclose(found.covariance[0], (each - C) / 25, rtol=1e-9)


def test_levels_have_their_own_noise(res, other):
    found = added(res, other, by="g")
    for place, level in enumerate("ab"):
        H = learner_values(res, other[other["g"] == level])
        m = H.shape[1]
        literal = H.mean(axis=0).var(ddof=1) / m - literal_noise(res, H)
        assert_allclose(found[place], literal, rtol=1e-9)
    noise = res.avg_predictions(other, by="g", se="population").results.points.noise
    assert noise.covariance[0, 1] == 0


def test_effects_and_slopes_have_the_noise_of_theirs(res, other):
    move = {"x1": (0.2, 0.7), "x4": (0.3, 0.6)}
    found = res.avg_effects(move, other, by="g", se="population").results.points
    literal = []
    for name, ends in move.items():
        for level in "ab":
            rows = other[other["g"] == level]
            low, high = (learner_values(res, rows.assign(**{name: x})) for x in ends)
            literal.append(literal_noise(res, high - low))
    assert_allclose(np.diag(found.noise.covariance), literal, rtol=1e-8)
    low, high = secant_ends(other["x4"], 0.4, res.recipe.data["x4"])
    assert np.ptp(high - low) > 0.01
    H = learner_values(res, other.assign(x4=high))
    H = (H - learner_values(res, other.assign(x4=low))) / (high - low)
    slopes = res.avg_slopes("x4", other, step=0.4, se="population").results.points
    assert_allclose(slopes.noise.covariance[0], literal_noise(res, H), rtol=1e-8)


def test_classes_have_their_own_noise():
    iris = vs.datasets.iris()
    name = iris.columns[-1]
    formula = f"{name} ~ Q('{iris.columns[0]}') + Q('{iris.columns[1]}')"
    res = vs.fit(formula, iris.iloc[::3], B=80, k=25, rng=2, n_jobs=1)
    rows = iris.iloc[1::6].reset_index(drop=True)
    H = learner_values(res, rows).reshape(res.B, len(rows), 3)
    literal = [literal_noise(res, H[:, :, j]) for j in range(3)]
    noise = res.avg_predictions(rows, se="population").results.points.noise.covariance
    assert_allclose(np.diag(noise), literal, rtol=1e-8)
    assert_allclose(noise.sum(axis=0), 0, atol=1e-9 * noise.max())


def test_fresh_rows_of_clustered_fits_are_their_own_units(data, other):
    res = vs.fit("y ~ x1 + x4", data, B=150, k=8, groups="c", rng=1, n_jobs=1)
    assert res.design.n == 15
    rows = other.assign(c=0)
    H = learner_values(res, rows)
    literal = H.mean(axis=0).var(ddof=1) / 25 - literal_noise(res, H)
    assert_allclose(added(res, rows), literal, rtol=1e-9)


def test_training_rows_have_no_noise_to_take_out(res, data):
    assert res.avg_predictions(se="population").results.points.noise is None
    part = res.avg_predictions(data.iloc[:9], se="population").results.points
    assert part.shared
    assert part.noise is None


def test_rows_that_differ_by_errors_alone_add_nothing():
    """No interaction in the data; then a strong one."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    noise = smf.ols("e ~ a * b", frame.assign(e=rng.normal(size=150))).fit().resid
    frame["y"] = frame["a"] + noise
    rows = pd.DataFrame(rng.normal(size=(8, 2)), columns=["a", "b"])
    found = []
    for strength in (0.0, 1.0):
        y = frame["y"] + strength * frame["a"] * frame["b"]
        res = vs.fit("y ~ a * b", frame.assign(y=y), kernel="ols", k=150, B=500, rng=1)
        both = [
            res.avg_slopes(["a", "b"], rows, step=1.0, se=se).results
            for se in ("sample", "population")
        ]
        assert np.linalg.eigvalsh(both[1].cov_params()).min() > -1e-12
        found.append(both[1].components.sampling - both[0].components.sampling)
    assert (found[0] == 0).all()
    assert (found[1] > 0).all()


def test_degrees_of_freedom_see_what_is_left_of_the_influences(res, other):
    found = res.avg_predictions(other, se="population").results
    joined = joint_influence(res.design, found.values, "jackknife", found.points)
    c, g = joined.learners[:, 0], found.points.values[:, 0]
    g = g * np.sqrt(1 - found.points.noise.covariance[0, 0] / np.sum(g**2))
    q = (res.design.counts(0, res.B) == 0).mean()
    noise = (1 - q) / q * found.components.monte_carlo
    squares, fourths = (np.array([np.sum(c**j) + np.sum(g**j)]) for j in (2, 4))
    literal = influence_concentration(squares, fourths, noise, 60)
    assert_allclose(found.estimates.scaled.concentration, literal, rtol=1e-9)


# Several averages at once


def test_contrasts_of_curves_are_effects(res, other):
    curve = res.partial_dependence("x4", data=other, grid=[0.2, 0.8], se="population")
    direct = res.avg_effects({"x4": (0.2, 0.8)}, other, se="population").results
    contrast = curve.results.t_test([[-1.0, 1.0]])
    noise = [one.points.noise.covariance for one in (contrast, direct)]
    assert_allclose(noise[0], noise[1], rtol=1e-9)
    assert_allclose(contrast.bse, direct.bse, rtol=1e-9)
    assert_allclose(contrast.df, direct.df, rtol=1e-9)


def test_curves_in_parts_have_the_same_noise(res, other, monkeypatch):
    asked = {"data": other, "grid": [0.2, 0.5, 0.8], "se": "population"}
    whole = res.partial_dependence("x4", **asked)
    monkeypatch.setattr("vstatkit.ensemble.marginal_averages.STACKED_ROWS", 60)
    assert_allclose(res.partial_dependence("x4", **asked).bse, whole.bse, rtol=1e-12)
    H = learner_values(res, other.assign(x4=0.5))
    found = whole.results.points.noise.covariance[1, 1]
    assert_allclose(found, literal_noise(res, H), rtol=1e-8)


def test_covariances_take_the_noise_out_too(res, other):
    moves = {"x1": (0.1, 0.9), "x4": (0.3, 0.9)}
    found = res.avg_effects(moves, other, se="population")
    points = found.results.points
    joined = joint_influence(res.design, found.results.values, "jackknife", points)
    both = joined.added_variance(joint=True)
    assert_allclose(np.diag(both), joined.added_variance())
    assert_allclose(both, points.values.T @ points.values - points.noise.covariance)
    a, b = (
        learner_values(res, other.assign(**{name: high}))
        - learner_values(res, other.assign(**{name: low}))
        for name, (low, high) in moves.items()
    )
    crossed = (literal_noise(res, a + b) - literal_noise(res, a - b)) / 4
    assert_allclose(points.noise.covariance[0, 1], crossed, rtol=1e-7)
    matrix = found.cov()
    assert_allclose(np.sqrt(np.diag(matrix)), found.bse, rtol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() > 0


def test_averages_without_a_variance_have_no_covariance():
    rows = np.array([[1.0, 1.0], [-1.0, 0.0]])
    noise = RowNoise(np.diag([2.0, 0.5]), np.ones(2))
    joined = JointInfluence(np.zeros((1, 2)), RowInfluence(rows, False, noise))
    assert_allclose(joined.added_variance(joint=True), [[0, 0], [0, 0.75]])
    squares, cubes, fourths = joined.powers()
    assert_allclose(squares, [0, 0.75])
    assert_allclose(cubes, [0, 0.75**1.5])
    assert_allclose(fourths, [0, 0.75**2])


def test_noise_may_be_indefinite_and_follows_combinations():
    noise = RowNoise(np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([1.0, -1.0]))
    matrix = np.array([[1 - 9, 2 - 3], [2 - 3, 4 - 1]])
    assert_allclose(noise.covariance, matrix)
    coefs, unit = np.array([[1.0, -2.0]]), np.array([2.0, 4.0])
    points = RowInfluence(np.ones((3, 2)), False, noise)
    assert_allclose(points.combine(coefs).noise.covariance, coefs @ matrix @ coefs.T)
    scaled = points.rescale(unit)
    assert_allclose(scaled.noise.covariance, matrix / np.outer(unit, unit))
    assert_allclose(scaled.values, 1 / unit * np.ones((3, 2)))


@pytest.mark.parametrize("c", [1e-200, 1e200])
def test_noise_follows_the_unit(data, other, c):
    def errors(unit):
        frame = data.assign(y=unit * data["y"])
        res = vs.fit("y ~ x1 + x4", frame, B=80, k=30, rng=1)
        found = res.avg_effects(data=other, se="population")
        return np.append(found.bse, found.t_test([[1.0, -1.0]]).bse)

    assert_allclose(errors(c) / c, errors(1.0), rtol=1e-9)


# Some rows stand for all


def test_few_rows_stand_for_many(rng):
    shares = sparse.csr_array(np.array([[0, 0.5, 0.2, 0, 0.3], [0.6, 0, 0, 0.4, 0]]))
    found = RowWeights.of(shares, 2)
    assert found.codes.tolist() == [0, 0, 1, 1]
    assert found.picked.indices.tolist() == [1, 4, 0, 3]
    # sqrt(G / (G - 1)) w as influences have it, and sqrt(G / s) for the others
    literal = [
        np.sqrt(3 / 2 * 3 / 2) * np.array([0.5, 0.3]),
        np.sqrt(2) * np.array([0.6, 0.4]),
    ]
    assert_allclose(found.scales, np.concatenate(literal))
    H = rng.normal(size=(7, 5))
    values = H @ found.stacked.toarray().T
    errors = found.split_averages(values, None).errors[:, :, 0]
    each = [
        row_influence(one[:, None], shares.toarray()[0], None, 5)[[1, 4], 0]
        for one in H
    ]
    assert_allclose(errors[:, :2], np.sqrt(3 / 2) * np.array(each))


def test_rows_are_picked_for_other_rows_and_the_population_alone(res, data, other):
    many = vs.datasets.mars(400, rng=4).assign(g="a")
    share = sparse.csr_array(np.full((1, 400), 1 / 400))

    def picked(rows, se, shares, times):
        averager = averager_of(res, sample_of(res, rows), se)
        return averager.weights(shares, times).codes.size

    assert picked(many, "sample", share, 1) == 0
    assert picked(data, "population", share, 1) == 0
    assert picked(many, "population", share, 1) == PICKED[1] == 100
    assert picked(many, "population", share, 40) == 50
    assert picked(many, "population", share, 5000) == PICKED[0] == 5


def test_all_averages_of_a_table_share_the_rows_to_pick(res, other, monkeypatch):
    asked, of = [], RowWeights.of

    def recorded(shares, most):
        asked.append(most)
        return of(shares, most)

    monkeypatch.setattr(RowWeights, "of", recorded)
    monkeypatch.setattr("vstatkit.ensemble.marginal_averages.PICKED_VALUES", 24)
    res.avg_effects(["x1", "x4"], other, se="population")
    res.partial_dependence("x4", data=other, grid=[0.2, 0.5, 0.8], se="population")
    iris = vs.datasets.iris()
    formula = f"{iris.columns[-1]} ~ Q('{iris.columns[0]}')"
    classes = vs.fit(formula, iris.iloc[::3], B=20, k=25, rng=2)
    classes.avg_predictions(iris.iloc[1::3].reset_index(drop=True), se="population")
    assert asked == [24 // 2, 24 // 2, 24 // 3, 24 // 3]


def test_picked_rows_have_the_noise_of_all(res, monkeypatch):
    rows = vs.datasets.mars(600, rng=4).assign(g="a")
    some = res.avg_predictions(rows, se="population").results.points
    monkeypatch.setattr("vstatkit.ensemble.marginal_averages.PICKED", (600, 600))
    every = res.avg_predictions(rows, se="population").results.points
    assert_allclose(some.noise.covariance, every.noise.covariance, rtol=0.25)
    H = learner_values(res, rows)
    assert_allclose(every.noise.covariance[0, 0], literal_noise(res, H), rtol=1e-8)


# The truth


def linear_values(counts, table, z, x):
    """Learners that average a table of (row, observation) over their subsample."""
    return counts @ table[np.ix_(x, z)].T / counts.sum(axis=1, keepdims=True)


def estimated(design, H):
    """Variance of the average for these rows, spread of the rows, noise, average."""
    m = H.shape[1]
    shares = np.full((1, m), 1 / m)
    weights = RowWeights.of(sparse.csr_array(shares), 100)
    found = weights.split_averages(H @ weights.stacked.toarray().T, None)
    errors = found.errors[:, :, None]
    noise = row_noise(Estimation(design, "jackknife"), errors, weights.codes, 1)
    total = estimate(design, found.values, "jackknife").components.total[0]
    g = row_influence(H.mean(axis=0)[:, None], shares[0], None, m)
    return total, np.sum(g**2), noise.covariance[0, 0], H.mean()


TABLE = np.array([[1.0, 4.0, -2.0], [0.5, 0.0, 3.0], [-1.0, 6.0, 2.5]])
"""What each of three kinds of observations says of each of three kinds of rows."""

TOGETHER = np.mean(
    (TABLE - TABLE.mean(axis=0) - TABLE.mean(axis=1)[:, None] + TABLE.mean()) ** 2
)
"""Variance of what a row and an observation do together."""


def test_the_variance_of_a_linear_statistic_is_exact_on_average():
    """All data sets of four observations with all pairs of rows."""
    n, m = 4, 2
    design = CompleteDesign(n, 2, False, 0)
    counts = design.counts(0, 6)
    found = [
        estimated(design, linear_values(counts, TABLE, z, x))
        for z in itertools.product(range(3), repeat=n)
        for x in itertools.product(range(3), repeat=m)
    ]
    V, spread, noise, mean = np.transpose(found)
    true = mean.var()
    assert_allclose((V + spread - noise).mean(), true, rtol=1e-10)
    assert_allclose(noise.mean(), TOGETHER / n / m, rtol=1e-10)
    assert TOGETHER / n / m > 0.1 * true


def test_the_noise_of_few_learners_is_counted_once():
    """Pairs of data sets and rows: the mean estimate is within four of its errors.

    It is far off if the noise has no part of the few learners, or is left in.
    """
    n, m, B, R = 12, 3, 30, 1000
    table = TABLE - TABLE.mean(axis=0) - TABLE.mean(axis=1)[:, None] + TABLE.mean()
    rng = np.random.default_rng(6)
    found, alone = [], []
    for _ in range(R):
        counts = np.array([rng.permutation(n) < 4 for _ in range(B)]).astype(float)
        H = linear_values(counts, table, *(rng.integers(3, size=s) for s in (n, m)))
        H = H + 5 * rng.normal(size=H.shape)
        design, _ = given_ensemble(
            counts, H, replace=False, groups=None, compares_groups=False
        )
        found.append(estimated(design, H))
        learners = (H - H.mean(axis=1, keepdims=True)).var(axis=0, ddof=1) / B
        alone.append(learners.sum() / (m * (m - 1)))
    V, spread, noise, mean = np.transpose(found)
    squares = (mean - mean.mean()) ** 2 * R / (R - 1)
    gap = V + spread - noise - squares
    error = gap.std() / np.sqrt(R)
    assert abs(gap.mean()) < 4 * error
    assert abs(gap.mean() + np.mean(alone)) > 8 * error
    assert abs(gap.mean() + noise.mean()) > 8 * error


def test_linear_models_against_the_delta_method():
    """Six rows and a weak slope: noise is a large part of their spread."""
    rng = np.random.default_rng(4)
    n, m = 150, 6
    frame = pd.DataFrame({"a": rng.normal(size=n)})
    frame["y"] = 0.1 * frame["a"] + rng.normal(size=n)
    rows = pd.DataFrame({"a": 3 * rng.normal(size=m)})
    res = vs.fit("y ~ a", frame, kernel="ols", k=n, B=4000, rng=1)
    fit = smf.ols("y ~ a", frame).fit()
    robust = fit.get_robustcov_results("HC0").cov_params()
    mean = np.array([1.0, rows["a"].mean()])
    variance = mean @ robust @ mean
    spread = rows["a"].var(ddof=1) / m
    slope = fit.params["a"] ** 2 - robust[1, 1]
    assert robust[1, 1] > 0.05 * fit.params["a"] ** 2
    found = res.avg_predictions(rows, se="population").results.components.sampling
    assert_allclose(found, variance + spread * slope, rtol=0.05)
    assert abs(variance + spread * fit.params["a"] ** 2 - found[0]) > 0.05 * found[0]
