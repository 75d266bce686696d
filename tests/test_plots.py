import matplotlib.pyplot as plt
import numpy as np
import pytest

import vstatkit as vs
from vstatkit import plots


@pytest.fixture(scope="module")
def res():
    data = vs.datasets.mars(80, rng=4).assign(g=np.tile(list("ab"), 40))
    return vs.fit("y ~ x1 + x2 + g", data, B=200, rng=1, at=data.head(3))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_estimates_show_every_interval(res):
    ax = plots.plot_estimates(res)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]
    (lines,) = ax.collections
    spans = np.array([segment[:, 0] for segment in lines.get_segments()])
    np.testing.assert_allclose(spans, res.conf_int())


def test_effects_name_their_moves(res):
    ax = res.plot()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[-1] == "g: a → b"
    assert "Change in y" in ax.get_xlabel()


def test_profile_bands_enclose_the_curve(res):
    ax = plots.plot_profile(res, "x1", n_points=12)
    (curve,) = ax.lines
    wide, narrow = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    assert wide.min() < narrow.min() < curve.get_ydata().min()
    assert ax.get_xlabel() == "x1, others at typical values"


@pytest.mark.parametrize("variable", ["g", "x9"])
def test_profiles_need_a_numeric_predictor(res, variable):
    with pytest.raises(ValueError, match="one of x1, x2"):
        plots.plot_profile(res, variable)


def test_influence_and_convergence_draw_on_given_axes(res):
    _, (left, right) = plt.subplots(1, 2)
    assert plots.plot_influence(res, ax=left) is left
    assert plots.plot_convergence(res, ax=right) is right
    np.testing.assert_allclose(right.lines[0].get_ydata()[-1], res.bse.iloc[0])


def test_pictures_that_make_no_sense_are_refused():
    res = vs.statistic("mean", np.arange(9.0), k=2, B="complete")
    with pytest.raises(ValueError, match="no effects"):
        plots.plot_effects(res)
    with pytest.raises(ValueError, match="no Monte Carlo error"):
        plots.plot_convergence(res)
    with pytest.raises(ValueError, match="needs results of `fit`"):
        plots.plot_profile(res, "x1")
    assert res.plot().get_xlabel().startswith("mean")
