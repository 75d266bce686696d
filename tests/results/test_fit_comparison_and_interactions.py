"""Comparisons of fits, interactions, and what is refused."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import Ridge

import vstatkit as vs
from vstatkit.ensemble.out_of_bag_by_learner import OutOfBagPredictor
from vstatkit.inference.pooled_test import pooled_test
from vstatkit.results.predictor_tests import grid_values
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.studies.dgps import DGPS

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.VstatkitWarning")


@pytest.fixture(scope="module")
def data():
    return DGPS["correlated"](np.random.default_rng(1))[["x1", "x4", "x6", "y"]]


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
    data = DGPS["levels"](np.random.default_rng(1))
    res = vs.fit("y ~ .", data, B=40, rng=1)
    found = res.interaction_test("g", "x1", rows=5, learners=40)
    often = data["g"].value_counts().index[:3]
    assert list(found.points["to_first"]) == [often[1]] * 2 + [often[2]] * 2


def binary_frame(n=240):
    """Return a frame like wage data: rare and common indicators, small integers."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "female": rng.integers(0, 2, n),
            "married": rng.random(n) < 0.6,
            "nonwhite": (rng.random(n) < 0.1).astype(int),
            "kids": np.minimum(rng.poisson(0.3, n), 3),
            "region": rng.choice(list("nsew"), n),
        }
    )
    act = 1.0 * frame["female"] * frame["married"] + frame["kids"]
    return frame.assign(y=act + rng.normal(size=n))


def test_contrasts_of_binary_predictors_are_those_of_four_cells():
    data = binary_frame()
    res = vs.fit("y ~ female + nonwhite", data, B=300, rng=1)
    found = res.interaction_test("female", "nonwhite", learners=300)
    cells = pd.DataFrame({"female": [1, 1, 0, 0], "nonwhite": [1, 0, 1, 0]})
    p11, p10, p01, p00 = res.predict(cells)
    assert_allclose(found.differences.params, [p11 - p10 - p01 + p00], atol=1e-10)
    assert 0 < found.pvalue < 1
    # One difference: the square of its t, with one degree of freedom.
    assert found.df_num == 1
    assert_allclose(found.statistic, found.differences.zvalues.iloc[0] ** 2)
    line = vs.fit("y ~ female + married", data, B=50, rng=1, kernel="ols")
    plain = line.interaction_test("female", "married")
    assert_allclose(plain.differences.params, 0, atol=1e-12)


def test_all_pairs_of_binary_integer_and_factor_predictors_have_a_test():
    data = binary_frame()
    res = vs.fit("y ~ .", data, B=200, rng=1)
    names = list(data.columns.drop("y"))
    for first, second in combinations(names, 2):
        found = res.interaction_test(first, second, rows=10, learners=200)
        assert 0 < found.pvalue <= 1
    found = res.additivity_test(rows=10, learners=200)
    assert 0 < found.pvalue <= 1
    assert set(found.points["second"]) == set(names[1:])
    assert res.importance(learners=200).frame.notna().all(axis=None)


@pytest.mark.parametrize(
    ("column", "number", "expected"),
    [
        ([0] * 19 + [1], 3, [0, 1]),
        ([0] * 19 + [1], 2, [0, 1]),
        ([0] * 95 + [1, 1, 1, 2, 3], 3, [0, 1, 2]),
        ([5, 1, 1, 9], 3, [1, 5, 9]),
        ([0.0] * 85 + list(range(1, 16)), 3, [0, 5, 11]),
        (list(range(101)), 3, [17, 50, 83]),
    ],
)
def test_grids_have_as_many_values_as_there_are(column, number, expected):
    assert grid_values(np.array(column), number).tolist() == expected


# What is refused


@pytest.mark.parametrize("name", ["feature_test", "permutation_test"])
def test_a_removed_test_names_its_successor(res, name):
    with pytest.raises(AttributeError, match=rf"{name} was removed.*res\.importance"):
        getattr(res, name)
    assert not hasattr(res, name)


def test_results_without_training_data_say_so(tmp_path, data, res):
    res.save(tmp_path / "res.vsk")
    loaded = vs.load(tmp_path / "res.vsk")
    for ask in ("importance", "additivity_test"):
        with pytest.raises(ValueError, match=f"{ask} needs the training data.*rng=3"):
            getattr(loaded, ask)()
    with pytest.raises(ValueError, match="is a statistic"):
        vs.statistic("mean", data["y"], k=5, B=20, rng=1).importance()


def test_data_that_are_not_in_memory_say_so(tmp_path, data):
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    res = vs.fit("y ~ x1 + x4", path, B=20, rng=1)
    with pytest.raises(ValueError, match="read in batches"):
        res.importance()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda res: res.importance("x5"), "'x5' is not a predictor of the formula"),
        (lambda res: res.importance([]), "at least one predictor"),
        (lambda res: res.importance(["x1"], how="fold"), "`how` must be one of"),
        (lambda res: res.importance(["x1"], how="drop"), "`how` must be one of"),
        (lambda res: res.importance(["x1"], copies=0), "`copies` must be a whole"),
        (lambda res: res.importance(["x1"], learners=1), "`learners` must be a whole"),
        (lambda res: res.importance([("x1", "x7")]), "'x7' is not a predictor"),
        (lambda res: res.importance([()]), "at least one predictor"),
        (lambda res: res.interaction_test("x1", "x1"), "got 'x1' twice"),
        (lambda res: res.interaction_test("x1", "x4", grid=1), "`grid` must be"),
        (lambda res: res.additivity_test(["x1"]), "at least two predictors"),
    ],
)
def test_bad_questions_are_refused(res, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(res)


def test_other_kernels_are_asked(data):
    res = vs.fit("y ~ x1 + x6", data, B=40, rng=1, kernel=Ridge())
    assert res.importance().frame["importance"].idxmax() == "x1"
    assert res.importance().frame["p_value"]["x1"] < 1e-6


@pytest.mark.parametrize("design", ["balanced", "little-bags", "two-level"])
def test_other_designs_are_asked_as_they_are(data, design):
    B = "auto" if design == "two-level" else 100
    res = vs.fit("y ~ x1 + x6", data, B=B, k=30, rng=1, design=design, max_B=1000)
    found = res.interaction_test("x1", "x6", learners=10)
    assert found.frame["learners"].item() == res.B
    assert 0 <= found.pvalue <= 1
    assert res.importance(["x1"]).frame["p_value"].item() < 1e-4


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
    for how in ("conditional", "permute"):
        sets = ["a", "b", "s", "i", "m", ("a", "s", "m")]
        found = res.importance(sets, how=how, learners=20).frame
        assert list(found.index) == ["a", "b", "s", "i", "m", "a, s, m"]
        assert np.isfinite(found["importance"]).all()
        assert ("p_value" in found) == (how == "conditional")
    assert 0 <= res.additivity_test(rows=5, learners=20).pvalue <= 1


def test_rows_that_all_learners_saw_say_so():
    data = pd.DataFrame({"x": np.arange(6.0), "y": np.arange(6.0)})
    res = vs.fit("y ~ x", data, B=20, k=200, rng=1, variance="ij")
    with pytest.raises(ValueError, match="every learner has seen every row"):
        res.importance(learners=20)


def test_functions_and_constants_are_refused(data, res):
    fit = vs.fit("y ~ x1", data.assign(one=1.0), B=20, rng=1)
    with pytest.raises(ValueError, match="needs"):
        vs.fit(
            "y ~ x1", data, kernel=lambda y, X: y.mean(), B=20, k=9, rng=1
        ).importance()
    assert fit.importance(learners=20).frame["p_value"].item() <= 1  # nothing else


def test_learners_of_complete_designs_have_weights(data):
    res = vs.fit("y ~ x1", data.head(6), B="complete", k=3, rng=1)
    X, rows = res.recipe.task.kernel.X, np.arange(6)
    found = OutOfBagPredictor(res.recipe.task, res.predictor.learners, (X,)).outside(
        rows
    )
    assert len(set(found[1].ravel())) > 2
    assert_allclose(found[1].sum(axis=0), res.recipe.oob.times)
    assert_allclose(found[0].sum(axis=0)[:, 0], res.recipe.oob.total)


def test_answers_have_short_names_and_escaped_pages(data, res):
    test = res.interaction_test("x1", "x6", rows=5, learners=60)
    assert repr(test) == f"<InteractionTest: x1:x6, p = {test.pvalue:.4g}>"
    swapped = res.importance("x6", how="permute", learners=60)
    assert repr(swapped) == "<Importance: 1 predictor, how='permute'>"
    saved = res.importance(learners=60)
    real = (saved.frame["holm"] < 0.05).sum()
    assert repr(saved) == f"<Importance: 3 predictors, {real} with holm < 0.05>"
    odd = data.rename(columns={"x6": "<b>"})
    page = vs.fit("y ~ x1 + Q('<b>')", odd, B=60, rng=3).interaction_test(
        "x1", "<b>", rows=5, learners=60
    )
    assert "<b>" not in page._repr_html_()
    assert "&lt;b&gt;" in page._repr_html_()


# Sizes and stability


def null_frame(kind, rng, n=120):
    """Draw data in which `z` is irrelevant given the other predictors."""
    x = rng.normal(size=(n, 2))
    act = 2 * np.sin(2 * x[:, 0]) if kind == "wave" else x[:, 0]
    z = {
        "noise": lambda: rng.normal(size=n),
        "correlated": lambda: 0.9 * x[:, 0] + 0.4 * rng.normal(size=n),
        "binary": lambda: rng.integers(0, 2, n),
        "levels": lambda: rng.choice(list("abcdefghijkl"), n),
        "wave": lambda: np.sin(2 * x[:, 0]) + 0.4 * rng.normal(size=n),
    }[kind]()
    data = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "z": z})
    return data.assign(y=act + x[:, 1] + rng.normal(size=n))


@pytest.mark.slow
def test_irrelevant_predictors_are_rarely_significant():
    """Five kinds, 10 data sets each: 50 p-values of every test.

    At a size of 7 %, 9 or more of 50 are below 5 % with a chance of 0.7 %.
    """
    found = []
    for kind in ("noise", "correlated", "binary", "levels", "wave"):
        for seed in range(10):
            data = null_frame(kind, np.random.default_rng([seed, 5]))
            res = vs.fit("y ~ .", data, B=100, rng=seed, n_jobs=1)
            found.append(
                {
                    "importance": res.importance(["z"], copies=5, learners=200)
                    .frame["p_value"]
                    .item(),
                    "interaction": res.interaction_test("x2", "z", rows=20).pvalue,
                }
            )
    frame = pd.DataFrame(found)
    assert frame.notna().all(axis=None)
    assert ((frame <= 0.05).sum() < 9).all()
    assert (frame["importance"] <= 0.5).mean() > 0.3  # nor is the test idle


@pytest.mark.slow
def test_p_values_hardly_depend_on_the_seed_and_on_the_order_of_rows():
    """A binary predictor of moderate effect; normal scores of p differ by 0.2 (sd)."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(400, 3))
    data = pd.DataFrame(x, columns=["a", "b", "c"]).assign(d=rng.integers(0, 2, 400))
    data["y"] = x[:, 0] + 0.4 * data["d"] + rng.normal(size=400)
    given = [(data, seed) for seed in range(4)]
    given += [(data.sample(frac=1, random_state=seed), 1) for seed in range(2)]
    pvalues = [
        vs.fit("y ~ .", one, B=300, rng=seed, n_jobs=1)
        .importance(["d"])
        .frame["p_value"]
        .item()
        for one, seed in given
    ]
    scores = stats.norm.isf(pvalues)
    assert scores.max() - scores.min() < 1.0
    assert scores.mean() > 1
