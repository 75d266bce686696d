"""Centre an ensemble: estimates by a mix of learners, standard errors by its own."""

import functools
import operator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.keeping import learner_bytes
from vstatkit.ensemble.mixing import allocated
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.estimates import weighted_mean
from vstatkit.kernels.base import Evaluation, OutOfBag
from vstatkit.kernels.staged_tree import StagedTree, Stages, alike, restaged, stored
from vstatkit.kernels.tree import TreeKernel
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.showing import short_repr

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
    own, others = (weighted_mean(one.values, None) for one in (evaluation, other))
    shift = others - own
    moved = replace(evaluation, values=evaluation.values + shift, oob=other.oob)
    # Without all of the ensemble's own learners the others predict nothing.
    kept = all(len(one.learners) == len(one.values) for one in (evaluation, *parts))
    budget = np.inf if task.keep_bytes is None else task.keep_bytes
    kept = kept and learner_bytes(other.learners) <= budget
    learners = alike(other.learners, mix[0][0].n_features) if kept else []
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
    kernel = stored(restaged(mix[0][0], Stages(boost=True)))
    other = replace(predictor, kernel=kernel, learners=learners, coding=None)
    return replace(predictor, centre=replace(other, centre=None))


def may_be_centred(design: SubsampleDesign) -> bool:
    """Whether all learners count the same, as a mean of others on them must."""
    return not design.complete
