"""A kind of R forest from outside the package, as CONTRIBUTING.md shows it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import r_bridge
import vstatkit as vs
from r_bridge import certificate
from r_bridge import session as r_session
from r_bridge.forests import FORESTS
from r_bridge.packages import FOREST_PACKAGES
from tests.conftest import need
from tests.oracles.recipes import ROOT, recipe

X = np.linspace(0, 1, 30)
Y = np.sin(5 * X) + np.cos(40 * X)
DATA = {"x": X, "y": Y}
NEW = {"x": np.array([0.2, 0.5, 0.9])}


@pytest.fixture
def restored():
    """Put the registry back after a test."""
    kinds, packages = dict(FORESTS), dict(FOREST_PACKAGES)
    yield
    for now, before in ((FORESTS, kinds), (FOREST_PACKAGES, packages)):
        now.clear()
        now.update(before)


@pytest.fixture
def bagged(restored):
    """Register bags of linear models, and grow one of 50."""
    need("R", "rpy2")
    names = recipe("R package")
    model = r_session.keep(names["GROW"], X, Y, 50, 7)
    return model, names


@pytest.mark.r
def test_a_forest_from_outside_has_rs_mean_and_variance(bagged):
    model, names = bagged
    res = r_bridge.from_forest(model, DATA, NEW, variance="ij")
    code = "function(m, x) rowMeans(sapply(m$fits, predict, data.frame(x = x)))"
    assert_allclose(res.params, r_session.call(code, model, NEW["x"]), rtol=1e-12)
    counts = r_session.call("function(m) m$counts", model)
    h = res.values - res.values.mean(axis=0)
    by_hand = (((counts - counts.mean(axis=1, keepdims=True)) @ h / 50) ** 2).sum(0)
    assert_allclose(res.components.sampling, by_hand, rtol=1e-10)
    theirs = r_session.call(names["JACKKNIFE"], model, NEW["x"])
    assert_allclose(res.components.sampling, theirs, rtol=1e-10)


@pytest.mark.r
def test_it_has_everything_that_results_have(bagged, tmp_path):
    model, _ = bagged
    res = r_bridge.from_forest(model, DATA, NEW)
    assert res.replace
    assert "Dep. Variable:" in str(res.summary())
    code = "function(m) sqrt(mean((m$y - m$oob)^2))"
    rmse = r_session.call(code, model)[0]
    assert_allclose(res.scores.table["OOB RMSE"], rmse, rtol=1e-12)
    one = res.predict({"x": NEW["x"][:1]})
    assert_allclose(one, res.params.iloc[0], rtol=1e-12)
    path = tmp_path / "bag.rds"
    r_session.call("function(m, path) saveRDS(m, path)", model, str(path))
    assert_allclose(r_bridge.from_forest(path, DATA, NEW).bse, res.bse, rtol=1e-12)


@pytest.mark.r
def test_other_training_data_are_refused(bagged):
    model, _ = bagged
    with pytest.raises(ValueError, match="differ from the model's own"):
        r_bridge.from_forest(model, {"x": X[::-1], "y": Y}, NEW)
    with pytest.raises(ValueError, match="training data, 30 rows; got 29"):
        r_bridge.from_forest(model, {"x": X[1:], "y": Y[1:]}, NEW)


@pytest.mark.r
def test_what_r_says_of_draws_and_of_what_it_kept_is_heard(bagged):
    model, names = bagged
    FORESTS.pop("bagged_lm")
    about = 'function(m) list(counts = m$counts, columns = "x", unlike = "by luck")'
    r_bridge.register_forest(replace(names["BAGGED"], about=about))
    with pytest.warns(vs.VstatkitWarning, match="draws rows by luck; the var") as seen:
        r_bridge.from_forest(model, DATA, NEW)
    assert seen[0].filename == __file__
    FORESTS.pop("bagged_lm")
    for code, message in {
        'function(m) list(counts = NULL, columns = "x")': "does not store which rows",
        "function(m) list(counts = m$counts, grown = FALSE)": "not store its trees",
    }.items():
        kind = replace(names["BAGGED"], about=code)
        with pytest.raises(ValueError, match=message):
            kind.adopt(model, DATA, NEW)


@pytest.mark.r
def test_its_comparisons_are_in_the_certificate(bagged, monkeypatch):
    _, names = bagged
    need("ranger")
    some = {"one": r_bridge.compare_recorded()[:1]}
    for kind in ("ranger", "regression_forest"):
        few = replace(FORESTS[kind], compare=lambda seeds, found: some)
        monkeypatch.setitem(FORESTS, kind, few)
    monkeypatch.setattr(certificate, "reported_sections", lambda seeds: some)
    made = r_bridge.check(seeds=3)
    assert made.ok
    assert len(made.comparisons) == 1 + 1 + 1 + 3
    assert "3 stats forests in 1 settings" in "\n".join(made.conclusion())
    assert "## stats: lines (3 forests)" in made.to_markdown()
    monkeypatch.setitem(names, "JACKKNIFE", names["JACKKNIFE"].replace("- 1)", ")"))
    wrong = r_bridge.check(seeds=1)
    assert not wrong.ok
    assert any("MISSED: lines: IJ differs" in line for line in wrong.conclusion())


@pytest.mark.r
def test_its_package_is_among_those_available(bagged):
    found = r_bridge.available()
    names = ["R", "rpy2", "ranger", "grf", "randomForest", "stats", "MASS"]
    assert list(found) == names
    assert found["stats"] == found["R"]


@pytest.mark.r
def test_a_package_that_is_not_installed_says_how(bagged):
    model, names = bagged
    kind = replace(
        names["BAGGED"], package="no.such", r_class="other", install="buy it"
    )
    r_bridge.register_forest(kind)
    with pytest.raises(r_bridge.RUnavailableError, match="Install it by: buy it"):
        kind.adopt(model, DATA, NEW)


@pytest.mark.r
def test_models_of_no_registered_kind_are_refused(bagged):
    line = r_session.keep("function() lm(dist ~ speed, cars)")
    with pytest.raises(
        TypeError, match=r"ranger::ranger.*bag\(\); its class in R is lm"
    ):
        r_bridge.from_forest(line, DATA, NEW)


@pytest.mark.r
def test_known_packages_are_found_by_their_class(session):
    forest = session.keep(
        """function(x, y) ranger::ranger(y ~ x, data.frame(x = x, y = y),
             num.trees = 30, keep.inbag = TRUE, num.threads = 1, seed = 1)""",
        X,
        Y,
    )
    named = r_bridge.from_ranger(forest, DATA, NEW)
    assert_allclose(r_bridge.from_forest(forest, DATA, NEW).bse, named.bse, rtol=0)


def test_a_class_is_registered_once(restored):
    with pytest.raises(ValueError, match="'ranger' are registered already, by ranger"):
        r_bridge.register_forest(FORESTS["ranger"])


def test_the_page_on_r_names_every_package():
    page = (ROOT / "docs" / "r_bridge.md").read_text("utf-8")
    assert all(package in page for package in FOREST_PACKAGES)
