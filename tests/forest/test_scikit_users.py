"""The forests as a user of scikit-learn meets them."""

import copy
import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.kernels import tree_prediction
from vstatkit.kernels.tree_options import Factors

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(120, rng=3)
    return frame.drop(columns="y"), frame["y"]


def regressor(**options):
    options = {"n_estimators": 60, "max_samples": 50, "random_state": 1, **options}
    return vs.ForestRegressor(**options)


def classifier(**options):
    options = {"n_estimators": 60, "max_samples": 50, "random_state": 1, **options}
    return vs.ForestClassifier(**options)


def same_trees(one, other):
    pairs = zip(one.estimators_, other.estimators_, strict=True)
    return all(np.array_equal(a.nodes, b.nodes) for a, b in pairs)


# -- growing on ------------------------------------------------------------------------


@pytest.mark.parametrize("oob_score", [False, True])
def test_a_warm_start_gives_the_forest_of_one_fit(data, oob_score):
    X, y = data
    whole = regressor(oob_score=oob_score).fit(X, y)
    grown = regressor(n_estimators=20, warm_start=True, oob_score=oob_score).fit(X, y)
    kept = grown.estimators_[:20]
    first = grown.predict(X, return_std=True)
    grown.set_params(n_estimators=60).fit(X, y)
    assert all(a is b for a, b in zip(kept, grown.estimators_, strict=False))
    assert same_trees(whole, grown)
    assert_array_equal(
        np.stack(whole.predict(X, return_std=True)),
        np.stack(grown.predict(X, return_std=True)),
    )
    assert not np.array_equal(first[1], grown.predict(X, return_std=True)[1])
    assert_allclose(whole.results_.bse, grown.results_.bse, **SAME_ALGEBRA)
    if oob_score:
        assert_allclose(grown.oob_prediction_, whole.oob_prediction_, **SAME_ALGEBRA)
        assert grown.oob_score_ == pytest.approx(whole.oob_score_)


def test_a_warm_start_asks_for_scores_later_or_no_more(data):
    X, y = data
    whole = regressor(oob_score=True).fit(X, y)
    late = regressor(n_estimators=20, warm_start=True).fit(X, y)
    late.set_params(n_estimators=60, oob_score=True).fit(X, y)
    assert_allclose(late.oob_prediction_, whole.oob_prediction_, **SAME_ALGEBRA)
    early = regressor(n_estimators=20, warm_start=True, oob_score=True).fit(X, y)
    early.set_params(n_estimators=60, oob_score=False).fit(X, y)
    assert same_trees(early, whole)
    assert not hasattr(early, "oob_score_")


@pytest.mark.global_generator
def test_a_warm_start_keeps_a_seed_that_was_drawn(data):
    X, y = data
    forest = regressor(n_estimators=5, random_state=None, warm_start=True).fit(X, y)
    kept, rows = forest.estimators_[:5], forest.estimators_samples_
    forest.set_params(n_estimators=9).fit(X, y)
    assert forest.estimators_[:5] == kept
    assert_array_equal(forest.estimators_samples_[:5], rows)
    again = regressor(n_estimators=9, random_state=None).fit(X, y)
    assert not same_trees(forest, again)


def test_pickled_forests_grow_on_to_the_same_trees(data):
    X, y = data
    forest = regressor(n_estimators=20, warm_start=True).fit(X, y)
    again = pickle.loads(pickle.dumps(forest)).set_params(n_estimators=60).fit(X, y)
    assert same_trees(again, regressor().fit(X, y))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_depth": 2}, "`max_depth`"),
        ({"criterion": "poisson"}, "`criterion`"),
        ({"splitter": "random"}, "`splitter`"),
        ({"max_samples": 60}, "`max_samples` or `bootstrap`"),
        ({"trend": "linear"}, "`trend` or `boost`"),
        ({"min_weight_fraction_leaf": 0.1}, "`min_weight_fraction_leaf`"),
    ],
)
def test_a_warm_start_with_other_settings_is_refused(data, changes, named):
    X, y = data
    forest = regressor(n_estimators=5, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=f"and {named} differs"):
        forest.set_params(n_estimators=9, **changes).fit(X, y)


def test_a_warm_start_with_other_data_is_refused(data):
    X, y = data
    forest = regressor(n_estimators=5, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=9)
    for other in [(X * 2, y), (X.head(100), y.head(100))]:
        with pytest.raises(ValueError, match="and `X` differs"):
            forest.fit(*other)
    with pytest.raises(ValueError, match="and `y` differs"):
        forest.fit(X, y + X["x1"])
    with pytest.raises(ValueError, match="and the weights differs"):
        forest.fit(X, y, sample_weight=np.ones(120))
    with pytest.raises(ValueError, match="must be at least 5, got 3"):
        forest.set_params(n_estimators=3).fit(X, y)
    with pytest.warns(vs.VstatkitWarning, match="adds none"):
        forest.set_params(n_estimators=5).fit(X, y)


# -- classes ---------------------------------------------------------------------------


def test_weights_of_classes_are_weights_of_rows(data):
    X, y = data
    labels = np.where(y > 19, "rare", "often")
    how = {"max_depth": 3}
    rows = np.where(labels == "rare", 5.0, 1.0)
    by_row = classifier(**how).fit(X, labels, sample_weight=rows)
    by_class = classifier(class_weight={"rare": 5}, **how).fit(X, labels)
    assert same_trees(by_row, by_class)
    half = np.linspace(0.5, 1, 120)
    both = classifier(class_weight={"rare": 5}, **how).fit(X, labels, half)
    assert same_trees(both, classifier(**how).fit(X, labels, half * rows))
    balanced = classifier(class_weight="balanced", **how).fit(X, labels)
    weights = compute_sample_weight("balanced", labels)
    assert same_trees(balanced, classifier(**how).fit(X, labels, weights))
    plain = classifier(**how).fit(X, labels)
    assert not same_trees(balanced, plain)
    subsampled = classifier(class_weight="balanced_subsample", **how).fit(X, labels)
    assert not same_trees(subsampled, balanced)
    share = [one.predict_proba(X)[:, 1].mean() for one in (plain, balanced, subsampled)]
    assert share[0] < share[1]
    assert share[1] == pytest.approx(share[2], abs=0.03)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("even", TypeError, "'balanced', 'balanced_subsample', a dict"),
        (
            {"hii": 2},
            ValueError,
            "names 'hii', which is not a class of `y`; did you mean 'hi'",
        ),
        ({"hi": -1}, ValueError, "at least 0; got -1 for 'hi'"),
        ({"hi": "2"}, ValueError, "at least 0; got '2' for 'hi'"),
    ],
)
def test_weights_that_no_class_can_have_are_refused(data, given, error, message):
    X, y = data
    with pytest.raises(error, match=message):
        classifier(class_weight=given).fit(X, np.where(y > 14, "hi", "lo"))


def test_logarithms_of_probabilities(data):
    X, y = data
    forest = classifier().fit(X, np.digitize(y, [12, 16]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = forest.predict_log_proba(X)
    assert_allclose(np.exp(logs), forest.predict_proba(X))
    assert np.isneginf(logs).any()


def test_entropy_scores_as_scikit_learns_does(data):
    X, y = data
    labels = np.digitize(y, [12, 16])
    options = {"criterion": "entropy", "n_estimators": 200, "oob_score": True}
    ours = classifier(**options).fit(X, labels)
    theirs = RandomForestClassifier(max_samples=50, random_state=1, **options)
    theirs.fit(X, labels)
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.06)
    assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=0.06)


# -- what is known of the trees --------------------------------------------------------


def test_leaves_and_rows_of_the_trees(data):
    X, y = data
    forest = regressor(min_samples_leaf=4).fit(X, y)
    leaves = forest.apply(X)
    assert leaves.shape == (120, 60)
    sizes = [len(np.unique(column)) for column in leaves.T]
    assert repr(forest.estimators_) == (
        f"<60 trees of {min(sizes)} to {max(sizes)} leaves>"
    )
    by_hand = np.zeros(120)
    for b, (tree, rows) in enumerate(
        zip(forest.estimators_, forest.estimators_samples_, strict=True)
    ):
        assert rows.shape == (50,)
        assert repr(tree) == f"<Tree: {(tree.nodes['feature'] < 0).sum()} leaves>"
        mean = {}
        for leaf in np.unique(leaves[:, b]):
            mean[leaf] = y.to_numpy()[rows[leaves[rows, b] == leaf]].mean()
        by_hand += np.array([mean[leaf] for leaf in leaves[:, b]]) / 60
    assert_allclose(by_hand, forest.predict(X), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_compiled_sums_of_trees_are_sums_of_their_predictions(
    n_classes, data, monkeypatch
):
    X, y = data
    forest = regressor(categorical_features=[5]) if n_classes is None else classifier()
    codes = X.assign(g=np.arange(120) % 4)
    forest.fit(codes, y if n_classes is None else np.arange(120) % n_classes)
    predict = forest.predict if n_classes is None else forest.predict_proba
    for rows in (1, 63, 120, 300):
        wide = codes.sample(rows, replace=True, random_state=1)
        found = predict(wide)
        values = forest._predictor.values(wide.to_numpy(dtype=float))
        by_hand = values.mean(axis=0).reshape(rows, -1)
        column = found[:, None] if found.ndim == 1 else found
        column = column[:, 1:] if n_classes == 2 else column
        assert_allclose(column, by_hand, **SAME_ALGEBRA)
        with monkeypatch.context() as patch:
            patch.setattr(
                tree_prediction, "StoredStagedKernel", object
            )  # one after the other
            assert_array_equal(predict(wide), found)


# -- pipelines and searches ------------------------------------------------------------


def test_intervals_pass_through_a_pipeline(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), regressor()).fit(X, y)
    inner, rows = pipe[-1], pipe[:-1].transform(X)
    mean, std = pipe.predict(X, return_std=True)
    again, bounds = pipe.predict(X, return_interval=True, alpha=0.1)
    three = pipe.predict(X, return_std=True, return_interval=True)
    assert_array_equal(mean, again)
    assert_array_equal(bounds, inner.predict_interval(rows, alpha=0.1))
    assert_array_equal(three[1], std)
    assert_array_equal(three[2], inner.predict_interval(rows))
    with pytest.raises(ValueError, match="`alpha` must lie"):
        pipe.predict(X, return_interval=True, alpha=5)
    classes = make_pipeline(StandardScaler(), classifier()).fit(X, y > 14)
    share, bounds = classes.predict_proba(X, return_interval=True)
    assert_array_equal(bounds, classes[-1].predict_interval(rows))
    assert ((bounds[:, :, 0] <= share) & (share <= bounds[:, :, 1])).all()


def test_intervals_pass_where_metadata_are_routed(data):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        forest = regressor().set_predict_request(return_interval=True)
        pipe = make_pipeline(StandardScaler(), forest).fit(X, y)
        _, bounds = pipe.predict(X.head(2), return_interval=True)
    assert bounds.shape == (2, 2)


def test_names_of_a_column_transformer_reach_the_summary(data):
    X, y = data
    X = X.assign(g=np.tile(list("abc"), 40))
    encode = OneHotEncoder(sparse_output=False)
    table = ColumnTransformer(
        [("n", StandardScaler(), ["x1", "x2"]), ("g", encode, ["g"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(table, regressor()).fit(X, y)
    names = ["x1", "x2", "g_a", "g_b", "g_c"]
    assert pipe[-1].results_.effects.index.to_list() == names
    assert "g_c" in str(pipe[-1].summary())


def test_searches_calibration_and_inspection(data):
    X, y = data
    grid = {"max_leaf_nodes": [None, 8], "min_samples_leaf": [1, 5]}
    search = GridSearchCV(regressor(n_estimators=20), grid, cv=3).fit(X, y)
    assert search.best_estimator_.results_.B == 20
    logs = cross_val_predict(classifier(), X, y > 14, method="predict_log_proba", cv=3)
    assert logs.shape == (120, 2)
    calibrated = CalibratedClassifierCV(classifier(n_estimators=20), cv=3)
    assert_allclose(calibrated.fit(X, y > 14).predict_proba(X).sum(axis=1), 1)
    forest = regressor().fit(X, y)
    found = permutation_importance(forest, X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == forest.feature_importances_.argmax()
    several = MultiOutputRegressor(regressor()).fit(X, np.column_stack([y, -y]))
    assert_array_equal(several.predict(X)[:, 0], forest.predict(X))
    labels = np.column_stack([y > 14, y > 16])
    assert MultiOutputClassifier(classifier()).fit(X, labels).predict(X).shape == (
        120,
        2,
    )


def test_partial_dependence_is_the_results(data):
    X, y = data
    forest = regressor().fit(X, y)
    grid = np.array([0.2, 0.5, 0.8])
    found = partial_dependence(forest, X, ["x1"], custom_values={"x1": grid})
    curve = forest.results_.partial_dependence("x1", grid=grid)
    assert_allclose(found["average"][0], curve.params, rtol=1e-10)
    assert (curve.bse > 0).all()


# -- results ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["frame", "array", "missing", "factors"])
def test_results_are_those_of_the_forest(data, kind):
    X, y = data
    options = {}
    if kind == "array":
        X = X.to_numpy()
    if kind == "missing":
        X = X.mask(np.random.default_rng(0).uniform(size=X.shape) < 0.1)
    if kind == "factors":
        levels = pd.Categorical(np.tile(list("bacd"), 30), list("dcab"))
        X = X.assign(g=levels)[["x1", "g", "x2"]]
        options = {"categorical_features": "from_dtype"}
    forest = regressor(**options).fit(X, y)
    results = forest.results_
    mean, std = forest.predict(X, return_std=True)
    found = results.get_prediction(X)
    assert_allclose(found.predicted_mean, mean, **SAME_ALGEBRA)
    assert_allclose(found.se_mean, std, rtol=1e-9)
    bounds = forest.predict_interval(X, alpha=0.2)
    assert_allclose(found.conf_int(0.2), bounds, rtol=1e-9)
    assert results.labels.to_list() == ["typical"]
    scored = regressor(oob_score=True, **options).fit(X, y)
    assert results.scores.table["OOB R-squared"] == pytest.approx(scored.oob_score_)
    assert scored.results_.scores.table == pytest.approx(results.scores.table)
    typical = pd.DataFrame(X).median(numeric_only=True)
    assert_allclose(
        results.typical.select_dtypes("number").iloc[0].to_numpy(dtype=float), typical
    )
    if kind == "factors":
        assert results.effects.index.to_list() == ["x1", "g", "g", "g", "x2"]
    if kind == "array":
        assert results.effects.index.to_list() == ["x0", "x1", "x2", "x3", "x4"]
        with pytest.raises(ValueError, match=r"shape \(rows, 5\); got \(120, 2\)"):
            results.predict(X[:, :2])


def test_results_of_a_forest_are_those_of_a_fit(data):
    """A forest and `fit` grow the same trees from the same seed."""
    X, y = data
    forest = regressor(max_features=2).fit(X, y)
    fitted = vs.fit(
        "y ~ x1 + x2 + x3 + x4 + x5",
        X.assign(y=y),
        k=50,
        B=60,
        rng=forest.design_.seed,
        max_features=2,
    )
    ours = forest.results_
    assert_allclose(ours.params, fitted.params, **SAME_ALGEBRA)
    assert_allclose(ours.bse, fitted.bse, rtol=1e-9)
    columns = ["estimate", "std_error", "ci_lower"]
    assert_allclose(ours.effects[columns], fitted.effects[columns], rtol=1e-8)
    assert ours.scores.table == pytest.approx(fitted.scores.table)
    pair = [one.importance().frame["importance"] for one in (ours, fitted)]
    assert_allclose(*pair, rtol=1e-8)
    assert ours.more(80).B == 80


def test_results_of_classes(data):
    X, y = data
    labels = np.where(y > 14, "hi", "lo")
    forest = classifier().fit(X, labels)
    assert forest.results_.info.response == "P(y = lo)"
    assert "P(y = lo)" in str(forest.summary(alpha=0.1))
    share = forest.predict_proba(X)
    assert_allclose(forest.results_.predict(X), share[:, 1], **SAME_ALGEBRA)
    three = classifier().fit(X, np.digitize(y, [12, 16]))
    found = three.results_.predict(X)
    assert_allclose(found.to_numpy(), three.predict_proba(X), **SAME_ALGEBRA)


def test_results_are_saved_but_not_pickled(data, tmp_path):
    X, y = data
    forest = regressor().fit(X, y)
    forest.results_.save(tmp_path / "forest.vsk")
    loaded = vs.load(tmp_path / "forest.vsk")
    expected = forest.predict(X.head(3), return_std=True)[1]
    assert_allclose(loaded.get_prediction(X.head(3)).se_mean, expected, rtol=1e-9)
    again = pickle.loads(pickle.dumps(forest))
    assert len(pickle.dumps(forest)) < len(pickle.dumps(forest.__dict__))
    assert_array_equal(again.predict(X), forest.predict(X))
    with pytest.raises(ValueError, match="pickles hold no training data"):
        again.summary()


def test_looking_at_a_forest_makes_no_results(data):
    X, y = data
    forest = regressor().fit(X, y)
    assert "predict" in dir(forest)
    assert "estimators_" in forest._repr_html_()
    assert forest._results is None
    for options in ({"n_estimators": 1}, {"bootstrap": False, "max_samples": None}):
        without = regressor(**options).fit(X, y)
        assert len(without._repr_html_()) > 100
        with pytest.raises(ValueError, match="standard errors need"):
            without.summary()
    with pytest.raises(sklearn.exceptions.NotFittedError):
        regressor().summary()


def test_a_fit_anew_forgets_the_results(data):
    X, y = data
    forest = regressor().fit(X, y)
    before = forest.results_
    assert forest.results_ is before
    forest.fit(X, y + 1)
    assert_allclose(forest.results_.params, before.params + 1)


# -- from_sklearn ----------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_adopted_forests_have_a_typical_row_and_effects(data, named):
    X, y = data
    X = X if named else X.to_numpy()
    forest = RandomForestRegressor(80, max_samples=50, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y)
    typical = pd.DataFrame(X).median().to_frame().T
    typical = typical if named else typical.to_numpy()
    assert_allclose(res.params, forest.predict(typical), **SAME_ALGEBRA)
    ends = np.quantile(np.asarray(X)[:, 0], [0.1, 0.9])
    moved = np.repeat(np.asarray(typical), 2, axis=0)
    moved[:, 0] = ends
    moved = pd.DataFrame(moved, columns=X.columns) if named else moved
    change = np.diff(forest.predict(moved)).item()
    assert res.effects["estimate"].iloc[0] == pytest.approx(change)
    assert_allclose(res.predict(X), forest.predict(X), **SAME_ALGEBRA)
    at = vs.from_sklearn(forest, X, y, X[:3])
    assert_allclose(at.params, forest.predict(X[:3]), **SAME_ALGEBRA)
    assert_allclose(at.effects["estimate"], res.effects["estimate"], **SAME_ALGEBRA)


def test_summaries_of_adopted_forests_read_as_those_of_fits(data, tmp_path):
    X, y = data
    forest = RandomForestRegressor(80, max_samples=50, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y)
    with pytest.warns(vs.VstatkitWarning, match="saved without the learners"):
        res.save(tmp_path / "f.vs")
    fit = vs.fit("y ~ .", X.assign(y=y), B=80, k=50, rng=1)
    for one in (res, vs.load(tmp_path / "f.vs"), fit):
        text = " ".join(str(one.summary()).split())
        estimates = text.split("Estimates ")[1].split("typical")[0]
        assert "P>|t|" not in estimates  # nobody asks whether a prediction is zero
        assert "the expectation of this ensemble over data sets of this size" in text
        assert "They do not cover E[y|x]" in text
    assert "P>|t|" in str(res.t_test("x1 = 0").summary())
    table = vs.from_arrays(np.eye(30, dtype=int), np.arange(30.0), replace=True)
    text = " ".join(str(table.summary()).split())
    assert "P>|t|" in text
    assert "the expectation of this statistic over data sets of this size" in text


def test_own_forests_are_taken_too(data):
    X, y = data
    forest = regressor().fit(X, y)
    assert vs.from_sklearn(forest, X, y) is forest.results_
    at = vs.from_sklearn(forest, X, y, X.head(3), variance="ij_u", n_jobs=1)
    assert at.variance == "ij_u"
    assert_allclose(at.params, forest.predict(X.head(3)), **SAME_ALGEBRA)
    with pytest.raises(ValueError, match="training data, of 120 rows; it has 9"):
        vs.from_sklearn(forest, X.head(9), y.head(9))
    pipe = make_pipeline(StandardScaler(), forest).fit(X, y)
    with pytest.raises(TypeError, match=r"pipe\[-1\], pipe\[:-1\].transform"):
        vs.from_sklearn(pipe, X, y)
    rows = pipe[:-1].transform(X)
    assert len(vs.from_sklearn(pipe[-1], rows, y).effects) == 5


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("n_estimator", "did you mean 'n_estimators'"),
        ("seed", "here it is called 'random_state'"),
        ("mtry", "here it is called 'max_features'"),
        ("num_trees", "here it is called 'n_estimators'"),
    ],
)
def test_mistyped_parameters_are_recognised(name, meant):
    for kind in (vs.ForestRegressor, vs.ForestClassifier):
        with pytest.raises(TypeError, match=f"{kind.__name__} has no .*{meant}"):
            kind(**{name: 3})


def test_signatures_are_those_of_the_parameters():
    for kind in (vs.ForestRegressor, vs.ForestClassifier):
        names = list(inspect.signature(kind).parameters)
        assert sorted(names) == sorted(kind().get_params())
        assert clone(kind(7)).n_estimators == 7


@pytest.mark.parametrize("n_jobs", ["x", 0, 1.5, True])
def test_workers_that_cannot_be_counted_are_refused(data, n_jobs):
    with pytest.raises(ValueError, match="`n_jobs` must be None or a whole number"):
        regressor(n_jobs=n_jobs).fit(*data)


def test_data_of_other_kinds_are_refused_with_advice(data):
    X, y = data
    with pytest.raises(TypeError, match=r"Use '.toarray\(\)'"):
        regressor().fit(sparse.csr_matrix(X), y)
    two = np.column_stack([y, y])
    with pytest.raises(ValueError, match="MultiOutputRegressor"):
        regressor().fit(X, two)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        classifier().fit(X, two > 14)
    text = X.assign(g="a")
    with pytest.raises(ValueError, match="column 'g' holds text"):
        regressor().fit(text, y)
    with pytest.raises(ValueError, match="Use ForestClassifier"):
        regressor().fit(X, np.where(y > 14, "hi", "lo"))
    assert_array_equal(
        regressor().fit(X, y.astype(str)).predict(X),
        regressor().fit(X, y.astype(str).astype(float)).predict(X),
    )


@pytest.mark.parametrize("forest", [regressor, classifier])
def test_missing_responses_are_refused(data, forest):
    X, y = data
    holes = y.round().astype(object).where(y < 20, None)
    count = int(holes.isna().sum())
    with pytest.raises(ValueError, match=f"missing values; row .* {count} of 120"):
        forest().fit(X, holes)


def test_factors_that_results_cannot_have_say_what_to_do(data):
    X, y = data
    holes = X.assign(g=pd.Categorical(["a", "b", None] * 40))
    forest = regressor(categorical_features=["g"]).fit(holes, y)
    assert forest.predict(holes, return_std=True)[1].shape == (120,)
    with pytest.raises(ValueError, match="without missing values; 'g' has 40"):
        forest.summary()
    X = X.assign(g=pd.Categorical(["a"] * 120))
    forest = regressor(categorical_features=["g"]).fit(X, y)
    assert isinstance(forest._factors, Factors)
    with pytest.raises(vs.FormulaError, match="a factor of one level"):
        forest.summary()


def arrays(data):
    return data.drop(columns="y").to_numpy().copy(), data["y"].to_numpy().copy()


def test_later_changes_of_the_data_change_nothing():
    data = vs.datasets.mars(100, rng=1)
    weights = np.linspace(1, 2, 100)
    for given in (arrays(data), (data.drop(columns="y"), data["y"].copy())):
        X, y = given
        untouched = vs.ForestRegressor(60, random_state=1).fit(X, y, weights)
        wanted = untouched.results_.effects
        forest = vs.ForestRegressor(60, random_state=1).fit(X, y, weights)
        X *= 2
        y *= 3
        weights[:] = weights[::-1].copy()
        pd.testing.assert_frame_equal(forest.results_.effects, wanted)
        assert forest.results_.scores.table == untouched.results_.scores.table


def test_later_changes_of_classes_change_nothing():
    X, y = arrays(vs.datasets.mars(100, rng=1))
    y = (y > 14).astype(float)
    wanted = vs.ForestClassifier(60, random_state=1).fit(X, y).results_.effects
    forest = vs.ForestClassifier(60, random_state=1).fit(X, y)
    X[:] = X[::-1].copy()
    y[:] = 0
    pd.testing.assert_frame_equal(forest.results_.effects, wanted)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_answer_as_the_original_does(copied):
    X, y = arrays(vs.datasets.mars(100, rng=1))
    forest = vs.ForestRegressor(60, random_state=1, warm_start=True).fit(X, y)
    other = copied(forest)
    assert str(other.summary()) == str(forest.summary())
    assert str(copied(forest).summary()) == str(forest.summary())  # made before
    other.set_params(n_estimators=80).fit(X, y)
    assert (other.n_estimators_, forest.n_estimators_) == (80, 60)
    # Training data are private and never written to: deep copies share them.
    assert copied(forest)._trained.kernel.X is forest._trained.kernel.X
    with pytest.raises(ValueError, match="pickles hold no training data"):
        pickle.loads(pickle.dumps(other)).summary()


def test_columns_of_one_name_are_refused():
    data = vs.datasets.mars(40, rng=1)
    X, y = data[["x1", "x2"]], data["y"]
    twice = pd.concat([X, X[["x1"]]], axis=1)
    message = r"'x1' occurs 2 times in `X`\. Rename .*duplicated\(\)"
    for given in (None, [1]):
        with pytest.raises(ValueError, match=message):
            vs.ForestRegressor(5, categorical_features=given).fit(twice, y)
    fitted = vs.ForestRegressor(5, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(twice)
    with pytest.raises(vs.FormulaError, match=r"'x1' occurs twice\. Rename"):
        vs.fit("y ~ x1", pd.concat([data, X[["x1"]]], axis=1))


def test_a_categorical_column_is_not_told_to_become_one():
    data = vs.datasets.mars(40, rng=1)
    X = data[["x1", "x2"]].assign(g=pd.Categorical(["a", "b"] * 20))
    for given in (None, ["x1"]):
        with pytest.raises(ValueError, match="'g' is categorical, and") as caught:
            vs.ForestRegressor(5, categorical_features=given).fit(X, data["y"])
        assert "astype" not in str(caught.value)
        assert "categorical_features='from_dtype'" in str(caught.value)
        assert "['g']" in str(caught.value)
    for given in ("from_dtype", ["g"]):
        forest = vs.ForestRegressor(5, categorical_features=given, random_state=1)
        forest.fit(X, data["y"])


@pytest.mark.parametrize("name", ["o.csv", "o.parquet"])
def test_a_missing_directory_of_predictions_is_named(name, tmp_path):
    data = vs.datasets.mars(40, rng=1)
    res = vs.fit("y ~ x1", data, B=10, rng=1)
    path = tmp_path / "missing" / name
    message = f"there is no directory {re.escape(str(path.parent))} to write {name} in"
    for write in (res.predict, res.get_prediction):
        with pytest.raises(FileNotFoundError, match=message):
            write(data, out=path)
