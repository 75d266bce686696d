"""Target E[y|x]: candidate learners, their choice, and the remaining bias."""

import functools
import itertools
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.retention import learner_bytes
from vstatkit.ensemble.stacking import allocate_learners, stacking_weights
from vstatkit.inference.estimates import Estimates, estimate, weighted_mean
from vstatkit.kernels.base import AnyKernel, Evaluation, OutOfBag, kind_of
from vstatkit.kernels.residual_trees import (
    STAGE_OPTIONS,
    StagedTree,
    Stages,
    as_staged,
    replace_stages,
    stored_kernel,
)
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.kernels.tree_options import LOSSES
from vstatkit.sampling.design import IidDesign, SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys
from vstatkit.text import short_repr
from vstatkit.variance.registry import resolve_for_design
from vstatkit.workers.parallel import progress_bar

# Stages of learners, those with the least bias first.
STAGES = {
    "both": Stages(trend=True, boost=True),
    "boost": Stages(boost=True),
    "trend": Stages(trend=True),
    "plain": Stages(),
}
SMALL_LEAVES = (1, 5)  # smallest leaf sizes that are tried
MOST_LEAVES = 5  # leaves of a tree with the largest leaf size that is tried


class Candidate(NamedTuple):
    """A learner to choose from."""

    name: str  # of its stages, one of `STAGES`
    # Least number of rows in a leaf; of all rows, if it has no tree at all
    min_samples_leaf: int
    max_features: int  # columns that a split tries
    splits: bool = True  # whether it has trees

    def kernel(self, kernel: TreeKernel) -> TreeKernel:
        """Grow such learners with the other options of a kernel of trees."""
        options = {
            **kernel.options,
            "min_samples_leaf": self.min_samples_leaf,
            "max_features": self.max_features,
        }
        return replace_stages(replace(kernel, options=options), STAGES[self.name])

    def text(self, n_features: int) -> str:
        """Describe the learner."""
        stages = STAGES[self.name]
        if not self.splits:
            return "a linear trend" if stages.trend else "a mean"
        tried = "all" if self.max_features == n_features else f"{self.max_features} of"
        rows = "row" if self.min_samples_leaf == 1 else "rows"
        text = f"{stages.text}, with leaves of {self.min_samples_leaf} {rows} or more"
        if n_features == 1:
            return text
        return f"{text} and {tried} {n_features} columns tried at a split"


def list_candidates(
    kernel: TreeKernel, n_rows: int, given: Collection[str] = ()
) -> list[Candidate]:
    """List learners to choose from, those with the least bias first.

    Options of `kernel`, which grows plain trees, that the user has `given` are not
    chosen. Small leaves come before large ones; among equal leaves, few columns tried
    at a split before all of them; and then more stages before fewer. Last come a linear
    trend and a mean, without any tree.
    """
    n_tried, p = int(kernel.options["max_features"]), kernel.n_features
    features = [n_tried] if "max_features" in given else sorted({n_tried, p})
    leaves = [int(kernel.options["min_samples_leaf"])]
    free = "min_samples_leaf" not in given
    if free:
        middle, large = round(float(np.sqrt(n_rows))), n_rows // MOST_LEAVES
        least = max(SMALL_LEAVES)
        leaves = sorted({*SMALL_LEAVES, max(least, middle), max(least, large)})
    # Stages are fitted to what others leave, by least squares; a trend needs numbers.
    squared = kernel.options["loss"] == LOSSES["squared_error"]
    names = [
        name
        for name, stages in STAGES.items()
        if (squared or not any(stages)) and (kernel.levels is None or not stages.trend)
    ]
    listed = [
        Candidate(name, leaf, tried)
        for leaf, tried, name in itertools.product(leaves, features, names)
    ]
    whole = [name for name in names if free and not STAGES[name].boost]
    return listed + [Candidate(name, len(kernel.y), n_tried, False) for name in whole]


def with_larger_k(design: SubsampleDesign) -> SubsampleDesign:
    """Draw subsamples of size `ceil(n**0.9)` where they are independent.

    The bias of trees falls with the size of subsamples; their variance is smoothed away
    by larger leaves.
    """
    if not isinstance(design, IidDesign):
        return design
    return replace(design, k=int(np.ceil(design.n**0.9)))


# Kernels of a stacked ensemble, and their shares of the learners.
Stack = tuple[tuple[TreeKernel, float], ...]


@dataclass(frozen=True)
class Centre:
    """The stacked ensemble whose mean replaces that of the learners."""

    stack: Stack  # kernels of the stacked ensemble
    shift: Floats  # (m,): number added to the values of every learner
    oob: OutOfBag | None  # out-of-bag sums of the ensemble's own learners

    __repr__ = short_repr


class CentredEvaluation(NamedTuple):
    """An evaluation whose mean is that of a stacked ensemble."""

    evaluation: Evaluation  # shifted values; out-of-bag sums of the stack
    learners: list[StagedTree]  # learners of the stacked ensemble, as many as were kept
    centre: Centre | None  # how values were shifted; None if they were not


def centre_values(
    task: Task,
    stack: Stack | None,
    evaluation: Evaluation,
    n_query: int | None,
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> CentredEvaluation:
    r"""Shift the values of learners so that their mean is that of a stacked ensemble.

    The stacked ensemble has as many learners, on the same subsamples; without a
    `stack` nothing is shifted. The first `n_query` values are not differences.

    Notes
    -----
    With learners :math:`h_b` and stacked learners :math:`g_b`, values become
    :math:`h_b - \bar h + \bar g`. Differences between learners do not change, nor do
    estimates that depend on these alone. The first stacked learners are of the first
    kernel, the next of the second, and so on.
    """
    if stack is None:
        return CentredEvaluation(evaluation, [], None)
    B = len(evaluation.values)
    counts = allocate_learners(np.array([share for _, share in stack]), B)
    ends = np.cumsum(counts)
    parts = [
        evaluate(
            replace(task, kernel=kernel),
            int(end - count),
            int(end),
            n_jobs=n_jobs,
            progress=progress,
        )
        for (kernel, _), count, end in zip(stack, counts, ends, strict=True)
        if count
    ]
    other = functools.reduce(operator.add, parts).with_moves(n_query)
    mean, others = (weighted_mean(grown.values, None) for grown in (evaluation, other))
    shift = others - mean
    shifted = replace(evaluation, values=evaluation.values + shift, oob=other.oob)
    # Predictions need all learners, of the ensemble and of the stack.
    budget = np.inf if task.keep_bytes is None else task.keep_bytes
    complete = learner_bytes(other.learners) <= budget and all(
        len(grown.learners) == len(grown.values) for grown in (evaluation, *parts)
    )
    learners = as_staged(other.learners, stack[0][0].n_features) if complete else []
    return CentredEvaluation(shifted, learners, Centre(stack, shift, evaluation.oob))


def undo_centring(evaluation: Evaluation, centre: Centre | None) -> Evaluation:
    """Undo `centre_values`, up to rounding."""
    if centre is None:
        return evaluation
    return replace(evaluation, values=evaluation.values - centre.shift, oob=centre.oob)


def centre_predictor(
    predictor: Predictor, stack: Stack, learners: list[StagedTree]
) -> Predictor:
    """Centre the predictions of a predictor at those of a stacked ensemble."""
    kernel = stored_kernel(replace_stages(stack[0][0], Stages(boost=True)))
    other = replace(predictor, kernel=kernel, learners=learners, coding=None)
    return replace(predictor, centre=replace(other, centre=None))


TARGETS = ("mean", "truth")  # estimands that intervals may cover
# Fewest and most learners of each of the two pilot ensembles of a candidate.
PILOT_B = (25, 100)
PILOT_UNITS = 500  # units up to which pilot ensembles have the most learners
CLEARLY = 2.0  # standard errors of a difference from which an error is clearly larger
# Largest root mean square error of the learner of the standard errors, over the least
# one. Where single rows make up most of the difference, its standard error is as large
# as the difference itself, and would admit any learner.
LARGEST_RATIO = 1.25
NAMED = 2  # learners of a stacked ensemble that are described, by decreasing share
SMOOTHER_B = 500  # trees that smooth out-of-bag residuals
SMOOTHER_LEAF = 5  # least number of rows in their leaves


@dataclass(frozen=True)
class Choice:
    """The learners chosen for `target="truth"`."""

    candidate: Candidate  # the learner whose ensemble gives standard errors
    kernel: TreeKernel  # its kernel
    shares: dict[Candidate, float]  # stacked learners, for the estimates, and shares
    stack: Stack | None  # their kernels; None if they are the candidate alone
    # Out-of-bag root mean square error of every candidate, for infinitely many learners
    errors: dict[Candidate, float]
    stack_error: float  # root mean square error of the stacked ensemble

    @property
    def learner(self) -> str:
        """Description of the learner of the standard errors."""
        return self.candidate.text(self.kernel.n_features)

    @property
    def stack_text(self) -> str | None:
        """Description of the stacked ensemble; None if it is the learner alone."""
        if self.stack is None:
            return None
        ordered = sorted(self.shares.items(), key=lambda item: -item[1])
        shares = [round(100 * share) for _, share in ordered[:NAMED]]
        named = [
            "those of the standard errors"
            if candidate == self.candidate
            else candidate.text(self.kernel.n_features)
            for candidate, _ in ordered[:NAMED]
        ]
        if len(ordered) > NAMED:
            shares.append(100 - sum(shares))
            named.append("others")
        pairs = zip(shares, named, strict=True)
        return "; ".join(f"{share}% {name}" for share, name in pairs)

    @property
    def least_errors(self) -> dict[str, float]:
        """Errors of the choice, and the smallest error of each kind of stages."""
        own_error = self.errors[self.candidate]
        least = {"estimates": self.stack_error, "standard errors": own_error}
        for candidate, error in self.errors.items():
            least[candidate.name] = min(error, least.get(candidate.name, np.inf))
        return least


def check_tree_kernel(kernel: AnyKernel) -> TreeKernel:
    """Check that a kernel grows regression trees, whose bias can be estimated."""
    if not isinstance(kernel, TreeKernel):
        raise TypeError(
            "target='truth' and bias_left require kernel='forest' or 'tree'; got "
            f"{type(kernel).__name__}."
        )
    if kernel.n_classes is not None:
        raise ValueError(
            "target='truth' and bias_left require a numeric response; this one has "
            f"{kernel.n_classes} classes."
        )
    return kernel


def choose_if_truth(
    target: str, kernel: AnyKernel, options: Mapping[str, Any], *drawn: Any, **work: Any
) -> Choice | None:
    """Choose a learner if the target is E[y|x]; see `choose_learner`.

    The `options` of the kernel are those that the user has set.
    """
    if target not in TARGETS:
        names = " or ".join(map(repr, TARGETS))
        raise ValueError(f"`target` must be {names}; got {target!r}.")
    if target == "mean":
        return None
    fixed = [name for name in STAGE_OPTIONS if name in options]
    if fixed:
        raise ValueError(
            f"target='truth' chooses `trend` and `boost` itself; leave `{fixed[0]}` "
            "out, or use target='mean'."
        )
    trees = check_tree_kernel(kernel)
    if trees.options["loss"] == LOSSES["absolute_error"]:
        raise ValueError(
            "target='truth' estimates E[y|x], but criterion='absolute_error' estimates "
            "medians. Leave `criterion` out, or use target='mean'."
        )
    return choose_learner(trees, set(options), *drawn, **work)


def choose_learner(
    kernel: TreeKernel,
    given: Collection[str],
    design: SubsampleDesign,
    unit_of_row: Ints | None,
    *,
    n_jobs: int | None,
    progress: bool | None = False,
) -> Choice:
    """Choose the learners by the out-of-bag error of pilot ensembles.

    The `kernel` grows plain trees, on independent subsamples of the size and from the
    seed of the `design`. Options that the user has `given` are not chosen.

    Notes
    -----
    Every candidate has two pilot ensembles, whose out-of-bag residuals `r` and `s` are
    multiplied: the mean of `r * s` has no Monte Carlo bias, because the noise of the
    two ensembles is independent. Estimates come from a stack of candidates with a small
    error, see `stacking_weights`. Standard errors come from the least biased candidate
    whose error exceeds the smallest one by at most two standard errors of the
    difference, and by at most a quarter (as root mean squares). It undersmooths if
    there is a bias to avoid, and its larger variance allows for a small remaining bias
    of the stack.
    """
    n_rows = round(design.k * len(kernel.y) / design.n)
    listed = list_candidates(kernel, n_rows, given)
    bar = progress_bar(progress, iterable=listed, unit=" candidates")
    losses = {
        candidate: _losses(candidate.kernel(kernel), design, unit_of_row, n_jobs)
        for candidate in bar
    }
    best = min(losses.values(), key=lambda loss: loss.mean)
    least_biased = next(
        candidate for candidate, loss in losses.items() if loss.as_good_as(best)
    )
    shares, error = {least_biased: 1.0}, losses[least_biased].mean
    if not design.complete:  # centring requires learners of equal weight
        first = np.stack([loss.first for loss in losses.values()])
        second = np.stack([loss.second for loss in losses.values()])
        weights = stacking_weights(first, second, np.unique(best.units).size)
        pairs = zip(losses, weights.tolist(), strict=True)
        shares = {candidate: share for candidate, share in pairs if share > 0}
        error = float(np.mean((weights @ first) * (weights @ second)))
    errors = {candidate: _root(kernel, loss.mean) for candidate, loss in losses.items()}
    stack = tuple(
        (candidate.kernel(kernel), share) for candidate, share in shares.items()
    )
    alone = list(shares) == [least_biased]
    return Choice(
        least_biased,
        least_biased.kernel(kernel),
        shares,
        None if alone else stack,
        errors,
        _root(kernel, error),
    )


def _root(kernel: TreeKernel, error: float) -> float:
    """Take the root of a mean squared error of the standardised response."""
    return kernel.scale * float(np.sqrt(max(0.0, error)))


@dataclass(frozen=True)
class _Losses:
    """Residuals of rows in two ensembles, and the unit of each row."""

    first: Floats
    second: Floats
    units: Ints

    @property
    def rows(self) -> Floats:
        """Squared errors, without Monte Carlo bias."""
        return np.asarray(self.first * self.second)

    @property
    def mean(self) -> float:
        return float(self.rows.mean())

    def as_good_as(self, best: "_Losses") -> bool:
        """Whether the mean is not clearly larger, nor much larger."""
        if self.mean > LARGEST_RATIO**2 * max(0.0, best.mean):
            return False
        excess = self.rows - best.rows
        deviations = np.bincount(self.units, excess - excess.mean())
        error = np.sqrt(np.sum(deviations**2)) / excess.size
        return bool(excess.mean() <= CLEARLY * error)


def _losses(
    kernel: TreeKernel,
    design: SubsampleDesign,
    unit_of_row: Ints | None,
    n_jobs: int | None,
) -> "_Losses":
    """Out-of-bag residuals of standardised rows, in two pilot ensembles."""
    pilot = IidDesign(design.n, design.k, design.replace, design.seed)
    B = int(np.clip(round(PILOT_B[1] * np.sqrt(PILOT_UNITS / design.n)), *PILOT_B))
    nowhere = np.empty((0, kernel.n_features))
    task = Task(kernel, pilot, nowhere, unit_of_row, keep=False)
    r, s = (
        cast("OutOfBag", evaluate(task, b, b + B, n_jobs=n_jobs, progress=False).oob)
        for b in (0, B)
    )
    first, second = _residuals(kernel, r), _residuals(kernel, s)
    known = np.isfinite(first * second)
    if not known.any():
        raise ValueError(
            f"target='truth' needs rows that subsamples leave out; with k = {design.k} "
            "there are none. Use a smaller `k`."
        )
    rows = np.arange(len(kernel.y)) if r.rows is None else r.rows
    units = rows if unit_of_row is None else unit_of_row[rows]
    weights = np.ones(rows.size) if kernel.weights is None else kernel.weights[rows]
    known &= weights > 0
    # Of residuals with the roots of weights, products are weighted errors.
    roots = np.sqrt(weights[known] / weights[known].mean())
    return _Losses(roots * first[known], roots * second[known], units[known])


def _residuals(kernel: TreeKernel, oob: OutOfBag) -> Floats:
    """Out-of-bag residuals of the standardised response."""
    predicted = (oob.mean[:, 0] - kernel.centre) / kernel.scale
    return np.asarray(oob.of(kernel.y) - predicted)


def smooth_bias(
    task: Task, oob: OutOfBag, at: Floats, n_jobs: int | None = None
) -> Estimates:
    """Estimate an ensemble's bias at points, shape (q, p), from out-of-bag residuals.

    Notes
    -----
    The bias is estimated by smoothing out-of-bag predictions minus responses with a
    forest of `SMOOTHER_B` trees with `SMOOTHER_LEAF` rows in a leaf, on subsamples as
    large as the ensemble's, which also gives a standard error. A forest shrinks the
    function that it smooths, so the estimate tends to be too small.
    """
    kernel, design = check_tree_kernel(task.kernel), task.design
    bias = -kernel.scale * _residuals(kernel, oob)
    known = np.isfinite(bias)
    rows = np.flatnonzero(known) if oob.rows is None else oob.rows[known]
    unit_of_row, n = None, rows.size
    if task.unit_of_row is not None:
        units, unit_of_row = np.unique(task.unit_of_row[rows], return_inverse=True)
        n = units.size
    smoother = tree_kernel(
        "forest",
        kernel.X[rows],
        bias[known],
        options={"min_samples_leaf": SMOOTHER_LEAF},
        weights=None if kernel.weights is None else kernel.weights[rows],
        levels=kernel.levels,
    )
    seed = int(learner_keys(design.seed, 0, 1, Purpose.OUT_OF_BAG)[0])
    subsamples = IidDesign(n, min(design.k, n), design.replace, seed)
    smoothing = Task(smoother, subsamples, at, unit_of_row, keep=False, oob=False)
    values = evaluate(smoothing, 0, SMOOTHER_B, n_jobs=n_jobs, progress=False).values
    return estimate(
        subsamples, values, resolve_for_design("auto", subsamples, kind_of(smoother))
    )
