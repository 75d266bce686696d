"""The left-hand side of a formula is an expression.

Oracle: the same fit to a column that was computed beforehand gives the same numbers.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from r_bridge import translate_formula
from vstatkit.cli import main
from vstatkit.formula.parse import parse


def cars(n=60):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "mpg": rng.uniform(10, 30, n),
            "wt": rng.uniform(1, 5, n),
            "hp": rng.integers(50, 200, n),
            "gear": rng.integers(3, 6, n),
            "my y": rng.lognormal(size=n),
            "maker": rng.choice(["a", "b"], n),
        }
    )


RESPONSES = {
    "mpg - wt": lambda d: d.mpg - d.wt,
    "mpg-wt-gear": lambda d: d.mpg - d.wt - d.gear,
    "mpg - (wt + gear)": lambda d: d.mpg - (d.wt + d.gear),
    "mpg^2": lambda d: d.mpg**2,
    "mpg**2": lambda d: d.mpg**2,
    "log(mpg) - log(wt)": lambda d: np.log(d.mpg) - np.log(d.wt),
    "mpg/wt": lambda d: d.mpg / d.wt,
    "mpg*wt": lambda d: d.mpg * d.wt,
    "(mpg + wt)/2": lambda d: (d.mpg + d.wt) / 2,
    "-mpg": lambda d: -d.mpg,
    "1/mpg": lambda d: 1 / d.mpg,
    "1/(1 + mpg)": lambda d: 1 / (1 + d.mpg),
    "mpg + 1": lambda d: d.mpg + 1,
    "mpg - 1": lambda d: d.mpg - 1,
    "gear^-1": lambda d: 1 / d.gear,
    "2^gear": lambda d: 2.0**d.gear,
    "mpg %/% 2": lambda d: d.mpg // 2,
    "mpg %% 2 - wt": lambda d: d.mpg % 2 - d.wt,
    "pi * mpg": lambda d: np.pi * d.mpg,
    "`my y` / wt": lambda d: d["my y"] / d.wt,
    "Q('my y') - wt": lambda d: d["my y"] - d.wt,
    "I(mpg + wt)": lambda d: d.mpg + d.wt,
}


@pytest.mark.parametrize("left", RESPONSES)
@pytest.mark.parametrize("trusted", [True, False], ids=["caller", "stranger"])
def test_the_response_is_computed(left, trusted):
    data = cars()
    environment = vs.formula.patsy_engine.environment_of({}) if trusted else None
    parsed = parse(f"{left} ~ hp", data, environment=environment, intercept=False)
    assert_array_equal(parsed.y, RESPONSES[left](data))
    assert parsed.classes is None
    again = parsed.coding.recipe.parse_again()
    assert_array_equal(again.y, parsed.y)


@pytest.mark.parametrize("left", [left for left in RESPONSES if "**" not in left])
def test_r_users_may_write_the_same(left):
    data = cars()
    text = translate_formula(f"{left} ~ hp")
    parsed = parse(text, data, environment=None, intercept=False)
    assert_array_equal(parsed.y, RESPONSES[left](data))


@pytest.mark.parametrize("left", ["mpg - wt", "mpg^2", "log(mpg) - log(wt)", "1/mpg"])
def test_a_fit_is_that_to_the_column_computed_beforehand(left, tmp_path):
    data = cars()
    found = vs.fit(f"{left} ~ hp + gear", data, B=60, rng=1)
    expected = vs.fit(
        "z ~ hp + gear", data.assign(z=RESPONSES[left](data)), B=60, rng=1
    )
    assert_allclose(found.params, expected.params, rtol=1e-14)
    assert_allclose(found.bse, expected.bse, rtol=1e-12)
    assert_allclose(found.predict(data[:5]), expected.predict(data[:5]), rtol=1e-14)
    assert found.scores.table == pytest.approx(expected.scores.table)
    (shown,) = [
        line for line in str(found.summary()).splitlines() if "Dep. Var" in line
    ]
    assert shown.split("Subsample")[0].split(":")[1].strip() == left
    found.save(tmp_path / "fit.vstat")
    loaded = vs.load(tmp_path / "fit.vstat")
    assert_array_equal(loaded.bse, found.bse)
    assert_array_equal(loaded.predict(data[:5]), found.predict(data[:5]))


def test_files_are_read_batch_after_batch_to_the_same_response(tmp_path):
    data = cars().drop(columns=["my y", "maker"])
    data.loc[4, "wt"] = np.nan
    path = tmp_path / "cars.csv"
    data.to_csv(path, index=False)
    found = vs.fit("mpg/wt ~ hp", path, B=60, rng=1)
    expected = vs.fit("mpg/wt ~ hp", pd.read_csv(path), B=60, rng=1)
    assert_array_equal(found.params, expected.params)
    assert found.info.n_dropped == 1
    assert_array_equal(found.recipe.y[:], (data.mpg / data.wt).dropna())


def test_the_command_line_computes_the_response(tmp_path, capsys):
    path = tmp_path / "cars.csv"
    cars().to_csv(path, index=False)
    main(["fit", "log(mpg) - log(wt) ~ hp", str(path), "--B", "60", "--seed", "1"])
    printed = capsys.readouterr().out
    cars().assign(z=lambda d: np.log(d.mpg) - np.log(d.wt)).to_csv(path, index=False)
    main(["fit", "z ~ hp", str(path), "--B", "60", "--seed", "1"])
    expected = capsys.readouterr().out
    assert "log(mpg) - log(wt)" in printed
    (row,) = [line for line in printed.splitlines() if line.startswith("typical")]
    assert row in expected
    main(["fit", "-z ~ hp", str(path), "--B", "60", "--seed", "1"])
    assert "Dep. Variable:                          -z" in capsys.readouterr().out


def test_a_dot_leaves_out_all_columns_of_the_response():
    parsed = parse("mpg - wt ~ .", cars(), environment=None, intercept=False)
    assert set(parsed.coding.variables) == {"hp", "gear", "my y", "maker"}


def test_comparisons_of_arithmetic_are_classes():
    data = cars()
    parsed = parse("mpg > 5 * wt ~ hp", data, environment=None, intercept=False)
    assert parsed.classes == (False, True)
    assert_array_equal(parsed.y, data.mpg > 5 * data.wt)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("mpg + wt", r"several responses, or their sum. Write I\(mpg \+ wt\) for"),
        ("mpg - wt + hp", r"Write I\(mpg - wt \+ hp\) for the sum"),
        ("mpg:wt", r"`:` joins terms .* Write mpg \* wt for the product"),
        ("1/2", "'1/2' reads no column"),
        ("maker * 2", "takes numbers; column 'maker' holds text or categories"),
        ("-maker", "takes numbers; column 'maker' holds text or categories"),
        ("maker - 1", "takes numbers; column 'maker' holds text or categories"),
        ("mpg * wt %% 2", r"`\*` before `%%` needs brackets, as in a \* \(b %% c\)"),
        ("1/(gear - 3)", r"infinite|inf"),
    ],
)
def test_what_is_no_response_is_refused(left, message):
    with pytest.raises(vs.FormulaError, match=message):
        vs.fit(f"{left} ~ hp", cars(), B=20)


def test_r_divides_before_it_multiplies():
    with pytest.raises(vs.FormulaError, match="`/` before `%/%` needs brackets"):
        translate_formula("y ~ I(2 / x %/% 3)")
    assert translate_formula("y ~ I(2 / (x %/% 3))") == "y ~ I(2 / (x // 3))"
    assert translate_formula("y ~ I(x * 2 + x %% 3)") == "y ~ I(x * 2 + x % 3)"


@pytest.mark.parametrize("on_disk", [False, True])
def test_levels_that_are_lost_with_missing_values(on_disk, tmp_path):
    """Wages are known of those who work: their rows have one level."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"works": np.repeat([1, 0], 20), "x": rng.normal(size=40)})
    data["wage"] = rng.uniform(5, 9, 40)
    data.loc[20:, "wage"] = np.nan
    data.loc[3, "x"] = np.nan
    held = data
    if on_disk:
        held = tmp_path / "data.csv"
        data.to_csv(held, index=False)
    kept = len(data) - len(data.dropna())
    words = (
        rf"needs at least two levels; got \(.*1.*,\) after dropping {kept} rows with "
        r"missing values \(in ('x', 'wage'|'wage', 'x')\)\. Leave such columns out"
    )
    with pytest.raises(vs.FormulaError, match=words):
        vs.fit("C(works) ~ .", held, B=20, rng=1)
    one = data[["works", "x"]].iloc[4:20]
    with pytest.raises(vs.FormulaError, match=r"two levels; got \(1,\)\.$"):
        vs.fit("C(works) ~ x", one, B=20, rng=1)
