"""The forests as scikit-learn estimators."""

import dataclasses
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.ensemble import prediction
from vstatkit.inference import estimates as inference
from vstatkit.sampling.design import to_dense

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")

SUBSAMPLING = "rows are subsampled before they are weighted, as in RandomForest*"


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(150, rng=3)
    return frame.drop(columns="y"), frame["y"]


@pytest.fixture
def sample(data):
    X, y = data
    return X.to_numpy(), y.to_numpy()


@pytest.mark.parametrize("kind", [vs.ForestRegressor, vs.ForestClassifier])
@pytest.mark.global_generator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks_pass(kind):
    answers = check_estimator(
        kind(n_estimators=20),
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": SUBSAMPLING
        },
        on_skip=None,
    )
    assert sum(answer["status"] == "passed" for answer in answers) > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "mars", "breast_cancer", "digits"])
def test_scores_are_scikit_learns_within_one_standard_error(name):
    frame = vs.datasets.mars(500, rng=1) if name == "mars" else None
    frame = vs.datasets.LOADERS[name]() if frame is None else frame
    response = frame.columns[-1]
    X, y = frame.drop(columns=response).to_numpy(), frame[response].to_numpy()
    options = {"n_estimators": 200, "random_state": 1}
    if isinstance(frame[response].dtype, pd.CategoricalDtype):
        pair = [vs.ForestClassifier(**options), RandomForestClassifier(**options)]
    else:
        options["max_features"] = 1 / 3
        pair = [vs.ForestRegressor(**options), RandomForestRegressor(**options)]
    order = np.random.default_rng(0).permutation(len(y))
    ours, theirs = (cross_val_score(one, X[order], y[order], cv=5) for one in pair)
    assert abs(ours.mean() - theirs.mean()) < theirs.std(ddof=1) / np.sqrt(5)


def test_threads_change_nothing(data):
    X, y = data
    one, two = (
        vs.ForestRegressor(80, random_state=1, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    for a, b in zip(one.estimators_, two.estimators_, strict=True):
        assert_array_equal(a.nodes, b.nodes)
    assert_array_equal(one.predict(X), two.predict(X))


def test_standard_errors_are_those_of_the_same_ensemble(data):
    X, y = data
    forest = vs.ForestRegressor(200, max_samples=50, random_state=1).fit(X, y)
    mean, std = forest.predict(X.head(5), return_std=True)
    counts = np.asarray(forest.design_.counts(0, 200))
    values = forest._predictor.values(X.head(5).to_numpy())
    expected = vs.from_arrays(counts, values, replace=True, kind="trees")
    # Trees are compared on rows of their own, not on the ones asked for.
    assert forest._orders.n_learners == 200
    pooled, residuals = forest._pooled
    rows = X.head(5).to_numpy()
    influence = residuals.influence(forest._kernel, forest.estimators_, rows)
    expected = dataclasses.replace(
        expected, orders=forest._orders, pooled=pooled, leaf_influence=influence
    )
    assert_allclose(mean, expected.params, **SAME_ALGEBRA)
    assert_allclose(std, expected.bse, rtol=1e-8)
    bounds = forest.predict_interval(X.head(5), alpha=0.1)
    tails = forest.results_.tails  # from these rows, too
    expected = dataclasses.replace(expected, tails=tails)
    assert_allclose(bounds, expected.conf_int(0.1), rtol=1e-8)


def test_classes_have_probabilities_with_errors(data):
    X, y = data
    for labels in (np.where(y > 14, "hi", "lo"), np.digitize(y, [12, 16])):
        forest = vs.ForestClassifier(200, max_samples=60, random_state=1)
        forest.fit(X, labels)
        share, std = forest.predict_proba(X, return_std=True)
        assert_allclose(share.sum(axis=1), 1, rtol=1e-12)
        assert std.shape == share.shape == (150, len(forest.classes_))
        bounds = forest.predict_interval(X.head(3))
        assert bounds.shape == (3, len(forest.classes_), 2)
        assert_array_equal(forest.predict(X), forest.classes_[share.argmax(axis=1)])


def test_out_of_bag_scores_match_a_fit_of_the_same_subsamples(data):
    X, y = data
    forest = vs.ForestRegressor(100, oob_score=True, random_state=1).fit(X, y)
    counts = np.asarray(forest.design_.counts(0, 100))
    h = forest._predictor.values(X.to_numpy())
    out = counts == 0
    by_hand = (h * out).sum(axis=0) / out.sum(axis=0)
    assert_allclose(forest.oob_prediction_, by_hand, **SAME_ALGEBRA)
    r2 = 1 - ((y - by_hand) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert forest.oob_score_ == pytest.approx(r2)
    classes = vs.ForestClassifier(100, oob_score=True, random_state=1)
    classes.fit(X, y > 14)
    assert classes.oob_decision_function_.shape == (150, 2)
    assert 0.5 < classes.oob_score_ < 1


def test_importances_find_the_signal(data):
    X, y = data
    forest = vs.ForestRegressor(200, random_state=1).fit(X, y)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert forest.feature_importances_.argmin() == 2  # x3 matters least here
    theirs = RandomForestRegressor(200, max_features=1 / 3, random_state=1).fit(X, y)
    assert_allclose(forest.feature_importances_, theirs.feature_importances_, atol=0.05)


def test_pickles_clones_and_pipelines(data):
    X, y = data
    forest = vs.ForestRegressor(50, max_depth=4, random_state=1)
    assert clone(forest).get_params() == forest.get_params()
    forest.fit(X, y)
    again = pickle.loads(pickle.dumps(forest))
    assert_array_equal(again.predict(X), forest.predict(X))
    pipe = make_pipeline(StandardScaler(), clone(forest)).fit(X, y)
    assert pipe.score(X, y) > 0.5


def test_a_random_state_object_moves_on(data):
    X, y = data
    state = np.random.RandomState(3)
    first, second = (
        vs.ForestRegressor(10, random_state=state).fit(X, y).predict(X)
        for _ in range(2)
    )
    assert not np.array_equal(first, second)


def test_every_row_once_has_predictions_but_no_errors(data):
    X, y = data
    forest = vs.ForestRegressor(30, bootstrap=False, random_state=1).fit(X, y)
    assert_allclose(forest.predict(X), y, rtol=1e-12)  # full trees of all rows
    with pytest.raises(ValueError, match="trees that see different rows"):
        forest.predict(X, return_std=True)
    with pytest.raises(ValueError, match="rows that some tree has not seen"):
        forest.set_params(oob_score=True).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "`n_estimators` must be 'auto' or a whole number"),
        ({"n_estimators": "many"}, "`n_estimators` must be 'auto' or a whole number"),
        ({"max_features": 9}, "`max_features` must lie between 1 and 5"),
        ({"max_samples": 1.5}, r"fraction of them in \(0, 1\]"),
        ({"max_samples": 200, "bootstrap": False}, "at most 150"),
    ],
)
def test_bad_parameters_are_refused_at_fit(data, options, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        vs.ForestRegressor(**{"random_state": 1} | options).fit(X, y)


def test_one_tree_has_no_standard_error(data):
    X, y = data
    forest = vs.ForestRegressor(1, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match="at least two trees"):
        forest.predict(X, return_std=True)


def test_missing_values_are_taken(data):
    X, y = data
    holes = X.mask(np.random.default_rng(0).uniform(size=X.shape) < 0.1)
    forest = vs.ForestRegressor(100, random_state=1).fit(holes, y)
    assert forest.score(holes, y) > 0.8


@pytest.mark.parametrize("scale", [1e-300, 1e-155, 1e155, 1e300])
def test_huge_and_tiny_responses_scale_exactly(sample, scale):
    X, y = sample
    unit = 2.0 ** round(np.log2(scale))
    plain = vs.ForestRegressor(20, random_state=1).fit(X, y).predict(X)
    scaled = vs.ForestRegressor(20, random_state=1).fit(X, y * unit).predict(X)
    assert_array_equal(scaled, plain * unit)


@pytest.mark.parametrize("forest", [vs.ForestRegressor, vs.ForestClassifier])
@pytest.mark.parametrize("weights", [-1.0, "some negative"])
def test_weights_that_cannot_be_are_refused(sample, forest, weights):
    X, y = sample
    given = np.where(np.arange(len(y)) < 3, -1.0, 1.0)
    given = given if weights == "some negative" else np.full(len(y), weights)
    with pytest.raises(ValueError, match="`sample_weight` must be at least 0"):
        forest(5).fit(X, y > np.median(y), sample_weight=given)


def test_a_subsample_without_weight_is_an_error(sample):
    X, y = sample
    weights = np.zeros(len(y))
    weights[0] = 1.0
    forest = vs.ForestRegressor(50, max_samples=3, random_state=1)
    with pytest.raises(ValueError, match="no row of positive weight"):
        forest.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_samples": 0}, ValueError, "`max_samples` must be None"),
        ({"max_samples": 1.5}, ValueError, "`max_samples` must be None"),
        ({"max_samples": "all"}, TypeError, "`max_samples` must be None"),
        (
            {"max_samples": 10_000, "bootstrap": False},
            ValueError,
            "`max_samples` must be None, .* at most",
        ),
        ({"bootstrap": "no"}, TypeError, "`bootstrap` must be True or False"),
        ({"oob_score": 3}, TypeError, "`oob_score` must be True or False"),
        (
            {"n_estimators": True},
            ValueError,
            "`n_estimators` must be 'auto' or a whole",
        ),
        ({"max_features": [1]}, TypeError, "`max_features` must be a number"),
    ],
)
def test_parameters_are_named_in_errors(sample, options, error, message):
    with pytest.raises(error, match=message):
        vs.ForestRegressor(**{"n_estimators": 5, "random_state": 1, **options}).fit(
            *sample
        )


def test_standard_errors_need_two_rows(sample):
    X, y = sample
    one = vs.ForestRegressor(5, random_state=1).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="at least two training rows"):
        one.predict(X[:1], return_std=True)


def test_scores_of_an_earlier_fit_are_forgotten(sample):
    X, y = sample
    forest = vs.ForestRegressor(50, oob_score=True, random_state=1).fit(X, y)
    assert forest.oob_score_ < 1
    forest.set_params(oob_score=False).fit(X, y)
    assert not hasattr(forest, "oob_score_")
    assert not hasattr(forest, "oob_prediction_")


def test_counts_that_are_held_give_the_same_standard_errors(sample, monkeypatch):
    X, y = sample
    forest = vs.ForestRegressor(60, max_samples=0.4, random_state=1).fit(X, y)
    drawn = forest.predict_interval(X)
    monkeypatch.setattr(inference, "CHUNK_ENTRIES", 2 * len(X))
    held = inference.cache_counts(forest.design_, 60, len(X))
    assert held.name == "given"
    assert_array_equal(to_dense(held.counts(0, 60)), forest.design_.counts(0, 60))
    assert_allclose(forest.predict_interval(X), drawn, **SAME_ALGEBRA)


INTERRUPTED = """
import os, signal, threading
import numpy as np
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.streams import learner_keys

n = 1_000_000
rng = np.random.default_rng(1)
X, y = rng.normal(size=(n, 8)), rng.normal(size=n)
kernel = tree_kernel("tree", X, y, n_classes=None, weights=None, options={})
counts, keys = np.ones((1, n)), learner_keys(1, 0, 1)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    kernel.grow(UnitDraw(counts), keys, X[:1], keep=True)
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_tree_can_be_interrupted():
    """A single tree takes seconds; the signal comes in the middle of it."""
    command = [sys.executable, "-c", INTERRUPTED]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "interrupted"


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_standard_errors_come_with_one_prediction(n_classes, sample, monkeypatch):
    """Every tree predicts once, and the means are those without standard errors."""
    X, y = sample
    if n_classes is None:
        forest = vs.ForestRegressor(40, max_samples=60, random_state=1).fit(X, y)
        predict = forest.predict
    else:
        forest = vs.ForestClassifier(40, max_samples=60, random_state=1)
        forest.fit(X, np.arange(len(y)) % n_classes)
        predict = forest.predict_proba
    alone = predict(X[:7])
    calls = []
    original = prediction.predict_all

    def counted(kernel, learners, points, predict):
        calls.extend([len(points)] * len(learners))
        return original(kernel, learners, points, predict)

    monkeypatch.setattr(prediction, "predict_all", counted)
    mean, std = predict(X[:7], return_std=True)
    assert [size for size in calls if size != len(forest._reference)] == [7] * 40
    calls.clear()
    predict(X[:7], return_std=True)  # trees are compared once
    assert calls == [7] * 40
    assert_allclose(mean, alone, rtol=1e-12)
    assert mean.shape == std.shape == alone.shape


def test_importances_with_a_tiny_weight_are_finite(sample):
    X, y = sample
    weights = np.ones(len(y))
    weights[-1] = 1e-20
    X = np.vstack([X[:-1], X.max(axis=0) + 1])
    forest = vs.ForestRegressor(20, random_state=1).fit(X, y, sample_weight=weights)
    assert_allclose(forest.feature_importances_.sum(), 1.0)
    labels = np.arange(len(y)) % 3
    trees = vs.ForestClassifier(20, random_state=1).fit(X, labels, weights)
    assert_allclose(trees.feature_importances_.sum(), 1.0)


@pytest.fixture
def factors(rng):
    """A factor of five levels that is not monotone, and a number."""
    level = rng.integers(5, size=150)
    y = np.array([3.0, 9.0, 1.0, 7.0, 5.0])[level] + rng.normal(size=150)
    frame = pd.DataFrame({"x": rng.normal(size=150), "g": level})
    named = frame.assign(g=pd.Categorical.from_codes(level, list("pqrst")))
    return frame, named, y


GIVEN = [[False, True], [1], ["g"], np.array([1]), "from_dtype"]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_factors_are_found_by_mask_place_name_and_dtype(given, factors):
    codes, named, y = factors
    options = {"n_estimators": 30, "random_state": 1, "oob_score": True}
    plain = vs.ForestRegressor(categorical_features=[1], **options).fit(
        codes.to_numpy(), y
    )
    forest = vs.ForestRegressor(categorical_features=given, **options).fit(named, y)
    assert_array_equal(forest.predict(named), plain.predict(codes.to_numpy()))
    assert_array_equal(forest.oob_prediction_, plain.oob_prediction_)
    assert forest._kernel.levels == (0, 5)
    numbers = vs.ForestRegressor(**options).fit(codes, y)
    assert numbers._kernel.levels is None
    assert forest.feature_importances_[1] > 0.5


def test_categories_are_known_by_name_not_by_place(factors):
    _, named, y = factors
    options = {"n_estimators": 30, "random_state": 1}
    forest = vs.ForestRegressor(categorical_features="from_dtype", **options)
    forest.fit(named, y)
    turned = named.assign(g=named["g"].cat.reorder_categories(list("tsrqp")))
    text = named.assign(g=named["g"].astype(object))
    assert_array_equal(forest.predict(turned), forest.predict(named))
    assert_array_equal(forest.predict(text), forest.predict(named))
    gone = named.assign(g=pd.Categorical([None] * 150, list("pqrst")))
    new = named.assign(g="unseen")
    with pytest.warns(vs.UnobservedLevelWarning, match="150 of 150 rows"):
        unknown = forest.predict(new)
    assert_array_equal(unknown, forest.predict(gone))


@pytest.mark.parametrize("kind", [vs.ForestRegressor, vs.ForestClassifier])
@pytest.mark.parametrize("coded", [False, True])
def test_levels_that_no_training_row_has(kind, coded):
    """Codes 0, 1 and 3 occur; 2 is declared, and 4 is not."""
    rng = np.random.default_rng(1)
    codes = rng.choice([0, 1, 3], 60)
    names = np.array([*"abcde"])
    y = codes + rng.normal(size=60)
    y = y if kind is vs.ForestRegressor else y > 1.5

    def table(places):
        g = pd.Categorical(names[places], list("abcde" if 4 in places else "abcd"))
        numbers = np.asarray(places, dtype=float)
        x = np.arange(len(places))
        return pd.DataFrame({"x": x, "g": numbers if coded else g})

    forest = kind(20, random_state=1, categorical_features=["g"])
    forest.fit(table(codes), y)
    ask = [forest.predict, forest.apply, forest.predict_interval]
    if kind is vs.ForestClassifier:
        ask += [forest.predict_proba, forest.predict_log_proba]
    with warnings.catch_warnings():
        warnings.simplefilter("error", vs.UnobservedLevelWarning)
        for one in ask:
            one(table([0, 1, 3, 3]))
    for place in (2, 4):
        level = f"{place}.0" if coded else names[place]
        words = f"1 of 3 rows to predict have a level .* g = '{level}' in row 1"
        for one in ask:
            with pytest.warns(vs.UnobservedLevelWarning, match=words) as seen:
                one(table([0, place, 3]))
            assert seen[0].filename == __file__
    missing = table([0, 1, 3]).assign(g=[np.nan] * 3 if coded else [None] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", vs.UnobservedLevelWarning)
        forest.predict(missing)
        loaded = pickle.loads(pickle.dumps(forest))
    with pytest.warns(vs.UnobservedLevelWarning):
        loaded.predict(table([2, 2]))


def test_classes_have_factors_too(factors):
    _, named, y = factors
    labels = np.digitize(y, [3, 6])
    forest = vs.ForestClassifier(
        50, categorical_features=["g"], splitter="random", random_state=1
    ).fit(named, labels)
    assert forest.score(named, labels) > 0.9
    assert pickle.loads(pickle.dumps(forest)).predict(named).tolist() == (
        forest.predict(named).tolist()
    )


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        ([2], [0, 1, 2], "places or names of the 1 columns; got .2."),
        (["z"], [0, 1, 2], "places or names"),
        ("g", [0, 1, 2], "places or names"),
        ([0.5], [0, 1, 2], "places or names"),
        ([0], [0, 1, 64], "from 0 to 63, or missing values; got 64"),
        ([0], [0, 1.5, 2], "got 1.5"),
        ([0], pd.Categorical(range(65)), "at most 64 levels; column 'g' has 65"),
    ],
)
def test_factors_that_cannot_be_are_refused(given, column, message):
    frame = pd.DataFrame({"g": column})
    forest = vs.ForestRegressor(2, categorical_features=given, random_state=1)
    with pytest.raises(ValueError, match=message):
        forest.fit(frame, np.arange(len(frame)))


def test_new_rows_must_hold_codes():
    forest = vs.ForestRegressor(2, categorical_features=[0], random_state=1)
    forest.fit(np.array([[0.0], [1.0], [2.0]]), [1, 2, 3])
    with pytest.warns(vs.UnobservedLevelWarning, match="1 of 2 rows"):
        assert np.isfinite(forest.predict([[63.0], [np.nan]])).all()
    with pytest.raises(ValueError, match="column 0 is a factor"):
        forest.predict([[0.5]])


@pytest.mark.parametrize("weights", [[[1.0]] * 3, [1.0, 2.0]])
def test_weights_of_another_shape_are_refused(weights):
    with pytest.raises(ValueError, match=r"sample_weight|1D|each of the 3 rows"):
        vs.ForestRegressor(2).fit(np.eye(3), [1, 2, 3], sample_weight=weights)


@pytest.mark.parametrize("criterion", ["poisson", "absolute_error"])
def test_criteria_are_parameters(criterion, sample):
    X, y = sample
    options = {"n_estimators": 100, "max_samples": 60, "random_state": 1}
    forest = vs.ForestRegressor(criterion=criterion, **options).fit(X, y)
    default = vs.ForestRegressor(**options).fit(X, y)
    mean, std = forest.predict(X[:4], return_std=True)
    assert (std > 0).all()
    assert not np.array_equal(mean, default.predict(X[:4]))
    with pytest.raises(ValueError, match="'log_loss' for classes"):
        vs.ForestClassifier(2, criterion=criterion, random_state=1).fit(X, y > y.mean())


def test_few_predictions_are_made_in_the_calling_thread(monkeypatch):
    """Threads would need more time to begin than one takes for all predictions."""
    threads = set()
    original = prediction.sum_block

    def watched(*arguments):
        threads.add(threading.get_ident())
        return original(*arguments)

    X = np.random.default_rng(3).uniform(size=(1000, 3))
    forest = vs.ForestRegressor(100, random_state=1, n_jobs=2).fit(X, X[:, 0])
    alone = vs.ForestRegressor(100, random_state=1, n_jobs=1).fit(X, X[:, 0])
    monkeypatch.setattr(prediction, "sum_block", watched)
    one = forest.predict(X[:1])
    assert threads == {threading.get_ident()}
    assert_array_equal(one, alone.predict(X[:1]))
    threads.clear()
    forest.predict(X)
    assert threads - {threading.get_ident()}
