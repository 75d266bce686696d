"""Forests grown in R as results: their numbers against R's own."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import r_bridge
import vstatkit as vs
from r_bridge.convert import to_r_frame
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.ensemble.prediction import OwnLearners

pytestmark = pytest.mark.r

GROW = """
function(data) {
  grow <- function(formula, ...) do.call(ranger::ranger, list(
    formula = formula, data = quote(data), num.trees = 60, num.threads = 1, seed = 1,
    ...))
  keep <- function(name, model) assign(name, model, envir = globalenv())
  keep("rf", grow(y ~ x1 + x2 + kind, keep.inbag = TRUE))
  keep("rf_without", grow(y ~ x1, keep.inbag = TRUE, replace = FALSE,
                          sample.fraction = 0.4))
  keep("rf_bare", grow(y ~ x1))
  keep("rf_flat", grow(y ~ x1, keep.inbag = TRUE, write.forest = FALSE))
  keep("rf_two", grow(two ~ x1 + kind, keep.inbag = TRUE, probability = TRUE))
  keep("rf_three", grow(three ~ x1 + x2, keep.inbag = TRUE, probability = TRUE))
  keep("rf_votes", grow(three ~ x1 + x2, keep.inbag = TRUE))
  keep("rf_votes_kind", grow(three ~ size + x2, keep.inbag = TRUE))
  keep("rf_anonymous", ranger::ranger(x = data[c("x1", "x2")], y = data$y,
                                      num.trees = 20, num.threads = 1, seed = 1,
                                      keep.inbag = TRUE))
  keep("not_a_forest", lm(y ~ x1, data))
  NULL
}
"""

GROW_OTHER = """
function(data) {
  grow <- function(formula, ...) randomForest::randomForest(
    formula, data = data, ntree = 60, keep.inbag = TRUE, ...)
  keep <- function(name, model) assign(name, model, envir = globalenv())
  set.seed(1)
  keep("other", grow(y ~ x1 + x2 + kind))
  keep("other_factor", randomForest::randomForest(
    transform(data[c("x1", "kind")], kind = factor(kind, c("zebra", "ape"))), data$y,
    ntree = 60, keep.inbag = TRUE))
  keep("other_without", grow(y ~ x1, replace = FALSE))
  keep("other_classes", grow(three ~ x1 + x2))
  keep("other_strata", grow(three ~ x1 + x2, strata = data$three,
                            sampsize = c(5, 5, 15)))
  sizes <- c(5, 5, 15)
  keep("other_sizes", grow(three ~ x1 + x2, sampsize = sizes))
  keep("other_bare", randomForest::randomForest(y ~ x1, data, ntree = 5))
  NULL
}
"""


def training_data():
    data = vs.datasets.mars(60, rng=1)
    kind = np.where(data.x3 > 0.5, "zebra", "ape")
    sizes = ["small", "middling", "large"]
    return data.assign(
        kind=kind,
        size=pd.cut(data.x4, 3, labels=sizes).cat.as_unordered(),
        two=pd.Categorical(np.where(data.y > 14, "yes", "no"), ["no", "yes"]),
        three=pd.qcut(data.y, 3, labels=["a", "b", "c"]),
    )


DATA = training_data()
NEW = DATA.iloc[[5, 7, 11]]


@pytest.fixture
def forests(session):
    session.call(GROW, to_r_frame(DATA))
    return session


@pytest.fixture
def other_forests(random_forest):
    random_forest.call(GROW_OTHER, to_r_frame(DATA))
    return random_forest


def predicted(session, name, data=NEW):
    frame = to_r_frame(data.assign(kind=pd.Categorical(data.kind, ["ape", "zebra"])))
    code = f"function(x) predict({name}, x, num.threads = 1, seed = 1)$predictions"
    return session.call(code, frame)


@pytest.mark.parametrize(("name", "replace"), [("rf", True), ("rf_without", False)])
def test_a_ranger_forest_has_rangers_mean_and_variance(forests, name, replace):
    res = r_bridge.from_ranger(name, DATA, NEW, variance="ij_u")
    assert res.replace == replace
    assert_allclose(res.params, predicted(forests, name), rtol=1e-12)
    answer = forests.call(
        f"function(P) ranger:::rInfJack(P, simplify2array({name}$inbag.counts), "
        "calibrate = FALSE)",
        np.asfortranarray(res.values.T),
    )
    assert_allclose(res.components.sampling, answer["var.hat"], **SAME_ALGEBRA)


def test_a_ranger_forest_has_everything_that_results_have(forests):
    res = r_bridge.from_ranger("rf", DATA, NEW)
    text = str(res.summary())
    assert "ranger" in text
    assert "Dep. Variable:" in text
    assert list(res.params.index) == [5, 7, 11]
    assert res.cov_params().shape == (3, 3)
    assert res.t_test([[1, -1, 0]]).bse.item() > 0
    assert res.influence().shape == (60, 3)
    rsquared = forests.call("function() rf$r.squared")[0]
    ours = res.scores.table["OOB RMSE"] ** 2
    error = forests.call("function() rf$prediction.error")[0]
    assert_allclose(ours, error, rtol=1e-10)
    assert 0 < rsquared < 1


def test_without_a_formula_nothing_is_scored(forests):
    res = r_bridge.from_ranger("rf_anonymous", DATA, NEW)
    assert res.scores is None
    assert res.info.response == "y"


@pytest.mark.parametrize("name", ["rf", "rf_two", "rf_three"])
def test_a_ranger_forest_predicts_new_data(forests, name):
    one = r_bridge.from_ranger(name, DATA, NEW)
    other = r_bridge.from_ranger(name, DATA, DATA.head(5)).get_prediction(NEW)
    assert_allclose(other.predicted_mean, one.params, rtol=1e-12)
    assert_allclose(other.se_mean, one.bse, rtol=1e-12)
    assert_allclose(other.cov(), one.cov_params(), rtol=1e-10)
    with pytest.raises(ValueError, match="lack column 'x1'"):
        one.predict(NEW.drop(columns="x1"))


def test_saved_results_keep_everything_but_the_trees(forests, tmp_path):
    res = r_bridge.from_ranger("rf", DATA, NEW)
    with pytest.warns(vs.VstatkitWarning, match="fitted by another package"):
        res.save(tmp_path / "res.npz")
    assert_array_equal(vs.load(tmp_path / "res.npz").bse, res.bse)


def test_subsamples_given_to_ranger_are_seen_for_what_they_are(forests):
    forests.call(
        """function(data) {
          inbag <- lapply(1:40, function(b) { set.seed(b); sample(rep(0:1, 30)) })
          assign("rf_given", ranger::ranger(y ~ x1, data, num.trees = 40, inbag = inbag,
                 keep.inbag = TRUE, num.threads = 1), globalenv())
          NULL
        }""",
        to_r_frame(DATA),
    )
    res = r_bridge.from_ranger("rf_given", DATA, NEW)
    assert not res.replace
    assert res.k == 30


def test_text_columns_are_coded_as_in_training(forests):
    # Alone, "zebra" would be the first level of its column, and pass for "ape".
    zebra = DATA[DATA.kind == "zebra"].head(1)
    alone = r_bridge.from_ranger("rf", DATA, zebra).params.item()
    among = predicted(forests, "rf", zebra)
    assert_allclose(alone, among.item(), rtol=1e-12)


def test_two_classes_are_the_probability_of_the_second(forests):
    res = r_bridge.from_ranger("rf_two", DATA, NEW)
    assert_allclose(res.params, predicted(forests, "rf_two")[:, 1], rtol=1e-12)
    assert res.info.response == "P(two = yes)"
    assert "OOB accuracy" in res.scores.table


@pytest.mark.parametrize("name", ["rf_three", "rf_votes"])
def test_three_classes_have_a_row_each(forests, name):
    res = r_bridge.from_ranger(name, DATA, NEW)
    table = res.params.to_numpy().reshape(3, 3)
    assert_allclose(table.sum(axis=1), 1)
    assert res.labels.names == ["point", "class"]
    if name == "rf_three":
        assert_allclose(table, predicted(forests, name), rtol=1e-12)
    else:
        assert set(np.unique(res.values)) == {0.0, 1.0}
        best = np.array(["a", "b", "c"])[table.argmax(axis=1)]
        code = "function(x) as.character(predict(rf_votes, x, seed = 1)$predictions)"
        assert_array_equal(best, forests.call(code, to_r_frame(NEW)))


def test_a_forest_from_a_file(forests, tmp_path):
    path = tmp_path / "forest.rds"
    forests.call("function(path) saveRDS(rf, path)", str(path))
    saved, named = (r_bridge.from_ranger(one, DATA, NEW) for one in (path, "rf"))
    assert_array_equal(saved.values, named.values)


def test_levels_in_another_order_are_noticed(forests):
    # R sorted the text: "ape" was the first level.
    other = DATA.assign(kind=pd.Categorical(DATA.kind, ["zebra", "ape"]))
    with pytest.raises(ValueError, match="levels that R had, in R's order"):
        r_bridge.from_ranger("rf", other, NEW)
    same = DATA.assign(kind=pd.Categorical(DATA.kind, ["ape", "zebra"]))
    r_bridge.from_ranger("rf", same, NEW)


def test_options_of_ranger_that_change_what_is_kept(forests):
    forests.call(
        """function(data) {
          grow <- function(...) ranger::ranger(y ~ x1 + kind, data, num.trees = 40,
                                               num.threads = 1, keep.inbag = TRUE, ...)
          keep <- function(name, model) assign(name, model, envir = globalenv())
          keep("rf_no_oob", grow(oob.error = FALSE))
          keep("rf_parted", grow(respect.unordered.factors = "partition"))
          keep("rf_weighted", ranger::ranger(y ~ x1, data, num.trees = 40,
            num.threads = 1, keep.inbag = TRUE, case.weights = 1:60))
          NULL
        }""",
        to_r_frame(DATA),
    )
    assert r_bridge.from_ranger("rf_no_oob", DATA, NEW).scores is None
    assert (r_bridge.from_ranger("rf_parted", DATA, NEW).bse > 0).all()
    with pytest.warns(vs.VstatkitWarning, match="rows that are drawn alike"):
        r_bridge.from_ranger("rf_weighted", DATA, NEW)


def test_a_file_is_enough_for_an_r_that_has_just_started(forests, tmp_path):
    forests.call("function(path) saveRDS(rf, path)", str(tmp_path / "forest.rds"))
    DATA.to_pickle(tmp_path / "data.pkl")
    code = (
        "import pandas, r_bridge\n"
        "data = pandas.read_pickle('data.pkl')\n"
        "res = r_bridge.from_ranger('forest.rds', data, data.iloc[[5, 7, 11]])\n"
        "print(*res.params)\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    answer = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ours = [float(one) for one in answer.stdout.split()]
    assert_allclose(ours, predicted(forests, "rf"), rtol=1e-12)


def test_levels_in_another_order_are_noticed_from_votes(forests):
    # Read from a file, the sizes are text, and their levels alphabetical.
    r_bridge.from_ranger("rf_votes_kind", DATA, NEW)
    with pytest.raises(ValueError, match="levels that R had, in R's order"):
        r_bridge.from_ranger("rf_votes_kind", DATA.astype({"size": str}), NEW)
    with pytest.raises(ValueError, match="differ from the model's own"):
        r_bridge.from_ranger("rf_votes", DATA[::-1], NEW)


NO_NUMBERS = {
    "text": "0.5",
    "truth": True,
    "category": pd.Categorical(["u", "v", "u"]),
    "date": pd.Timestamp("2020-01-01"),
    "nothing": None,
}


@pytest.mark.parametrize("given", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_numbers_must_be_numbers_in_new_data(forests, given):
    new = NEW.assign(x1=given)
    with pytest.raises(ValueError, match="'x1' must be numeric, as in the training"):
        r_bridge.from_ranger("rf", DATA, new)
    res = r_bridge.from_ranger("rf", DATA, NEW)
    for predict in (res.predict, res.get_prediction):
        with pytest.raises(ValueError, match="'x1' must be numeric, as in the train"):
            predict(new)


def test_whole_numbers_are_numbers(forests):
    whole = r_bridge.from_ranger("rf", DATA, NEW.assign(x1=1)).params
    assert_array_equal(
        whole, r_bridge.from_ranger("rf", DATA, NEW.assign(x1=1.0)).params
    )


def test_truth_values_and_dates_stay_what_they_are(forests):
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(range(60), unit="D")
    data = DATA.assign(flag=DATA.x1 > 0.5, day=day)
    forests.call(
        """function(data) {
          assign("rf_flag", ranger::ranger(y ~ flag + day, data, num.trees = 40,
                 num.threads = 1, keep.inbag = TRUE), globalenv())
          NULL
        }""",
        to_r_frame(data),
    )
    assert (r_bridge.from_ranger("rf_flag", data, data.head(3)).bse > 0).any()
    for change, message in [
        ({"flag": "yes"}, "'flag' must be logical"),
        ({"day": "2020-01-01"}, "'day' must be a date"),
    ]:
        with pytest.raises(ValueError, match=message):
            r_bridge.from_ranger("rf_flag", data, data.head(3).assign(**change))


GROW_CLASSES = """
function(data) {
  grow <- function(formula, ...) suppressWarnings(ranger::ranger(
    formula, data = data, num.trees = 60, num.threads = 1, seed = 1,
    keep.inbag = TRUE, ...))
  keep <- function(name, model) assign(name, model, envir = globalenv())
  keep("rf_unused", grow(two ~ x1 + x2, probability = TRUE))
  keep("rf_logical", grow(flag ~ x1 + x2, probability = TRUE))
  keep("rf_zero_one", grow(whole ~ x1 + x2, probability = TRUE))
  keep("rf_unused_votes", grow(two ~ x1 + x2))
  keep("rf_logical_votes", grow(flag ~ x1 + x2))
  keep("rf_zero_one_votes", grow(whole ~ x1 + x2, classification = TRUE))
  NULL
}
"""


@pytest.mark.parametrize("yes_first", [True, False])
def test_classes_are_those_that_occur(forests, yes_first):
    # Without levels ranger has its columns in the order of the training data.
    data = DATA.sort_values("y", ascending=not yes_first).reset_index(drop=True)
    yes = data.two == "yes"
    levels = ["never", "no", "yes"]
    data = data.assign(
        two=data.two.cat.set_categories(levels), flag=yes, whole=yes.astype(float)
    )
    new = data.iloc[[3, 30, 57]]
    forests.call(GROW_CLASSES, to_r_frame(data))
    named = {"unused": "yes", "logical": "TRUE", "zero_one": "1"}
    by_share, by_vote = (
        [r_bridge.from_ranger(f"rf_{name}{votes}", data, new) for name in named]
        for votes in ("", "_votes")
    )
    code = "function(x) predict(rf_unused, x, num.threads = 1)$predictions[, 'yes']"
    expected = forests.call(code, to_r_frame(new))
    for res, last in zip(by_share, named.values(), strict=True):
        assert_allclose(res.params, expected, rtol=1e-12)
        assert res.predictor.classes[-1] == last
        assert len(res.predictor.classes) == 2
    for res in by_vote:
        assert_array_equal(res.values, by_vote[0].values)
        assert len(res.predictor.classes) == 2


def test_scores_of_classes_without_levels(forests):
    data = DATA.assign(flag=DATA.two == "yes", whole=(DATA.two == "yes") * 1)
    forests.call(
        """function(data) {
          for (name in c("two", "flag", "whole")) {
            formula <- reformulate(c("x1", "x2"), name)
            model <- do.call(ranger::ranger, list(formula, data, num.trees = 60,
              num.threads = 1, seed = 1, keep.inbag = TRUE, probability = TRUE))
            assign(paste0("rf_score_", name), model, globalenv())
          }
          NULL
        }""",
        to_r_frame(data),
    )
    tables = [
        r_bridge.from_ranger(f"rf_score_{name}", data, data.head(2)).scores.table
        for name in ("two", "flag", "whole")
    ]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.parametrize("shares", ["c(.1, .05, .2)", "shares", "sum(c(.2, .3))"])
def test_draws_from_every_class_are_noticed(forests, shares):
    forests.call(
        f"""function(data) {{
          shares <- c(.1, .05, .2)
          assign("rf_strata", ranger::ranger(three ~ x1 + x2, data, num.trees = 40,
            num.threads = 1, keep.inbag = TRUE, sample.fraction = {shares}),
            globalenv())
          NULL
        }}""",
        to_r_frame(DATA),
    )
    if shares.startswith("sum"):
        r_bridge.from_ranger("rf_strata", DATA, NEW)
        return
    with pytest.warns(vs.VstatkitWarning, match="from every class by itself"):
        r_bridge.from_ranger("rf_strata", DATA, NEW)


def test_results_are_pickled_without_the_trees(forests):
    res = r_bridge.from_ranger("rf", DATA, NEW)
    with pytest.warns(vs.VstatkitWarning, match="pickled without the trees"):
        packed = pickle.dumps(res)
    back = pickle.loads(packed)
    assert_array_equal(back.bse, res.bse)
    assert str(back.summary()) == str(res.summary())
    with pytest.raises(ValueError, match="saved without learners"):
        back.predict(NEW)
    assert_array_equal(copy.deepcopy(res).predict(NEW), res.predict(NEW))


@pytest.mark.parametrize(
    ("model", "change", "error", "message"),
    [
        ("rf_bare", {}, ValueError, "Refit it with ranger.*keep.inbag = TRUE"),
        ("rf_flat", {}, ValueError, "write.forest = TRUE"),
        ("not_a_forest", {}, TypeError, "its class in R is lm"),
        ("nowhere", {}, r_bridge.RError, "has no object 'nowhere'"),
        ("rf", {"data": DATA.head(9)}, ValueError, "60 rows; got 9"),
        ("rf", {"newdata": NEW.iloc[:0]}, ValueError, "at least one row"),
        ("rf", {"newdata": NEW.rename(columns={"x1": "x_1"})}, ValueError, "'x_1'"),
        ("rf", {"newdata": NEW.assign(kind="cow")}, r_bridge.RError, "lack: cow"),
        ("rf", {"data": DATA[::-1]}, ValueError, "differ from the model's own"),
        ("rf", {"data": DATA.drop(columns="x2")}, ValueError, "lack column 'x2'"),
        ("rf", {"variance": "corrected_u"}, ValueError, "without replacement"),
    ],
)
def test_what_cannot_be_adopted_is_explained(forests, model, change, error, message):
    with pytest.raises(error, match=message):
        r_bridge.from_ranger(model, **{"data": DATA, "newdata": NEW, **change})


def test_a_random_forest_has_its_own_mean(other_forests):
    res = r_bridge.from_randomforest("other", DATA, NEW)
    # randomForest codes text by the levels that the new data have: take all rows.
    expected = other_forests.call("function(x) predict(other, x)", to_r_frame(DATA))
    assert_allclose(res.params, expected[[5, 7, 11]], rtol=1e-12)
    assert res.replace
    assert res.k == 60
    mse = other_forests.call("function() tail(other$mse, 1)")[0]
    assert_allclose(res.scores.table["OOB RMSE"] ** 2, mse, rtol=1e-10)


def test_levels_of_a_random_forest_come_from_the_model(other_forests):
    res = r_bridge.from_randomforest("other_factor", DATA, NEW)
    code = """function(x) predict(
      other_factor, transform(x, kind = factor(kind, c("zebra", "ape"))))"""
    frame = to_r_frame(NEW[["x1", "kind"]])
    assert_allclose(res.params, other_forests.call(code, frame), rtol=1e-12)


def test_a_random_forest_without_replacement(other_forests):
    res = r_bridge.from_randomforest("other_without", DATA, NEW)
    assert not res.replace
    assert res.variance == "hoeffding"
    assert res.k == np.ceil(0.632 * 60)


def test_trees_of_a_random_forest_vote(other_forests):
    res = r_bridge.from_randomforest("other_classes", DATA, NEW)
    code = "function(x) predict(other_classes, x, type = 'prob')"
    expected = other_forests.call(code, to_r_frame(NEW))
    assert_allclose(res.params.to_numpy().reshape(3, 3), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["other", "other_classes"])
def test_rows_in_another_order_are_noticed(other_forests, name):
    with pytest.raises(ValueError, match="differ from the model's own"):
        r_bridge.from_randomforest(name, DATA[::-1], NEW)


def test_a_random_forest_without_inbag_says_how_to_refit(other_forests):
    message = r"randomForest\(\.\.\., keep\.inbag = TRUE\)"
    with pytest.raises(ValueError, match=message):
        r_bridge.from_randomforest("other_bare", DATA, NEW)


def test_numbers_must_be_numbers_for_a_random_forest(other_forests):
    for given in NO_NUMBERS.values():
        with pytest.raises(ValueError, match="'x2' must be numeric, as in the train"):
            r_bridge.from_randomforest("other", DATA, NEW.assign(x2=given))


def test_missing_values_of_new_data_are_named(other_forests):
    new = NEW.assign(x2=[0.1, np.nan, 0.2])
    with pytest.raises(ValueError, match="column 'x2' of the data is missing in row 1"):
        r_bridge.from_randomforest("other", DATA, new)


@pytest.mark.parametrize("name", ["other_strata", "other_sizes"])
def test_strata_of_a_random_forest_are_noticed(other_forests, name):
    with pytest.warns(vs.VstatkitWarning, match="from every stratum by itself"):
        r_bridge.from_randomforest(name, DATA, NEW)


@pytest.mark.parametrize("name", ["rf", "rf_two", "rf_three", "other"])
def test_averages_of_an_adopted_forest_are_those_of_its_trees(forests, name, request):
    """Brute force: what every tree predicts for every row, averaged."""
    if name == "other":
        request.getfixturevalue("other_forests")
    res = r_bridge.from_forest(name, DATA, NEW)
    columns = list(res.predictor.columns)
    X, _ = res.predictor.rows(DATA)
    trees = res.predictor.values(X).reshape(res.B, len(DATA), -1)
    units = np.arange(len(DATA))
    shares = np.vstack([units % 2 == 0, units % 2 == 1]) / 30
    found = res.predictor.sums(X, shares, OwnLearners(res.design, units))
    wanted = np.einsum("gr,bro->bgo", shares, trees).reshape(res.B, -1)
    assert_allclose(found.values, wanted, rtol=1e-12, atol=1e-14)
    absent = res.design.counts(0, res.B) == 0
    own = np.einsum("br,bro->ro", absent, trees) / absent.sum(axis=0)[:, None]
    assert_allclose(found.own, own, rtol=1e-12, atol=1e-14)
    averages = res.avg_predictions(DATA[columns])
    known = res.avg_predictions()
    assert_allclose(known.bse, averages.bse, rtol=1e-12)
    assert known.rows == averages.rows == "60 training rows"
    assert_allclose(averages.params, trees.mean(axis=(0, 1)), rtol=1e-12)
    assert (averages.bse > 0).all()
    assert_allclose(res.predictor.mean(X), trees.mean(axis=0).ravel(), rtol=1e-12)


def test_average_effects_of_an_adopted_forest_move_numbers_and_factors(forests):
    res = r_bridge.from_ranger("rf", DATA, NEW)
    frame = res.avg_effects(data=DATA[["x1", "x2", "kind"]]).summary_frame()
    assert frame.index.tolist() == ["x1", "x2", "kind"]
    for name, row in frame.iterrows():
        ends = [
            np.mean(res.predict(DATA.assign(**{name: row[end]})))
            for end in ("from", "to")
        ]
        assert_allclose(row["estimate"], ends[1] - ends[0], rtol=1e-10)
