"""Aim at E[y|x]: choose a learner, and see what bias it leaves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.candidates import Candidate, candidates
from vstatkit.ensemble.centring import Mix, may_be_centred
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.mixing import mixing_weights
from vstatkit.ensemble.progress import progress_bar
from vstatkit.inference.estimates import Estimates, estimate
from vstatkit.kernels.base import AnyKernel, OutOfBag, kind_of
from vstatkit.kernels.staged_tree import STAGE_OPTIONS
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.kernels.tree_options import LOSSES
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.iid import IidDesign
from vstatkit.sampling.streams import Purpose, learner_keys
from vstatkit.variance.registry import resolved

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
        ordered = sorted(self.mix.items(), key=lambda one: -one[1])
        shares = [round(100 * share) for _, share in ordered[:NAMED]]
        named = [
            "those of the standard errors"
            if one == self.candidate
            else one.text(self.kernel.n_features)
            for one, _ in ordered[:NAMED]
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
        for one, error in self.errors.items():
            least[one.name] = min(error, least.get(one.name, np.inf))
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
    given = [name for name in STAGE_OPTIONS if name in options]
    if given:
        raise ValueError(
            f"target='truth' chooses `trend` and `boost` itself; leave `{given[0]}` "
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
    losses = {one: _losses(one.kernel(kernel), design, members, n_jobs) for one in bar}
    best = min(losses.values(), key=lambda one: one.mean)
    taken = next(one for one, loss in losses.items() if loss.as_good_as(best))
    mix, error = {taken: 1.0}, losses[taken].mean
    if may_be_centred(design):
        mix, error = _mixed(losses)
    errors = {one: _root(kernel, loss.mean) for one, loss in losses.items()}
    parts = tuple((one.kernel(kernel), share) for one, share in mix.items())
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
    first = np.stack([one.first for one in losses.values()])
    second = np.stack([one.second for one in losses.values()])
    units = next(iter(losses.values())).units
    weights = mixing_weights(first, second, np.unique(units).size)
    shares = zip(losses, weights.tolist(), strict=True)
    error = float(np.mean((weights @ first) * (weights @ second)))
    return {one: share for one, share in shares if share > 0}, error


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
    return estimate(drawn, values, resolved("auto", drawn, kind_of(smoother)))
