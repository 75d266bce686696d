"""Sets of classes are data frames that have a picture."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.results.class_sets import probable_classes


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def prediction():
    data = vs.datasets.iris()
    res = vs.fit("species ~ petal_length + petal_width", data, B=100, rng=1)
    return res.get_prediction(data.iloc[[0, 60, 77, 83, 133]])


def made(shares, least, classes, alpha=0.1):
    index = pd.RangeIndex(len(shares))
    return probable_classes(np.array(shares), np.array(least), index, classes, alpha)


def marks(ax):
    (line,) = ax.lines
    return set(zip(line.get_ydata() - 0.5, line.get_xdata() - 0.5, strict=True))


def texts(labels):
    return [one.get_text() for one in labels]


@pytest.mark.parametrize("by_class", [False, True])
def test_members_are_marked_and_probabilities_are_shades(prediction, by_class):
    sets = prediction.class_sets(0.05, by_class=by_class)
    ax = sets.plot()
    assert marks(ax) == set(zip(*np.nonzero(sets.to_numpy()), strict=True))
    assert 0 < len(marks(ax)) < sets.size
    (shades,) = ax.collections
    mean = prediction.predicted_mean.to_numpy().reshape(5, 3)
    np.testing.assert_array_equal(shades.get_array(), mean)
    assert shades.get_clim() == (0, 1)
    assert texts(ax.get_yticklabels()) == ["0", "60", "77", "83", "133"]
    top, bottom = ax.transData.transform([(0, 0.5), (0, 4.5)])[:, 1]
    assert top > bottom
    assert texts(ax.get_legend().get_texts()) == ["in the set (95%)"]


def test_thresholds_are_named_once_or_by_class():
    shares = [[0.7, 0.3], [0.2, 0.8]]
    one = made(shares, [0.31, 0.31], ["a", "b"]).plot()
    assert one.get_xlabel() == "class, in a set from a probability of 0.31 on"
    assert texts(one.get_xticklabels()) == ["a", "b"]
    assert marks(one) == {(0, 0), (1, 1)}
    two = made(shares, [0.2, 0.4], ["$a_{$", "$b_{$"]).plot()
    assert two.get_xlabel() == "class, in a set from this probability on"
    assert texts(two.get_xticklabels()) == ["$a_{$\n0.20", "$b_{$\n0.40"]
    assert marks(two) == {(0, 0), (1, 0), (1, 1)}
    two.figure.canvas.draw()


def test_the_row_that_a_threshold_comes_from_is_in():
    share = 0.003
    least = 1 - (1 - share)
    assert least > share  # by rounding
    assert made([[share, 0]], [least, 1], ["a", "b"])["a"].tolist() == [True]


def test_of_many_rows_the_first_are_drawn_and_that_is_said():
    shares = np.tile([0.1, 0.9], (41, 1))
    ax = made(shares, [0.5, 0.5], ["a", "b"]).plot()
    assert ax.get_ylabel() == "the first 40 of 41 rows"
    assert len(marks(ax)) == 40
    assert texts(ax.get_yticklabels()) == [str(row) for row in range(40)]
    assert made(shares[:40], [0.5, 0.5], ["a", "b"]).plot().get_ylabel() == ""


def test_long_names_of_classes_are_turned():
    names = ["a" * 20, "b" * 20]
    straight = made([[0.4, 0.6]], [0.5, 0.5], names).plot()
    assert {one.get_rotation() for one in straight.get_xticklabels()} == {0}
    turned = made([[0.4, 0.6, 0]], [0.5] * 3, [*names, "c" * 20]).plot()
    assert {one.get_rotation() for one in turned.get_xticklabels()} == {45}


def test_sets_are_drawn_on_given_axes(prediction):
    ax = plt.subplots()[1]
    assert prediction.class_sets().plot(ax) is ax


def test_sets_are_data_frames(prediction):
    sets = prediction.class_sets(0.05)
    assert isinstance(sets, pd.DataFrame)
    assert type(sets.head(2)) is pd.DataFrame
    assert sets.head(2).attrs == sets.attrs
    other = pickle.loads(pickle.dumps(sets))
    pd.testing.assert_frame_equal(other, sets)
    assert marks(other.plot()) == marks(sets.plot())


def test_a_picture_is_of_the_sets_as_they_were_made(prediction):
    sets = prediction.class_sets(0.05)
    before = marks(sets.plot())
    sets.insert(0, "size", sets.sum(axis=1))
    assert marks(sets.plot()) == before


def test_classes_may_have_the_names_of_attributes():
    sets = made([[0.7, 0.3]], [0.5, 0.5], ["alpha", "probabilities"], 0.2)
    assert sets["alpha"].tolist() == [True]
    assert sets.alpha == 0.2
    assert sets.probabilities.shape == (1, 2)
