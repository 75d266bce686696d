"""Average slopes: forests of functions whose slopes are known, units, factors."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import vstatkit as vs
from tests.oracles.ensembles import secant_ends

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")

STEPS = [None, 0.1, 0.9, 1.0, 1.1, 7.0]


@pytest.fixture(scope="module")
def wages():
    """Wages with integers, 0/1 columns (one of them rare) and a factor."""
    rng = np.random.default_rng(5)
    n = 300
    frame = pd.DataFrame(
        {
            "educ": rng.choice([8, 10, 12, 14, 16], n, p=[0.1, 0.1, 0.5, 0.1, 0.2]),
            "female": rng.integers(0, 2, n),
            "union": (np.arange(n) % 25 == 0).astype(int),
            "tenure": rng.exponential(5, n),
            "region": rng.choice(["north", "south", "west"], n),
        }
    )
    noise = rng.normal(0, 0.3, n)
    south = 0.2 * (frame["region"] == "south")
    frame["lwage"] = (
        0.08 * frame["educ"] - 0.3 * frame["female"] + 0.5 * frame["union"] + south
    )
    frame["lwage"] += 0.02 * frame["tenure"] + noise
    return frame


FORMULA = "lwage ~ educ + female + union + tenure + region"


@pytest.fixture(scope="module")
def res(wages):
    return vs.fit(FORMULA, wages, B=300, rng=1, n_jobs=1)


@pytest.mark.parametrize("name", ["female", "union"])
@pytest.mark.parametrize("step", STEPS)
def test_two_values_have_the_change_between_them(res, wages, name, step):
    found = res.avg_slopes(name, step=step)
    change = [res.predict(wages.assign(**{name: x})).mean() for x in (0, 1)]
    assert np.isclose(found.params.item(), change[1] - change[0], rtol=1e-9)
    effect = res.avg_effects({name: (0, 1)})
    assert np.isclose(found.bse.item(), effect.bse.item(), rtol=1e-9)
    assert found.frame[["from", "to", "step"]].iloc[0].to_list() == [0, 1, 1]


def test_slopes_are_near_those_of_a_regression(res, wages):
    """The data are linear: forests shrink slopes, and keep their sign and size."""
    found = res.avg_slopes()
    line = smf.ols(FORMULA, wages).fit()
    for name in ("educ", "female", "union", "tenure"):
        assert 0.45 < found.params[name] / line.params[name] < 1.2
    assert found.pvalues["female"] < 0.001


def test_other_codes_of_two_values_scale_the_slope(wages, res):
    coded = wages.assign(female=np.where(wages["female"] == 1, -3.0, 5.0))
    other = vs.fit(FORMULA, coded, B=300, rng=1, n_jobs=1)
    effect = other.avg_effects({"female": (5.0, -3.0)}).params.item()
    found = other.avg_slopes("female")
    assert np.isclose(found.params.item(), effect / -8, rtol=1e-9)
    assert found.frame[["from", "to", "step"]].iloc[0].to_list() == [-3, 5, 8]


@pytest.mark.parametrize("step", STEPS)
def test_slopes_of_integers_by_brute_force(res, wages, step):
    found = res.avg_slopes("educ", step=step).params.item()
    width = wages["educ"].std() if step is None else step
    total = 0.0
    values = [8, 10, 12, 14, 16]
    at = {x: res.predict(wages.assign(educ=x)).to_numpy() for x in values}
    low, high = secant_ends(wages["educ"], width, wages["educ"])
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        total += (at[int(b)][i] - at[int(a)][i]) / (b - a)
    assert np.isclose(found, total / len(wages), rtol=1e-9)
    assert set(low) | set(high) <= set(values)


@pytest.mark.parametrize(
    "x",
    [
        np.repeat([0.0, 1.0], [190, 10]),
        np.repeat([0, 1, 2, 3, 7], 40),
        np.repeat([0.0, 0.1, 9.9, 10.0], 50),  # two clumps, and nothing between them
        np.repeat([0.0, 1e-3, 40.0], [160, 20, 20]),
    ],
)
@pytest.mark.parametrize("step", [None, 0.05, 3.0, 100.0])
def test_trees_that_know_a_line_have_its_slope(x, step):
    """Without noise, trees predict every observed value of the predictor exactly."""
    frame = pd.DataFrame({"x": x, "y": 3.0 * x - 1})
    res = vs.fit("y ~ x", frame, kernel="tree", B=40, k=150, rng=1, n_jobs=1)
    assert np.allclose(res.predict(frame), frame["y"], atol=1e-9)
    assert np.isclose(res.avg_slopes(step=step).params.item(), 3.0, rtol=1e-9)


def test_slopes_do_not_depend_on_where_between_values_splits_fall():
    """The same trees with splits anywhere between two observed values."""
    rng = np.random.default_rng(2)
    x = np.repeat(np.arange(6.0), 30)
    frame = pd.DataFrame({"x": x, "y": np.sqrt(x) + rng.normal(size=180)})
    res = vs.fit("y ~ x", frame, B=60, rng=1, n_jobs=1)
    squeezed = frame.assign(x=np.array([0, 1, 1.1, 4, 4.2, 5])[x.astype(int)])
    other = vs.fit("y ~ x", squeezed, B=60, rng=1, n_jobs=1)
    at, width = np.unique(squeezed["x"]), squeezed["x"].std()
    curve = res.predict(pd.DataFrame({"x": np.arange(6.0)})).to_numpy()
    low, high = secant_ends(squeezed["x"], width, at)
    rise = curve[np.searchsorted(at, high)] - curve[np.searchsorted(at, low)]
    found = other.avg_slopes("x").params.item()
    assert np.isclose(found, (rise / (high - low)).mean(), rtol=1e-9)


def test_factors_have_contrasts(res, wages):
    found = res.avg_slopes()
    assert found.frame.index.to_list() == [
        "educ",
        "female",
        "union",
        "tenure",
        "region",
        "region",
    ]
    effects = res.avg_effects("region")
    assert np.allclose(found.params["region"], effects.params, rtol=1e-9)
    assert np.allclose(found.bse["region"], effects.bse, rtol=1e-9)
    levels = found.frame.loc["region"]
    assert levels["to"].to_list() == ["south", "west"]
    assert levels["step"].isna().all()
    assert found.frame.loc["tenure", ["from", "to"]].isna().all()
    only = res.avg_slopes("region", by="female").frame
    assert only.index.names == ["predictor", "female"]
    made = found.t_test("region[south] - region[west] = 0, female = 0")
    gap = effects.params.iloc[0] - effects.params.iloc[1]
    assert np.allclose(made.params, [gap, found.params["female"]], rtol=1e-9)
    text = " ".join(str(found).split())
    assert "region north south" in text
    assert "Factors have contrasts between two levels" in text
    assert "A predictor with two values moves from one to the other" in text
    plain = str(res.avg_slopes("tenure"))
    assert "from" not in plain.split("Notes", maxsplit=1)[0]
    labels = [one.get_text() for one in found.plot().get_yticklabels()]
    assert "tenure" in labels
    assert "region: north → west" in labels


def test_slopes_stand_beside_coefficients(res, wages):
    line = smf.ols(FORMULA, wages).fit()
    rows = str(vs.table([line, res.avg_slopes()])).splitlines()
    for name in ("female", "educ", "region[T.south]", "region[T.west]"):
        (row,) = [row for row in rows if row.startswith(f"{name} ")]
        assert len(row.split()) == 3


def test_units_of_predictors_and_response_scale_slopes(wages, res):
    units = {"educ": 12.0, "female": 4.0, "tenure": 1e-3}
    scaled = wages.assign(**{name: wages[name] * unit for name, unit in units.items()})
    scaled["lwage"] = 7 + 5 * wages["lwage"]
    found = vs.fit(FORMULA, scaled, B=300, rng=1, n_jobs=1).avg_slopes(se="population")
    ours = res.avg_slopes(se="population")
    unit = np.array([12.0, 4.0, 1.0, 1e-3, 1.0, 1.0])
    assert np.allclose(found.params * unit, 5 * ours.params, rtol=1e-7)
    assert np.allclose(found.bse * unit, 5 * ours.bse, rtol=1e-6)
    effects = res.avg_effects()
    moved = vs.fit(FORMULA, scaled, B=300, rng=1, n_jobs=1).avg_effects()
    assert np.allclose(moved.params, 5 * effects.params, rtol=1e-7)


def test_order_of_columns_rows_and_variables_changes_nothing(wages, res):
    turned = vs.fit(FORMULA, wages[wages.columns[::-1]], B=300, rng=1, n_jobs=1)
    ours = res.avg_slopes(se="population")
    assert np.allclose(turned.avg_slopes().params, ours.params, rtol=1e-12)
    shuffled = wages.sample(frac=1.0, random_state=3)
    again = res.avg_slopes(data=shuffled, se="population")
    assert np.allclose(again.params, ours.params, rtol=1e-9)
    assert np.allclose(again.bse, ours.bse, rtol=1e-7)
    some = res.avg_slopes(["tenure", "educ"]).params
    assert np.allclose(some, ours.params[["tenure", "educ"]], rtol=1e-12)


@pytest.mark.parametrize("ones", [1, 2, 3, 10, 19])
def test_effects_of_0_1_columns_go_from_0_to_1(ones):
    """Also where a quantile would lie between the two values."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"d": np.repeat([0, 1], [20 - ones, ones])})
    frame["c"] = np.repeat([0, 2, 5], [20 - ones, ones // 2, ones - ones // 2])
    frame["y"] = 2.0 * frame["d"] + rng.normal(0, 0.1, 20)
    res = vs.fit("y ~ d + c", frame, B=60, k=10, rng=1, n_jobs=1)
    for table in (res.avg_effects().frame, res.effects):
        assert table.loc["d", ["from", "to"]].to_list() == [0, 1]
        assert set(table.loc["c", ["from", "to"]]) <= {0, 2, 5}
        assert table.loc["c", "from"] < table.loc["c", "to"]


# Arguments


def test_rows_given_first_are_rows(res, wages):
    some = wages.head(40)
    for method in (res.avg_effects, res.avg_slopes):
        assert np.allclose(method(some).params, method(data=some).params, rtol=1e-12)
        assert method(some).rows == "40 training rows"
        with pytest.raises(ValueError, match=r"got rows as both.*\(data=\.\.\.\)"):
            method(some, some)
    with pytest.raises(ValueError, match=r"Give rows as data=\.\.\."):
        res.partial_dependence(some)
    with pytest.raises(ValueError, match=r"both ends of each move.*data=\.\.\."):
        res.avg_effects({"educ": [8, 10, 12]})
    with pytest.raises(ValueError, match="by='female' to average by its levels"):
        res.avg_predictions("female")
    array = res.avg_effects(np.array(["educ", "female"]))
    assert array.frame.index.to_list() == ["educ", "female"]


def test_rows_of_loaded_results_given_first(res, wages, tmp_path):
    res.save(tmp_path / "kept.zip")
    loaded = vs.load(tmp_path / "kept.zip")
    ours = res.avg_effects()
    assert np.allclose(loaded.avg_effects(wages).params, ours.params, rtol=1e-9)


def test_several_columns_are_crossed(res, wages):
    found = res.avg_predictions(by=["female", "region"])
    means = res.predict(wages).groupby([wages["female"], wages["region"]]).mean()
    assert found.frame.index.names == ["female", "region"]
    assert found.frame.index.to_list() == means.index.to_list()
    assert np.allclose(found.params, means, rtol=1e-12)
    sizes = wages.groupby(["female", "region"]).size()
    assert found.frame["rows"].to_list() == sizes.to_list()
    assert "female=0, region=south" in str(found)
    missing = wages[(wages["female"] == 1) | (wages["region"] == "west")]
    assert len(res.avg_predictions(missing, by=["female", "region"]).frame) == 4
    effects = res.avg_effects("educ", by=["female", "union"], se="population")
    assert "educ, female=1, union=0" in str(effects)
    assert effects.frame.index.names == ["predictor", "female", "union"]
    one = res.avg_effects("educ", by=["female"], se="population")
    same = res.avg_effects("educ", by="female", se="population")
    assert one.frame.equals(same.frame)


def test_rows_by_levels_name_their_column(res):
    found = res.avg_predictions(by="union")
    assert found.frame.index.to_list() == [0, 1]
    text = str(found)
    assert "union=0" in text
    assert "union=1" in text
    labels = [label.get_text() for label in found.plot().get_yticklabels()]
    assert set(labels) == {"union=0", "union=1"}
    gap = found.t_test("union=1 - union=0 = 0").params.item()
    assert np.isclose(gap, np.diff(found.params).item(), rtol=1e-9)
    classes = res.avg_slopes("female", by="union").transform(
        lambda p: {"gap": p["female, union=1"] - p["female, union=0"]}
    )
    assert np.isfinite(classes.params["gap"])


def test_bad_columns_are_refused(res):
    with pytest.raises(ValueError, match="names a column twice"):
        res.avg_predictions(by=["female", "female"])
    with pytest.raises(ValueError, match="a list of names; got"):
        res.avg_predictions(by=[])
    with pytest.raises(ValueError, match="a list of names; got"):
        res.avg_predictions(by=[1, 2])
    with pytest.raises(ValueError, match=r"one of educ, female.*got 'age'"):
        res.avg_predictions(by=["female", "age"])
