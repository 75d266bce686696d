"""Measure what the variances of a forest have in common, on blocks of the data.

See `variance.pooled_variance` for the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.kernels.leaf_weights import has_leaf_rows
from vstatkit.kernels.residual_trees import StagedKernel
from vstatkit.kernels.tree import Tree, TreeKernel
from vstatkit.sampling.design import (
    BalancedDesign,
    IidDesign,
    SubsampleDesign,
    to_dense,
)
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.variance.formulas import noise_variance
from vstatkit.variance.higher_orders import HigherOrders, compare_presence
from vstatkit.variance.leaf_influence import RowResiduals
from vstatkit.variance.pooled_variance import (
    LEAST_RATIO,
    NEAR,
    SPREAD,
    PooledVariance,
    correct_drift,
)

# Smallest typical weight of pooled variances for which they are measured. It is below
# this where the Monte Carlo error of a standard error is within the default tolerance.
LEAST_POOLED = 0.4
LEAST_UNITS = 100  # least number of units whose blocks are large enough
# Blocks are so few that trees on them have this many leaves, if possible.
LEAVES_ON_BLOCKS = 300
BLOCKS = (2, 8)  # fewest and most blocks
# Most rows of a block: the ratio hardly depends on it. There are more rows if these are
# few clusters.
MOST_BLOCK_ROWS, FEW_UNITS = 4000, 25
# Degrees of freedom of the variances between blocks, by repeated partitions.
BLOCK_DF = 6
BLOCK_TREES = 20  # trees grown on each block
BLOCK_LEAVES = 20  # least leaves of a tree on a block, by reducing `min_samples_leaf`
ROWS = 400  # rows at which variances are added up
TREES = 256  # most trees whose variances are added up
# Rows times trees of a block from which threads are worth their start.
MANY_ROWS = 200_000
# Trees that predict out of bag: as many predictions, and at most so many trees, but so
# many trees for every row on average.
OUT_OF_BAG_PREDICTIONS = 3_000_000
MOST_OUT_OF_BAG, LEAST_OUT_OF_BAG = 100, 12
# Standard deviations, before it is measured, of the additional part of A near to the
# data; and the least mean excess of A from which it is measured.
NEAR_SPREAD, LEAST_EXCESS = 2.0, 0.01
PARENTS = 4  # most rows that the features of a new point come from
LEAST_NEAR = -0.7  # smallest additional part, so that the sum stays above a part of A
# Relative Monte Carlo error of the ratio that is expected, in simulations 0.06 to 0.15;
# and the number of partitions whose differences have the same weight
RATIO_ERROR, RATIO_ERROR_WEIGHT = 0.12, 3


class ForestData(NamedTuple):
    """A grown forest, and what it was grown on."""

    kernel: TreeKernel
    design: SubsampleDesign
    unit_of_row: Ints | None
    trees: Sequence[Tree]

    @property
    def unit(self) -> Ints:
        """The unit of every row."""
        rows = np.arange(len(self.kernel.y))
        return rows if self.unit_of_row is None else self.unit_of_row

    def predict(self, X: Floats) -> Floats:
        """Predict with every tree, shape (trees, points * outputs)."""
        return np.stack([self.kernel.predict(tree, X).ravel() for tree in self.trees])


def can_pool(kernel: object, design: SubsampleDesign) -> bool:
    """Return whether variances can be pooled: for single trees, drawn independently."""
    plain = isinstance(kernel, TreeKernel) and not isinstance(kernel, StagedKernel)
    independent = isinstance(design, IidDesign | BalancedDesign)
    absent = design.n_absent / design.n >= 0.1
    return plain and independent and absent and design.n >= LEAST_UNITS


def typical_pooled_share(
    design: SubsampleDesign, B: int, orders: HigherOrders
) -> float:
    """Return the weight that pooled variances typically have with B trees."""
    chance = 1 - design.n_absent / design.n
    noise = chance / (1 - chance) / B
    share = orders.factor * orders.share
    square = float(noise_variance(np.array(share), np.array(noise), design.n))
    return square / (square + (SPREAD * share) ** 2) if share > 0 else 1.0


def measure_pooled_variance(
    forest: ForestData,
    orders: HigherOrders,
    *,
    n_jobs: int | None = None,
) -> tuple[PooledVariance, RowResiduals] | None:
    """Measure the pooled variance, and the residuals that it is used with.

    None if there are too few units or enough trees without it, or if trees do not know
    the rows of their leaves.
    """
    kernel, design, B = forest.kernel, forest.design, len(forest.trees)
    if not can_pool(kernel, design) or not has_leaf_rows(kernel, forest.trees):
        return None
    if typical_pooled_share(design, B, orders) < LEAST_POOLED:
        return None
    # In the unit of the standardised response, squares do not overflow.
    scale = kernel.scale
    kernel = replace(kernel, centre=0.0, scale=1.0)
    forest = forest._replace(kernel=kernel, trees=forest.trees[:TREES])
    residuals = out_of_bag_residuals(forest)
    if residuals is None:
        return None
    rng = stream(design.seed, 1, Purpose.POOLING)
    X = new_points(kernel.X, kernel.levels, rng)
    single = forest.predict(X).var(axis=0, ddof=1).sum()
    fixed = residuals.powers(kernel, forest.trees, X).variance.sum()
    typical = float(fixed / single) if single > 0 else 0.0
    ratio, error = measure_ratio(forest, n_jobs=n_jobs)
    if not (typical > 0 and ratio > 0):
        return None
    spread = float(np.hypot(SPREAD, error))
    pooled = PooledVariance(ratio, error, typical, 0.0, spread)
    # Single rows have much of the influence there, and higher orders a smaller part.
    near = _measure_near(forest, 1 / (1 + orders.rho / 2), residuals, pooled)
    unit = scale if kernel.n_classes is None else 1.0
    return replace(pooled, near=near), replace(residuals, unit=unit)


def out_of_bag_residuals(forest: ForestData) -> RowResiduals | None:
    """Compute the residuals of all rows by the trees that did not see their unit.

    With few such trees their squares are too large on average, by the Monte Carlo
    variance of the predictions. All are reduced by the same factor.
    """
    kernel, design = forest.kernel, forest.design
    n, K = len(kernel.y), kernel.n_outputs
    least = LEAST_OUT_OF_BAG * design.n / design.n_absent
    wanted = np.clip(OUT_OF_BAG_PREDICTIONS / n, least, MOST_OUT_OF_BAG)
    L = min(len(forest.trees), int(wanted))
    total, squares, times = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, 1))
    origin = kernel.predict(forest.trees[0], np.ascontiguousarray(kernel.X[:1]))
    for b in range(L):
        out = to_dense(design.counts(b, b + 1))[0][forest.unit] == 0
        X = np.ascontiguousarray(kernel.X[out])
        predicted = kernel.predict(forest.trees[b], X) - origin
        total[out] += predicted
        squares[out] += predicted**2
        times[out] += 1
    seen = times[:, 0] > 1
    if not seen.any():
        return None
    mean = total[seen] / times[seen]
    spread = (squares[seen] - times[seen] * mean**2) / (times[seen] - 1)
    errors = np.zeros((n, K))
    errors[seen] = _responses(kernel)[seen] - (mean + origin)
    noise = np.maximum(spread, 0.0) / times[seen]
    square = (errors[seen] ** 2).mean(axis=0)
    safe = np.where(square > 0, square, 1.0)
    errors *= np.sqrt(np.clip(1 - noise.mean(axis=0) / safe, 0.1, 1.0))
    errors[~seen] = np.sqrt((errors[seen] ** 2).mean(axis=0))
    return RowResiduals(errors, forest.unit_of_row, design.n)


def _responses(kernel: TreeKernel) -> Floats:
    """Return the standardised response, or indicators of classes, (n, outputs)."""
    if kernel.n_outputs == 1:
        return kernel.y[:, None].astype(np.float64)
    member = kernel.y[:, None] == np.arange(kernel.n_outputs)
    return np.asarray(member, dtype=np.float64)


def new_points(
    X: Floats, levels: tuple[int, ...] | None, rng: np.random.Generator
) -> Floats:
    """Draw points that resemble the rows of X and are not among them.

    Each takes its features from up to four rows. Points with a single feature, if it is
    a number, lie between two neighbouring rows.
    """
    n, p = X.shape
    m = min(n, ROWS)
    if p == 1 and levels is None:
        ordered = np.sort(X[:, 0])
        gap = rng.integers(n - 1, size=m)
        middle = (ordered[gap] + ordered[gap + 1]) / 2
        return np.ascontiguousarray(middle[:, None])
    parents = min(p, PARENTS)
    rows = rng.integers(n, size=(m, parents))
    chosen = rng.permuted(np.tile(np.arange(p) % parents, (m, 1)), axis=1)
    places = np.take_along_axis(rows, chosen, axis=1)
    return np.ascontiguousarray(np.take_along_axis(X, places, axis=0))


def measure_ratio(
    forest: ForestData, *, n_jobs: int | None = None
) -> tuple[float, float]:
    """Measure the ratio c of V to A, on forests that are grown on disjoint blocks.

    Every partition deals the units out to blocks, at random. A forest on each block
    predicts new points. The variance between blocks is that of the forests for samples
    of this size, after the Monte Carlo part is subtracted; both it and A are added up
    over points, outputs and partitions. Return the ratio of both sums and its relative
    error: from the differences between partitions, if there are several, averaged with
    the error that is expected.
    """
    design = forest.design
    n, leaves = design.n, _count_leaves(forest.trees)
    n_blocks = int(np.clip(leaves / LEAVES_ON_BLOCKS, *BLOCKS))
    most = int(MOST_BLOCK_ROWS * n / len(forest.kernel.y))
    size = min(n // n_blocks, max(most, FEW_UNITS))
    partitions = -(-BLOCK_DF // (n_blocks - 1))
    variances, fixed, on_blocks = np.zeros(partitions), np.zeros(partitions), 0.0
    for partition in range(partitions):
        rng = stream(design.seed, 2 + partition, Purpose.POOLING)
        dealt = rng.permutation(n)[: size * n_blocks].reshape(n_blocks, size)
        block_of_unit = np.full(n, -1)
        block_of_unit[dealt.ravel()] = np.repeat(np.arange(n_blocks), size)
        block = block_of_unit[forest.unit]
        X = new_points(forest.kernel.X, forest.kernel.levels, rng)
        # Forests with common random numbers would differ too little.
        seeds = rng.integers(2**63, size=n_blocks)
        parts = [
            _grow_block(forest, np.flatnonzero(block == g), X, int(seed), n_jobs)
            for g, seed in enumerate(seeds)
        ]
        means, spreads, splits, counts = map(np.array, zip(*parts, strict=True))
        on_blocks += float(counts.mean()) / partitions
        between = means.var(axis=0, ddof=1) - spreads.mean(axis=0) / BLOCK_TREES
        variances[partition] = between.sum()
        fixed[partition] = splits.mean(axis=0).sum()
    total = fixed.sum()
    if not total > 0:
        return np.nan, np.nan
    raw = max(float(variances.sum() / total), LEAST_RATIO)
    square = np.sum((variances - raw * fixed) ** 2) / (raw * total) ** 2 * partitions
    weight = RATIO_ERROR_WEIGHT
    error = np.sqrt((square + weight * RATIO_ERROR**2) / (partitions - 1 + weight))
    return correct_drift(raw, on_blocks, leaves), float(error)


def _count_leaves(trees: Sequence[Tree]) -> float:
    """Count the leaves of a tree, on average over some of them."""
    some = trees[:BLOCK_TREES]
    return float(np.mean([np.sum(tree.nodes["feature"] < 0) for tree in some]))


def _grow_block(
    forest: ForestData, rows: Ints, X: Floats, seed: int, n_jobs: int | None
) -> tuple[Floats, Floats, Floats, float]:
    """Grow trees on some rows.

    Return their means, variances and A at the points X, and the leaves of a tree.
    """
    kernel, design = forest.kernel, forest.design
    unit_of_row, n_units = None, rows.size
    if forest.unit_of_row is not None:
        labels, unit_of_row = np.unique(forest.unit[rows], return_inverse=True)
        n_units = labels.size
    k = max(1, round(design.k * n_units / design.n))
    own = IidDesign(n_units, k, design.replace, seed)
    per_unit = rows.size / n_units
    part = replace(
        kernel,
        X=np.ascontiguousarray(kernel.X[rows]),
        y=np.ascontiguousarray(kernel.y[rows]),
        weights=None if kernel.weights is None else kernel.weights[rows],
        options=_block_options(kernel.options, k * per_unit, k / design.k),
    )
    if rows.size * BLOCK_TREES < MANY_ROWS:
        n_jobs = 1
    task = Task(part, own, X, unit_of_row, keep=True, oob=False)
    grown = evaluate(task, 0, BLOCK_TREES, n_jobs=n_jobs, progress=False)
    block = ForestData(part, own.with_size(BLOCK_TREES), unit_of_row, grown.learners)
    residuals = out_of_bag_residuals(block)
    mean, spread = grown.values.mean(axis=0), grown.values.var(axis=0, ddof=1)
    fixed = np.zeros_like(mean)
    if residuals is not None:
        fixed = residuals.powers(part, grown.learners, X).variance
    return mean, spread, fixed, _count_leaves(grown.learners)


def _block_options(
    options: Mapping[str, float], drawn: float, share: float
) -> dict[str, float]:
    """Reduce limits of leaves that would leave a tree on a block with few of them.

    `drawn` rows are drawn from a block, which is a `share` of the rows that a tree is
    grown on otherwise. Trees with few leaves have as few on blocks.
    """
    changed = dict(options)
    for name, times in (("min_samples_leaf", 1), ("min_samples_split", 2)):
        limit = int(options[name])
        most = max(1, int(times * drawn / BLOCK_LEAVES), round(limit * share))
        changed[name] = min(limit, most)
    return changed


def _measure_near(
    forest: ForestData, factor: float, residuals: RowResiduals, pooled: PooledVariance
) -> float:
    """Measure the additional part of A near to the data, at training rows.

    The mean jackknife, times the factor for higher orders, is compared with the mean
    expected variance, both relative to the mean variance of a single tree. The answer
    is averaged with zero, by precision.
    """
    kernel, trees = forest.kernel, forest.trees
    rng = stream(forest.design.seed, 0, Purpose.POOLING)
    n_rows = len(kernel.y)
    rows = np.sort(rng.choice(n_rows, min(n_rows, ROWS), replace=False))
    X = np.ascontiguousarray(kernel.X[rows])
    values = forest.predict(X)
    zeta = values.var(axis=0, ddof=1)
    if not zeta.any():
        return 0.0
    A, unit = residuals.powers(kernel, trees, X).variance, zeta.mean()
    excess = float(np.maximum(A - NEAR * pooled.typical * zeta, 0.0).mean() / unit)
    if excess < LEAST_EXCESS:
        return 0.0
    sums = compare_presence(forest.design, len(trees), values, standardise=False)
    difference = factor * sums.q_1 - float(pooled.expected(A, zeta).mean() / unit)
    error = factor * sums.share_error / excess
    weight = NEAR_SPREAD**2 / (NEAR_SPREAD**2 + error**2)
    return float(max(weight * difference / excess, LEAST_NEAR))
