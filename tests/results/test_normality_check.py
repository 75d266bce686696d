"""Whether normal intervals can be relied on: what one fit, and a bootstrap, say."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import vstatkit as vs
from vstatkit.ensemble import bootstrap_repetitions
from vstatkit.ensemble.bootstrap_repetitions import RepeatedFit, repeat_fit
from vstatkit.inference.edgeworth import studentised_tails
from vstatkit.results.reliability_checks import (
    LOPSIDED,
    NOT_SAFE,
    SAFE,
    UNKNOWN,
    NormalityCheck,
    _verdicts,
    check_normality,
)
from vstatkit.sampling.design import CompleteDesign, IidDesign
from vstatkit.sampling.given import ResampledDesign
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.variance.influence_summaries import (
    InfluenceNoise,
    InfluencePowers,
    cumulants,
)


@pytest.fixture(scope="module")
def skewed():
    return np.random.default_rng(1).exponential(size=40)


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=2)
    return frame.assign(
        cluster=np.repeat(np.arange(20), 3),
        w=np.tile([1.0, 2.0], 30),
        three=np.tile(list("abc"), 20),
    )


# Edgeworth's expansion


def simulated_tails(draw, n, critical, runs, seed):
    """How often t intervals of a mean of n lie above and below zero."""
    rng = np.random.default_rng(seed)
    above = below = 0
    for _ in range(10):
        x = draw(rng, (runs // 10, n))
        t = math.sqrt(n) * x.mean(axis=1) / x.std(axis=1, ddof=1)
        above += (t > critical).sum()
        below += (t < -critical).sum()
    return above / runs, below / runs


@pytest.mark.parametrize(
    ("draw", "skew", "excess", "n"),
    [
        (lambda g, s: g.exponential(size=s) - 1, 2, 6, 100),
        (lambda g, s: g.chisquare(8, size=s) - 8, 1, 1.5, 40),
        (lambda g, s: 8 - g.chisquare(8, size=s), -1, 1.5, 40),
        (lambda g, s: g.uniform(-1, 1, size=s), 0, -1.2, 12),
        (lambda g, s: g.laplace(size=s), 0, 3, 30),
    ],
)
@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_tails_are_those_of_a_studentised_mean(draw, skew, excess, n, alpha):
    """Simulated with 200,000 means; the expansion leaves out orders beyond 1/n."""
    critical = stats.t.isf(alpha / 2, n - 1)
    found = studentised_tails(critical, skew / math.sqrt(n), excess / n, n)
    simulated = simulated_tails(draw, n, critical, 200_000, 5)
    normal = alpha / 2
    for side, truth in zip(found, simulated, strict=True):
        # Four binomial errors, and a fifth of what the expansion has to tell.
        noise = 4 * math.sqrt(truth / 200_000)
        assert abs(side - truth) < noise + 0.2 * abs(truth - normal) + 4e-4


def test_normal_means_have_students_tails():
    for n in (20, 100):
        critical = stats.t.isf(0.025, n - 1)
        for side in studentised_tails(critical, 0.0, 0.0, n):
            assert side == pytest.approx(0.025, abs=0.5 / n**2 + 1e-9)


@pytest.mark.parametrize("x", [0.8, 1.9, 2.8])
def test_the_formula_is_halls(x):
    """His variance has divisor n: x times the root of n/(n - 1), so x/(2 n) more."""
    n, g, kappa = 50, 0.7, 1.1

    def q1(z):
        return g * (2 * z**2 + 1) / 6

    def q2(z):
        kurtosis = kappa * (z**2 - 3) / 12
        skewness = g**2 * (z**4 + 2 * z**2 - 3) / 18
        return z * (kurtosis - skewness - (z**2 + 3) / 4)

    def cdf(z):
        terms = q1(z) / math.sqrt(n) + (q2(z) + z / 2) / n
        return stats.norm.cdf(z) + terms * stats.norm.pdf(z)

    above, below = studentised_tails(x, g / math.sqrt(n), kappa / n, n)
    assert above == pytest.approx(1 - cdf(x), abs=1e-14)
    assert below == pytest.approx(cdf(-x), abs=1e-14)


# Skewness and kurtosis of the estimates


def test_a_complete_mean_has_the_skewness_of_the_data(skewed):
    x = skewed[:9]
    for replace in (True, False):
        res = vs.statistic("mean", x, k=3, B="complete", replace=replace)
        row = res.normality_check().frame.iloc[0]
        assert row["skew"] == pytest.approx(stats.skew(x) / 3)
        assert row["kurtosis"] == pytest.approx(3 + stats.kurtosis(x) / 9)
        assert row["skew_mc_se"] == 0
        centred = (x - x.mean()) ** 2
        assert row["largest_share"] == pytest.approx(centred.max() / centred.sum())


@pytest.mark.parametrize("replace", [True, False])
def test_noise_is_taken_out_of_the_powers(skewed, replace):
    """On average over ensembles the sums are those of the complete one."""
    n, k, B, runs = 40, 10, 120, 1500
    x = skewed
    centred = (x - x.mean()) / n * (1 if replace else (n - k) / (n - 1))
    rng = np.random.default_rng(3)
    found = []
    for _ in range(runs):
        if replace:
            counts = rng.multinomial(k, np.full(n, 1 / n), size=B)
        else:
            counts = rng.permuted(np.tile(np.arange(n) < k, (B, 1)), axis=1)
        h = counts @ x / k
        c = (counts - counts.mean(axis=0)).T @ h / (B - 1)
        powers = InfluencePowers.of([c[:, None]])
        noise = InfluenceNoise.of(h[:, None], k, n, replace=replace)
        cubes = powers.cubes - n * noise.third
        found.append((powers.squares - n * noise.variance, cubes, noise.variance))
    squares, cubes, variance = (
        np.array(one).ravel() for one in zip(*found, strict=True)
    )
    noisy = n * variance.mean()
    assert noisy > 0.25 * (centred**2).sum()
    error = 4 / math.sqrt(runs)
    assert (
        abs(squares.mean() - (centred**2).sum()) < error * squares.std() + 0.03 * noisy
    )
    truth = (centred**3).sum()
    assert abs(cubes.mean() - truth) < error * cubes.std() + 0.1 * truth


def test_the_third_moment_of_noise_is_that_of_averages():
    """Counts that know nothing of the values: influences are noise alone."""
    rng = np.random.default_rng(4)
    B, k, n = 30, 5, 10
    h = rng.exponential(size=B)
    for replace in (True, False):
        noise = InfluenceNoise.of(h[:, None], k, n, replace=replace)
        draws, p = (k, 1 / n) if replace else (1, k / n)
        counts = rng.binomial(draws, p, size=(400_000, B))
        c = (counts - draws * p) @ (h - h.mean()) / B
        assert c.var() * B / (B - 1) == pytest.approx(noise.variance[0], rel=0.02)
        scale = c.std() ** 3
        assert stats.moment(c, 3) == pytest.approx(noise.third[0], abs=0.02 * scale)


def test_cumulants_are_what_the_formulas_say():
    c = np.array([[0.5], [-0.25], [-0.75], [0.5]])
    s2, s3, n = 0.01, 0.002, 4
    noise = InfluenceNoise(np.array([s2]), np.array([s3]))
    found = cumulants(InfluencePowers.of([c]), noise)
    known = (c**2).sum() - n * s2
    s = math.sqrt(2 * n * s2**2 + 4 * s2 * known)
    V = known + s * stats.norm.pdf(known / s) / stats.norm.cdf(known / s)
    fourths = (c**4).sum() - 6 * s2 * known - 3 * n * s2**2
    assert found.skew[0] == pytest.approx(((c**3).sum() - n * s3) / V**1.5)
    assert found.excess[0] == pytest.approx(fourths / V**2 - 3 / n)
    spread = 9 * s2 * fourths + 36 * s2**2 * V + 15 * n * s2**3
    assert found.skew_error[0] == pytest.approx(math.sqrt(spread) / V**1.5)


def test_the_error_of_the_skewness_is_its_spread_over_ensembles(skewed):
    found = [
        vs.statistic("mean", skewed, k=10, B=400, rng=seed).normality_check().frame
        for seed in range(60)
    ]
    frame = pd.concat(found)
    truth = stats.skew(skewed) / math.sqrt(40)
    assert frame["skew"].mean() == pytest.approx(truth, abs=0.05)
    # The squares are noisy too, and correlated with the cubes.
    assert 0.5 < frame["skew"].std() / frame["skew_mc_se"].mean() < 1.5


def test_zeta_ratio_is_made_of_the_components(data):
    res = vs.fit("y ~ x1 + x4", data, kernel="ols", k=20, B=2000, rng=1)
    parts = res.components
    expected = parts.zeta_k / (60 * parts.zeta_1)
    found = res.normality_check().frame["zeta_ratio"]
    assert_allclose(found, expected, rtol=0.05)  # zeta_1 is made positive


# Verdicts


def test_verdicts(skewed):
    safe = vs.statistic("mean", np.linspace(-1, 1, 60), k=10, B=3000, rng=1)
    assert safe.normality_check().frame["verdict"].item() == SAFE
    bad = vs.statistic("mean", skewed, k=10, B=3000, rng=1)
    check = bad.normality_check()
    assert check.frame["verdict"].item() == NOT_SAFE
    assert check.frame["miss_below"].item() > 2 * check.frame["miss_above"].item()
    few = vs.statistic("mean", skewed, k=10, B=40, rng=1)
    assert few.normality_check().frame["verdict"].item() == UNKNOWN
    x = -np.log(1 - (np.arange(180) + 0.5) / 180)  # quantiles of the exponential
    much = vs.statistic("mean", x, k=30, B=6000, rng=1).normality_check()
    assert much.frame["verdict"].item() == LOPSIDED
    assert list(much.verdicts) == [LOPSIDED]
    single = vs.statistic("mean", np.r_[np.zeros(58), -1, 1], k=9, B=3000, rng=1)
    row = single.normality_check().frame.iloc[0]
    assert row["largest_share"] > 0.25
    assert row["verdict"] == NOT_SAFE


@pytest.mark.parametrize(
    ("above", "below", "largest", "shift", "verdict"),
    [
        (0.025, 0.025, 0.1, 0.0, SAFE),
        (0.03, 0.029, 0.1, 0.0, SAFE),
        (0.031, 0.03, 0.1, 0.0, NOT_SAFE),
        (0.019, 0.02, 0.1, 0.0, NOT_SAFE),
        (0.013, 0.037, 0.1, 0.0, SAFE),
        (0.012, 0.038, 0.1, 0.0, LOPSIDED),
        (0.038, 0.012, 0.1, 0.0, LOPSIDED),
        (-0.001, 0.051, 0.1, 0.0, NOT_SAFE),
        (0.025, 0.025, 0.26, 0.0, NOT_SAFE),
        (0.025, 0.025, 0.25, 0.0125, SAFE),
        (0.04, 0.04, 0.1, 0.0126, UNKNOWN),
    ],
)
def test_verdicts_have_stated_bounds(above, below, largest, shift, verdict):
    row = {"miss_above": above, "miss_below": below, "largest_share": largest}
    frame = pd.DataFrame([row | {"coverage": 1 - above - below}])
    assert _verdicts(frame, np.array([shift]), 0.05) == [verdict]


def test_shards_are_checked_by_their_influences(data):
    res = vs.fit("y ~ x1", data, design="shards", n_shards=6, k=8, B=60, rng=1)
    c = res.influence().to_numpy()[:, 0]
    row = res.normality_check().frame.iloc[0]
    squares = (c**2).sum()
    assert row["skew"] == pytest.approx((c**3).sum() / squares**1.5)
    assert row["kurtosis"] == pytest.approx(3 + (c**4).sum() / squares**2 - 3 / 6)
    assert row["largest_share"] == pytest.approx((c**2).max() / squares)


def test_a_check_prints_and_draws(skewed):
    check = vs.statistic("mean", skewed, k=10, B=3000, rng=1).normality_check(0.1)
    text = str(check)
    assert "Normality of the estimates" in text
    assert "not safe: the coverage is not close" in text
    assert "probabilities that a 90% interval" in text
    assert "<table" in check._repr_html_()
    ax = check.plot()
    assert "90%" in ax.get_xlabel()


def test_estimates_without_error_are_safe():
    res = vs.statistic("mean", np.ones(20), k=4, B=50, rng=1)
    row = res.normality_check().frame.iloc[0]
    assert row["skew"] == row["largest_share"] == row["zeta_ratio"] == 0
    tails = studentised_tails(stats.t.isf(0.025, 19), 0.0, 0.0, 20)
    assert row["coverage"] == pytest.approx(1 - sum(tails), abs=1e-12)


def test_scale_and_offset_do_not_matter(skewed):
    frames = [
        vs.statistic("mean", shift + unit * skewed, k=10, B=500, rng=1)
        .normality_check()
        .frame
        for shift, unit in ((0, 1), (1e6, 1), (0, 1e150), (0, 1e-150))
    ]
    for other in frames[1:]:
        numbers = frames[0].columns.drop("verdict")
        assert_allclose(other[numbers], frames[0][numbers], rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("three ~ x1", {}),
        ("y ~ x1", {"groups": "cluster", "weights": "w"}),
        ("y ~ x1", {"design": "shards", "n_shards": 4, "k": 10, "B": 80}),
        ("y ~ x1", {"design": "balanced"}),
    ],
)
def test_other_fits_are_checked(formula, options, data, tmp_path):
    res = vs.fit(formula, data, **{"B": 100, **options}, rng=1)
    frame = res.normality_check().frame
    assert frame.index.equals(res.labels)
    assert frame.notna().all(axis=None)
    res.save(tmp_path / "r.npz")
    loaded = vs.load(tmp_path / "r.npz")
    pd.testing.assert_frame_equal(loaded.normality_check().frame, frame)


def test_designs_that_cannot_be_checked_are_named(data):
    res = vs.fit("y ~ x1", data, design="little-bags", B=40, rng=1)
    with pytest.raises(ValueError, match="design='little-bags' the noise"):
        res.normality_check()
    with pytest.raises(ValueError, match="alpha"):
        check_normality(vs.fit("y ~ x1", data, B=40, rng=1), 1.5)


# The bootstrap


@pytest.mark.parametrize("replace", [True, False])
def test_the_bootstrap_variance_of_a_mean_is_known(skewed, replace):
    """Of a mean of B subsample means of a resample; 2,000 resamples."""
    n, k, B, R = 40, 8, 5, 2000
    res = vs.statistic("mean", skewed, k=k, B=B, replace=replace, rng=2)
    found = res.bootstrap(R, n_jobs=1)
    spread = skewed.var()
    within = spread * (n - 1) / n / k * (1 if replace else (n - k) / (n - 1))
    truth = spread / n + within / B
    assert found.estimates.shape == (R, 1)
    # Four standard errors of a variance.
    assert found.bse.iloc[0] ** 2 == pytest.approx(truth, rel=4 * math.sqrt(3 / R))
    error = 4 * math.sqrt(truth / R)
    assert found.estimates.mean() == pytest.approx(skewed.mean(), abs=error)


def test_the_bootstrap_of_a_complete_mean_is_the_textbooks(skewed):
    x, R = skewed[:8], 3000
    res = vs.statistic("mean", x, k=2, B="complete", replace=True)
    found = res.bootstrap(R, n_jobs=1, rng=4)
    assert found.bse.iloc[0] ** 2 == pytest.approx(
        x.var() / 8, rel=4 * math.sqrt(3 / R)
    )
    rng = np.random.default_rng(9)
    means = np.sort(x[rng.integers(8, size=(200_000, 8))].mean(axis=1))
    textbook = np.quantile(means, [0.05, 0.95])
    assert_allclose(found.conf_int(0.1).iloc[0], textbook, atol=0.1 * x.std() / 8**0.5)
    with pytest.raises(ValueError, match="complete ensemble must be 36"):
        res.bootstrap(20, B=10)


def test_a_repetition_is_the_fit_to_the_resampled_rows(data):
    """Subsamples of places in the resampled data, as rows of these."""
    drawn = np.random.default_rng(3).integers(60, size=60)
    design = ResampledDesign.of(IidDesign(60, 12, False, 7), drawn)
    members = IidDesign(60, 12, False, 7).members(0, 5)
    assert_array_equal(design.members(0, 5), drawn[members])
    counts = np.asarray(design.counts(0, 5))
    assert counts.sum(axis=1).tolist() == [12] * 5
    again = data.iloc[drawn].reset_index(drop=True)
    y = data["y"].to_numpy()
    assert_allclose(counts @ y, again["y"].to_numpy()[members].sum(axis=1))
    assert counts.max() > 1  # two places of one row


def test_learners_are_weighed_and_grouped_as_without_resampling(skewed):
    inner = CompleteDesign(6, 3, True, 0)
    design = ResampledDesign.of(inner, np.array([0, 0, 1, 5, 5, 5]))
    assert_array_equal(design.weights(0, 56), inner.weights(0, 56))
    assert not design.has_groups
    shards = ShardsDesign(40, 5, True, 0, n_shards=4)
    design = ResampledDesign.of(shards, np.arange(40))
    assert design.has_groups
    assert_array_equal(design.groups(8), shards.groups(8))
    # Weights are needed for the mean of all 512 draws of three out of eight.
    x = skewed[:8]
    found = vs.statistic("variance", x, k=3, B="complete", replace=True).bootstrap(9)
    rng = stream(found.seed, 4, Purpose.BOOTSTRAP)
    again = x[rng.integers(8, size=8)]
    draws = itertools.product(again, repeat=3)
    truth = np.mean([np.var(one, ddof=1) for one in draws])
    assert found.estimates[4, 0] == pytest.approx(truth)


def test_forests_are_grown_on_what_was_drawn(data):
    """One leaf: the mean of a subsample of the resampled rows."""
    res = vs.fit(
        "y ~ x1 + x2", data, min_samples_leaf=99, k=15, B=30, rng=1, at=data.head(2)
    )
    found = res.bootstrap(400, n_jobs=1)
    y = data["y"].to_numpy()
    truth = y.var() / 60 + y.var() * 59 / 60 / 15 / 30
    assert_allclose(found.bse**2, [truth] * 2, rtol=4 * math.sqrt(2 / 400))
    assert_allclose(found.estimates[:, 0], found.estimates[:, 1])


def test_clusters_are_drawn_whole(data):
    """Clusters of three rows that are alike: the variance of their means."""
    alike = data.assign(y=np.repeat(np.arange(20.0), 3))
    res = vs.fit(
        "y ~ x1", alike, groups="cluster", min_samples_leaf=99, k=10, B=40, rng=1
    )
    found = res.bootstrap(400, n_jobs=1)
    spread = np.arange(20.0).var()
    truth = spread / 20 + spread * 19 / 20 / 10 / 40
    assert found.bse.iloc[0] ** 2 == pytest.approx(truth, rel=4 * math.sqrt(2 / 400))


def test_repetitions_do_not_depend_on_workers(data):
    res = vs.fit("three ~ x1", data, B=20, rng=1)
    one, two = res.bootstrap(8, n_jobs=1), res.bootstrap(8, n_jobs=2)
    assert_array_equal(one.estimates, two.estimates)
    assert one.estimates.shape == (8, 3)
    assert_allclose(one.estimates.sum(axis=1), 1)
    assert one.seed == two.seed
    prefix = res.bootstrap(10, n_jobs=1).estimates[:8]
    assert_array_equal(prefix, one.estimates)
    other = res.bootstrap(8, n_jobs=1, rng=5)
    assert not np.array_equal(other.estimates, one.estimates)
    assert len({tuple(row) for row in one.estimates}) == 8


def test_repetitions_draw_subsamples_of_their_own(data, monkeypatch):
    """Else their trees would make the same random choices, and vary too little."""
    seen = []
    grow = bootstrap_repetitions.evaluate

    def watched(task, start, stop, **options):
        seen.append((task.design.inner.seed, tuple(task.design.drawn)))
        assert not task.keep
        assert not task.oob
        return grow(task, start, stop, **options)

    monkeypatch.setattr(bootstrap_repetitions, "evaluate", watched)
    res = vs.fit("y ~ x1", data, B=10, rng=1)
    res.bootstrap(8, n_jobs=1)
    assert len({seed for seed, _ in seen}) == len({drawn for _, drawn in seen}) == 8
    assert res.seed not in {seed for seed, _ in seen}


def test_fewer_learners_can_be_asked_for(data):
    res = vs.fit("y ~ x1", data, B=100, rng=1, design="balanced")
    few = res.bootstrap(8, B=10, n_jobs=1)
    assert few.R == 8
    with pytest.raises(ValueError, match="at least 2"):
        res.bootstrap(8, B=1)


def test_the_frame_holds_both_standard_errors(skewed):
    res = vs.statistic("mean", skewed, k=10, B=300, rng=1)
    found = res.bootstrap(60, n_jobs=1)
    frame = found.summary_frame(0.1)
    x = found.estimates[:, 0]
    row = frame.iloc[0]
    assert row["se"] == res.bse.iloc[0]
    assert row["bootstrap_se"] == pytest.approx(x.std(ddof=1))
    ordered = np.sort(x)
    # (60 + 1) * 0.05 = 3.05: the third from either end.
    assert (row["bootstrap_ci_lower"], row["bootstrap_ci_upper"]) == (
        ordered[2],
        ordered[57],
    )
    assert_allclose(
        row[["ci_lower", "ci_upper"]].astype(float), res.conf_int(0.1).iloc[0]
    )
    assert row["shapiro_p"] == pytest.approx(stats.shapiro(x).pvalue)
    assert row["omnibus_p"] == pytest.approx(stats.normaltest(x).pvalue)
    assert row["jarque_bera_p"] == pytest.approx(stats.jarque_bera(x).pvalue)
    kurtosis = stats.kurtosis(x, fisher=False)
    error = x.std(ddof=1) * math.sqrt((kurtosis - 1) / 240)
    assert row["bootstrap_se_error"] == pytest.approx(error)


def test_whole_ranks_are_not_rounded_down(skewed):
    """R + 1 times 2/(R + 1) is two, but not always in floating point."""
    res = vs.statistic("mean", skewed, k=10, B=20, rng=1)
    found = res.bootstrap(8, n_jobs=1)
    for R in range(8, 200):
        some = dataclasses.replace(found, estimates=np.arange(float(R))[:, None])
        assert some.conf_int(2 / (R + 1)).iloc[0].tolist() == [0, R - 1]


def test_a_bootstrap_prints_and_draws(data):
    res = vs.fit("y ~ x1 + x4", data, kernel="ols", k=20, B=50, rng=1)
    found = res.bootstrap(40, n_jobs=1)
    text = str(found)
    assert "over 40 resampled data sets" in text
    assert "Shapiro" in text
    assert repr(found) == "<Bootstrap: 3 estimates, R=40>"
    ax = found.plot()
    first = ax.lines[0]
    column = found.estimates[:, 0]
    standard = np.sort((column - column.mean()) / column.std(ddof=1))
    assert_allclose(first.get_ydata(), standard)
    assert_allclose(first.get_xdata(), stats.norm.ppf((np.arange(40) + 0.5) / 40))


def test_estimates_that_do_not_vary_are_normal():
    res = vs.statistic("mean", np.ones(12), k=4, B=10, rng=1)
    found = res.bootstrap(10, n_jobs=1)
    assert found.normality["shapiro_p"].item() == 1
    assert found.bse.item() == 0
    found.plot()


def test_what_the_bootstrap_cannot_do_is_said(data, tmp_path):
    res = vs.fit("y ~ x1", data, B=20, rng=1)
    with pytest.raises(ValueError, match="need at least 39 resampled data sets"):
        res.bootstrap(10, n_jobs=1).conf_int(0.05)
    assert res.bootstrap(39, n_jobs=1).conf_int(0.05).shape == (1, 2)
    few = res.bootstrap(20, n_jobs=1)
    assert few.summary_frame(0.05)["bootstrap_ci_lower"].isna().all()
    assert few.summary_frame(0.05)["bootstrap_se"].notna().all()
    assert few.summary_frame(0.2)["bootstrap_ci_lower"].notna().all()
    assert "Percentile intervals at 0.95 need at least 39 resampled data sets" in str(
        few
    )
    assert "Percentile intervals" not in str(few.summary(0.2))
    with pytest.raises(ValueError, match="at least 8"):
        res.bootstrap(7)
    for wrong in (2.5, True, "20"):
        with pytest.raises(TypeError, match="whole number"):
            res.bootstrap(wrong)
    res.save(tmp_path / "r.npz")
    given = vs.from_arrays(np.eye(9) + 1, np.arange(9.0), replace=True)
    for other in (vs.load(tmp_path / "r.npz"), given):
        with pytest.raises(ValueError, match="training data, which these results"):
            other.bootstrap(10)


def test_repeating_takes_the_first_values(data):
    res = vs.fit("y ~ x1", data, B=10, rng=1)
    task = res.recipe.task
    assert len(task.at) == 3  # the typical row, and the two ends of the effect
    repeating = RepeatedFit(task, 10, 1, 3)
    first = repeat_fit(repeating, 2, n_jobs=1, progress=False)
    assert first.shape == (2, 1)
    assert_array_equal(res.bootstrap(8, rng=3, n_jobs=1).estimates[:2], first)


def test_a_check_names_its_verdicts():
    verdicts = ["safe", "lopsided", "safe"]
    found = NormalityCheck(pd.DataFrame({"verdict": verdicts}), 0.05)
    assert repr(found) == "<NormalityCheck: 2 safe, 1 lopsided>"
