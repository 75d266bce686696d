"""Variance estimators side by side."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.variance.registry import ESTIMATORS

COLUMNS = ["estimate", "sampling", "se", "se_mc_error", "df", "ci_lower", "ci_upper"]


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(80, rng=4)
    return frame.assign(kind=np.array(["a", "b", "c"])[np.arange(80) % 3])


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4", data, B=400, rng=1, at=data.head(2), variance="ij_u")


def test_every_number_is_the_estimators_own(res):
    comparison = res.compare_variance(alpha=0.1)
    frame = comparison.frame
    assert list(frame.columns) == COLUMNS
    assert frame.index.names == [None, "estimator"]
    assert comparison.chosen == "ij_u"
    for name in comparison.estimators:
        other = res.with_variance(name)
        one = frame.xs(name, level="estimator")
        assert one.index.equals(other.labels)
        assert_array_equal(one["estimate"], other.params)
        assert_array_equal(one["sampling"], other.components.sampling)
        error = other.components.mc_se / (2 * other.bse)
        np.testing.assert_allclose(one["se_mc_error"], error, rtol=1e-12)
        assert_array_equal(one["se"], other.bse)
        assert_array_equal(one["df"], other.df)
        assert_array_equal(one[["ci_lower", "ci_upper"]], other.conf_int(0.1))


def test_all_estimators_are_shown_or_left_out_with_a_reason(res):
    comparison = res.compare_variance()
    assert set(comparison.estimators) | set(comparison.left_out) == set(ESTIMATORS)
    assert not set(comparison.estimators) & set(comparison.left_out)
    assert {"ij", "ij_u", "jackknife", "corrected_v"} <= set(comparison.estimators)
    assert "without replacement" in comparison.left_out["corrected_u"]
    assert "design='two-level'" in comparison.left_out["im"]


@pytest.mark.parametrize(
    ("options", "included", "excluded"),
    [
        ({"replace": False}, "corrected_u", "corrected_v"),
        ({"design": "two-level"}, "im", "ij"),
        ({"design": "little-bags"}, "little_bags", "jackknife"),
        ({"design": "matched", "replace": False, "k": 30}, "matched", "corrected_u"),
        ({"k": 2000, "kernel": "ols"}, "ij", "jackknife"),
    ],
)
def test_the_design_decides(data, options, included, excluded):
    comparison = vs.fit("y ~ x1", data, B=400, rng=1, **options).compare_variance()
    assert included in comparison.estimators
    assert excluded in comparison.left_out


def test_it_prints_as_a_compact_table(res):
    text = str(res.compare_variance())
    lines = text.splitlines()
    assert "Variance estimators" in lines[0]
    assert max(map(len, lines)) <= 80
    assert sum("ij_u *" in line for line in lines) == 2
    assert "Not applicable: " in text
    assert "not shown" not in text
    html = res.compare_variance()._repr_html_()
    assert "ij_u *" in html
    assert "<table" in html
    assert "tabular" in res.compare_variance().summary().as_latex()
    assert "2 estimates by" in repr(res.compare_variance())


def test_negative_variances_are_shown_as_such():
    data = vs.datasets.mars(200, rng=1)
    res = vs.fit("y ~ .", data, B=60, rng=1, at=data.head(40))
    frame = res.compare_variance().frame["sampling"].xs("corrected_v", level=1)
    assert (frame < 0).any()
    worst = res.t_test(np.eye(40)[[frame.argmin()]])
    assert f"{worst.components.sampling.item():.2f}"[:4] in str(
        worst.compare_variance()
    )


def test_many_estimates_are_cut_and_predictions_compared(res, data):
    prediction = res.get_prediction(data)
    comparison = prediction.compare_variance()
    assert len(comparison.frame) == 80 * len(comparison.estimators)
    chosen = comparison.frame.xs("ij_u", level="estimator")
    np.testing.assert_allclose(chosen["se"], prediction.se_mean, rtol=1e-10)
    shown = 2 * (40 // len(comparison.estimators) // 2)
    text = str(comparison)
    assert text.count("ij_u *") == shown
    assert f"{80 - shown} estimates are not shown" in text


def test_classes_keep_their_labels(data):
    comparison = vs.fit("kind ~ x1", data, B=300, rng=1).compare_variance()
    assert comparison.frame.index.names == ["point", "class", "estimator"]
    assert "typical [b]" in str(comparison)


def test_ensembles_of_others_and_complete_ones(res):
    counts = np.asarray(res.design.counts(0, 400))
    given = vs.from_arrays(counts, res.values, replace=True).compare_variance()
    assert "compares groups of learners" in given.left_out["im"]
    ours = res.compare_variance()
    # Trees of our own are compared on rows of their own beyond the first order.
    kept = [name for name in given.estimators if name != "hoeffding"]
    same = given.frame.index.get_level_values("estimator").isin(kept)
    np.testing.assert_allclose(
        given.frame["sampling"][same], ours.frame["sampling"][same], rtol=1e-9
    )
    complete = vs.statistic(
        "gini", np.arange(8.0) ** 2, k=2, B="complete", replace=False
    ).compare_variance()
    assert (complete.frame["se_mc_error"] == 0).all()


def test_the_picture_shows_every_interval(res):
    comparison = res.compare_variance()
    ax = comparison.plot()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["0", *comparison.estimators, "1", *comparison.estimators]
    drawn = np.concatenate(
        [np.array(lines.get_segments())[:, :, 0] for lines in ax.collections[::2]]
    )
    assert_array_equal(drawn, comparison.frame[["ci_lower", "ci_upper"]])
    low, high = ax.get_xlim()
    assert low < drawn.min() < drawn.max() < high
    plt.close("all")
    _, own = plt.subplots()
    assert comparison.plot(own) is own
    plt.close("all")
