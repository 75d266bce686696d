import dataclasses
import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from vstatkit.forest._engine import add_product

from tests.ensembles import SAME_ALGEBRA, ensembles, make_ensemble
from vstatkit.moments import (
    EnsembleSums,
    gram_is_cheaper,
    moments_by_gram,
    moments_from_sums,
    sum_ensemble,
)

ARRAYS = ["mean", "squares", "jackknife", "between", "between_weighted", "quartic"]


def sums(counts, values, k, *, origin=None, joint=False):
    start = np.zeros(values.shape[1]) if origin is None else origin
    return EnsembleSums.from_learners(counts, values, size=k, origin=start, joint=joint)


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
