"""Tables of estimates: what they share, and what only fits have."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.results.estimate_table import SHARED_FIELDS, EstimateTable, derive_table

SAME_ALGEBRA = {"rtol": 1e-10, "atol": 1e-12}  # differ only in the order of sums


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(100, rng=1)
    rng = np.random.default_rng(2)
    return frame.assign(g=rng.choice(list("abc"), 100), z=rng.integers(0, 2, 100))


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g + z", data, B=300, rng=1)


TABLES = {
    "contrast": lambda res, data: res.t_test("x1 = x4"),
    "averages": lambda res, data: res.avg_effects(),
    "curve": lambda res, data: res.partial_dependence("x1", points=4),
    "differences": lambda res, data: res.interaction_test("x1", "x4").differences,
    "function": lambda res, data: res.transform(np.exp),
    "predictions": lambda res, data: res.get_prediction(data.iloc[:3]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_derived_tables_share_all_that_estimates_need_and_nothing_else(kind, res, data):
    table = TABLES[kind](res, data)
    assert isinstance(table, vs.EstimateTable)
    assert not isinstance(table, vs.EnsembleResults)
    for name in SHARED_FIELDS:
        assert hasattr(table, name)
    for name in ("recipe", "predictor", "scores", "effect_values", "errors", "more"):
        assert not hasattr(table, name)


@pytest.mark.parametrize("kind", TABLES)
def test_the_numbers_of_a_table_belong_together(kind, res, data):
    table = TABLES[kind](res, data)
    m = len(table.labels)
    assert len(table.params) == len(table.bse) == m
    assert_allclose(np.sqrt(np.diag(table.cov_params())), table.bse, **SAME_ALGEBRA)
    distance = np.asarray(table.params) - np.broadcast_to(table.null, m)
    assert_allclose(table.tvalues * table.bse, distance, **SAME_ALGEBRA)
    wide, narrow = table.conf_int(simultaneous=True), table.conf_int()
    assert (wide["lower"] <= narrow["lower"] + 1e-12).all()
    assert str(table).count("\n") > m


def test_linear_combinations_of_functions_are_those_of_their_estimates(res):
    whole = res.avg_effects()
    both = whole.transform(lambda p: {"a": 2 * p["x1"] + 3, "b": p["x1"] - p["x4"]})
    test = both.t_test("a - 2 * b = 1")
    direct = whole.t_test("2 * x4 = 0")
    assert_allclose(test.effect, direct.effect + 3, **SAME_ALGEBRA)
    assert_allclose(test.bse, direct.bse, rtol=1e-8)
    assert_allclose(test.tvalue, (direct.effect + 2) / direct.sd, rtol=1e-8)


def test_functions_that_bend_are_combined_about_their_values(res):
    squares = res.transform(lambda p: {"square": p[0] ** 2})
    assert_allclose(squares.params, res.params.iloc[0] ** 2)
    half = squares.t_test([[0.5]])
    assert_allclose(half.effect, res.params.iloc[0] ** 2 / 2, **SAME_ALGEBRA)
    assert_allclose(half.bse, squares.bse.iloc[0] / 2, rtol=1e-8)


def test_predictions_print_with_the_bounds_of_new_observations(res, data):
    table = res.get_prediction(data.iloc[:2])
    frame, text = table.summary_frame(0.1), str(table.summary(0.1))
    row = next(line for line in text.splitlines() if line.startswith("1 "))
    numbers = [float(cell) for cell in row.split()[1:]]
    columns = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    columns += ["obs_ci_lower", "obs_ci_upper"]
    assert_allclose(numbers, frame[columns].iloc[1], rtol=1e-3)
    words = " ".join(text.split())
    assert "They do not cover E[y|x]; use target='truth' for that." in words
    assert "obs: 0.9 bounds of a new observation (obs_method='local')." in words


def test_predictions_switch_their_variance_as_the_fit_does(res, data):
    rows = data.iloc[:3]
    switched = res.get_prediction(rows).with_variance("jackknife")
    assert_allclose(
        switched.bse, res.with_variance("jackknife").get_prediction(rows).bse
    )


def test_averages_after_a_target_carry_no_bias_of_other_rows(data):
    fit = vs.fit("y ~ x1 + x4", data, B=60, rng=1, target="truth", at=data.iloc[[3, 9]])
    assert "Remaining bias" in str(fit.summary())
    assert "Remaining bias" not in str(fit.avg_effects().results.summary())


SAVED = {
    "EnsembleResults": lambda res: res,
    "ContrastResults": lambda res: res.t_test("x1 = x4, z = 0.5"),
    "EstimateTable": lambda res: res.avg_effects().results,
}


@pytest.mark.parametrize("kind", SAVED)
def test_files_know_the_type_of_their_table(kind, res, tmp_path):
    saved = SAVED[kind](res)
    saved.save(tmp_path / "table.zip")
    loaded = vs.load(tmp_path / "table.zip")
    assert type(saved).__name__ == type(loaded).__name__ == kind
    for name in ("params", "bse", "pvalues", "df"):
        assert getattr(loaded, name).equals(getattr(saved, name))
    assert str(loaded.summary()) == str(saved.summary())


def test_tables_whose_settings_files_cannot_hold_are_not_saved(res, data, tmp_path):
    for table in (res.avg_effects(), res.get_prediction(data.iloc[:2])):
        with pytest.raises(ValueError, match=r"cannot be saved: .*summary_frame"):
            table.save(tmp_path / "table.zip")
    assert not list(tmp_path.iterdir())


def test_a_derived_table_takes_no_fields_of_its_source_but_the_shared_ones(res):
    plain = derive_table(res, EstimateTable, labels=res.labels + "!")
    assert type(plain) is EstimateTable
    assert plain.labels[0] == f"{res.labels[0]}!"
    assert plain.values is res.values
