"""Sets of classes are data frames that have a picture."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.results.prediction_results import probable_classes


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
    for other in (sets.astype(int), sets.mean().to_frame()):
        assert type(other) is pd.DataFrame
    assert sets.head(2).attrs == sets.attrs
    other = pickle.loads(pickle.dumps(sets))
    pd.testing.assert_frame_equal(other, sets)
    assert marks(other.plot()) == marks(sets.plot())


PARTS = {
    "head": (lambda s: s.head(2), [0, 1]),
    "tail": (lambda s: s.tail(2), [3, 4]),
    "slice": (lambda s: s[1:3], [1, 2]),
    "places": (lambda s: s.iloc[[4, 0]], [4, 0]),
    "labels": (lambda s: s.loc[[83, 60]], [3, 1]),
    "those of several": (lambda s: s[s.sum(axis=1) > 1], None),
    "copy": (lambda s: s.copy(), [0, 1, 2, 3, 4]),
    "sorted": (lambda s: s.sort_index(ascending=False), [4, 3, 2, 1, 0]),
}


@pytest.mark.parametrize("case", PARTS)
def test_rows_of_sets_have_their_picture(prediction, case):
    sets = prediction.class_sets(0.05)
    choose, places = PARTS[case]
    if places is None:
        places = np.flatnonzero(sets.to_numpy().sum(axis=1) > 1)
    ax = choose(sets).plot()
    np.testing.assert_array_equal(
        ax.collections[0].get_array(), sets.probabilities.to_numpy()[places]
    )
    chosen = sets.to_numpy()[places]
    assert marks(ax) == set(zip(*np.nonzero(chosen), strict=True))
    assert texts(ax.get_yticklabels()) == [str(sets.index[row]) for row in places]


def test_classes_of_sets_have_their_picture():
    sets = made([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [0.2, 0.4, 0.5], ["a", "b", "c"])
    ax = sets[["c", "a"]].head(1).plot()
    assert texts(ax.get_xticklabels()) == ["a\n0.20", "c\n0.50"]
    np.testing.assert_array_equal(ax.collections[0].get_array(), [[0.6, 0.1]])
    assert marks(ax) == {(0, 0)}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: ~s,
        lambda s: s.T,
        lambda s: s.rename(index={0: 7}),
        lambda s: s.rename(columns=str.upper),
        lambda s: pd.concat([s, ~s]),
    ],
)
def test_what_is_no_row_of_sets_says_so(change):
    sets = made([[0.6, 0.4], [0.2, 0.8]], [0.5, 0.5], ["a", "b"])
    with pytest.raises(ValueError, match=r"get_prediction\(rows\).class_sets\(\).plot"):
        change(sets).plot()


def test_rows_whose_labels_repeat_are_not_guessed():
    shares, labels = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), pd.Index([0, 0, 1])
    sets = probable_classes(shares, np.array([0.5, 0.5]), labels, ["a", "b"], 0.1)
    np.testing.assert_array_equal(sets.plot().collections[0].get_array(), shares)
    np.testing.assert_array_equal(
        sets.tail(1).plot().collections[0].get_array(), shares[2:]
    )
    for part in (sets.tail(2), sets.iloc[[0, 1]], sets.iloc[[2, 1, 0]]):
        with pytest.raises(ValueError, match="their labels repeat"):
            part.plot()


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
