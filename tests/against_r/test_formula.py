"""R's formulas: translated, they give R's own model matrix."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import r_bridge
import vstatkit as vs
from r_bridge import translate_formula
from r_bridge.convert import to_r_frame
from vstatkit.formula.parse import parse
from vstatkit.formula.rounding import r_round


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("y ~ x", "y ~ x"),
        ("y ~ I(x^2)", "y ~ I(x**2)"),
        ("y ~ (a + b)^2", "y ~ (a + b)**2"),
        ("log(y) ~ a*b - 1", "log(y) ~ a*b - 1"),
        ("y ~ . - a", "y ~ . - a"),
        ("y ~ a:b + 0", "y ~ a:b + 0"),
        ("y ~ `my x`", 'y ~ Q("my x")'),
        ("`größe 1` ~ `a`", 'Q("größe 1") ~ a'),
        (r"y ~ `odd \` \"name`", 'y ~ Q("odd ` \\"name")'),
        ("y ~ Sepal.Width + .hidden", 'y ~ Q("Sepal.Width") + Q(".hidden")'),
        ("y ~ class + lambda", 'y ~ Q("class") + Q("lambda")'),
        ("y ~ I + C", 'y ~ Q("I") + Q("C")'),
        ("y ~ größe", "y ~ größe"),
        ("y ~ factor(g) + as.factor(h)", "y ~ C(g) + C(h)"),
        ("y ~ poly(x, 2)", "y ~ poly(x, 2)"),
        ("y ~ poly(x, degree = 2L, raw = TRUE)", "y ~ poly(x, degree = 2, raw = True)"),
        ("y ~ `TRUE`", "y ~ TRUE"),
        ("y ~ I(T^2)", "y ~ I(T**2)"),
        ("y ~ poly(x, 2, raw = T) + T", "y ~ poly(x, 2, raw = True) + T"),
        ("y ~ poly(x, 2, raw=F)", "y ~ poly(x, 2, raw=False)"),
        ("y ~ I(z^-1) + I(z^( - 2L))", "y ~ I(z**-1.0) + I(z**( - 2.0))"),
        ("y ~ I(2^-z)", "y ~ I(2.0**-z)"),
        ("y ~ ifelse(x > 1.5e2, 1, 0)", "y ~ where(x > 1.5e2, 1, 0)"),
        ('y ~ I(g == "a b")', 'y ~ I(g == "a b")'),
        ("y ~ ceiling(x) + asin(z)", "y ~ ceil(x) + arcsin(z)"),
        ("y ~ round(x) + round(x, 1)", "y ~ round(x) + r_round(x, 1)"),
        ("y ~ round(log(x), digits = 2)", "y ~ r_round(log(x), digits = 2)"),
        ("y ~ pmax(a, b)", "y ~ maximum(a, b)"),
        ('y ~ Q("my x") + C(g)', 'y ~ Q("my x") + C(g)'),
        ("y ~ x +\n  z", "y ~ x +\n  z"),
    ],
)
def test_translations(given, expected):
    assert translate_formula(given) == expected


@pytest.mark.parametrize(
    ("given", "construct"),
    [
        ("y ~ cut(x, 3)", r"`cut\(\.\.\.\)`"),
        ("y ~ ns(x, 3)", r"`ns\(\.\.\.\)`"),
        ("y ~ scale(x)", r"`scale\(\.\.\.\)`"),
        ("y ~ offset(x)", r"`offset\(\.\.\.\)`"),
        ("y ~ log(x, 2)", r"`log\(\.\.\.\)` with more than one argument"),
        ("y ~ factor(g, levels = 1:3)", r"`factor\(\.\.\.\)` with more than one"),
        ("y ~ a %in% b", "R's `%in%`, a special operator, has no counterpart"),
        ("y ~ x | g", r"`\|`, conditioning, or a logical or, has no counterpart"),
        ("y ~ I(a & b)", "`&`, a logical and, has no counterpart"),
        ("y ~ I(!a)", "`!`, a logical not"),
        ("y ~ df$x", r"`\$`, access to a part"),
        ("y ~ x[1]", r"`\[`, indexing"),
        ("y ~ splines::bs(x)", "`::`, a package's function"),
    ],
)
def test_what_has_no_translation_is_named(given, construct):
    with pytest.raises(vs.FormulaError, match=construct):
        translate_formula(given)


def test_what_is_no_formula_is_refused():
    with pytest.raises(vs.FormulaError, match="'#' at position 6"):
        translate_formula("y ~ x # all")
    with pytest.raises(TypeError, match="got int"):
        translate_formula(3)


def formula_data():
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.uniform(0.5, 2, (30, 3)), columns=["x", "z", "my.x"])
    return data.assign(
        y=rng.normal(size=30),
        g=pd.Categorical(rng.choice(["a", "b", "c"], 30)),
        whole=rng.integers(1, 9, 30),
        **{"größe x": rng.normal(size=30)},
    )


@pytest.mark.r
@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x + I(x^2) + log(z)",
        "y ~ x*z + g",
        "y ~ g - 1",
        "y ~ x:g + z",
        "y ~ (x + z + g)^2",
        "y ~ my.x + `größe x`",
        "y ~ poly(x, 3) + z",
        "y ~ poly(x, 2, raw = TRUE)",
        "y ~ ifelse(x > 1, z, 0) + factor(g)",
        "y ~ . - g",
        "y ~ I(-x^2 + 2*z) + sqrt(z) + pmin(x, z)",
        "y ~ x + 0",
        "y ~ I(whole^-1) + I(whole^(-2)) + I(2^-whole) + I(whole^2)",
        "y ~ poly(x, 2, raw = T)",
        "y ~ round(x, 1) + round(z, digits = 2) + round(whole, -1) + round(x)",
    ],
)
def test_the_model_matrix_is_rs(session, formula):
    data = formula_data()
    expected = session.call(
        "function(text, data) unclass(model.matrix(as.formula(text), data))",
        formula,
        to_r_frame(data),
    )
    text = translate_formula(formula)
    ours = parse(text, data, environment=None, intercept=True).X
    assert ours.shape == expected.shape
    # patsy puts factors before numbers: columns are compared as a set.
    assert_allclose(_sorted(ours), _sorted(expected), rtol=1e-10, atol=1e-12)


def _sorted(matrix):
    """Columns in an order that does not depend on how they came."""
    keys = [tuple(column) for column in np.round(matrix.T, 7)]
    return matrix[:, sorted(range(len(keys)), key=keys.__getitem__)]


def awkward_numbers(digits):
    """Numbers halfway between two with so many digits, and of all sizes."""
    rng = np.random.default_rng(digits + 100)
    halves = (2 * rng.integers(-(10**6), 10**6, 1000) + 1) * 0.5 * 10.0**-digits
    sizes = rng.normal(size=1000) * 10.0 ** rng.integers(-20, 22, 1000)
    short = np.round(rng.uniform(-100, 100, 1000), abs(digits) + 1)
    known = [0.15, 0.25, 0.35, 2.675, 1.005, 3.15, -3.15, 1e15 + 0.5, 1e300, 5e-324]
    return np.r_[halves, sizes, short, known, 0.0, -0.0, np.inf, -np.inf, np.nan]


@pytest.mark.r
@pytest.mark.parametrize("digits", [1, 2, 3, 5, 9, 14, 16, 330, -1, -2, -5, -15, -310])
def test_numbers_are_rounded_as_in_r(session, digits):
    numbers = awkward_numbers(digits if abs(digits) < 300 else 1)
    expected = session.call("round", numbers, digits)
    assert_array_equal(r_round(numbers, digits), expected)
    with np.errstate(all="ignore"):
        numpys = np.round(numbers, digits if abs(digits) < 300 else 0)
    assert (expected != numpys).any()


@pytest.mark.r
def test_cars_are_rounded_as_in_r(session):
    cars = r_bridge.dataset("datasets", "mtcars")
    text = translate_formula("mpg ~ round(wt, 1)")
    ours = parse(text, cars, environment=None, intercept=False).X[:, 0]
    assert_array_equal(ours, session.call("function() round(mtcars$wt, 1)"))
    assert (ours != np.round(cars["wt"], 1)).any()


@pytest.mark.r
def test_r_formulas_fit(session):
    data = r_bridge.dataset("datasets", "iris")
    formula = translate_formula("Sepal.Length ~ poly(Sepal.Width, 2) + Species")
    res = vs.fit(formula, data, kernel="ols", k=1.0, B=50, rng=1)
    linear = session.call(
        "function() coef(lm(Sepal.Length ~ poly(Sepal.Width, 2) + Species, iris))"
    )
    # Bagged coefficients lie around those of the fit to all rows.
    ours = res.params[["Intercept", "Species[T.versicolor]"]].to_numpy()
    assert_allclose(ours, linear[[0, 3]], atol=0.15)
