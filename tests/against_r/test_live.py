"""Our numbers against those of a running ranger; skipped by name without R."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import r_bridge
import vstatkit as vs
from r_bridge.identities import rangers_ij_u, rows_ranger_keeps
from tests.oracles.ensembles import SAME_ALGEBRA, make_ensemble

pytestmark = pytest.mark.r


def names(comparison):
    return [quantity.name for quantity in comparison.quantities]


def quantity(comparison, name):
    return next(one for one in comparison.quantities if one.name == name)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("k", [8, 20, 32])
def test_uncalibrated_jackknife_is_rangers(session, k, replace):
    case = make_ensemble(n=40, k=k, B=150, m=25, replace=replace)
    answer = session.call(
        "ranger:::rInfJack",
        np.asfortranarray(case.values.T),
        np.asfortranarray(case.counts.T, dtype=float),
        calibrate=False,
    )
    ours = vs.variance_components(
        case.counts, case.values, method="ij_u", replace=replace
    )
    assert_allclose(ours.sampling, answer["var.hat"], **SAME_ALGEBRA)


@pytest.mark.parametrize(
    ("replace", "corrected"),
    [(True, {"corrected-V", "corrected-V (simple)"}), (False, {"corrected-U"})],
)
def test_every_quantity_agrees_and_is_compared(session, replace, corrected):
    data = vs.datasets.mars(40, rng=2)
    found = r_bridge.compare_ranger("y ~ .", data, k=20, B=100, replace=replace)
    assert found.ok
    assert found.difference < 1e-10
    assert set(names(found)) == corrected | {
        "in-bag counts",
        "ensemble mean",
        "IJ-U, rInfJack",
        "IJ-U, predict(se)^2",
        "J-U, predict(se)^2",
    }
    assert quantity(found, "in-bag counts").points == 40 * 100
    # Some of the 20 variances are negative with so few trees, others not.
    assert 0 < quantity(found, "IJ-U, predict(se)^2").n_missing < 20


def test_rangers_row_filter_is_reproduced(session):
    data = vs.datasets.mars(40, rng=3)
    options = {"k": 32, "B": 6, "replace": False, "design": "iid", "rng": 2}
    found = r_bridge.compare_ranger("y ~ x1 + x2", data, **options)
    assert found.ok
    assert "leaves out rows" in quantity(found, "IJ-U, predict(se)^2").reason


def test_the_row_filter_matters(session):
    case = make_ensemble(n=40, k=32, B=6, m=3, replace=False)
    rows = rows_ranger_keeps(case.counts)
    everything = np.ones(40, dtype=bool)
    ours, filtered = (
        rangers_ij_u(case.counts, case.values, replace=False, rows=kept)
        for kept in (everything, rows)
    )
    assert rows.sum() < 40
    answer = session.call(
        "ranger:::rInfJack",
        np.asfortranarray(case.values.T),
        np.asfortranarray(case.counts[:, rows].T, dtype=float),
        calibrate=False,
    )
    assert_allclose(filtered, answer["var.hat"], **SAME_ALGEBRA)
    assert (np.abs(filtered / ours - 1) > 0.1).all()


def test_calibrated_values_are_information_with_a_reason(session):
    data = vs.datasets.mars(40, rng=3)
    found = r_bridge.compare_ranger("y ~ .", data, data.head(25), k=20)
    calibrated = quantity(found, "IJ-U, calibrated")
    assert found.ok
    assert calibrated.verdict == "information"
    assert calibrated.difference > 0.01
    assert "random half of the trees" in str(found).replace("\n    ", " ")


def test_probabilities_of_three_classes_with_awkward_names(session):
    data = vs.datasets.mars(45, rng=1).rename(columns={"x1": "größe x"})
    kind = pd.Categorical(np.where(data.x3 > 0.5, "p q", "ß"), ["ß", "p q", "unused"])
    classes = pd.qcut(data.y, 3, labels=["a", "b b", "ç"])
    classes = classes.cat.add_categories("never")
    data = data.assign(kind=kind, y=classes)
    found = r_bridge.compare_ranger("y ~ `größe x` + kind + x2", data, k=0.5)
    assert found.ok
    assert quantity(found, "ensemble mean").points == 20 * 3


def test_one_query_point_given_as_a_dict(session):
    data = vs.datasets.mars(30, rng=1)
    found = r_bridge.compare_ranger("y ~ x1 + x2", data, {"x1": 0.2, "x2": 0.4}, k=10)
    assert found.ok
    assert quantity(found, "ensemble mean").points == 1


def test_options_reach_ranger(session):
    data = vs.datasets.mars(30, rng=1)
    stump = r_bridge.compare_ranger("y ~ x1", data, k=10, max_depth=1)
    deep = r_bridge.compare_ranger("y ~ x1", data, k=10)
    spread = [np.ptp(quantity(one, "ensemble mean").theirs) for one in (stump, deep)]
    assert spread[0] < spread[1]


def test_rows_with_missing_values_are_left_out(session):
    data = vs.datasets.mars(30, rng=1)
    data.loc[3, "x1"] = np.nan
    found = r_bridge.compare_ranger("y ~ x1", data, k=10)
    assert found.ok
    assert "n = 29, 1 with missing values dropped, k = 10" in found.setting


def test_the_largest_seed_of_r_works(session):
    data = vs.datasets.mars(30, rng=1)
    assert r_bridge.compare_ranger("y ~ x1", data, k=10, rng=2**31 - 2).ok


def test_a_comparison_prints_a_table(session):
    data = vs.datasets.mars(30, rng=1)
    found = r_bridge.compare_ranger("y ~ x1", data, k=10, B=60)
    text = str(found)
    assert text.startswith("vstatkit and ranger: y ~ x1\n")
    assert "with replacement, n = 30, k = 10, B = 60" in text
    assert max(map(len, text.splitlines())) <= 84
    assert "largest rel.  tolerance      verdict" in text
    # So few trees leave ranger's jackknife after bootstrap at zero.
    verdicts = found.to_frame().set_index("quantity")["verdict"]
    assert verdicts.pop("J-U, predict(se)^2") == "not compared"
    assert set(verdicts) == {"equal"}
    found.assert_close()


def test_the_users_generator_in_r_is_left_alone(session):
    session.call("set.seed", 5)
    expected = session.call("function() { set.seed(5); runif(1) }")[0]
    session.call("set.seed", 5)
    data = vs.datasets.mars(30, rng=1)
    r_bridge.compare_ranger("y ~ x1", data, data, k=10)
    assert session.call("runif", 1)[0] == expected


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"formula": "y ~ x11"}, vs.FormulaError, "did you mean 'x1'"),
        ({"formula": "y ~ x1:x2"}, vs.FormulaError, "must have plain columns"),
        ({"formula": "y ~ log(x1)"}, vs.FormulaError, "must have plain columns"),
        ({"formula": "y ~ cut(x1, 3)"}, vs.FormulaError, "must have plain columns"),
        ({"newdata": pd.DataFrame({"x1": []})}, ValueError, "at least one row"),
        ({"newdata": {"x1": []}}, ValueError, "`newdata` must have at least one row"),
        ({"newdata": {"x2": [1.0]}}, vs.FormulaError, "lack column 'x1'"),
        ({"k": 30, "replace": False}, ValueError, "needs k < n"),
        ({"k": 31, "replace": False}, ValueError, "at most n = 30"),
        ({"design": "best"}, ValueError, "`design` must be one of"),
        ({"design": "two-level"}, ValueError, "one of 'balanced', 'iid'; got 'two-l"),
        ({"rng": None}, TypeError, "`rng` must be a whole number.*got None"),
        ({"rng": np.random.default_rng(1)}, TypeError, "`rng` must be a whole number"),
        ({"rng": True}, TypeError, "`rng` must be a whole number"),
        ({"rng": -1}, ValueError, "from 0 to 2147483646.*got -1"),
        ({"rng": 2**31}, ValueError, "from 0 to 2147483646.*got 2147483648"),
        ({"num_trees": 7}, TypeError, "set by the argument `B`"),
        ({"B": "auto"}, ValueError, "must be a number of trees; got 'auto'"),
        ({"B": 1.5}, TypeError, "got 1.5"),
        ({"mtry": 7}, r_bridge.RError, "mtry can not be larger"),
    ],
)
def test_faults_are_explained(session, change, error, message):
    arguments = {"formula": "y ~ x1", "data": vs.datasets.mars(30, rng=1), **change}
    with pytest.raises(error, match=message):
        r_bridge.compare_ranger(**arguments)
    assert session.call("sum", 2.0)[0] == 2.0  # R lives on


def test_unused_options_are_rangers_warning(session):
    data = vs.datasets.mars(30, rng=1)
    with pytest.warns(r_bridge.RWarning, match="Unused arguments: colour"):
        r_bridge.compare_ranger("y ~ x1", data, k=10, colour="red")
