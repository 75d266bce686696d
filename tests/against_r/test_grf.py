"""grf's numbers from its own trees: recorded, by loops, and through R's calls."""

import gzip
import json
import subprocess
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import r_bridge
import vstatkit as vs
from r_bridge import availability
from r_bridge.check_grf import GROW, bags_variance
from r_bridge.convert import to_r_frame
from r_bridge.grf import (
    FLATTEN,
    GrfForest,
    GrfTree,
    read_trees,
    split_trees,
    with_constants_of_grf,
)
from r_bridge.recorders import TREES, record_grf
from r_bridge.recording import read_recording, write_json
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.variance import formulas

RECORDING = read_recording()


@pytest.mark.parametrize(
    "comparison", r_bridge.compare_recorded(), ids=lambda one: one.title
)
def test_recorded_forests_are_reproduced(comparison):
    assert comparison.ok
    assert comparison.difference < 1e-12
    names = [quantity.name for quantity in comparison.quantities]
    assert names == ["tree predictions", "prediction", "little bags", "IJ-U"]
    assert comparison.versions["grf"] == "2.6.1"
    assert comparison.versions["R"] == "4.2.2"
    assert comparison.quantities[-1].verdict == "information"


@pytest.mark.parametrize("forest", RECORDING.forests, ids=lambda one: one.name)
def test_our_own_constants_differ_from_grfs_by_rounding(forest):
    parts = vs.variance_components(
        forest.counts,
        forest.pseudo_values,
        method="little_bags",
        replace=False,
        groups=forest.groups,
    )
    assert_allclose(parts.sampling, forest.variances, rtol=1e-9)


def test_trees_of_a_group_share_a_half_sample():
    for forest in RECORDING.forests:
        for group in range(3):
            rows = forest.counts[forest.groups == group].any(axis=0)
            assert rows.sum() <= len(forest.Y) // 2


def stump(left, right, *, drawn, split=0.5, missing_left=True):
    """One split on the first variable, in R's terms."""
    nodes = [
        {
            "is_leaf": False,
            "split_variable": 1,
            "split_value": split,
            "send_missing_left": missing_left,
            "left_child": 2,
            "right_child": 3,
        },
        {"is_leaf": True, "samples": left},
        {"is_leaf": True, "samples": right},
    ]
    return GrfTree.from_nodes({"drawn_samples": drawn, "nodes": nodes})


@pytest.mark.parametrize(
    ("split", "missing_left", "leaves"),
    [
        (0.5, True, [1, 1, 2, 1]),
        (0.5, False, [1, 1, 2, 2]),
        (np.nan, False, [2, 2, 2, 1]),
    ],
)
def test_rows_find_their_leaf(split, missing_left, leaves):
    tree = stump([1], [2], drawn=[1, 2], split=split, missing_left=missing_left)
    X = np.array([[0.2], [0.5], [0.7], [np.nan]])
    assert_array_equal(tree.leaf_of(X), leaves)


def weighted_forest(rng, *, empty=False):
    """Stumps with weights; some leaves are empty on request."""
    n, B = 12, 20
    trees = []
    for b in range(B):
        rows = rng.permutation(n)[:6] + 1
        left = [] if empty and b % 5 == 0 else rows[:3].tolist()
        trees.append(stump(left, rows[3:].tolist(), drawn=rows.tolist()))
    return GrfForest(
        name="stumps",
        Y=rng.normal(size=n),
        newdata=np.array([[0.2], [0.9]]),
        trees=tuple(trees),
        group_size=2,
        predictions=np.zeros(2),
        variances=np.zeros(2),
        weights=rng.uniform(0.5, 2, n),
    )


def leaves(tree):
    """Rows of every node."""
    return np.split(tree.leaf_rows, np.cumsum(tree.leaf_sizes)[:-1])


def by_loops(forest, j):
    """Prediction and variance at a point, sum by sum; exact constants."""
    pairs = []
    for tree in forest.trees:
        rows = leaves(tree)[1 if forest.newdata[j, 0] <= 0.5 else 2]
        w = forest.weights[rows]
        ok = rows.size > 0
        pairs.append(((w * forest.Y[rows]).mean(), w.mean()) if ok else None)
    known = [pair for pair in pairs if pair is not None]
    bottom = sum(pair[1] for pair in known) / len(known)
    mu = sum(pair[0] for pair in known) / len(known) / bottom
    groups = [pairs[b : b + 2] for b in range(0, len(pairs), 2)]
    rho = np.array(
        [
            [(top - mu * weight) / bottom for top, weight in group]
            for group in groups
            if None not in group
        ]
    )
    between, total = (rho.mean(axis=1) ** 2).mean(), (rho**2).mean()
    noise = total - between
    first, scale = between - noise, max(between, noise) * np.sqrt(2 / len(rho))
    r = first / scale
    hazard = 0.3989422804 * np.exp(-(r**2) / 2)
    below = 0.5 * special.erfc(-0.70710678118 * r)
    return mu, first + scale * hazard / below


@pytest.mark.parametrize("empty", [False, True])
def test_weights_and_empty_leaves_by_loops(rng, empty):
    forest = weighted_forest(rng, empty=empty)
    expected = np.array([by_loops(forest, j) for j in range(2)])
    assert_allclose(forest.prediction, expected[:, 0], **SAME_ALGEBRA)
    assert_allclose(bags_variance(forest), expected[:, 1], **SAME_ALGEBRA)
    assert np.isnan(forest.pseudo_values).any() == empty


def test_values_for_empty_leaves_keep_grfs_mean_and_variance(rng):
    forest = weighted_forest(rng, empty=True)
    expected = np.array([by_loops(forest, j) for j in range(2)])
    values = forest.full_values
    assert np.isfinite(values).all()
    assert_array_equal(values[:, 1], forest.pseudo_values[:, 1])
    res = vs.from_arrays(
        forest.counts,
        values,
        replace=False,
        variance="little_bags",
        groups=forest.groups,
    )
    assert_allclose(res.params, expected[:, 0], **SAME_ALGEBRA)
    # by_loops has grf's rounded constants.
    assert_allclose(res.components.sampling, expected[:, 1], rtol=1e-8)


def test_values_of_lone_trees_keep_mean_covariances_and_noise(rng):
    forest = replace(weighted_forest(rng, empty=True), group_size=1, variances=None)
    values, mu = forest.full_values, forest.prediction
    assert_allclose(values.mean(axis=0), mu, **SAME_ALGEBRA)
    known = np.isfinite(forest.pseudo_values[:, 0])
    assert known.sum() == 16
    rest = forest.pseudo_values[known, 0] - mu[0]
    B, c = len(known), known.sum()
    drawn = forest.counts[:, 3] - 0.5  # about their expectation
    ours = (drawn * (values[:, 0] - mu[0])).sum() / B
    assert_allclose(ours, (drawn[known] * rest).sum() / c, **SAME_ALGEBRA)
    noise = ((values[:, 0] - mu[0]) ** 2).sum() / B / B
    assert_allclose(noise, (rest**2).sum() / c / c, **SAME_ALGEBRA)


def test_both_ways_to_the_variance_agree_without_empty_leaves(rng):
    forest = weighted_forest(rng)
    assert_allclose(forest.variance(), bags_variance(forest), **SAME_ALGEBRA)
    mean = np.nanmean(forest.pseudo_values, axis=0)
    assert_allclose(mean, forest.prediction, **SAME_ALGEBRA)


def test_points_in_empty_leaves_only_have_no_variance(rng):
    forest = weighted_forest(rng)
    trees = tuple(stump([], [1, 2], drawn=[1, 2, 3]) for _ in forest.trees)
    nothing = GrfForest("empty", forest.Y, forest.newdata, trees, 2, *np.zeros((2, 2)))
    assert_array_equal(np.isnan(nothing.variance()), [True, False])
    assert_array_equal(np.isnan(nothing.prediction), [True, False])


def test_clusters_are_the_units_where_grf_draws_them(rng):
    clusters = np.repeat(["u", "v", "w", "x"], 3)
    drawn = [[1, 2, 3, 10, 11, 12], [4, 5, 6, 7, 8, 9]]
    trees = tuple(stump(rows[:3], rows[3:], drawn=rows) for rows in drawn)
    forest = GrfForest(
        name="clusters",
        Y=rng.normal(size=12),
        newdata=np.array([[0.2]]),
        trees=trees,
        group_size=2,
        predictions=np.zeros(1),
        variances=np.zeros(1),
        clusters=clusters,
    )
    assert_array_equal(forest.counts, [[1, 0, 0, 1], [0, 1, 1, 0]])
    assert list(forest.units[1]) == ["u", "v", "w", "x"]


def test_grfs_absolute_zero_is_reproduced():
    debiased, scale = np.array([1e-12, 1e-3]), np.array([1e-11, 1e-3])
    found = with_constants_of_grf(np.array([2e-12, 0.0]), debiased, scale)
    assert found[0] == 0
    assert found[1] != 0


def test_a_drop_of_the_noise_within_groups_is_noticed(monkeypatch):
    whole = formulas.group_means

    def no_noise(values, groups):
        return whole(values, groups) * 1.01

    monkeypatch.setattr(formulas, "group_means", no_noise)
    assert not any(one.ok for one in r_bridge.compare_recorded())


STAND_IN = """
regression_forest <- function(X, Y, ...) {
  forest <- getOption("stand_in")
  forest$options <- list(...)
  forest[["X.orig"]] <- X
  forest[["Y.orig"]] <- Y
  forest[["sample.weights"]] <- forest$options$sample.weights
  forest[["clusters"]] <- numeric(0)
  structure(forest, class = c("regression_forest", "grf"))
}
get_tree <- function(forest, index) {
  structure(forest$trees[[index]], class = "grf_tree")
}
predict.regression_forest <- function(object, newdata, ...) {
  data.frame(predictions = object$said$predictions,
             variance.estimates = object$said$variances)
}
"""
"""A package that answers as grf does, with a recorded forest.

It stands in for grf where grf is not installed: it tests how the bridge calls R
and reads the answers, not grf.
"""


def arrays(value):
    """Lists of numbers as arrays, which become vectors in R."""
    if isinstance(value, dict):
        return {name: arrays(one) for name, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [arrays(one) for one in value]
    return np.array(value) if isinstance(value, list) else value


def raw_fields(trees):
    """Trees as grf keeps them: lists of vectors that count from zero."""
    inner = [tree.left >= 0 for tree in trees]
    pairs = list(zip(trees, inner, strict=True))
    return {
        "_root_nodes": [np.array([0.0]) for _ in trees],
        "_child_nodes": [
            [np.where(kind, tree.left, 0.0), np.where(kind, tree.right, 0.0)]
            for tree, kind in pairs
        ],
        "_split_vars": [np.where(kind, tree.variable, 0.0) for tree, kind in pairs],
        "_split_values": [tree.split for tree in trees],
        "_send_missing_left": [tree.missing_left for tree in trees],
        "_drawn_samples": [tree.drawn.astype(float) for tree in trees],
        "_leaf_samples": [
            [rows.astype(float) for rows in leaves(tree)] for tree in trees
        ],
    }


@pytest.fixture(scope="module")
def recorded_document():
    path = r_bridge.recording.resources.files("r_bridge").joinpath(
        "recorded/grf.json.gz"
    )
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture
def stand_in(session, tmp_path, monkeypatch, recorded_document):
    """R with a package called grf that answers with the first recorded forest."""
    source, library = tmp_path / "grf", tmp_path / "library"
    (source / "R").mkdir(parents=True)
    library.mkdir()
    (source / "DESCRIPTION").write_text(
        "Package: grf\nVersion: 0.0.1\nTitle: Stand-in\nDescription: Stand-in.\n"
        "Author: tests\nMaintainer: tests <tests@example.org>\nLicense: BSD\n"
    )
    (source / "NAMESPACE").write_text(
        "export(regression_forest, get_tree)\nS3method(predict, regression_forest)\n"
    )
    (source / "R" / "grf.R").write_text(STAND_IN)
    command = ["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(source)]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("R_LIBS", str(library))
    before = session.call("function() .libPaths()")
    session.call(".libPaths", [str(library), *before])
    one = recorded_document["forests"][0]
    forest = {
        "trees": arrays(one["trees"]),
        **raw_fields(RECORDING.forests[0].trees),
        "ci.group.size": 2,
        "_num_trees": 200,
        "said": {
            "predictions": np.array(one["predictions"]),
            "variances": np.array(one["variance_estimates"]),
        },
    }
    session.call("function(forest) { options(stand_in = forest); NULL }", forest)
    availability._remembered.cache_clear()
    yield session
    session.call("function() { unloadNamespace('grf'); options(stand_in = NULL) }")
    session.call(".libPaths", list(before))
    availability._remembered.cache_clear()


def recorded_frames(document):
    names = ["x1", "x2", "x3", "x4"]
    data = pd.DataFrame(document["X"], columns=names).assign(y=document["Y"])
    return data, pd.DataFrame(document["newdata"], columns=names)


@pytest.fixture
def real_or_stand_in(request, session):
    """grf itself where it is installed."""
    if r_bridge.available()["grf"] is not None:
        pytest.skip("grf is installed; the live comparisons cover it")
    return request.getfixturevalue("stand_in")


@pytest.mark.r
def test_live_calls_read_what_grf_answers(real_or_stand_in, recorded_document):
    data, points = recorded_frames(recorded_document)
    data = data.assign(w=np.ones(150))
    found = r_bridge.compare_grf("y ~ .", data, points, honesty=False, weights="w")
    assert found.ok
    assert found.difference < 1e-12
    assert found.versions["grf"] == "0.0.1"
    assert "n = 150, k = 75, B = 200, groups of 2" in found.setting


@pytest.mark.r
def test_a_grf_forest_becomes_results(real_or_stand_in, recorded_document):
    data, points = recorded_frames(recorded_document)
    frame = to_r_frame(data.drop(columns="y"))
    real_or_stand_in.call(
        "function(x, y) { assign('g', grf::regression_forest(as.matrix(x), y), "
        "globalenv()); NULL }",
        frame,
        data["y"].to_numpy(),
    )
    forest = RECORDING.forests[0]
    res = r_bridge.from_grf("g", data, points)
    assert_allclose(res.params, forest.predictions, rtol=1e-12)
    assert_allclose(res.components.sampling, forest.variances, rtol=1e-9)
    assert res.variance == "little_bags"
    assert "grf" in str(res.summary())
    assert res.cov_params().shape == (25, 25)
    with pytest.raises(ValueError, match="come in groups"):
        res.with_variance("ij_u")
    assert_allclose(res.predict(points.head(2)), forest.predictions[:2], rtol=1e-12)
    with pytest.raises(ValueError, match="lack column 'x4'"):
        r_bridge.from_grf("g", data, points.drop(columns="x4"))
    with pytest.raises(ValueError, match="Give the rows in the order of the fit"):
        r_bridge.from_grf("g", data[::-1], points)
    with pytest.raises(ValueError, match="150 rows; got 10"):
        r_bridge.from_grf("g", data.head(10), points)


@pytest.mark.r
def test_flat_vectors_give_the_recorded_trees(real_or_stand_in, recorded_document):
    data, _ = recorded_frames(recorded_document)
    model = real_or_stand_in.keep(
        "function(x, y) grf::regression_forest(x, y)",
        data.drop(columns="y").to_numpy(),
        data["y"].to_numpy(),
    )
    found = split_trees(real_or_stand_in.call(FLATTEN, model))
    same_trees(found, RECORDING.forests[0].trees)


def same_trees(found, expected):
    assert len(found) == len(expected)
    for tree, known in zip(found, expected, strict=True):
        for field in fields(tree):
            ours, theirs = getattr(tree, field.name), getattr(known, field.name)
            assert_array_equal(ours, theirs, err_msg=field.name)


@pytest.mark.r
def test_a_recording_made_anew_is_read_again(real_or_stand_in, tmp_path):
    write_json(record_grf(), tmp_path / "grf.json.gz")
    again = read_recording(tmp_path / "grf.json.gz")
    assert [one.name for one in again.forests][:2] == ["honest", "adaptive"]
    assert_array_equal(again.forests[0].predictions, RECORDING.forests[0].predictions)
    assert again.forests[3].weights is not None
    first, known = again.forests[0].trees[0], RECORDING.forests[0].trees[0]
    assert_array_equal(first.drawn, known.drawn)
    assert_array_equal(first.split, known.split)


@pytest.mark.r
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"formula": "g ~ x1"}, ValueError, "not numeric"),
        ({"formula": "y ~ g"}, vs.FormulaError, "takes numbers only; column 'g'"),
    ],
)
def test_grf_faults_are_explained(real_or_stand_in, change, error, message):
    data = vs.datasets.mars(30, rng=1)
    data = data.assign(g=np.where(data["x1"] > 0.5, "a", "b"))
    with pytest.raises(error, match=message):
        r_bridge.compare_grf(**{"formula": "y ~ x1", "data": data, **change})


@pytest.fixture
def grf(session):
    """R with grf itself, or a skip."""
    if r_bridge.available()["grf"] is None:
        pytest.skip("not installed: grf")
    return session


def live_data(n=100):
    return vs.datasets.mars(n, rng=1).assign(w=np.linspace(0.5, 2, n))


@pytest.mark.r
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"honesty": False},
        {"weights": "w"},
        {"honesty": False, "weights": "w"},
        {"honesty_prune_leaves": False, "min_node_size": 1},
        {"tune_parameters": "all", "tune_num_trees": 10, "tune_num_reps": 10},
        {"group_size": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("gaps", [False, True])
def test_live_grf_agrees(grf, change, gaps):
    data = live_data()
    if gaps:
        data.loc[::7, "x1"] = np.nan
        data.loc[3:9, "x3"] = np.nan
    found = r_bridge.compare_grf("y ~ x1 + x2 + x3", data, **change)
    found.assert_close()
    assert "n = 100" in found.setting
    names = [quantity.name for quantity in found.quantities]
    assert ("little bags" in names) == ("group_size" not in change)


GROW_LIVE = """
function(X, Y, options) {
  given <- c(list(X = X, Y = Y, num.trees = 400, seed = 1, num.threads = 1), options)
  forest <- do.call(grf::regression_forest, given)
  said <- predict(forest, X, estimate.variance = forest[["ci.group.size"]] > 1)
  list(forest = forest, said = as.list(said))
}
"""


@pytest.mark.r
@pytest.mark.parametrize(
    "options",
    [
        {"honesty.prune.leaves": False, "min.node.size": 1},
        {"tune.parameters": "all", "tune.num.trees": 10, "tune.num.reps": 10},
        {"ci.group.size": 1},
        {"ci.group.size": 1, "honesty.prune.leaves": False, "min.node.size": 1},
    ],
    ids=str,
)
def test_live_forests_of_all_kinds_become_results(grf, tmp_path, options):
    whole = live_data()
    data = whole[["x1", "x2", "x3"]]
    path = tmp_path / "made.rds"
    grown = grf.keep(GROW_LIVE, data.to_numpy(), whole["y"].to_numpy(), options)
    grf.call("function(grown, path) saveRDS(grown$forest, path)", grown, str(path))
    said = grf.call("function(grown) grown$said", grown)
    res = r_bridge.from_grf(path, data, data)
    assert_allclose(res.params, said["predictions"], rtol=1e-10)
    if options.get("ci.group.size") == 1:
        assert res.variance == "hoeffding"
        assert r_bridge.from_grf(path, data, data, variance="ij_u").variance == "ij_u"
        with pytest.raises(ValueError, match=r"grown with ci.group.size = 1"):
            r_bridge.from_grf(path, data, data, variance="little_bags")
        return
    assert res.variance == "little_bags"
    theirs = said["variance.estimates"]
    assert_allclose(res.components.sampling, theirs, rtol=1e-8)


@pytest.mark.r
def test_live_trees_are_those_that_grf_shows(grf):
    data = live_data()
    options = {"num.trees": 20, "seed": 1, "honesty.prune.leaves": False}
    X = data[["x1", "x2"]].where(data["x1"] > 0.1).to_numpy()
    model = grf.keep(GROW, X, data["y"].to_numpy(), options)
    found = split_trees(grf.call(FLATTEN, model))
    shown = read_trees(grf.call(TREES, model))
    for tree, known in zip(found, shown, strict=True):
        assert_array_equal(tree.drawn, known.drawn)
        ends, others = tree.leaf_of(X), known.leaf_of(X)
        pairs = zip(ends, others, strict=True)
        rows, same = leaves(tree), leaves(known)
        assert all(rows[a].tolist() == same[b].tolist() for a, b in pairs)
