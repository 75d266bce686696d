"""What the jackknife makes of nearest neighbours: the figures' trees of one predictor.

A full tree of one predictor answers with the response of the nearest drawn row, so
the infinitesimal jackknife of the complete ensemble is a known quadratic form, and
its expectation over independent responses can be held against the true variance.
"""

import itertools
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA


def with_replacement(n, k):
    """Shares of the nearest rows, and each row's influence on every response."""
    near = np.arange(n)
    from_here, beyond = (n - near) / n, (n - near - 1) / n
    shares = from_here**k - beyond**k
    alone = k / n * from_here ** (k - 1)
    later = k / n * (from_here ** (k - 1) - beyond ** (k - 1))
    joint = np.tril(np.broadcast_to(later, (n, n)), -1) + np.diag(alone)
    return shares, joint - k / n * shares


def without_replacement(n, k):
    """The same without replacement."""
    near = np.arange(n)
    shares = np.array([comb(n - i - 1, k - 1) / comb(n, k) for i in near])
    later = shares * (k - 1) / np.maximum(n - near - 1, 1)
    joint = np.tril(np.broadcast_to(later, (n, n)), -1) + np.diag(shares)
    return shares, joint - k / n * shares


@pytest.mark.parametrize("replace", [True, False])
def test_influence_of_nearest_neighbours_is_known(rng, replace):
    n, k = 6, 3
    y = rng.normal(size=n)
    draws = (
        itertools.product(range(n), repeat=k)
        if replace
        else itertools.combinations(range(n), k)
    )
    drawn = np.array(list(draws))
    counts = np.stack([np.bincount(row, minlength=n) for row in drawn])
    values = y[drawn.min(axis=1)][:, None]
    shares, influence = (with_replacement if replace else without_replacement)(n, k)
    found = vs.variance_components(counts, values, method="ij", replace=replace)
    assert_allclose(values.mean(), shares @ y, **SAME_ALGEBRA)
    assert_allclose(found.sampling, ((influence @ y) ** 2).sum(), **SAME_ALGEBRA)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_jackknife_of_nearest_neighbours_is_low_with_replacement(share):
    n = 500
    shares, influence = with_replacement(n, int(share * n))
    q = np.exp(-share)
    limit = 2 * (share * q / (1 - q)) ** 2 / (1 + q)
    # The limit is for large n; the difference is of order 1/n.
    assert_allclose((influence**2).sum() / (shares**2).sum(), limit, rtol=1 / n)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_corrected_u_of_nearest_neighbours_is_high(share):
    n = 500
    k = int(share * n)
    shares, influence = without_replacement(n, k)
    corrected = n * (n - 1) / (n - k) ** 2 * (influence**2).sum()
    assert_allclose(corrected / (shares**2).sum(), 2 / (2 - share), rtol=1 / n)
