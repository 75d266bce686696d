"""Results do not depend on the names and the order of the levels of a factor."""

from pathlib import Path

import numpy as np
import pandas as pd
import patsy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import vstatkit as vs
from vstatkit.formula.factor_coding import FEW_LEVELS
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment

ROUNDING = {"rtol": 1e-9, "atol": 1e-9}  # sums over the same numbers, in another order

NAMES = {
    "g": {"north": "4th", "east": "2nd", "south": "3rd", "west": "1st"},
    "h": {"no": "b", "yes": "a"},
    "many": {f"m{j}": f"v{7 * j % 9}" for j in range(9)},
    "site": {"lab": 3, "field": 1, "ship": 2},
}
"""Other names, which sort in another order, of the levels of every factor."""


@pytest.fixture(scope="module")
def data():
    """Responses with ties, levels with equal means, and two numbers."""
    rng = np.random.default_rng(3)
    n = 90
    frame = pd.DataFrame(
        {
            "g": rng.permutation(np.resize(["north", "east", "south", "west"], n)),
            "h": rng.choice(["no", "yes"], n, p=[0.6, 0.4]),
            "many": rng.permutation(np.resize([f"m{j}" for j in range(9)], n)),
            "site": rng.choice(["lab", "field", "ship"], n),
            "flag": rng.random(n) > 0.5,
            "x": rng.normal(size=n).round(1),
            "z": rng.normal(size=n),
        }
    )
    means = {"north": 0, "east": 1, "south": 1, "west": 3}
    y = frame["g"].map(means) + frame["x"] + 2 * frame["many"].isin(["m2", "m8"])
    y = (y + rng.normal(size=n)).round()
    label = np.select([y < 0, y < 2], ["low", "middle"], "high")
    return frame.assign(y=y, label=label)


def renamed(frame):
    """Rename all levels, so that their order changes."""
    return frame.assign(**{name: frame[name].map(NAMES[name]) for name in NAMES})


def reordered(frame, unused=()):
    """Make factors categories, whose levels are in another order than text is."""
    kinds = {
        name: pd.CategoricalDtype([*unused, *list(levels)[1:], next(iter(levels))])
        for name, levels in NAMES.items()
    }
    return frame.astype(kinds)


CHANGES = {"names": renamed, "order": reordered}

PLAIN = "y ~ g + h + many + x + z"

FITS = {
    "default": (PLAIN, {}),
    "dot": ("y ~ . - label - site", {}),
    "marked": ("y ~ C(g) + C(many) + C(site) + x", {}),
    "no intercept": ("y ~ 0 + g + many + x", {}),
    "products": ("y ~ g*h + many:x + C(site):h + z", {}),
    "product alone": ("y ~ g:C(site)", {}),
    "many combinations": ("y ~ g:many + x", {}),
    "splines": ("y ~ g:bs(x, 4) + many", {}),
    "flag": ("y ~ flag*g + x", {}),
    "classes": ("label ~ g + many + h + x", {}),
    "splits": (PLAIN, {"categorical_splits": True}),
    "splits of products": ("y ~ g*h + x", {"categorical_splits": True}),
    "splits of classes": ("label ~ g + many + x", {"categorical_splits": True}),
    "indicators": (PLAIN, {"categorical_splits": False}),
    "random": (PLAIN, {"categorical_splits": True, "splitter": "random"}),
    "honest": (PLAIN, {"honest": True, "kernel": "tree"}),
    "absolute": (PLAIN, {"criterion": "absolute_error"}),
    "boosted trend": (PLAIN, {"trend": "linear", "boost": 1}),
    "scikit-learn tree": (PLAIN, {"kernel": DecisionTreeRegressor(random_state=0)}),
    "neighbours": (PLAIN, {"kernel": KNeighborsRegressor(3)}),
}


def answers(res, frame):
    """Estimates that must not change."""
    pairs = {
        name: tuple(frame[name].iloc[:2])
        for name in ("g", "many")
        if name in res.predictor.coding.variables
    }
    found = [res.params, res.bse, res.predict(frame[:20])]
    if res.info.kernel == "forest":
        averages = res.avg_predictions()
        found += [averages.params, averages.bse]
    if pairs and res.info.kernel == "forest":
        effects = res.avg_effects(pairs)
        found += [effects.params, effects.bse]
    return [np.asarray(one) for one in found]


def assert_same_answers(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert_allclose(one, other, **ROUNDING)


@pytest.mark.parametrize("name", FITS)
def test_names_and_order_of_levels_change_nothing(name, data):
    formula, options = FITS[name]

    def fit(frame):
        res = vs.fit(formula, frame, at=frame[:7], B=10, rng=1, **options)
        return answers(res, frame)

    wanted = fit(data)
    for change in (renamed, reordered):
        assert_same_answers(fit(change(data)), wanted)


def test_levels_that_no_row_has_change_nothing(data):
    other = reordered(data, unused=["never", "nowhere"])
    found, wanted = (
        vs.fit(PLAIN, frame, at=frame[:7], B=10, rng=1, categorical_splits=False)
        for frame in (other, data)
    )
    assert_same_answers(answers(found, other), answers(wanted, data))
    # Such a level is neither of those that are known: all indicators are zero.
    with pytest.warns(vs.UnobservedLevelWarning, match="many = 'never'"):
        assert np.isfinite(found.predict(other[:1].assign(many="never"))).all()


def test_bias_reduced_fits_do_not_depend_on_levels(data):
    found, wanted = (
        vs.fit("y ~ g + many + x", one, at=one[:4], B=10, rng=1, target="truth")
        for one in (renamed(data), data)
    )
    assert_allclose(found.params, wanted.params, **ROUNDING)
    assert_allclose(found.bse, wanted.bse, **ROUNDING)


def test_studies_do_not_depend_on_levels(data):
    def study(change):
        def draw(rng):
            return change(data.assign(y=data["y"] + rng.normal(size=len(data))))

        at = change(data)[:3]
        return vs.studies.coverage(
            draw, "y ~ many + C(site) + x", at=at, k=20, B=20, iterations=3, rng=1
        )

    found, wanted = study(renamed), study(lambda frame: frame)
    numbers = wanted.select_dtypes("number").columns
    assert_allclose(found[numbers], wanted[numbers], **ROUNDING)


def test_linear_models_do_not_depend_on_levels(data):
    """Every subsample has all levels, so that other columns span the same space."""
    found, wanted = (
        vs.fit("y ~ g*x + h", one, kernel="ols", k=80, replace=False, B=10, rng=1)
        for one in (renamed(data), data)
    )
    assert list(wanted.params.index)[:3] == ["Intercept", "g[T.north]", "g[T.south]"]
    assert_allclose(found.predict(renamed(data)), wanted.predict(data), **ROUNDING)


@pytest.mark.parametrize("formula", [PLAIN, "y ~ C(site):many + g*h + np.exp(x)"])
@pytest.mark.parametrize("change", CHANGES)
def test_data_on_disk_do_not_depend_on_levels(formula, change, data, tmp_path):
    other = CHANGES[change](data)
    other.to_parquet(tmp_path / "data.parquet", row_group_size=20)
    wanted = vs.fit(formula, data, at=data[:5], B=10, rng=1)
    found = vs.fit(formula, tmp_path / "data.parquet", at=other[:5], B=10, rng=1)
    assert_allclose(found.params, wanted.params, **ROUNDING)
    assert_allclose(found.bse, wanted.bse, **ROUNDING)
    assert_allclose(found.predict(other), wanted.predict(data), **ROUNDING)
    ends = (res.effects["estimate"].iloc[-1:] for res in (found, wanted))
    assert_allclose(*ends, **ROUNDING)


@pytest.mark.parametrize("name", ["default", "products", "many combinations"])
def test_saved_results_predict_new_data_with_fewer_levels(name, data, tmp_path):
    formula, options = FITS[name]
    other = reordered(data)
    res = vs.fit(formula, other, B=10, rng=1, **options)
    res.save(tmp_path / "results.vst")
    loaded = vs.load(tmp_path / "results.vst")
    some = data[data["g"] == "south"][:3]
    wanted = res.predict(other).loc[some.index]
    assert_array_equal(res.predict(some), wanted)
    assert_array_equal(loaded.predict(some), wanted)
    assert_array_equal(loaded.predict(other.loc[some.index]), wanted)


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("classes", [False, True])
def test_estimators_do_not_depend_on_the_codes_of_levels(data, codes, classes):
    kind = vs.ForestClassifier if classes else vs.ForestRegressor
    y = data["label" if classes else "y"]

    def features(order):
        table = data[["g", "many", "x"]]
        kinds = {
            name: pd.CategoricalDtype(sorted(NAMES[name])[::order])
            for name in ("g", "many")
        }
        table = table.astype(kinds)
        coded = {name: table[name].cat.codes for name in kinds}
        return table.assign(**coded).to_numpy() if codes else table

    def predictions(X):
        how = ["g", "many"] if not codes else [0, 1]
        forest = kind(20, random_state=0, categorical_features=how).fit(X, y)
        return forest.predict_proba(X) if classes else forest.predict(X)

    assert_allclose(predictions(features(-1)), predictions(features(1)), **ROUNDING)


def test_saved_forests_keep_the_order_of_their_columns(data, tmp_path):
    """A formula has factors before numbers; this table has a number first."""
    X = data[["x", "g"]].astype({"g": "category"})
    forest = vs.ForestRegressor(20, random_state=0, categorical_features="from_dtype")
    forest.fit(X, data["y"]).results_.save(tmp_path / "forest.vst")
    loaded = vs.load(tmp_path / "forest.vst")
    assert_allclose(loaded.predict(X), forest.predict(X), **ROUNDING)


def test_the_formula_sets_the_reference_of_tables(data):
    other = reordered(data)
    for marked, first in {
        "g": "east",
        "C(g, Treatment('south'))": "south",
        "C(g, Treatment(reference='west'))": "west",
        "C(g, levels=['south', 'west', 'east', 'north'])": "south",
        "C(g, Sum, levels=['west', 'south', 'east', 'north'])": "west",
        "g:x + C(g, levels=['south', 'west', 'east', 'north'])": "south",
    }.items():
        for kernel in ("forest", "ols"):
            res = vs.fit(f"y ~ {marked} + x", data, kernel=kernel, B=20, rng=1)
            moves = res.avg_effects("g").frame
            if kernel == "forest":
                assert set(res.effects.loc["g", "from"]) == {first}
                assert first not in set(res.effects.loc["g", "to"])
            assert set(moves["from"]) == {first}
            assert set(res.avg_slopes("g").frame["from"]) == {first}
    usual = vs.fit("y ~ g + x", other, B=20, rng=1)
    assert set(usual.effects.loc["g", "from"]) == {"east"}  # the first of its levels
    trees = vs.fit("y ~ C(g, Treatment('south')) + x", data, B=20, rng=1)
    assert_allclose(trees.params, usual.params, **ROUNDING)


def test_effects_and_coefficients_have_the_same_reference(data):
    """Effects of an additive linear model are its coefficients."""
    for marked in ("Treatment('south')", "levels=['south', 'west', 'east', 'north']"):
        res = vs.fit(f"y ~ C(g, {marked}) + x", data, kernel="ols", B=20, rng=1)
        levels = {"east", "north", "south", "west"}
        coefs = {
            level: value
            for level in levels
            for name, value in res.params.items()
            if name.startswith("C(") and level in name.rpartition("[")[2]
        }
        assert set(coefs) == levels - {"south"}
        for moves in (res.avg_effects("g"), res.avg_slopes("g")):
            found = dict(zip(moves.frame["to"], moves.params, strict=True))
            assert found.keys() == coefs.keys()
            assert all(np.isclose(found[one], coefs[one]) for one in coefs)


def read(right, data, factors):
    environment = caller_environment(0)
    return parse(
        f"y ~ {right}", data, environment=environment, intercept=False, factors=factors
    )


def test_every_level_has_an_indicator(data):
    """In the order in which levels come first in the data; two levels need one."""
    made = read("many + h + flag + x", data, "indicators")
    order = list(dict.fromkeys(data["many"]))
    second = list(dict.fromkeys(data["h"]))[1]
    truth = list(dict.fromkeys(data["flag"]))[1]
    wanted = [*(data["many"] == one for one in order)]
    wanted += [data["h"] == second, data["flag"] == truth, data["x"]]
    assert_array_equal(made.X, np.column_stack(wanted))
    names = [*(f"many[{one}]" for one in order), f"h[{second}]", f"flag[{truth}]", "x"]
    assert list(made.names) == names
    assert not made.levels.any()


def test_products_of_factors_have_all_combinations(data):
    made = read("g:h + g:x", data, "indicators")
    pairs = list(dict.fromkeys(zip(data["g"], data["h"], strict=True)))
    wanted = [(data["g"] == g) & (data["h"] == h) for g, h in pairs]
    levels = list(dict.fromkeys(data.loc[data["x"] != 0, "g"]))
    wanted += [(data["g"] == g) * data["x"] for g in levels]
    assert_array_equal(made.X, np.column_stack(wanted))
    names = [f"g[{g}]:h[{h}]" for g, h in pairs] + [f"g[{g}]:x" for g in levels]
    assert list(made.names) == names
    coded = read("g:h", data, "splits")
    assert coded.names == ("g:h",)
    assert coded.levels.tolist() == [8]


SHOWN = ("east", "north", "south")


def test_a_contrast_that_is_asked_for_stays(data):
    made = read("C(g, Sum) + C(g, Sum):h", data, "trees")
    usual = np.asarray(patsy.dmatrix("C(g, Sum)", data))[:, 1:]
    assert_array_equal(made.X[:, :3], usual)
    places = {name: j for j, name in enumerate(made.names)}
    for level in ("no", "yes"):
        block = [places[f"C(g, Sum)[S.{g}]:h[{level}]"] for g in SHOWN]
        rows = (data["h"] == level).to_numpy()[:, None]
        assert_array_equal(made.X[:, block], usual * rows)
    assert made.X.shape[1] == 9


def test_ordered_levels_are_numbers_to_trees(data):
    sizes = pd.CategoricalDtype(["west", "south", "north", "east"], ordered=True)
    other = data.assign(g=data["g"].astype(sizes))
    made = read("g + x", other, "trees")
    assert_array_equal(made.X[:, 0], other["g"].cat.codes)
    assert not made.levels.any()
    assert read("g + x", other, "indicators").X.shape[1] == 5


@pytest.mark.parametrize(
    "right", ["x*z + I(x**2)", "bs(x, 3):bs(z, 4) + x", "z:x + x + z", "x + z"]
)
@pytest.mark.parametrize("factors", ["indicators", "trees", "splits", "whole"])
def test_numbers_have_the_columns_that_they_always_had(data, right, factors):
    made, usual = (read(right, data, one) for one in (factors, "treatment"))
    assert made.names == usual.names
    assert_array_equal(made.X, usual.X)


def test_few_levels_are_split_as_sets_by_default(data):
    names = {L: [f"v{j % L}" for j in range(len(data))] for L in range(2, 8)}
    for L, column in names.items():
        frame = data.assign(v=column)
        res = vs.fit("y ~ v + x", frame, B=2, rng=1, variance="bm")
        coded = 3 <= L <= FEW_LEVELS
        assert res.predictor.kernel.levels == ((L, 0) if coded else None)
        width = 1 if coded or L == 2 else L
        assert res.predictor.kernel.n_features == width + 1


LAYOUT_7 = Path(__file__).parents[1] / "data"
"""Two files that the version before layout 8 wrote: `vs.fit("y ~ g + h*x + size", d,
B=6, k=12, rng=1, at=d[:3])`, "whole" with `categorical_splits=True`, of text `g` and
`h` and an ordered category `size`."""


@pytest.mark.parametrize("name", ["treatment", "whole"])
def test_files_of_layout_7_predict_what_they_did(name):
    """Estimates are in the file: new predictions at the same rows must be the same."""
    loaded = vs.load(LAYOUT_7 / f"layout_7_{name}.npz")
    rows = loaded.predictor.coding.recipe.frame[:3]
    assert_allclose(loaded.predict(rows), loaded.params, rtol=1e-12)
    assert loaded.params.nunique() == 3
    columns = loaded.predictor.coding.names
    assert columns[-2:] == ["x", "h[T.yes]:x"]
    assert ("g" in columns) == (name == "whole")


def test_the_order_of_columns_matters_at_most_by_chance(data):
    """Exactly nothing changes where every split is the best of all columns, by far.

    Otherwise which columns are tried depends on their order, and the difference of two
    ensembles on the same subsamples is Monte Carlo error.
    """
    rng = np.random.default_rng(5)
    frame = data.assign(y=data["y"] + rng.normal(scale=0.01, size=len(data)))
    formulas = "y ~ g + many + x + z", "y ~ z + many + x + g"
    options = {"at": frame[:6], "rng": 1, "k": 60}
    one, other = (
        vs.fit(
            text,
            frame,
            kernel="tree",
            min_samples_leaf=12,
            B=20,
            variance="bm",
            **options,
        )
        for text in formulas
    )
    assert_allclose(one.params, other.params, **ROUNDING)
    assert_allclose(one.bse, other.bse, **ROUNDING)
    one, other = (vs.fit(text, frame, B=400, **options) for text in formulas)
    error = np.sqrt(one.components.monte_carlo + other.components.monte_carlo)
    assert (np.abs(one.params - other.params) < 4 * error).all()
    assert not np.array_equal(one.params, other.params)
