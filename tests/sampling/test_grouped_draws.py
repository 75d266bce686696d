"""Learners that were drawn in groups: their Monte Carlo variance, their estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.sampling.given import given_ensemble
from vstatkit.sampling.registry import make_design
from vstatkit.variance.formulas import grouped_monte_carlo
from vstatkit.variance.registry import (
    ESTIMATORS,
    estimate_components,
    estimate_covariance,
)

SEEDS = 200
X = np.random.default_rng(3).exponential(size=24)


def little_bags_variance(n, k, G, size):
    """Monte Carlo variance of the mean of X: half-samples, then k of each half."""
    half, s2 = n // 2, X.var(ddof=1)
    between = s2 / half * (1 - half / n)
    within = s2 / k * (1 - k / half)
    return (between + within / size) / G


def matched_variance(n, k, G):
    """Two disjoint subsamples of k are one subsample of 2 k."""
    return X.var(ddof=1) / (2 * k) * (1 - 2 * k / n) / G


def pinned_variance(n, k, G, size):
    """Pins drawn without replacement, in cycles; k - 1 draws with replacement."""
    last = G % n
    between = X.var(ddof=1) / k**2
    within = (k - 1) / k**2 * X.var()
    return last * (1 - last / n) * between / G**2 + within / (G * size)


CASES = {
    "little-bags": (
        "little_bags",
        dict(k=6, replace=False, group_size=4),
        50,
        4,
        little_bags_variance(24, 6, 50, 4),
    ),
    "matched": (
        "matched",
        dict(k=7, replace=False),
        100,
        2,
        matched_variance(24, 7, 100),
    ),
    **{
        f"two-level, {G} pins": (
            "im",
            dict(k=5, replace=True, n_in=10),
            G,
            10,
            pinned_variance(24, 5, G, 10),
        )
        for G in (8, 20, 24, 60)
    },
}


def draw(name, options, B, seed):
    design = make_design(name.split(",")[0], 24, seed=seed, **options)
    values = np.asarray(X[design.members(0, B)].mean(axis=1))[:, None]
    return design, values


@pytest.mark.parametrize("name", CASES)
def test_monte_carlo_variance_of_grouped_means_is_what_it_claims(name):
    # The mean of SEEDS estimates, each with a relative standard deviation of
    # sqrt(2 / G) or less, is within four of its standard errors of the truth; so is
    # the variance of SEEDS ensemble means.
    method, options, G, size, exact = CASES[name]
    drawn = [draw(name, options, G * size, seed) for seed in range(SEEDS)]
    claimed = [estimate_components(method, *one).monte_carlo.item() for one in drawn]
    bound = 4 * np.sqrt(2 / (G - 1) / SEEDS)
    assert np.mean(claimed) == pytest.approx(exact, rel=bound)
    realised = np.var([values.mean() for _, values in drawn], ddof=1)
    assert realised == pytest.approx(exact, rel=4 * np.sqrt(2 / SEEDS))


def test_monte_carlo_variance_of_groups_is_the_literal_formula():
    rng = np.random.default_rng(5)
    values, groups = rng.normal(size=(30, 2)), np.repeat(np.arange(6), 5)
    means = np.array([values[groups == g].mean(axis=0) for g in range(6)])
    pooled = sum(values[groups == g].var(axis=0, ddof=1) for g in range(6)) / 6
    spread = means.var(axis=0, ddof=1)
    assert_allclose(grouped_monte_carlo(values, groups), spread / 6, rtol=1e-12)
    half = grouped_monte_carlo(values, groups, 0.25)
    assert_allclose(half, (0.25 * spread + 0.75 * pooled / 5) / 6, rtol=1e-12)
    singles = grouped_monte_carlo(values, np.arange(30), 0.25)
    assert_allclose(singles, values.var(axis=0, ddof=1) / 30, rtol=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_monte_carlo_covariance_of_groups_has_the_variances_on_its_diagonal(share):
    values = np.random.default_rng(1).normal(size=(40, 3))
    groups = np.arange(40) // 4
    joint = grouped_monte_carlo(values, groups, share, joint=True)
    assert_allclose(np.diag(joint), grouped_monte_carlo(values, groups, share))
    total = values.sum(axis=1, keepdims=True)
    assert_allclose(joint.sum(), grouped_monte_carlo(total, groups, share).item())


@pytest.mark.parametrize("name", CASES)
def test_covariances_of_grouped_designs_use_the_same_monte_carlo_part(name):
    method, options, G, size, _ = CASES[name]
    design, values = draw(name, options, G * size, 1)
    both = np.column_stack([values, values**2])
    _, joint = estimate_covariance(method, design, both)
    parts = estimate_components(method, design, both)
    assert_allclose(np.diag(joint), parts.monte_carlo, rtol=1e-12)


def test_pins_of_whole_cycles_are_no_sample():
    design = make_design("two-level", 24, 5, replace=True, seed=1, n_in=10)
    assert [design.redrawn_share(G) for G in (12, 24, 36, 48)] == [0.5, 0, 1 / 6, 0]
    iid = make_design("iid", 24, 5, replace=True, seed=1)
    assert iid.redrawn_share(7) == 1


def test_groups_of_unknown_origin_count_as_independent():
    design, values = draw("two-level", dict(k=5, replace=True, n_in=10), 80, 1)
    groups = design.groups(80)
    counts = design.counts(0, 80)
    given_design, values = given_ensemble(
        counts, values, replace=True, groups=groups, compares_groups=True
    )
    given = estimate_components("im", given_design, values)
    assert_allclose(given.monte_carlo, grouped_monte_carlo(values, groups))


REFUSED = [
    (name, method)
    for name in ("little-bags", "matched", "two-level")
    for method, one in ESTIMATORS.items()
    if one.source != "groups" and one.replace in (None, name == "two-level")
]


@pytest.mark.parametrize(("name", "method"), REFUSED)
def test_estimators_for_independent_learners_are_refused_on_grouped_draws(name, method):
    replace = name == "two-level"
    fits = {"little-bags": "little_bags", "two-level": "im"}.get(name, name)
    res = vs.statistic("mean", X, k=5, B=40, replace=replace, design=name, rng=1)
    assert res.variance == fits
    with pytest.raises(ValueError, match=rf"come in groups.*Use '{fits}'"):
        res.with_variance(method)
    given = {"replace": replace, "groups": res.design.groups(40)}
    counts = res.design.counts(0, 40)
    wrapped = vs.from_arrays(counts, res.values, variance=fits, **given)
    with pytest.raises(ValueError, match=r"one of 'im', 'little_bags', 'matched'"):
        wrapped.with_variance(method)
    with pytest.raises(ValueError, match="one learner of each group"):
        vs.variance_components(counts, res.values, method=method, **given)


def test_groups_of_one_learner_are_independent():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(6, np.full(12, 1 / 12), size=50)
    values = counts @ rng.normal(size=12)
    alone = vs.variance_components(counts, values, method="ij_u")
    with_labels = vs.variance_components(
        counts, values, method="ij_u", groups=np.arange(50)
    )
    assert_allclose(with_labels.sampling, alone.sampling)
    single = vs.statistic("mean", X, k=5, B=40, design="two-level", n_in=1, rng=1)
    assert single.with_variance("ij_u").variance == "ij_u"


def test_thinned_little_bags_agree_with_independent_subsamples():
    # One learner a group is a plain subsample: ij_u is unbiased there, and biased
    # upwards when learners that share a half-sample are taken as independent.
    exact = X.var(ddof=1) / 24  # the mean's, up to (n - 1)/n
    thinned, taken = [], []
    for seed in range(60):
        design, values = draw("little-bags", CASES["little-bags"][1], 400, seed)
        counts = design.counts(0, 400)
        part = vs.variance_components(
            counts[::4], values[::4], method="ij_u", replace=False
        )
        every = vs.variance_components(counts, values, method="ij_u", replace=False)
        thinned.append(part.sampling.item())
        taken.append(every.sampling.item())
    error = np.std(thinned, ddof=1) / np.sqrt(60)
    assert abs(np.mean(thinned) - exact) < 4 * error + exact / 24
    assert np.mean(taken) > 1.05 * exact
