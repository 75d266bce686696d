"""Target E[y|x]: candidate learners, their choice, and the remaining bias."""

import functools
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.retention import learner_bytes
from vstatkit.ensemble.stacking import allocated, mixing_weights
from vstatkit.inference.estimates import Estimates, estimate, weighted_mean
from vstatkit.kernels.base import AnyKernel, Evaluation, OutOfBag, kind_of
from vstatkit.kernels.staged_tree import (
    STAGE_OPTIONS,
    StagedTree,
    Stages,
    as_staged,
    replace_stages,
    stored_kernel,
)
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.kernels.tree_options import LOSSES
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.iid import IidDesign
from vstatkit.sampling.streams import Purpose, learner_keys
from vstatkit.text import short_repr
from vstatkit.variance.registry import resolve_for_design
from vstatkit.workers.progress import progress_bar

STAGES = {
    "both": Stages(trend=True, boost=True),
    "boost": Stages(boost=True),
    "trend": Stages(trend=True),
    "plain": Stages(),
}
"""What learners are made of, those with the least bias first."""

SMALL_LEAVES = (1, 5)
"""Rows in the smallest leaves that are tried."""

MOST_LEAVES = 5
"""Leaves that a tree of the largest ones that are tried can have."""


class Candidate(NamedTuple):
    """A learner to choose from.

    Attributes
    ----------
    name : str
        Of its stages, one of `STAGES`.
    min_samples_leaf : int
        Least number of rows in a leaf; of all rows, if it has no tree at all.
    max_features : int
        Columns that a split tries.
    splits : bool
        Whether it has trees.
    """

    name: str
    min_samples_leaf: int
    max_features: int
    splits: bool = True

    def kernel(self, kernel: TreeKernel) -> TreeKernel:
        """Grow such learners with the other options of a kernel of trees."""
        chosen = {
            "min_samples_leaf": self.min_samples_leaf,
            "max_features": self.max_features,
        }
        options = {**kernel.options, **chosen}
        return replace_stages(replace(kernel, options=options), STAGES[self.name])

    def text(self, n_features: int) -> str:
        """Say in words what the learner is."""
        stages = STAGES[self.name]
        if not self.splits:
            return "a linear trend" if stages.trend else "a mean"
        tried = "all" if self.max_features == n_features else f"{self.max_features} of"
        rows = "row" if self.min_samples_leaf == 1 else "rows"
        text = f"{stages.text}, with leaves of {self.min_samples_leaf} {rows} or more"
        if n_features == 1:
            return text
        return f"{text} and {tried} {n_features} columns tried at a split"


def candidates(
    kernel: TreeKernel, n_rows: int, given: Collection[str] = ()
) -> list[Candidate]:
    """List learners to choose from, those with the least bias first.

    Parameters
    ----------
    kernel : TreeKernel
        Grows plain trees.
    n_rows : int
        Rows of a subsample.
    given : collection of str
        Names of options that the user has set; these are not chosen.

    Notes
    -----
    Small leaves come before large ones; among equal leaves, few columns tried at a
    split before all of them; and then more stages before fewer. Last come a linear
    trend and a mean, without any tree.

    Examples
    --------
    >>> X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    >>> from vstatkit.kernels.tree import tree_kernel
    >>> how = {"n_classes": None, "weights": None, "options": {}}
    >>> kernel = tree_kernel("forest", X, y, **how)
    >>> listed = candidates(kernel, 100)
    >>> len(listed), listed[0]
    (34, Candidate(name='both', min_samples_leaf=1, max_features=1, splits=True))
    >>> [one.min_samples_leaf for one in listed[::8]]
    [1, 5, 10, 20, 6]
    """
    n_tried, p = int(kernel.options["max_features"]), kernel.n_features
    features = [n_tried] if "max_features" in given else sorted({n_tried, p})
    leaves = [int(kernel.options["min_samples_leaf"])]
    free = "min_samples_leaf" not in given
    if free:
        middle, large = round(float(np.sqrt(n_rows))), n_rows // MOST_LEAVES
        least = max(SMALL_LEAVES)
        leaves = sorted({*SMALL_LEAVES, max(least, middle), max(least, large)})
    names = [name for name, stages in STAGES.items() if may_have(kernel, stages)]
    listed = [
        Candidate(name, leaf, tried)
        for leaf in leaves
        for tried in features
        for name in names
    ]
    whole = [name for name in names if free and not STAGES[name].boost]
    return listed + [Candidate(name, len(kernel.y), n_tried, False) for name in whole]


def may_have(kernel: TreeKernel, stages: Stages) -> bool:
    """Whether learners of a kernel of trees may have these stages; see `with_stages`.

    Stages are fitted to what others leave, by least squares; a trend needs numbers.
    """
    squared = kernel.options["loss"] == LOSSES["squared_error"]
    numbers = kernel.levels is None
    return (squared or not any(stages)) and (numbers or not stages.trend)


def larger(design: SubsampleDesign) -> SubsampleDesign:
    """Draw subsamples of size `ceil(n**0.9)` where they are independent.

    The bias of trees falls with the size of subsamples; their variance is smoothed away
    by larger leaves.
    """
    if not isinstance(design, IidDesign):
        return design
    return replace(design, k=int(np.ceil(design.n**0.9)))


Mix = tuple[tuple[TreeKernel, float], ...]
"""What grows the learners of a mix, and how many of them: shares that add up to one."""


@dataclass(frozen=True)
class Centre:
    """What the estimates of an ensemble are, where they are not its own means.

    Attributes
    ----------
    mix : Mix
        Grows the learners whose mean is the estimate.
    shift : ndarray of shape (m,)
        What was added to the values of every learner.
    oob : OutOfBag or None
        Out-of-bag sums of the ensemble's own learners.
    """

    mix: Mix
    shift: Floats
    oob: OutOfBag | None

    __repr__ = short_repr


class Centred(NamedTuple):
    """An evaluation whose means are those of other learners.

    Attributes
    ----------
    evaluation : Evaluation
        Values of the ensemble's own learners, moved; out-of-bag sums of the others.
    learners : list of StagedTree
        The others, as many as were kept.
    centre : Centre or None
        How it was moved; None if it was not.
    """

    evaluation: Evaluation
    learners: list[StagedTree]
    centre: Centre | None


def centred(
    task: Task,
    mix: Mix | None,
    evaluation: Evaluation,
    n_query: int | None,
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Centred:
    r"""Move the values of learners so that their mean is that of other learners.

    Parameters
    ----------
    task : Task
        What was evaluated, with the design that was used.
    mix : Mix or None
        Grows the others, as many and on the same subsamples; None to move nothing.
    evaluation : Evaluation
        Values of the ensemble's own learners.
    n_query : int or None
        Leading values that are no differences.
    n_jobs, progress
        See `evaluate`.

    Notes
    -----
    With :math:`h_b` the learners and :math:`g_b` the others, values become
    :math:`h_b - \bar h + \bar g`. All that is estimated from how learners differ stays
    as it was. The first of the others are of the first kind, the next of the second.
    """
    if mix is None:
        return Centred(evaluation, [], None)
    B = len(evaluation.values)
    counts = allocated(np.array([share for _, share in mix]), B)
    ends = np.cumsum(counts)
    parts = [
        evaluate(
            replace(task, kernel=kernel),
            int(end - count),
            int(end),
            n_jobs=n_jobs,
            progress=progress,
        )
        for (kernel, _), count, end in zip(mix, counts, ends, strict=True)
        if count
    ]
    other = functools.reduce(operator.add, parts).with_moves(n_query)
    mean, others = (weighted_mean(grown.values, None) for grown in (evaluation, other))
    shift = others - mean
    moved = replace(evaluation, values=evaluation.values + shift, oob=other.oob)
    # Without all of the ensemble's own learners the others predict nothing.
    complete = all(
        len(grown.learners) == len(grown.values) for grown in (evaluation, *parts)
    )
    budget = np.inf if task.keep_bytes is None else task.keep_bytes
    complete = complete and learner_bytes(other.learners) <= budget
    learners = as_staged(other.learners, mix[0][0].n_features) if complete else []
    return Centred(moved, learners, Centre(mix, shift, evaluation.oob))


def uncentred(evaluation: Evaluation, centre: Centre | None) -> Evaluation:
    """Undo `centred`, up to rounding: what the ensemble's own learners say."""
    if centre is None:
        return evaluation
    values = evaluation.values - centre.shift
    return replace(evaluation, values=values, oob=centre.oob)


def centred_predictor(
    predictor: Predictor, mix: Mix, learners: list[StagedTree]
) -> Predictor:
    """Let a predictor be centred, too, by the learners of a mix."""
    kernel = stored_kernel(replace_stages(mix[0][0], Stages(boost=True)))
    other = replace(predictor, kernel=kernel, learners=learners, coding=None)
    return replace(predictor, centre=replace(other, centre=None))


def may_be_centred(design: SubsampleDesign) -> bool:
    """Whether all learners count the same, as a mean of others on them must."""
    return not design.complete


TARGETS = ("mean", "truth")
"""What intervals may aim at."""

PILOT_B = (25, 100)
"""Fewest and most learners of each of the two pilot ensembles of a candidate."""

PILOT_UNITS = 500
"""Units up to which there are most: the more there are, the better errors are known."""

CLEARLY = 2.0
"""Standard errors of a difference from which an error is clearly larger."""

LARGEST_RATIO = 1.25
"""Largest root mean square error of the learner of the standard errors, over the least
one. Where single rows make up most of the difference, its standard error is as large
as the difference itself, and would admit any learner."""

NAMED = 2
"""Learners of a mix that are named, those with the largest shares."""

SMOOTHER_B = 500
"""Trees that smooth out-of-bag residuals."""

SMOOTHER_LEAF = 5
"""Least number of rows in their leaves."""


@dataclass(frozen=True)
class Choice:
    """What was chosen to aim at E[y|x].

    Attributes
    ----------
    candidate : Candidate
        The learner that standard errors come from.
    kernel : TreeKernel
        Grows such learners.
    mix : dict of Candidate to float
        The learners that estimates come from, with their shares.
    parts : Mix or None
        Grows them; None where it is the learner of the standard errors alone.
    errors : dict of Candidate to float
        Out-of-bag root mean square error of every candidate, had it infinitely many
        learners.
    mixed : float
        That of the mix.
    """

    candidate: Candidate
    kernel: TreeKernel
    mix: dict[Candidate, float]
    parts: Mix | None
    errors: dict[Candidate, float]
    mixed: float

    @property
    def learner(self) -> str:
        """What standard errors come from, in words."""
        return self.candidate.text(self.kernel.n_features)

    @property
    def mixture(self) -> str | None:
        """What estimates come from, in words; None where it is the learner alone."""
        if self.parts is None:
            return None
        ordered = sorted(self.mix.items(), key=lambda item: -item[1])
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
        """Errors of what was chosen, and the least of each kind of stages."""
        least = {
            "estimates": self.mixed,
            "standard errors": self.errors[self.candidate],
        }
        for candidate, error in self.errors.items():
            least[candidate.name] = min(error, least.get(candidate.name, np.inf))
        return least


def checked_trees(kernel: AnyKernel) -> TreeKernel:
    """Refuse kernels for which there is nothing to choose from."""
    if not isinstance(kernel, TreeKernel):
        raise TypeError(
            "the bias of kernel='forest' and kernel='tree' can be estimated, and "
            f"reduced by target='truth'; this kernel is {type(kernel).__name__}."
        )
    if kernel.n_classes is not None:
        raise ValueError(
            "the bias can be estimated, and reduced by target='truth', for a numeric "
            f"response; this one has {kernel.n_classes} classes."
        )
    return kernel


def chosen(
    target: str, kernel: AnyKernel, options: Mapping[str, Any], *drawn: Any, **work: Any
) -> Choice | None:
    """Choose a learner if intervals are to aim at E[y|x]; see `choose_learner`.

    Parameters
    ----------
    target : str
        What they are to aim at, one of `TARGETS`.
    kernel : kernel
        Of the fit; of trees, if there is to be a choice.
    options : mapping
        Options of the kernel, as the user has set them.
    *drawn, **work
        Design and members, workers and progress; see `choose_learner`.
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
    trees = checked_trees(kernel)
    if trees.options["loss"] == LOSSES["absolute_error"]:
        raise ValueError(
            "target='truth' aims at E[y|x], and criterion='absolute_error' at medians. "
            "Leave `criterion` out, or use target='mean'."
        )
    return choose_learner(trees, set(options), *drawn, **work)


def choose_learner(
    kernel: TreeKernel,
    given: Collection[str],
    design: SubsampleDesign,
    members: Ints | None,
    *,
    n_jobs: int | None,
    progress: bool | None = False,
) -> Choice:
    """Choose what learners are made of by the out-of-bag error of pilot ensembles.

    Parameters
    ----------
    kernel : TreeKernel
        Grows plain trees.
    given : collection of str
        Names of options that the user has set; these are not chosen.
    design : SubsampleDesign
        Subsamples of the pilots are independent, of its size, from its seed.
    members : ndarray of shape (n_rows,) or None
        Unit of every row where units are clusters.
    n_jobs : int or None
        Workers.
    progress : bool or None
        Whether to show a progress bar; see `evaluate`.

    Notes
    -----
    Every candidate has two ensembles, whose out-of-bag residuals `r` and `s` are
    multiplied: the mean of `r * s` has no Monte Carlo bias, since the ensembles'
    own noise is independent. Estimates come from a mix of candidates, `mixing_weights`,
    whose error is small. Standard errors come from the candidate with the least bias
    of those whose error is not larger than the smallest by more than two standard
    errors of the difference, nor by more than a quarter (as root mean squares): it
    undersmooths where there is something to be biased about, and its spread leaves
    room for what bias the mix may have.
    """
    n_rows = round(design.k * len(kernel.y) / design.n)
    listed = candidates(kernel, n_rows, given)
    bar = progress_bar(progress, iterable=listed, unit=" candidates")
    losses = {
        candidate: _losses(candidate.kernel(kernel), design, members, n_jobs)
        for candidate in bar
    }
    best = min(losses.values(), key=lambda loss: loss.mean)
    taken = next(
        candidate for candidate, loss in losses.items() if loss.as_good_as(best)
    )
    mix, error = {taken: 1.0}, losses[taken].mean
    if may_be_centred(design):
        mix, error = _mixed(losses)
    errors = {candidate: _root(kernel, loss.mean) for candidate, loss in losses.items()}
    parts = tuple((candidate.kernel(kernel), share) for candidate, share in mix.items())
    alone = list(mix) == [taken]
    return Choice(
        taken,
        taken.kernel(kernel),
        mix,
        None if alone else parts,
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


def _mixed(losses: dict[Candidate, _Losses]) -> tuple[dict[Candidate, float], float]:
    """Mix candidates, and say what the mean squared error of the mix is."""
    first = np.stack([loss.first for loss in losses.values()])
    second = np.stack([loss.second for loss in losses.values()])
    units = next(iter(losses.values())).units
    weights = mixing_weights(first, second, np.unique(units).size)
    shares = zip(losses, weights.tolist(), strict=True)
    error = float(np.mean((weights @ first) * (weights @ second)))
    return {candidate: share for candidate, share in shares if share > 0}, error


def pilot_size(n: int) -> int:
    """Count the learners of a pilot ensemble for n units.

    Examples
    --------
    >>> pilot_size(200), pilot_size(2000), pilot_size(20_000)
    (100, 50, 25)
    """
    fewest, most = PILOT_B
    return int(np.clip(round(most * np.sqrt(PILOT_UNITS / n)), fewest, most))


def _losses(
    kernel: TreeKernel,
    design: SubsampleDesign,
    members: Ints | None,
    n_jobs: int | None,
) -> "_Losses":
    """Out-of-bag residuals of standardised rows, in two pilot ensembles."""
    pilot = IidDesign(design.n, design.k, design.replace, design.seed)
    nowhere, B = np.empty((0, kernel.n_features)), pilot_size(design.n)
    task = Task(kernel, pilot, nowhere, members, keep=False)
    r, s = (
        evaluate(task, start, start + B, n_jobs=n_jobs, progress=False).oob
        for start in (0, B)
    )
    assert r is not None  # the task asks for them
    assert s is not None
    first, second = _residuals(kernel, r), _residuals(kernel, s)
    known = np.isfinite(first * second)
    if not known.any():
        raise ValueError(
            f"target='truth' needs rows that subsamples leave out; with k = {design.k} "
            "there are none. Use a smaller `k`."
        )
    rows = np.arange(len(kernel.y)) if r.rows is None else r.rows
    units = rows if members is None else members[rows]
    if kernel.weights is None:
        return _Losses(first[known], second[known], units[known])
    weights = kernel.weights[rows]
    known &= weights > 0
    # Of residuals with the roots of weights, products are weighted errors.
    roots = np.sqrt(weights[known] / weights[known].mean())
    return _Losses(roots * first[known], roots * second[known], units[known])


def _residuals(kernel: TreeKernel, oob: OutOfBag) -> Floats:
    """Out-of-bag residuals of the standardised response."""
    predicted = (oob.mean[:, 0] - kernel.centre) / kernel.scale
    return np.asarray(oob.of(kernel.y) - predicted)


def bias_left(
    task: Task, oob: OutOfBag, at: Floats, n_jobs: int | None = None
) -> Estimates:
    """Estimate an ensemble's bias at points from its out-of-bag residuals.

    Parameters
    ----------
    task : Task
        What was evaluated, by a kernel of trees.
    oob : OutOfBag
        Out-of-bag sums.
    at : ndarray of shape (q, p)
        Points.
    n_jobs : int, optional
        Workers.

    Notes
    -----
    The bias is smoothed out-of-bag predictions less responses: a forest of
    `SMOOTHER_B` trees with `SMOOTHER_LEAF` rows in a leaf, on subsamples as large as
    the ensemble's, whose own standard errors say how much of it is noise. A forest
    flattens what it smooths, so that the estimate is rather too small than too large.
    """
    kernel, design = checked_trees(task.kernel), task.design
    bias = -kernel.scale * _residuals(kernel, oob)
    known = np.isfinite(bias)
    rows = np.flatnonzero(known) if oob.rows is None else oob.rows[known]
    members, n = None, rows.size
    if task.rows is not None:
        units, members = np.unique(task.rows[rows], return_inverse=True)
        n = units.size
    options = {"min_samples_leaf": SMOOTHER_LEAF}
    smoother = tree_kernel(
        "forest",
        kernel.X[rows],
        bias[known],
        n_classes=None,
        weights=None if kernel.weights is None else kernel.weights[rows],
        options=options,
        levels=kernel.levels,
    )
    seed = int(learner_keys(design.seed, 0, 1, Purpose.OUT_OF_BAG)[0])
    drawn = IidDesign(n, min(design.k, n), design.replace, seed)
    values = evaluate(
        Task(smoother, drawn, at, members, keep=False, oob=False),
        0,
        SMOOTHER_B,
        n_jobs=n_jobs,
        progress=False,
    ).values
    return estimate(drawn, values, resolve_for_design("auto", drawn, kind_of(smoother)))
