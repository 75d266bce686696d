import pandas as pd
import pytest

from vstatkit import datasets


@pytest.mark.parametrize(
    ("name", "shape", "response"),
    [
        ("diabetes", (442, 11), "target"),
        ("iris", (150, 5), "species"),
        ("breast_cancer", (569, 31), "diagnosis"),
        ("digits", (1797, 65), "digit"),
        ("mars", (500, 6), "y"),
    ],
)
def test_data_sets_have_their_shape_and_plain_names(name, shape, response):
    frame = datasets.LOADERS[name]()
    assert frame.shape == shape
    assert response in frame
    assert all(column.isidentifier() for column in frame.columns)


def test_predictors_of_diabetes_have_units_or_are_scaled():
    raw, scaled = datasets.diabetes(), datasets.diabetes(scaled=True)
    assert raw["age"].between(19, 79).all()
    assert raw["bmi"].between(18, 42.2).all()
    pd.testing.assert_series_equal(raw["target"], scaled["target"])
    centred = raw.drop(columns="target") - raw.drop(columns="target").mean()
    one = centred / (centred**2).sum() ** 0.5
    pd.testing.assert_frame_equal(one, scaled.drop(columns="target"), rtol=1e-6)


def test_classes_are_categories():
    species = datasets.iris()["species"]
    assert isinstance(species.dtype, pd.CategoricalDtype)
    assert list(species.cat.categories) == ["setosa", "versicolor", "virginica"]


def test_mars_is_reproducible_and_takes_the_papers_offset():
    one, two = datasets.mars(5, rng=1), datasets.mars(5, rng=1, offset=0.05)
    pd.testing.assert_frame_equal(one, datasets.mars(5, rng=1))
    moved = 20 * ((two["x3"] - 0.05) ** 2 - (one["x3"] - 0.5) ** 2)
    pd.testing.assert_series_equal(two["y"] - one["y"], moved, check_names=False)
