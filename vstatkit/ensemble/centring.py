"""Centre an ensemble: estimates by smooth learners, standard errors by less biased."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.keeping import within_budget
from vstatkit.ensemble.prediction import Predictor
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.kernels.trees import TreeKernel
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.showing import short_repr


@dataclass(frozen=True)
class Centre:
    """What the estimates of an ensemble are, where they are not its own means.

    Attributes
    ----------
    kernel : TreeKernel
        Grows the learners whose mean is the estimate.
    shift : ndarray of shape (m,)
        What was added to the values of every learner.
    oob : OutOfBag or None
        Out-of-bag sums of the ensemble's own learners.
    """

    kernel: TreeKernel
    shift: Floats
    oob: OutOfBag | None

    __repr__ = short_repr


class Centred(NamedTuple):
    """An evaluation whose means are those of other learners.

    Attributes
    ----------
    evaluation : Evaluation
        Values of the ensemble's own learners, moved; out-of-bag sums of the others.
    learners : list
        The others, as many as were kept.
    centre : Centre or None
        How it was moved; None if it was not.
    """

    evaluation: Evaluation
    learners: list[Any]
    centre: Centre | None


def centred(
    task: Task,
    kernel: TreeKernel | None,
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
    kernel : TreeKernel or None
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
    as it was.
    """
    if kernel is None:
        return Centred(evaluation, [], None)
    other = evaluate(
        replace(task, kernel=kernel),
        0,
        len(evaluation.values),
        n_jobs=n_jobs,
        progress=progress,
    ).with_moves(n_query)
    other = within_budget(other, task.keep_bytes, task.design)
    shift = other.values.mean(axis=0) - evaluation.values.mean(axis=0)
    moved = replace(evaluation, values=evaluation.values + shift, oob=other.oob)
    return Centred(moved, other.learners, Centre(kernel, shift, evaluation.oob))


def uncentred(evaluation: Evaluation, centre: Centre | None) -> Evaluation:
    """Undo `centred`, up to rounding: what the ensemble's own learners say."""
    if centre is None:
        return evaluation
    values = evaluation.values - centre.shift
    return replace(evaluation, values=values, oob=centre.oob)


def centred_predictor(predictor: Predictor, found: Centred) -> Predictor:
    """Let a predictor be centred, too.

    Where only some of the others were kept, no more of its own learners are of use.
    """
    if found.centre is None:
        return replace(predictor, centre=None)
    L = len(found.learners)
    own = replace(predictor, learners=predictor.learners[:L], centre=None)
    other = replace(own, kernel=found.centre.kernel, learners=found.learners)
    return replace(own, centre=replace(other, coding=None))


def may_be_centred(design: SubsampleDesign) -> bool:
    """Whether all learners count the same, as a mean of others on them must."""
    return not design.complete
