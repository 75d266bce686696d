import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from statsmodels.iolib.summary2 import summary_col

import vstatkit as vs


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=4).assign(g=np.tile(list("abc"), 20))
    return frame.set_index(np.arange(100, 160))


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4", data, B=120, rng=1)


def out_of_bag(res, data):
    """Average the learners that have not seen a row, row by row."""
    seen = res.design.counts(0, res.B) > 0
    values = vs.fit(res.formula, data, B=res.B, k=res.k, rng=res.seed, at=data).values
    return [values[~seen[:, i], i].mean() for i in range(len(data))]


def test_fitted_values_are_out_of_bag(res, data):
    assert_allclose(res.fittedvalues, out_of_bag(res, data), rtol=1e-10)
    assert res.fittedvalues.index.equals(data.index)
    assert res.fittedvalues.name == "y"
    assert_allclose(res.resid, data["y"] - res.fittedvalues)


def test_r_squared_is_that_of_the_residuals(res, data):
    spread = data["y"] - data["y"].mean()
    assert_allclose(res.rsquared, 1 - (res.resid**2).sum() / (spread**2).sum())


def test_without_data_the_training_rows_are_predicted(res, data):
    pd.testing.assert_series_equal(res.predict(), res.predict(data))
    frame = res.get_prediction().summary_frame()
    pd.testing.assert_frame_equal(frame, res.get_prediction(data).summary_frame())
    assert not np.allclose(res.predict(), res.fittedvalues)


def test_dropped_rows_are_not_predicted(data):
    gaps = data.assign(x1=data["x1"].mask(data.index == 103))
    res = vs.fit("y ~ x1", gaps, B=40, rng=1)
    for found in (res.predict(), res.fittedvalues, res.resid):
        assert found.index.equals(data.index.drop(103))


@pytest.mark.parametrize("formula", ["g ~ x1 + x4", "h ~ x1 + x4"])
def test_classes_have_probabilities(data, formula):
    data = data.assign(h=np.where(data["y"] > data["y"].median(), "yes", "no"))
    res = vs.fit(formula, data, B=80, rng=1)
    fitted, resid = res.fittedvalues, res.resid
    observed = data[formula[0]]
    if formula[0] == "g":
        assert list(fitted.columns) == list("abc")
        assert_allclose(fitted.sum(axis=1), 1)
        assert_allclose(resid + fitted, pd.get_dummies(observed).astype(float))
    else:
        assert_allclose(resid + fitted, observed == "yes")


def test_rows_never_out_of_bag_are_missing(data):
    few = vs.fit("y ~ x1", data.head(10), k=9, replace=False, B=3, rng=1)
    never = (few.design.counts(0, 3) > 0).all(axis=0)
    assert never.any()
    assert_allclose(few.fittedvalues.isna(), never)


def test_the_model_has_statsmodels_names(res, data):
    assert res.formula == "y ~ x1 + x4"
    assert res.model.formula == "y ~ x1 + x4"
    assert res.model.endog_names == "y"
    assert res.model.exog_names == ["x1", "x4"]
    assert res.model.data.param_names == ["typical"]
    one = vs.statistic("mean", data["y"], k=5, B=20, rng=1)
    assert one.formula is None
    assert one.model.exog_names == ["mean"]


def test_statsmodels_puts_it_beside_its_own(res, data):
    line = smf.ols("y ~ x1 + x4", data).fit()
    slopes, effects = res.avg_slopes(), res.avg_effects(["x4"])
    text = str(summary_col([line, res, slopes, effects]))
    assert f"{res.params.item():.4f}" in text
    assert f"({res.bse.item():.4f})" in text
    assert f"{res.rsquared:.4f}" in text
    assert f"{slopes.params['x4']:.4f}" in text
    assert f"({slopes.bse['x4']:.4f})" in text
    ends = effects.frame.iloc[0]
    assert f"x4: {ends['from']:.4g} → {ends['to']:.4g}" in text
    assert effects.nobs == res.nobs


def test_without_training_rows_it_says_so(res, tmp_path):
    res.save(tmp_path / "fit.npz")
    loaded = vs.load(tmp_path / "fit.npz")
    for ask in (loaded.predict, loaded.get_prediction):
        with pytest.raises(ValueError, match="have no training data"):
            ask()
    for name in ("fittedvalues", "resid"):
        with pytest.raises(ValueError, match="they were loaded from a file"):
            getattr(loaded, name)
    assert loaded.rsquared == res.rsquared


def test_what_predicts_nothing_says_so(data):
    mean = vs.statistic("mean", data["y"], k=5, B=20, rng=1)
    with pytest.raises(ValueError, match="no learners that predict"):
        mean.predict()
    with pytest.raises(ValueError, match="nothing was predicted out of bag"):
        _ = mean.fittedvalues
    assert not hasattr(mean, "rsquared")
    classes = vs.fit("g ~ x1", data, B=20, rng=1)
    with pytest.raises(AttributeError, match="requires a numeric response"):
        _ = classes.rsquared
