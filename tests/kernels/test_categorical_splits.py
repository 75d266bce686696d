"""Unordered factors in `fit`, split by their levels and not by indicators."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs

LEVELS = list("abcdefgh")
HEIGHTS = dict(zip(LEVELS, (3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.0, 6.0), strict=True))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    g = rng.permutation(np.repeat(LEVELS, 10))
    frame = pd.DataFrame({"g": g, "x": rng.normal(size=80)})
    return frame.assign(y=frame["g"].map(HEIGHTS) + rng.normal(scale=0.1, size=80))


def test_a_stump_parts_the_levels_by_their_means(data):
    """The best of the 127 ways to part eight levels, found by trying all of them."""
    res = vs.fit(
        "y ~ g", data, kernel="tree", k=80, replace=False, B=2, max_depth=1, rng=1,
        categorical_splits=True, variance="bm", at={"g": LEVELS},
    )  # fmt: skip
    best = None
    y = data["y"].to_numpy()
    for mask in range(1, 2**7):
        left = data["g"].isin([one for j, one in enumerate(LEVELS) if mask >> j & 1])
        sides = y[left], y[~left]
        loss = sum(((side - side.mean()) ** 2).sum() for side in sides)
        if best is None or loss < best[0]:
            best = loss, [y[left == bool(mask >> j & 1)].mean() for j in range(8)]
    assert_allclose(res.params, best[1])


def test_effects_and_new_data_name_levels(data, tmp_path):
    res = vs.fit("y ~ g + x", data, B=100, rng=1, categorical_splits=True)
    assert list(res.effects.loc["g", "to"]) == LEVELS[1:]
    found = res.predict({"g": ["f", "e"], "x": [0.0, 0.0]})
    assert found.iloc[0] > 7
    assert found.iloc[1] < -3
    with pytest.raises(vs.FormulaError, match="'z'"):
        res.predict({"g": ["z"], "x": [0.0]})
    res.save(tmp_path / "whole.vst")
    loaded = vs.load(tmp_path / "whole.vst")
    assert str(loaded.summary()) == str(res.summary())
    assert_array_equal(loaded.predict(data), res.predict(data))


def test_factors_of_many_levels_are_indicators_unless_asked(data):
    plain = vs.fit("y ~ g + x", data, B=20, rng=1)
    told = vs.fit("y ~ g + x", data, B=20, rng=1, categorical_splits=False)
    whole = vs.fit("y ~ g + x", data, B=20, rng=1, categorical_splits=True)
    assert_array_equal(plain.values, told.values)
    assert plain.predictor.kernel.n_features == 9
    assert whole.predictor.kernel.n_features == 2
    assert whole.predictor.kernel.levels == (8, 0)


def test_the_option_is_checked(data):
    with pytest.raises(TypeError, match="must be True, False or None"):
        vs.fit("y ~ g", data, categorical_splits=2)
    with pytest.raises(TypeError, match="has no option 'categorical_splits'"):
        vs.fit("y ~ g", data, kernel="ols", categorical_splits=True)
