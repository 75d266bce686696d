"""Retention of learners within the memory that is available."""

import pickle
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from vstatkit.available_memory import available_memory
from vstatkit.exceptions import VstatkitWarning
from vstatkit.kernels.base import Evaluation
from vstatkit.kernels.residual_trees import StagedTree
from vstatkit.kernels.tree import Tree
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sources.disk_arrays import GrowingArray, check_space
from vstatkit.variance.higher_orders import most_learners_compared

# Size of the learners up to which "auto" keeps them on any machine: 1 GiB.
KEEP_BYTES = 2**30
# Share of the memory, and of the disk for temporary files, that they may take where
# that is more.
KEEP_SHARE = 0.25
# Size of trees in memory from which they are moved to a temporary file.
RESIDENT_BYTES = 2**26
SPILLED = ("nodes", "leaf_rows", "leaf_shares")  # arrays of trees that are moved


def keep_budget(
    keep_learners: bool | Literal["auto"], memory_limit: int | None = None
) -> int | None:
    """Return the most bytes of learners that are kept; None for all.

    `memory_limit` are the bytes that the fit may use, by default what the machine has
    left.
    """
    if isinstance(keep_learners, bool):
        return None if keep_learners else 0
    if keep_learners != "auto":
        raise ValueError(
            f"`keep_learners` must be 'auto', True or False; got {keep_learners!r}."
        )
    memory = available_memory() if memory_limit is None else memory_limit
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    share = 0 if memory is None else int(KEEP_SHARE * min(memory, disk))
    return max(KEEP_BYTES, share)


def learner_bytes(learners: Sequence[Any]) -> int:
    """Estimate the size of learners: of arrays and trees, or by pickling the first."""
    known = [learner.nbytes for learner in learners if hasattr(learner, "nbytes")]
    others = [learner for learner in learners if not hasattr(learner, "nbytes")]
    try:
        each = len(pickle.dumps(others[0])) if others else 0
    except Exception:  # whatever a foreign learner raises, it has no known size
        each = 0
    return sum(map(int, known)) + each * len(others)


def needed_learners(design: SubsampleDesign) -> int | None:
    """Count the first learners that the Hoeffding correction compares; None for all."""
    if design.has_groups:
        return 0
    return None if design.complete else most_learners_compared(design.n)


class Collector:
    """Collects the first learners of a range, as many as the budget allows.

    If they exceed it, only the needed ones stay, see `needed_learners`. Trees that
    would fill the memory are moved to a file. A budget of None keeps all.
    """

    def __init__(self, budget: int | None, design: SubsampleDesign, start: int) -> None:
        needed = needed_learners(design)
        self._budget = None if needed is None else budget
        self._needed = 0 if needed is None else max(0, needed - start)
        self._size = self._resident = self._n_filed = 0
        self.learners: list[Any] = []

    @property
    def _is_full(self) -> bool:
        return self._budget is not None and self._size > self._budget

    def add(self, learners: list[Any]) -> None:
        """Keep the next learners, or discard them."""
        size = learner_bytes(learners)
        if not self._is_full:
            self.learners.extend(learners)
            self._size += size
        elif len(self.learners) < self._needed:
            self.learners.extend(learners)
        if self._is_full:
            del self.learners[self._needed :]
        self._resident += size
        if self._resident > RESIDENT_BYTES:
            resident = slice(self._n_filed, None)
            self.learners[resident] = spill_to_disk(self.learners[resident])
            self._n_filed, self._resident = len(self.learners), 0


def spill_to_disk(learners: list[Any]) -> list[Any]:
    """Move the arrays of trees to temporary files; other learners stay as they are."""
    if not learners or not isinstance(learners[0], Tree | StagedTree):
        return learners
    for name in SPILLED:
        arrays = [getattr(tree, name, None) for tree in learners]
        known = [array for array in arrays if array is not None]
        if len(known) < len(arrays) or not any(array.size for array in known):
            continue
        check_space(sum(array.nbytes for array in known))
        table = GrowingArray(known[0].dtype)
        for array in known:
            table.append(array)
        ends = np.cumsum([array.size for array in known])[:-1]
        parts = zip(learners, np.split(table.map_array(), ends), strict=True)
        learners = [replace(tree, **{name: part}) for tree, part in parts]
    return learners


def trim_to_budget(
    evaluation: Evaluation, budget: int | None, design: SubsampleDesign
) -> Evaluation:
    """Discard learners that were grown in several steps and exceed the budget."""
    needed = needed_learners(design)
    size = learner_bytes(evaluation.learners)
    if budget is None or needed is None or size <= budget:
        return evaluation
    return replace(evaluation, learners=evaluation.learners[:needed])


def warn_of_dropped(
    learners: Sequence[Any], n_kept: int, B: int, budget: int | None
) -> None:
    """Warn that learners were not kept, and name the methods that need them.

    With keep_learners=False, for which the budget is zero, there is no warning.
    `n_kept` of the B learners that were grown can predict.
    """
    if not budget or n_kept >= B or not learners:
        return
    each = learner_bytes(learners) / len(learners)
    warnings.warn(
        f"of {B:,} learners only {n_kept:,} are kept: all would take about "
        f"{B * each / 1e9:.2g} GB, and keep_learners='auto' keeps up to "
        f"{budget / 1e9:.2g} GB on this machine. predict and get_prediction are not "
        "available, and averages over rows refit the learners. Fit with "
        "keep_learners=True, or with at most "
        f"{int(budget / each):,} learners (`B`, `max_B`).",
        VstatkitWarning,
        stacklevel=4,
    )
