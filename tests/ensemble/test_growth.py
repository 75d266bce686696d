import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.inference.stopping import Tolerance, robust_share, round_up
from vstatkit.results.model_description import Growth


@pytest.fixture
def data():
    return vs.datasets.mars(80, rng=4)


def test_auto_reaches_its_tolerance(data):
    res = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.15)
    assert res.estimates.relative_mc_error.max() <= 0.15
    assert "below 15%" in " ".join(str(res.summary()).split())


def test_auto_is_a_prefix_of_more(data):
    auto = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.15)
    fixed = vs.fit("y ~ x1 + x4", data, rng=1, B=auto.B + 50)
    np.testing.assert_array_equal(auto.values, fixed.values[: auto.B])


def test_a_tighter_tolerance_takes_more_learners(data):
    loose, tight = (vs.fit("y ~ x1 + x4", data, rng=1, tol=tol).B for tol in (0.2, 0.1))
    assert tight > loose


def test_giving_up_warns_and_the_summary_says_so(data):
    with pytest.warns(vs.MonteCarloWarning, match="stopped at 300 learners") as seen:
        res = vs.fit("y ~ x1 + x4", data, rng=1, max_B=300, tol=0.01)
    assert seen[0].filename == __file__
    assert res.B == 300
    assert "B stopped at max_B = 300" in " ".join(str(res.summary()).split())


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
@pytest.mark.parametrize(("design", "B"), [("iid", 90), ("two-level", 80)])
def test_growth_has_stopped_where_no_more_learners_were_allowed(data, design, B):
    res = vs.fit("y ~ x1 + x4", data, rng=1, design=design, max_B=90, tol=0.01)
    assert res.B == B
    assert "B stopped at max_B = 90." in notes_of(res)


def test_growth_is_told_only_of_what_it_was_for(data):
    data = data.assign(x4=data["x4"].round(1))
    res = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.15)
    assert "B was grown until" in notes_of(res)
    for one in (res.t_test("x1 = 0"), res.t_test("typical - 9 * x4 = 0")):
        assert "B was grown until" not in notes_of(one)
    other = res.with_variance("corrected_v_simple")
    hard = replace(other, info=replace(other.info, growth=Growth(0.01, 10_000)))
    for one in (hard, hard.t_test("x1 = 0")):
        assert "learners would bring it to 1%." in notes_of(one)
        assert "B stopped" not in notes_of(one)
    assert "The Estimates' std err has" in notes_of(hard)
    assert "The std err has" in notes_of(hard.t_test("x1 = 0"))


def notes_of(results):
    return " ".join(str(results.summary()).split())


def test_learners_needed_forecasts_the_error(data):
    few = vs.fit("y ~ x1 + x4", data, rng=1, B=500)
    needed = int(few.estimates.learners_needed(0.08).max())
    many = vs.fit("y ~ x1 + x4", data, rng=1, B=needed)
    # The forecast takes the variance for known; it is known to about 15 %.
    assert many.estimates.relative_mc_error.max() == pytest.approx(0.08, rel=0.3)


@pytest.mark.parametrize(
    ("design", "replace", "multiple"),
    [
        ("two-level", True, 20),
        ("little-bags", False, 2),
        ("matched", False, 2),
        ("balanced", True, 1),
    ],
)
@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_other_designs_grow_in_their_own_units(data, design, replace, multiple):
    res = vs.fit(
        "y ~ x1", data, design=design, replace=replace, rng=1, max_B=310, tol=0.05
    )
    assert res.B <= 310
    assert res.B % multiple == 0


def test_auto_serves_statistics(data):
    res = vs.statistic("gini", data["y"], k=10, rng=1)
    assert res.estimates.relative_mc_error.max() <= 0.1


def test_stopping_early_does_not_flatter_the_standard_error():
    """Root mean square Monte Carlo error over seeds stays below the tolerance."""
    data = vs.datasets.mars(200, rng=1)
    exact = vs.fit("y ~ x1 + x4", data, rng=99, B=30_000).bse.item()
    found = [vs.fit("y ~ x1 + x4", data, rng=s, tol=0.15).bse.item() for s in range(40)]
    error = np.sqrt(np.mean((np.array(found) / exact - 1) ** 2))
    # The root of a mean of 40 squares is known to about 11 %.
    assert error < 0.15


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variance", ["corrected", "jackknife"])
def test_iris_is_known_well_enough_without_a_warning(seed, variance):
    """Probabilities of 0.002 with standard errors of 0.001."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iris = vs.datasets.iris()
        res = vs.fit("species ~ .", iris, rng=seed, variance=variance)
    error = res.estimates.relative_mc_error * res.bse
    assert (res.estimates.relative_mc_error > 0.1).any()
    assert error.max() <= 0.001
    assert res.diagnostics["learners_needed"].max() <= res.B
    assert "below 10%, or 0.0010 in absolute terms if that is more;" in " ".join(
        str(res.summary()).split()
    )


def numbers_said(res, warning):
    """The learners needed, as the warning and the summary have them."""
    texts = [str(warning.message), " ".join(str(res.summary()).split())]
    return [re.search(r"[Aa]bout ([\d,]+) learners", text).group(1) for text in texts]


def test_all_messages_ask_for_the_same_number_of_learners():
    iris = vs.datasets.iris()
    with pytest.warns(vs.MonteCarloWarning) as seen:
        res = vs.fit("species ~ .", iris, rng=1, atol=0)
    first, second = numbers_said(res, seen[0])
    needed = res.diagnostics["learners_needed"].max()
    assert second == round_up(needed)
    # While it grew, only the typical share of the variance was known.
    assert int(first.replace(",", "")) == pytest.approx(needed, rel=0.1)
    assert needed > res.B == 10_000
    expected = res.estimates.learners_needed(0.1).max()
    assert needed == np.ceil(expected)


def test_the_number_of_learners_needed_is_enough(data):
    with pytest.warns(vs.MonteCarloWarning) as seen:
        res = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.05, max_B=1000)
    first, second = numbers_said(res, seen[0])
    assert first == second
    enough = vs.fit("y ~ x1 + x4", data, rng=1, B=int(first.replace(",", "")))
    assert enough.estimates.relative_mc_error.max() == pytest.approx(0.05, rel=0.1)


def test_learners_are_enough_exactly_where_the_tolerance_is_met(data):
    res = vs.fit("y ~ x1 + x4", data, rng=1, B=600, at=data.head(30))
    found = res.estimates
    likely = np.sqrt(found.likely_variance) * found.unit
    error = found.relative_mc_error * likely
    unmet = found.relative_mc_error > 0.1
    for atol in (0.0, np.median(error[unmet])):
        tolerance = Tolerance(0.1, atol)
        met = (error <= 0.1 * likely) | (error <= atol)
        assert 0 < met.sum() < 30
        np.testing.assert_array_equal(tolerance.learners_needed(found) <= 600, met)
        assert (tolerance.excess(found) <= 1) == met.all()


def test_the_absolute_tolerance_is_in_the_unit_of_the_estimates(data):
    """Halving it takes more learners; a large one is content at once."""
    sizes = [
        vs.fit("y ~ x1 + x4", data, rng=1, tol=0.05, atol=atol).B
        for atol in (1e6, 0.15, 0.1)
    ]
    assert sizes[0] == 256 < sizes[1] < sizes[2]


def zero_inflated(n=200, seed=1):
    """Responses of which 85 % are zero, the others having a long tail."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    tail = rng.gamma(0.5, 20, size=n) * np.exp(0.5 * frame["a"])
    return frame.assign(y=(rng.random(n) < 0.15) * tail)


@pytest.mark.parametrize("seed", [1, 2])
def test_long_tails_do_not_stop_growth_early(seed):
    """Every standard error that the summary prints is known to the tolerance."""
    res = vs.fit("y ~ a + b + c", zero_inflated(seed=seed), rng=1, max_B=40_000)
    assert res.estimates.relative_mc_error.max() <= 0.1
    assert res.effects["relative_mc_error"].max() <= 0.13  # rho was not yet measured
    half = np.ptp(zero_inflated(seed=seed)["y"]) / 2
    assert res.tolerance.atol < 0.5 * 0.1 * 0.02 * half  # not tied to the range


def test_the_robust_scale_of_a_response():
    rng = np.random.default_rng(1)
    normal = rng.normal(size=20_000)
    half = np.ptp(normal) / 2
    assert robust_share(normal) * half == pytest.approx(3, rel=0.03)
    assert robust_share(rng.uniform(size=500)) == 1
    y = zero_inflated()["y"].to_numpy()
    deviation = np.sqrt(np.pi / 2) * np.mean(np.abs(y - np.median(y)))
    assert robust_share(y) == pytest.approx(3 * deviation / (np.ptp(y) / 2))
    for unit in (2.0**-900, 2.0**900):
        assert robust_share(unit * y) == robust_share(y)
        assert robust_share(y + 1e-9 * 2.0**40) == pytest.approx(robust_share(y))
    assert robust_share((y > 0).astype(float)) == 1  # two values have no tail
    assert robust_share(np.ones(9)) == 1


def test_effects_are_watched_too(data):
    """Estimates alone would stop earlier."""
    shown = vs.fit("y ~ .", data, rng=1, atol=0)
    assert shown.effects["relative_mc_error"].max() <= 0.11
    cautious = shown.tolerance.tighten()
    assert cautious.excess(shown.estimates) < 1


@pytest.mark.parametrize("unit", [2.0**-990, 2.0**-3, 2.0**990])
def test_the_absolute_tolerance_follows_the_unit_of_the_response(unit):
    data = vs.datasets.mars(60, rng=4)
    plain, moved = (
        vs.fit("y ~ .", data.assign(y=c * (data["y"] > 8)), rng=1, at=data.iloc[[1, 2]])
        for c in (1.0, unit)
    )
    assert (
        plain.tolerance.allowed_error(plain.estimates) > 0.1
    ).all()  # it is what counts
    assert (plain.values[:256, 1] == 1).all()  # the first look sees no spread
    assert plain.B == moved.B
    assert plain.tolerance.atol == 0.001 == moved.tolerance.atol / unit
    needed = [res.diagnostics["learners_needed"].to_list() for res in (plain, moved)]
    assert needed[0] == needed[1]


def test_the_default_of_the_absolute_tolerance(data):
    res = vs.fit("y ~ x1 + x4", data, rng=1, B=100)
    assert res.tolerance.tol == 0.1
    assert res.tolerance.atol == pytest.approx(np.ptp(data["y"]) / 1000)
    contrast = res.t_test([[2.0]])
    assert contrast.tolerance.atol == pytest.approx(np.ptp(data["y"]) / 500)
    ols = vs.fit("y ~ x1", data, kernel="ols", rng=1, B=100)
    assert ols.tolerance.atol == 0
    tight = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.2)
    assert tight.tolerance.atol == pytest.approx(np.ptp(data["y"]) / 500)
    asked = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.2, atol=3.0)
    assert asked.tolerance.atol == 3.0


def test_the_absolute_tolerance_is_saved(data, tmp_path):
    res = vs.fit("y ~ x1 + x4", data, rng=1, tol=0.2, atol=3.0)
    res.save(tmp_path / "r.npz")
    assert vs.load(tmp_path / "r.npz").tolerance == res.tolerance


@pytest.mark.parametrize("atol", [-1.0, np.inf, np.nan])
def test_absolute_tolerances_that_cannot_be_are_refused(data, atol):
    with pytest.raises(ValueError, match="`atol` must be a number of at least 0"):
        vs.fit("y ~ x1", data, rng=1, atol=atol)


@pytest.mark.parametrize("variance", ["corrected_v", "jackknife", "ij"])
def test_watching_sums_gives_the_estimates_of_the_results(data, variance):
    """What "auto" stops at is what the results say."""
    with pytest.warns(vs.MonteCarloWarning, match="of the standard error of") as seen:
        res = vs.fit("y ~ x1", data, rng=1, tol=0.01, max_B=900, variance=variance)
    said = re.search(r"standard error of ([\d.]+);", str(seen[0].message)).group(1)
    reached = res.estimates.relative_mc_error.max()
    assert float(said) == pytest.approx(reached, rel=0.05)
    assert len(set(numbers_said(res, seen[0]))) == 1


def test_effects_that_need_more_learners_say_so(data):
    res = vs.fit("y ~ .", data, rng=1, B=600, atol=0)
    worst = res.effects["relative_mc_error"].max()
    assert worst > max(0.1, res.estimates.relative_mc_error.max())
    text = " ".join(str(res.summary()).split())
    assert f"The Effects' std err has a Monte Carlo error of up to {worst:.1%}" in text
    enough = vs.fit("y ~ .", data, rng=1, B=20_000)
    assert "The Effects' std err has" not in " ".join(str(enough.summary()).split())
