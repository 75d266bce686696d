"""Comparisons of fits, permutation tests, interactions, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import vstatkit as vs
from vstatkit.ensemble.copies import Copier
from vstatkit.ensemble.refitted import Reader
from vstatkit.inference.pooled import pooled_test
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.studies.laws import LAWS

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.VstatkitWarning")


@pytest.fixture(scope="module")
def data():
    return LAWS["correlated"](np.random.default_rng(1))[["x1", "x4", "x6", "y"]]


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ .", data, B=60, rng=3)


@pytest.fixture(scope="module")
def line(data):
    return vs.fit("y ~ x1 + x4", data, B=60, rng=3, kernel="ols")


# Two fits


def test_fits_are_compared_learner_by_learner(res, line):
    found = vs.compare(res, line)
    assert len(found.points) == 20
    a = res.predictor.values(res.predictor.rows(found.points)[0])
    b = line.predictor.values(line.predictor.rows(found.points)[0])
    assert_array_equal(found.differences.values, a - b)
    means = res.get_prediction(found.points).predicted_mean
    means = means - line.get_prediction(found.points).predicted_mean
    assert_allclose(found.table()["estimate"], means)
    assert found.differences.variance == res.variance
    assert found.differences.limit == 2 * res.limit  # of a difference
    assert found.question == "forest - ols"
    assert not found.frame["refitted"].item()
    # Either way round, what goes beyond the first order leads.
    other = vs.compare(line, res, found.points)
    assert_allclose(other.pvalue, found.pvalue)
    assert_allclose(other.differences.bse, found.differences.bse)
    assert other.differences.variance == res.variance


def test_other_subsamples_are_fitted_again(data, res):
    other = vs.fit("y ~ x1 + x4", data, B=25, k=30, rng=99, kernel="ols")
    same = vs.fit("y ~ x1 + x4", data, B=60, rng=3, kernel="ols")
    at = data.head(4)
    again = vs.compare(res, other, at)
    assert again.frame["refitted"].item()
    assert again.differences.B == 60
    assert_allclose(
        again.differences.values, vs.compare(res, same, at).differences.values
    )
    bare = pickle.loads(pickle.dumps(other))
    with pytest.raises(
        ValueError, match="k=70, B=60, replace=True, design='iid', rng=3"
    ):
        vs.compare(res, bare, at)
    assert vs.compare(res, pickle.loads(pickle.dumps(same)), at).pvalue <= 1
    with pytest.raises(ValueError, match="Give points as `at`"):
        vs.compare(res, pickle.loads(pickle.dumps(same)))


def test_fewer_learners_of_the_same_design_are_enough(data, res):
    few = vs.fit("y ~ x1", data, B=40, rng=3)
    found = vs.compare(res, few, data.head(3))
    assert found.differences.B == 40
    assert found.question == "y ~ . - y ~ x1"


def test_beyond_the_first_order_differences_are_as_predictions(data, res, line):
    other = vs.fit("y ~ x1", data, B=res.B, rng=res.seed)
    found = vs.compare(res, other)
    assert found.differences.orders == res.orders
    assert vs.compare(res, line).differences.orders == res.orders
    test = pooled_test(res.design, found.differences.values, res.variance, res.orders)
    assert found.pvalue == test.pvalue
    bare = pooled_test(res.design, found.differences.values, "ij")
    assert found.pvalue != bare.pvalue


def test_equal_fits_do_not_differ(res):
    assert vs.compare(res, res).pvalue == 1


def test_a_comparison_prints_its_table(res, line):
    text = str(vs.compare(res, line))
    assert "Null: forest and ols predict the same y" in text
    assert "std_error" in text
    assert vs.compare(res, line).plot() is not None


def test_fits_of_other_data_are_not_compared(data, res, line):
    with pytest.raises(ValueError, match="same response"):
        vs.compare(res, vs.fit("x6 ~ x1", data, B=20, rng=3))
    with pytest.raises(ValueError, match="same rows"):
        vs.compare(res, vs.fit("y ~ x1", data.head(150), B=20, rng=3))
    with pytest.raises(TypeError, match="second argument must be results"):
        vs.compare(res, data)
    mean = vs.statistic("mean", data["y"], k=5, B=20, rng=1)
    with pytest.raises(ValueError, match="no learners that predict"):
        vs.compare(mean, res)


# Order


def test_copies_are_put_in_order_by_their_losses(data, res):
    found = res.permutation_test("x4", permutations=4, learners=60)
    frame = data.drop(columns="y")
    copies = Copier(frame, res.typical, 3).copies(["x4"], "conditional", 4)
    losses = [
        vs.fit("y ~ .", one.assign(y=data["y"]), B=60, rng=3).scores.table["OOB RMSE"]
        ** 2
        for one in copies
    ]
    own = res.scores.table["OOB RMSE"] ** 2
    centre = np.mean([own, *losses])
    assert_allclose(found.statistic, centre - own)
    assert_allclose(found.others, centre - np.array(losses))
    count = np.sum(np.array(losses) <= own)
    assert found.pvalue == (1 + count) / 5
    dead = res.permutation_test("x6", permutations=9, learners=60)
    assert dead.pvalue > 0.1
    assert found.frame["permutations"].item() == 4


def test_trees_change_places_pair_by_pair(data, res):
    found = res.permutation_test("x4", swap="trees", permutations=3, learners=60)
    frame, y = data.drop(columns="y"), data["y"].to_numpy()
    copy = next(Copier(frame, res.typical, 3).copies(["x4"], "conditional", 1))
    other = vs.fit("y ~ .", copy.assign(y=y), B=60, rng=3)
    out = res.design.counts(0, 60) == 0
    X, Z = res.recipe.task.kernel.X, other.recipe.task.kernel.X
    h = np.where(out, res.predictor.values(X), 0)
    g = np.where(out, other.predictor.values(Z), 0)

    def difference(swap):
        full = np.where(swap[:, None], g, h).sum(axis=0) / out.sum(axis=0)
        reduced = np.where(swap[:, None], h, g).sum(axis=0) / out.sum(axis=0)
        return np.mean((y - reduced) ** 2) - np.mean((y - full) ** 2)

    assert_allclose(found.statistic, difference(np.zeros(60, dtype=bool)))
    rng = stream(3, 2, Purpose.QUESTION)
    expected = [difference(rng.random(60) < 0.5) for _ in range(3)]
    assert_allclose(found.others, expected)
    assert found.pvalue == (1 + np.sum(np.array(expected) >= found.statistic)) / 4
    assert "trees" in str(found)
    assert found.plot() is not None


# Interactions


def test_contrasts_are_those_of_predictions(data, res):
    found = res.interaction_test("x1", "x4", rows=7, learners=60)
    rng = stream(3, 3, Purpose.QUESTION)
    rows = data.iloc[np.sort(rng.choice(200, 7, replace=False))]
    u, v = (
        np.quantile(data[name], [1 / 6, 1 / 2, 5 / 6], method="nearest")
        for name in ("x1", "x4")
    )

    def f(a, b):
        return res.predict(rows.assign(x1=a, x4=b)).mean()

    expected = [
        f(u[i], v[j]) - f(u[i], v[0]) - f(u[0], v[j]) + f(u[0], v[0])
        for i in (1, 2)
        for j in (1, 2)
    ]
    assert_allclose(found.differences.params, expected, atol=1e-10)
    assert list(found.points["to_first"]) == [u[1], u[1], u[2], u[2]]
    assert "x1:x4" in str(found)
    assert found.plot() is not None


def test_regressions_have_the_interactions_that_they_are_given(data):
    both = vs.fit("y ~ x1 * x4", data, B=200, rng=3, kernel="ols")
    found = both.interaction_test("x1", "x4", grid=2)
    step = np.prod(
        [
            found.points["to_first"] - found.points["from_first"],
            found.points["to_second"] - found.points["from_second"],
        ]
    )
    assert_allclose(found.differences.params, both.params["x1:x4"] * step)
    # One contrast: the joint test is the test of the coefficient.
    assert_allclose(found.statistic, both.zvalues["x1:x4"] ** 2, rtol=1e-8)
    plain = vs.fit("y ~ x1 + x4 + x6", data, B=50, rng=3, kernel="ols")
    assert_allclose(plain.additivity_test().differences.values, 0, atol=1e-12)


def test_all_pairs_are_tested_at_once(res):
    found = res.additivity_test(rows=5, grid=2, learners=60)
    assert len(found.points) == 3
    assert set(zip(found.points["first"], found.points["second"], strict=True)) == {
        ("x1", "x4"),
        ("x1", "x6"),
        ("x4", "x6"),
    }
    one = res.interaction_test("x4", "x6", rows=5, grid=2, learners=60)
    assert_allclose(found.differences.values[:, 2], one.differences.values[:, 0])


def test_levels_interact_too():
    data = LAWS["levels"](np.random.default_rng(1))
    res = vs.fit("y ~ .", data, B=40, rng=1)
    found = res.interaction_test("g", "x1", rows=5, learners=40)
    often = data["g"].value_counts().index[:3]
    assert list(found.points["to_first"]) == [often[1]] * 2 + [often[2]] * 2


# What is refused


def test_results_without_training_data_say_so(tmp_path, data, res):
    res.save(tmp_path / "res.vsk")
    loaded = vs.load(tmp_path / "res.vsk")
    for ask in ("feature_test", "importance", "permutation_test", "additivity_test"):
        arguments = ["x1"] if "test" in ask and ask != "additivity_test" else []
        with pytest.raises(ValueError, match=f"{ask} needs the training data.*rng=3"):
            getattr(loaded, ask)(*arguments)
    with pytest.raises(ValueError, match="needs the training data"):
        res.t_test([[1.0]]).feature_test("x1")
    with pytest.raises(ValueError, match="is a statistic"):
        vs.statistic("mean", data["y"], k=5, B=20, rng=1).feature_test("x1")


def test_data_that_are_not_in_memory_say_so(tmp_path, data):
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    res = vs.fit("y ~ x1 + x4", path, B=20, rng=1)
    with pytest.raises(ValueError, match="read batch after batch"):
        res.feature_test("x1")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda res: res.feature_test("x5"), "'x5' is not a predictor of the formula"),
        (lambda res: res.feature_test([]), "at least one predictor"),
        (lambda res: res.feature_test("x1", how="fold"), "`how` must be one of"),
        (lambda res: res.feature_test("x1", copies=0), "`copies` must be a whole"),
        (lambda res: res.feature_test("x1", points=1.5), "`points` must be a whole"),
        (lambda res: res.feature_test("x1", learners=1), "`learners` must be a whole"),
        (lambda res: res.permutation_test("x1", how="drop"), "needs copies that are"),
        (lambda res: res.permutation_test("x1", swap="rows"), "`swap` must be"),
        (lambda res: res.interaction_test("x1", "x1"), "got 'x1' twice"),
        (lambda res: res.interaction_test("x1", "x4", grid=1), "`grid` must be"),
        (lambda res: res.additivity_test(["x1"]), "two or more predictors"),
    ],
)
def test_bad_questions_are_refused(res, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(res)


def test_other_kernels_are_asked(data):
    res = vs.fit("y ~ x1 + x6", data, B=40, rng=1, kernel=Ridge())
    assert res.feature_test("x1").frame["learners"].item() == 40  # not grown further
    assert res.feature_test("x1").pvalue < 1e-6
    assert res.importance().frame["importance"].idxmax() == "x1"
    assert res.importance(how="drop").frame["importance"].idxmax() == "x1"
    assert res.permutation_test("x1", permutations=4).pvalue == 0.2


@pytest.mark.parametrize("design", ["balanced", "little-bags", "two-level"])
def test_other_designs_are_asked_as_they_are(data, design):
    B = "auto" if design == "two-level" else 100
    res = vs.fit("y ~ x1 + x6", data, B=B, k=30, rng=1, design=design, max_B=1000)
    found = res.feature_test("x1", points=5, learners=10)
    assert found.frame["learners"].item() == res.B
    assert 0 <= found.pvalue <= 1
    assert res.importance(["x1"]).frame["pvalue"].item() < 1e-4


def test_columns_of_all_kinds_are_copied():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "a": rng.normal(size=90).astype("float32"),
            "b": rng.random(90) > 0.5,
            "s": rng.choice(list("uvw"), 90),
            "i": pd.array(rng.integers(0, 40, 90), dtype="Int64"),
            "m": rng.integers(1, 13, 90),
        }
    ).assign(y=rng.normal(size=90))
    res = vs.fit("y ~ a + b + s + i + C(m)", data, B=20, rng=1)
    for how in ("conditional", "permute", "drop"):
        for name in ("a", "b", "s", "i", "m", ["a", "s", "m"]):
            found = res.feature_test(name, how=how, learners=20, points=5)
            assert 0 <= found.pvalue <= 1


def test_rows_that_all_learners_saw_say_so():
    data = pd.DataFrame({"x": np.arange(6.0), "y": np.arange(6.0)})
    res = vs.fit("y ~ x", data, B=20, k=200, rng=1, variance="ij")
    with pytest.raises(ValueError, match="every learner has seen every row"):
        res.importance(learners=20)
    with pytest.raises(ValueError, match="has seen every row"):
        res.permutation_test("x", permutations=2, learners=20)


def test_functions_and_constants_are_refused(data, res):
    fit = vs.fit("y ~ x1", data.assign(one=1.0), B=20, rng=1)
    with pytest.raises(ValueError, match="needs"):
        vs.fit(
            "y ~ x1", data, kernel=lambda y, X: y.mean(), B=20, k=9, rng=1
        ).importance()
    assert fit.feature_test("x1", points=5, learners=20).pvalue <= 1  # nothing else


def test_regressions_do_without_a_dropped_predictor(line):
    assert line.feature_test("x4", how="drop", points=5).pvalue < 0.05


def test_learners_of_complete_designs_have_weights(data):
    res = vs.fit("y ~ x1", data.head(6), B="complete", k=3, rng=1)
    X, rows = res.recipe.task.kernel.X, np.arange(6)
    found = Reader(res.recipe.task, res.predictor.learners, (X,)).outside(rows)
    assert len(set(found[1].ravel())) > 2
    assert_allclose(found[1].sum(axis=0), res.recipe.oob.times)
    assert_allclose(found[0].sum(axis=0)[:, 0], res.recipe.oob.total)


def test_answers_have_short_names_and_escaped_pages(data, res):
    test = res.feature_test("x6", points=5, learners=60)
    assert repr(test) == f"<FeatureTest: x6, p = {test.pvalue:.4g}>"
    swapped = res.permutation_test("x6", permutations=9, learners=60)
    assert repr(swapped) == f"<PermutationTest: x6, p = {swapped.pvalue:.4g}>"
    saved = res.importance(learners=60)
    real = (saved.frame["holm"] < 0.05).sum()
    assert repr(saved) == f"<Importance: 3 predictors, {real} with holm < 0.05>"
    odd = data.rename(columns={"x6": "<b>"})
    page = vs.fit("y ~ x1 + Q('<b>')", odd, B=60, rng=3).feature_test(
        "<b>", points=5, learners=60
    )
    assert "<b>" not in page._repr_html_()
    assert "&lt;b&gt;" in page._repr_html_()
