"""Retention of learners within the memory that is available."""

import os
import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vstatkit.exceptions import VstatkitWarning
from vstatkit.kernels.base import Evaluation
from vstatkit.kernels.residual_trees import StagedTree
from vstatkit.kernels.tree import Tree
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sources.disk_arrays import GrowingArray, check_space
from vstatkit.variance.higher_orders import most_learners_compared

ROOT = Path("/")  # root of the file system
# Bytes from which a limit counts as none; old kernels write a huge number.
UNLIMITED = 2**60


def available_memory(root: Path = ROOT) -> int | None:
    """Return the bytes that can still be allocated; None if this is unknown.

    The least of what the machine has left (without taking memory from others, swap
    space included), what the control groups of this process leave, and its limit on
    addresses; the physical memory if nothing else is known.
    """
    known = [size for size in (*_groups(root), _addresses(root)) if size is not None]
    machine = _table(root / "proc/meminfo")
    if "MemAvailable" in machine:
        known.append(1024 * (machine["MemAvailable"] + machine.get("SwapFree", 0)))
    if known:
        return max(0, min(known))
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _table(path: Path) -> dict[str, int]:
    """Read lines such as `MemFree: 12 kB` and `inactive_file 12`."""
    table = {}
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


def _groups(root: Path) -> list[int | None]:
    """Read the limits of the control groups of the process and their parents."""
    sizes: list[int | None] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, place = line.split(":", 2)
        if kinds == "":
            top = root / "sys/fs/cgroup"
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            top = root / "sys/fs/cgroup/memory"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
            names = (limit, used, "total_inactive_file")
        else:
            continue
        # Within a container the group may be at the top, whatever its place.
        parts = Path(place.lstrip("/")).parts
        places = [top.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
        sizes += [_left(folder, *names) for folder in places]
    return sizes


def _left(folder: Path, limit: str, used: str, inactive: str) -> int | None:
    """Return the bytes that a control group leaves; cached files count as free."""
    most, now = _number(folder / limit), _number(folder / used)
    if most is None or now is None:
        return None
    return most - now + _table(folder / "memory.stat").get(inactive, 0)


def _addresses(root: Path) -> int | None:
    """Return the bytes that a limit on addresses (`ulimit -v`) leaves."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 not everywhere

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or most >= UNLIMITED:
        return None
    used = _table(root / "proc/self/status").get("VmSize", 0)
    return int(most) - 1024 * used


# Size of the learners up to which "auto" keeps them on any machine: 1 GiB.
KEEP_BYTES = 2**30
# Share of the memory, and of the disk for temporary files, that they may take where
# that is more.
KEEP_SHARE = 0.25
# Size of trees in memory from which they are moved to a temporary file.
RESIDENT_BYTES = 2**26


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
    """Move the nodes of trees to a temporary file; other learners stay as they are."""
    if not learners or not isinstance(learners[0], Tree | StagedTree):
        return learners
    sizes = [tree.nodes.size for tree in learners]
    check_space(sum(tree.nodes.nbytes for tree in learners))
    table = GrowingArray(learners[0].nodes.dtype)
    for tree in learners:
        table.append(tree.nodes)
    parts = np.split(table.map_array(), np.cumsum(sizes)[:-1])
    pairs = zip(learners, parts, strict=True)
    return [replace(tree, nodes=nodes) for tree, nodes in pairs]


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
