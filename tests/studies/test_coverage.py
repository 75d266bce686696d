"""Coverage studies: arguments, labels, and checkpoints that fit."""

import json
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import vstatkit as vs
from vstatkit.exceptions import VstatkitError, VstatkitWarning
from vstatkit.sampling.registry import make_design
from vstatkit.storage.checkpoint import describe, hash_frame
from vstatkit.studies import experiment, table2
from vstatkit.studies.dgps import Line
from vstatkit.studies.experiment import (
    CheckpointError,
    Checkpoints,
    iteration_stream,
    run_experiment,
)
from vstatkit.studies.methods import Components, build_prefixes
from vstatkit.studies.simulation import QUICK, Arm, LabelsError, Simulation

AT = {"x": [4.0, 10.0]}


def study(generator=None, formula="y ~ x", **options):
    given = {"k": 10, "B": 20, "iterations": 3, "rng": 1, "kernel": "tree", "at": AT}
    given |= options
    if given["kernel"] in ("ols", "logit") or callable(given["kernel"]):
        given.pop("at")
    return vs.studies.coverage(generator or Line(30), formula, **given)


def shifted(by):
    return lambda rng: Line(30)(rng).assign(y=lambda data: data["y"] + by)


def power(p):
    return lambda data: (data["y"] ** p).mean()


# Checkpoints of another design or kernel


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (
            {"generator": shifted(0)},
            {"generator": shifted(100)},
            "the data that the generator draws",
        ),
        ({"kernel": power(1)}, {"kernel": power(2)}, "the kernel's values"),
        (
            {"kernel": KNeighborsRegressor(1)},
            {"kernel": KNeighborsRegressor(9)},
            "kernel .*n_neighbors=",
        ),
    ],
)
def test_checkpoints_of_other_functions_are_refused(tmp_path, one, other, named):
    first = study(**one, checkpoint=tmp_path)
    pd.testing.assert_frame_equal(study(**one, checkpoint=tmp_path), first)
    with pytest.raises(CheckpointError, match=f"other settings: .*{named}"):
        study(**other, checkpoint=tmp_path)


def test_estimators_are_described_by_their_parameters():
    pipe = make_pipeline(FunctionTransformer(np.log), KNeighborsRegressor(3))
    text = describe(pipe)
    assert "n_neighbors=3" in text
    assert "func=log" in text
    assert " at 0x" not in describe(power) + describe([object()])


def test_fingerprints_see_levels_but_not_last_bits():
    frame = pd.DataFrame({"x": [0.1, 1.0], "g": ["a", "b"]})
    near = frame.assign(x=[np.nextafter(0.1, 1), np.nextafter(1.0, 0)])
    assert hash_frame(near) == hash_frame(frame)
    assert hash_frame(frame.assign(x=[0.1, 1.0 + 1e-9])) != hash_frame(frame)
    coded = [
        frame.assign(g=pd.Categorical(frame["g"], categories=levels))
        for levels in (["a", "b"], ["a", "b", "c"])
    ]
    assert hash_frame(coded[0]) != hash_frame(coded[1])


def test_the_seed_comes_first_and_values_are_short(tmp_path):
    quick = QUICK
    run_experiment(table2.simulation(1, quick), 2, seed=1, directory=tmp_path)
    with pytest.raises(CheckpointError) as error:
        run_experiment(table2.simulation(2, quick), 2, seed=2, directory=tmp_path)
    assert "other settings: seed (was 1, now 2). Choose" in str(error.value)
    with pytest.raises(CheckpointError, match="at \\(was ") as error:
        run_experiment(table2.simulation(2, quick), 2, seed=1, directory=tmp_path)
    assert len(str(error.value)) < 350 + len(str(tmp_path))


@pytest.mark.parametrize(("seed", "kind"), [(-1, ValueError), (1.5, TypeError)])
def test_seeds_are_whole_numbers(seed, kind, tmp_path):
    with pytest.raises(kind, match="`seed` must be"):
        run_experiment(table2.simulation(1, QUICK), 2, seed=seed)
    with pytest.raises(kind, match="`seed` must be"):
        list(vs.studies.reproduce("table2", tmp_path, seed=seed, quick=True))
    with pytest.raises(kind, match="`seed` must be"):
        iteration_stream(seed, "x", 0, 0)


def test_numpy_seeds_and_sizes_are_kept(tmp_path):
    options = {"k": np.int64(10), "B": np.int64(20), "rng": np.int64(1)}
    first = study(**options, checkpoint=tmp_path)
    pd.testing.assert_frame_equal(study(checkpoint=tmp_path), first)


# Files that cannot be read, or were left behind


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04rubbish", b"rubbish"])
def test_a_broken_checkpoint_is_named(tmp_path, content):
    first = study(checkpoint=tmp_path)
    path = next(tmp_path.glob("*.npz"))
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{path.name}.*Remove this file"):
        study(checkpoint=tmp_path)
    path.unlink()
    pd.testing.assert_frame_equal(study(checkpoint=tmp_path), first)


def test_a_cut_checkpoint_is_named(tmp_path):
    study(checkpoint=tmp_path)
    path = next(tmp_path.glob("*.npz"))
    whole = path.read_bytes()
    for length in (len(whole) // 3, len(whole) - 10):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="Remove this file"):
            study(checkpoint=tmp_path)
    np.savez(path, other=np.zeros(2))
    with pytest.raises(CheckpointError, match="does not contain iterations"):
        study(checkpoint=tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_broken_settings_are_named(tmp_path, content):
    study(checkpoint=tmp_path)
    (tmp_path / "settings.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"settings\.json, cannot be read.*start"):
        study(checkpoint=tmp_path)


def test_unfinished_files_of_dead_runs_are_removed(tmp_path):
    dead = 2**22 + 1  # beyond the numbers that processes get
    ours = [f"000000-3.npz.{dead}.tmp", f"settings.json.{dead}.tmp"]
    kept = [f"000003-1.npz.{os.getppid()}.tmp", "notes.tmp", f"x.{dead}.tmp"]
    for name in ours + kept:
        (tmp_path / name).touch()
    study(checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.tmp")) == sorted(kept)


def small():
    arm = Arm("", 10, (20,), Components(("ij",)))
    return Simulation("small", Line(30), "y ~ x", (arm,), pd.DataFrame(AT))


def test_a_second_interrupt_waits_for_the_file(tmp_path, monkeypatch):
    """Ctrl-C while finished iterations are written: they are there, and it stops."""
    simulation = small()
    kept = Checkpoints(tmp_path, simulation, 1)
    savez = np.savez

    def press(file, **arrays):
        os.kill(os.getpid(), signal.SIGINT)
        savez(file, **arrays)

    monkeypatch.setattr(experiment.np, "savez", press)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        kept.save({0: simulation.run(1, 0)})
    assert signal.getsignal(signal.SIGINT) is handler
    assert list(kept.load()) == [0]
    assert not list(tmp_path.glob("*.tmp"))


def test_files_are_written_from_other_threads_too(tmp_path):
    simulation = small()
    thread = threading.Thread(target=Checkpoints, args=(tmp_path, simulation, 1))
    thread.start()
    thread.join()
    assert json.loads((tmp_path / "settings.json").read_text())["seed"] == 1


# Data sets that give other quantities


def levels(*sets):
    """Draw data sets whose factor has these levels, one after the other."""
    turn = iter(sets)

    def draw(rng):
        data = Line(30)(rng)
        return data.assign(g=np.resize(list(next(turn)), len(data)))

    return draw


@pytest.mark.parametrize(
    ("sets", "known", "new"),
    [
        (("abc", "abc", "abd"), "a, b, c", "iteration 2 has a, b, d"),
        (("ac", "bc", "ac"), "a, c", "iteration 1 has b, c"),  # the same names
    ],
)
def test_other_levels_are_refused(sets, known, new):
    with pytest.raises(LabelsError, match=f"levels of g: .*{known}; .*{new}.*levels="):
        study(levels(*sets), "y ~ g", kernel="ols", k=30)


def test_declared_levels_are_one_quantity():
    table = study(
        levels("abc", "ab", "abc"),
        "y ~ C(g, levels=['a', 'b', 'c'])",
        kernel=lambda y, X: dict(zip(X.columns, X.mean(), strict=True)),
    )
    assert len(table) == 3


def test_levels_of_predictors_may_vary_where_points_are_predicted():
    at = {"g": ["a"]}
    assert len(study(levels("abc", "ab", "ac"), "y ~ g", at=at)) == 1


@pytest.mark.parametrize("sets", [("ab", "bc", "ab"), ("abc", "ab", "abc")])
def test_other_classes_are_refused(sets):
    with pytest.raises(
        VstatkitError, match=r"same classes: .*iteration 1 has .* class"
    ):
        study(levels(*sets), "g ~ x")


def test_other_names_of_a_function_are_refused():
    turn = iter("aabbb")
    names = {}

    def kernel(data):
        key = data["y"].sum().round(3)  # the same rows, the same name
        return {names.setdefault("now", "a"): key}

    def draw(rng):
        names["now"] = next(turn)
        return Line(30)(rng)

    with pytest.raises(LabelsError, match=r"same values: .*has a; .*has b"):
        study(draw, kernel=kernel)


def test_the_table_names_the_class():
    two = study(levels("ab", "ab", "ab"), "g ~ x")
    assert set(two["response"]) == {"P(g = b)"}
    assert set(study()["response"]) == {"y"}


def test_the_generator_is_called_once_for_each_data_set(tmp_path):
    calls = []

    def draw(rng):
        calls.append(rng)
        return Line(30)(rng)

    study(draw)
    assert len(calls) == 3
    study(draw, checkpoint=tmp_path)
    assert len(calls) == 6


# Arguments


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"B": 50.0}, TypeError, "`B` must be a number of learners, .* got 50.0"),
        ({"B": [50.5, 60]}, TypeError, "`B` must be a number"),
        ({"B": "auto"}, TypeError, "`B` must be a number of learners, .* got 'auto'"),
        ({"B": True}, TypeError, "`B` must be a number"),
        (
            {"B": []},
            ValueError,
            r"`B` must be one or more numbers of learners, .* got \[\]",
        ),
        ({"B": [1, 5]}, ValueError, "each at least 2"),
        ({"B": [50, 20]}, ValueError, r"`B` must be increasing; got \[50, 20\]"),
        ({"B": [20, 20]}, ValueError, "`B` must be increasing"),
        ({"alpha": "x"}, TypeError, "`alpha` must be a number .* got 'x'"),
        ({"alpha": 1.0}, ValueError, "`alpha` must lie strictly"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly"),
        ({"iterations": "5"}, TypeError, "`iterations` must be a whole number; got"),
        ({"iterations": 2.5}, TypeError, "`iterations` must be a whole number; got"),
        ({"iterations": 1}, ValueError, "`iterations` must be at least 2"),
        ({"variance": []}, ValueError, "`variance` must name at least one"),
        ({"variance": 3}, TypeError, "`variance` must be the name"),
        ({"variance": ["ij", 3]}, TypeError, "`variance` must be the name"),
        (
            {"variance": ["corrected", "corrected_v"]},
            ValueError,
            "'corrected' and 'corrected_v' are both 'corrected_v'",
        ),
        ({"at": None}, ValueError, "needs query points.*`at`, with the columns x"),
        ({"n_in": 5}, TypeError, "design 'iid' has no option 'n_in'"),
        (
            {"design": "two-level", "B": [7, 40], "n_in": 5},
            ValueError,
            "multiple of the n_in = 5.* got 7",
        ),
        (
            {"design": "balanced", "B": [20, 50], "block": 30},
            ValueError,
            "whole groups, a multiple of block = 30.* got 20",
        ),
        ({"missing": "keep"}, ValueError, "`missing` must be"),
    ],
)
def test_arguments_are_checked(options, kind, message):
    with pytest.raises(kind, match=message):
        study(**options)


def test_points_are_refused_where_fit_refuses_them():
    data = Line(30)(np.random.default_rng(1))
    with pytest.raises(ValueError, match="`at` is for") as of_fit:
        vs.fit("y ~ x", data, kernel="ols", at=AT, B=10)
    for kernel in ("ols", power(1)):
        with pytest.raises(ValueError, match="`at` is for") as ours:
            vs.studies.coverage(Line(30), "y ~ x", kernel=kernel, at=AT, k=10, B=10)
        assert str(ours.value) == str(of_fit.value)


def test_options_of_the_design_are_those_of_fit():
    table = study(design="two-level", n_in=5)
    assert list(table["method"].unique()) == ["im"]
    implied = study(design="two-level", n_in=5, n_out=4, B=None)
    pd.testing.assert_frame_equal(implied, table)
    with pytest.raises(ValueError, match="`B` must be n_out"):
        study(design="two-level", n_in=5, n_out=5)
    blocks = study(design="balanced", block=10, B=np.array([10, 20]))
    assert list(blocks["B"].unique()) == [10, 20]


def holed(rng):
    data = Line(30)(rng)
    return data.assign(x=data["x"].where(data.index > 1))


def test_dropped_rows_are_counted():
    with pytest.warns(VstatkitWarning, match="^6 rows .* dropped, from 3 of 3") as seen:
        study(holed)
    assert len(seen) == 1
    with pytest.raises(vs.VstatkitError, match="missing='drop'"):
        study(holed, missing="raise")
    assert len(study(holed, missing="pass")) == 2


@pytest.mark.parametrize("interval", ["t", "normal"])
def test_a_constant_is_covered_and_has_no_ratio(interval):
    table = study(kernel=lambda data: 0.1, interval=interval, iterations=10)
    assert table["ratio"].isna().all()
    assert table["true_variance"].item() == 0
    if interval == "t":
        assert table["coverage"].item() == 1


def test_prefixes_are_increasing():
    design = make_design("iid", 5, 3, replace=True, seed=1)
    with pytest.raises(ValueError, match="`sizes` must be increasing"):
        build_prefixes(design, np.zeros((20, 1)), (20, 10))
