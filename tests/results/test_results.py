import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.ensemble import prediction
from vstatkit.inference import estimates as inference
from vstatkit.variance import influence_summaries
from vstatkit.variance.registry import ESTIMATORS


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(90, rng=4)
    groups = np.random.default_rng(1).choice(list("abc"), 90)
    return frame.assign(g=groups, kind=pd.qcut(frame["y"], 3, labels=list("uvw")))


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x2 + g", data, B=300, rng=1, at=data.head(4))


@pytest.fixture(scope="module")
def classes(data):
    return vs.fit("kind ~ x1 + x4", data, B=200, rng=1, at=data.head(2))


def test_series_are_labelled_by_query_point(res, data):
    for name in ("params", "bse", "zvalues", "pvalues", "df"):
        series = getattr(res, name)
        assert series.name == name
        assert list(series.index) == list(data.index[:4])
    bounds = res.conf_int(0.1)
    assert list(bounds.columns) == ["lower", "upper"]
    assert (bounds["lower"] < res.params).all()


def test_the_typical_row_is_the_default_query_point(data):
    res = vs.fit("y ~ x1 + g", data, B=20, rng=1)
    assert list(res.params.index) == ["typical"]
    assert res.typical["x1"].item() == data["x1"].median()
    assert_allclose(res.params.item(), res.predict(res.typical).item())


def test_predictions_at_the_query_points_are_the_estimates(res, data):
    frame = res.get_prediction(data.head(4)).summary_frame()
    assert_allclose(frame["mean"], res.params, **SAME_ALGEBRA)
    assert_allclose(frame["mean_se"], res.bse, **SAME_ALGEBRA)
    assert_allclose(res.predict(data.head(4)), res.params, **SAME_ALGEBRA)
    bounds = res.conf_int()
    assert_allclose(frame[["mean_ci_lower", "mean_ci_upper"]], bounds, **SAME_ALGEBRA)


def test_prediction_columns_are_statsmodels(res, data):
    frame = res.get_prediction(data.head(3)).summary_frame(alpha=0.1)
    assert list(frame.columns) == [
        "mean",
        "mean_se",
        "mean_ci_lower",
        "mean_ci_upper",
        "obs_ci_lower",
        "obs_ci_upper",
        "se_mc_error",
    ]
    assert (frame["obs_ci_lower"] < frame["mean_ci_lower"]).all()


def test_chunks_of_query_points_change_nothing(res, data, monkeypatch):
    whole = res.get_prediction(data).summary_frame()
    monkeypatch.setattr(prediction, "CHUNK_ENTRIES", 7 * (300 + 90))
    parts = res.get_prediction(data)
    assert len(list(res.predictor.chunks(parts.X, 90))) == 13
    assert_allclose(parts.summary_frame(), whole, **SAME_ALGEBRA)
    assert_allclose(res.predict(data), whole["mean"], **SAME_ALGEBRA)


def test_a_standard_error_depends_on_its_point_alone(res, data):
    alone = res.get_prediction(data.iloc[[5]]).summary_frame()
    among = res.get_prediction(data.iloc[::-1]).summary_frame().loc[[data.index[5]]]
    assert_allclose(alone, among, **SAME_ALGEBRA)


def test_prediction_covariance_bands_and_influence(res, data):
    prediction_results = res.get_prediction(data.head(6))
    matrix = prediction_results.cov()
    assert_allclose(np.diag(matrix) ** 0.5, prediction_results.se_mean, rtol=1e-8)
    each = prediction_results.conf_int()
    band = prediction_results.conf_int(simultaneous=True)
    assert (band["lower"] <= each["lower"]).all()
    assert (band["upper"] >= each["upper"]).all()
    influence = prediction_results.influence()
    assert influence.shape == (90, 6)
    ij = res.with_variance("ij").get_prediction(data.head(6)).components.sampling
    assert_allclose((influence**2).sum(), ij, **SAME_ALGEBRA)


def test_observation_intervals_cover_new_data():
    train, test = vs.datasets.mars(400, rng=1), vs.datasets.mars(2000, rng=2)
    res = vs.fit("y ~ .", train, B=200, rng=1)
    frame = res.get_prediction(test).summary_frame(alpha=0.1)
    inside = test["y"].between(frame["obs_ci_lower"], frame["obs_ci_upper"])
    # 400 residuals and 2000 new rows: a standard error of 1.6 points.
    assert inside.mean() == pytest.approx(0.9, abs=0.05)


def test_effects_are_differences_of_predictions(res):
    frame = res.effects
    assert list(frame.index) == ["x1", "x2", "g", "g"]
    row = frame.iloc[0]
    start, end = (res.typical.assign(x1=row[side]) for side in ("from", "to"))
    difference = res.predict(end).item() - res.predict(start).item()
    assert_allclose(row["estimate"], difference, **SAME_ALGEBRA)
    assert list(frame["from"].iloc[2:]) == ["a", "a"]
    assert list(frame["to"].iloc[2:]) == ["b", "c"]


def test_effect_errors_are_those_of_the_contrast(res):
    row = res.effects.iloc[0]
    ends = pd.concat(
        [res.typical.assign(x1=row[side]) for side in ("from", "to")],
        ignore_index=True,
    )
    joint = res.get_prediction(ends)
    contrast = joint.t_test([[-1, 1]])
    assert_allclose(contrast.bse.item(), row["std_error"], **SAME_ALGEBRA)
    assert_allclose(contrast.pvalues.item(), row["p_value"], **SAME_ALGEBRA)


def test_a_rare_dummy_still_has_an_effect(data):
    rare = data.assign(d=[1.0, 1.0, *[0.0] * 88])
    frame = vs.fit("y ~ x1 + d", rare, B=20, rng=1).effects
    assert (frame.loc["d", "from"], frame.loc["d", "to"]) == (0.0, 1.0)


def test_classes_have_a_row_each(classes, data):
    assert list(classes.params.index) == [
        (row, kind) for row in data.index[:2] for kind in "uvw"
    ]
    frame = classes.get_prediction(data.head(3)).summary_frame()
    assert frame.index.names == ["point", "class"]
    assert "obs_ci_lower" not in frame
    assert "obs_note" not in frame.attrs
    sums = frame["mean"].groupby("point").sum()
    assert_allclose(sums, 1, rtol=1e-12)
    assert classes.effects.index.names == ["predictor", "class"]
    by_predictor = classes.effects["estimate"].astype(float).groupby("predictor").sum()
    assert_allclose(by_predictor, 0, atol=1e-12)


def test_switching_the_estimator_refits_nothing(res):
    for name, estimator in ESTIMATORS.items():
        if estimator.replace is False or estimator.design is not None:
            continue
        switched = res.with_variance(name)
        assert switched.values is res.values
        assert switched.variance == name
        assert np.isfinite(switched.bse).all()
    assert res.with_variance("corrected").variance == "corrected_v"
    with pytest.raises(ValueError, match="corrected_u"):
        res.with_variance("corrected_u")


def test_linear_combinations_are_kernels(res):
    contrast = res.t_test([[1, -1, 0, 0], [0, 0, 1, 1]])
    expected = [
        res.params.iloc[0] - res.params.iloc[1],
        res.params.iloc[2] + res.params.iloc[3],
    ]
    assert_allclose(contrast.params, expected, **SAME_ALGEBRA)
    raw = res.with_variance("ij")
    matrix = raw.cov_params().to_numpy()
    r = np.array([1, -1, 0, 0])
    assert_allclose(raw.t_test(r).bse.item() ** 2, r @ matrix @ r, rtol=1e-8)


def test_restrictions_must_fit_the_estimates(res):
    with pytest.raises(ValueError, match="column for each of the 4 estimates"):
        res.t_test([1, 2])


def test_normality_and_diagnostics_have_a_row_each(res):
    assert list(res.normality.columns) == [
        "skew",
        "kurtosis",
        "omnibus",
        "omnibus_p",
        "jarque_bera",
        "jarque_bera_p",
    ]
    assert len(res.normality) == len(res.diagnostics) == 4
    assert res.diagnostics["monte_carlo_share"].between(0, 1).all()


def test_flat_frames(res):
    tidy = res.tidy()
    assert list(tidy.columns[:3]) == ["term", "estimate", "std_error"]
    glance = res.glance()
    assert len(glance) == 1
    assert glance["B"].item() == 300
    assert "oob_r_squared" in glance


def test_out_of_bag_scores_are_honest(data):
    res = vs.fit("y ~ .", data.drop(columns=["kind", "g"]), B=300, rng=1)
    assert 0.3 < res.scores.table["OOB R-squared"] < 0.95
    noise = data[["x1"]].assign(y=np.random.default_rng(0).normal(size=90))
    assert vs.fit("y ~ x1", noise, B=300, rng=1).scores.table["OOB R-squared"] < 0.1


def test_coefficient_kernels_predict_too(data):
    res = vs.fit("y ~ x1 + x4", data, kernel="ols", B=200, rng=1)
    X = np.column_stack([np.ones(90), data["x1"], data["x4"]])
    assert_allclose(res.predict(data), X @ res.params, **SAME_ALGEBRA)
    frame = res.get_prediction(data.head(2)).summary_frame()
    assert (frame["mean_se"] > 0).all()


def test_statistics_do_not_predict(data):
    res = vs.statistic("mean", data["y"], k=5, B=20, rng=1)
    with pytest.raises(ValueError, match="'mean' is a statistic"):
        res.predict(data)


def test_the_same_seed_gives_the_same_results(data):
    tables = [str(vs.fit("y ~ x1", data, B=50, rng=7).summary()) for _ in range(2)]
    assert tables[0] == tables[1]
    other = vs.fit("y ~ x1", data, B=50, rng=8)
    assert str(other.summary()) != tables[0]


def test_the_seed_of_an_unseeded_fit_repeats_it(data):
    first = vs.fit("y ~ x1", data, B=20)
    again = vs.fit("y ~ x1", data, B=20, rng=first.seed)
    np.testing.assert_array_equal(first.values, again.values)


def test_results_describe_themselves(res):
    assert repr(res).startswith("<EnsembleResults: forest, n=90, k=37, B=300; ")
    assert repr(res).endswith(", and 1 more>")
    assert res._repr_html_().startswith("<table")


@pytest.mark.filterwarnings("ignore::vstatkit.FewUnitsWarning")
def test_complete_designs_weigh_their_learners(data):
    few = data.head(6)
    res = vs.fit("y ~ x1", few, kernel="tree", k=3, B="complete", rng=1, at=few)
    assert_allclose(res.predict(few), res.params, **SAME_ALGEBRA)
    frame = res.get_prediction(few).summary_frame()
    assert_allclose(frame["mean"], res.params, **SAME_ALGEBRA)


def test_many_query_points_of_a_fit_are_taken_in_chunks(res, data, monkeypatch):
    whole = vs.fit("y ~ x1", data, B=40, rng=1, at=data)
    expected = whole.summary_frame(), whole.normality, whole.influence()
    monkeypatch.setattr(inference, "CHUNK_ENTRIES", 7 * 90)
    monkeypatch.setattr(influence_summaries, "CHUNK_ENTRIES", 7 * 90)
    again = vs.fit("y ~ x1", data, B=40, rng=1, at=data)
    found = again.summary_frame(), again.normality, again.influence()
    for one, two in zip(expected, found, strict=True):
        pd.testing.assert_frame_equal(one, two, rtol=1e-9)


@pytest.mark.parametrize("argument", ["weights", "groups"])
def test_a_series_is_aligned_by_its_index(data, argument):
    values = pd.Series(np.arange(90) // 3 + 1.0, data.index)
    straight, turned = (
        vs.fit("y ~ x1", data, B=20, rng=1, **{argument: one})
        for one in (values, values.iloc[::-1])
    )
    np.testing.assert_array_equal(straight.values, turned.values)
    with pytest.raises(ValueError, match="another index than the data's"):
        vs.fit("y ~ x1", data, B=20, **{argument: values.set_axis(values.index + 1)})


@pytest.mark.parametrize("argument", ["weights", "groups"])
def test_missing_weights_and_groups_are_told_by_row(data, argument, tmp_path):
    """Rows that are dropped for other reasons do not shift the label."""
    values = np.arange(90.0)
    values[[5, 7]] = np.nan
    gaps = data.assign(w=values, x1=data["x1"].where(data.index != 2))
    labelled = gaps.set_axis([f"p{i}" for i in range(90)])
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    for source, given, row in (
        (labelled, "w", "'p5'"),
        (labelled, labelled["w"], "'p5'"),
        (labelled, values, "'p5'"),
        (tmp_path / "gaps.csv", "w", "5"),
    ):
        match = rf"2 value\(s\) are missing, the first in row {row}\. Leave such rows"
        with pytest.raises(ValueError, match=match):
            vs.fit("y ~ x1", source, B=20, **{argument: given})


def test_frames_say_what_the_monte_carlo_error_is_of(data):
    """By the delta method, in the unit of the standard error."""
    for unit in (1.0, 1000.0):
        res = vs.fit("y ~ x1", data.assign(y=unit * data["y"]), B=60, rng=1)
        prediction = res.get_prediction(data)
        for found, frame in (
            (res.components, res.summary_frame()),
            (prediction.components, prediction.summary_frame()),
        ):
            error = found.mc_se / (2 * frame["mean_se"])
            assert_allclose(frame["se_mc_error"], error, rtol=1e-12)
            assert "of the standard error, in its unit" in frame.attrs["se_mc_error"]
            assert "mc_se" not in frame


def test_the_monte_carlo_error_of_a_standard_error_is_its_spread_over_seeds(data):
    """Within 20 % on average over eight points, 40 seeds."""
    found = [
        vs.fit("y ~ x1 + x4", data, at=data.head(8), B=600, k=20, rng=seed)
        for seed in range(40)
    ]
    spread = np.std([one.bse for one in found], axis=0, ddof=1).mean()
    said = np.mean([one.summary_frame()["se_mc_error"] for one in found])
    assert said == pytest.approx(spread, rel=0.2)


def test_restrictions_are_taken_as_a_list_of_texts(data):
    res = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    joined, single = "x1 = 0.5, x4 = x1", ["x1 = 0.5", "x4 = x1"]
    pd.testing.assert_frame_equal(
        res.t_test(single).summary_frame(), res.t_test(joined).summary_frame()
    )
    assert res.wald_test(tuple(single)).pvalue == res.wald_test(joined).pvalue
    assert str(res.f_test(single)) == str(res.f_test(joined))


def test_equal_labels_take_a_matrix_but_no_words(data):
    at = data.iloc[[0, 0, 1]].set_axis(["p", "p", "q"])
    res = vs.fit("y ~ x1", data, B=40, rng=1, at=at)
    contrast = res.t_test([[1, -1, 0]])
    assert contrast.params.item() == 0
    for text in ("p = 1", "q - 2 * p = 0", "x1 = 0, p = 0"):
        with pytest.raises(ValueError, match="'p' is the name of 2 estimates; give a"):
            res.t_test(text)
    with pytest.raises(vs.FormulaError, match=r"The names are: q, x1\."):
        res.t_test("r = 0")


@pytest.mark.parametrize("labels", [["p", "p", "q"], [0, 0, 1]])
def test_words_that_are_clear_are_taken_beside_equal_labels(data, labels):
    at = data.iloc[[0, 0, 1]]
    wanted = vs.fit("y ~ x1 + x4", data, B=40, rng=1, at=at.set_axis(["a", "b", "q"]))
    res = vs.fit("y ~ x1 + x4", data, B=40, rng=1, at=at.set_axis(labels))
    texts = ["x1 = 0, x4 = x1"] + (["q = 2 * x1"] if "q" in labels else [])
    for text in texts:
        found, same = res.t_test(text), wanted.t_test(text)
        np.testing.assert_array_equal(found.tvalues, same.tvalues)


def test_levels_called_as_rows_are_clear(data):
    """The effect g[p] is no word p, though it has these signs."""
    data = data.assign(g=np.tile(["m", "p", "q"], len(data))[: len(data)])
    at = data.iloc[[0, 0, 1]].set_axis(["p", "p", "z"])
    res = vs.fit("y ~ g", data, B=40, rng=1, at=at)
    assert len(res.t_test("g[p] = 0").params) == 1
    assert len(res.t_test("g = 0").params) == 2


def test_equal_labels_of_classes_are_refused_by_their_own_name():
    iris = vs.datasets.iris()
    at = iris.iloc[[0, 0, 70]].set_axis(["p", "p", "q"])
    res = vs.fit("species ~ petal_length", iris, B=40, rng=1, at=at)
    assert len(res.t_test("q = 0").params) == 3
    with pytest.raises(ValueError, match=r"'p.*setosa.*' is the name of 2 estimates"):
        res.t_test("p = 0")


def test_labels_of_several_levels_are_all_shown(data):
    index = pd.MultiIndex.from_tuples([("p", 1, "u"), ("p", 1, "v")])
    res = vs.fit("y ~ x1", data, B=20, rng=1, at=data.head(2).set_axis(index))
    text = str(res.summary())
    assert "p, 1, u" in text
    assert "p, 1, v" in text


@pytest.mark.parametrize("value", [0.0, 2.0, -2.0])
@pytest.mark.parametrize("kernel", ["forest", "tree"])
def test_a_standard_error_of_zero_has_no_test(data, value, kernel):
    with pytest.warns(vs.ConstantResponseWarning):
        res = vs.fit("y ~ x1", data.assign(y=value), B=10, rng=1, kernel=kernel)
    zero = [[1.0]]
    tests = [
        *(res.tvalues.iloc[0], res.pvalues.iloc[0]),
        *(res.wald_test(zero).statistic, res.wald_test(zero).pvalue),
        *res.t_test(zero).summary_frame()[["t", "P>|t|"]].iloc[0],
        *res.tidy()[["statistic", "p_value"]].iloc[0],
        *res.avg_predictions().frame[["t", "p_value"]].iloc[0],
    ]
    assert np.isnan(np.array(tests, dtype=float)).all()
    assert (res.conf_int().iloc[0] == res.params.iloc[0]).all()


def test_tables_print_no_infinite_test(data, tmp_path):
    """A predictor that no tree uses, and an indicator that all trees agree on."""
    rows = data.assign(
        same=np.tile([0.0, 1.0], len(data) // 2), y=np.arange(len(data)) % 2 * 3.0
    )
    with pytest.warns(vs.LeakageWarning):
        res = vs.fit("y ~ same + x1", rows, B=40, rng=1, max_features=1.0, max_depth=1)
    effects = res.effects
    assert effects["estimate"].to_list() == [3.0, 0.0]
    assert (effects["std_error"] == 0).all()
    assert effects[["t", "p_value"]].isna().all(axis=None)
    averages = res.avg_effects()
    table = vs.table([res, averages], stars=True)
    texts = [str(res.summary()), str(averages.summary()), str(table)]
    res.report(tmp_path / "page.html")
    texts.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    for text in texts:
        assert not re.search(r"\binf\b", text)
        assert "3.000***" not in text
    for text in texts[:2]:
        assert "No test of same, x1 (nan)" in " ".join(text.split())
    assert "no test, because all learners agree" in texts[-1]


def test_a_hypothesised_value_moves_the_test_and_not_the_estimate(data):
    res = vs.fit("y ~ x1", data, kernel="ols", B=200, rng=1)
    single = res.t_test("x1 = 2")
    assert list(single.params.index) == ["x1 = 2"]
    assert_allclose(single.params.item(), res.params["x1"], **SAME_ALGEBRA)
    expected = (res.params["x1"] - 2) / res.bse["x1"]
    assert_allclose(single.zvalues.item(), expected, rtol=1e-8)
    assert_allclose(res.wald_test("x1 = 2").statistic, expected**2, rtol=1e-8)


def test_the_covariance_says_how_much_was_repaired(data):
    res = vs.fit("y ~ x1 + x2", data, B=20, rng=1, at=data.head(12))
    frame = res.cov_params()
    assert frame.attrs["repaired"] == res.covariances.repaired
    assert 0 < frame.attrs["repaired"] < 1


@pytest.fixture(scope="module")
def moved():
    data = vs.datasets.mars(81, rng=4).assign(g=np.tile(list("abc"), 27))
    return vs.fit("y ~ x1 + x4 + g", data, B=150, rng=1)


def test_restrictions_may_name_effects(moved):
    names = ["x1", "x4", "g[b]", "g[c]"]
    found = moved.t_test(", ".join(f"{name} = 0" for name in names))
    for mine, column in (
        (found.params, "estimate"),
        (found.bse, "std_error"),
        (found.tvalues, "t"),
        (found.pvalues, "p_value"),
        (found.df, "df"),
    ):
        assert_allclose(mine, moved.effects[column], rtol=1e-9)


def test_effects_and_estimates_can_be_combined(moved):
    found = moved.t_test("typical - 2 * x1 = 3")
    expected = moved.params.item() - 2 * moved.effects.loc["x1", "estimate"]
    assert_allclose(found.params, expected)
    assert found.null.item() == 3


def test_effects_are_tested_jointly(moved):
    one = moved.wald_test("x4 = 0")
    assert_allclose(one.statistic, moved.effects.loc["x4", "t"] ** 2, rtol=1e-8)
    both = moved.wald_test("g[b] = 0, g[c] = 0")
    assert both.df_num == 2
    assert moved.f_test("g[b] = 0, g[c] = 0") == both


def test_effects_on_probabilities_keep_their_range():
    iris = vs.datasets.iris()
    res = vs.fit("species ~ petal_length + petal_width", iris, B=100, rng=1)
    found = res.t_test("petal_width [setosa] = 0")
    row = res.effects[["ci_lower", "ci_upper"]].loc[("petal_width", "setosa")]
    assert_allclose(found.conf_int().iloc[0], row, rtol=1e-9)
    assert (np.abs(row) <= 1).all()


def test_unknown_names_in_restrictions_are_told_the_names(moved):
    with pytest.raises(vs.FormulaError, match=r"names are: typical, x1, x4, g\[b\]"):
        moved.t_test("x9 = 0")


@pytest.mark.parametrize("R", ["x1 = 0", "x1 = 0.5, x4 = 0", "x1 = x4"])
def test_tests_have_the_names_and_shapes_of_statsmodels(R, moved):
    line = smf.ols("y ~ x1 + x4", vs.datasets.mars(81, rng=4)).fit()
    mine, theirs = moved.t_test(R), line.t_test(R)
    for name in ("effect", "sd", "tvalue", "statistic", "pvalue"):
        assert np.shape(getattr(mine, name)) == np.shape(getattr(theirs, name)), name
    assert mine.conf_int(0.1).shape == theirs.conf_int(0.1).shape
    frames = mine.summary_frame(alpha=0.1), theirs.summary_frame(alpha=0.1)
    assert list(frames[0]) == list(frames[1])
    assert_allclose(frames[0].iloc[:, 4:], mine.conf_int(0.1))
    for name in ("fvalue", "statistic", "pvalue", "df_num", "df_denom"):
        both = getattr(moved.f_test(R), name), getattr(line.f_test(R), name)
        assert np.shape(both[0]) == np.shape(both[1]) == (), name


def test_tests_have_the_same_numbers_by_either_name(moved, tmp_path):
    test = moved.t_test("x1 = 0.5, x4 = 0")
    test.save(tmp_path / "test.npz")
    for one in (test, vs.load(tmp_path / "test.npz")):
        for new, old in {
            "effect": test.params,
            "sd": test.bse,
            "tvalue": test.tvalues,
            "statistic": (test.params - [0.5, 0]) / test.bse,
            "pvalue": test.pvalues,
            "df_denom": test.df,
        }.items():
            assert_allclose(getattr(one, new), old, rtol=1e-12, err_msg=new)
        columns = np.column_stack([test.params, test.bse, test.tvalues, test.pvalues])
        assert_allclose(one.summary_frame().iloc[:, :4], columns, rtol=1e-12)
    joint = moved.wald_test("x1 = 0, x4 = 0")
    assert joint.fvalue == joint.statistic


def test_the_name_of_a_factor_stands_for_all_its_effects(moved):
    assert moved.wald_test("g = 0").df_num == 2
    joint = moved.wald_test("g = 0, x1 = 0.5")
    spelt = moved.wald_test("g[b] = 0, g[c] = 0, x1 = 0.5")
    assert_allclose(joint.statistic, spelt.statistic)
    assert joint.null == "g = 0, x1 = 0.5"
    assert list(moved.t_test("g = 0").labels) == ["g[b] = 0", "g[c] = 0"]
    assert_allclose(moved.t_test("g = 0.1").null, 0.1)
    averages = moved.avg_effects()
    by_level = averages.wald_test("g[b] = 0, g[c] = 0")
    assert averages.wald_test("g = 0").statistic == by_level.statistic


def test_the_name_of_a_factor_leaves_its_interactions_alone():
    data = vs.datasets.mars(81, rng=4).assign(g=np.tile(list("abc"), 27))
    res = vs.fit("y ~ g * x1", data, kernel="ols", B=60, rng=1)
    assert "g[T.b]:x1" in res.params
    assert list(res.t_test("g = 0").labels) == ["g[T.b] = 0", "g[T.c] = 0"]


@pytest.mark.parametrize("kernel", ["forest", "ols"])
def test_the_name_of_a_factor_leaves_other_predictors_alone(kernel):
    data = vs.datasets.mars(81, rng=4).assign(dose=np.tile(list("abc"), 27))
    data["dose [mg]"] = data["x1"]
    res = vs.fit("y ~ dose + `dose [mg]`", data, kernel=kernel, B=60, rng=1)
    assert res.wald_test("dose = 0").df_num == 2
    assert res.wald_test("dose [mg] = 0").df_num == 1
    if kernel == "forest":
        assert res.avg_effects().wald_test("dose = 0").df_num == 2


@pytest.mark.parametrize(
    "R", [None, [[np.nan]], ([[1.0]], 3), ["x1 = 0", 3], np.zeros((1, 1, 1))]
)
def test_restrictions_are_words_or_a_matrix(R, moved):
    with pytest.raises(ValueError, match=r"`R` must be restrictions in words, .*; got"):
        moved.t_test(R)


def test_names_may_be_quoted_as_in_formulas(data):
    odd = data.rename(columns={"x1": "length (m)"})
    res = vs.fit("y ~ `length (m)` + x4", odd, B=60, rng=1)
    found = res.t_test("`length (m)` = `x4`, `length (m)` = 0")
    assert_allclose(found.params, res.t_test("length (m) = x4, length (m) = 0").params)


def test_no_restriction_is_refused(moved):
    with pytest.raises(
        ValueError, match=r"can be restricted\.\nThe names are: typical"
    ):
        moved.wald_test(" ")


def test_numbers_in_restrictions_are_no_rows(data):
    res = vs.fit("y ~ x1 + x4", data, B=60, rng=1, at=data.head(3))
    assert list(res.params.index) == [0, 1, 2]
    for R, value in {"x1 = 0": 0.0, "x1 = 2": 2.0, "2 * x1 = 1": 1.0}.items():
        found = res.t_test(R)
        times = 2 if "*" in R else 1
        assert_allclose(found.params, times * res.effects.loc["x1", "estimate"])
        assert found.null.item() == value
    one = res.wald_test("x4 = 0")
    assert_allclose(one.statistic, res.effects.loc["x4", "t"] ** 2, rtol=1e-8)
    with pytest.raises(vs.FormulaError, match=r"are: x1, x4\.\nNumbers are values"):
        res.t_test("0 = 1")
    with pytest.raises(ValueError, match=r"names nothing that can be restricted\."):
        res.partial_dependence("x1").t_test("0.5 = 0.7")
    named = data.head(3).rename(index="row {}".format)
    named = vs.fit("y ~ x1 + x4", data, B=60, rng=1, at=named)
    rows = res.t_test([[1, -1, 0], [0, 0, 1]]).params
    assert_allclose(named.t_test("row 0 = row 1, row 2 = 0").params, rows)


def test_predictors_may_be_called_by_numbers(data):
    years = data.rename(columns={"x1": "2019", "x4": "2020"})
    res = vs.fit("y ~ `2019` + `2020`", years, B=60, rng=1)
    assert_allclose(
        res.t_test("2020 = 0").params, res.effects.loc["2020", "estimate"], rtol=1e-12
    )


def test_tables_have_only_the_methods_that_they_can_answer(moved):
    for table in (moved.t_test("x1 = 0"), moved.avg_effects(), moved.transform(np.exp)):
        assert isinstance(table, vs.EstimateTable)
        assert not isinstance(table, vs.EnsembleResults)
        for name in ("predict", "more", "importance", "bootstrap", "effects", "scores"):
            assert not hasattr(table, name)


def test_a_predictor_is_tested_on_all_classes():
    res = vs.fit("species ~ petal_width", vs.datasets.iris(), B=60, rng=1)
    assert res.wald_test("petal_width = 0").df_num == 2
    assert len(res.t_test("petal_width = 0").labels) == 3


def test_the_matrix_of_restrictions_is_about_estimates(moved):
    assert_allclose(moved.t_test([[2.0]]).params, 2 * moved.params)
    with pytest.raises(ValueError, match="each of the 1 estimates"):
        moved.t_test([[1.0, 0.0]])


def test_t_values_are_the_same_by_either_name(moved):
    assert_allclose(moved.tvalues, moved.zvalues)
    assert moved.tvalues.name == "tvalues"


def test_an_effect_can_vary_twice_as_much_as_an_estimate(moved):
    most = float(np.max(moved.limit))
    assert_allclose(moved.t_test("x1 = 0, typical = 0").limit, [2 * most, most])


def test_a_name_that_estimate_and_effect_share_is_nobodys():
    data = vs.datasets.mars(60, rng=4).rename(columns={"x4": "typical"})
    res = vs.fit("y ~ x1 + typical", data, B=60, rng=1)
    with pytest.raises(ValueError, match="Rename the predictor, change the labels"):
        res.t_test("typical = 0")
    assert_allclose(res.t_test([[1]]).params, res.params)


def test_predictions_are_tested_with_their_covariance(res, data):
    new = data.head(3)
    prediction = res.get_prediction(new)
    R = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    test = prediction.t_test(R)
    assert_allclose(test.effect, R @ prediction.predicted_mean.to_numpy())
    # The direct route: an ensemble whose query points are these rows.
    direct = vs.fit(
        res.info.formula, data, at=new, B=res.B, k=res.k, rng=res.seed
    ).t_test(R)
    assert_allclose(test.sd, direct.sd, rtol=1e-10)
    assert_allclose(test.pvalue, direct.pvalue, rtol=1e-10)
    apart = np.sqrt(R**2 @ prediction.se_mean.to_numpy() ** 2)
    assert (np.abs(test.sd / apart - 1) > 0.01).all()  # covariances matter
    words = prediction.t_test("row0 = row1, row1 = row2")
    assert_allclose(words.tvalue, test.tvalue, rtol=1e-10)
    assert words.labels.to_list() == ["row0 = row1", "row1 = row2"]
    joint = prediction.wald_test("row0 = row1, row1 = row2")
    assert joint.pvalue == pytest.approx(prediction.wald_test(R).pvalue)


def test_restrictions_on_predictions_use_the_labels_of_rows(res, data):
    new = data.head(2).set_axis(["Ann", "Bob"])
    test = res.get_prediction(new).t_test("Ann = Bob")
    wanted = res.get_prediction(data.head(2)).t_test([[1, -1]])
    assert_allclose(test.tvalue, wanted.tvalue)
    value = float(res.predict(new)["Bob"])
    assert res.get_prediction(new).t_test(f"Bob = {value!r}").tvalue == pytest.approx(0)
    with pytest.raises(vs.FormulaError, match=r"The names are: row0, row1\."):
        res.get_prediction(data.head(2)).t_test("row7 = 0")


def test_predicted_classes_are_tested_by_row_and_class(classes, data):
    prediction = classes.get_prediction(data.iloc[[4, 9]])
    names = [f"row{row} [{kind}]" for row, kind in prediction.labels]
    difference = prediction.t_test(f"{names[0]} = {names[len(names) // 2]}")
    mean = prediction.predicted_mean.to_numpy()
    assert difference.effect[0] == pytest.approx(mean[0] - mean[len(names) // 2])
