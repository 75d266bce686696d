"""Intervals that aim at E[y|x]: the choice, and the bias that is left."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.ensemble import bias_reduction
from vstatkit.ensemble.bias_reduction import (
    STAGES,
    Candidate,
    choose_learner,
    list_candidates,
    smooth_bias,
    with_larger_k,
)
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.stacking import stacking_weights
from vstatkit.exceptions import FileError
from vstatkit.kernels.base import OutOfBag, UnitDraw
from vstatkit.kernels.residual_trees import StagedKernel, Stages, replace_stages
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.registry import build_design
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays
from vstatkit.studies.dgps import DGPS

FORMULA = "y ~ x1 + x2 + x4"


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(150, rng=5)
    frame["cluster"] = np.repeat(np.arange(50), 3)
    return frame


@pytest.fixture(scope="module")
def aimed(data):
    return vs.fit(FORMULA, data, at=data.iloc[:3], B=300, rng=4, target="truth")


def trees(rng, mean, n=120):
    """Trees for data with a given mean of three predictors."""
    X = rng.uniform(size=(n, 3))
    y = mean(X) + rng.normal(size=n)
    return tree_kernel("forest", X, y, n_classes=None, weights=None, options={})


def literal_candidates(kernel, n_rows):
    """What is chosen from, written out."""
    leaves = sorted({1, 5, max(5, round(n_rows**0.5)), max(5, n_rows // 5)})
    own = kernel.options["max_features"]
    found = [
        Candidate(name, leaf, tried)
        for leaf in leaves
        for tried in sorted({own, 3})
        for name in ("both", "boost", "trend", "plain")
    ]
    rows = len(kernel.y)
    return [*found, *(Candidate(name, rows, own, False) for name in ("trend", "plain"))]


def literal_errors(kernel, design, units=None):
    """Residuals of all candidates, learner by learner; and how much worse each is."""
    losses, residuals = {}, []
    rows = np.arange(len(kernel.y)) if units is None else units
    for one in literal_candidates(kernel, design.k * len(rows) // design.n):
        options = {
            **kernel.options,
            "min_samples_leaf": one.min_samples_leaf,
            "max_features": one.max_features,
        }
        staged = replace_stages(replace(kernel, options=options), STAGES[one.name])
        counts = design.counts(0, 200)[:, rows]
        none = np.empty((0, 3))
        task = Task(staged, design, none, units, keep=True, oob=False)
        learners = evaluate(task, 0, 200, n_jobs=1).learners
        h = np.stack([staged.predict(one, kernel.X)[:, 0] for one in learners])
        out = np.where(counts == 0, 1.0, np.nan)
        y = kernel.centre + kernel.scale * kernel.y
        r, s = (
            y - np.nanmean(h[part] * out[part], axis=0)
            for part in (slice(100), slice(100, 200))
        )
        losses[one] = r * s
        residuals.append((r, s))
    best = min(losses, key=lambda one: losses[one].mean())
    worse = {}
    for one, loss in losses.items():
        excess = loss - losses[best]
        sums = pd.Series(excess - excess.mean()).groupby(rows).sum()
        error = np.sqrt((sums**2).sum()) / len(excess)
        worse[one] = excess.mean() / error if one != best else 0.0
    return losses, worse, np.array(residuals).swapaxes(0, 1)


MEANS = {
    "nothing": lambda X: np.zeros(len(X)),
    "line": lambda X: 3 * X[:, 0],
    "step": lambda X: 6.0 * ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)),
    "curve": lambda X: 8 * np.sin(3 * X[:, 0] * X[:, 1]) + 3 * X[:, 2],
}


def check_parts(choice):
    """The mix is grown by kernels of its candidates."""
    if list(choice.shares) == [choice.candidate]:
        assert choice.stack is None
        assert choice.stack_text is None
        return
    told = [int(part.split("%")[0]) for part in choice.stack_text.split("; ")]
    assert sum(told) in ((100,) if len(told) > 2 else (99, 100, 101))
    same = "those of the standard errors" in choice.stack_text
    assert same == (
        choice.candidate in sorted(choice.shares, key=choice.shares.get)[-2:]
    )
    for (grown, share), (one, expected) in zip(
        choice.stack, choice.shares.items(), strict=True
    ):
        assert share == expected
        assert getattr(grown, "stages", Stages()) == STAGES[one.name]
        for name in ("min_samples_leaf", "max_features"):
            assert grown.options[name] == getattr(one, name)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("clusters", [False, True])
def test_the_choice_is_that_of_the_literal_rule(rng, mean, clusters):
    kernel = trees(rng, MEANS[mean])
    units = np.repeat(np.arange(40), 3) if clusters else None
    design = IidDesign(40 if clusters else 120, 20, True, 11)
    choice = choose_learner(kernel, (), design, units, n_jobs=1)
    losses, worse, (r, s) = literal_errors(kernel, design, units)
    errors = {one: np.sqrt(loss.mean()) for one, loss in losses.items()}
    assert list(choice.errors) == list(errors)
    assert_allclose(list(choice.errors.values()), list(errors.values()), rtol=1e-9)
    most = 1.25 * min(errors.values())
    admitted = [one for one in worse if worse[one] <= 2 and errors[one] <= most]
    assert choice.candidate == admitted[0]
    weights = stacking_weights(r, s, design.n)
    found = [choice.shares.get(one, 0.0) for one in losses]
    assert_allclose(found, weights, atol=1e-6)
    mixed = np.sqrt(np.mean((weights @ r) * (weights @ s)))
    assert choice.stack_error == pytest.approx(mixed, rel=1e-6)
    check_parts(choice)
    stages = getattr(choice.kernel, "stages", Stages())
    assert stages == STAGES[choice.candidate.name]
    for name in ("min_samples_leaf", "max_features"):
        assert choice.kernel.options[name] == getattr(choice.candidate, name)
    kinds = {one.name: [] for one in errors}
    for one, error in errors.items():
        kinds[one.name].append(error)
    least = {
        "estimates": choice.stack_error,
        "standard errors": errors[choice.candidate],
    }
    least |= {name: min(found) for name, found in kinds.items()}
    assert choice.least_errors == pytest.approx(least)


def test_weights_count_in_the_errors(rng):
    """Rows without weight do not count, whatever their responses are."""
    kernel = trees(rng, MEANS["line"])
    weights = rng.integers(0, 4, size=120).astype(np.float64)
    kernel = replace(kernel, weights=weights)
    design = IidDesign(120, 60, True, 11)
    choice = choose_learner(kernel, (), design, None, n_jobs=1)
    losses, _, (r, s) = literal_errors(kernel, design)
    errors = [np.average(loss, weights=weights) for loss in losses.values()]
    assert_allclose(list(choice.errors.values()), np.sqrt(errors), rtol=1e-9)
    found = np.array([choice.shares.get(one, 0.0) for one in losses])
    some = weights > 0
    roots = np.sqrt(weights[some] / weights[some].mean())
    expected = stacking_weights(roots * r[:, some], roots * s[:, some], some.sum())
    assert_allclose(found, expected, atol=1e-6)


def houses(rng, n=88):
    """Prices that grow with the logarithm of the lot, and one very large lot."""
    lot, rooms = np.exp(rng.normal(size=n)), rng.integers(2, 6, n)
    lot[7] = 90.0
    y = np.log(lot) + 0.2 * rooms + 0.3 * rng.normal(size=n)
    X = np.column_stack([lot, rooms, rng.normal(size=n)])
    return tree_kernel("forest", X, y, n_classes=None, weights=None, options={})


def test_one_row_does_not_admit_a_learner_with_a_large_error(rng):
    """A line through one remote row: its error is large, and so is the error's error.

    By two standard errors of the difference alone the first candidate is admitted.
    """
    kernel = houses(rng)
    design = IidDesign(88, 57, True, 11)
    choice = choose_learner(kernel, (), design, None, n_jobs=1)
    _, worse, _ = literal_errors(kernel, design)
    first = next(iter(worse))
    least = min(choice.errors.values())
    assert worse[first] < 2
    assert choice.errors[first] > 1.5 * least
    assert choice.errors[choice.candidate] <= 1.25 * least


def test_options_that_are_given_are_not_chosen(rng):
    kernel = trees(rng, MEANS["line"])
    of_one = list_candidates(kernel, 100, {"min_samples_leaf"})
    assert {one.min_samples_leaf for one in of_one} == {1}
    assert all(one.splits for one in of_one)
    assert {one.max_features for one in of_one} == {1, 3}
    own = list_candidates(kernel, 100, {"max_features"})
    assert {one.max_features for one in own} == {1}
    assert {one.min_samples_leaf for one in own} == {1, 5, 10, 20, 120}
    few = list_candidates(kernel, 20)
    assert {one.min_samples_leaf for one in few} == {1, 5, 120}


def test_a_fit_keeps_the_options_it_is_given(data):
    fit = {"B": 4, "rng": 4, "target": "truth", "oob": False}
    res = vs.fit(FORMULA, data, min_samples_leaf=9, max_features=2, **fit)
    options = res.recipe.task.kernel.options
    assert (options["min_samples_leaf"], options["max_features"]) == (9, 2)
    assert "leaves of 9 rows or more and 2 of 3 columns tried" in res.info.aim.learner
    assert res.k == 91  # 150**0.9 = 90.9
    assert vs.fit(FORMULA, data, k=33, **fit).k == 33


def test_without_trees_there_is_a_line_or_a_mean(rng):
    kernel = trees(rng, MEANS["line"])
    line, mean = list_candidates(kernel, 100)[-2:]
    assert (line.text(3), mean.text(3)) == ("a linear trend", "a mean")
    counts = rng.multinomial(40, np.full(120, 1 / 120), size=2).astype(np.float64)
    keys = np.arange(2, dtype=np.uint64)
    found = mean.kernel(kernel).grow(UnitDraw(counts), keys, kernel.X[:3]).values
    y = kernel.centre + kernel.scale * kernel.y
    assert_allclose(found, np.repeat(counts @ y / 40, 3).reshape(2, 3))
    kept = (
        line.kernel(kernel)
        .grow(UnitDraw(counts), keys, kernel.X[:3], keep=True)
        .learners
    )
    assert all(one.sizes.tolist() == [1] for one in kept)


def test_subsamples_are_larger_where_they_are_independent():
    assert with_larger_k(IidDesign(200, 70, False, 1)) == IidDesign(200, 118, False, 1)
    shards = build_design(
        "shards", 900, None, "auto", replace=False, seed=1, options={}
    )
    assert with_larger_k(shards[0]) is shards[0]


def test_the_choice_depends_on_data_and_seed_alone(data, aimed):
    fit = {"rng": 4, "target": "truth", "B": 300}
    other = vs.fit(FORMULA, data, at=data.iloc[5:6], n_jobs=2, **fit)
    assert other.info.aim.errors == aimed.info.aim.errors
    assert other.info.aim.learner == aimed.info.aim.learner
    scaled = data.assign(y=1000 * data["y"] + 7)
    third = vs.fit(FORMULA, scaled, at=data.iloc[:3], **fit)
    found = np.array(list(third.info.aim.errors.values()))
    assert_allclose(found, 1000 * np.array(list(aimed.info.aim.errors.values())))


def test_truth_is_the_fit_that_was_chosen(data, aimed):
    kernel = aimed.recipe.task.kernel
    assert kernel.stages.boost
    kinds = ["estimates", "standard errors", "both", "boost", "trend", "plain"]
    assert list(aimed.info.aim.errors) == kinds
    names = ("min_samples_leaf", "max_features")
    own = {name: kernel.options[name] for name in names}
    trend = "linear" if kernel.stages.trend else None
    how = {"trend": trend, "boost": 1, "k": aimed.k, **own}
    same = vs.fit(FORMULA, data, at=data.iloc[:3], B=300, rng=4, **how)
    step = aimed.values[0] - same.values[0]  # the same for all learners
    assert_allclose(same.values + step, aimed.values, rtol=1e-12)
    assert_allclose(same.bse, aimed.bse, rtol=1e-9)


@pytest.mark.parametrize("progress", [True, False])
def test_choosing_shows_its_progress(data, capsys, progress):
    vs.fit(FORMULA, data, B=20, rng=4, target="truth", progress=progress, n_jobs=1)
    assert (" candidates" in capsys.readouterr().err) == progress


def test_factors_that_stay_whole_have_no_trend(data):
    frame = data.assign(g=pd.Categorical(data["cluster"] % 5))
    res = vs.fit(
        "y ~ x1 + g", frame, B=20, rng=1, target="truth", categorical_splits=True
    )
    assert list(res.info.aim.errors) == [
        "estimates",
        "standard errors",
        "boost",
        "plain",
    ]


def test_other_criteria_have_no_stages(data):
    counts = data.assign(y=np.round(data["y"]).clip(0))
    fit = {"B": 20, "rng": 1, "target": "truth", "criterion": "poisson"}
    errors = vs.fit(FORMULA, counts, **fit).info.aim.errors
    assert list(errors) == ["estimates", "standard errors", "plain"]


def test_learners_of_one_column_do_not_choose_columns():
    several, one = (Candidate("plain", 5, 1).text(p) for p in (2, 1))
    assert several.endswith(
        "leaves of 5 rows or more and 1 of 2 columns tried at a split"
    )
    assert one == "a tree, with leaves of 5 rows or more"


def test_bias_left_is_smoothed_residuals(rng):
    """Written out: a forest on out-of-bag predictions less responses."""
    X = rng.uniform(size=(80, 2))
    y = 5 * X[:, 0] + rng.normal(size=80)
    kernel = tree_kernel("forest", X, y, n_classes=None, weights=None, options={})
    task = Task(kernel, IidDesign(80, 20, True, 3), X[:4], None, keep=False)
    oob = evaluate(task, 0, 150, n_jobs=1).oob
    found = smooth_bias(task, oob, X[:4], 1)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["y"] = oob.mean[:, 0] - y
    seed = bias_reduction.learner_keys(3, 0, 1, bias_reduction.Purpose.OUT_OF_BAG)[0]
    res = vs.fit(
        "y ~ a + b",
        frame,
        at=frame.iloc[:4],
        k=20,
        B=500,
        rng=int(seed),
        min_samples_leaf=5,
        variance="hoeffding",
        oob=False,
    )
    assert_allclose(found.estimate, res.params, rtol=1e-9)
    assert_allclose(found.bse, res.bse, rtol=0.2)  # rho from other reference points


def test_bias_left_finds_a_bias_and_its_sign():
    """Friedman's function: plain forests are too high below and too low above."""
    dgp = DGPS["mars"]
    frame, at = dgp(np.random.default_rng(1)), dgp.points.iloc[1:3]
    plain = vs.fit("y ~ .", frame, at=at, B=400, rng=1)
    low, high = plain.params - dgp.mean(at)
    left = plain.bias_left()
    assert low > 1.5
    assert high < -1.5
    assert 0.4 * low < left["bias"].iloc[0] < 1.3 * low
    assert 1.3 * high < left["bias"].iloc[1] < 0.4 * high
    assert_allclose(left["share"], left["bias"] / plain.bse)
    reduced = vs.fit("y ~ .", frame, at=at, B=400, rng=1, target="truth")
    assert (abs(reduced.bias_left()["bias"]) < abs(left["bias"]) / 3).all()


def test_bias_left_of_new_data(data, aimed):
    pd.testing.assert_frame_equal(
        aimed.bias_left(data.iloc[:3]), aimed.bias_left(), check_names=False
    )
    assert len(aimed.bias_left(data.iloc[:7])) == 7


@pytest.mark.parametrize("new", [False, True])
def test_the_picture_shows_the_table(data, aimed, new):
    pytest.importorskip("matplotlib").use("Agg")
    given = {"data": data.iloc[5:7]} if new else {}
    ax = aimed.plot(kind="bias", alpha=0.1, **given)
    left = aimed.bias_left(**given)
    places = np.arange(len(left))[::-1]
    drawn = ax.lines[-1]
    assert_allclose(drawn.get_xdata(), left["bias"])
    assert_allclose(drawn.get_ydata(), places)
    ends = np.array([one[:, 0] for one in ax.collections[0].get_segments()])
    assert_allclose(ends.mean(axis=1), left["bias"])
    assert_allclose(np.diff(ends)[:, 0], 2 * 1.6448536 * left["std_error"], rtol=1e-6)
    spread = (left["bias"] / left["share"]).to_numpy()
    bars = np.array([[one.get_x(), one.get_width()] for one in ax.patches])
    assert_allclose(bars, np.column_stack([-spread, 2 * spread]), rtol=1e-9)
    middles = [one.get_y() + one.get_height() / 2 for one in ax.patches]
    assert_allclose(middles, places, atol=1e-12)
    assert "90% interval" in ax.get_xlabel()


def test_bias_left_of_clusters_and_of_some_rows(data):
    res = vs.fit(
        FORMULA, data, at=data.iloc[:2], B=300, rng=4, target="truth", groups="cluster"
    )
    assert np.isfinite(res.bias_left().to_numpy()).all()
    task, oob = res.recipe.task, res.recipe.oob
    rows = np.arange(0, 150, 2)
    some = OutOfBag(oob.total[rows], oob.times[rows], rows)
    assert np.isfinite(smooth_bias(task, some, task.kernel.X[:2]).estimate).all()


def test_the_summary_says_what_it_aims_at(data, aimed):
    text = " ".join(str(aimed.summary()).split())
    assert "The intervals target E[y|x], at 0.95." in text
    learner = aimed.info.aim.learner
    assert "a second tree on what the first leaves, with leaves of" in learner
    assert f"each {learner}, fitted to k = 91 observations" in text
    assert "this allows for a small remaining bias only" in text
    errors = aimed.info.aim.errors
    assert f"pilot ensembles: estimates {errors['estimates']:.3f}, standard" in text
    assert "Remaining bias bias std err share" in text
    one = vs.fit(FORMULA, data, B=50, rng=4, trend="linear")
    text = " ".join(str(one.summary()).split())
    assert "each learner a linear trend and a tree, fitted to k = 56" in text
    assert "do not cover E[y|x]" in text
    assert "Remaining bias" not in text


DERIVED = {
    "contrast": lambda res, data: res.t_test(np.ones((1, len(res.params)))),
    "effect": lambda res, data: res.t_test("x1"),
    "average effects": lambda res, data: res.avg_effects().results,
    "average slopes": lambda res, data: res.avg_slopes().results,
    "average predictions": lambda res, data: res.avg_predictions().results,
    "curve": lambda res, data: res.partial_dependence("x1").results,
    "function": lambda res, data: res.transform(np.exp),
    "predictions": lambda res, data: res.get_prediction(data.iloc[:5]),
    "difference": lambda res, data: vs.compare(res, res, at=data[:3]).differences,
}


@pytest.fixture(scope="module", params=[1, 2])
def at_points(request, data):
    fit = {"at": data.iloc[: request.param], "B": 60, "rng": 4, "target": "truth"}
    return vs.fit(FORMULA, data, **fit)


@pytest.mark.parametrize("kind", DERIVED)
def test_derived_estimates_do_not_carry_the_bias_of_others(data, kind, at_points):
    assert "Remaining bias" in str(at_points.summary())
    derived = DERIVED[kind](at_points, data)
    for one in (derived, derived.with_variance("ij")):
        assert one.info.aim.truth
        assert one.info.aim.bias == one.info.aim.bias_error == ()
        assert "Remaining bias" not in str(one.summary())
    assert not hasattr(derived, "bias_left")


def test_another_variance_keeps_the_bias_of_the_same_estimates(aimed):
    other = aimed.with_variance("ij").bias_left()
    assert_array_equal(other["bias"], aimed.bias_left()["bias"])
    assert_allclose(other["share"] * aimed.with_variance("ij").bse, other["bias"])


def test_files_of_derived_estimates_hold_no_bias(aimed, tmp_path):
    path = tmp_path / "average.npz"
    aimed.avg_effects().results.save(path)
    loaded = vs.load(path)
    assert loaded.info.aim.bias == ()
    assert "Remaining bias" not in str(loaded.summary())
    document, arrays = read_archive(path, known_arrays())
    # Files of early versions hold the biases of the query points.
    document["info"]["aim"].update(bias=[1.0] * 3, bias_error=[1.0] * 3)
    write_archive(path, document, arrays)
    assert vs.load(path).info.aim.bias == ()


def test_more_learners_measure_the_bias_again(data, aimed):
    few = vs.fit(FORMULA, data, at=data.iloc[:3], B=150, rng=4, target="truth")
    grown = few.more(300)
    assert_allclose(grown.info.aim.bias, aimed.info.aim.bias, rtol=1e-9)
    assert few.info.aim.bias != grown.info.aim.bias
    assert str(grown.summary()) == str(aimed.summary())


def test_files_hold_what_was_chosen(aimed, data, tmp_path):
    path = tmp_path / "res.npz"
    aimed.save(path)
    loaded = vs.load(path)
    assert loaded.info.aim == aimed.info.aim
    assert str(loaded.summary()) == str(aimed.summary())
    pd.testing.assert_frame_equal(loaded.bias_left(), aimed.bias_left())
    with pytest.raises(ValueError, match="training data, which these results"):
        loaded.bias_left(data.iloc[:2])


DAMAGES = {
    "no number": lambda aim: aim.update(bias=["1", 2.0, 3.0]),
    "not finite": lambda aim: aim["errors"].update(both=float("inf")),
    "differ": lambda aim: aim.update(bias=[1.0]),
    "too many": lambda aim: aim.update(bias=[1.0] * 4, bias_error=[1.0] * 4),
    "a field more": lambda aim: aim.update(more=1),
    "no text": lambda aim: aim.update(learner=3),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(aimed, tmp_path, damage):
    path = tmp_path / "res.npz"
    aimed.save(path)
    document, arrays = read_archive(path, known_arrays())
    DAMAGES[damage](document["info"]["aim"])
    write_archive(path, document, arrays)
    with pytest.raises(FileError):
        vs.load(path)


def test_checkpoints_go_on(data, aimed, tmp_path):
    fit = {"at": data.iloc[:3], "rng": 4, "target": "truth"}
    vs.fit(FORMULA, data, B=100, checkpoint=tmp_path, **fit)
    res = vs.fit(FORMULA, data, B=300, checkpoint=tmp_path, **fit)
    assert_array_equal(res.values, aimed.values)


REFUSED = {
    "kernel": ({"kernel": "ols"}, "require kernel='forest' or 'tree'; got"),
    "classes": ({"formula": "C(x1 > 0.5) ~ x2 + x4"}, "numeric response"),
    "stages": ({"boost": 1}, "chooses `trend` and `boost` itself"),
    "medians": ({"criterion": "absolute_error"}, "estimates medians"),
    "another": ({"target": "beauty"}, "`target` must be 'mean' or 'truth'"),
    "no rows": ({"k": 3000}, "Use a smaller `k`"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(data, case):
    options, message = REFUSED[case]
    options = {"formula": FORMULA, "B": 10, "target": "truth", **options}
    with pytest.raises((ValueError, TypeError), match=message):
        vs.fit(data=data, **options)


def test_no_bias_without_rows_left_out(data):
    res = vs.fit(FORMULA, data, B=20, rng=1, oob=False)
    with pytest.raises(ValueError, match="Fit with oob=True"):
        res.bias_left()
    aimed = vs.fit(FORMULA, data, B=20, rng=1, oob=False, target="truth")
    assert "Remaining bias" not in str(aimed.summary())


def test_a_fit_with_stages_is_one_of_trees(data):
    res = vs.fit(FORMULA, data, B=20, rng=1, boost=1)
    assert isinstance(res.recipe.task.kernel, StagedKernel)
    assert res.limit == pytest.approx(1.5 * np.ptp(data["y"]))
