import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vstatkit.ensemble.oob_scores import Scores, score

Y = np.array([1.0, 4.0, 2.0, 7.0, 5.0])
FITTED = np.array([1.5, 3.0, np.nan, 6.0, 5.5])


def test_numeric_responses_are_scored_where_they_were_out_of_bag():
    scores = score(Y, FITTED[:, None], None)
    residuals = [-0.5, 1.0, 1.0, -0.5]
    squares = sum(r**2 for r in residuals)
    spread = sum((y - 17 / 4) ** 2 for y in (1, 4, 7, 5))
    assert scores.n_scored == 4
    assert_allclose(scores.residuals, residuals)
    assert list(scores.table) == ["OOB R-squared", "OOB RMSE"]
    assert scores.table["OOB RMSE"] == pytest.approx(math.sqrt(squares / 4))
    assert scores.table["OOB R-squared"] == pytest.approx(1 - squares / spread)


def test_a_constant_response_has_no_r_squared():
    scores = score(np.full(3, 2.0), np.array([[1.0], [2.0], [3.0]]), None)
    assert list(scores.table) == ["OOB RMSE"]
    assert scores.table["OOB RMSE"] == pytest.approx(math.sqrt(2 / 3))


def test_a_response_that_hardly_varies_has_an_r_squared():
    y = np.array([0.0, 1e-3, 0.0])
    assert score(y, y[:, None], None).table["OOB R-squared"] == 1.0


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_nothing_out_of_bag_is_nothing_scored(n_classes):
    columns = 3 if n_classes == 3 else 1
    scores = score(np.zeros(4), np.full((4, columns), np.nan), n_classes)
    assert scores.table == {}
    assert scores.residuals.shape == (0,)
    assert scores.n_scored == 0
    assert scores.interval_offsets(0.05) is None


def test_two_classes_are_scored_by_the_share_of_the_second():
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    second = np.array([0.2, 0.7, 0.4, np.nan, 0.9])
    scores = score(y, second[:, None], 2)
    logs = [math.log(p) for p in (0.8, 0.7, 0.4, 0.9)]
    assert list(scores.table) == ["OOB accuracy", "OOB log-loss"]
    assert scores.table["OOB accuracy"] == 3 / 4
    assert scores.table["OOB log-loss"] == pytest.approx(-sum(logs) / 4)
    assert scores.n_scored == 4
    assert scores.residuals.shape == (0,)


def test_many_classes_are_scored_by_the_share_of_their_own():
    y = np.array([2.0, 0.0, 1.0, 2.0])
    shares = np.array([[0.1, 0.3, 0.6], [0.5, 0.2, 0.3], [0.4, 0.35, 0.25], [0, 1, 0]])
    shares[3] = np.nan
    scores = score(y, shares, 3)
    logs = [math.log(p) for p in (0.6, 0.5, 0.35)]
    assert scores.table["OOB accuracy"] == pytest.approx(2 / 3)
    assert scores.table["OOB log-loss"] == pytest.approx(-sum(logs) / 3)
    assert scores.n_scored == 3


def test_scores_are_plain_numbers():
    """They print as numbers, and are written to files as such."""
    numeric = score(Y, FITTED[:, None], None)
    classes = score(np.array([0.0, 1.0]), np.array([[0.2], [0.7]]), 2)
    numbers = [*numeric.table.values(), *classes.table.values()]
    assert {type(x) for x in numbers} == {float}
    assert {type(x) for x in numeric.interval_offsets(0.5)} == {float}
    assert {type(x.n_scored) for x in (numeric, classes)} == {int}


@pytest.mark.parametrize("share", [0.0, 1e-30, 2.0**-53])
def test_a_share_of_nothing_costs_a_bounded_log_loss(share):
    """Shares are taken as no less than the spacing of numbers at one, 2**-52."""
    table = score(np.array([1.0]), np.array([[share]]), 2).table
    assert table["OOB log-loss"] == pytest.approx(52 * math.log(2), rel=1e-14)
    assert table["OOB accuracy"] == 0.0


@pytest.mark.parametrize("share", [2.0**-51, 1e-10, 1.0])
def test_other_shares_are_taken_as_they_are(share):
    table = score(np.array([1.0]), np.array([[share]]), 2).table
    assert table["OOB log-loss"] == pytest.approx(-math.log(share), rel=1e-14)


@pytest.mark.parametrize(
    ("n", "alpha", "rank"),
    [
        (39, 0.05, 1),
        (38, 0.05, None),
        (78, 0.05, 1),
        (79, 0.05, 2),
        (19, 0.1, 1),
        (3, 0.5, 1),
        (4, 0.5, 1),
        (6, 0.5, 1),
        (7, 0.5, 2),
        (1, 0.99, None),
        (2, 0.7, 1),
    ],
)
def test_offsets_are_order_statistics(n, alpha, rank):
    """The greatest rank r with r <= (n + 1) alpha / 2, from either end."""
    residuals = np.random.default_rng(n).permutation(np.arange(1.0, n + 1)) ** 2
    offsets = Scores({}, residuals, n).interval_offsets(alpha)
    if rank is None:
        assert offsets is None
    else:
        assert offsets == (rank**2, (n + 1 - rank) ** 2)


def test_offsets_enclose_a_new_residual_as_often_as_they_say():
    """With (n + 1) alpha / 2 a whole number the coverage is 1 - alpha exactly."""
    rng, n, alpha, runs = np.random.default_rng(6), 9, 0.4, 4000
    hits = 0
    for draw in rng.exponential(size=(runs, n + 1)):
        low, high = Scores({}, draw[:n], n).interval_offsets(alpha)
        hits += low <= draw[n] <= high
    # Four binomial standard errors; the quantiles of n in place of n + 1 would
    # cover 2/3 or more.
    assert hits / runs == pytest.approx(1 - alpha, abs=4 * math.sqrt(0.24 / runs))


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_scores_are_weighted(scale):
    """A weighted row counts as that many rows."""
    weights = np.array([3.0, 1.0, 5.0, 0.0, 2.0])
    places = np.repeat(np.arange(5), weights.astype(int))
    found = score(Y, FITTED[:, None], None, scale * weights)
    wanted = score(Y[places], FITTED[places, None], None)
    assert found.table == pytest.approx(wanted.table, rel=1e-12)
    assert found.n_scored == 4
    assert_allclose(found.residuals, score(Y, FITTED[:, None], None).residuals)
    codes = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    second = np.array([[0.2], [0.7], [np.nan], [0.6], [0.3]])
    found = score(codes, second, 2, scale * weights)
    assert found.table == pytest.approx(score(codes[places], second[places], 2).table)
    assert found.table["OOB accuracy"] == pytest.approx(4 / 6)


def test_equal_weights_change_no_score():
    same = score(Y, FITTED[:, None], None, np.full(5, 0.3)).table
    assert same == score(Y, FITTED[:, None], None).table


@pytest.mark.parametrize("n_classes", [None, 2])
def test_rows_without_weight_have_no_score(n_classes):
    weights = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    assert score(Y % 2, FITTED[:, None] / 7, n_classes, weights).table == {}
