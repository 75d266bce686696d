"""The machinery of the studies: prefixes, variants, metrics, checkpoints."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.sampling.design import to_dense
from vstatkit.sampling.registry import make_design
from vstatkit.studies import table2
from vstatkit.studies.coverage import (
    binomial_interval,
    covers_mean,
    ratio_bound,
    variance_ratio,
)
from vstatkit.studies.dgps import Line, Mars
from vstatkit.studies.experiment import (
    CheckpointError,
    Draw,
    iteration_stream,
    run_experiment,
)
from vstatkit.studies.methods import (
    VARIANTS,
    Components,
    Intervals,
    Method,
    build_prefixes,
    distinct_squares,
    sampling_variance,
)
from vstatkit.studies.simulation import Arm, Simulation

SIZES = (40, 100, 250)


@pytest.fixture
def ensemble(rng):
    """Values that depend on the subsamples, far from zero."""
    design = make_design("iid", 12, 9, replace=True, seed=4).with_size(SIZES[-1])
    counts = to_dense(design.counts(0, SIZES[-1]))
    effects = rng.normal(size=(12, 2))
    noise = rng.normal(size=(SIZES[-1], 2))
    return design, counts, 1e3 + counts @ effects / 9 + noise


@pytest.mark.parametrize(
    "method", ["ij", "bm", "ij_u", "corrected_v", "corrected_v_simple", "jackknife"]
)
def test_prefixes_are_the_smaller_ensembles(ensemble, method):
    design, counts, values = ensemble
    for prefix in build_prefixes(design, values, SIZES):
        B = prefix.n_learners
        direct = vs.variance_components(counts[:B], values[:B], method=method)
        assert_allclose(
            sampling_variance(method, prefix), direct.sampling, **SAME_ALGEBRA
        )
        assert_allclose(prefix.mean, values[:B].mean(axis=0), **SAME_ALGEBRA)


def literal_sums(counts, h):
    """Section 5.2 with loops: paper's means, sums over distinct members."""
    n = counts.shape[1]
    within = within_own = between_own = 0.0
    own, D = np.empty(n), (counts > 0).sum(axis=0)
    for i in range(n):
        held = h[counts[:, i] > 0]
        m_i = np.average(h, weights=counts[:, i])
        own[i] = held.mean()
        within += ((held - m_i) ** 2).sum()
        within_own += ((held - own[i]) ** 2).sum()
    centre = np.average(own, weights=D)
    between_own = (D * (own - centre) ** 2).sum()
    return D, within, within_own, between_own


def test_distinct_squares_are_literal_loops(ensemble):
    design, counts, values = ensemble
    for prefix in build_prefixes(design, values, SIZES):
        squares = distinct_squares(prefix)
        for j in range(2):
            D, *expected = literal_sums(
                counts[: prefix.n_learners], values[: prefix.n_learners, j]
            )
            found = [squares.within[j], squares.within_own[j], squares.between_own[j]]
            assert_array_equal(squares.appearances, D)
            assert_allclose(found, expected, rtol=1e-9)


def test_variants_are_their_formulas(ensemble):
    design, counts, values = ensemble
    prefix = build_prefixes(design, values, SIZES)[-1]
    n, k, B = 12, 9, SIZES[-1]
    h = values[:, 0]
    N, C = counts.sum(axis=0), B * k
    D, within, within_own, between_own = literal_sums(counts, h)
    m = counts.T @ h / N
    tau = (N * (m - h.mean()) ** 2).sum()
    ij = vs.variance_components(counts, h, method="ij").sampling[0]
    size, own_size = C - N @ N / C, D.sum() - D @ D / D.sum()
    own = within_own / (D.sum() - n)
    expected = {
        "corrected_ij": n * (n - 1) / (n - k) ** 2 * ij,
        "distinct_within": k**2 / n * (tau - (n - 1) * within / (C - n)) / size,
        "distinct_within_own_size": k**2
        / n
        * (tau - (n - 1) * within / (D.sum() - n))
        / size,
        "distinct_from_ij": ij - k / B * within / (C - n),
        "distinct_throughout": k**2 / n * (between_own - (n - 1) * own) / own_size,
    }
    assert set(expected) == set(VARIANTS)
    for name, value in expected.items():
        assert_allclose(sampling_variance(name, prefix)[0], value, rtol=1e-8)


def small(measure, *, sizes=(20, 50), replace=True):
    at = pd.DataFrame({"x": [4.0, 10.0]})
    arm = Arm("one", 15, sizes, measure, replace)
    return Simulation("small", Line(40), "y ~ x", (arm,), at)


def test_study_ensembles_are_those_of_fit():
    methods = (
        Method("ij", "ij"),
        Method("corrected_v", "corrected_v", interval="t"),
    )
    study = small(Intervals(methods, alpha=0.1))
    record = study.run(7, 3)
    data = study.generator(iteration_stream(7, "small", 3, Draw.DATA))
    seed = int(
        iteration_stream(7, "small", 3, Draw.ENSEMBLE).integers(2**62, size=1)[0]
    )
    for i, B in enumerate(study.arms[0].sizes):
        fitted = vs.fit(
            "y ~ x",
            data,
            kernel="tree",
            k=15,
            B=B,
            at=study.at,
            rng=seed,
            variance="ij",
        )
        assert_allclose(record["one/mean"][i], fitted.params, **SAME_ALGEBRA)
        total = fitted.components.total
        assert_allclose(record["one/variance"][i, 0], total, **SAME_ALGEBRA)
        assert_allclose(
            record["one/half_width"][i, 0], stats.norm.isf(0.05) * np.sqrt(total)
        )
        ours = fitted.with_variance("corrected_v")
        assert_allclose(record["one/variance"][i, 1], ours.bse**2, rtol=1e-9)
        width = ours.conf_int(0.1)["upper"] - ours.params
        assert_allclose(record["one/half_width"][i, 1], width, rtol=1e-9)


def test_components_measure_zetas_with_and_without_replacement():
    study = small(Components(("bm", "corrected_u")), replace=False)
    record = study.run(7, 0)
    data = study.generator(iteration_stream(7, "small", 0, Draw.DATA))
    seed = int(
        iteration_stream(7, "small", 0, Draw.ENSEMBLE).integers(2**62, size=1)[0]
    )
    fitted = vs.fit(
        "y ~ x", data, kernel="tree", k=15, B=50, at=study.at, rng=seed, replace=False
    ).with_variance("corrected")
    assert_allclose(record["one/zeta_1"][1, 1], fitted.components.zeta_1, rtol=1e-9)
    assert_allclose(record["one/zeta_k"][1], fitted.components.zeta_k, rtol=1e-9)


def test_a_negative_variance_covers_nothing():
    mean = np.zeros((4, 1))
    half = np.array([[0.1], [np.nan], [0.0], [np.nan]])
    assert_array_equal(covers_mean(mean, half)[:, 0], [1, 0, 1, 0])


def test_ratio_error_is_the_spread_over_studies(rng):
    """Sixty iterations, repeated 2000 times: the delta method against the truth."""
    mean = rng.normal(size=(60, 2000))
    variance = 2 + 0.3 * mean**2 + rng.exponential(size=(60, 2000))
    ratio, spread = variance_ratio(mean, variance)
    claimed = spread.mean() / np.sqrt(60)
    # The ratio is skewed at sixty iterations: its error is claimed within 15 %.
    assert claimed == pytest.approx(ratio.std(), rel=0.15)
    single = ratio_bound(spread, 0.95, 60)
    assert_allclose(ratio_bound(spread, 0.95, 60, 60), np.sqrt(2) * single)


def test_binomial_interval_is_scipys():
    for successes in (0, 3, 20):
        expected = stats.binomtest(successes, 20).proportion_ci(0.95)
        found = binomial_interval(np.array(successes), 20, 0.95)
        assert_allclose(found, [expected.low, expected.high])


def test_bounds_hold_at_their_level(rng):
    """Differences of two studies of the same thing exceed the bound in 1 %."""
    one, two = rng.binomial(500, 0.9, size=(2, 20_000)) / 500
    bound = table2.proportion_bound(one, 500, two, 500)
    assert np.mean(np.abs(one - two) > bound) == pytest.approx(0.01, abs=0.004)
    pair = rng.chisquare(2, size=(2, 20_000))
    beyond = np.abs(pair[0] - pair[1]) > table2.normality_bound()
    assert beyond.mean() == pytest.approx(0.01, abs=0.004)


def test_normality_is_scipys_and_needs_iterations(rng):
    mean = rng.gamma(2, size=(50, 2))
    expected = stats.normaltest(mean).statistic
    assert_allclose(table2.normality_statistic(mean), expected, rtol=1e-8)
    assert np.isnan(table2.normality_statistic(mean[:10])).all()


def test_iterations_do_not_depend_on_order_or_workers(tmp_path):
    study = small(Components(("ij",)))
    whole = run_experiment(study, 6, seed=1)
    first = run_experiment(study, 3, seed=1, directory=tmp_path)
    again = run_experiment(study, 6, seed=1, directory=tmp_path, n_jobs=2)
    for name in whole:
        assert_array_equal(again[name], whole[name])
        assert_array_equal(first[name], whole[name][:3])
    other = run_experiment(study, 3, seed=2)
    assert (other["one/mean"] != first["one/mean"]).all()


def test_finished_iterations_are_not_run_again(tmp_path, monkeypatch):
    study = small(Components(("ij",)))
    expected = run_experiment(study, 3, seed=1, directory=tmp_path)

    def refuse(self, seed, iteration):
        raise AssertionError(f"iteration {iteration} was run again")

    monkeypatch.setattr(Simulation, "run", refuse)
    kept = run_experiment(study, 3, seed=1, directory=tmp_path)
    for name in expected:
        assert_array_equal(kept[name], expected[name])


@pytest.mark.parametrize(
    ("study", "seed", "named"),
    [
        (small(Components(("ij",))), 2, r"seed \(was 1, now 2\)"),
        (small(Components(("bm",))), 1, "arms"),
        (small(Components(("ij",)), sizes=(20, 60)), 1, "arms"),
    ],
)
def test_other_settings_are_refused(tmp_path, study, seed, named):
    run_experiment(small(Components(("ij",))), 2, seed=1, directory=tmp_path)
    with pytest.raises(CheckpointError, match=f"other settings: .*{named}"):
        run_experiment(study, 2, seed=seed, directory=tmp_path)


def test_an_interrupted_run_keeps_what_was_finished(tmp_path, monkeypatch):
    study = small(Components(("ij",)))
    whole = run_experiment(study, 4, seed=1)
    run = Simulation.run

    def stop(self, seed, iteration):
        if iteration == 2:
            raise KeyboardInterrupt
        return run(self, seed, iteration)

    monkeypatch.setattr(Simulation, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(study, 4, seed=1, directory=tmp_path)
    monkeypatch.setattr(Simulation, "run", run)
    assert len(list(tmp_path.glob("*.npz"))) == 1
    again = run_experiment(study, 4, seed=1, directory=tmp_path)
    assert_array_equal(again["one/mean"], whole["one/mean"])


COMMAND = """
import sys
from vstatkit.studies import experiment
from vstatkit.cli import main
experiment.SAVE_SECONDS = 0.0
sys.exit(main(sys.argv[1:]))
"""
ARGUMENTS = ["reproduce", "table2", "--quick", "--iterations", "30", "--n-jobs", "1"]


def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path):
    """SIGKILL with some iterations on disk; then the same bytes as without it."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-c", COMMAND, *ARGUMENTS, "--out"]
    process = subprocess.Popen(
        [*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    kept = killed / "quick" / "checkpoints" / "table2-quick"
    deadline = time.monotonic() + 60
    while len(list(kept.glob("*.npz"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished = sum(int(path.stem.split("-")[1]) for path in kept.glob("*.npz"))
    assert 3 <= finished < 30
    assert not (killed / "quick" / "table2.csv").exists()
    for out in (killed, whole):
        run = subprocess.run([*command, str(out)], check=True, capture_output=True)
        assert b"corrected printed" in run.stdout
    for name in ("table2.csv", "table2-candidates.csv", "table2.md"):
        ours, theirs = killed / "quick" / name, whole / "quick" / name
        assert ours.read_bytes() == theirs.read_bytes()


def test_coverage_is_a_tidy_table_of_its_definitions():
    options = {"kernel": "tree", "k": 15, "B": [20, 50], "rng": 3, "iterations": 12}
    at = pd.DataFrame({"x": [4.0, 10.0]}, index=["low", "high"])
    table = vs.studies.coverage(
        Line(40), "y ~ x", at=at, variance=["ij", "corrected"], **options
    )
    assert list(table["method"].unique()) == ["ij", "corrected_v"]
    assert list(table["B"].unique()) == [20, 50]
    assert list(table["point"].unique()) == ["low", "high"]
    study = Simulation(
        "coverage",
        Line(40),
        "y ~ x",
        (Arm("", 15, (20, 50), Intervals((Method("", "ij", interval="t"),))),),
        at,
    )
    record = run_experiment(study, 12, seed=3)
    row = table[(table["method"] == "ij") & (table["B"] == 50)].iloc[1]
    mean = record["/mean"][:, 1, 1]
    variance = record["/variance"][:, 1, 0, 1]
    half = record["/half_width"][:, 1, 0, 1]
    assert row["mean"] == pytest.approx(mean.mean())
    assert row["true_variance"] == pytest.approx(mean.var(ddof=1))
    assert row["mean_variance"] == pytest.approx(variance.mean())
    assert row["ratio"] == pytest.approx(variance.mean() / mean.var(ddof=1))
    assert row["coverage"] == np.mean(np.abs(mean - mean.mean()) <= half)
    assert row["coverage_lower"] <= row["coverage"] <= row["coverage_upper"]
    assert row["ratio_lower"] < row["ratio"] < row["ratio_upper"]


def test_coverage_takes_coefficients_functions_and_groups(tmp_path):
    ols = vs.studies.coverage(
        Mars(60), "y ~ x1", kernel="ols", k=30, B=40, iterations=3, rng=1
    )
    assert list(ols["point"]) == ["Intercept", "x1"]
    median = vs.studies.coverage(
        Mars(60),
        "y ~ x1",
        kernel=lambda data: data["y"].median(),
        k=30,
        B=40,
        iterations=3,
        rng=1,
        checkpoint=tmp_path,
    )
    assert list(median["point"]) == ["statistic"]
    assert "<lambda>" in json.loads((tmp_path / "settings.json").read_text())["kernel"]
    pinned = vs.studies.coverage(
        Mars(60),
        "y ~ x1",
        kernel="ols",
        design="two-level",
        k=30,
        B=40,
        iterations=3,
        rng=1,
    )
    assert set(pinned["method"]) == {"im"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": None}, "needs query points"),
        ({"iterations": 1}, "`iterations` must be at least 2"),
        ({"interval": "wald"}, "`interval` must be 't' or 'normal'"),
        ({"variance": "corrected_u"}, "without replacement"),
        ({"variance": "best"}, "`variance` must be one of"),
        ({"design": "balanced", "B": [50, 2000]}, "whole groups"),
    ],
)
def test_coverage_says_what_is_wrong(options, message):
    given = {"at": {"x": [1.0]}, "k": 10, "B": 20, "iterations": 2, "rng": 1, **options}
    with pytest.raises(ValueError, match=message):
        vs.studies.coverage(Line(30), "y ~ x", **given)


def test_table2_counts_its_cells_and_points():
    study = table2.simulation(1)
    assert [arm.k for arm in study.arms] == [100, 250, 500]
    assert {arm.sizes for arm in study.arms} == {(500, 1000, 2500, 5000)}
    assert study.generator == Mars(500, 0.05)
    assert (study.at.loc["p1"] == 0.5).all()
    assert study.at.loc[["p2", "p3"]].to_numpy().std() > 0.1
