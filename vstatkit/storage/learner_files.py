"""Files of learners that were evaluated, and of what they add up to."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vstatkit.ensemble.evaluate import Task
from vstatkit.ensemble.refitting import AbsentLearner
from vstatkit.exceptions import CheckpointError
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.kernels.protocol import Predictive
from vstatkit.kernels.registry import codec_of
from vstatkit.packing import check, only, take, take_floats, take_size
from vstatkit.storage.archive import Arrays, read_archive, write_archive
from vstatkit.storage.directory import own_name

LEARNERS = re.compile(r"learners-(\d{8,})-(\d+)\.npz")
"""Name of a file of learners: the first of them, and the first that is not in it."""

OOB = {f"oob_{one.name}": one.name for one in fields(OutOfBag)}
"""Arrays of the sums of out-of-bag predictions."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class Sums:
    """How far consecutive learners count, and what they add up to.

    Attributes
    ----------
    start, stop : int
        Range of learners.
    asked : int
        Where they were to end.
    oob : OutOfBag or None
        Sums of their out-of-bag predictions.
    """

    start: int
    stop: int
    asked: int
    oob: OutOfBag | None


def learner_files(directory: Path) -> dict[tuple[int, int], Path]:
    """List the files of learners by their ranges, in order."""
    found = {}
    for path in directory.glob("learners-*.npz"):
        match = LEARNERS.fullmatch(path.name)
        if match:
            found[int(match[1]), int(match[2])] = path
    return dict(sorted(found.items()))


def sums_files(directory: Path) -> dict[int, Path]:
    """List the files of sums by the first of their learners."""
    return {
        int(path.stem.removeprefix("sums-")): path
        for path in directory.glob("sums-*.npz")
        if path.stem.removeprefix("sums-").isdigit()
    }


def write_learners(
    directory: Path, task: Task, start: int, parts: list[Evaluation]
) -> None:
    """Write consecutive learners from `start` on, if their kernel can be written."""
    values = np.concatenate([part.values for part in parts])
    learners = [learner for part in parts for learner in part.learners]
    stop = start + len(values)
    codec = codec_of(task.kernel) if learners else None
    document: dict[str, Any] = {"start": start, "stop": stop, "kind": None}
    arrays: Arrays = {"values": values}
    if codec is not None:
        packed, stacked = codec.pack(task.kernel, learners)
        document |= {"kind": codec.name, **packed}
        arrays |= stacked
    write_part(directory / f"learners-{start:08d}-{stop}.npz", document, arrays)


def read_learners(path: Path, task: Task) -> Evaluation | None:
    """Read a file of learners; None where it lacks learners that are to be kept.

    Learners that no file can hold are fitted again when they are needed.
    """
    codec = codec_of(task.kernel) if task.keep else None
    names = ("values", *(() if codec is None else codec.arrays))

    def unpack(document: Any, arrays: Arrays) -> Evaluation | None:
        start, stop = take_size(document, "start", 0), take_size(document, "stop", 1)
        check(path.name == f"learners-{start:08d}-{stop}.npz", "it was renamed.")
        kind = take(document, "kind", str, type(None))
        values = take_floats(arrays, "values", 2)
        check(len(values) == stop - start, "values and learners differ in number.")
        if not task.keep:
            return Evaluation(values, [], None)
        if codec is None:
            again = [AbsentLearner(task, number) for number in range(start, stop)]
            return Evaluation(values, again, None)
        if kind is None:
            return None
        check(kind == codec.name, "its learners are of another kind.")
        only(document, ("start", "stop", "kind", *codec.fields), "the document")
        p = task.kernel.n_features if isinstance(task.kernel, Predictive) else 0
        return Evaluation(
            values, codec.unpack(document, arrays, stop - start, p)[1], None
        )

    return read_part(path, names, unpack, "its learners are then grown again")


def write_sums(directory: Path, sums: Sums) -> None:
    """Write how far learners count, in place of what was there."""
    document = {"start": sums.start, "stop": sums.stop, "asked": sums.asked}
    arrays = {
        name: getattr(sums.oob, field)
        for name, field in OOB.items()
        if sums.oob is not None and getattr(sums.oob, field) is not None
    }
    write_part(directory / f"sums-{sums.start:08d}.npz", document, arrays)


def read_sums(path: Path) -> Sums:
    """Read how far learners count."""

    def unpack(document: Any, arrays: Arrays) -> Sums:
        only(document, ("start", "stop", "asked"), "the document")
        start = take_size(document, "start", 0)
        check(path.name == f"sums-{start:08d}.npz", "it was renamed.")
        stop = take_size(document, "stop", start + 1)
        found = {field: arrays[name] for name, field in OOB.items() if name in arrays}
        oob = OutOfBag(**found) if found else None
        return Sums(start, stop, take_size(document, "asked", stop), oob)

    start = path.stem.removeprefix("sums-").lstrip("0") or "0"
    what = f"the learners from number {start} on are then grown again"
    return read_part(path, tuple(OOB), unpack, what)


def write_part(path: Path, document: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file of a checkpoint, whole or not at all."""
    # Compression would take longer than the seconds between two files.
    write_archive(path, document, arrays, compress=False, temporary=own_name(path))


def read_part(
    path: Path,
    names: tuple[str, ...],
    unpack: Callable[[Any, Arrays], Read],
    what: str,
) -> Read:
    """Read a file of a checkpoint; `what` says what its removal costs."""
    try:
        return unpack(*read_archive(path, names))
    except Exception as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error} Remove this file; {what}, "
            "and the others kept."
        ) from error
