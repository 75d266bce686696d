"""Functions of estimates: against t_test, known gradients and the delta method."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.inference.gradients import gradient

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(80, rng=2)


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x2 + x4", data, kernel="ols", B=300, k=50, rng=1)


def test_linear_functions_are_t_tests(res):
    R = np.array([[0.0, 1.0, -1.0, 0.0], [0.5, 0.0, 2.0, 3.0]])
    made, test = res.transform(lambda p: R @ p + 7.0), res.t_test(R)
    assert np.allclose(made.params, test.params + 7.0, rtol=1e-12)
    assert np.allclose(made.bse, test.bse, rtol=1e-9)
    assert np.allclose(made.df, test.df, rtol=1e-7)
    assert np.allclose(made.conf_int() - 7.0, test.conf_int(), rtol=1e-8)
    both = made.conf_int(simultaneous=True) - 7.0
    assert np.allclose(both, test.conf_int(simultaneous=True), rtol=1e-8)
    assert np.allclose(made.cov(), test.cov_params(), rtol=1e-8)
    assert np.abs(made.bend).max() < 1e-8


def test_a_ratio_by_the_delta_method(res):
    made = res.transform(lambda p: p[1] / p["x4"])
    a, b = res.params["x1"], res.params["x4"]
    R = np.array([0, 1 / b, 0, -a / b**2])
    assert np.isclose(made.params.item(), a / b, rtol=1e-14)
    assert np.isclose(made.bse.item(), res.t_test([R]).bse.item(), rtol=1e-6)
    about = np.sqrt(R @ res.cov_params().to_numpy() @ R)
    assert np.isclose(made.bse.item(), about, rtol=0.05)
    z = made.params.item() / made.bse.item()
    assert np.isclose(made.zvalues.item(), z)
    assert made.frame["p_value"].item() == made.pvalues.item()


def test_outputs_have_names(res):
    assert res.transform(lambda p: p[0]).params.index.to_list() == ["f"]
    assert res.transform(lambda p: p[:2]).params.index.to_list() == ["f0", "f1"]
    named = res.transform(lambda p: {"a": p[0], "b": p["x1"] ** 2})
    assert named.params.index.to_list() == ["a", "b"]
    series = res.transform(lambda p: pd.Series({"s": np.exp(p[3] / 10)}))
    assert series.params.index.to_list() == ["s"]
    text = str(named)
    assert "Functions of estimates" in text
    assert "delta method" in text


def test_predictions_averages_and_curves_transform(data):
    forest = vs.fit("y ~ x1 + x4", data, B=100, k=30, rng=1)
    new = data.iloc[:3]
    made = forest.get_prediction(new).transform(lambda p: np.log(p[0] / p[1]))
    mean = forest.predict(new).to_numpy()
    assert np.isclose(made.params.item(), np.log(mean[0] / mean[1]), rtol=1e-12)
    joint = forest.get_prediction(new)
    slope = joint.t_test([[1 / mean[0], -1 / mean[1], 0]])
    assert np.isclose(made.bse.item(), slope.bse.item(), rtol=1e-6)
    for table in (
        forest.avg_effects(se="population"),
        forest.partial_dependence("x4", grid=[0.2, 0.8]),
    ):
        change = table.transform(lambda p: p[1] - p[0])
        test = table.t_test([[-1.0, 1.0]])
        assert np.isclose(change.bse.item(), test.bse.item(), rtol=1e-9)


def test_linear_functions_of_probabilities_keep_their_range(data):
    frame = data.assign(y=np.where(data["y"] > 15, "high", "low"))
    res = vs.fit("y ~ x1 + x4", frame, B=80, k=30, rng=1, at=frame.iloc[:2])
    made = res.transform(lambda p: p[0] - p[1] + 0.25)
    test = res.t_test([[1.0, -1.0]])
    assert np.allclose(made.conf_int() - 0.25, test.conf_int(), rtol=1e-7)
    assert made.estimates.support is not None
    assert res.transform(lambda p: p[0] * p[1]).estimates.support is None


def test_gradients_of_known_functions():
    at, errors = np.array([0.3, 1.7, -2.0]), np.array([0.2, 0.05, 0.0])

    def f(p):
        return np.array([np.exp(p[0]) * p[1], np.sin(p[1]), p[0] ** 4])

    made = gradient(f, at, errors)
    exact = [
        [np.exp(0.3) * 1.7, np.exp(0.3), 0],
        [0, np.cos(1.7), 0],
        [4 * 0.3**3, 0, 0],
    ]
    assert np.allclose(made.slopes, exact, rtol=1e-6, atol=1e-9)
    assert np.allclose(made.value, f(at))
    # One standard error away p**4 departs from its tangent by about f'' e**2 / 2.
    bend = 12 * 0.3**2 * 0.2**2 / 2 / (4 * 0.3**3 * 0.2)
    assert np.isclose(made.bend[2], bend, rtol=0.02)


def test_functions_are_drawn_with_their_intervals(res):
    made = res.transform(lambda p: {"a": p["x1"] / p["x4"], "b": p["x2"] ** 2})
    ax = made.plot(alpha=0.1)
    bounds = made.conf_int(0.1).to_numpy()
    (lines,) = ax.collections
    assert np.allclose([one[:, 0] for one in lines.get_segments()], bounds)
    assert np.allclose(ax.lines[0].get_xdata(), made.params)
    assert "90% interval" in ax.get_xlabel()
    plt.close(ax.figure)


def test_kinks_and_jumps_are_refused():
    at, errors = np.array([0.001, 5.0]), np.array([1.0, 1.0])
    with pytest.raises(ValueError, match="kink or a jump in estimate 0"):
        gradient(lambda p: np.abs(p[:1]), at, errors)
    with pytest.raises(ValueError, match="kink or a jump"):
        gradient(lambda p: np.floor(p[1:]), at, errors)
    assert gradient(lambda p: np.abs(p[1:]), at, errors).slopes.tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match="must be finite"):
        gradient(lambda p: np.where(p[:1] > 0.02, np.inf, p[:1]), at, errors)


def test_bent_functions_are_noted(res):
    made = res.transform(lambda p: (p["x2"] - res.params["x2"] + 0.1) ** 2)
    assert made.bend.item() > 0.5
    assert "may be inaccurate" in str(made)


def test_bad_functions_are_refused(res):
    with pytest.raises(TypeError, match="must be a function"):
        res.transform(3)
    with pytest.raises(TypeError, match="must return a number"):
        res.transform(lambda p: "text")
    with pytest.raises(KeyError, match="the names are"):
        res.transform(lambda p: p["x9"])
    with pytest.raises(ValueError, match="at least one number"):
        res.transform(lambda p: [])
    calls = iter(range(100))
    with pytest.raises(ValueError, match="the same names each time"):
        res.transform(lambda p: {f"n{next(calls)}": p[0]})
