import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from vstatkit.subsample import (
    CompleteDesign,
    GivenDesign,
    count_members,
    dense,
    make_design,
)

NAMES = ["iid", "balanced", "two-level", "little-bags", "matched"]
ALLOWED = [
    (name, replace)
    for name, replace in itertools.product(NAMES, [True, False])
    if (name, replace) != ("matched", True)
]


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_subsamples_have_size_k_and_repeats_only_with_replacement(name, replace):
    design = make_design(name, 30, 12, replace=replace, seed=3).sized(40)
    counts = dense(design.counts(0, 40))
    assert counts.shape == (40, 30)
    assert (counts.sum(axis=1) == 12).all()
    assert (counts.max() > 1) is np.bool_(replace)


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_any_range_of_learners_is_part_of_the_whole(name, replace):
    design = make_design(name, 30, 7, replace=replace, seed=3).sized(60)
    whole = design.members(0, 60)
    parts = [design.members(i, j) for i, j in [(0, 1), (1, 8), (8, 60)]]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_fewer_learners_are_a_prefix_of_more(name, replace):
    options = {"block": 20} if name == "balanced" else {}
    design = make_design(name, 30, 7, replace=replace, seed=3, **options)
    few, many = design.sized(40), design.sized(120)
    np.testing.assert_array_equal(few.members(0, 40), many.members(0, 40))


def test_seeds_give_different_draws():
    draws = [
        make_design("iid", 50, 20, replace=True, seed=seed).members(0, 5)
        for seed in (1, 2)
    ]
    assert not np.array_equal(*draws)


@pytest.mark.parametrize("replace", [True, False])
def test_iid_inclusion_is_uniform(replace):
    n, k, B = 20, 8, 4000
    design = make_design("iid", n, k, replace=replace, seed=11)
    appearances = dense(design.counts(0, B)).sum(axis=0)
    # Pearson's statistic; without replacement counts vary less than Poisson's.
    chi2 = ((appearances - B * k / n) ** 2 / (B * k / n)).sum()
    assert chi2 < stats.chi2.isf(1e-6, n - 1)


@given(
    n=st.integers(2, 40),
    B=st.integers(2, 60),
    block=st.integers(2, 30),
    replace=st.booleans(),
    data=st.data(),
)
def test_balanced_counts_differ_by_at_most_one(n, B, block, replace, data):
    k = data.draw(st.integers(1, 2 * n if replace else n))
    design = make_design("balanced", n, k, replace=replace, seed=5, block=block)
    counts = dense(design.sized(B).counts(0, B))
    appearances = counts.sum(axis=0)
    assert appearances.max() - appearances.min() <= 1
    if B * k % n == 0:
        assert (appearances == B * k // n).all()
    if not replace:
        assert counts.max() == 1


def test_balanced_block_shrinks_the_spread_of_counts_by_one_over_its_length():
    n, k, L = 10, 10, 5
    seeds = range(400)
    spread = np.mean(
        [
            dense(
                make_design("balanced", n, k, replace=True, seed=seed, block=L)
                .sized(L)
                .counts(0, L)
            ).var(axis=0)
            for seed in seeds
        ]
    )
    expected = k / n * (1 - 1 / n) * (1 - (k - 1) / (L * k - 1))
    # 4000 variances of five counts: a relative standard error of about 1 %.
    assert spread == pytest.approx(expected, rel=0.05)


def test_two_level_subsamples_contain_their_pin_and_pins_are_distinct():
    for replace in (True, False):
        design = make_design("two-level", 9, 4, replace=replace, seed=2, n_in=5)
        members = design.members(0, 45)
        pins = members[::5, 0]
        assert (members[:, 0] == np.repeat(pins, 5)).all()
        assert sorted(pins) == list(range(9))
        np.testing.assert_array_equal(design.groups(10), [0] * 5 + [1] * 5)


def test_little_bags_stay_in_their_half_sample():
    design = make_design("little-bags", 21, 10, replace=False, seed=2, group_size=3)
    members = design.members(0, 30)
    for group in range(10):
        # k is the whole half-sample of 10, so all members of a bag agree.
        rows = members[3 * group : 3 * group + 3]
        assert len({frozenset(row) for row in rows.tolist()}) == 1


def test_matched_pairs_are_disjoint():
    members = make_design("matched", 20, 10, replace=False, seed=2).members(0, 40)
    for first, second in zip(members[::2], members[1::2], strict=True):
        assert not set(first) & set(second)


def test_complete_design_lists_every_subsample():
    without = CompleteDesign(5, 3, replace=False, seed=0)
    assert without.n_subsamples == 10
    listed = {tuple(row) for row in without.members(0, 10)}
    assert listed == set(itertools.combinations(range(5), 3))
    multisets = CompleteDesign(4, 3, replace=True, seed=0)
    weights = multisets.weights(0, multisets.n_subsamples)
    assert weights.sum() == 4**3
    assert multisets.n_subsamples == math.comb(6, 3)


def test_counts_are_sparse_where_k_is_small():
    members = np.array([[0, 0, 7], [1, 2, 3]])
    thin = count_members(members, 1000)
    assert sparse.issparse(thin)
    np.testing.assert_array_equal(dense(thin)[:, :8], count_members(members, 8))


def test_given_design_lists_its_members():
    table = np.array([[2, 0, 1], [0, 3, 0]])
    design = GivenDesign(3, 3, replace=True, seed=0, table=table)
    np.testing.assert_array_equal(design.members(0, 2), [[0, 0, 2], [1, 1, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_design("iid", 5, 0, replace=True, seed=0), "at least 1; got 0"),
        (lambda: make_design("iid", 5, 6, replace=False, seed=0), "at most n = 5"),
        (lambda: make_design("cube", 5, 2, replace=True, seed=0), "must be one of"),
        (lambda: make_design("matched", 9, 5, replace=False, seed=0), "at most n/2"),
        (lambda: make_design("matched", 9, 3, replace=True, seed=0), "replace=False"),
        (
            lambda: make_design("little-bags", 9, 5, replace=False, seed=0),
            "at most n/2 = 4",
        ),
        (
            lambda: make_design("two-level", 9, 3, replace=True, seed=0).sized(50),
            "multiple of the n_in = 20.*Use 40",
        ),
        (
            lambda: make_design("iid", 9, 3, replace=True, seed=0).sized(1),
            "`B` must be at least 2",
        ),
        (
            lambda: CompleteDesign(100, 10, replace=False, seed=0),
            r"17,310,309,456,440 evaluations",
        ),
        (
            lambda: make_design("balanced", 9, 3, replace=True, seed=0, block=1),
            "`block` must be at least 2",
        ),
    ],
)
def test_impossible_designs_say_why(make, message):
    with pytest.raises(ValueError, match=message):
        make()
