import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.interop.multi_model_table import column_of
from vstatkit.results.labels import number_text


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(80, rng=4).assign(g=np.tile(list("abcd"), 20))


@pytest.fixture(scope="module")
def line(data):
    return smf.ols("y ~ x1 + x4", data).fit()


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g", data, B=150, rng=1)


def rows(summary):
    """Cells of a table's lines by their first words."""
    lines = [line for line in str(summary).splitlines() if line[:1].strip()]
    return {line[:25].strip(): line[25:].split() for line in lines}


def test_models_stand_side_by_side(line, res):
    slopes = res.avg_slopes(["x1", "x4"])
    text = str(vs.table([line, slopes]))
    found = rows(text)
    for name in ("x1", "x4"):
        wanted = [line.params[name], slopes.params[name]]
        assert found[name] == [number_text(one) for one in wanted]
        errors = [f"({number_text(float(one.bse[name]))})" for one in (line, slopes)]
        assert " ".join(errors) in " ".join(text.split())
    assert found["Intercept"] == [number_text(line.params["Intercept"])]
    assert found["Observations"] == ["80", "80"]
    assert found["R-squared"] == [number_text(line.rsquared)]
    assert found["Base learners B"] == ["150"]
    assert text.index("(1) OLS") < text.index("(2) average slopes")


def test_effects_are_named_with_their_ends(res):
    frame = column_of(res).frame
    ends = res.effects.loc["x4"]
    assert f"x4: {ends['from']:.4g} → {ends['to']:.4g}" in frame.index
    assert "g: a → d" in frame.index
    assert_allclose(frame["estimate"], res.effects["estimate"].astype(float))
    assert_allclose(frame["p_value"], res.effects["p_value"].astype(float))


def test_columns_have_the_tests_of_their_models(line, res):
    frame = column_of(line, 0.1).frame
    assert_allclose(frame["t"], line.tvalues)
    assert_allclose(frame["p_value"], line.pvalues)
    assert_allclose(frame[["ci_lower", "ci_upper"]], line.conf_int(0.1))


def test_importances_have_a_p_value_and_no_t(res):
    found = res.importance(["x1", "x4"])
    frame = column_of(found).frame
    assert frame["t"].isna().all()
    for name, ours in (("estimate", "importance"), ("std_error", "std_error")):
        assert_allclose(frame[name], found.frame[ours])
    assert_allclose(frame["p_value"], found.frame["p_value"])
    for alpha, known in ((None, "("), (0.1, "[")):
        lines = str(vs.table(found, alpha=alpha)).splitlines()
        for name in ("x1", "x4"):
            at = next(j for j, line in enumerate(lines) if line.startswith(name))
            p = found.frame.loc[name, "p_value"]
            below = "p<0.001" if p < 0.001 else f"p={p:.3f}"
            assert lines[at].split() == [
                name,
                number_text(found.frame.loc[name, "importance"]),
            ]
            assert lines[at + 1].strip().startswith(known)
            assert lines[at + 1].split()[-1] == below


def test_importances_without_a_test_have_a_column(res):
    permuted = res.importance(["x4"], how="permute")
    text = str(vs.table(permuted, stars=True))
    assert number_text(permuted.frame["importance"].item()) in text
    assert "nan" not in text
    assert "no tests" in text


def test_intervals_take_the_place_of_standard_errors(line, res):
    text = " ".join(str(vs.table([line, res], alpha=0.1)).split())
    low, high = (number_text(one) for one in line.conf_int(0.1).loc["x4"])
    assert f"[{low}, {high}]" in text
    moved = res.effects_frame(0.1).loc["x4"]
    low, high = (number_text(moved[name]) for name in ("ci_lower", "ci_upper"))
    assert f"[{low}, {high}]" in text
    assert "0.9 intervals" in text


@pytest.mark.parametrize(
    ("pvalue", "mark"),
    [(0.009, "***"), (0.011, "**"), (0.049, "**"), (0.051, "*"), (0.11, "")],
)
def test_stars_follow_the_p_values(pvalue, mark):
    class Fit:
        params, bse = pd.Series({"a": 2.0}), pd.Series({"a": 1.0})
        pvalues = pd.Series({"a": pvalue})

        def conf_int(self, alpha):
            return pd.DataFrame({0: [1.0], 1: [3.0]}, ["a"])

    assert rows(vs.table(Fit(), stars=True))["a"] == [f"2.000{mark}"]
    assert rows(vs.table(Fit()))["a"] == ["2.000"]


def test_all_answers_have_a_column(res):
    curve = res.partial_dependence("x1", points=3)
    made = res.transform(lambda p: {"twice": 2 * p[0]})
    importance = res.importance(["x4"])
    text = str(vs.table([curve, made, importance, res.avg_predictions(by="g")]))
    at = curve.grid["x1"].iloc[1]
    assert f"x1 = {at:.4g}" in text
    assert "twice" in text
    assert number_text(importance.frame["importance"].item()) in text
    assert number_text(importance.loss) in text


def test_classes_have_their_own_lines():
    iris = vs.datasets.iris()
    res = vs.fit("species ~ petal_width", iris, B=60, rng=1)
    frame = column_of(res).frame
    assert "petal_width: 0.2 → 2.2 [virginica]" in frame.index
    curve = column_of(res.partial_dependence("petal_width", grid=[0.2, 1.3])).frame
    assert list(curve.index[:2]) == [
        "petal_width = 0.2 [setosa]",
        "petal_width = 0.2 [versicolor]",
    ]


def test_columns_are_aligned_and_named(line, res):
    text = str(vs.table([line, res], names=["line", "forest"], title="Two"))
    lines = text.split("Notes:", maxsplit=1)[0].splitlines()
    assert len({len(one) for one in lines if one}) == 1
    assert lines[0].strip() == "Two"
    header = next(one for one in lines if "forest" in one)
    responses = next(one for one in lines if one.split() == ["y", "y"])
    for word, place in (("line", 0), ("forest", 1)):
        end = [j for j, letter in enumerate(responses) if letter == "y"][place]
        assert header.index(word) + len(word) == end + 1


def test_other_formats(line, res):
    made = vs.table([line, res])
    assert made.as_html().count("<table") == 2
    assert r"\begin{tabular}" in made.as_latex()


def test_bad_tables_say_why(line, res):
    with pytest.raises(ValueError, match="at least one model"):
        vs.table([])
    with pytest.raises(TypeError, match="str has no params, bse, pvalues"):
        vs.table(["nothing"])
    with pytest.raises(ValueError, match="a name for each of the 2 models"):
        vs.table([line, res], names=["one"])
    with pytest.raises(ValueError, match="alpha"):
        vs.table([res], alpha=2)


def test_maketables_reads_answers(line, res):
    maketables = pytest.importorskip("maketables")
    slopes = res.avg_slopes(["x1", "x4"])
    text = maketables.ETable([line, slopes, res.avg_effects(["x4"])]).make(type="tex")
    assert f"{slopes.params['x4']:.3f}" in text
    assert f"({slopes.bse['x4']:.3f})" in text
    moved = res.avg_effects(["x4"])
    assert f"{moved.params.item():.3f}" in text
    found = maketables.ETable([res.importance(["x4"])]).make(type="tex")
    assert "x4" in found


def test_the_protocol_of_maketables(res):
    table = res.avg_slopes(["x1", "x4"])
    frame = table.__maketables_coef_table__
    assert list(frame.columns) == ["b", "se", "t", "p", "ci95l", "ci95u"]
    assert_allclose(frame["b"], table.params)
    assert_allclose(frame["se"], table.bse)
    assert_allclose(frame["p"], table.frame["p_value"])
    assert table.__maketables_depvar__ == "y"
    assert table.__maketables_stat__("N") == 80
    assert table.__maketables_stat__("unheard of") is None
    assert res.__maketables_stat__("r2") == res.rsquared
    assert "rmse" in res.__maketables_default_stat_keys__


def test_p_values_have_one_name_in_all_frames(data, res):
    line = vs.fit("y ~ x1 + x4 + g", data, kernel="ols", B=150, rng=1)
    compared = vs.compare(res, line)
    additive = res.interaction_test("x1", "x4", grid=2)
    frames = {
        "effects": res.effects,
        "tidy": res.tidy(),
        "averages": res.avg_effects(["x4"]).frame,
        "slopes": res.avg_slopes(["x4"]).frame,
        "transformed": res.transform(lambda p: {"twice": 2 * p[0]}).frame,
        "importance": res.importance(["x4"]).frame,
        "comparison": compared.frame,
        "differences": compared.table(),
        "interaction": additive.frame,
        "contrasts": additive.table(),
    }
    for name, frame in frames.items():
        assert "p_value" in frame, name
        assert "pvalue" not in frame, name
    assert compared.frame["p_value"].item() == compared.pvalue
    assert additive.frame["p_value"].item() == additive.pvalue
