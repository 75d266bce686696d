"""What CONTRIBUTING.md says is so: the walk of `fit`, and things added from outside."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import vstatkit as vs
from vstatkit import cli
from vstatkit.kernels import registry as kernels
from vstatkit.plots import registry as drawing
from vstatkit.sampling import registry as designs
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance import registry as estimators
from vstatkit.variance.registry import estimate_covariance

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")

REGISTRIES = [
    kernels.KERNELS,
    kernels.CODECS,
    designs.DESIGNS,
    estimators.ESTIMATORS,
    estimators.GROUPED_DESIGNS,
    drawing.PLOTS,
]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """Write the page's code to a file."""
    path = tmp_path_factory.mktemp("outside") / "outside_plugin.py"
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ours = [block for block in blocks if not block.startswith("# recipe:")]
    path.write_text("\n\n".join(ours), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def outside(plugin):
    """Import the plugin as the command does; forget it afterwards."""
    before = [dict(registry) for registry in REGISTRIES]
    cli.import_plugins(["--plugin", str(plugin)])
    yield
    for registry, old in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(old)


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(60, rng=1)


FORMULA = "y ~ x1 + x2 + x4"


def test_an_outside_kernel_fits_as_its_equal_does(data):
    ours = vs.fit(FORMULA, data, kernel="ridge", penalty=2.0, B=60, rng=1)
    theirs = vs.fit(FORMULA, data, kernel=Ridge(alpha=2.0), B=60, rng=1)
    assert_allclose(ours.values, theirs.values, rtol=1e-9)
    assert_allclose(ours.bse, theirs.bse, rtol=1e-9)
    assert ours.effects is not None
    assert "Bagged Ridge Results" in str(ours.summary())


def test_an_outside_kernel_is_saved_with_its_learners(data, tmp_path):
    res = vs.fit(FORMULA, data, kernel="ridge", B=60, rng=1)
    res.save(tmp_path / "ridge.vst")
    loaded = vs.load(tmp_path / "ridge.vst")
    assert str(loaded.summary()) == str(res.summary())
    assert_array_equal(loaded.predict(data), res.predict(data))


def test_options_of_an_outside_kernel_are_known(data):
    with pytest.raises(TypeError, match="Its options are: penalty"):
        vs.fit(FORMULA, data, kernel="ridge", penalti=1.0, B=60)
    with pytest.raises(ValueError, match="'logit', 'ridge', a scikit-learn"):
        vs.fit(FORMULA, data, kernel="rigde", B=60)
    with pytest.raises(ValueError, match="does not take missing values"):
        vs.fit("y ~ x", {"y": [1.0, 2, 3], "x": [1, np.nan, 2]}, kernel="ridge",
               missing="pass")  # fmt: skip


def test_an_outside_design_draws_the_learners(data, tmp_path):
    later = vs.fit(FORMULA, data, kernel="ols", design="later", first=40, B=30, rng=1)
    iid = vs.fit(FORMULA, data, kernel="ols", B=70, rng=1)
    assert_array_equal(later.values, iid.values[40:])
    assert re.search(r"Design: +later", str(later.summary()))
    later.save(tmp_path / "later.vst")
    loaded = vs.load(tmp_path / "later.vst")
    assert loaded.design == later.design
    assert_array_equal(loaded.bse, later.bse)
    with pytest.raises(TypeError, match="`first` must be a whole number"):
        vs.fit(FORMULA, data, design="later", first=1.5, B=30)


def test_an_outside_design_serves_statistics(data):
    later = vs.statistic("gini", data["y"], k=2, B=30, design="later", first=7, rng=1)
    iid = vs.statistic("gini", data["y"], k=2, B=37, rng=1)
    assert_array_equal(later.values, iid.values[7:])


def test_an_outside_estimator_estimates(data, tmp_path):
    res = vs.fit(FORMULA, data, kernel="ols", B=50, rng=1, variance="ij")
    ours = res.with_variance("ij_unbiased")
    factor = (50 / 49) ** 2
    assert_allclose(ours.components.sampling, factor * res.components.sampling)
    theirs, monte_carlo = estimate_covariance("ij", res.design, res.values)
    found = estimate_covariance("ij_unbiased", res.design, res.values)
    assert_allclose(found[0], factor * theirs)
    assert_allclose(found[1], monte_carlo)
    assert "IJ (B - 1)" in str(ours.summary())
    assert "ij_unbiased" in res.compare_variance().estimators
    ours.save(tmp_path / "ours.vst")
    assert vs.load(tmp_path / "ours.vst").variance == "ij_unbiased"


def test_an_outside_estimator_may_decide_when_there_are_enough(data):
    res = vs.fit(FORMULA, data, kernel="ols", rng=1, variance="ij_unbiased")
    assert res.variance == "ij_unbiased"
    assert res.estimates.relative_mc_error.max() < 0.1


def test_an_outside_plot_is_drawn(data):
    res = vs.fit(FORMULA, data, kernel="ols", B=50, rng=1)
    axes = res.plot(kind="ranked influence")
    drawn = axes.lines[0].get_ydata()
    assert_array_equal(drawn, np.sort(res.influence().iloc[:, 0])[::-1])
    assert res.plot(axes, kind="ranked influence") is axes
    with pytest.raises(ValueError, match="'convergence', 'ranked influence'; got"):
        res.plot(kind="ranked")


def test_the_command_knows_what_came_from_outside(plugin, data, tmp_path):
    """In a process of its own, where nothing but the plugin was imported."""
    data.to_csv(tmp_path / "data.csv", index=False)
    chosen = ["--kernel", "ridge", "--design", "later", "--variance", "ij_unbiased"]
    ran = subprocess.run(
        [sys.executable, "-c", "import sys; from vstatkit.cli import main; main()",
         "--plugin", str(plugin), "fit", FORMULA, str(tmp_path / "data.csv"), *chosen,
         "--B", "40", "--seed", "1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = vs.fit(
        FORMULA,
        pd.read_csv(tmp_path / "data.csv"),
        kernel="ridge",
        design="later",
        variance="ij_unbiased",
        B=40,
        rng=1,
    )
    assert ran.stdout == f"{expected.summary()}\n"


def test_a_plugin_that_is_missing_says_so(capsys):
    assert cli.main(["--plugin", "no_such_module_here", "demo"]) == 2
    assert "got no_such_module_here." in capsys.readouterr().err
    assert cli.main(["--plugin", "no_such_file.py", "demo"]) == 2
    assert "there is no file no_such_file.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("register", "given"),
    [
        (vs.register_kernel, kernels.KERNELS["forest"]),
        (vs.register_design, designs.DESIGNS["iid"]),
        (vs.register_variance, estimators.ESTIMATORS["bm"]),
    ],
)
def test_names_are_given_once(register, given):
    with pytest.raises(ValueError, match="already; choose another name"):
        register(given)


@pytest.mark.parametrize(
    ("register", "given", "message"),
    [
        (vs.register_kernel, "forest", "must be a NamedKernel .* got str"),
        (vs.register_design, "iid", "must be a subclass of SubsampleDesign .* 'iid'"),
        (vs.register_design, 3, "must be a subclass of SubsampleDesign"),
        (vs.register_variance, "bm", "must be a VarianceEstimator .* got str"),
    ],
)
def test_other_things_are_not_registered(register, given, message):
    with pytest.raises(TypeError, match=message):
        register(given)


def test_plots_are_registered_once_and_callable():
    with pytest.raises(ValueError, match="there is a plot 'effects' already"):
        vs.register_plot("effects", print)
    with pytest.raises(TypeError, match="must be a function; got int"):
        vs.register_plot("other", 3)


def test_reserved_names_of_designs_are_refused():
    class Complete(SubsampleDesign):
        name = "complete"

    with pytest.raises(ValueError, match="the name 'complete' is taken already"):
        vs.register_design(Complete)


WALK = re.findall(
    r"^\d+\. `([\w.]+)`$", PAGE.split("<!-- walk -->")[1].split("<!-- end")[0], re.M
)


def test_fit_walks_as_the_page_says(data):
    """Every function of the list is called, each first called after the one before."""
    first_calls = []

    def note(frame, event, argument):
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            first_calls.append(f"{module}.{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        vs.fit("y ~ x1", data, B=10, rng=1, n_jobs=1)
    finally:
        sys.setprofile(None)
    places = [first_calls.index(name) for name in WALK]
    assert len(WALK) > 10
    assert places == sorted(places)
