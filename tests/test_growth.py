import numpy as np
import pytest

import vstatkit as vs


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
