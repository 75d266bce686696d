import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from vstatkit.sampling import design as designs
from vstatkit.sampling.design import (
    BLOCK,
    CompleteDesign,
    check_size,
    count_members,
    to_dense,
)
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import DESIGNS, make_design

NAMES = ["iid", "balanced", "two-level", "little-bags", "matched"]
ALLOWED = [
    (name, replace)
    for name, replace in itertools.product(NAMES, [True, False])
    if (name, replace) != ("matched", True)
]


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_subsamples_have_size_k_and_repeats_only_with_replacement(name, replace):
    design = make_design(name, 30, 12, replace=replace, seed=3).with_size(40)
    counts = to_dense(design.counts(0, 40))
    assert counts.shape == (40, 30)
    assert (counts.sum(axis=1) == 12).all()
    assert (counts.max() > 1) is np.bool_(replace)


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_any_range_of_learners_is_part_of_the_whole(name, replace):
    design = make_design(name, 30, 7, replace=replace, seed=3).with_size(60)
    whole = design.members(0, 60)
    parts = [design.members(i, j) for i, j in [(0, 1), (1, 8), (8, 60)]]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
def test_fewer_learners_are_a_prefix_of_more(name, replace):
    options = {"block": 20} if name == "balanced" else {}
    design = make_design(name, 30, 7, replace=replace, seed=3, **options)
    few, many = design.with_size(40), design.with_size(120)
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
    appearances = to_dense(design.counts(0, B)).sum(axis=0)
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
    counts = to_dense(design.with_size(B).counts(0, B))
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
            to_dense(
                make_design("balanced", n, k, replace=True, seed=seed, block=L)
                .with_size(L)
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
    np.testing.assert_array_equal(to_dense(thin)[:, :8], count_members(members, 8))


def uniform(counts, expected=None):
    """Whether counts are those of a law with these expectations, at level 1e-5."""
    counts = np.asarray(counts, dtype=float)
    mean = counts.mean() if expected is None else np.asarray(expected)
    chi2 = ((counts - mean) ** 2 / mean).sum()
    return chi2 < stats.chi2.isf(1e-5, counts.size - 1)


@pytest.mark.parametrize(("n", "packed"), [(90, False), (91, True), (9, False)])
def test_counts_are_sparse_below_a_ninth(n, packed):
    members = np.random.default_rng(0).integers(9, size=(4, 10))
    counts = count_members(members, n)
    assert sparse.issparse(counts) is packed
    assert counts.shape == (4, n)
    expected = [np.bincount(row, minlength=n) for row in members]
    np.testing.assert_array_equal(to_dense(counts), expected)


def test_dense_counts_are_written_where_they_are_wanted():
    members = np.array([[0, 0, 2], [1, 2, 2]])
    out = np.full((5, 3), np.nan)
    counts = count_members(members, 3, out)
    assert np.shares_memory(counts, out)
    np.testing.assert_array_equal(counts, [[2, 0, 1], [0, 1, 2]])
    assert np.isnan(out[2:]).all()
    design = make_design("iid", 3, 5, replace=True, seed=1)
    assert np.shares_memory(design.counts(0, 4, out), out)


def test_plain_designs_have_neither_weights_nor_groups():
    design = make_design("iid", 9, 3, replace=True, seed=1)
    assert design.weights(0, 5) is None
    assert design.groups(5) is None
    assert design.with_size(2) is design
    assert not design.complete
    assert CompleteDesign(4, 2, replace=True, seed=0).complete


@pytest.mark.parametrize(
    ("name", "options", "table"),
    [
        ("iid", {}, {(7, 9): 7, (7, 5): 5, (7, 7): 7}),
        (
            "balanced",
            {"block": 10},
            {(1, 99): 10, (10, 99): 10, (11, 99): 20, (95, 98): 98, (20, 20): 20},
        ),
        ("balanced", {}, {(1001, 5000): 2000, (2000, 5000): 2000, (30, 40): 40}),
        (
            "two-level",
            {"n_in": 5},
            {(11, 99): 15, (15, 99): 15, (14, 14): 10, (1, 99): 10, (9, 9): 10},
        ),
        ("little-bags", {"group_size": 3}, {(7, 99): 9, (9, 9): 9, (8, 8): 6}),
        ("matched", {}, {(7, 99): 8, (8, 8): 8, (7, 7): 6, (1, 99): 4}),
    ],
)
def test_numbers_of_learners_are_rounded_to_what_the_design_allows(
    name, options, table
):
    """Up to whole groups or blocks, down to stay within the bound, two groups least."""
    design = make_design(name, 30, 6, replace=False, seed=1, **options)
    found = {
        (B, at_most): design.round_size(B, at_most=at_most) for B, at_most in table
    }
    assert found == table
    for B in found.values():
        assert design.with_size(B).n == 30


@pytest.mark.parametrize(
    ("name", "B", "near"),
    [
        ("two-level", 5, 10),
        ("two-level", 12, 10),
        ("two-level", 13, 15),
        ("little-bags", 3, 6),
        ("little-bags", 10, 9),
        ("matched", 2, 4),
        ("matched", 7, 8),
    ],
)
def test_numbers_of_learners_in_whole_groups(name, B, near):
    options = {"two-level": {"n_in": 5}, "little-bags": {"group_size": 3}}
    design = make_design(name, 30, 6, replace=False, seed=1, **options.get(name, {}))
    size = {"two-level": "n_in = 5", "little-bags": "group_size = 3"}
    says = f"multiple of the {size.get(name, 'pair size = 2')}, and at least .*"
    with pytest.raises(
        ValueError, match=f"{says} for design='{name}'; got {B}. Use {near}."
    ):
        design.with_size(B)
    assert design.with_size(near) is design


@pytest.mark.parametrize(
    ("n", "k", "replace"), [(5, 1, True), (5, 5, False), (5, 6, True), (5, 1, False)]
)
def test_sizes_that_can_be_drawn(n, k, replace):
    assert check_size(n, k, replace=replace) is None
    members = make_design("iid", n, k, replace=replace, seed=0).members(0, 3)
    assert members.shape == (3, k)


@pytest.mark.parametrize(("name", "replace"), ALLOWED)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_design_draws_small_subsamples_and_refuses_none(name, replace, k):
    design = make_design(name, 7, k, replace=replace, seed=0)
    members = design.members(0, 140)  # seven pins with twenty subsamples each
    assert members.shape == (140, k)
    assert set(members.ravel()) == set(range(7))
    for impossible in (0, -1) if replace else (0, 8):
        with pytest.raises(ValueError, match=r"`k` must be at (least 1|most n)"):
            make_design(name, 7, impossible, replace=replace, seed=0)


@pytest.mark.parametrize("replace", [True, False])
def test_complete_designs_refuse_what_cannot_be_drawn(replace):
    with pytest.raises(ValueError, match="`k` must be at least 1"):
        CompleteDesign(5, 0, replace=replace, seed=0)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(
    ("start", "stop"), [(0, 7), (6, 8), (3, 22), (14, 21), (20, 23)]
)
def test_ranges_across_blocks_are_part_of_the_whole(start, stop, replace):
    design = make_design("balanced", 11, 4, replace=replace, seed=3, block=7).with_size(
        23
    )
    whole = design.members(0, 23)
    assert whole.shape == (23, 4)
    np.testing.assert_array_equal(design.members(start, stop), whole[start:stop])


@pytest.mark.parametrize("replace", [True, False])
def test_balance_holds_at_the_end_of_every_block(replace):
    design = make_design("balanced", 11, 4, replace=replace, seed=3, block=7)
    counts = to_dense(design.counts(0, 70))
    for stop in range(7, 71, 7):
        appearances = counts[:stop].sum(axis=0)
        assert appearances.max() - appearances.min() <= 1
    assert not np.array_equal(counts[:7], counts[7:14])


@pytest.mark.parametrize("replace", [True, False])
def test_blocks_of_balanced_designs_are_a_thousand_learners(replace):
    design = make_design("balanced", 7, 3, replace=replace, seed=3)
    assert design.block == BLOCK == 1000
    appearances = to_dense(design.counts(0, 1000)).sum(axis=0)
    assert sorted(appearances) == [428] * 3 + [429] * 4


@pytest.mark.parametrize("replace", [True, False])
def test_which_units_of_a_balanced_design_occur_once_more_is_random(replace):
    n, runs = 5, 500
    totals, firsts = np.zeros(n), np.zeros(n)
    for seed in range(runs):
        design = make_design("balanced", n, 1, replace=replace, seed=seed, block=7)
        counts = to_dense(design.with_size(7).counts(0, 7))
        appearances = counts.sum(axis=0)
        assert sorted(appearances) == [1, 1, 1, 2, 2]
        totals += appearances - 1
        firsts += counts[0]
    assert uniform(totals)
    assert uniform(firsts)


def test_quotas_share_the_draws_out():
    rank = np.array([2, 0, 1])
    shares = {drawn: designs._cumulative_quota(rank, drawn) for drawn in range(8)}
    assert {drawn: list(quota) for drawn, quota in shares.items()} == {
        0: [0, 0, 0],
        1: [0, 1, 0],
        2: [0, 1, 1],
        3: [1, 1, 1],
        4: [1, 2, 1],
        5: [1, 2, 2],
        6: [2, 2, 2],
        7: [2, 3, 2],
    }


@pytest.mark.parametrize(
    ("quota", "k"), [((1, 1, 1, 1), 2), ((2, 2, 1, 1), 2), ((3, 1, 1, 1), 2)]
)
def test_distinct_blocks_meet_their_quota_and_include_in_proportion(quota, k):
    """In every row a unit stands with probability quota / length."""
    quota, runs = np.array(quota), 500
    length = quota.sum() // k
    rows = np.zeros((length, quota.size))
    rng = np.random.default_rng(5)
    for _ in range(runs):
        drawn = designs._distinct_block(quota, k, length, rng)
        counts = np.array([np.bincount(row, minlength=quota.size) for row in drawn])
        assert counts.max() == 1
        np.testing.assert_array_equal(counts.sum(axis=0), quota)
        rows += counts
    assert quota.sum() == length * k  # left as it was
    share = quota / length
    bound = 4.5 * np.sqrt(share * (1 - share) / runs)
    assert (np.abs(rows / runs - share) <= bound + 1e-12).all()


def test_pairs_of_a_distinct_block_are_equally_likely():
    pairs = dict.fromkeys(itertools.combinations(range(4), 2), 0)
    for seed in range(600):
        first = designs._distinct_block(
            np.ones(4, dtype=np.int64), 2, 2, np.random.default_rng(seed)
        )[0]
        pairs[tuple(sorted(first.tolist()))] += 1
    assert uniform(list(pairs.values()))


@pytest.mark.parametrize("replace", [True, False])
def test_two_level_subsamples_fill_up_uniformly(replace):
    n, k, n_in = 6, 3, 400
    design = make_design("two-level", n, k, replace=replace, seed=4, n_in=n_in)
    members = design.members(0, n * n_in)
    for pin in range(n):
        rows = members[members[:, 0] == pin]
        assert len(rows) == n_in
        rest = np.bincount(rows[:, 1:].ravel(), minlength=n)
        if not replace:
            assert rest[pin] == 0
            assert all(len(set(row)) == k for row in rows)
            rest = np.delete(rest, pin)
        assert uniform(rest)


def test_pins_come_in_random_orders_one_after_another():
    design = make_design("two-level", 8, 1, replace=False, seed=4, n_in=2)
    pins = design.members(0, 48)[::2, 0].reshape(3, 8)
    assert (np.sort(pins, axis=1) == np.arange(8)).all()
    assert len({tuple(row) for row in pins}) == 3
    np.testing.assert_array_equal(design.members(13, 40), design.members(0, 48)[13:40])
    firsts = [
        make_design("two-level", 4, 1, replace=True, seed=seed, n_in=1).members(0, 1)
        for seed in range(400)
    ]
    assert uniform(np.bincount(np.ravel(firsts), minlength=4))


def test_two_level_designs_take_one_subsample_a_pin():
    design = make_design("two-level", 5, 2, replace=True, seed=4, n_in=1).with_size(4)
    assert sorted(design.members(0, 5)[:, 0]) == list(range(5))
    np.testing.assert_array_equal(design.groups(4), range(4))
    assert make_design("two-level", 5, 2, replace=True, seed=4).n_in == 20


def test_little_bags_come_from_random_halves():
    n, runs = 9, 300
    design = make_design("little-bags", n, 40, replace=True, seed=2, group_size=2)
    members = design.members(0, 2 * runs)
    halves = np.array([np.bincount(row, minlength=n) > 0 for row in members])
    # 40 draws miss one of four units once in 25 000 subsamples.
    assert (halves.sum(axis=1) == n // 2).mean() > 0.99
    assert (halves[::2] | halves[1::2]).sum(axis=1).max() == n // 2
    assert uniform(halves[::2].sum(axis=0), np.full(n, runs * 4 / 9))
    assert not np.array_equal(members[0], members[1])
    times = np.bincount(members.ravel(), minlength=n)
    assert (np.abs(times / members.size - 1 / n) < 0.02).all()
    np.testing.assert_array_equal(design.groups(5), [0, 0, 1, 1, 2])


def test_little_bags_without_replacement_are_parts_of_a_half():
    design = make_design("little-bags", 12, 3, replace=False, seed=2, group_size=4)
    members = design.members(0, 400).reshape(100, 4, 3)
    sizes = [len(set(group.ravel())) for group in members]
    assert max(sizes) == 6
    assert all(len(set(row)) == 3 for group in members for row in group)
    for place in range(4):  # those of one half are alike
        assert uniform(np.bincount(members[:, place].ravel(), minlength=12))


def test_matched_pairs_are_random_and_differ():
    design = make_design("matched", 10, 4, replace=False, seed=2)
    members = design.members(0, 400)
    assert uniform(np.bincount(members[::2].ravel(), minlength=10))
    assert uniform(np.bincount(members[1::2].ravel(), minlength=10))
    assert len({frozenset(row) for row in members[::2].tolist()}) > 100
    for first, second in zip(members[::2], members[1::2], strict=True):
        assert len({*first, *second}) == 8
    np.testing.assert_array_equal(members[3:8], design.members(3, 8))
    np.testing.assert_array_equal(design.groups(5), [0, 0, 1, 1, 2])


@pytest.mark.parametrize(("n", "k"), [(10, 5), (11, 5), (2, 1)])
def test_halves_are_large_enough_for_their_subsamples(n, k):
    for name in ("matched", "little-bags"):
        assert (
            make_design(name, n, k, replace=False, seed=0).members(0, 2).shape[1] == k
        )
        with pytest.raises(ValueError, match=f"at most n/2 = {n // 2}"):
            make_design(name, n, k + 1, replace=False, seed=0)
    assert make_design("little-bags", n, n, replace=True, seed=0).k == n


@pytest.mark.parametrize(("n", "k"), [(4, 3), (3, 5), (5, 1)])
def test_weights_of_multisets_are_their_orderings(n, k):
    design = CompleteDesign(n, k, replace=True, seed=0)
    orderings = {}
    for row in itertools.product(range(n), repeat=k):
        key = tuple(sorted(row))
        orderings[key] = orderings.get(key, 0) + 1
    B = design.n_subsamples
    assert [tuple(row) for row in design.members(0, B).tolist()] == sorted(orderings)
    expected = [orderings[key] for key in sorted(orderings)]
    np.testing.assert_array_equal(design.weights(0, B), expected)
    np.testing.assert_array_equal(design.weights(2, 4), expected[2:4])
    np.testing.assert_array_equal(design.members(2, 4), design.members(0, B)[2:4])


def test_distinct_subsamples_weigh_the_same():
    design = CompleteDesign(5, 3, replace=False, seed=0)
    assert design.weights(0, 10) is None
    assert [tuple(r) for r in design.members(3, 6).tolist()] == list(
        itertools.combinations(range(5), 3)
    )[3:6]


@pytest.mark.parametrize(("replace", "number"), [(False, 10), (True, 35)])
def test_complete_designs_are_bounded(replace, number, monkeypatch):
    assert designs.COMPLETE_LIMIT == 1_000_000
    monkeypatch.setattr(designs, "COMPLETE_LIMIT", number)
    assert CompleteDesign(5, 3, replace=replace, seed=0).n_subsamples == number
    monkeypatch.setattr(designs, "COMPLETE_LIMIT", number - 1)
    with pytest.raises(ValueError, match=f"would take {number} evaluations"):
        CompleteDesign(5, 3, replace=replace, seed=0)


@pytest.mark.parametrize("packed", [False, True])
def test_given_designs_hand_on_what_they_were_given(packed):
    rows = np.array([[2.0, 0, 1], [0, 3, 0], [1, 1, 1], [0, 0, 3]])
    table = sparse.csr_array(rows) if packed else rows
    labels = np.array([4, 4, 7, 7])
    design = GivenDesign(3, 3, replace=True, seed=0, table=table, labels=labels)
    np.testing.assert_array_equal(to_dense(design.counts(1, 3)), rows[1:3])
    np.testing.assert_array_equal(design.members(1, 3), [[1, 1, 1], [0, 1, 2]])
    np.testing.assert_array_equal(design.groups(3), [4, 4, 7])
    bare = GivenDesign(3, 3, replace=True, seed=0, table=table)
    assert bare.groups(3) is None
    assert bare.name == "given"


def test_designs_by_name_and_their_options():
    for name in NAMES:
        design = make_design(name, 20, 5, replace=False, seed=9)
        assert (design.name, design.n, design.k) == (name, 20, 5)
        assert (design.replace, design.seed) == (False, 9)
    found = {name: one.options for name, one in DESIGNS.items() if one.options}
    assert found == {
        "balanced": ("block",),
        "two-level": ("n_in", "n_out"),
        "little-bags": ("group_size",),
        "shards": ("n_shards",),
    }
    assert CompleteDesign(4, 2, replace=True, seed=0).name == "complete"
    assert make_design("balanced", 9, 3, replace=True, seed=0, block=2).block == 2
    assert make_design("little-bags", 9, 3, replace=True, seed=0).group_size == 2
    with pytest.raises(ValueError, match="`group_size` must be at least 2; got 1"):
        make_design("little-bags", 9, 3, replace=True, seed=0, group_size=1)
    with pytest.raises(ValueError, match="`n_in` must be at least 1; got 0"):
        make_design("two-level", 9, 3, replace=True, seed=0, n_in=0)


def test_learners_of_one_design_differ():
    for name, replace in ALLOWED:
        members = make_design(name, 40, 10, replace=replace, seed=1).members(0, 12)
        distinct = {tuple(sorted(row)) for row in members.tolist()}
        assert len(distinct) == 12
        other = make_design(name, 40, 10, replace=replace, seed=2).members(0, 12)
        assert not np.array_equal(members, other)


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
            lambda: make_design("two-level", 9, 3, replace=True, seed=0).with_size(50),
            "multiple of the n_in = 20.*Use 40",
        ),
        (
            lambda: make_design("iid", 9, 3, replace=True, seed=0).with_size(1),
            "`B` must be at least 2",
        ),
        (
            lambda: make_design("balanced", 9, 3, replace=True, seed=0).with_size(1),
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
