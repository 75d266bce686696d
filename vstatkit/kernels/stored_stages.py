"""Learners of several stages in files: how they are written, and checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vstatkit.kernels.codec import Arrays, Fields, KernelCodec
from vstatkit.kernels.staged import StagedTree, StoredStagedKernel
from vstatkit.kernels.stored_trees import ARRAYS, FIELDS, check_trees, unpack_levels
from vstatkit.kernels.trees import Tree
from vstatkit.packing import check, take, take_floats

MOST_TREES = 3
"""Trees that a learner can have."""


def _pack(
    kernel: StoredStagedKernel, learners: list[StagedTree]
) -> tuple[Fields, Arrays]:
    kept = {name: getattr(kernel, name) for name in FIELDS}
    trees = [tree for learner in learners for tree in learner.trees]
    counts = np.array([len(learner.sizes) for learner in learners])
    lines = np.stack([learner.line for learner in learners])
    return kept, {**Tree.stack(trees), "stage_trees": counts, "stage_lines": lines}


def _unpack(
    fields: Mapping[str, Any], arrays: Arrays, B: int, p: int
) -> tuple[StoredStagedKernel, list[StagedTree]]:
    check(fields["n_classes"] is None, "stages are for a numeric response.")
    centre, scale = take(fields, "centre", float), take(fields, "scale", float)
    check(np.isfinite(centre), "its centre is not finite.")
    check(0 < scale < np.inf, "its scale is not positive.")
    levels = unpack_levels(take(fields, "levels", list, type(None)), p)
    kernel = StoredStagedKernel(p, None, centre, scale, levels=levels)
    lines = take_floats(arrays, "stage_lines", 2)
    check(lines.shape in ((B, 0), (B, 2 * p + 1)), "trends and columns differ.")
    counts = arrays.pop("stage_trees", np.empty(0))
    whole = counts.dtype == np.int64 and counts.shape == (B,)
    check(whole, "the numbers of trees are missing or another kind.")
    check(((counts >= 1) & (counts <= MOST_TREES)).all(), "a learner has no trees.")
    parts = {name: arrays.pop(name) for name in ARRAYS if name in arrays}
    check_trees(parts, int(counts.sum()), kernel)
    trees = Tree.unstack(parts)
    ends = np.cumsum(counts)
    groups = [trees[end - n : end] for n, end in zip(counts, ends, strict=True)]
    pairs = zip(groups, lines, strict=True)
    return kernel, [_joined(group, line) for group, line in pairs]


def _joined(trees: list[Tree], line: Any) -> StagedTree:
    nodes = np.concatenate([tree.nodes for tree in trees])
    sizes = np.array([tree.nodes.size for tree in trees])
    return StagedTree(nodes, sizes, line, trees[0].gains)


STAGED_CODEC = KernelCodec(
    "stages",
    StoredStagedKernel,
    FIELDS,
    (*ARRAYS, "stage_trees", "stage_lines"),
    _pack,
    _unpack,
)
