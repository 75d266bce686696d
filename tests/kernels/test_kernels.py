import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.kernels import linear
from vstatkit.kernels.linear import fit_logit, fit_ols, rank_of
from vstatkit.kernels.user_defined import n_positional, name_values


@pytest.fixture
def data():
    frame = vs.datasets.mars(80, rng=4)
    return frame.assign(
        high=frame["y"] > frame["y"].median(),
        third=pd.qcut(frame["y"], 3, labels=["low", "mid", "top"]),
        w=np.linspace(0.5, 2, 80),
    )


@pytest.mark.parametrize(("c", "d"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e8)])
def test_a_forests_variances_do_not_depend_on_units(data, c, d):
    y = data["y"].round(6)
    plain = vs.fit("y ~ x1 + x2", data.assign(y=y), B=60, rng=1)
    moved = vs.fit("y ~ x1 + x2", data.assign(y=c * y + d), B=60, rng=1)
    for name in ("sampling", "zeta_k", "total", "mc_se"):
        assert_allclose(
            getattr(moved.components, name),
            c**2 * getattr(plain.components, name),
            rtol=1e-6,
        )
    assert_allclose(moved.bse, c * plain.bse, rtol=1e-6)
    assert_allclose(moved.df, plain.df, rtol=1e-5)


def test_least_squares_and_logit_are_statsmodels(data, rng):
    counts = rng.multinomial(80, np.full(80, 1 / 80))
    rows = data.iloc[np.repeat(np.arange(80), counts)]
    X = np.column_stack([np.ones(80), data["x1"], data["x4"]])
    drawn = counts > 0
    ols = smf.ols("y ~ x1 + x4", rows).fit()
    assert_allclose(
        fit_ols(X[drawn], data["y"].to_numpy()[drawn], counts[drawn])[0],
        ols.params,
        rtol=1e-9,
    )
    logit = smf.logit("h ~ x1 + x4", rows.assign(h=rows["high"].astype(int)))
    assert_allclose(
        fit_logit(X[drawn], data["high"].to_numpy(float)[drawn], counts[drawn]),
        logit.fit(disp=0).params,
        rtol=1e-6,  # statsmodels stops iterating at its own tolerance
    )


def test_coefficients_are_named_as_statsmodels_names_them(data):
    formula = "y ~ x1 * x2 + C(third) + np.log(x3)"
    ours = vs.fit(formula, data, kernel="ols", B=10, rng=1)
    theirs = smf.ols(formula, data).fit()
    assert list(ours.params.index) == list(theirs.params.index)


@pytest.mark.parametrize("response", ["high", "third"])
@pytest.mark.parametrize(
    "kernel", ["forest", "tree", LogisticRegression(), KNeighborsClassifier(3)]
)
def test_probabilities_of_all_classes_sum_to_one(data, response, kernel):
    res = vs.fit(f"{response} ~ x1 + x4", data, kernel=kernel, B=20, rng=1)
    n_classes = data[response].nunique()
    predicted = res.predict(data)
    if n_classes == 2:
        assert isinstance(predicted, pd.Series)
        assert predicted.between(0, 1).all()
        assert len(res.params) == 1
    else:
        assert list(predicted.columns) == ["low", "mid", "top"]
        assert_allclose(predicted.sum(axis=1), 1, rtol=1e-12)
        assert_allclose(res.params.sum(), 1, rtol=1e-12)


def test_a_class_that_a_subsample_lacks_has_probability_zero(data):
    rare = data.assign(kind=["rare", *["a", "b"] * 39, "a"])
    res = vs.fit("kind ~ x1", rare, kernel="tree", k=5, B=200, rng=1)
    assert_allclose(res.predict(rare).sum(axis=1), 1, rtol=1e-12)


def test_an_estimator_is_fitted_to_the_literal_subsample(data):
    res = vs.fit("y ~ x1 + x2", data, kernel=Ridge(), B=5, rng=3)
    X, y = data[["x1", "x2"]].to_numpy(), data["y"].to_numpy()
    at = np.median(X, axis=0)[None]
    members = res.design.members(0, 5)
    by_hand = [Ridge().fit(X[np.sort(m)], y[np.sort(m)]).predict(at) for m in members]
    assert_allclose(res.values[:, :1], by_hand, rtol=1e-12)


def test_an_estimators_open_random_states_are_seeded(data):
    kernel = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_features=1))
    one, two = (
        vs.fit("y ~ x1 + x2", data, kernel=kernel, B=5, rng=3) for _ in range(2)
    )
    np.testing.assert_array_equal(one.values, two.values)


def test_weights_reach_the_learners(data):
    ours = vs.fit("y ~ x1", data, kernel="ols", weights="w", k=80, B=400, rng=1)
    wls = smf.wls("y ~ x1", data, weights=data["w"]).fit(cov_type="HC0")
    # Bootstrap means differ from the estimate by O(1/n), far below one se.
    assert (np.abs(ours.params - wls.params) < 0.3 * wls.bse).all()
    forest = [
        vs.fit("y ~ x1", data, weights=w, min_samples_leaf=9, B=5, rng=1).params.item()
        for w in (None, "w", data["w"].to_numpy())
    ]
    assert forest[1] == forest[2] != forest[0]


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (3, ["statistic"]),
        (np.array([1.0, 2.0]), ["h0", "h1"]),
        ({"a": 1, "b": 2}, ["a", "b"]),
        (pd.Series({"u": 1.0}), ["u"]),
    ],
)
def test_functions_may_return_numbers_arrays_series_and_dicts(result, names):
    assert name_values(result)[0] == names
    res = vs.statistic(lambda _: result, np.arange(5.0), k=2, B=10, rng=1)
    expected = ["<lambda>"] if names == ["statistic"] else names
    assert list(res.params.index) == expected


def test_functions_of_one_argument_get_the_frame_of_two_the_matrices(data):
    frame = vs.fit(
        "y ~ x1 + np.log(x2)", data, kernel=lambda d: d["x3"].mean(), B=10, rng=1
    )
    matrices = vs.fit(
        "y ~ x1 + np.log(x2)", data, kernel=lambda y, X: X.mean() * y[0], B=10, rng=1
    )
    assert frame.params.between(0, 1).all()
    assert list(matrices.params.index) == ["Intercept", "x1", "np.log(x2)"]


def test_builtins_without_a_signature_count_as_functions_of_one_argument():
    assert n_positional(max) == 1
    assert n_positional(lambda y, X: 0) == 2


@pytest.mark.parametrize(
    ("response", "kernel", "message"),
    [
        ("y", LogisticRegression(), "is a classifier, but the response is numeric"),
        ("high", Ridge(), "is not a classifier, but the response is categorical"),
        ("high", LinearSVC(), "has no `predict_proba`"),
        ("high", "ols", "needs a numeric response"),
        ("third", "logit", "needs a response with two classes; got 3"),
    ],
)
def test_kernels_that_do_not_fit_the_response_say_so(data, response, kernel, message):
    with pytest.raises(ValueError, match=message):
        vs.fit(f"{response} ~ x1", data, kernel=kernel, B=5)


def test_separated_classes_are_an_error_of_the_logit(data):
    with pytest.raises(vs.KernelError, match="separate the classes in this"):
        vs.fit("high ~ y", data, kernel="logit", B=20, rng=1)


def test_trees_take_missing_values(data):
    data.loc[:9, "x1"] = np.nan
    res = vs.fit("y ~ x1 + x4", data, missing="pass", B=20, rng=1)
    assert res.nobs == 80
    assert np.isfinite(res.predict(data)).all()


@pytest.mark.parametrize("kernel", ["ols", lambda y, X: y.mean()])
def test_other_kernels_refuse_missing_values(data, kernel):
    data.loc[:9, "x1"] = np.nan
    with pytest.raises(ValueError, match="missing"):
        vs.fit("y ~ x1", data, kernel=kernel, missing="pass", B=5)


def test_informative_missingness_is_learnt():
    rng = np.random.default_rng(3)
    gone = rng.uniform(size=300) < 0.4
    frame = pd.DataFrame({"a": np.where(gone, np.nan, rng.uniform(size=300))})
    frame["y"] = np.where(gone, 5.0, 0.0) + 0.01 * rng.normal(size=300)
    ours = vs.fit("y ~ a", frame, kernel="tree", missing="pass", B=50, rng=1)
    theirs = vs.fit(
        "y ~ a", frame, kernel=DecisionTreeRegressor(), missing="pass", B=50, rng=1
    )
    assert ours.scores.table["OOB R-squared"] > 0.999
    assert_allclose(ours.params, theirs.params, rtol=1e-2)


def test_named_components_are_matched_by_name():
    frame = pd.DataFrame({"g": ["a"] * 52 + ["b"] * 48})
    options = {"k": 20, "B": 300, "rng": 1}
    by_count = vs.statistic(lambda d: d["g"].value_counts(), frame, **options)
    in_order = vs.statistic(
        lambda d: d["g"].value_counts().reindex(["a", "b"]), frame, **options
    )
    assert_allclose(
        by_count.params[["a", "b"]], in_order.params[["a", "b"]], **SAME_ALGEBRA
    )
    assert_allclose(by_count.bse[["a", "b"]], in_order.bse[["a", "b"]], rtol=1e-8)


def test_components_with_other_names_are_an_error():
    frame = pd.DataFrame({"g": list("aaaaaaabc")})

    def common(d):
        return d["g"].value_counts().head(1)

    with pytest.raises(vs.KernelError, match=r"components [bc], but a on the first"):
        vs.statistic(common, frame, k=2, B=200, rng=1)


def test_a_function_must_return_something():
    with pytest.raises(vs.KernelError, match="returned no numbers"):
        vs.statistic(lambda x: [], np.arange(5.0), k=2, B=10, rng=1)


def test_zero_weights_leave_rows_out_of_a_logit(data, rng):
    X = np.column_stack([np.ones(80), data["x1"]])
    y = data["high"].to_numpy(float)
    weight = np.where(np.arange(80) < 60, 1.0, 0.0)
    assert_allclose(
        fit_logit(X, y, weight), fit_logit(X[:60], y[:60], np.ones(60)), rtol=1e-8
    )


def test_an_outlier_is_not_separation():
    rng = np.random.default_rng(0)
    x = np.append(rng.standard_t(2, size=500), 60.0)
    y = np.append(rng.uniform(size=500) < 1 / (1 + np.exp(-x[:-1])), True).astype(float)
    ours = fit_logit(np.column_stack([np.ones(501), x]), y, np.ones(501))
    theirs = smf.logit("y ~ x", pd.DataFrame({"x": x, "y": y})).fit(disp=0)
    assert_allclose(ours, theirs.params, rtol=1e-5)


def test_a_random_state_object_does_not_make_learners_alike(data):
    state = np.random.RandomState(3)
    kernel = DecisionTreeRegressor(max_features=1, random_state=state)
    res = vs.fit("y ~ x1 + x2 + x3", data, kernel=kernel, k=80, B=30, rng=1)
    assert len(np.unique(res.values[:, 0])) > 5


def test_a_class_is_not_an_estimator(data):
    with pytest.raises(TypeError, match=r"write Ridge\(\)"):
        vs.fit("y ~ x1", data, kernel=Ridge, B=5)


def test_a_subsample_that_does_not_determine_the_coefficients_is_an_error(data):
    with pytest.raises(vs.KernelError, match="rank 2 in this subsample and 3 in the"):
        vs.fit("y ~ x1 + x2", data, kernel="ols", k=2, replace=False, B=10, rng=1)
    twins = data.assign(twin=data["x1"])  # collinear in the data as a whole
    assert len(vs.fit("y ~ x1 + twin", twins, kernel="ols", B=10, rng=1).params) == 3


def test_one_is_not_all(data):
    with pytest.warns(vs.VstatkitWarning, match="k=1.0, the fraction, is all of them"):
        vs.fit("y ~ x1", data, k=1, B=10, rng=1)


@pytest.mark.parametrize("rows", [3, 10, 1000])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_the_rank_in_blocks_is_that_of_all_rows(rows, scale, monkeypatch):
    monkeypatch.setattr(linear, "RANK_ROWS", rows)
    X = np.random.default_rng(3).normal(size=(40, 6))
    X[20:, 4] = 0.0  # some blocks know nothing of it
    cases = {
        6: X,
        5: np.column_stack([X[:, :5], X[:, 0] - 2 * X[:, 4]]),
        4: np.column_stack([X[:, :4], X[:, :2] @ [1.0, 1.0]]),
        3: X[:3],
        0: np.zeros((40, 2)),
    }
    for rank, one in cases.items():
        assert np.linalg.matrix_rank(scale * one) == rank
        assert rank_of(scale * one) == rank
    assert rank_of(np.empty((40, 0))) == 0
