"""Orthogonal polynomials in formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.formula.parse import parse
from vstatkit.formula.transforms import poly


def test_columns_are_orthonormal_and_sum_to_zero(rng):
    z = poly(rng.normal(5, 3, 50), 4)
    assert_allclose(z.T @ z, np.eye(4), atol=1e-12)
    assert_allclose(z.sum(axis=0), 0, atol=1e-12)


def test_columns_are_the_qr_factor_of_powers(rng):
    x = rng.normal(size=30)
    q, r = np.linalg.qr(np.vander(x - x.mean(), 4, increasing=True))
    assert_allclose(poly(x, 3), (q * np.sign(np.diag(r)))[:, 1:], atol=1e-12)


def test_raw_columns_are_powers():
    assert_allclose(poly(np.array([1.0, 2.0, 3.0]), 2, raw=True)[:, 1], [1, 4, 9])


def test_new_data_are_coded_as_the_training_data_were(rng):
    data = vs.datasets.mars(40, rng=1)
    design = parse("y ~ poly(x1, 3)", data, environment=None, intercept=False)
    again = design.coding.matrix(data.iloc[[3, 20]])
    assert_allclose(again, design.X[[3, 20]], rtol=1e-10)


def test_rows_with_missing_values_are_left_out_before():
    data = vs.datasets.mars(40, rng=1)
    holed = data.copy()
    holed.loc[7, "x1"] = np.nan
    fits = [
        parse("y ~ poly(x1, 2)", one, environment=None, intercept=False).X
        for one in (holed, data.drop(index=7))
    ]
    assert_allclose(*fits)


def test_saved_results_predict_with_polynomials(tmp_path):
    data = vs.datasets.mars(60, rng=1)
    res = vs.fit("y ~ poly(x1, 2) + x4", data, B=50, rng=1)
    res.save(tmp_path / "fit.npz")
    again = vs.load(tmp_path / "fit.npz")
    assert_allclose(again.predict(data.head(3)), res.predict(data.head(3)))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ poly(x1, 0)", "degree of at least 1; got 0"),
        ("y ~ poly(x1, 1.5)", "whole number as degree; got 1.5"),
        ("y ~ poly(x1, 12)", "more distinct values than its degree 12"),
        ("y ~ poly(C(x1), 2)", "poly"),
    ],
)
def test_polynomials_that_cannot_be_made(formula, message):
    with pytest.raises(vs.FormulaError, match=message):
        vs.fit(formula, vs.datasets.mars(10, rng=1), B=10)
