"""Errors about notation and arguments of other packages name the remedy."""

import re

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.validation import NOT_OF_STATISTICS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "y": rng.normal(size=60),
            "w": rng.normal(size=60),
            "x": rng.poisson(2.0, 60),
            "female": rng.integers(0, 2, 60),
            "region": rng.choice(["north", "south"], 60),
        }
    )


def fit(formula, data, **options):
    return vs.fit(formula, data, **{"B": 20, "rng": 1, **options})


def refusal(formula, data, **options):
    with pytest.raises(vs.FormulaError) as caught:
        fit(formula, data, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("formula", "remedies"),
    [
        ("y ~ w | x", ["w + x", "C(x)", "groups='x'", "instruments are not supp"]),
        ("y ~ w + (1 | region)", ["groups='region'"]),
        ("y ~ (w | region)", ["w + region", "C(region)"]),
        ("y ~ log(w) + x | region + x", ["log(w) + x + region + x"]),
        ("y ~ (w + x) | region", ["(w + x) + region", "C(region)"]),
        ("y ~ w | C(x)", ["w + C(x)"]),
        ("y ~ lag(w)", ["data['w_lag1'] = data['w'].shift(1)", "write w_lag1"]),
        ("y ~ lag(w, 3)", ["data['w_lag3'] = data['w'].shift(3)"]),
        ("y ~ lead(w)", [".shift(-1)"]),
        ("y ~ diff(w)", ["data['w'].diff()"]),
        ("y ~ L.w", ["Stata", "data['w'].shift(1)"]),
        ("y ~ L2.w", ["data['w'].shift(2)", "w_lag2"]),
        ("y ~ F2.w", ["data['w'].shift(-2)"]),
        ("y ~ D.w", ["data['w'].diff()"]),
        ("y ~ i.x", ["Stata", "write C(x)"]),
        ("y ~ ib2.x", ["write C(x)"]),
        ("y ~ c.w", ["write w."]),
        ("y ~ i.x#c.w", ["Write x:w"]),
        ("y ~ i.x##c.w", ["Write x*w"]),
        ("y ~ s(w)", ["write the column alone", "bs(x, df=5)"]),
        ("y ~ rank(w)", ["Compute a column"]),
        ("y ~ strata(region)", ["groups="]),
        ("y ~ foo(w)", ["no function 'foo'", "Define foo", "data['foo_w']"]),
        ("foo(y) ~ w", ["no function 'foo'", "data['foo_y']"]),
        ("y ~ sqroot(w)", ["no function 'sqroot'", "did you mean 'sqrt'"]),
    ],
)
def test_notation_of_other_packages_is_answered(data, formula, remedies):
    said = refusal(formula, data)
    for remedy in remedies:
        assert remedy in said
    assert "TypeError" not in said


def test_a_loop_variable_does_not_hide_the_answer(data):
    i = 1  # the formula sees it
    assert "write C(x)" in refusal("y ~ i.x", data)
    assert i == 1


def test_formulas_of_strangers_are_not_told_to_define_functions(data):
    said = refusal("y ~ foo(w)", data, eval_env="restricted")
    assert "Define" not in said
    assert "Compute a column" in said


def test_conditions_may_have_bars(data):
    flags = data.assign(a=data["w"] > 0, b=data["x"] > 2)
    flags["z"] = flags["a"] | flags["b"]
    wanted = fit("y ~ z", flags, at=flags.head()).params.to_list()
    for formula in ("y ~ I((w > 0) | (x > 2))", "y ~ I(a | b)"):
        assert fit(formula, flags, at=flags.head()).params.to_list() == wanted
    assert "`|` between terms is not supported" in refusal("y ~ a | b", flags)
    named = data.assign(**{"a|b": data["w"]})
    assert fit('y ~ Q("a|b")', named).nobs == len(data)


def test_functions_of_the_caller_may_have_any_name(data):
    def lag(column):
        return np.roll(column, 1)

    def s(column):
        return column + 1

    res = vs.fit("y ~ lag(w) + s(x)", data, at=data.head(2), B=20, rng=1)
    assert res.nobs == len(data)


def test_the_written_remedies_work(data):
    shifted = data.assign(w_lag1=data["w"].shift(1))
    assert fit("y ~ w_lag1", shifted).nobs == len(data) - 1
    assert fit("y ~ C(x) + x:w", data).nobs == len(data)
    counts = fit("x ~ w", data, criterion="poisson")
    assert counts.params.item() > 0
    weighted = vs.statistic(
        lambda d: np.average(d["y"], weights=d["w"] ** 2), data, k=20, B=20, rng=1
    )
    assert np.isfinite(weighted.params.item())


@pytest.mark.parametrize(
    ("option", "remedies"),
    [
        ({"family": "poisson"}, ["criterion='poisson'", "kernel='logit'", "C(y)"]),
        ({"cov_type": "HC3"}, ["allow for unequal variances", "`groups`"]),
    ],
)
def test_arguments_of_regressions_are_answered(data, option, remedies):
    with pytest.raises(TypeError) as caught:
        fit("y ~ w", data, **option)
    for remedy in remedies:
        assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, np.asarray, lambda X: X.to_numpy().tolist()]
)
def test_predictors_and_response_are_answered(data, kind):
    X, y = kind(data[["w", "x"]]), data["y"]
    with pytest.raises(TypeError, match=r"fit\('y ~ \.', .*ForestRegressor\(\)\.fit"):
        vs.fit(X, y)
    with pytest.raises(TypeError, match="takes a formula and a table"):
        vs.fit(y.to_numpy(), X)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).add_prefix("x")
    assert fit("y ~ .", frame.assign(y=y)).nobs == len(data)


def test_an_array_is_told_to_become_columns(data):
    with pytest.raises(TypeError, match=r"got ndarray\. Give arrays as columns"):
        vs.fit("y ~ w", data[["y", "w"]].to_numpy())


@pytest.mark.parametrize("given", ["jacknife", "jack_knife", "Jackknife"])
def test_misspelled_estimators_are_suggested(data, given):
    message = re.escape(f"got {given!r}; did you mean 'jackknife'?")
    with pytest.raises(ValueError, match=message):
        fit("y ~ w", data, variance=given)
    with pytest.raises(ValueError, match=message):
        fit("y ~ w", data).with_variance(given)
    forest = vs.ForestRegressor(20, variance=given, random_state=1).fit(
        data[["w"]], data["y"]
    )
    with pytest.raises(ValueError, match=message):
        forest.predict(data[["w"]], return_std=True)


def test_robust_covariances_are_answered(data):
    with pytest.raises(ValueError, match=r"got 'HC1'\. Every estimator .* `groups`"):
        fit("y ~ w", data, variance="HC1")
    with pytest.raises(ValueError, match=r"got 'magic'\. 'auto' chooses one"):
        fit("y ~ w", data, variance="magic")


@pytest.mark.parametrize("name", ["weights", "sample_weight", "case.weights"])
def test_a_statistic_takes_no_weights(data, name):
    with pytest.raises(TypeError, match=r"`statistic` takes no weights; .*np\.average"):
        vs.statistic("mean", data["y"], k=5, B=20, **{name: np.ones(60)})


@pytest.mark.parametrize("name", sorted(NOT_OF_STATISTICS))
def test_a_statistic_refuses_arguments_of_fits(data, name):
    with pytest.raises(TypeError, match=f"takes no {name}; got '{name}'"):
        vs.statistic("mean", data["y"], k=5, B=20, **{name: 1})


def test_a_statistic_suggests_only_what_it_has(data):
    with pytest.raises(TypeError, match=r"`statistic` takes no oob; got 'oob_score'"):
        vs.statistic("mean", data["y"], k=5, B=20, oob_score=True)
    with pytest.raises(TypeError, match="'varience'; did you mean 'variance'"):
        vs.statistic("mean", data["y"], k=5, B=20, varience="ij")
    with pytest.raises(TypeError, match="'num_trees'; here it is `B`"):
        vs.statistic("mean", data["y"], k=5, num_trees=20)
