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
from vstatkit.formula.transforms import cut, r_round


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
        ("y ~ ns(x, 3)", "y ~ ns(x, 3)"),
        ("y ~ splines::ns(x, df = 3L)", "y ~ ns(x, df = 3)"),
        ("y ~ bs(x, knots = c(1, 2))", "y ~ bs(x, knots = [1, 2])"),
        (
            "y ~ bs(x, df = 5, intercept = T)",
            "y ~ bs(x, df = 5, include_intercept = True)",
        ),
        ("y ~ scale(x)", "y ~ scale(x, ddof=1)"),
        (
            "y ~ scale( log(x) , scale = FALSE)",
            "y ~ scale( log(x) , rescale = False, ddof=1)",
        ),
        ("y ~ cut(x, c(-Inf, 0, Inf))", "y ~ cut(x, [-1e999, 0, 1e999])"),
        (
            "y ~ cut(x, 3, include.lowest = TRUE)",
            "y ~ cut(x, 3, include_lowest = True)",
        ),
        ('y ~ cut(x, 2, labels = c("a", "b"))', 'y ~ cut(x, 2, labels = ["a", "b"])'),
        ("y ~ log(x, 2) + log(x, base = 10)", "y ~ log(x, 2) + log(x, base = 10)"),
        ("y ~ a + b %in% a", "y ~ a + b : a"),
        ("y ~ I(a %% 2) + I(a %/% 3)", "y ~ I(a % 2) + I(a // 3)"),
        ("y ~ c + pi + I(2*pi)", "y ~ c + pi + I(2*3.141592653589793)"),
    ],
)
def test_translations(given, expected):
    assert translate_formula(given) == expected


@pytest.mark.parametrize(
    ("given", "construct"),
    [
        ("y ~ rank(x)", r"`rank\(\.\.\.\)`"),
        ("y ~ cut(x, 3, dig.lab = 2)", "`dig.lab`, an option of `cut`"),
        ("y ~ ns(x, 3, Boundary.knots = c(0, 1))", "`Boundary.knots`, an option of"),
        ("y ~ scale(x, scale = 2)", r"`scale\(\.\.\.\)` with `scale = 2`"),
        ("y ~ scale(x, FALSE)", r"`scale\(\.\.\.\)` with `center = FALSE`"),
        ("y ~ offset(x)", r"`offset\(\.\.\.\)` is not available.*I\(y - w\) ~ x"),
        ("y ~ factor(g, levels = 1:3)", r"`factor\(\.\.\.\)` with more than one"),
        ("y ~ a %o% b", "R's `%o%`, a special operator, has no counterpart"),
        ("y ~ a %% b", "R's `%%`, a special operator, has no counterpart"),
        ("y ~ I(a %in% b)", "`%in%` between values has no counterpart"),
        ("y ~ x | g", r"`\|`, conditioning, or a logical or, has no counterpart"),
        ("y ~ I(a & b)", "`&`, a logical and, has no counterpart"),
        ("y ~ I(!a)", "`!`, a logical not"),
        ("y ~ df$x", r"`\$`, access to a part"),
        ("y ~ x[1]", r"`\[`, indexing"),
        ("y ~ rms::rcs(x)", "`::`, a package's function"),
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


# What `fit` reads as it is, in R's words.
RS_HABITS = [
    "y ~ I(x^2) + I(2^-whole) + I(whole^-1)",
    "y ~ factor(whole) + as.factor(g)",
    "y ~ `größe x` + log(`größe x`^2)",
    "y ~ poly(x, 2, raw = TRUE)",
    "y ~ ns(x, df = 3) + z",
    "y ~ splines::ns(x, 5)",
    "y ~ ns(x, df = 4, intercept = TRUE) - 1",
    "y ~ ns(x, knots = c(1, 1.5))",
    "y ~ ns(x)",
    "y ~ bs(x, df = 5)",
    "y ~ bs(x, knots = c(1, 1.5), degree = 2)",
    "y ~ bs(x, df = 5, intercept = TRUE) - 1",
    "y ~ cut(x, 3)",
    "y ~ cut(x, breaks = c(0.5, 1, 1.5, 2)) - 1",
    "y ~ cut(x, c(-Inf, 1, Inf)) + cut(z, c(0, 1, 2), right = FALSE)",
    "y ~ cut(whole, c(1, 4, 8), include.lowest = TRUE)",
    "y ~ log(x, 2) + log(z, base = 10) + log(x, 3)",
    "y ~ g + x %in% g",
    "y ~ (x + z + g)^2 - x:z",
    "y ~ x^2",
    "y ~ I(whole %% 3) + I(whole %/% 2)",
    "y ~ x + z - 1",
    "y ~ ifelse(x > 1, z, 0) + pmax(x, z) + ceiling(x) + atan(z)",
    "y ~ x*g + I(pi*z)",
]


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
        "y ~ scale(x) + scale(z, scale = FALSE)",
        *RS_HABITS,
    ],
)
def test_the_model_matrix_is_rs(session, formula):
    data = formula_data()
    expected = rs_matrix(session, formula, data)
    assert_same_columns(translate_formula(formula), data, expected)


@pytest.mark.r
@pytest.mark.parametrize("formula", RS_HABITS)
def test_fit_reads_rs_words_as_r_does(session, formula):
    data = formula_data()
    assert_same_columns(formula, data, rs_matrix(session, formula, data))


@pytest.mark.r
@pytest.mark.parametrize(
    "formula",
    [
        "~ ns(x, df = 4)",
        "~ ns(x, knots = c(1, 1.5), intercept = TRUE) - 1",
        "~ poly(x, 3)",
        "~ scale(x)",
    ],
)
def test_new_data_are_coded_as_r_does(session, formula):
    """Also beyond the range of the data that were fitted."""
    data = formula_data()
    new = pd.DataFrame({"x": [0.9, 1.3, 1.8, -1.0, 4.0]})
    expected = session.call(
        """function(text, data, new) {
          library(splines)
          terms <- attr(model.frame(as.formula(text), data), "terms")
          unclass(model.matrix(terms, model.frame(terms, new)))
        }""",
        formula,
        to_r_frame(data),
        to_r_frame(new),
    )
    text = translate_formula(f"y {formula}")
    found = parse(text, data, environment=None, intercept=True).coding.matrix(new)
    assert_allclose(_sorted(found), _sorted(expected), rtol=1e-9, atol=1e-10)


@pytest.mark.r
def test_labels_of_intervals_are_rs(session):
    rng = np.random.default_rng(3)
    for scale in (1e-7, 1e-3, 1.0, 123.4, 1e6, 1e12):
        x = rng.normal(size=40) * scale + scale * 1000 * (scale == 1.0)
        for right in (True, False):
            code = "function(x, right) levels(cut(x, 4, right = right))"
            expected = session.call(code, x, right)
            assert list(cut(x, 4, right=right).categories) == list(expected)


@pytest.mark.r
def test_ordered_factors_have_rs_polynomials_where_they_are_asked_for(session):
    data = formula_data()
    codes = data["whole"].to_numpy() % 4
    levels = ["a", "b", "c", "d"]
    data["o"] = pd.Categorical.from_codes(codes, levels, ordered=True)
    expected = rs_matrix(session, "y ~ o + x", data)
    assert_same_columns("y ~ C(o, Poly) + x", data, expected)


def rs_matrix(session, formula, data):
    """R's model matrix."""
    return session.call(
        """function(text, data) {
          library(splines)
          unclass(model.matrix(as.formula(text), data))
        }""",
        formula,
        to_r_frame(data),
    )


def assert_same_columns(formula, data, expected):
    ours = parse(formula, data, environment=None, intercept=True).X
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
