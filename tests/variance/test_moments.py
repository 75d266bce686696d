import dataclasses
import functools
import itertools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from vstatkit.native._engine import add_product

from tests.oracles import literal
from tests.oracles.ensembles import (
    SAME_ALGEBRA,
    ensembles,
    make_ensemble,
    unseen_ensemble,
)
from vstatkit.sampling.design import CompleteDesign, to_dense
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import make_design
from vstatkit.variance import moments as moments_module
from vstatkit.variance import moments as sums_module
from vstatkit.variance.moments import (
    BATCH_ENTRIES,
    SPARSE_BATCH_ENTRIES,
    EnsembleSums,
    gram_is_cheaper,
    influence_values,
    moments_by_gram,
    moments_from_sums,
    sum_ensemble,
)

ARRAYS = ["mean", "squares", "jackknife", "between", "between_weighted", "quartic"]


def sums(counts, values, k, *, origin=None, joint=False, weights=None):
    start = np.zeros(values.shape[1]) if origin is None else origin
    total = EnsembleSums.zero(counts.shape[1], k, start, joint=joint)
    total.add(counts, values, weights)
    return total


def assert_same(a, b, fields=ARRAYS):
    for name in fields:
        assert_allclose(getattr(a, name), getattr(b, name), **SAME_ALGEBRA)
    assert_allclose(a.count_variance, b.count_variance, **SAME_ALGEBRA)
    assert a.n_seen == b.n_seen


@given(ensembles())
def test_moments_are_their_definitions(case):
    _, k, B = case.shape
    N, h = case.counts, case.values
    moments = moments_from_sums(sums(N, h, k, origin=h[0]))
    influence = (N - N.mean(axis=0)).T @ (h - h.mean(axis=0)) / B
    seen = N.sum(axis=0) > 0
    total = N.sum(axis=0)[seen]
    m = (N.T @ h)[seen] / total[:, None]
    m_w = total @ m / total.sum()
    assert_allclose(moments.mean, h.mean(axis=0), **SAME_ALGEBRA)
    assert_allclose(moments.zeta_k, h.var(axis=0, ddof=1), **SAME_ALGEBRA)
    assert_allclose(moments.jackknife, (influence**2).sum(axis=0), **SAME_ALGEBRA)
    assert_allclose(moments.quartic, (influence**4).sum(axis=0), **SAME_ALGEBRA)
    assert_allclose(
        moments.between, ((m - m.mean(axis=0)) ** 2).sum(axis=0), **SAME_ALGEBRA
    )
    assert_allclose(moments.between_weighted, total @ (m - m_w) ** 2, **SAME_ALGEBRA)
    assert_allclose(moments.count_variance, N.var(axis=0).mean(), **SAME_ALGEBRA)
    assert moments.n_seen == seen.sum()


FORMS = {
    "squares": lambda N, h, g: (len(h) - 1) * literal.zeta_k(h, g),
    "jackknife": literal.sampling_ij,
    "between": literal.between,
    "between_weighted": literal.between_weighted,
    "zeta_k": lambda N, h, g: literal.zeta_k(h, g),
    "monte_carlo": lambda N, h, g: literal.zeta_k(h, g) / len(h),
}


def assert_literal(moments, N, h, k, *, joint):
    """Hold every field against its double sum over learners and observations."""
    B, n = N.shape
    assert (moments.n, moments.size, moments.n_learners) == (n, k, B)
    assert moments.n_seen == len(literal.conditional_means(N, h[:, 0]))
    assert_allclose(moments.appearances, literal.appearances(N))
    assert_allclose(moments.count_variance, literal.count_variance(N), **SAME_ALGEBRA)
    for i, j in itertools.product(range(h.shape[1]), repeat=2):
        if i != j and not joint:
            continue
        assert_allclose(moments.mean[i], literal.mean(h[:, i]), **SAME_ALGEBRA)
        for name, form in FORMS.items():
            field = getattr(moments, name)
            found = field[i, j] if joint else field[i]
            assert_allclose(found, form(N, h[:, i], h[:, j]), **SAME_ALGEBRA)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("make", [make_ensemble, unseen_ensemble])
def test_moments_are_double_sums(make, packed, joint):
    case = make(B=25, m=2)
    N, h, k = case.counts, case.values, case.design.k
    counts = sparse.csr_array(N) if packed else N
    moments = moments_from_sums(sums(counts, h, k, origin=h[0] + 1, joint=joint))
    assert_literal(moments, N, h, k, joint=joint)
    assert not moments.complete
    fourth = [sum(c**4 for c in literal.influence(N, h[:, j])) for j in range(2)]
    assert_allclose(moments.quartic, fourth, **SAME_ALGEBRA)
    if not joint:
        by_gram = moments_by_gram(counts, h, size=k)
        assert_literal(by_gram, N, h, k, joint=False)


def test_moments_of_many_observations_are_double_sums():
    """More observations than are reduced at a time, in blocks of unequal length."""
    n = 2 * moments_module.ROW_BLOCK + 3
    case = make_ensemble(n=n, k=40, B=9, m=2)
    for joint in (False, True):
        moments = moments_from_sums(sum_ensemble(case.design, case.values, joint=joint))
        assert_literal(moments, case.counts, case.values, 40, joint=joint)
        fourth = [
            sum(c**4 for c in literal.influence(case.counts, case.values[:, j]))
            for j in range(2)
        ]
        assert_allclose(moments.quartic, fourth, **SAME_ALGEBRA)


def test_influence_is_the_covariance_with_the_counts():
    case = unseen_ensemble()
    sums = sum_ensemble(case.design, case.values, origin=case.values[3])
    for j in range(2):
        expected = literal.influence(case.counts, case.values[:, j])
        assert_allclose(influence_values(sums)[:, j], expected, **SAME_ALGEBRA)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_a_weight_is_that_many_learners(packed, joint):
    case = make_ensemble(B=12, m=2)
    weights = np.arange(12) % 4 + 1
    often = np.repeat(np.arange(12), weights)
    counts = sparse.csr_array(case.counts) if packed else case.counts
    ours = sums(
        counts,
        case.values,
        5,
        origin=case.values[0],
        weights=weights.astype(float),
        joint=joint,
    )
    N, h = case.counts[often], case.values[often]
    assert_literal(moments_from_sums(ours), N, h, 5, joint=joint)


def test_complete_designs_are_every_ordered_draw():
    n, k = 4, 3
    design = CompleteDesign(n, k, replace=True, seed=0)
    values = design.members(0, design.n_subsamples) @ np.array([[1.0], [3.0], [-7.0]])
    by_multiset = {
        tuple(row): value[0]
        for row, value in zip(
            design.members(0, design.n_subsamples), values, strict=True
        )
    }
    ordered = list(itertools.product(range(n), repeat=k))
    N = np.array([np.bincount(row, minlength=n) for row in ordered], dtype=float)
    h = np.array([by_multiset[tuple(sorted(row))] for row in ordered])
    sums = sum_ensemble(design, values)
    assert_literal(moments_from_sums(sums), N, h[:, None], k, joint=False)
    complete = moments_from_sums(sums, complete=True)
    assert complete.complete
    assert complete.monte_carlo.tolist() == [0.0]
    assert complete.zeta_k > 0


class Watched(GivenDesign):
    """Given counts that record which learners were asked for, and in what."""

    def __post_init__(self):
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "buffers", [])

    def counts(self, start, stop, out=None):
        self.asked.append((start, stop))
        self.buffers.append(None if out is None else out.shape)
        return self.table[start:stop]


def watched(B, n, k):
    table = np.broadcast_to(np.zeros(n), (B, n))
    if n > 9 * k:
        table = sparse.csr_array((B, n))
    return Watched(n, k, replace=True, seed=0, table=table)


@pytest.mark.parametrize(
    ("n", "k", "B", "step"),
    [
        (5000, 600, 1000, BATCH_ENTRIES // 5000),
        (1000, 112, 3000, 1024),  # 2000 would fit
        (180_000, 20_000, 20, 16),  # 11 would fit
        (5000, 500, 1100, SPARSE_BATCH_ENTRIES // 500),
        (900, 99, 3000, 1024),
        (900_000, 50_000, 20, 16),
        (900, 100, 3000, 1024),
        (900, 100, 30, 1024),  # no more rows than learners
    ],
)
def test_batches_hold_a_bounded_number_of_counts(n, k, B, step):
    design = watched(B, n, k)
    sum_ensemble(design, np.zeros((B, 1)))
    starts = range(0, B, step)
    assert design.asked == [(start, min(start + step, B)) for start in starts]
    packed = n > 9 * k
    assert set(design.buffers) == {None if packed else (min(step, B), n)}


@pytest.mark.parametrize("k", [5, 30])
@pytest.mark.parametrize("presence", [False, True])
def test_sums_do_not_depend_on_batches_or_on_where_they_start(k, presence, monkeypatch):
    monkeypatch.setattr(sums_module, "BATCH_ENTRIES", 1)
    monkeypatch.setattr(sums_module, "SPARSE_BATCH_ENTRIES", 1)
    design = make_design("iid", 60, k, replace=True, seed=3)
    h = np.random.default_rng(1).normal(size=(90, 2)) + 5
    N = to_dense(design.counts(7, 97))
    N = (N > 0).astype(float) if presence else N
    sums = sum_ensemble(design, h, start=7, presence=presence)
    assert_allclose(sums.origin, h.mean(axis=0))
    assert (sums.size, sums.n_learners) == (k, 90)
    assert_allclose(sums.appearances, N.sum(axis=0))
    assert_allclose(sums.count_squares, (N**2).sum())
    centred = h - h.mean(axis=0)
    assert_allclose(sums.weighted, N.T @ centred, **SAME_ALGEBRA)
    assert_allclose(sums.total, 0, atol=1e-12)
    assert_allclose(sums.squares, (centred**2).sum(axis=0), **SAME_ALGEBRA)


def test_sums_are_taken_about_the_origin_that_is_given():
    case = make_ensemble(B=10, m=2)
    origin = np.array([3.0, -2.0])
    sums = sum_ensemble(case.design, case.values, origin=origin, joint=True)
    h = case.values - origin
    assert_allclose(sums.origin, origin)
    assert_allclose(sums.total, h.sum(axis=0), **SAME_ALGEBRA)
    assert_allclose(sums.squares, h.T @ h, **SAME_ALGEBRA)
    assert_allclose(sums.weighted, case.counts.T @ h, **SAME_ALGEBRA)


@pytest.mark.parametrize("packed", [False, True])
def test_counts_of_short_integers_do_not_overflow(packed):
    """Squares of counts of eight bits exceed them, and so do sums."""
    case = make_ensemble(n=3, k=60, B=12, m=2)
    short = case.counts.astype(np.int8)
    counts = sparse.csr_array(short) if packed else short
    moments = moments_from_sums(sums(counts, case.values, 60, origin=case.values[0]))
    assert_literal(moments, case.counts, case.values, 60, joint=False)
    by_gram = moments_by_gram(counts, case.values, size=60)
    assert_literal(by_gram, case.counts, case.values, 60, joint=False)


def test_sums_are_of_squares_unless_products_are_wanted():
    case = make_ensemble(B=10, m=2)
    origin = case.values[0]
    plain = sums(case.counts, case.values, 5, origin=origin)
    assert plain.squares.shape == (2,)
    assert sum_ensemble(case.design, case.values).squares.shape == (2,)


def test_sums_of_batches_are_added_field_by_field():
    case = make_ensemble(B=10, m=2)
    origin = np.array([3.0, -2.0])
    parts = [
        sums(case.counts[rows], case.values[rows], 5, origin=origin)
        for rows in (slice(0, 4), slice(4, 10), slice(0, 10))
    ]
    added = parts[0] + parts[1]
    for field in dataclasses.fields(EnsembleSums):
        assert_allclose(
            getattr(added, field.name), getattr(parts[2], field.name), **SAME_ALGEBRA
        )


@pytest.mark.parametrize("step", [1, 7, 64])
def test_batches_add_up_to_the_whole(step):
    case = make_ensemble(B=130)
    N, h, k = case.counts, case.values, case.design.k
    whole = sums(N, h, k, origin=h[0])
    parts = functools.reduce(
        operator.add,
        [
            sums(N[i : i + step], h[i : i + step], k, origin=h[0])
            for i in range(0, 130, step)
        ],
    )
    assert_same(moments_from_sums(whole), moments_from_sums(parts))


def test_design_and_given_counts_agree():
    case = make_ensemble(n=40, k=9, B=200)
    direct = sums(case.counts, case.values, 9, origin=case.values.mean(axis=0))
    assert_same(
        moments_from_sums(sum_ensemble(case.design, case.values)),
        moments_from_sums(direct),
    )


def test_sparse_and_dense_counts_agree():
    case = make_ensemble()
    thin = sums(sparse.csr_array(case.counts), case.values, case.design.k)
    thick = sums(case.counts, case.values, case.design.k)
    assert_same(moments_from_sums(thin), moments_from_sums(thick))


@given(ensembles())
def test_gram_form_agrees_with_the_product(case):
    by_gram = moments_by_gram(case.counts, case.values, size=case.design.k)
    direct = moments_from_sums(
        sums(case.counts, case.values, case.design.k, origin=case.values[0])
    )
    assert by_gram.quartic is None
    assert_same(by_gram, direct, [name for name in ARRAYS if name != "quartic"])


def test_gram_form_is_chosen_for_many_points_and_few_learners():
    assert gram_is_cheaper(n=50_000, B=200, m=1000)
    assert not gram_is_cheaper(n=5000, B=1000, m=1000)


@pytest.mark.parametrize(("n", "B", "m"), [(100, 20, 76), (1000, 4, 7), (30, 9, 136)])
def test_gram_form_is_chosen_by_counting_multiplications(n, B, m):
    """Three symmetric B x B products of length n, applied to m points, or n x B x m.

    The number of points given is the least for which the first is less.
    """
    for points in (m - 1, m):
        symmetric = 3 * (B * B * n / 2)
        applied = 3 * (B * B * points)
        cheaper = symmetric + applied < n * B * points
        assert gram_is_cheaper(n, B, points) is cheaper
        assert cheaper is (points == m)


def test_joint_moments_have_the_separate_ones_on_their_diagonal():
    case = make_ensemble(m=4)
    separate = moments_from_sums(sums(case.counts, case.values, 5))
    joint = moments_from_sums(sums(case.counts, case.values, 5, joint=True))
    for name in ["squares", "jackknife", "between", "between_weighted", "zeta_k"]:
        matrix = getattr(joint, name)
        assert matrix.shape == (4, 4)
        assert_allclose(np.diag(matrix), getattr(separate, name), **SAME_ALGEBRA)


def test_presence_counts_an_observation_once():
    case = make_ensemble(n=6, k=9)
    presence = sum_ensemble(case.design, case.values, presence=True)
    np.testing.assert_array_equal(presence.appearances, (case.counts > 0).sum(axis=0))


def test_a_large_offset_costs_no_digits():
    case = make_ensemble(B=400)
    exact = case.values.round(6)  # representable next to the offset
    plain = moments_from_sums(sum_ensemble(case.design, exact))
    moved = moments_from_sums(sum_ensemble(case.design, exact + 2.0**27))
    for name in ["squares", "jackknife", "between", "between_weighted"]:
        # The offset itself rounds values to 3e-8: nothing more may be lost.
        assert_allclose(getattr(moved, name), getattr(plain, name), rtol=1e-6)


def test_moments_are_immutable():
    case = make_ensemble()
    moments = moments_from_sums(sums(case.counts, case.values, 5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        moments.n = 3


@given(st.integers(0, 6), st.integers(1, 11), st.integers(1, 9), st.integers(0, 99))
def test_sparse_product_is_the_dense_one(B, n, m, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, size=(B, n)).astype(float)
    values = rng.normal(size=(B, m))
    start = rng.normal(size=(n, m))
    packed = sparse.csr_array(counts)
    table = start.copy()
    add_product(
        packed.indptr.astype(np.int64),
        packed.indices.astype(np.int32),
        packed.data,
        values,
        table,
    )
    assert_allclose(table, start + counts.T @ values, **SAME_ALGEBRA)
