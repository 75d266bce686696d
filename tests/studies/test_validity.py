"""The validity study: what it keeps, what it makes of it, and the command."""

import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.cli import main
from vstatkit.studies import validity
from vstatkit.studies import validity_experiments as experiments
from vstatkit.studies.dgps import DGPS
from vstatkit.studies.experiment import Draw, iteration_stream
from vstatkit.studies.validity import Findings, goals, report
from vstatkit.studies.validity_experiments import (
    ESTIMATORS,
    OURS,
    SETTINGS,
    SeedExperiment,
    SettingExperiment,
)

E = len(ESTIMATORS)
LAST = E - 1  # ours


def seed_of(experiment, iteration=0, seed=1):
    stream = iteration_stream(seed, experiment.name, iteration, Draw.ENSEMBLE)
    return int(stream.integers(2**31 - 1))


def for_all(values):
    """Repeat an array (iterations, m) for every estimator."""
    return np.repeat(np.asarray(values, dtype=float)[:, None, :], E, axis=1)


def hand_made(mean, half, variance=1.0):
    mean = np.asarray(mean, dtype=float)
    return {
        "B": np.full(len(mean), 40.0),
        "mean": mean,
        "variance": np.full((len(mean), E, mean.shape[1]), variance),
        "lower": for_all(mean - half),
        "upper": for_all(mean + half),
    }


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize("name", ["friedman10", "three", "clusters", "missing"])
def test_records_are_what_users_are_given(name):
    dgp, setting = DGPS[name], SETTINGS["half"]
    experiment = SettingExperiment(dgp, setting, quick=True)
    record = experiment.run(1, 3)
    res = vs.fit(
        "y ~ .",
        experiments.draw_data(dgp, 1, 3),
        at=dgp.points,
        groups=dgp.groups,
        missing=dgp.missing,
        replace=False,
        k=0.5,
        B=experiments.QUICK_LEARNERS,
        variance=ESTIMATORS[OURS],
        rng=seed_of(experiment, 3),
    )
    assert record["B"] == res.B == 40
    assert_allclose(record["mean"], res.params)
    dead = res.effects.index.get_level_values(0).isin(dgp.null)
    assert dead.sum() == len(dgp.null) * max(1, len(dgp.classes))
    for e, variance in enumerate(ESTIMATORS.values()):
        one = res.with_variance(variance)
        bounds, effects = one.conf_int(), one.effects[dead]
        band = one.get_prediction(dgp.band()).conf_int(simultaneous=True)
        assert_allclose(record["variance"][e], one.bse**2)
        assert_allclose(record["lower"][e], bounds["lower"])
        assert_allclose(record["upper"][e], bounds["upper"])
        assert_allclose(record["band_lower"][e], band["lower"])
        assert_allclose(record["band_upper"][e], band["upper"])
        assert_allclose(record["dead_p"][e], effects["p_value"])
        assert_allclose(record["dead_lower"][e], effects["ci_lower"])
        assert_allclose(record["dead_mean"], effects["estimate"])
    assert_allclose(record["band_mean"], res.get_prediction(dgp.band()).predicted_mean)


def test_shadows_are_kept_apart_from_dead_predictors():
    record = SettingExperiment(DGPS["correlated"], SETTINGS["fit"], quick=True).run(
        1, 0
    )
    assert record["dead_p"].shape == (E, 2)
    assert record["shadow_p"].shape == (E, 3)


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
@pytest.mark.parametrize("name", ["levels", "binary", "three"])
def test_records_of_estimators_are_what_users_are_given(name):
    dgp = DGPS[name]
    experiment = SettingExperiment(dgp, SETTINGS["estimators"], quick=True)
    record = experiment.run(1, 0)
    data = experiments.draw_data(dgp, 1, 0)
    X, at = pd.get_dummies(data.drop(columns="y")), pd.get_dummies(dgp.points)
    make = vs.ForestClassifier if dgp.classes else vs.ForestRegressor
    forest = make(40, random_state=seed_of(experiment), variance="corrected")
    forest.fit(X.astype(float), data["y"])
    bounds = forest.predict_interval(at.astype(float))
    e = list(ESTIMATORS).index("corrected")
    if name == "binary":
        bounds = bounds[:, 1]
    assert_allclose(record["lower"][e], bounds[..., 0].ravel())
    assert_allclose(record["upper"][e], bounds[..., 1].ravel())
    half = (bounds[..., 1] - bounds[..., 0]).ravel() / 2
    assert (half > np.sqrt(record["variance"][e])).all()
    if dgp.classes:
        mean = forest.predict_proba(at.astype(float))
        expected = mean[:, 1] if name == "binary" else mean.ravel()
        assert_allclose(record["mean"], expected)
    assert not any(key.startswith(("band", "dead")) for key in record)


def test_estimators_are_called_with_their_defaults():
    dgp = DGPS["noise"]
    record = SettingExperiment(dgp, SETTINGS["estimators"]).run(1, 0)
    data = experiments.draw_data(dgp, 1, 0)
    forest = vs.ForestRegressor(
        random_state=seed_of(SettingExperiment(dgp, SETTINGS["estimators"])),
        variance=ESTIMATORS[OURS],
    ).fit(data.drop(columns="y"), data["y"])
    assert record["B"] == len(forest.estimators_)
    assert_allclose(record["mean"], forest.predict(dgp.points))


def test_settings_are_those_of_the_page():
    assert list(SETTINGS)[:2] == ["fit", "estimators"]
    assert SETTINGS["fit"].options == {}
    assert SETTINGS["half"].options == {"replace": False, "k": 0.5}
    assert SETTINGS["whole"].options == {"k": 1.0}
    assert SETTINGS["B500"].options == {"B": 500}
    dgp = DGPS["noise"]
    small = experiments.grow(dgp, experiments.draw_data(dgp, 1, 0), 1, k=1.0, B=5)
    assert (small.k, small.replace) == (dgp.n, True)
    assert not SETTINGS["estimators"].applies(DGPS["clusters"])
    assert SETTINGS["estimators"].applies(dgp)


def test_all_settings_see_the_same_data_and_other_trees():
    fit, whole = (
        SettingExperiment(DGPS["noise"], SETTINGS[s]) for s in ("fit", "whole")
    )
    assert fit.fingerprint(1)["drawn"] == whole.fingerprint(1)["drawn"]
    assert fit.fingerprint(1)["values"] != whole.fingerprint(1)["values"]
    assert fit.fingerprint(1)["drawn"] != fit.fingerprint(2)["drawn"]


def test_seeds_share_a_data_set():
    experiment = SeedExperiment(DGPS["noise"], 500, quick=True)
    one, two = experiment.run(1, 0), experiment.run(1, 1)
    data = experiments.draw_data(DGPS["noise"], 1, 0)
    res = experiments.grow(DGPS["noise"], data, seed_of(experiment, 1), B=40)
    assert_allclose(two["total"][LAST], res.components.total)
    assert_allclose(two["mc_se"][LAST], res.components.mc_se)
    assert not np.allclose(one["total"], two["total"])


# ---------------------------------------------------------- what is made of it


def test_the_centre_is_not_drawn_towards_the_estimates():
    mean = np.array([[0.0], [1.0], [5.0]])
    root = np.sqrt(1.5)
    assert_allclose(validity.distance_to_centre(mean)[:, 0] / root, [2, 1, -3])
    many = np.random.default_rng(1).normal(size=(7, 3))
    spread = (validity.distance_to_centre(many) ** 2).mean(axis=0)
    assert_allclose(spread, many.var(axis=0, ddof=1))


def test_intervals_need_not_be_symmetric_and_nan_holds_nothing():
    mean = np.array([[0.0], [1.0], [5.0]])  # centres as seen: 2.449, 2.225, 1.326
    lower = np.array([-9.0, 2.2, 1.4])[:, None, None]
    upper = np.array([2.4, 2.3, np.nan])[:, None, None]
    inside = validity.covers_centre(mean, lower, upper)
    assert_array_equal(inside[:, 0, 0], [0, 1, 0])
    assert validity.covers_centre(mean, lower, upper + 0.1)[0, 0, 0] == 1


def test_points_by_hand():
    mean = np.array([[0.0, 1], [2, 1], [4, 1]])
    record = hand_made(mean, half=[2.4, 0.5], variance=6.0)
    record["upper"][2, :, 0] += 1.2
    frame = validity.point_frame({("fit", "noise"): record})
    assert len(frame) == 2 * E
    row = frame[(frame["estimator"] == OURS) & (frame["point"] == 0)].iloc[0]
    assert row["ratio"] == pytest.approx(6 / 4)
    assert row["true_sd"] == pytest.approx(2)
    moves = (6 - 1.5 * np.array([4, 0, 4])) / 4
    assert row["ratio_se"] == pytest.approx(moves.std(ddof=1) / np.sqrt(3))
    # centre 2, 2.449 away from the ends
    assert row["coverage"] == pytest.approx(1 / 3)
    assert row["coverage_se"] == pytest.approx(np.std([0, 1, 0], ddof=1) / np.sqrt(3))
    ideal = 2 * 1.959964 * 2
    assert row["median_width"] == pytest.approx(4.8 / ideal)
    assert row["mean_width"] == pytest.approx(5.2 / ideal)
    still = frame[frame["point"] == 1]
    assert still["ratio"].isna().all(), "a ratio to nothing is none"
    assert (still["coverage"] == 1).all()


def test_tests_and_bands_by_hand():
    record = hand_made(np.arange(4.0)[:, None], half=9.0)
    record["dead_p"] = for_all([[0.01, 0.5], [0.049, 0.04], [0.9, 0.05], [0.2, 0.3]])
    centred = np.array([[-1.0, 3], [1, -3], [-1, 3], [1, -3]])
    record["band_mean"] = centred
    half = np.array([[2.0, 4], [2, 3], [1, 4], [2, 4]])  # seen at 1.155 and 3.464
    record["band_lower"] = for_all(centred - half)
    record["band_upper"] = for_all(centred + half)
    record["shadow_mean"] = 7 + centred[:, :1]
    record["shadow_p"] = for_all(np.zeros((4, 1)))
    record["shadow_lower"] = for_all(record["shadow_mean"] - half[:, :1])
    record["shadow_upper"] = for_all(record["shadow_mean"] + half[:, :1])
    frame = validity.design_frame({("fit", "noise"): record})
    assert list(frame["estimator"]) == list(ESTIMATORS)
    row = frame.iloc[LAST]
    assert (row["B"], row["data_sets"]) == (40, 4)
    assert row["dead"] == pytest.approx((0.5 + 1 + 0 + 0) / 4)
    spread = np.std([0.5, 1, 0, 0], ddof=1)
    assert row["dead_se"] == pytest.approx(spread / 2)
    assert row["band"] == pytest.approx(2 / 4)
    assert row["shadows"] == pytest.approx(1 / 4), "about their own mean, not zero"


def test_what_estimators_do_not_have_is_missing():
    record = hand_made(np.arange(4.0)[:, None], half=9.0)
    row = validity.design_frame({("estimators", "noise"): record}).iloc[0]
    assert row[["dead", "band", "shadows"]].isna().all()


def test_monte_carlo_errors_by_hand():
    total = for_all([[1.0], [3.0], [5.0]])
    stated = for_all([[1.0], [1.0], [np.sqrt(7)]])
    record = {"B": np.array([100.0, 200, 300]), "total": total, "mc_se": stated}
    row = validity.seeds_frame({("auto", "noise"): record}).iloc[LAST]
    assert row["realised"] == pytest.approx(2)
    assert row["stated"] == pytest.approx(np.sqrt(3))
    assert row["ratio"] == pytest.approx(2 / np.sqrt(3))
    assert row["se"] == pytest.approx(0.5)
    assert row["learners"] == 200


@pytest.mark.parametrize("count", [100, 200, 500])
def test_the_chance_of_missing_the_goal(count):
    inside = sum(
        math.comb(count, j) * 0.95**j * 0.05 ** (count - j)
        for j in range(count + 1)
        if 93 * count <= 100 * j <= 97.5 * count
    )
    assert validity.chance_outside(count) == pytest.approx(1 - inside)


def made_up(coverages, laws, *, ratio=1.0, dead=0.05, setting="fit"):
    points = pd.DataFrame(
        {
            "setting": setting,
            "law": laws,
            "held": [DGPS[name].held_out for name in laws],
            "estimator": OURS,
            "point": range(len(laws)),
            "ratio": ratio,
            "ratio_se": 0.05,
            "coverage": coverages,
            "median_width": 1.1,
        }
    )
    names = list(dict.fromkeys(laws))
    tests = pd.DataFrame(
        {
            "setting": setting,
            "law": names,
            "held": [DGPS[name].held_out for name in names],
            "estimator": OURS,
            "data_sets": 500,
            "B": 5000.0,
            "dead": dead,
            "band": 0.95,
            "shadows": np.nan,
        }
    )
    return Findings(points, tests)


def test_goals_are_counted():
    laws = ["noise"] * 4 + ["jumps"] * 2
    found = made_up([0.93, 0.975, 0.95, 0.929, 0.95, 0.976], laws, dead=[0.066, 0.065])
    lines = goals(found)
    assert "4 of 6 cells (goal 90%): missed" in lines[0]
    assert "Held-out designs: 1 of 2" in lines[0]
    assert "Outside: noise 1 of 4 (92.9); jumps 1 of 2 (97.6)." in lines[0]
    assert "ratio 1.00 (goal 0.95 to 1.15): met" in lines[1]
    assert "[3.5, 6.5] %: 1 of 2 designs: missed. Outside: noise 6.6." in lines[2]
    assert "[93, 97.5] %: 2 of 2 designs: met." in lines[3]
    good = made_up([0.95] * 9 + [0.9], ["noise"] * 10, ratio=1.16)
    assert "9 of 10 cells (goal 90%): met" in goals(good)[0]
    assert goals(good)[1].endswith("missed.")


def test_the_report_has_designs_in_rows_and_settings_in_columns():
    one = made_up([0.94, 0.96, 0.95], ["noise", "noise", "jumps"], ratio=[1, 1.2, 0.9])
    text = report(one).markdown
    assert "| noise   | 1.10 · 95.0 (94.0) |" in text
    assert "| jumps † | 0.90 · 95.0 (95.0) |" in text
    assert "| noise   | 5.0 · 95.0 |" in text
    assert "misses the goal by chance in 2 % of cells" in text
    assert "of 95 % is 1.0 %, of a variance ratio 0.05" in text
    only = report(made_up([0.95], ["noise"], setting="estimators")).markdown
    assert "rejected in percent of tests" not in only


def test_the_page_is_what_its_tables_say():
    """To write the page anew loses nothing."""
    docs = Path(__file__).parents[2] / "docs"
    names = ("points", "laws", "seeds", "peers")
    frames = [pd.read_csv(docs / f"validity-{name}.csv") for name in names]
    page = (docs / "validity.md").read_text(encoding="utf-8")
    assert report(Findings(*frames, absent=["EconML"])).markdown + "\n" == page
    assert "](truth.md)" in page


def test_a_page_links_only_to_what_is_there(tmp_path):
    found = report(made_up([0.94, 0.96], ["noise", "jumps"]))
    page = tmp_path / "validity.md"
    found.write(tmp_path)
    alone = page.read_text(encoding="utf-8")
    assert '"Intervals that aim at E\\[y|x\\]" in the documentation lists cov' in alone
    pages = re.findall(r"\]\(([^)]*)\)", alone)
    assert pages == ["validity.png"]
    assert all((tmp_path / name).is_file() for name in pages)
    (tmp_path / "truth.md").write_text("# Truth\n")
    found.write(tmp_path)
    assert page.read_text(encoding="utf-8") == found.markdown + "\n"


# ------------------------------------------------------------------ the command

QUICK = ["reproduce", "validity", "--quick", "--n-jobs", "2"]


def run(out: Path, iterations: int, *more: str) -> int:
    chosen = ["--designs", "noise,clusters", "--settings", "fit,estimators,seeds"]
    given = [*QUICK, "--iterations", str(iterations), "--out", str(out)]
    return main([*given, *(more or chosen)])


def test_quick_run_end_to_end_and_resumption(tmp_path, capsys, monkeypatch):
    assert run(tmp_path / "whole", 4) == 0
    printed = capsys.readouterr()
    assert "# Do the intervals hold?" in printed.out
    assert "validity-fit-noise" in printed.err
    folder = tmp_path / "whole" / "quick"
    text = (folder / "validity.md").read_text()
    assert text.startswith("*Quick: a few trees")
    assert "4 data sets per simulation design" in text
    assert "over 4 seeds" in text
    assert (folder / "validity.png").stat().st_size > 20_000
    points = pd.read_csv(folder / "validity-points.csv")
    assert len(points) == E * ((5 + 5) + 5)
    assert set(points["setting"]) == {"fit", "estimators"}
    assert run(tmp_path / "parts", 2) == 0
    grown = []
    grow = experiments.grow

    def counted(*args, **options):
        grown.append(args[0].name)
        return grow(*args, **options)

    monkeypatch.setattr(experiments, "grow", counted)
    assert run(tmp_path / "parts", 4) == 0
    # two more of each, and one more for each fingerprint
    assert set(grown) == {"clusters", "noise"}
    assert grown.count("clusters") == 3
    for path in folder.glob("*.csv"):
        again = tmp_path / "parts" / "quick" / path.name
        assert again.read_text() == path.read_text(), path.name


def test_mistaken_names_are_errors_of_one_line(tmp_path, capsys):
    for given, message in {
        ("--laws", "moon"): "designs must be some of mars, friedman10",
        ("--settings", "all"): "some of fit, estimators, half, whole, B500, seeds, p",
        ("--settings", "seeds"): "must name one of fit, estimators, half, whole, B500",
    }.items():
        assert run(tmp_path, 2, *given) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(ValueError, match="`laws` is an option of 'validity' only"):
        next(vs.studies.reproduce("all", tmp_path, laws=["mars"]))


def test_other_estimators_do_not_mix_with_old_numbers(tmp_path, capsys, monkeypatch):
    given = ["--laws", "noise", "--settings", "fit"]
    assert run(tmp_path, 2, *given) == 0
    monkeypatch.setitem(experiments.ESTIMATORS, "BM", "bm")
    assert run(tmp_path, 2, *given) == 2
    assert "were made with other settings: estimators" in capsys.readouterr().err


# --------------------------------------------------------------------- peers


def test_peers_that_are_not_there_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(experiments.importlib.util, "find_spec", lambda name: None)
    assert run(tmp_path, 2, "--laws", "noise", "--settings", "fit,peers") == 0
    assert "Not installed: ranger, grf, EconML." in capsys.readouterr().out


def test_peers_see_the_same_data(tmp_path, capsys, monkeypatch):
    """An R that answers with the mean of y and a standard error of one."""
    seen = []

    def fake(peer, code, given):
        assert "ranger::ranger" in code
        folder, trees, *seeds = given
        assert (trees, len(seeds)) == ("100", 2)
        for i in (1, 2):
            y = pd.read_csv(Path(folder) / f"data{i}.csv")["y"]
            seen.append(y.to_numpy())
            n = len(pd.read_csv(Path(folder) / "at.csv"))
            answer = pd.DataFrame({"mean": [y.mean()] * n, "se": 1.0})
            answer.to_csv(Path(folder) / f"out{i}.csv", index=False)

    monkeypatch.setattr(experiments, "_run_r", fake)
    monkeypatch.setattr(experiments, "find_peers", lambda: (["ranger"], ["grf"]))
    given = ["--laws", "noise,rare,clusters", "--settings", "fit,peers"]
    assert run(tmp_path, 4, *given, "--n-jobs", "1") == 0
    ours = [experiments.draw_data(DGPS["noise"], 1, i)["y"] for i in range(4)]
    assert len(seen) == 4
    for y in ours:
        assert any(np.allclose(y, other) for other in seen)
    frame = pd.read_csv(tmp_path / "quick" / "validity-peers.csv")
    assert set(frame["law"]) == {"noise"}
    assert set(frame["data_sets"]) == {4}
    truth = np.var([y.mean() for y in ours], ddof=1)
    assert_allclose(frame["ratio"], 1 / truth)
    text = capsys.readouterr().out
    assert "Not installed: grf." in text
    assert "| vstatkit, fit (defaults) |" in text
    assert "| ranger                   |" in text


def test_ours_is_among_peers_on_their_terms():
    dgp = DGPS["clusters"]
    peer = experiments.PeerExperiment(experiments.OWN_FORESTS, dgp, trees=100, block=2)
    record = peer.run(1, 3)
    stream = iteration_stream(1, peer.name, 3, Draw.ENSEMBLE)
    rng = int(stream.integers(2**31 - 1, size=2)[1])
    res = vs.fit(
        dgp.formula,
        experiments.draw_data(dgp, 1, 7),
        at=dgp.points,
        groups=dgp.groups,
        B=100,
        rng=rng,
    )
    assert_allclose(record["mean"][1], res.params)
    assert_allclose(record["variance"][1, 0], res.bse**2)
    assert_allclose(record["upper"][1, 0], res.params + 1.959964 * res.bse, rtol=1e-6)
    assert experiments.find_peers()[0][0] == experiments.OWN_FORESTS


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (subprocess.CalledProcessError(1, "R", stderr="no trees\n"), "no trees"),
        (subprocess.TimeoutExpired("R", 5), "timed out after 5 seconds"),
    ],
)
def test_a_peer_that_fails_is_an_error_of_the_study(monkeypatch, error, said):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(experiments.subprocess, "run", fail)
    with pytest.raises(experiments.PeerError, match=f"ranger failed in R: .*{said}"):
        experiments._run_r("ranger", "", [])


@pytest.mark.parametrize("peer", ["ranger", "grf"])
def test_r_packages_answer(peer):
    if peer not in experiments.find_peers()[0]:
        pytest.skip(f"R's {peer} is not there")
    dgp = DGPS["levels"]
    record = experiments.PeerExperiment(peer, dgp, trees=200, block=2).run(1, 0)
    assert record["mean"].shape == (2, 5)
    assert record["variance"].shape == (2, 1, 5)
    truth = dgp.mean(dgp.points)
    assert np.corrcoef(record["mean"].mean(axis=0), truth)[0, 1] > 0.7


def test_peers_answer_for_what_they_know():
    known = {
        peer: [dgp.name for dgp in DGPS.values() if experiments.peer_applies(peer, dgp)]
        for peer in ("ranger", "grf", experiments.OWN_FORESTS)
    }
    assert known[experiments.OWN_FORESTS] == known["grf"]
    assert set(known["grf"]) - set(known["ranger"]) == {"clusters", "missing"}
    assert "binary" not in known["grf"]
    assert "levels" in known["ranger"]
