"""randomForest's corners: bias correction, and ordered factors given as x and y."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import r_bridge
import vstatkit as vs
from r_bridge.convert import to_r_frame

pytestmark = pytest.mark.r


def grown(session, data, code):
    """Grow a forest in R; `x` and `y` are the data's predictors and response."""
    text = (
        "function(data) { set.seed(3); x <- data[names(data) != 'y']; y <- data$y; "
        f"suppressWarnings({code}) }}"
    )
    return session.keep(text, to_r_frame(data))


def predictions(session, forest, data):
    code = "function(forest, new) as.numeric(predict(forest, new))"
    return session.call(code, forest, to_r_frame(data))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bias_correction_reaches_mean_and_variance(random_forest, seed):
    data = vs.datasets.mars(60, rng=seed)[["x1", "x2", "x3", "y"]]
    code = "randomForest::randomForest(x, y, ntree = 80, keep.inbag = TRUE"
    forest = grown(random_forest, data, f"{code}, corr.bias = TRUE)")
    plain = grown(random_forest, data, f"{code})")
    line = random_forest.call("function(forest) forest$coefs", forest)
    res = r_bridge.from_randomforest(forest, data, data.head(10))
    theirs = predictions(random_forest, forest, data.head(10))
    assert_allclose(res.params, theirs, rtol=1e-12)
    # The same seed grows the same trees; correction is a line through their values.
    without = r_bridge.from_randomforest(plain, data, data.head(10))
    assert_allclose(res.params, line[0] + line[1] * without.params, rtol=1e-10)
    assert_allclose(res.bse, abs(line[1]) * without.bse, rtol=1e-8)
    assert abs(line[1] - 1) > 1e-3
    assert_allclose(res.predict(data.head(3)), theirs[:3], rtol=1e-12)
    with pytest.raises(ValueError, match="not what this forest was fitted to"):
        r_bridge.from_randomforest(forest, data[::-1], data.head(2))


@pytest.mark.parametrize("call", ["randomForest(x, y", "randomForest(y ~ ., data"])
@pytest.mark.parametrize("text", [False, True])
def test_ordered_factors_are_read_as_r_reads_them(random_forest, call, text):
    data = vs.datasets.mars(60, rng=1)[["x1", "y"]]
    levels = ["lo", "mid", "hi"]
    codes = np.arange(60) % 3
    order = pd.Categorical.from_codes(codes, levels, ordered=True)
    data = data.assign(order=order, y=data["y"] + 3 * (codes == 1))
    if text:
        kinds = pd.Categorical(np.where(data["x1"] > 0.4, "u", "v"))
        data = data.assign(kind=kinds)
    code = f"randomForest::{call}, ntree = 50, keep.inbag = TRUE)"
    forest = grown(random_forest, data, code)
    points = data.iloc[[0, 1, 2, 10]]
    expected = predictions(random_forest, forest, points)
    res = r_bridge.from_randomforest(forest, data, points)
    assert_allclose(res.params, expected, rtol=1e-12)
    assert np.ptp(expected) > 0
    # Query points need not have all levels, nor their order.
    few = points.head(2).astype({"order": object})
    assert_allclose(res.predict(few), expected[:2], rtol=1e-12)
