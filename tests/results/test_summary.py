import itertools
import re

import numpy as np
import pandas as pd
import pytest
from statsmodels.iolib.summary import Summary

import vstatkit as vs
from vstatkit.inference.estimates import estimate
from vstatkit.results import summary_notes


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(80, rng=4).assign(g=np.tile(list("ab"), 40))


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + g", data, B=150, rng=1)


def words(summary):
    """Text of a summary with runs of white space folded."""
    return " ".join(str(summary).split())


def test_it_is_statsmodels_summary_in_all_formats(res):
    for full, tables in ((False, 4), (True, 6)):
        table = res.summary(full=full)
        assert isinstance(table, Summary)
        assert table.as_html().count("<table") == tables
        assert table.as_latex().count(r"\begin{tabular}") == tables
    table = res.summary()
    assert "Estimates" in table.as_csv()
    assert str(res) == table.as_text()


@pytest.mark.parametrize("full", [False, True])
def test_all_lines_have_one_width(res, full):
    text = str(res.summary(full=full)).split("Notes:")[0]
    widths = {len(line) for line in text.splitlines() if line}
    assert len(widths) == 1


@pytest.mark.parametrize(
    "expected",
    [
        "Dep. Variable: y",
        "Kernel: forest",
        "Sampling: V (with replacement)",
        "No. Observations: 80",
        "Subsample size k: 34",
        "Base learners B: 150",
        "Variance: Hoeffding",
        "OOB R-squared:",
        "OOB RMSE:",
        "Effects from to change std err df t P>|t| [0.025 0.975]",
        "Estimates mean std err df [0.025 0.975]",
        "summary(full=True) adds",
        "the expectation of this ensemble over data sets of this size (n = 80",
        "They do not cover E[y|x]; use target='truth' for that.",
        "learners would bring it to 10%",
    ],
)
def test_it_says(res, expected):
    assert expected in words(res.summary())


def test_effects_come_first_and_predictions_are_not_tested(res):
    text = str(res.summary())
    assert text.index("Effects") < text.index("Estimates")
    assert text.count("P>|t|") == 1
    assert "z" not in text.partition("Effects")[2].splitlines()[0]


def test_a_line_each_says_where_and_how_well(res):
    text = words(res.summary())
    row = res.typical
    assert f"Typical row: x1 {row['x1'].item():.4g}, g {row['g'].item()} " in text
    share = res.diagnostics["monte_carlo_share"].item()
    zetas = [summary_notes.number_text(float(z[0])) for z in _zetas(res)]
    assert (
        f"Variance: sampling {1 - share:.1%}, Monte Carlo {share:.1%} "
        f"(zeta_1 {zetas[0]}, zeta_k {zetas[1]})"
    ) in text
    unit, share = (res.most_influential[name].item() for name in ("unit", "share"))
    assert (
        f"Influence: at most {share:.0%} of the variance is due to one observation "
        f"({unit})"
    ) in text


def _zetas(res):
    return res.components.zeta_1, res.components.zeta_k


def test_lines_of_several_estimates_have_ranges(data):
    res = vs.fit("y ~ x1 + x2", data, B=150, rng=1, at=data.head(5))
    text = words(res.summary())
    share = res.diagnostics["monte_carlo_share"]
    assert f"Monte Carlo {share.min():.1%} to {share.max():.1%} " in text
    assert f"sampling {1 - share.max():.1%} to {1 - share.min():.1%}," in text
    top = res.most_influential.nlargest(1, "share")
    assert (
        f"Influence: at most {top['share'].item():.0%} of the variance of "
        f"'{top.index.item()}' is due to one observation ({top['unit'].item()})"
    ) in text


def test_a_long_typical_row_is_cut_and_says_so():
    wide = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 15))).add_prefix("x")
    text = words(vs.fit("x0 ~ .", wide, B=20, rng=1).summary())
    assert ", and 2 more in `typical`" in text
    assert "x12 " in text.partition("Typical row:")[2].partition("Variance:")[0]


@pytest.mark.parametrize(
    "expected",
    [
        "zeta_1 zeta_k sampling monte carlo total mc_se MC share",
        "Jarque-Bera",
        "the jackknife's over 1 + rho, rho = ",
        "Influence: normality tests of the influence values",
        "The Variance table is raw",
    ],
)
def test_the_full_summary_says_more(res, expected):
    assert expected in words(res.summary(full=True))
    assert expected not in words(res.summary()).replace("Jarque-Bera p", "")
    assert str(res.summary2()) == str(res.summary(full=True))


def test_a_title_can_be_given(res):
    assert str(res.summary(title="Mine")).splitlines()[0].strip() == "Mine"
    assert str(res.summary2(title="Mine")).splitlines()[0].strip() == "Mine"
    assert "Forest Results" not in str(res.summary(title="Mine"))


def test_only_regressions_are_told_of_the_truth(res):
    assert "target='truth'" in words(res.summary())
    classes = vs.fit("species ~ petal_width", vs.datasets.iris(), B=20, rng=1)
    assert "truth" not in words(classes.summary())


def test_header_of_the_interval_follows_alpha(res):
    assert "[0.05" in str(res.summary(alpha=0.1))
    assert "cover, at 0.9," in str(res.summary(alpha=0.1))


def test_no_nan_with_defaults_on_diabetes():
    res = vs.fit("target ~ .", vs.datasets.diabetes(), rng=1)
    assert "nan" not in str(res.summary()).lower()
    again = vs.fit("target ~ .", vs.datasets.diabetes(), rng=1)
    assert str(res.summary()) == str(again.summary())


def test_iris_has_three_probabilities(recwarn):
    res = vs.fit("species ~ .", vs.datasets.iris(), rng=1, max_B=1000)
    assert [w.category for w in recwarn] == [vs.MonteCarloWarning]
    text = str(res.summary())
    for species in ("setosa", "versicolor", "virginica"):
        assert f"typical [{species}]" in text
    assert "OOB accuracy" in text
    assert "OOB log-loss" in text
    assert "nan" not in text.lower()


def test_coefficients_look_like_a_regression_table(data):
    text = str(vs.fit("y ~ x1", data, kernel="ols", B=100, rng=1).summary())
    assert "coef" in text
    assert "Intercept" in text
    assert "Effects" not in text


def test_weights_and_groups_are_named(data, res, tmp_path):
    weighted = data.assign(w=1.0 + data["x1"], c=np.arange(80) // 4)
    named = vs.fit("y ~ x1", weighted, B=40, rng=1, weights="w", groups="c")
    named.save(tmp_path / "r.npz")
    for one in (named, vs.load(tmp_path / "r.npz")):
        assert "No. Clusters: 20 Seed: 1 Groups: c Weights: w" in words(one.summary())
        assert one.glance()[["weights", "groups"]].iloc[0].to_list() == ["w", "c"]
    array = vs.fit("y ~ x1", data, B=40, rng=1, weights=np.ones(80))
    assert "Weights: given" in words(array.summary(full=True))
    labelled = weighted.set_axis([f"p{i}" for i in range(80)])
    series = vs.statistic("mean", labelled["y"], k=2, B=40, rng=1, groups=labelled["c"])
    assert "Groups: c" in words(series.summary())
    assert "Weights" not in words(res.summary())
    assert "weights" not in res.glance()
    forest = vs.ForestRegressor(40, random_state=1)
    X, y = data[["x1", "x4"]], data["y"]
    assert "Weights" not in words(forest.fit(X, y).summary())
    weighed = forest.fit(X, y, sample_weight=weighted["w"])
    assert "Weights: given" in words(weighed.summary())


def test_constant_predictors_are_named(data, res):
    constant = data.assign(c=1.5, one="u")
    found = vs.fit("y ~ x1 + c + one", constant, B=40, rng=1)
    said = "No effect of c (1.5), one (u): the same value in every row."
    assert said in words(found.summary())
    alone = vs.fit("y ~ c", constant, B=40, rng=1)
    assert "No effect of c (1.5):" in words(alone.summary())
    for other in (res, found.t_test("x1 = 0"), vs.fit("y ~ c", constant, kernel="ols")):
        assert "No effect of" not in words(other.summary())


def test_tests_and_intervals_that_disagree_are_named(data, res):
    """At the level of the p-value itself the t-interval would end at zero."""
    classes = data.assign(high=np.where(data["y"] > 15, "yes", "no"))
    found = vs.fit("high ~ x1 + x4 + g", classes, B=150, rng=1)
    for table in (found, found.avg_effects()):
        frame = table.effects if table is found else table.frame
        for name in ("x1", "x4"):
            alpha = float(frame.loc[name, "p_value"]) * 1.001
            note = f"interval of {name} disagree at {alpha:g}: the test is Student's t"
            assert note in words(table.summary(alpha=alpha))
            assert note not in words(table.summary(alpha=alpha / 1000))
    p = float(res.effects["p_value"].iloc[0])
    assert "disagree" not in words(res.summary(alpha=p * 1.001))


def test_a_predictor_that_was_left_out_is_not_called_constant():
    b = np.linspace(0, 10, 40)
    data = pd.DataFrame({"a": b + 1, "b": b, "z": np.tile([0.0, 1.0], 20), "y": b % 3})
    res = vs.fit("y ~ I((a - b).where(a > b)) + z", data, B=20, rng=1)
    said = words(res.summary())
    assert "No effect of a, b: the formula is not finite when" in said
    assert "the same value" not in said


def test_dropped_rows_and_clusters_are_reported(data):
    gaps = data.assign(site=np.repeat(np.arange(20), 4))
    gaps.loc[:2, "x1"] = np.nan
    text = words(vs.fit("y ~ x1", gaps, groups="site", B=60, rng=1).summary())
    assert "Rows dropped: 3" in text
    assert "3 rows with missing values dropped." in text
    assert "No. Clusters: 20" in text


@pytest.mark.parametrize(("sites", "said"), [(19, True), (20, False)])
def test_few_units_are_not_relied_on(data, sites, said):
    few = data.assign(site=np.arange(80) % sites)
    text = words(vs.fit("y ~ x1", few, groups="site", B=40, rng=1).summary())
    assert ("are not reliable with fewer than 20 clusters" in text) == said
    text = words(vs.fit("y ~ x1", data.head(15), kernel="ols", B=40, rng=1).summary())
    assert "relied on" not in text


def tiny(n, **options):
    data = vs.datasets.mars(n, rng=3)
    return vs.fit("y ~ x1", data, rng=1, at=data.head(2), **options)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_very_few_units_have_no_measured_coverage(n):
    for variance in ("jackknife", "corrected"):
        text = words(tiny(n, B=300, variance=variance).summary())
        assert f"than 20 observations, least of all with {n}." in text
        assert "measured" not in text
        assert "hoeffding" not in text


def test_what_was_measured_by_the_jackknife_is_said_of_it_alone():
    measured = "than 20 observations: in simulations with the jackknife's variance"
    assert measured in words(tiny(5, B=60, variance="jackknife").summary())
    text = words(tiny(5, B=60, variance="corrected").summary())
    unnumbered = re.sub(r" \[\d\]", "", text)
    assert "with fewer than 20 observations. k = 4" in unnumbered
    assert "even with" not in text


def test_a_better_estimator_is_advised_only_where_it_tells():
    """`variance="auto"` would have taken it there."""
    advice = "variance='hoeffding' includes higher orders"
    for n, needs in ((6, "at least 4 of them; these leave out 2.4"), (30, None)):
        res = tiny(n, B=60)
        text = words(res.with_variance("corrected").summary())
        assert (res.variance == "hoeffding") == (needs is None)
        said = f", but needs subsamples that leave out {needs} on average."
        assert f"{advice}{'.' if needs is None else said}" in text


def test_scores_of_no_observation_are_said_to_be_none():
    text = words(tiny(2, B=2).summary())
    assert "no out-of-bag scores: all 2 observations were in every subsample." in text
    assert "the others" not in text


def test_learners_are_not_called_few_and_enough_at_once():
    res = tiny(2, B="auto")
    count = res.diagnostics["bounded"].sum()
    assert count > 0
    text = words(res.summary())
    assert "B was grown until the Monte Carlo error" in text
    assert "is too small" not in text
    assert f"{count} of 2 estimates is the largest that the spread of single" in text
    few = words(tiny(10, B=5).summary())
    assert "B = 5 is too small: the std err of 2 of 2 estimates is only" in few


@pytest.mark.parametrize("n", [7, 8])
def test_a_full_summary_is_promised_no_tests_that_it_lacks(n):
    res = tiny(n, B=60)
    full = words(res.summary(full=True))
    promised = "adds variance components and normality tests" in words(res.summary())
    assert promised == (n == 8)
    assert ("Too few observations for normality tests" in full) == (n == 7)


def test_negative_variances_are_shown_as_such(data):
    noise = data.assign(y=np.random.default_rng(1).normal(size=80))
    res = vs.fit("y ~ x1", noise, k=70, B=20, rng=2, at=noise.head(12))
    res = res.with_variance("corrected")
    negative = int((res.components.sampling < 0).sum())
    assert negative > 0
    text = str(res.summary())
    assert f"negative for {negative} of 12" in text
    assert (res.bse > 0).all()


def test_large_subsamples_carry_a_note(data):
    res = vs.fit("y ~ x1", data, k=60, B=30, rng=1)
    text = words(res.with_variance("corrected").summary())
    assert "k = 60 exceeds half of the 80 observations" in text
    assert "exceeds half" not in words(res.summary())
    smooth = vs.fit("y ~ x1", data, kernel="ols", k=60, B=30, rng=1)
    assert "exceeds half" not in words(smooth.summary())


def test_long_tables_are_cut_and_say_so(data):
    res = vs.fit("y ~ x1", data, B=30, rng=1, at=data)
    text = str(res.summary(full=True))
    assert "Of 80 estimates the first 20 and the last 20 are shown" in words(text)
    rows = iter(text.partition("Estimates")[2].splitlines()[2:])
    shown = [line.split()[0] for line in itertools.islice(rows, 41)]
    assert shown == [*map(str, range(20)), "...", *map(str, range(60, 80))]
    assert next(rows).startswith("----")
    influence = text.partition("Influence")[2]
    last = res.normality.iloc[-1]
    row = next(line for line in influence.splitlines() if line.split()[:1] == ["79"])
    assert [float(cell) for cell in row.split()[1:]] == last.round(3).to_list()


def test_a_summary_estimates_everything_once(data, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "vstatkit.results.estimate_table.estimate",
        lambda *given, **named: (
            asked.append(given[1].shape) or estimate(*given, **named)
        ),
    )
    res = vs.fit("y ~ x1 + x2", data, B=30, rng=1)
    for _ in range(3):
        res.summary()
        assert res.effects is not None
    assert asked == [(30, 2), (30, 1)]


def test_complete_statistics_have_no_monte_carlo_error(data):
    res = vs.statistic("gini", data["y"].head(20), k=2, B="complete")
    assert "Every subsample was evaluated" in str(res.summary())


def test_few_observations_have_no_normality_tests():
    res = vs.statistic("mean", np.arange(5.0), k=2, B="complete")
    assert "Too few observations for normality tests" in str(res.summary(full=True))
    assert "Influence:" not in str(res.summary())


def test_the_largest_share_of_a_mean_is_that_of_its_squared_deviation(rng):
    y = pd.Series(rng.exponential(size=40), index=[f"row{i}" for i in range(40)])
    y["row7"] = 9.0
    squares = (y - y.mean()) ** 2
    exact = squares["row7"] / squares.sum()
    complete = vs.statistic("mean", y.to_frame("y"), k=2, B="complete", replace=False)
    top = complete.most_influential.iloc[0]
    assert top["unit"] == "row7"
    assert top["share"] == pytest.approx(exact, rel=1e-10)
    line = f"at most {exact:.0%} of the variance is due to one observation (row7)"
    assert line in words(complete.summary())


def test_the_largest_share_is_free_of_monte_carlo_noise(rng):
    y = rng.normal(size=300)
    y[7] = 15.0
    squares = (y - y.mean()) ** 2
    exact = squares[7] / squares.sum()
    frame = pd.DataFrame({"y": y})
    found = [vs.statistic("mean", frame, k=20, B=100, rng=seed) for seed in range(30)]
    shares = [res.most_influential["share"].item() for res in found]
    plain = [
        (res.influence() ** 2).max().sum() / (res.influence() ** 2).sum().sum()
        for res in found
    ]
    checks = [res.normality_check().frame["largest_share"].item() for res in found]
    assert checks == shares  # one number, two tables
    assert np.mean(plain) < 0.7 * exact  # diluted by the noise of 300 influences
    assert np.mean(shares) == pytest.approx(
        exact, abs=4 * np.std(shares) / np.sqrt(30) + 0.02
    )


def test_designs_of_dependent_learners_name_no_influential_observation(data):
    res = vs.fit("y ~ x1", data, B=40, rng=1, design="little-bags", replace=False, k=20)
    assert res.most_influential is None
    assert "Influence:" not in str(res.summary())


def test_clusters_and_shards_are_named_as_such(data):
    frame = data.assign(clinic=[f"c{i // 4}" for i in range(len(data))])
    res = vs.fit("y ~ x1 + x2", frame, B=60, rng=1, groups="clinic")
    unit = res.most_influential["unit"].item()
    assert f"due to one cluster ({unit})" in words(res.summary())
    shards = vs.fit("y ~ x1", data, B=80, rng=1, design="shards", k=4, n_shards=10)
    unit = shards.most_influential["unit"].item()
    assert f"due to one shard ({unit})" in words(shards.summary())


def test_observations_never_out_of_bag_are_counted(data):
    res = vs.fit("y ~ x1", data.head(10), k=9, replace=False, B=4, rng=1)
    assert "Out-of-bag scores rest on" in str(res.summary())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (123456.0, "1.235e+05"),
        (12.3456, "12.35"),
        (0.012345, "0.0123"),
        (1e-9, "1.000e-09"),
        (np.inf, "inf"),
        (-3.5, "-3.500"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert summary_notes.number_text(value) == text


def test_formats_of_statsmodels_are_not_changed(res):
    from statsmodels.iolib.tableformatting import fmt_base  # noqa: PLC0415

    before = dict(fmt_base)
    res.summary()
    assert fmt_base == before


def test_labels_of_query_points_are_shown(data):
    points = pd.DataFrame({"x1": [0.1, 0.9]}, index=["low", "high"])
    text = str(vs.fit("y ~ x1", data, B=30, rng=1, at=points).summary())
    assert "\nlow " in text
    assert "\nhigh " in text


def test_names_are_escaped(data):
    odd = data.assign(g=np.tile(["<b>&x", "50% {a}^_"], 40))
    table = vs.fit("y ~ x1 + g", odd, B=30, rng=1).summary()
    assert "<b>" not in table.as_html()
    assert "&lt;b&gt;&amp;x" in table.as_html()
    assert r"50\% \{a\}\textasciicircum{}\_" in table.as_latex()


def test_stopping_short_of_a_tight_tolerance_is_noted(data):
    with pytest.warns(vs.MonteCarloWarning):
        res = vs.fit("y ~ x1", data, rng=1, tol=0.02, max_B=1500)
    assert res.estimates.relative_mc_error.max() < 0.1
    assert "learners would bring it to 2%" in words(res.summary())


def test_agreement_of_all_learners_is_noted():
    data = vs.datasets.iris()
    res = vs.fit("species ~ .", data, B=30, rng=1, at=data.head(1))
    assert (res.bse == 0).any()
    assert "All learners agree" in words(res.summary())


def test_coefficients_of_smaller_samples_are_not_the_full_ones(data):
    small, whole = (
        words(vs.fit("y ~ x1", data, kernel="ols", k=k, B=50, rng=1).summary())
        for k in (0.5, 1.0)
    )
    assert "a single fit to all observations has another" in small
    assert "single fit to all" not in whole


@pytest.mark.parametrize("B", [2, 3, 4, 5, 10, 200])
def test_the_least_degrees_of_freedom_are_those_of_the_table(B):
    data = vs.datasets.mars(60, rng=1)
    res = vs.fit("y ~ x1", data, B=B, rng=1, n_jobs=1)
    text, least = words(res.summary()), res.diagnostics["df"].min()
    if "(3 at least)" in text:
        assert least == 3
    else:
        assert least != 3


def test_the_line_of_influence_labels_classes_as_the_table_does():
    data = vs.datasets.iris()
    res = vs.fit("species ~ sepal_length", data, B=60, rng=1, n_jobs=1)
    text = words(res.summary())
    place = int(res.most_influential["share"].to_numpy().argmax())
    kind = res.labels[place][-1]
    assert f"of the variance of 'typical [{kind}]' is due to one" in text
    assert text.count(f"typical [{kind}]") >= 2
