"""The certificate passes, and fails for formulas that are wrong."""

from dataclasses import replace

import numpy as np
import pytest

import r_bridge
from r_bridge import battery
from r_bridge.__main__ import main
from r_bridge.battery import EDGE_CASES, SETTINGS, compare_setting
from r_bridge.certificate import Certificate, markdown_row, pool
from r_bridge.compare import Comparison, Quantity, largest_relative_difference
from r_bridge.drawn import FEATURES, compare_drawn, data_of, draw
from r_bridge.from_ranger import RANGER
from r_bridge.reported import MEAN, TESTS, TIDY, compare_reported
from r_bridge.reported import SETTINGS as REPORTED
from r_bridge.restated import COLUMNS
from vstatkit import EnsembleResults
from vstatkit.ensemble import oob_scores
from vstatkit.formula.column_summaries import FrameVariables
from vstatkit.inference import estimates
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.intervals import Support
from vstatkit.results import (
    marginal_effects,
    prediction_results,
)
from vstatkit.results.estimate_table import ContrastResults, EstimateTable
from vstatkit.results.marginal_effects import Averages
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.variance import estimators as variance_estimators
from vstatkit.variance import higher_orders
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.registry import ESTIMATORS

FORTY = 40
"""Comparisons with ranger that a certificate has at least."""


RIGHT = ESTIMATORS["ij_u"].zeta_1

GRF_NAMES = ["defaults", "without honesty", "groups of four", "weights", "missing"]
"""What sets the live forests of grf's apart."""


def without_bias(moments, replace):
    """IJ-U that forgets its Monte Carlo bias."""
    n, k = moments.n, moments.size
    inflation = 1.0 if replace else (n / (n - k)) ** 2
    return n / k**2 * inflation * moments.jackknife


def without_inflation(moments, replace):
    """IJ-U that forgets to inflate without replacement."""
    return RIGHT(moments, True)


def jackknife_of(comparison):
    """ranger's jackknife after bootstrap, and ours."""
    name = "J-U, predict(se)^2"
    return next(one for one in comparison.quantities if one.name == name)


@pytest.fixture(scope="module")
def certificate(r_is_there):
    return r_bridge.check()


@pytest.mark.r
def test_the_whole_certificate_passes(certificate):
    assert certificate.ok
    assert certificate.difference <= 1e-10
    ranger = [one for section in certificate.ranger.values() for one in section]
    assert len(ranger) >= FORTY
    assert len(certificate.ranger) == len(SETTINGS) + len(EDGE_CASES) + len(FEATURES)
    assert all(len(certificate.ranger[one.title]) == 10 for one in SETTINGS)
    assert len(certificate.grf) >= 3
    assert set(certificate.others["vstatkit"]) == {one.title for one in REPORTED}
    for section in certificate.others["vstatkit"].values():
        assert {quantity.verdict for quantity in pool(section)} == {"equal"}
    assert "PASSED" in str(certificate)


def doubled(comparison, place):
    """Take one quantity of R's for twice what it is."""
    quantities = list(comparison.quantities)
    wrong = replace(quantities[place], theirs=2 * quantities[place].theirs)
    quantities[place] = wrong
    return replace(comparison, quantities=tuple(quantities))


def corrupted_ones(certificate):
    """Certificates each with one quantity of one forest doubled, and its place."""
    for package, found in certificate.packages.items():
        for title, section in found.items():
            for j, comparison in enumerate(section):
                equal = [
                    place
                    for place, one in enumerate(comparison.quantities)
                    if one.verdict == "equal"
                ]
                wrong = [doubled(comparison, place) for place in equal]
                assert wrong
                assert not any(one.ok for one in wrong)
                changed = [*section[:j], wrong[-1], *section[j + 1 :]]
                packages = certificate.packages
                packages[package] = {**found, title: changed}
                name = comparison.quantities[equal[-1]].name
                ranger, grf = packages.pop("ranger"), packages.pop("grf")
                made = replace(certificate, ranger=ranger, grf=grf, others=packages)
                yield title, j, name, made


def assert_every_corruption_fails(certificate):
    many = len(certificate.comparisons)
    assert f"{many} forests compared" in certificate.conclusion()
    made = list(corrupted_ones(certificate))
    assert len(made) == many
    for title, place, name, wrong in made:
        lines = wrong.conclusion()
        missed = [line for line in lines if line.startswith("MISSED")]
        assert len(missed) == 1
        section = next(one[title] for one in wrong.packages.values() if title in one)
        which = f", forest {place + 1} of {len(section)}" if len(section) > 1 else ""
        assert f"{title}{which}: {name} differs by" in missed[0]
        assert lines[-1].startswith("FAILED")
        pooled = [one for part in section for one in part.quantities]
        assert sum(one.verdict == "DIFFERENT" for one in pooled) == 1
        assert any(one.verdict == "DIFFERENT" for one in pool(section))


@pytest.mark.r
def test_corrupting_any_single_forest_fails_the_certificate(certificate):
    assert_every_corruption_fails(certificate)


def test_every_live_forest_of_grf_is_kept_and_counts(monkeypatch):
    # Forests of one size differ in their options only, so their settings read alike.
    alike = r_bridge.compare_recorded()[0]
    live = replace(alike, versions={"R": "4", "grf": "2"})
    monkeypatch.setattr(battery, "compare_grf", lambda *given, **options: live)
    sections = battery.grf_sections({"grf": "2"})
    recorded = len(r_bridge.compare_recorded())
    assert len(sections) == recorded + len(battery.GRF_SETTINGS)
    assert all(any(name in title for title in sections) for name in GRF_NAMES)
    made = Certificate({"R": "4"}, {"one": [alike]}, sections)
    ending = f"({recorded} recorded, {len(battery.GRF_SETTINGS)} live)"
    assert any(line.endswith(ending) for line in made.conclusion())
    assert_every_corruption_fails(made)


def test_what_is_information_for_one_forest_is_not_for_another():
    same = Quantity("IJ-U", np.ones(2), np.ones(2), None)
    wrong = Quantity("IJ-U", np.ones(2), 2 * np.ones(2))
    section = [Comparison("a", "b", (one,), {}) for one in (same, wrong)]
    assert [one.verdict for one in pool(section)] == ["information", "DIFFERENT"]


@pytest.mark.r
def test_masks_of_missing_standard_errors_are_equal_and_not_empty(certificate):
    squares = [
        quantity
        for comparison in certificate.comparisons
        for quantity in comparison.quantities
        if quantity.name == "IJ-U, predict(se)^2"
    ]
    assert all(quantity.same_missing for quantity in squares)
    assert sum(quantity.n_missing for quantity in squares) > 20


@pytest.mark.r
def test_every_edge_case_reaches_its_corner(certificate):
    reasons = {
        title: " ".join(q.reason for one in section for q in one.quantities)
        for title, section in certificate.ranger.items()
    }
    few = [one.title for one in EDGE_CASES if "few trees" in one.title]
    assert len(few) == 2
    assert all("leaves out rows" in reasons[title] for title in few)
    assert "empirical Bayes" in reasons[EDGE_CASES[-1].title]
    many = next(one.title for one in EDGE_CASES if "many trees" in one.title)
    assert (jackknife_of(certificate.ranger[many][0]).theirs > 0).sum() > 5


@pytest.mark.r
@pytest.mark.parametrize("wrong", [without_bias, without_inflation])
def test_a_wrong_formula_fails_the_certificate(session, monkeypatch, capsys, wrong):
    entry = replace(ESTIMATORS["ij_u"], zeta_1=wrong)
    monkeypatch.setitem(ESTIMATORS, "ij_u", entry)
    assert main(["--seeds", "1"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: vstatkit and R differ." in printed
    assert "MISSED: regression, without replacement, k = n/2: IJ-U" in printed


@pytest.mark.r
@pytest.mark.parametrize("name", ["corrected_v", "corrected_u"])
def test_a_wrong_correction_fails_its_comparison(session, monkeypatch, name):
    entry = ESTIMATORS[name]
    setting = next(one for one in SETTINGS if one.replace == entry.replace)
    assert compare_setting(setting, 0).ok
    raw = ESTIMATORS["bm"].zeta_1
    monkeypatch.setitem(ESTIMATORS, name, replace(entry, zeta_1=raw))
    found = compare_setting(setting, 0)
    assert not found.ok
    wrong = [one.name for one in found.quantities if one.verdict == "DIFFERENT"]
    assert wrong == [entry.label]
    with pytest.raises(AssertionError, match="vstatkit and R differ"):
        found.assert_close()


def a_drawn_one(*, replace):
    """A setting drawn at random, with clusters, of one kind of sampling."""
    settings = (draw("clusters", seed) for seed in range(20))
    return next(one for one in settings if one.replace == replace)


@pytest.mark.r
@pytest.mark.parametrize(
    "name", ["corrected_v", "corrected_v_simple", "corrected_u", "bm"]
)
def test_formulas_in_r_notice_a_wrong_factor(session, monkeypatch, name):
    entry = ESTIMATORS[name]
    setting = a_drawn_one(replace=entry.replace is not False)
    assert compare_drawn(RANGER, setting).ok
    wrong = replace(entry, zeta_1=lambda *a: (1 + 1e-9) * entry.zeta_1(*a))
    monkeypatch.setitem(ESTIMATORS, name, wrong)
    found = compare_drawn(RANGER, setting)
    missed = [one.name for one in found.quantities if one.verdict == "DIFFERENT"]
    assert missed == [entry.label]


@pytest.mark.r
def test_settings_drawn_at_random_have_what_their_sections_say(certificate):
    for feature in FEATURES:
        section = certificate.ranger[f"drawn at random, with {feature}"]
        assert len({one.setting for one in section}) == 10
        for one in section:
            names = {quantity.name for quantity in one.quantities}
            way = "corrected-U" if "without" in one.setting else "corrected-V"
            assert {"rows kept", "zeta_k/B", "BM", way} <= names
            assert {q.verdict for q in one.quantities} == {"equal"}


def test_draws_repeat_and_differ():
    for feature in FEATURES:
        settings = [draw(feature, seed) for seed in range(10)]
        assert settings == [draw(feature, seed) for seed in range(10)]
        assert len({str(one) for one in settings}) == 10
        assert {one.replace for one in settings} == {True, False}
    assert all(draw("votes", seed).kind == "votes" for seed in range(10))
    assert all(draw("weights", seed).weighted for seed in range(10))
    assert all(draw("clusters", seed).clusters for seed in range(10))
    gaps = [data_of(draw("missing values", seed)).isna() for seed in range(10)]
    assert all(one.to_numpy().any() for one in gaps)
    assert not any(
        draw(feature, seed).weighted and draw(feature, seed).clusters
        for feature in FEATURES
        for seed in range(50)
    )


@pytest.mark.r
def test_a_wrong_jackknife_differs_wherever_it_is_compared(session, monkeypatch):
    settings = [one for one in (*SETTINGS, *EDGE_CASES) if one.kind == "regression"]
    right = [jackknife_of(compare_setting(one, 0)) for one in settings]
    name = "jackknife_after_bootstrap"
    ours = getattr(variance_estimators, name)
    monkeypatch.setattr(variance_estimators, name, lambda *a, **b: 1.5 * ours(*a, **b))
    for setting, before in zip(settings, right, strict=True):
        assert before.verdict in ("equal", "not compared")
        if before.verdict == "equal":
            after = jackknife_of(compare_setting(setting, 0))
            assert after.verdict == "DIFFERENT", setting.title


@pytest.mark.r
def test_most_jackknives_are_above_zero(certificate):
    for setting in SETTINGS:
        if setting.kind == "regression":
            found = map(jackknife_of, certificate.ranger[setting.title])
            shares = [(one.theirs > 0).mean() for one in found]
            assert np.mean(shares) > 0.5, setting.title


@pytest.mark.r
def test_the_command_passes_and_writes_markdown(session, tmp_path, capsys):
    path = tmp_path / "certificate.md"
    assert main(["--seeds", "1", "--out", str(path)]) == 0
    assert capsys.readouterr().out.strip().endswith("everything that must agree does.")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Certificate of equivalence with R")
    assert "| IJ-U, rInfJack |" in text
    assert "PASSED" in text


def test_the_number_of_data_sets_is_checked(capsys):
    with pytest.raises(ValueError, match="at least 1; got 0"):
        r_bridge.check(seeds=0)
    with pytest.raises(SystemExit, match="2"):
        main(["--seeds", "0"])
    assert "error: `seeds` must be at least 1; got 0." in capsys.readouterr().err


def test_where_to_write_is_checked_first(tmp_path, capsys):
    path = tmp_path / "nowhere" / "certificate.md"
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        r_bridge.check(out=path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        r_bridge.check(out=tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(path)])
    assert "must be in an existing folder" in capsys.readouterr().err


def test_names_with_bars_stay_in_their_cell():
    row = markdown_row(Quantity("P>|t|", np.ones(2), np.ones(2)))
    assert row.startswith(r"| P>\|t\| | 2 |")


def test_zeros_alone_are_no_comparison():
    zero = Quantity("variance", np.zeros(2), np.zeros(2))
    assert zero.verdict == "not compared"
    assert zero.n_zero == 2
    half = Quantity("variance", np.array([0.0, np.nan]), np.array([0.0, np.nan]))
    assert half.verdict == "not compared"
    assert Quantity("variance", np.zeros(2), np.array([0, 1.0])).verdict == "DIFFERENT"
    assert Comparison("a", "b", (zero,), {}).ok


def test_a_mask_that_differs_is_a_difference():
    ours, theirs = np.array([1.0, np.nan]), np.array([1.0, 2.0])
    assert Quantity("se", ours, theirs).verdict == "DIFFERENT"
    assert Quantity("se", ours, ours).verdict == "equal"
    assert Quantity("se", ours, theirs, None).verdict == "information"


def test_shapes_must_be_equal():
    with pytest.raises(ValueError, match=r"ours is \(2,\), R's \(3,\)"):
        Quantity("mean", np.zeros(2), np.zeros(3))


def test_differences_are_relative_to_the_larger_side():
    assert largest_relative_difference([1.0, 100.0], [1.0, 99.0]) == 0.01
    assert largest_relative_difference([0.0], [0.0]) == 0
    assert largest_relative_difference([np.nan], [np.nan]) == 0


def test_a_comparison_without_a_miss_asserts_nothing():
    same = Quantity("mean", np.ones(2), np.ones(2))
    other = Quantity("mean", np.ones(2), np.zeros(2))
    Comparison("a", "b", (same,), {}).assert_close()
    with pytest.raises(AssertionError, match="DIFFERENT"):
        Comparison("a", "b", (same, other), {}).assert_close()


def slightly(value):
    """Multiply numbers by one and a millionth, wherever they are."""
    if isinstance(value, tuple | list):
        return type(value)(map(slightly, value))
    if isinstance(value, dict):
        return {name: slightly(one) for name, one in value.items()}
    return value * (1 + 1e-6)


def perturb_property(monkeypatch, owner, name):
    """Let a property say slightly more than it does."""
    right = vars(owner)[name]
    read = right.func if hasattr(right, "func") else right.fget
    monkeypatch.setattr(owner, name, property(lambda self: slightly(read(self))))


def perturb_table(monkeypatch, owner, name):
    """Let a function, or a method, tabulate slightly larger numbers."""
    right = getattr(owner, name)

    def wrong(*given, **options):
        table = right(*given, **options)
        return table.assign(**slightly(dict(table.select_dtypes("number").items())))

    monkeypatch.setattr(owner, name, wrong)


def perturb_function(monkeypatch, owner, name):
    """Let a function, or a method, give slightly more than it does."""
    right = getattr(owner, name)

    def wrong(*given, **options):
        return slightly(right(*given, **options))

    monkeypatch.setattr(owner, name, wrong)


PRINTED = {
    "mean": (perturb_function, estimates, "weighted_mean"),
    "std err": (perturb_property, Estimates, "bse"),
    "df": (perturb_function, estimates, "ratio"),
    "t": (perturb_property, Estimates, "zvalues"),
    "P>|t|": (perturb_property, Estimates, "pvalues"),
    "conf_int lower": (perturb_function, Estimates, "interval"),
    "conf_int upper": (perturb_function, Estimates, "_quantile"),
    "effects std_error": (perturb_property, Estimates, "bse"),
    "effects ci_lower": (perturb_function, Estimates, "interval"),
    "t_test std err": (perturb_property, Estimates, "bse"),
    "MC error of std err": (perturb_property, Estimates, "relative_mc_error"),
    "se_mc_error": (perturb_property, Estimates, "bse_mc_error"),
    "rho": (perturb_property, HigherOrders, "factor"),
    "se_mean": (perturb_property, Estimates, "bse"),
    "t_test t": (perturb_property, Estimates, "zvalues"),
    "t_test df": (perturb_function, estimates, "ratio"),
    "effects from": (perturb_function, FrameVariables, "quantiles"),
    "avg_effects to": (perturb_function, FrameVariables, "quantiles"),
    "avg_effects estimate": (perturb_function, estimates, "weighted_mean"),
    "avg_slopes step": (perturb_function, marginal_effects, "slope_width"),
    "OOB RMSE": (perturb_function, oob_scores, "_regression"),
    "OOB R-squared": (perturb_function, oob_scores, "_regression"),
}
"""Numbers of the tables, each with the last place in the code that it comes from."""

MECHANISM = {
    "the sampling variance made positive": (
        perturb_function,
        estimates,
        "positive_mean",
    ),
    "its bound": (perturb_function, estimates, "_ceiling"),
    "its noise": (perturb_function, estimates, "noise_variance"),
    "its variance over data sets": (perturb_function, estimates, "data_variance"),
    "the concentration": (
        perturb_function,
        variance_estimators,
        "influence_concentration",
    ),
    "the jackknife": (
        perturb_function,
        variance_estimators,
        "jackknife_after_bootstrap",
    ),
    "the factor of Hoeffding": (perturb_property, HigherOrders, "factor"),
    "what is unknown of it": (perturb_property, HigherOrders, "relative_error"),
    "the measured rho": (perturb_property, higher_orders.PairSums, "rho"),
    "the error of rho": (perturb_property, higher_orders.PairSums, "error"),
    "the likely variance": (perturb_property, Estimates, "likely_sampling"),
    "the skewness": (perturb_function, variance_estimators, "influence_skew"),
    "the pooled skewness": (perturb_function, prediction_results, "shrink_skew"),
    "what skewness bends": (perturb_function, estimates, "skew_curvature"),
    "the weight of own skewness": (perturb_function, estimates, "trusted_share"),
    "the least error of skewed estimates": (perturb_function, estimates, "least_error"),
    "intervals of probabilities": (perturb_function, Support, "interval"),
    "the effective number of observations": (
        perturb_function,
        prediction_results,
        "effective_size",
    ),
}
"""Steps from the trees to the tables."""

TABLES = {
    "tidy": ("tidy", TIDY, EstimateTable, "tidy"),
    "predictions": ("prediction", MEAN, prediction_results, "mean_frame"),
    "tests": ("t_test frame", TESTS, ContrastResults, "summary_frame"),
    "effects": ("effects", COLUMNS, EnsembleResults, "effects_frame"),
    "average predictions": ("avg_predictions", COLUMNS, Averages, "summary_frame"),
    "average effects": ("avg_effects", COLUMNS, EstimateTable, "summary_frame"),
    "average slopes": ("avg_slopes", COLUMNS, EstimateTable, "summary_frame"),
    "limits of predictions": (
        *("prediction conf_int", ["lower", "upper"]),
        *(PredictionResults, "conf_int"),
    ),
    "limits of averages": (
        *("avg_slopes conf_int", ["lower", "upper"]),
        *(EstimateTable, "conf_int"),
    ),
}
"""Tables, by what the certificate calls them: columns, and where they are made."""

SHOWN_BY = {
    "its bound": "few trees",
    "the skewness": "skewed",
    "the pooled skewness": "skewed",
    "what skewness bends": "skewed",
    "the weight of own skewness": "skewed",
    "the least error of skewed estimates": "skewed",
    "intervals of probabilities": "two classes",
    "the effective number of observations": "rare",
}
"""Settings whose tables need a step; the others are needed by the first."""


def compared_tables(*settings):
    """Compare one forest of each setting, as the certificate does."""
    sections = {one.title: [compare_reported(one, 3)] for one in settings}
    return Certificate({"R": "4"}, {}, {}, {"vstatkit": sections})


@pytest.mark.r
def test_tables_agree_with_the_formulas_in_r(session):
    made = compared_tables(*REPORTED)
    assert made.ok
    assert made.conclusion()[-1].startswith("PASSED")


@pytest.mark.r
@pytest.mark.parametrize("name", [*PRINTED, *MECHANISM])
def test_a_millionth_in_any_printed_number_fails_the_certificate(
    session, monkeypatch, name
):
    perturb, owner, attribute = {**PRINTED, **MECHANISM}[name]
    perturb(monkeypatch, owner, attribute)
    needed = SHOWN_BY.get(name, REPORTED[0].title)
    made = compared_tables(*(one for one in REPORTED if needed in one.title))
    assert made.conclusion()[-1].startswith("FAILED")
    if name in PRINTED and name != "rho":
        missed = [line for line in made.conclusion() if f": {name} differs" in line]
        assert missed, made.conclusion()


@pytest.mark.r
@pytest.mark.parametrize("table", TABLES)
def test_a_millionth_in_any_column_fails_the_certificate(session, monkeypatch, table):
    name, columns, owner, attribute = TABLES[table]
    perturb_table(monkeypatch, owner, attribute)
    lines = compared_tables(REPORTED[0]).conclusion()
    assert lines[-1].startswith("FAILED")
    missed = " ".join(lines)
    assert [one for one in columns if f": {name} {one} differs" not in missed] == []


@pytest.mark.r
def test_another_rho_of_averages_fails_the_certificate(session, monkeypatch):
    right = marginal_effects.average_orders
    monkeypatch.setattr(
        marginal_effects,
        "average_orders",
        lambda orders: replace(right(orders), rho=orders.rho),
    )
    missed = " ".join(compared_tables(REPORTED[0]).conclusion())
    assert ": avg_predictions std_error differs" in missed
    assert ": mean_se differs" not in missed


@pytest.mark.r
@pytest.mark.parametrize("column", ["zeta_1", "zeta_k", "sampling", "monte_carlo"])
def test_a_millionth_in_the_components_fails_the_certificate(
    session, monkeypatch, column
):
    right = VarianceComponents.in_units

    def wrong(self, unit):
        made = right(self, unit)
        return replace(made, **{column: slightly(getattr(made, column))})

    monkeypatch.setattr(VarianceComponents, "in_units", wrong)
    assert compared_tables(REPORTED[0]).conclusion()[-1].startswith("FAILED")


@pytest.mark.r
def test_a_variance_of_four_times_its_size_fails_the_certificate(session, monkeypatch):
    right = estimates.positive_mean
    monkeypatch.setattr(estimates, "positive_mean", lambda *a: 4 * right(*a))
    assert compared_tables(REPORTED[0]).conclusion()[-1].startswith("FAILED")
