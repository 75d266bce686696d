"""Questions about predictors, against the same numbers made by hand."""

import zlib
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests

import vstatkit as vs
from vstatkit.ensemble import mean_loss_difference
from vstatkit.ensemble.conditional_copies import Copier
from vstatkit.ensemble.loss_differences import compare_losses, target_values
from vstatkit.ensemble.mean_loss_difference import (
    PAIRING_SEED,
    MeanLossDifference,
    Pairs,
    average_differences,
)
from vstatkit.ensemble.out_of_bag_by_learner import OutOfBagPredictor
from vstatkit.ensemble.regression_on_other_predictors import (
    OtherPredictors,
    predict_leave_one_out,
)
from vstatkit.ensemble.regrown_learners import refit_values
from vstatkit.inference.linear_tests import benjamini_hochberg, holm
from vstatkit.inference.pooled_test import (
    Traces,
    _degrees,
    _error_of_second,
    _powers,
    _unbiased_traces,
    covariance_traces,
    pooled_sf,
    pooled_test,
)
from vstatkit.results.importance import WEIGHT_POWER
from vstatkit.results.predictor_tests import PredictorQuestion
from vstatkit.sampling.design import IidDesign, to_dense
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.studies.dgps import DGPS
from vstatkit.variance.registry import estimate_components, estimate_covariance

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.VstatkitWarning")


def drawn(name, seed=1):
    return DGPS[name](np.random.default_rng(seed))


@pytest.fixture(scope="module")
def data():
    """Return a chain of correlated predictors; x2 does nothing, given x1 and x3."""
    return drawn("correlated")


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ .", data, B=200, rng=3)


def copier_of(res, data):
    frame = data.drop(columns="y")
    return Copier(frame, res.seed)


# The joint test


def literal_traces(design, h, V, M):
    """Write the traces out, unit by unit and matrix by matrix."""
    n, B = design.n, len(h)
    N = to_dense(design.counts(0, B))
    g = [((N[:, i] - N[:, i].mean())[:, None] * h).mean(axis=0) for i in range(n)]
    S = N.var(axis=0).mean() * M
    a = np.trace(V) / (sum(one @ one for one in g) - n * np.trace(S))
    A = [a * (np.outer(one, one) - S) + M / n for one in g]
    C, S = sum(A), a * S
    square = sum(one @ one for one in A)
    cubes = sum(np.trace(one @ one @ one) for one in A)
    W, t = C - M, np.trace(S)
    noise = W * t + np.trace(W) * S + W @ S + S @ W + n * (t * S + S @ S)
    twice = np.trace(square @ C) - cubes
    second = np.trace(C @ C) - np.trace(square)
    second += max(np.trace(square - noise), 0) / 3
    third = np.trace(C @ C @ C) - 3 * twice - cubes
    first = np.trace(S @ S) ** 2 + np.trace(S @ S @ S @ S)
    error = 4 * n**2 * first + 16 * np.trace(W @ W @ W @ S)
    error += 8 * n * max(np.trace(W @ S @ W @ S) - n * first, 0)
    return second, third + max(twice - np.trace(noise @ C), 0), np.sqrt(error)


def posterior_mean(estimate, error, low, high):
    x = np.linspace(low, high, 100_001)
    weights = np.exp(-(((x - estimate) / error) ** 2) / 2)
    return np.trapezoid(weights * x, x) / np.trapezoid(weights, x)


def literal_pooled(design, h, method, orders):
    """Write the test out, sum by sum."""
    m = h.shape[1]
    V, M = estimate_covariance(method, design, h, orders)
    parts = estimate_components(method, design, h, orders)
    S = M * (parts.noise[0] / parts.monte_carlo[0])
    tr_2 = sum(S[j, i] ** 2 for j in range(m) for i in range(m))
    cross = sum(S[j, i] * V[j, i] for j in range(m) for i in range(m))
    error = np.sqrt(2 * design.n * tr_2 + 4 * cross)
    z = np.trace(V) / error
    assert z > 2
    positive = np.trace(V) + error * stats.norm.pdf(z) / stats.norm.cdf(z)
    trace = positive + np.trace(M)
    total = np.trace(V) + np.trace(M)
    second, third, noise = literal_traces(design, h, V, M)
    square = total**2 - error**2
    second = posterior_mean(second / square, noise / square, 1 / m, 1)
    third /= total**3 - 3 * total * error**2
    third = min(max(third, second**2), second**1.5)
    unknown = 0 if orders is None else orders.relative_error * positive
    df_denom = 2 * trace**2 / (error**2 + unknown**2)
    statistic = (h.mean(axis=0) ** 2).sum() / trace
    return statistic, 1 / second, df_denom, second**3 / third**2


@pytest.mark.parametrize("method", ["hoeffding", "jackknife", "ij_u", "corrected_v"])
def test_the_joint_test_is_its_formula(res, data, method):
    # Two groups of points: differences within a group have much in common.
    X = res.recipe.task.kernel.X
    points = np.concatenate([X[:8] * 0.2, X[8:12] + 1.5])
    h = res.predictor.values(points)
    h = h - h.mean() + 0.5
    orders = res.orders if method == "hoeffding" else None
    found = pooled_test(res.design, h, method, orders)
    expected = literal_pooled(res.design, h, method, orders)
    statistic, df_num, df_denom, df_tail = expected
    assert_allclose(found.statistic, statistic, rtol=1e-9)
    assert 1 < df_num < 12
    assert 1 < df_tail <= df_num * (1 + 1e-9)
    assert_allclose(found.df_num, df_num, rtol=1e-6)
    assert_allclose(found.df_denom, df_denom, rtol=1e-9)
    assert_allclose(found.df_tail, df_tail, rtol=1e-5)
    assert_allclose(found.pvalue, pooled_sf(*expected), rtol=1e-5)
    other = pooled_test(res.design, 1e-150 * h, method, orders)
    assert_allclose(other.pvalue, found.pvalue)


def test_traces_are_their_formula(res):
    h = res.predictor.values(res.recipe.task.kernel.X[:6] * 0.2)
    V, M = estimate_covariance("jackknife", res.design, h)
    found = covariance_traces(res.design, h, np.trace(V), M)
    assert_allclose(found, literal_traces(res.design, h, V, M), rtol=1e-8)
    assert covariance_traces(res.design, h, -1.0, M) is None


def test_degrees_of_freedom_of_traces_with_errors():
    found = _degrees(Traces(20.0, 75.0, 0.5), 10.0, 2.0, 30)
    second = posterior_mean(20 / 96, 0.5 / 96, 1 / 30, 1)
    third = 75 / (1000 - 3 * 10 * 4)
    assert second**2 < third < second**1.5
    assert_allclose(found, (1 / second, second**3 / third**2), rtol=1e-6)
    assert _degrees(Traces(0.0, 0.0, 0.0), 10.0, 0.0, 30) == (30, pytest.approx(30))
    assert _degrees(Traces(1.0, 1.0, 0.0), 0.0, 0.0, 30) == (1, 1)


def test_the_tail_is_f_if_all_directions_vary_alike():
    for statistic, df_num, df_denom in [
        (2.0, 7.0, 30.0),
        (9.0, 4.0, 12.0),
        (0.3, 2, 5),
    ]:
        expected = stats.f.sf(statistic, df_num, df_denom)
        assert_allclose(pooled_sf(statistic, df_num, df_denom, df_num), expected)
        nearly = pooled_sf(statistic, df_num, df_denom, df_num * (1 - 1e-9))
        assert_allclose(nearly, expected, rtol=1e-6)


@pytest.mark.parametrize("df_denom", [np.inf, 25.0])
def test_the_tail_is_that_of_a_sum_of_chi_squares(df_denom):
    """One direction varies nine times as much: 400,000 draws, error below 0.0004."""
    rng = np.random.default_rng(8)
    weights = np.array([9.0, *np.ones(9)]) / 18
    drawn = rng.chisquare(1, size=(400_000, 10)) @ weights
    if np.isfinite(df_denom):
        drawn /= rng.chisquare(df_denom, size=400_000) / df_denom
    second, third = (weights**2).sum(), (weights**3).sum()
    df = 1 / second, df_denom, second**3 / third**2
    for level in (0.1, 0.05, 0.01):
        at = np.quantile(drawn, 1 - level)
        assert abs(pooled_sf(at, *df) / level - 1) < 0.06
        box = pooled_sf(at, df[0], df_denom, df[0])
    assert box / level < 0.8  # two moments are not enough


def test_traces_of_powers_are_those_of_the_covariance():
    """Errors times vectors, learners without noise; 20,000 data sets."""
    rng = np.random.default_rng(9)
    k = rng.normal(size=(12, 5)) * [3.0, 1, 1, 1, 1]
    C = k.T @ k
    zero = np.zeros((5, 5))
    found = [
        _unbiased_traces(rng.normal(size=(12, 1)) * k, zero, zero)
        for _ in range(20_000)
    ]
    second, third, error = np.mean(found, axis=0)
    assert error == 0
    assert abs(second / np.trace(C @ C) - 1) < 0.03
    cubes = sum((one @ one) ** 3 for one in k)  # these are left out
    assert abs(third / (np.trace(C @ C @ C) - cubes) - 1) < 0.05


def test_noise_of_learners_does_not_add_to_traces():
    rng = np.random.default_rng(10)
    k = rng.normal(size=(12, 5))
    root = 0.7 * rng.normal(size=(5, 5))
    S, M = root @ root.T, 0.3 * np.eye(5)
    C = k.T @ k + M
    found = []
    for _ in range(20_000):
        g = rng.normal(size=(12, 1)) * k + rng.normal(size=(12, 5)) @ root.T
        found.append(_unbiased_traces(g, S, M))
    assert abs(np.mean(found, axis=0)[0] / np.trace(C @ C) - 1) < 0.03
    assert np.trace(C @ C) * 1.2 < np.trace(C @ C) + 12 * np.trace(S) ** 2


@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
def test_the_error_of_the_second_trace(size):
    """Noise of learners alone differs between draws: 3,000 of them."""
    rng = np.random.default_rng(11)
    k, root = size * rng.normal(size=(80, 4)), rng.normal(size=(4, 4))
    S = root @ root.T
    drawn = []
    for _ in range(3000):
        g = k + rng.normal(size=(80, 4)) @ root.T
        C = g.T @ g - 80 * S
        drawn.append(np.vdot(C, C) - _powers(g, S, C)[0])
    true = k.T @ k
    first = np.trace(S @ S) ** 2 + np.trace(S @ S @ S @ S)
    # The function takes off what noise would add to an estimate of `true`.
    plain = _error_of_second(true, S, 80) ** 2
    both = np.trace(true @ S @ true @ S)
    plain += 8 * 80 * (both - max(both - 80 * first, 0))
    assert abs(np.sqrt(plain) / np.std(drawn) - 1) < 0.12


def test_the_joint_test_holds_its_size_for_means():
    """Subsample means of independent normal vectors; 400 data sets, error 1.1 %."""
    rng = np.random.default_rng(5)
    mix = rng.normal(size=(8, 8))
    pvalues = []
    for seed in range(400):
        design = IidDesign(60, 20, replace=True, seed=seed)
        z = rng.normal(size=(60, 8)) @ mix
        h = design.counts(0, 150) @ z / 20
        pvalues.append(pooled_test(design, h, "corrected_v").pvalue)
    assert 0.02 < np.mean(np.array(pvalues) < 0.05) < 0.085
    assert 0.40 < np.mean(pvalues) < 0.60


def test_shards_are_replicates():
    rng = np.random.default_rng(6)
    data = pd.DataFrame(rng.normal(size=(400, 3)), columns=["x1", "x2", "y"])
    res = vs.fit("y ~ x1 + x2", data, design="shards", n_shards=20, B=200, k=15, rng=1)
    h = res.predictor.values(res.recipe.task.kernel.X[:6])
    found = pooled_test(res.design, h, res.variance)
    means = h.reshape(20, -1, 6).mean(axis=1)
    groups = res.design.groups(200)
    means = np.stack([h[groups == g].mean(axis=0) for g in range(20)])
    C = np.cov(means.T) / 20
    assert_allclose(found.statistic, (h.mean(axis=0) ** 2).sum() / np.trace(C))
    assert found.df_denom == 19
    square = ((C**2).sum() - np.trace(C) ** 2 / 19) * 19**2 / (18 * 21)
    assert_allclose(found.df_num, np.trace(C) ** 2 / square)
    saved = res.importance(["x1"])
    assert 0 < saved.frame["p_value"].item() < 1
    assert saved.conf_int().isna().all(axis=None)  # units are in one shard only
    assert saved.plot().get_xlabel() == "reduction in out-of-bag loss"


def test_learners_that_agree_on_a_difference_have_no_test():
    design = IidDesign(10, 5, replace=True, seed=1)
    assert pooled_test(design, np.zeros((20, 3)), "ij_u").pvalue == 1
    sure = pooled_test(design, np.ones((20, 3)), "ij_u")
    assert np.isnan([sure.statistic, sure.pvalue]).all()


# Learners grown again


@pytest.mark.parametrize("kernel", ["forest", "ols"])
def test_learners_grown_again_are_the_same(data, kernel):
    res = vs.fit("y ~ .", data, B=30, rng=3, kernel=kernel)
    X = res.recipe.task.kernel.X
    again = refit_values(res.recipe.task, X[:5], 20, None)
    assert_array_equal(again, res.predictor.values(X[:5])[:20])


def test_strong_predictors_are_found():
    """Also with other seeds than this: p was below 1e-4 in twelve of twelve."""
    res = vs.fit("y ~ .", vs.datasets.mars(200, rng=3), B=200, rng=3)
    assert res.importance(["x4"]).frame["p_value"].item() < 1e-4


def test_shadows_are_not_called_real(res):
    frame = res.importance(["x1", "x2", "x6"]).frame
    assert frame.loc["x1", "p_value"] < 0.01
    assert (frame.loc[["x2", "x6"], "p_value"] > 0.05).all()
    plain = res.importance(["x2"], how="permute").frame
    assert plain["share"].item() > 0.05  # a proxy saves much there: no p-value
    assert list(plain) == ["importance", "std_error", "share"]


def test_learners_that_were_not_kept_are_grown(data, res):
    none = vs.fit("y ~ .", data, B=200, rng=3, keep_learners=False, variance="ij_u")
    kept = res.with_variance("ij_u")
    pd.testing.assert_frame_equal(
        none.importance(["x2"]).frame, kept.importance(["x2"]).frame
    )


@pytest.mark.parametrize("name", ["three", "binary", "clusters", "missing", "levels"])
def test_all_kinds_of_data_are_asked(name):
    dgp = DGPS[name]
    res = vs.fit(
        "y ~ .", drawn(name), B=60, rng=1, groups=dgp.groups, missing=dgp.missing
    )
    names = list(res.predictor.coding.variables)
    frame = res.importance(copies=2, learners=60).frame
    assert list(frame.index) == names
    assert (frame["std_error"] > 0).all()
    assert frame["p_value"].between(0, 1).all()
    together = res.importance([tuple(names[:2])], copies=2, learners=60).frame
    assert together.index.item() == ", ".join(names[:2])
    assert 0 < together["p_value"].item() <= 1
    found = res.interaction_test(names[0], names[1], rows=5, learners=60)
    assert 0 <= found.pvalue <= 1


# Importance


def out_of_bag(res, X, b):
    held = res.design.counts(b, b + 1)[0] > 0
    return np.where(
        held, np.nan, res.predictor.kernel.predict(res_learner(res, b), X).T
    )


def res_learner(res, b):
    return res.predictor.learners[b]


def out_of_bag_mean(res, X):
    return np.nanmean([out_of_bag(res, X, b)[0] for b in range(200)], axis=0)


def test_importance_by_permutation_is_a_difference_of_losses(res, data):
    found = res.importance(["x1", "x2"], copies=2, learners=200, how="permute")
    y = data["y"].to_numpy()
    own = out_of_bag_mean(res, res.recipe.task.kernel.X)
    assert_allclose(found.loss, np.mean((y - own) ** 2))
    assert_allclose(found.loss, res.scores.table["OOB RMSE"] ** 2)
    losses = [
        (y - out_of_bag_mean(res, res.predictor.coding.matrix(one))) ** 2
        for one in copier_of(res, data).copies(["x2"], "permute", 2)
    ]
    saved = np.mean(losses, axis=0) - (y - own) ** 2
    row = found.frame.loc["x2"]
    assert_allclose(row["importance"], saved.mean())
    assert_allclose(row["share"], saved.mean() / found.loss)
    assert np.isnan(row["std_error"])


def test_importance_is_the_orthogonal_form(res, data):
    found = res.importance(["x2"], copies=2, learners=200)
    y, name = data["y"].to_numpy(), "x2"
    own = out_of_bag_mean(res, res.recipe.task.kernel.X)
    copies = np.mean(
        [
            out_of_bag_mean(res, res.predictor.coding.matrix(one))
            for one in copier_of(res, data).copies([name], "conditional", 2)
        ],
        axis=0,
    )
    rng = stream(res.seed, zlib.crc32(name.encode()), Purpose.QUESTION)
    given = predict_leave_one_out(
        y, OtherPredictors(data.drop(columns=["y", name])), rng
    )
    saved = 2 * (y - given.mean) * (own - copies)
    row = found.frame.loc[name]
    assert_allclose(row["importance"], saved.mean())
    assert_allclose(row["share"], saved.mean() / found.loss)
    # The test weights rows by how far they can be predicted, and knows the null.
    asked = PredictorQuestion.of(res, 200, "importance")
    full = asked.reader([asked.recipe.task.kernel.X])
    tables = [
        res.predictor.coding.matrix(one)
        for one in copier_of(res, data).copies([name], "conditional", 2)
    ]
    parts = compare_losses(
        full,
        tables,
        y,
        np.arange(200),
        None,
        expected=given.mean[:, None],
    )
    assert_allclose(parts.saved, saved)
    weights = (1 - given.leverage) ** WEIGHT_POWER
    null = average_differences(
        parts.weighted(weights),
        res.design,
        np.arange(200),
        freedom=np.average(given.leverage, weights=weights),
    )
    assert_allclose(row["p_value"], null.pvalue)
    assert row["p_value"] != stats.t.sf(row["importance"] / row["std_error"], 199)


def test_weights_count_in_importance(data):
    """Whole weights count like copies of rows, in the mean, the share and the loss."""
    weights = np.random.default_rng(4).integers(0, 4, 200)
    plain = vs.fit("y ~ .", data, B=200, rng=3)
    given = vs.fit("y ~ .", data, B=200, rng=3, weights=weights)
    found = given.importance(["x1"], copies=2, learners=200)
    asked = PredictorQuestion.of(given, 200, "importance")
    full = asked.reader([asked.recipe.task.kernel.X])
    tables = [
        given.predictor.coding.matrix(one)
        for one in copier_of(given, data).copies(["x1"], "conditional", 2)
    ]
    key = zlib.crc32(b"x1")
    y = data["y"].to_numpy()
    others = OtherPredictors(data.drop(columns=["y", "x1"]))
    expected = predict_leave_one_out(
        y, others, stream(given.seed, key, Purpose.QUESTION)
    )
    parts = compare_losses(
        full,
        tables,
        y,
        np.arange(200),
        None,
        expected=expected.mean[:, None],
    )
    copied = np.repeat(np.arange(200), weights)
    row = found.frame.loc["x1"]
    assert_allclose(row["importance"], parts.saved[copied].mean())
    assert_allclose(found.loss, parts.base[copied].mean())
    assert_allclose(row["share"], row["importance"] / found.loss)
    tenfold = vs.fit("y ~ .", data, B=200, rng=3, weights=10.0 * weights)
    pd.testing.assert_frame_equal(
        tenfold.importance(["x1"], copies=2, learners=200).frame, found.frame
    )
    equal = vs.fit("y ~ .", data, B=200, rng=3, weights=np.full(200, 3.0))
    pd.testing.assert_frame_equal(
        equal.importance(["x1"], copies=2, learners=200).frame,
        plain.importance(["x1"], copies=2, learners=200).frame,
    )


def test_sets_of_predictors_are_tested_together(data, res):
    """A predictor twice is found by neither copy alone, but by both together."""
    noise = np.random.default_rng(8).normal(0, 1e-6, 200)
    twice = data[["y", "x1", "x3"]].assign(again=data["x1"] + noise)
    fit = vs.fit("y ~ .", twice, B=200, rng=3)
    frame = fit.importance(["x1", "again", ("x1", "again"), ["x3"]]).frame
    assert list(frame.index) == ["x1", "again", "x1, again", "x3"]
    assert (frame.loc[["x1", "again"], "p_value"] > 0.05).all()
    assert frame.loc["x1, again", "p_value"] < 1e-6
    alone = fit.importance("x3").frame["p_value"].item()
    assert frame.loc["x3", "p_value"] == alone


def test_the_order_of_a_set_of_predictors_does_not_matter():
    rng = np.random.default_rng(7)
    data = pd.DataFrame({"a": rng.normal(size=80), "g": rng.choice([*"uvw"], 80)})
    data["y"] = data["a"] + (data["g"] == "u") + rng.normal(size=80)
    res = vs.fit("y ~ a + g", data, B=60, rng=1)
    for how in ("conditional", "permute"):
        ways = (("a", "g"), ("g", "a"), ["g", "a", "g"])
        found = [res.importance([way], how=how, copies=3).frame for way in ways]
        pd.testing.assert_frame_equal(found[0], found[1], check_exact=True)
        pd.testing.assert_frame_equal(found[0], found[2], check_exact=True)
        assert list(found[0].index) == ["a, g"]


def test_names_and_order_of_levels_do_not_matter_to_importance():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 12, (150, 2))
    data = pd.DataFrame({"x": rng.normal(size=150)})
    data["y"] = codes[:, 0] % 3 + data["x"] + rng.normal(size=150)

    def frame(order):
        names = np.array([f"{place:02d}" for place in order])
        made = data.assign(
            f=pd.Categorical(names[codes[:, 0]], categories=sorted(names)),
            g=np.array(["b", "a", "c"])[order[:3].argsort()][codes[:, 1] % 3],
        )
        res = vs.fit("y ~ f + g + x", made, B=100, rng=1)
        return res.importance(copies=3, learners=100).frame

    first = frame(np.arange(12))
    for seed in (1, 2):
        order = np.random.default_rng(seed).permutation(12)
        pd.testing.assert_frame_equal(frame(order), first, rtol=1e-6)


def test_parts_of_the_orthogonal_form_are_derivatives(res, data):
    full, reduced = readers(res, data, 20)
    y, rows = data["y"].to_numpy(), np.arange(200)
    expected = 0.5 * y[::-1, None]
    found = compare_losses(full, reduced.tables, y, rows, None, expected=expected)
    own, weights = full.outside(rows)
    change = own[..., 0, 0] - reduced.outside(rows)[0][..., 0, 0]

    def mean(weight):
        w = np.ones(20)
        w[7] = weight
        times = w @ weights
        known = times > 0
        saved = 2 * (y - expected[:, 0]) * (w @ change) / times
        return saved[known].mean()

    slope = (mean(1 + 1e-6) - mean(1 - 1e-6)) / 2e-6
    assert_allclose(np.mean(found.parts[7]), slope, rtol=1e-4)


def test_both_forms_estimate_the_same():
    """With ideal copies: y = x1 + x2 + e, independent predictors, 20 data sets."""
    both = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame(rng.normal(size=(120, 2)), columns=["x1", "x2"])
        data["y"] = data["x1"] + data["x2"] + rng.normal(size=120)
        res = vs.fit("y ~ x1 + x2", data, B=100, rng=seed, n_jobs=1)
        both.append(
            [
                res.importance(["x1"], how=how, copies=5, learners=100)
                .frame["importance"]
                .item()
                for how in ("conditional", "permute")
            ]
        )
    ours, plain = np.transpose(both)
    error = np.std(ours - plain) / np.sqrt(20)
    assert abs(np.mean(ours - plain)) < 3 * error
    assert error < 0.1 * np.mean(plain)


@pytest.mark.slow
def test_intervals_of_importance_cover_its_expectation():
    """y = x1 + e, 150 rows; 100 data sets, so that 95 % has an error of 2.2 points."""
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=150)
        data = pd.DataFrame({"x1": x, "y": x + rng.normal(size=150)})
        res = vs.fit("y ~ x1", data, B=200, rng=seed, n_jobs=1).importance(
            copies=5, learners=200
        )
        found.append([*res.frame.iloc[0][:2], *res.conf_int().iloc[0]])
    estimate, error, lower, upper = np.transpose(found)
    assert 0.75 < np.mean(error**2) / np.var(estimate) < 1.4
    inside = (lower <= estimate.mean()) & (estimate.mean() <= upper)
    assert 0.90 <= inside.mean() <= 0.99


@pytest.mark.parametrize("kernel", ["forest", "tree"])
def test_what_is_the_same_in_every_row_saves_nothing(data, kernel):
    """Not even rounding errors, which would have a p-value like any other."""
    constant = data[["y", "x1"]].assign(same=3.0, one="a")
    res = vs.fit("y ~ .", constant, B=60, rng=1, kernel=kernel)
    frame = res.importance().frame.loc[["same", "one"]]
    assert (frame[["importance", "std_error"]] == 0).all(axis=None)
    assert (frame["p_value"] == 1).all()


def literal_error(saved, parts, counts, units=None):
    """Count rows, pairs of rows (of some units), and learners one by one."""
    L, n = counts.shape
    p, absent = parts / n, counts == 0
    g = [sum(p[b, j] for j in range(n)) for b in range(L)]
    rows = (saved - saved.mean()) / n
    total = n / (n - 1) * (np.sum(rows**2) - np.sum(p**2))
    total += L / (L - 1) * np.sum(np.square(g))
    pairs = list(permutations(range(n) if units is None else units, 2))
    return np.sqrt(
        total
        + n * (n - 1) / len(pairs) * sum(in_common(p, absent, i, j) for i, j in pairs)
    )


def in_common(p, absent, i, j):
    """What row j does to row i times what i does to j, without their noise."""
    L = len(p)
    without_i, without_j = absent[:, i], absent[:, j]
    of_j = -L * np.mean(p[without_j, i])
    of_i = -L * np.mean(p[without_i, j])
    # of the learners without one, the share that saw the other
    share_i = np.mean(~without_j[without_i])
    share_j = np.mean(~without_i[without_j])
    chance = L**2 / (without_i.sum() * without_j.sum()) * np.sum(p[:, i] * p[:, j])
    return of_i * of_j - share_i * share_j * chance


def readers(res, data, L=200):
    X, task = res.recipe.task.kernel.X, res.recipe.task
    copy = next(copier_of(res, data).copies(["x1"], "conditional", 1))
    Z = res.predictor.coding.matrix(copy)
    learners = res.predictor.learners[:L]
    return OutOfBagPredictor(task, learners, (X,)), OutOfBagPredictor(
        task, learners, (Z,)
    )


def test_errors_of_importance_count_rows_and_learners(res, data):
    full, reduced = readers(res, data)
    y, rows = data["y"].to_numpy(), np.arange(200)
    found = compare_losses(full, reduced.tables, y, rows, None)
    assert_allclose(found.parts.sum(axis=0), 0, atol=1e-10)
    one = average_differences(found, res.design, rows)
    counts = to_dense(res.design.counts(0, 200))
    assert_allclose(one.error, literal_error(found.saved, found.parts, counts))
    alone = average_differences(found, res.design, rows, through=False)
    assert_allclose(alone.error, found.saved.std(ddof=1) / np.sqrt(200))
    clusters = average_differences(
        found, IidDesign(50, 20, True, 1), rows // 4, through=False
    )
    sums = (found.saved - found.saved.mean()).reshape(50, 4).sum(axis=1)
    assert_allclose(clusters.error, np.sqrt(50 / 49 * np.sum(sums**2)) / 200)
    assert clusters.df == 49


def test_degrees_of_freedom_of_regressions_make_the_error_larger(res, data):
    """By algebra for projections, see `average_differences`."""
    n, K = 40, 10
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(n, K)))[0]
    eye, S, h = np.eye(n), Q @ Q.T, K / n
    # E[(e'Au)^2] over independent e, u is |A|^2; squared products: sum (R R')_ii^2.
    true = np.sum(((eye - S) / (1 - h) ** 2) ** 2)
    said = n * (1 / (1 - h)) ** 2
    assert_allclose(true / said, 1 / (1 - h))
    full, reduced = readers(res, data)
    rows = np.arange(200)
    found = compare_losses(full, reduced.tables, data["y"].to_numpy(), rows, None)
    plain = average_differences(found, res.design, rows, through=False)
    more = average_differences(found, res.design, rows, through=False, freedom=h)
    assert_allclose(more.error, plain.error / np.sqrt(1 - h))
    both = [
        average_differences(found, res.design, rows, freedom=f).error for f in (0, h)
    ]
    assert both[0] < both[1] < both[0] / np.sqrt(1 - h)


def test_the_third_cumulant_counts_triples(res, data, monkeypatch):
    full, reduced = readers(res, data, 60)
    y = data["y"].to_numpy()
    found = compare_losses(full, reduced.tables, y, np.arange(200), None)
    p = (found.parts / 200).T
    absent = to_dense(res.design.counts(0, 60)) == 0
    order = np.random.default_rng(PAIRING_SEED).permutation(60)

    def c(some, i, j):
        def one(i, j):
            without_i = [b for b in some if absent[b, i]]
            both = [b for b in some if absent[b, i] and absent[b, j]]
            centre = np.mean(p[i, without_i])
            often = sum(absent[b, j] for b in some)
            return -60 * sum(p[i, b] - centre for b in both) / often

        return (one(i, j) + one(j, i)) / 2

    monkeypatch.setattr(mean_loss_difference, "MOST_PAIRED", 7)
    drawn = np.random.default_rng(PAIRING_SEED).choice(200, 7, False)
    parts = [order[:20], order[20:40], order[40:]]
    total = sum(
        c(parts[0], i, j) * c(parts[1], j, k) * c(parts[2], k, i)
        for i, j, k in permutations(drawn, 3)
    )
    scale = (200 * 199 * 198) / (7 * 6 * 5)
    pairs = Pairs.of(p, res.design, np.arange(200))
    assert_allclose(pairs.third_cumulant(), 8 * scale * total)


@pytest.mark.parametrize("df", [1, 3, 20])
def test_pvalues_are_those_of_quadratic_forms(df):
    """Sums of squares of normal variables have these, exactly."""
    for value in (0.2, df + 1.0, 3.0 * df + 5):
        found = MeanLossDifference(
            (value - df) / np.sqrt(2 * df), 1.0, 10**9, np.sqrt(8 / df)
        )
        assert_allclose(found.pvalue, stats.chi2.sf(value, df), rtol=1e-5)
    plain = MeanLossDifference(1.3, 1.0, 12)
    assert_allclose(plain.pvalue, stats.t.sf(1.3, 12))
    close = MeanLossDifference(1.3, 1.0, 12, 1.001 * mean_loss_difference.LEAST_SKEW)
    assert_allclose(close.pvalue, plain.pvalue, rtol=0.03)


def test_the_skewness_of_a_null_is_found():
    """Two groups of equal size and noise: the mean is like chi-squared with one df."""
    skews = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame({"g": rng.integers(0, 2, 80), "y": rng.normal(size=80)})
        res = vs.fit("y ~ g", data, B=300, k=40, rng=seed, n_jobs=1, replace=False)
        asked = PredictorQuestion.of(res, 300, "importance")
        full = asked.reader([asked.recipe.task.kernel.X])
        flipped = replace(full, tables=(1 - asked.recipe.task.kernel.X,))
        y = data["y"].to_numpy()
        mean = np.full((80, 1), y.mean())
        found = compare_losses(
            full, flipped.tables, y, np.arange(80), None, expected=mean
        )
        skews.append(average_differences(found, res.design, np.arange(80)).skew)
    assert 2.0 < np.mean(skews) <= np.sqrt(8)


def test_pairs_of_many_rows_are_drawn(res, data, monkeypatch):
    full, reduced = readers(res, data)
    rows = np.arange(200)
    found = compare_losses(full, reduced.tables, data["y"].to_numpy(), rows, None)
    monkeypatch.setattr(mean_loss_difference, "MOST_PAIRED", 150)
    drawn = np.random.default_rng(PAIRING_SEED).choice(200, 150, False)
    counts = to_dense(res.design.counts(0, 200))
    expected = literal_error(found.saved, found.parts, counts, drawn)
    assert_allclose(average_differences(found, res.design, rows).error, expected)


def test_a_learners_part_is_a_derivative(res, data):
    full, reduced = readers(res, data, 20)
    y, rows = data["y"].to_numpy(), np.arange(200)
    found = compare_losses(full, reduced.tables, y, rows, None)
    own, weights = (
        one[..., 0, 0] if one.ndim == 4 else one for one in full.outside(rows)
    )
    other = reduced.outside(rows)[0][..., 0, 0]

    def mean(weight):
        """Mean saved when learner 7 counts `weight` times."""
        w = np.ones(20)
        w[7] = weight
        times = w @ weights
        losses = [(y - w @ h / times) ** 2 for h in (own, other)]
        known = times > 0
        return np.mean((losses[1] - losses[0])[known])

    slope = (mean(1 + 1e-6) - mean(1 - 1e-6)) / 2e-6
    assert_allclose(found.parts[7].mean(), slope, rtol=1e-4)


def test_readers_predict_what_was_left_out(res):
    X, rows = res.recipe.task.kernel.X, np.arange(200)
    values, weights = OutOfBagPredictor(
        res.recipe.task, res.predictor.learners, (X,)
    ).outside(rows)
    assert_array_equal(weights.sum(axis=0), res.recipe.oob.times)
    assert_allclose(values.sum(axis=0)[:, 0], res.recipe.oob.total)
    assert_array_equal(weights, res.design.counts(0, 200) == 0)


def test_targets_of_classes():
    assert_array_equal(target_values(np.array([0.0, 2.0]), 3), [[1, 0, 0], [0, 0, 1]])
    assert_array_equal(target_values(np.array([0.0, 1.0]), 2), [[0], [1]])
    assert_array_equal(target_values(np.array([3.0]), None), [[3]])


def test_adjusted_pvalues_agree_with_statsmodels(rng):
    p = rng.uniform(size=12) ** 3
    assert_allclose(holm(p), multipletests(p, method="holm")[1])
    assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1])


def test_importance_prints_and_draws(res):
    found = res.importance(copies=1, learners=60)
    assert_allclose(found.frame["holm"], holm(found.frame["p_value"].to_numpy()))
    assert_allclose(
        found.frame["bh"], benjamini_hochberg(found.frame["p_value"].to_numpy())
    )
    assert "x7" in str(found)
    assert "how='conditional'" in str(found)
    bounds = found.conf_int(0.1)
    half = stats.t.isf(0.05, found.df) * found.frame["std_error"]
    assert_allclose(bounds["upper"] - bounds["lower"], 2 * half)
    best = found.frame["importance"].idxmax()
    assert found.plot().get_yticklabels()[0].get_text() == best
    assert res.plot(kind="importance", copies=1, learners=20) is not None
