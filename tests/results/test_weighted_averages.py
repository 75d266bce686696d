"""Weighted fits: averages over rows count rows by their sampling weights."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import vstatkit as vs
from tests.oracles.ensembles import secant_ends
from vstatkit.inference.population import row_influence
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x4", "y"]]
    frame["g"] = np.where(np.arange(60) % 3 == 0, "b", "a")
    frame["w"] = np.random.default_rng(1).integers(1, 5, 60)
    return frame


FORMULA = "y ~ x1 + x4 + g"


@pytest.fixture(scope="module")
def res(data):
    return vs.fit(FORMULA, data, B=150, k=30, rng=1, n_jobs=1, weights="w")


def weighted(values, weights):
    """A weighted mean as a loop."""
    total = 0.0
    for value, weight in zip(values, weights, strict=True):
        total += weight * value
    return total / sum(weights)


@pytest.mark.parametrize("se", ["sample", "population"])
def test_averages_are_weighted_means(res, data, se):
    predicted, w = res.predict(data), data["w"]
    found = res.avg_predictions(se=se)
    assert np.isclose(found.params.item(), weighted(predicted, w), rtol=1e-12)
    assert not np.isclose(found.params.item(), predicted.mean(), rtol=1e-4)
    assert found.rows == "60 training rows, weighted by 'w'"
    levels = res.avg_predictions(by="g", se=se)
    for level in "ab":
        own = data["g"] == level
        literal = weighted(predicted[own], w[own])
        assert np.isclose(levels.params[level], literal, rtol=1e-12)
    moved = [res.predict(data.assign(x4=x)) for x in (0.2, 0.8)]
    effect = res.avg_effects({"x4": (0.2, 0.8)}, se=se)
    assert np.isclose(effect.params.item(), weighted(moved[1] - moved[0], w))
    low, high = secant_ends(data["x4"], 0.3, data["x4"])
    up, down = (res.predict(data.assign(x4=x)) for x in (high, low))
    slope = res.avg_slopes("x4", step=0.3, se=se)
    assert np.isclose(slope.params.item(), weighted((up - down) / (high - low), w))
    curve = res.partial_dependence("x4", grid=[0.2, 0.8], se=se)
    literal = [weighted(one, w) for one in moved]
    assert np.allclose(curve.params, literal, rtol=1e-12)
    plane = res.partial_dependence("x4", "x1", grid={"x4": [0.2], "x1": [0.5]}, se=se)
    both = res.predict(data.assign(x4=0.2, x1=0.5))
    assert np.isclose(plane.params.item(), weighted(both, w), rtol=1e-12)


def test_every_learner_is_averaged_by_weights(res, data):
    H = res.predictor.values(res.predictor.rows(data)[0])
    literal = [weighted(one, data["w"]) for one in H]
    found = res.avg_predictions().results.values[:, 0]
    assert np.allclose(found, literal, rtol=1e-12)


def test_accumulated_effects_are_weighted(res, data):
    found = res.accumulated_effects("x4", points=3).params.to_numpy()
    edges = np.quantile(data["x4"], np.linspace(0, 1, 4))
    cells = np.clip(np.searchsorted(edges, data["x4"]) - 1, 0, 2)
    line, masses = [0.0], []
    for cell in range(3):
        rows = data[cells == cell]
        up, down = (res.predict(rows.assign(x4=x)) for x in edges[[cell + 1, cell]])
        line.append(line[-1] + weighted(up - down, rows["w"]))
        masses.append(rows["w"].sum())
    middle = (np.array(line[1:]) + line[:-1]) / 2
    assert np.allclose(found, line - weighted(middle, masses), rtol=1e-9)
    plane = res.accumulated_effects("x4", "x1", points=3).params
    assert np.isfinite(plane).all()


@pytest.mark.parametrize("options", [{}, {"kernel": "ols"}])
def test_a_factor_of_all_weights_changes_nothing(data, options):
    how = {"B": 100, "k": 30, "rng": 1, "n_jobs": 1, **options}
    found = []
    for factor in (1.0, 1024.0, 1 / 7):
        scaled = data.assign(w=data["w"] * factor)
        res = vs.fit(FORMULA, scaled, weights="w", **how)
        answers = [res.avg_predictions(se="population", by="g")]
        answers += [res.avg_effects(), res.avg_slopes(se="population")]
        answers += [res.partial_dependence("x4", points=4)]
        numbers = [np.concatenate([one.params, one.bse]) for one in answers]
        found.append(np.concatenate([*numbers, res.params, res.bse]))
    assert np.allclose(found[1], found[0], rtol=1e-9)
    assert np.allclose(found[2], found[0], rtol=1e-6)


def test_integer_weights_average_as_repeated_rows(res, data):
    """The same learners, and each row as often as its weight says."""
    often = data.loc[data.index.repeat(data["w"])].reset_index(drop=True)
    often = often.drop(columns="w")
    for by in (None, "g"):
        ours = res.avg_predictions(by=by)
        theirs = res.avg_predictions(often, by=by)
        assert theirs.rows.endswith("other rows, not weighted (no column 'w')")
        assert np.allclose(theirs.params, ours.params, rtol=1e-10)
        assert np.allclose(theirs.bse, ours.bse, rtol=1e-8)
    ours, theirs = res.avg_slopes(step=0.3), res.avg_slopes(often, step=0.3)
    assert np.allclose(theirs.params, ours.params, rtol=1e-10)
    assert np.allclose(theirs.bse, ours.bse, rtol=1e-8)


def test_rows_without_weight_do_not_count(data):
    some = data.assign(w=data["w"].where(data.index % 2 == 0, 0))
    res = vs.fit(FORMULA, some, B=100, k=40, rng=1, n_jobs=1, weights="w")
    even = some[some["w"] > 0]
    found = res.avg_predictions(se="population")
    literal = weighted(res.predict(even), even["w"])
    assert np.isclose(found.params.item(), literal, rtol=1e-12)
    assert found.rows == "30 of 60 training rows, weighted by 'w'"
    with pytest.raises(ValueError, match="all 30 rows have weight 0"):
        res.avg_predictions(some[some["w"] == 0])


def test_influences_of_rows_are_weighted(data):
    res = vs.fit(FORMULA, data, B=200, k=30, rng=1, weights="w", variance="corrected_v")
    found = res.avg_predictions(se="population").results.points.values[:, 0]
    shares = (data["w"] / data["w"].sum()).to_numpy()
    predicted = res.predict(data).to_numpy()[:, None]
    literal = row_influence(predicted, shares, None, 60)[:, 0]
    assert np.allclose(found, literal, rtol=1e-9, atol=1e-12)


def test_population_means_against_weighted_regression():
    """A weighted average of predictions is the weighted mean, with a robust error."""
    rng = np.random.default_rng(4)
    n = 150
    frame = pd.DataFrame({"a": rng.normal(size=n), "w": rng.exponential(size=n) + 0.2})
    frame["y"] = frame["a"] + rng.normal(size=n) * (1 + frame["w"])
    res = vs.fit("y ~ a", frame, kernel="ols", k=n, B=3000, rng=1, weights="w")
    found = res.avg_predictions(se="population")
    mean = smf.wls("y ~ 1", frame, weights=frame["w"]).fit(cov_type="HC0")
    gap = found.params.item() - mean.params.item()
    assert abs(gap) < 0.1 * mean.bse.item()
    assert np.isclose(found.bse.item(), mean.bse.item(), rtol=0.06)


def test_other_rows_count_by_the_column_of_that_name(res, data, tmp_path):
    other = vs.datasets.mars(25, rng=8).assign(g="a", w=np.arange(25))
    found = res.avg_predictions(other, se="population")
    literal = weighted(res.predict(other), other["w"])
    assert np.isclose(found.params.item(), literal, rtol=1e-12)
    assert found.rows == "24 of 25 other rows, weighted by 'w'"
    plain = res.avg_predictions(other.drop(columns="w"))
    assert np.isclose(plain.params.item(), res.predict(other).mean(), rtol=1e-12)
    assert "25 other rows, not weighted (no column 'w')" in str(plain)
    res.save(tmp_path / "kept.zip")
    loaded = vs.load(tmp_path / "kept.zip")
    ours = res.avg_predictions().params.item()
    assert np.isclose(loaded.avg_predictions(data).params.item(), ours, rtol=1e-9)
    with pytest.raises(ValueError, match="must be finite and not negative"):
        res.avg_predictions(other.assign(w=-1.0))


def test_weights_computed_from_a_column_are_not_that_column(data):
    how = {"B": 50, "k": 20, "rng": 1, "n_jobs": 1}
    res = vs.fit("y ~ x1 + x4", data, weights=data["x1"] + 0.1, **how)
    assert res.info.weights == "given"
    other = vs.datasets.mars(25, rng=8)
    found = res.avg_predictions(other)
    assert np.isclose(found.params.item(), res.predict(other).mean(), rtol=1e-12)
    training = res.avg_predictions()
    literal = weighted(res.predict(data), data["x1"] + 0.1)
    assert np.isclose(training.params.item(), literal, rtol=1e-12)
    assert training.rows == "60 training rows, weighted"
    assert vs.fit("y ~ x1", data, weights=data["w"], **how).info.weights == "w"


def test_clusters_and_weights_together(data):
    clustered = data.assign(c=np.arange(60) // 4)
    how = {"B": 150, "k": 8, "rng": 1, "n_jobs": 1, "groups": "c", "weights": "w"}
    res = vs.fit("y ~ x1 + x4", clustered, **how)
    found = res.avg_predictions(se="population")
    literal = weighted(res.predict(clustered), clustered["w"])
    assert np.isclose(found.params.item(), literal, rtol=1e-12)
    assert np.isfinite(found.bse.item())


def test_the_summary_says_what_weights_are(res, data):
    text = " ".join(str(res.summary()).split())
    assert "Weights: w" in text
    assert "Weights are sampling weights: they multiply the loss" in text
    plain = vs.fit("y ~ x1", data, B=50, k=20, rng=1)
    assert "Weights" not in str(plain.summary())
    assert "weighted by 'w'" in str(res.avg_effects())


def test_out_of_bag_scores_are_weighted(res, data):
    """By a loop over the rows, and in the same way after more learners."""
    for fit in (res, res.more(180)):
        residuals = fit.scores.residuals
        assert len(residuals) == len(data)
        w, y = data["w"].tolist(), data["y"].tolist()
        centre = weighted(y, w)
        error = weighted([r**2 for r in residuals], w)
        spread = weighted([(value - centre) ** 2 for value in y], w)
        assert fit.scores.table["OOB RMSE"] == pytest.approx(error**0.5)
        assert fit.scores.table["OOB R-squared"] == pytest.approx(1 - error / spread)
    assert "OOB scores are weighted" in " ".join(str(res.summary()).split())


def test_forests_score_by_sample_weights(data):
    X, w = data[["x1", "x4"]], data["w"].to_numpy(dtype=float)
    how = {"n_estimators": 60, "max_samples": 30, "oob_score": True, "random_state": 1}
    forest = vs.ForestRegressor(**how).fit(X, data["y"], sample_weight=w)
    errors = data["y"] - forest.oob_prediction_
    centre = np.average(data["y"], weights=w)
    spread = np.average((data["y"] - centre) ** 2, weights=w)
    wanted = 1 - np.average(errors**2, weights=w) / spread
    assert forest.oob_score_ == pytest.approx(wanted)
    assert forest.results_.scores.table["OOB R-squared"] == pytest.approx(wanted)
    for name in ("ForestRegressor", "ForestClassifier"):
        assert "Sampling weights" in getattr(vs, name).fit.__doc__


@pytest.mark.parametrize("class_weight", [None, {"a": 5.0, "b": 1.0}, "balanced"])
def test_class_weights_do_not_change_what_forests_are_scored_by(data, class_weight):
    X, w = data[["x1", "x4"]], data["w"].to_numpy(dtype=float)
    how = {"n_estimators": 60, "max_samples": 30, "oob_score": True, "random_state": 1}
    forest = vs.ForestClassifier(class_weight=class_weight, **how)
    forest.fit(X, data["g"], sample_weight=w)
    guessed = forest.classes_[forest.oob_decision_function_.argmax(axis=1)]
    wanted = np.average(guessed == data["g"], weights=w)
    assert forest.oob_score_ == pytest.approx(wanted)


def test_a_column_named_given_does_not_weight_other_rows(data, tmp_path):
    """Weights that were an array have no column, whatever other rows contain."""
    how = {"B": 50, "k": 20, "rng": 1, "n_jobs": 1}
    other = pd.DataFrame({"x1": [0.1, 0.9], "x4": [0.2, 0.8], "given": [1.0, 0.0]})
    weights = data["w"].to_numpy()
    forest = vs.ForestRegressor(n_estimators=50, random_state=1, n_jobs=1)
    forest.fit(data[["x1", "x4"]], data["y"], sample_weight=weights)
    fitted = vs.fit("y ~ x1 + x4", data, weights=weights, **how)
    fitted.save(tmp_path / "array.zip")
    for res in (fitted, vs.load(tmp_path / "array.zip"), forest.results_):
        found = res.avg_predictions(other)
        plain = res.predict(other[["x1", "x4"]]).mean()
        assert np.isclose(found.params.item(), plain, rtol=1e-12)
        expected = "not weighted: the weights of the fit were given as an array"
        assert found.rows == f"2 other rows, {expected}"
    column = data.rename(columns={"w": "given"})
    named = vs.fit("y ~ x1 + x4", column, weights="given", **how)
    named.save(tmp_path / "column.zip")
    for res in (named, vs.load(tmp_path / "column.zip")):
        found = res.avg_predictions(other)
        assert np.isclose(found.params.item(), res.predict(other).iloc[0], rtol=1e-12)
        assert found.rows == "1 of 2 other rows, weighted by 'given'"


@pytest.mark.parametrize(("name", "in_column"), [("given", False), ("w", True)])
def test_files_without_the_kind_of_weights_are_read(data, tmp_path, name, in_column):
    """Early files only hold the name of the weights, "given" for an array."""
    column = data.rename(columns={"w": name})
    res = vs.fit("y ~ x1", column, weights=name, B=50, k=20, rng=1, n_jobs=1)
    res.save(tmp_path / "now.zip")
    document, arrays = read_archive(tmp_path / "now.zip", known_arrays())
    del document["info"]["weights_in_column"]
    write_archive(tmp_path / "then.zip", document, arrays)
    assert vs.load(tmp_path / "then.zip").info.weights_in_column is in_column
