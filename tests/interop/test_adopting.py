import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(70, rng=5)
    return frame.drop(columns="y"), frame["y"]


def ij_u_by_hand(forest, X, at):
    """Wager, Hastie and Efron's estimate from the forest's public attributes."""
    n, B = len(X), len(forest.estimators_)
    N = np.stack(
        [np.bincount(drawn, minlength=n) for drawn in forest.estimators_samples_]
    )
    h = np.stack([tree.predict(at.to_numpy()) for tree in forest.estimators_])
    hc = h - h.mean(axis=0)
    raw = ((N.T @ hc / B) ** 2).sum(axis=0)
    return raw - n * N.var(axis=0).mean() * (hc**2).mean(axis=0) / B


def test_ij_u_of_a_random_forest(data):
    X, y = data
    forest = RandomForestRegressor(150, max_samples=30, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X.head(5), variance="ij_u")
    by_hand = ij_u_by_hand(forest, X, X.head(5))
    assert_allclose(res.components.sampling, by_hand, **SAME_ALGEBRA)
    assert_allclose(res.params, forest.predict(X.head(5)), **SAME_ALGEBRA)
    assert res.k == 30


def test_out_of_bag_score_is_the_forests_own(data):
    X, y = data
    forest = RandomForestRegressor(150, oob_score=True, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X.head(2))
    assert_allclose(res.scores.table["OOB R-squared"], forest.oob_score_, rtol=1e-10)


def test_class_probabilities_of_a_random_forest(data):
    X, y = data
    for labels in (np.where(y > 14, "hi", "lo"), np.digitize(y, [12, 16])):
        forest = RandomForestClassifier(100, random_state=1).fit(X, labels)
        res = vs.from_sklearn(forest, X, labels, X.head(4))
        expected = forest.predict_proba(X.head(4))
        if expected.shape[1] == 2:
            expected = expected[:, 1:]
        assert_allclose(res.params, expected.ravel(), **SAME_ALGEBRA)
        assert res.get_prediction(X.head(3)).summary_frame().notna().all(axis=None)


def test_bagging_without_replacement_and_on_some_features(data):
    X, y = data
    bagging = BaggingRegressor(
        KNeighborsRegressor(3),
        80,
        max_samples=25,
        max_features=3,
        bootstrap=False,
        random_state=1,
    ).fit(X.to_numpy(), y)
    res = vs.from_sklearn(bagging, X.to_numpy(), y, X.to_numpy()[:4])
    assert res.variance == "hoeffding"
    assert res.kind.name == "UNKNOWN"  # neighbours, not trees
    assert_allclose(res.params, bagging.predict(X.to_numpy()[:4]), **SAME_ALGEBRA)


def test_bagged_classifiers_may_lack_a_class(data):
    X, _ = data
    labels = np.array(["rare", *["a", "b"] * 34, "a"])
    bagging = BaggingClassifier(n_estimators=60, max_samples=10, random_state=1)
    bagging.fit(X.to_numpy(), labels)
    res = vs.from_sklearn(bagging, X.to_numpy(), labels, X.to_numpy()[:4])
    expected = bagging.predict_proba(X.to_numpy()[:4])
    assert_allclose(res.params, expected.ravel(), **SAME_ALGEBRA)


def test_adopted_forests_predict_and_summarise(data):
    X, y = data
    forest = RandomForestRegressor(100, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X.head(2))
    assert_allclose(res.predict(X), forest.predict(X), **SAME_ALGEBRA)
    assert "RandomForestRegressor" in str(res.summary())
    with pytest.raises(ValueError, match=r"shape \(rows, 5\)"):
        res.predict(X.to_numpy()[:, :2])


@pytest.mark.parametrize(
    ("forest", "error", "message"),
    [
        (ExtraTreesRegressor(10, random_state=1), ValueError, "saw every row once"),
        (
            GradientBoostingRegressor(random_state=1),
            TypeError,
            "random forest or a bagging",
        ),
        ("forest", TypeError, "must be a scikit-learn ensemble"),
    ],
)
def test_other_ensembles_say_why_they_do_not_serve(data, forest, error, message):
    X, y = data
    fitted = forest if isinstance(forest, str) else forest.fit(X, y)
    with pytest.raises(error, match=message):
        vs.from_sklearn(fitted, X, y, X.head(2))


def test_the_training_data_must_be_given(data):
    X, y = data
    forest = RandomForestRegressor(20, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match="must be the RandomForestRegressor's"):
        vs.from_sklearn(forest, X.head(9), y.head(9), X.head(2))
    longer = pd.concat([X, X.head(9)])
    with pytest.raises(ValueError, match=r"it has 79 rows, .* fitted to 70"):
        vs.from_sklearn(forest, longer, pd.concat([y, y.head(9)]))
    with pytest.raises(ValueError, match="one-dimensional with 70 values"):
        vs.from_sklearn(forest, X, y.head(9), X.head(2))


def test_columns_are_found_by_their_names(data):
    X, y = data
    forest = RandomForestRegressor(50, random_state=1).fit(X, y)
    straight = vs.from_sklearn(forest, X, y, X.head(3))
    turned = vs.from_sklearn(forest, X[X.columns[::-1]], y, X[X.columns[::-1]].head(3))
    np.testing.assert_array_equal(straight.values, turned.values)
    with pytest.raises(ValueError, match="'x5' is missing"):
        straight.predict(X.drop(columns="x5"))


def test_learners_without_probabilities_are_refused(data):
    X, y = data
    bagging = BaggingClassifier(LinearSVC(), 10, max_samples=40, random_state=1)
    bagging.fit(X, y > 14)
    with pytest.raises(ValueError, match="must have `predict_proba`"):
        vs.from_sklearn(bagging, X, y > 14, X.head(2))


def test_predictions_of_trees_and_classifiers_have_a_limit():
    data = vs.datasets.mars(30, rng=1)
    X, y = data.drop(columns="y"), data["y"]
    forest = RandomForestRegressor(20, max_samples=10, random_state=1).fit(X, y)
    limit = vs.from_sklearn(forest, X, y, X.head(2)).limit
    assert limit == pytest.approx((y.max() - y.min()) / 2)
    lines = BaggingRegressor(LinearRegression(), 20, random_state=1).fit(X, y)
    assert vs.from_sklearn(lines, X, y, X.head(2)).limit is None
    votes = RandomForestClassifier(20, random_state=1).fit(X, y > 14)
    assert vs.from_sklearn(votes, X, y > 14, X.head(2)).limit == 0.5


@pytest.mark.parametrize("hole", [np.nan, None])
def test_missing_responses_are_refused(data, hole):
    X, y = data
    labels = pd.Series(np.where(y > 14, "hi", "lo"), dtype=object)
    regressor = RandomForestRegressor(20, random_state=1).fit(X, y)
    classifier = RandomForestClassifier(20, random_state=1).fit(X, labels)
    for forest, response in ((regressor, y), (classifier, labels)):
        holes = response.astype(object).copy()
        holes.iloc[[3, 8]] = hole
        with pytest.raises(ValueError, match=r"row 3 has one, and 2 of 70 .* Drop"):
            vs.from_sklearn(forest, X, holes)
    holes = y.copy()
    holes.iloc[5] = np.nan
    with pytest.raises(ValueError, match="row 5 has one, and 1 of 70"):
        vs.from_sklearn(regressor, X, holes)


def test_responses_that_no_fit_has_are_refused(data):
    X, y = data
    labels = np.where(y > 14, "hi", "lo")
    forest = RandomForestClassifier(20, random_state=1).fit(X, labels)
    with pytest.raises(ValueError, match="classes of the fit, hi, lo; got 'in"):
        vs.from_sklearn(forest, X, np.where(y > 18, "in between", labels))
    forest = RandomForestRegressor(20, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match="must be finite"):
        vs.from_sklearn(forest, X, y.where(y < 20, np.inf))
    with pytest.raises(ValueError, match="must be numeric"):
        vs.from_sklearn(forest, X, labels)


FOREST = {"n_estimators": 12, "bootstrap": True, "random_state": 1}
BAGGING = {"n_estimators": 12, "random_state": 1}
FITTED = {
    "mean": RandomForestRegressor(**FOREST),
    "few": RandomForestRegressor(**FOREST, max_samples=0.4, max_depth=3),
    "extra": ExtraTreesRegressor(**FOREST, max_leaf_nodes=6),
    "median": RandomForestRegressor(**FOREST, criterion="absolute_error"),
    "poisson": RandomForestRegressor(**FOREST, criterion="poisson"),
    "bagging": BaggingRegressor(**BAGGING),
    "no bootstrap": BaggingRegressor(**BAGGING, bootstrap=False, max_samples=0.5),
    "some features": BaggingRegressor(
        **BAGGING, max_features=0.6, bootstrap_features=True
    ),
    "bagged medians": BaggingRegressor(
        DecisionTreeRegressor(criterion="absolute_error"), **BAGGING
    ),
    "classes": RandomForestClassifier(**FOREST),
    "extra classes": ExtraTreesClassifier(**FOREST, criterion="entropy"),
    "balanced": RandomForestClassifier(**FOREST, class_weight="balanced"),
    "balanced subsamples": RandomForestClassifier(
        **FOREST, class_weight="balanced_subsample"
    ),
    "bagged classes": BaggingClassifier(**BAGGING, max_samples=9),
    "bagged balanced": BaggingClassifier(
        DecisionTreeClassifier(class_weight="balanced"), **BAGGING
    ),
}


def fitted_to(forest, data, weights=None):
    """Fit to features with ties and gaps, and to numbers or three classes."""
    X, y = data
    X = X.assign(x2=X["x2"].round(1), x3=X["x3"].where(X["x1"] > 0.1))
    extra = isinstance(forest, ExtraTreesRegressor | ExtraTreesClassifier)
    X = X.drop(columns="x3") if extra else X
    classes = hasattr(forest, "predict_proba")
    response = pd.Series(np.digitize(y, [12, 16])) if classes else y
    if weights is None:
        return forest.fit(X, response), X, response
    return forest.fit(X, response, sample_weight=weights), X, response


@pytest.mark.filterwarnings("ignore:When fitting .* with sample_weight")
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("weighted", [False, True])
def test_training_data_are_recognised(data, name, weighted):
    halves = np.where(np.arange(70) % 2, 0.5, 1.5)
    forest, X, y = fitted_to(FITTED[name], data, halves if weighted else None)
    vs.from_sklearn(forest, X, y)
    back = slice(None, None, -1)
    same = "must be the .*'s training data, with the same rows"
    with pytest.raises(ValueError, match=same):
        vs.from_sklearn(forest, X[back], y[back])
    with pytest.raises(ValueError, match=r"reach other leaves than in"):
        vs.from_sklearn(forest, X[back], y)


@pytest.mark.parametrize("name", FITTED)
def test_responses_in_another_order_are_refused(data, name):
    forest, X, y = fitted_to(FITTED[name], data)
    if "median" in name or "balanced" in name:  # roots hold no plain means
        vs.from_sklearn(forest, X, y[::-1])
    else:
        with pytest.raises(
            ValueError, match=r"another mean than in|other shares of classes than in"
        ):
            vs.from_sklearn(forest, X, y[::-1])


def test_two_rows_exchanged_are_noticed(data):
    forest, X, y = fitted_to(FITTED["mean"], data)
    order = np.arange(70)
    order[[10, 50]] = [50, 10]
    with pytest.raises(ValueError, match="another mean"):
        vs.from_sklearn(forest, X, y.iloc[order])
    with pytest.raises(ValueError, match="reach other leaves"):
        vs.from_sklearn(forest, X.iloc[order], y)


def test_rounded_data_are_still_the_training_data(data):
    forest, X, y = fitted_to(FITTED["mean"], (data[0], data[1] + 1e4))
    found = vs.from_sklearn(forest, X.astype(np.float32), y.astype(np.float32))
    assert found.nobs == len(X)


def test_rows_of_weight_zero_and_other_learners_are_not_compared(data):
    X, y = data
    absent = np.where(np.arange(70) < 20, 0.0, 1.0)
    forest = RandomForestRegressor(**FOREST).fit(X, y, sample_weight=absent)
    assert vs.from_sklearn(forest, X, y).nobs == len(X)
    without = DecisionTreeClassifier(class_weight={0: 0, 1: 1})
    bagging = BaggingClassifier(without, **BAGGING).fit(X, y > 14)
    assert vs.from_sklearn(bagging, X, y > 14).nobs == len(X)
    scaled = make_pipeline(StandardScaler(), DecisionTreeRegressor())
    bagged = BaggingRegressor(scaled, **BAGGING).fit(X, y)
    assert vs.from_sklearn(bagged, X, y).nobs == len(X)
