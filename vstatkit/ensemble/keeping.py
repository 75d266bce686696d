"""Which learners are kept, to predict new data later."""

import pickle
from collections.abc import Sequence
from typing import Any, Literal

from vstatkit.kernels.evaluation import Evaluation
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.orders import most_compared

KEEP_BYTES = 2**30
"""Size of the learners up to which "auto" keeps them: 1 GiB."""


def keep_budget(keep_learners: bool | Literal["auto"]) -> int | None:
    """Most bytes of learners that are kept; None where all are."""
    if isinstance(keep_learners, bool):
        return None if keep_learners else 0
    if keep_learners != "auto":
        raise ValueError(
            f"`keep_learners` must be 'auto', True or False; got {keep_learners!r}."
        )
    return KEEP_BYTES


def learner_bytes(learners: Sequence[Any]) -> int:
    """Estimate the size of learners: of arrays and trees, or by pickling the first."""
    if not learners:
        return 0
    if hasattr(learners[0], "nbytes"):
        return sum(int(one.nbytes) for one in learners)
    try:
        return len(pickle.dumps(learners[0])) * len(learners)
    except Exception:  # whatever a foreign learner raises, it has no known size
        return 0


def needed_learners(design: SubsampleDesign) -> int | None:
    """Count the first learners that are kept in any case; None for all.

    They are compared with each other, to go beyond the first order; learners that come
    in groups are not.
    """
    if design.grouped:
        return 0
    return None if design.complete else most_compared(design.n)


class Collector:
    """Keeps the first learners of a range: all, or as many as the budget allows.

    If they exceed it, only those stay that are compared with each other.

    Parameters
    ----------
    budget : int or None
        Most bytes; None for all.
    design : SubsampleDesign
        The design of the learners.
    start : int
        Number of the first learner of the range.
    """

    def __init__(self, budget: int | None, design: SubsampleDesign, start: int) -> None:
        needed = needed_learners(design)
        self._budget = None if needed is None else budget
        self._needed = 0 if needed is None else max(0, needed - start)
        self._size = 0
        self.learners: list[Any] = []

    @property
    def _is_full(self) -> bool:
        return self._budget is not None and self._size > self._budget

    def add(self, learners: list[Any]) -> None:
        """Keep the next learners, or let them go."""
        if not self._is_full:
            self.learners.extend(learners)
            self._size += learner_bytes(learners)
        elif len(self.learners) < self._needed:
            self.learners.extend(learners)
        if self._is_full:
            del self.learners[self._needed :]


def within_budget(
    evaluation: Evaluation, budget: int | None, design: SubsampleDesign
) -> Evaluation:
    """Let go of learners that were grown in several steps and exceed the budget."""
    collector = Collector(budget, design, 0)
    collector.add(evaluation.learners)
    return Evaluation(evaluation.values, collector.learners, evaluation.oob)
