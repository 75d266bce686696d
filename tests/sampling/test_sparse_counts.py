"""Sparse counts, however they were built."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import vstatkit as vs
from vstatkit.variance.registry import ESTIMATORS

B, N, K = 200, 30, 12
FIELDS = (
    "zeta_1",
    "zeta_k",
    "sampling",
    "monte_carlo",
    "mc_se",
    "noise",
    "concentration",
)
METHODS = [
    name
    for name, one in ESTIMATORS.items()
    if one.source != "groups" and one.replace is not False
]


def ensemble():
    rng = np.random.default_rng(1)
    members = rng.integers(N, size=(B, K))
    counts = np.zeros((B, N))
    np.add.at(counts, (np.arange(B)[:, None], members), 1)
    return members, counts, rng.normal(size=B) + members.mean(axis=1)


def one_entry_a_draw(members, dtype):
    ends = np.arange(0, B * K + 1, K)
    ones = np.ones(B * K, dtype=dtype)
    return sparse.csr_array((ones, members.ravel(), ends), shape=(B, N))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64, np.bool_])
@pytest.mark.parametrize("method", METHODS)
def test_entries_of_the_same_place_add_up(method, dtype):
    members, counts, values = ensemble()
    built = one_entry_a_draw(members, dtype)
    ours = vs.variance_components(built, values, method=method)
    dense = vs.variance_components(counts, values, method=method)
    for name in FIELDS:
        assert_allclose(getattr(ours, name), getattr(dense, name), rtol=1e-10)


def test_the_counts_given_are_left_as_they_are():
    members, _, values = ensemble()
    built = one_entry_a_draw(members, np.int64)
    before = built.copy()
    vs.from_arrays(built, values, replace=True).summary()
    assert_allclose(built.data, before.data)
    assert_allclose(built.indices, before.indices)


def test_small_whole_numbers_do_not_overflow():
    # 20**2 is more than eight bits hold.
    counts = np.zeros((40, 5), dtype=np.uint8)
    counts[np.arange(40), np.arange(40) % 5] = 20
    counts[np.arange(40), (np.arange(40) // 5 + 1) % 5] += 4
    values = np.random.default_rng(2).normal(size=40)
    wide = vs.variance_components(counts.astype(float), values, method="ij_u")
    for given in (counts, sparse.csr_array(counts)):
        ours = vs.variance_components(given, values, method="ij_u")
        assert_allclose(ours.sampling, wide.sampling, rtol=1e-12)
        assert_allclose(ours.mc_se, wide.mc_se, rtol=1e-12)
