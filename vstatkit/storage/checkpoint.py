"""Checkpoints of fits, bootstraps and studies, which resume from them."""

import errno
import hashlib
import json
import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import Floats, Seed
from vstatkit.ensemble.bootstrap_repetitions import RepeatedFit
from vstatkit.ensemble.evaluation import Batches, LazyLearner, Task, evaluate
from vstatkit.exceptions import CheckpointError, VstatkitWarning
from vstatkit.json_values import check, check_fields, take, take_floats, take_size
from vstatkit.kernels.base import Evaluation, OutOfBag, PredictiveModel
from vstatkit.kernels.registry import codec_of
from vstatkit.sampling.streams import resolve_seed
from vstatkit.scratch import is_alive, lock, unlock
from vstatkit.storage.atomic_files import (
    Arrays,
    read_archive,
    write_archive,
    write_whole,
)

LOCK = "lock"  # file that is locked. It is not removed: only the system's lock matters.
# Error numbers of a lock that another process holds.
TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)

_HANDLES: set[int] = set()


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Lock a directory against other processes, and other calls in this process.

    The lock is the operating system's. It ends with the process, even if that is
    killed, and a file that was left behind does not lock the directory. The directory
    is created if it does not exist; if it is in use, the error names the process.
    """
    if directory.exists() and not directory.is_dir():
        raise CheckpointError(
            f"`checkpoint` must be a directory; {directory} is a file."
        )
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _HANDLES.add(handle)
    try:
        try:
            lock(handle)
        except OSError as error:
            if error.errno in TAKEN:
                raise CheckpointError(_in_use(directory, handle)) from None
            warnings.warn(
                f"{directory} cannot be locked ({error.strerror}): its file system "
                "has no locks. Use it from one process at a time.",
                VstatkitWarning,
                stacklevel=3,
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield
    finally:
        if handle in _HANDLES:  # unless a forked process has closed it
            _HANDLES.discard(handle)
            unlock(handle)
            os.close(handle)


def _in_use(directory: Path, handle: int) -> str:
    process, _, host = os.read(handle, 300).decode(errors="replace").partition(" ")
    who = f"process {process} on {host.strip()}" if process else "another process"
    if process == str(os.getpid()) and host.strip() == socket.gethostname():
        who = f"this process ({process})"
    return (
        f"the checkpoints in {directory} are in use by {who}. Wait for it to end, or "
        "choose another directory."
    )


def _close_copies() -> None:
    """Close the handles that a forked process has inherited with their locks."""
    while _HANDLES:
        os.close(_HANDLES.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)


PRECISION = 2.0**40  # inverse of the relative precision of hashes


def describe(thing: Any) -> str:
    """Describe a function or a value without memory addresses."""

    def describe_parameter(value: Any) -> str:
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(describe_parameter, value))}]"
        return repr(value) if isinstance(value, str) else describe(value)

    if isinstance(thing, str):
        return thing
    if isinstance(thing, BaseEstimator):
        parameters = sorted(thing.get_params(deep=False).items())
        pairs = [f"{name}={describe_parameter(value)}" for name, value in parameters]
        return f"{type(thing).__qualname__}({', '.join(pairs)})"
    if callable(thing) and not is_dataclass(thing):
        return str(getattr(thing, "__qualname__", type(thing).__qualname__))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def hash_arrays(arrays: Sequence[Floats]) -> str:
    """Hash numbers, rounded to `PRECISION`, and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(_round_digits(array).tobytes())
    return digest.hexdigest()[:16]


def hash_frame(frame: pd.DataFrame, *, exactly: bool = False) -> str:
    """Hash names, dtypes, categories and values; floats rounded unless `exactly`."""
    digest = hashlib.sha256()
    for name, column in frame.items():
        kind = column.dtype
        levels = list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else []
        digest.update(repr((name, str(kind), list(map(str, levels)))).encode())
        if pd.api.types.is_float_dtype(kind):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            digest.update((values if exactly else _round_digits(values)).tobytes())
        else:
            rows = pd.util.hash_pandas_object(column, index=False, categorize=False)
            digest.update(rows.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _round_digits(array: Floats) -> Floats:
    mantissa, exponent = np.frexp(array)
    with np.errstate(over="ignore"):  # the largest double may round to infinity
        return np.ldexp(np.round(mantissa * PRECISION), exponent) + 0.0


def hash_table(table: Any) -> str | None:
    """Hash observations exactly, arrays in memory order; None if there are none."""
    if table is None:
        return None
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "biuf":
        return hash_frame(pd.DataFrame(table), exactly=True)
    digest = hashlib.sha256(repr((table.shape, str(table.dtype))).encode())
    columns = table.ndim > 1 and not table.flags.c_contiguous
    digest.update(np.ascontiguousarray(table.T if columns else table).data)
    return digest.hexdigest()[:16]


MANIFEST = "settings.json"
# Name of an unfinished file; it contains the id of the process that writes it.
TEMPORARY = re.compile(
    r"(?:settings\.json|(?:[a-z]+-)?\d{6,}(?:-\d+)?\.npz)\.(\d+)\.tmp"
)
SHOWN = 60  # number of characters of a setting that a message shows


def settle_settings(
    directory: Path,
    settings: Mapping[str, Any],
    *,
    hashed: Mapping[str, str],
    note: str = "",
) -> None:
    """Record settings in a directory, or check that they equal the recorded ones.

    The settings are everything that the numbers depend on; the version of vstatkit is
    added. `hashed` describes those that are hashes: each one depends on those before
    it, and all of them on the other settings. The `note` is added to the message if a
    hash differs. Unfinished files of killed runs are removed.
    """

    def to_json(value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else str(value)

    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.tmp"):
        match = TEMPORARY.fullmatch(path.name)
        if match and not is_alive(int(match[1])):
            with suppress(OSError):  # another run has removed it, or has it open
                path.unlink()
    full = {"vstatkit": metadata.version("vstatkit"), **settings}
    current = json.loads(json.dumps(full, default=to_json))
    if not (directory / MANIFEST).exists():
        text = json.dumps(current, indent=1)
        write_file(directory / MANIFEST, lambda file: file.write(text.encode()))
        return
    changed = _changes(recorded_settings(directory), current, hashed, note)
    if changed:
        raise CheckpointError(
            f"the checkpoints in {directory} were made with other settings: "
            f"{'; '.join(changed)}. Choose another directory, or remove this one "
            "to start again."
        )


def recorded_settings(directory: Path) -> dict[str, Any]:
    """Read the settings of a directory; empty if none are recorded."""
    path = directory / MANIFEST
    if not path.exists():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        obstacle = f"it holds a {type(manifest).__name__}"
    except ValueError as error:
        manifest, obstacle = None, str(error)
    if isinstance(manifest, dict):
        return manifest
    raise CheckpointError(
        f"the settings of the checkpoints, {path}, cannot be read: {obstacle}. The "
        "other files in this directory cannot be used without them: choose another "
        "directory, or remove this one to start again."
    )


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a name of this process, then move it into place."""
    write_whole(path, write, temporary=own_name(path))


def own_name(path: Path) -> Path:
    """Return the name of a file while this process writes it."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _changes(
    recorded: Mapping[str, Any],
    current: Mapping[str, Any],
    hashed: Mapping[str, str],
    note: str,
) -> list[str]:
    """Describe changed settings, without those that follow from other changes."""
    keys = [
        key for key in {**current, **recorded} if recorded.get(key) != current.get(key)
    ]
    if "seed" in keys:
        # Query points may be drawn from the seed.
        keys = ["seed", *(key for key in keys if key not in ("seed", "at"))]
    plain = [key for key in keys if key not in hashed]
    if plain or not keys:
        return [_describe_change(key, recorded, current) for key in plain]
    first = next(key for key in hashed if key in keys)
    if first in recorded:
        return [f"{hashed[first]} are not the same as then{note}"]
    return [f"{hashed[first]} were not recorded"]


def _describe_change(
    key: str, recorded: Mapping[str, Any], current: Mapping[str, Any]
) -> str:
    was, now = (
        repr(settings[key]) if key in settings else "not recorded"
        for settings in (recorded, current)
    )
    pairs = enumerate(zip(was, now, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(was), len(now)))
    return f"{key} (was {_excerpt(was, same)}, now {_excerpt(now, same)})"


def _excerpt(text: str, same: int) -> str:
    """Shorten a long text to the part around its first difference from another."""
    start = max(0, min(same - SHOWN // 2, len(text) - SHOWN))
    part = text[start : start + SHOWN]
    return f"{'...' * (start > 0)}{part}{'...' * (start + SHOWN < len(text))}"


# Arrays of the sums of out-of-bag predictions.
OOB = {f"oob_{field.name}": field.name for field in fields(OutOfBag)}

Read = TypeVar("Read")


@dataclass(frozen=True)
class Sums:
    """Complete learners `start` to `stop`, and sums of their out-of-bag predictions."""

    start: int
    stop: int
    asked: int  # end of the range that the fit was to grow
    oob: OutOfBag | None


def range_files(directory: Path, kind: str) -> dict[tuple[int, int], Path]:
    """List the files of learners or repetitions by their ranges [start, stop)."""
    return _numbered_files(directory, rf"{kind}-(\d{{8,}})-(\d+)\.npz")


def sums_files(directory: Path) -> dict[int, Path]:
    """List the files of sums by their first learner."""
    files = _numbered_files(directory, r"sums-(\d+)\.npz")
    return {start: path for (start,), path in files.items()}


def _numbered_files(directory: Path, name: str) -> dict[Any, Path]:
    matches = [
        (re.fullmatch(name, path.name), path) for path in directory.glob("*.npz")
    ]
    files = {tuple(map(int, m.groups())): path for m, path in matches if m}
    return dict(sorted(files.items()))


def write_learners(
    directory: Path, task: Task, start: int, parts: list[Evaluation]
) -> None:
    """Write consecutive learners from `start` on; values only without a codec."""
    values = np.concatenate([part.values for part in parts])
    learners = [learner for part in parts for learner in part.learners]
    stop = start + len(values)
    codec = codec_of(task.kernel) if learners else None
    document: dict[str, Any] = {"start": start, "stop": stop, "kind": None}
    arrays: Arrays = {"values": values}
    if codec is not None:
        fields, stacked = codec.pack(task.kernel, learners)
        document |= {"kind": codec.name, **fields}
        arrays |= stacked
    _write_part(directory / f"learners-{start:08d}-{stop}.npz", document, arrays)


def read_learners(path: Path, task: Task) -> Evaluation | None:
    """Read a file of learners; None if learners are to be kept and are not in it.

    Learners without a codec are refitted when they are needed.
    """
    codec = codec_of(task.kernel) if task.keep else None
    names = ("values", *(() if codec is None else codec.arrays))

    def unpack(document: Any, arrays: Arrays) -> Evaluation | None:
        start, stop = take_size(document, "start", 0), take_size(document, "stop", 1)
        check(path.name == f"learners-{start:08d}-{stop}.npz", "it was renamed.")
        kind = take(document, "kind", str, type(None))
        values = take_floats(arrays, "values", 2)
        check(len(values) == stop - start, "values and learners differ in number.")
        learners: list[Any] = []
        if task.keep and codec is None:
            learners = [LazyLearner(task, number) for number in range(start, stop)]
        if codec is None:
            return Evaluation(values, learners, None)
        if kind is None:
            return None
        check(kind == codec.name, "its learners are of another kind.")
        check_fields(document, ("start", "stop", "kind", *codec.fields), "the document")
        p = task.kernel.n_features if isinstance(task.kernel, PredictiveModel) else 0
        _, learners = codec.unpack(document, arrays, stop - start, p)
        return Evaluation(values, learners, None)

    return _read_part(path, names, unpack, "its learners are then refitted")


def write_sums(directory: Path, sums: Sums) -> None:
    """Write the sums of a range of learners, and replace an old file."""
    document = {"start": sums.start, "stop": sums.stop, "asked": sums.asked}
    arrays = {name: getattr(sums.oob, field, None) for name, field in OOB.items()}
    present = {name: array for name, array in arrays.items() if array is not None}
    _write_part(directory / f"sums-{sums.start:08d}.npz", document, present)


def read_sums(path: Path) -> Sums:
    """Read the sums of a range of learners."""

    def unpack(document: Any, arrays: Arrays) -> Sums:
        check_fields(document, ("start", "stop", "asked"), "the document")
        start = take_size(document, "start", 0)
        check(path.name == f"sums-{start:08d}.npz", "it was renamed.")
        stop = take_size(document, "stop", start + 1)
        sums = {field: arrays[name] for name, field in OOB.items() if name in arrays}
        oob = OutOfBag(**sums) if sums else None
        return Sums(start, stop, take_size(document, "asked", stop), oob)

    start = path.stem.removeprefix("sums-").lstrip("0") or "0"
    loss = f"the learners from number {start} on are then refitted"
    return _read_part(path, tuple(OOB), unpack, loss)


def _write_part(path: Path, document: Mapping[str, Any], arrays: Arrays) -> None:
    # Compression may take longer than the time between two files.
    write_archive(path, document, arrays, compress=False, temporary=own_name(path))


def _read_part(
    path: Path,
    names: tuple[str, ...],
    unpack: Callable[[Any, Arrays], Read],
    loss: str,
) -> Read:
    """Read a file of a checkpoint; `loss` is the effect of removing it."""
    try:
        return unpack(*read_archive(path, names))
    except Exception as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error} Remove this file; {loss}, "
            "and the others are kept."
        ) from error


SAVE_SECONDS = 5.0  # seconds between two files, and so the most work that a kill loses
SAME = 1e-8  # relative difference of the same values that is allowed between machines
# Settings that are hashes of tables, with their descriptions.
TABLES = {
    "data": "the data",
    "predictors": "the values of the predictors",
    "response": "the values of the response",
    "weights": "the weights",
    "groups": "the groups",
    "points": "the query points",
}


@dataclass(frozen=True)
class Checkpoint:
    """The directory of a checkpoint, and the settings of its fit."""

    directory: Path  # contains the files of one fit only
    settings: dict[str, Any]  # everything that the learners depend on; data as hashes

    @classmethod
    def of(
        cls,
        directory: str | PathLike[str] | None,
        task: Task,
        settings: Mapping[str, Any],
        tables: Mapping[str, Any],
    ) -> "Checkpoint | None":
        """Describe a fit; return None without a directory.

        The design of the task is one of the settings; `tables` are the data by the
        names in `TABLES`.
        """
        if directory is None:
            return None
        drawn = {"design": task.design.name, **asdict(task.design), "oob": task.oob}
        hashes = {name: hash_table(table) for name, table in tables.items()}
        return cls(Path(directory), {**settings, **drawn, **hashes})


def recorded_seed(directory: str | PathLike[str] | None, rng: Seed) -> Seed:
    """Return the recorded seed of a directory, unless another one is given."""
    if directory is None:
        return rng
    seed = recorded_settings(Path(directory)).get("seed")
    return seed if rng is None and type(seed) is int else resolve_seed(rng)


@contextmanager
def open_checkpoint(checkpoint: Checkpoint | None) -> Iterator["LearnerFiles | None"]:
    """Lock a directory and check its settings; yield None without a checkpoint."""
    if checkpoint is None:
        yield None
        return
    with lock_directory(checkpoint.directory):
        settle_settings(checkpoint.directory, checkpoint.settings, hashed=TABLES)
        yield LearnerFiles(checkpoint.directory)


class LearnerFiles:
    """Files of the learners of an ensemble; see `LearnerKeeper`.

    The directory is locked and contains the settings of this fit. Learners whose sums
    were not written, because the process was killed, are removed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        counted = [read_sums(path).stop for path in sums_files(directory).values()]
        for (_, stop), path in range_files(directory, "learners").items():
            if stop > max(counted, default=0):
                path.unlink()

    def stream_learners(
        self, task: Task, start: int, stop: int, grow: Callable[[int], Batches]
    ) -> Batches:
        """Yield learners `start` to `stop`: stored ones, then new ones."""
        known = self._stored_sums(task, start, stop)
        m = 0
        for part in self._read_stored(task, start, known.stop):
            if start == m == 0:  # settings do not show the code of the learners
                first = evaluate(task, 0, 1, progress=False).values[0]
                _check_unchanged(self._directory, "learner", part.values[0], first)
            m = part.values.shape[1]
            yield part
        if known.oob is not None:
            yield Evaluation(np.empty((0, m)), [], known.oob)
        if known.stop < stop:
            yield from self._store_new(task, known, grow)

    def _stored_sums(self, task: Task, start: int, stop: int) -> Sums:
        """Add the stored sums from learner `start` on, over all steps of growth."""
        files, known = sums_files(self._directory), Sums(start, start, stop, None)
        while known.stop < stop and known.stop in files:
            sums = read_sums(files[known.stop])
            if sums.stop > stop:
                raise CheckpointError(
                    f"the checkpoints in {self._directory} hold learners {sums.start} "
                    f"to {sums.stop}, whose sums cannot be split, and this fit needs "
                    f"learners up to {stop} only. Ask for {sums.stop} or more, or "
                    "choose another directory."
                )
            # The last learners of some designs depend on the number of learners.
            same = sums.asked == stop
            obstacle = None if same else task.design.obstacle(sums.stop, stop)
            if obstacle is not None:
                raise CheckpointError(
                    f"the checkpoints in {self._directory} cannot be used: {obstacle} "
                    "Choose another directory."
                )
            known = replace(known, stop=sums.stop, oob=_add_oob(known.oob, sums.oob))
        return known

    def _read_stored(self, task: Task, start: int, stop: int) -> Iterator[Evaluation]:
        """Read learners from their files; refit those whose file was removed."""
        files = range_files(self._directory, "learners")
        while start < stop:
            later = [ends for ends in files if start <= ends[0] < stop]
            first, last = min(later, default=(stop, stop))
            if first > start:
                part, last = None, first
            else:
                part = read_learners(files[first, last], task)
            if part is None:
                part = replace(evaluate(task, start, last, progress=False), oob=None)
                write_learners(self._directory, task, start, [part])
            yield part
            start = last

    def _store_new(
        self, task: Task, known: Sums, grow: Callable[[int], Batches]
    ) -> Batches:
        """Yield new batches, and write them every few seconds and at the end."""
        fresh: list[Evaluation] = []
        sums, written = known, time.monotonic()

        def write() -> None:
            if fresh:
                first = sums.stop - sum(len(part.values) for part in fresh)
                write_learners(self._directory, task, first, fresh)
                write_sums(self._directory, sums)
                fresh.clear()

        with closing(grow(known.stop)) as batches:
            try:
                for part in batches:
                    fresh.append(part)
                    end = sums.stop + len(part.values)
                    sums = replace(sums, stop=end, oob=_add_oob(sums.oob, part.oob))
                    if time.monotonic() - written > SAVE_SECONDS:
                        write()
                        written = time.monotonic()
                    yield part
            finally:
                write()


def _add_oob(sums: OutOfBag | None, more: OutOfBag | None) -> OutOfBag | None:
    return sums + more if sums is not None and more is not None else sums or more


def _check_unchanged(directory: Path, what: str, then: Floats, now: Floats) -> None:
    """Raise an error if the first learner, or repetition, now has other values."""
    if now.shape == then.shape and (
        np.abs(now - then).max() <= SAME * np.abs(then).max()
    ):
        return
    raise CheckpointError(
        f"the checkpoints in {directory} cannot be used: the first {what} now has "
        "other values. The code of the kernel, or a package that it uses, has changed, "
        "or it draws its own random numbers. Choose another directory, or remove this "
        "one to start again."
    )


# Settings of bootstraps that are hashes, with their descriptions.
HASHED = {
    "data": "the training data",
    "groups": "the groups",
    "points": "the query points",
    "learners": "the learners of the fit",
}


@contextmanager
def open_repetitions(
    directory: str | PathLike[str] | None, repeating: RepeatedFit, values: Floats
) -> Iterator["RepetitionFiles | None"]:
    """Lock a directory and check its settings; yield None without a directory."""
    if directory is None:
        yield None
        return
    place, task = Path(directory), repeating.task
    with lock_directory(place):
        settings = {
            "repeats": "bootstrap",
            "seed": repeating.seed,
            "B": repeating.B,
            "design": task.design.name,
            "fit": asdict(task.design),
            "estimates": repeating.n_values,
            "data": _hash_data(task.kernel),
            "groups": hash_table(task.unit_of_row),
            "points": hash_table(task.at),
            "learners": hash_arrays([values]),  # depend on all settings of the fit
        }
        settle_settings(place, settings, hashed=HASHED)
        yield RepetitionFiles(place, repeating.n_values)


def _hash_data(kernel: Any) -> list[str | None]:
    values: list[Any] = []
    if is_dataclass(kernel):
        for field in fields(kernel):
            value = getattr(kernel, field.name)
            values += value if isinstance(value, tuple) else [value]
    kinds = (np.ndarray, pd.DataFrame, pd.Series)
    return [hash_table(table) for table in values if isinstance(table, kinds)]


class RepetitionFiles:
    """Files of repetitions with `n_values` estimates each; see `RepetitionKeeper`."""

    def __init__(self, directory: Path, n_values: int) -> None:
        self._directory, self._n_values = directory, n_values

    def known(self, R: int) -> Floats:
        """Read consecutive repetitions from the first on, at most R."""
        parts, stop = [np.empty((0, self._n_values))], 0
        for (first, last), path in range_files(self._directory, "repetitions").items():
            if first == stop:
                parts.append(self._read(path, first, last))
                stop = last
        return np.concatenate(parts)[:R]

    def save(self, first: int, estimates: Floats) -> None:
        """Write consecutive repetitions from `first` on."""
        last = first + len(estimates)
        path = self._directory / f"repetitions-{first:08d}-{last}.npz"
        _write_part(path, {"first": first, "last": last}, {"estimates": estimates})

    def check_first(self, then: Floats, now: Floats) -> None:
        """Compare the first repetition with a refit."""
        _check_unchanged(self._directory, "repetition", then, now)

    def _read(self, path: Path, first: int, last: int) -> Floats:
        def unpack(document: Any, arrays: Arrays) -> Floats:
            check_fields(document, ("first", "last"), "the document")
            named = take_size(document, "first", 0), take_size(document, "last", 1)
            check(named == (first, last), "it was renamed.")
            estimates = take_floats(arrays, "estimates", 2)
            shape = (last - first, self._n_values)
            check(estimates.shape == shape, "repetitions and estimates differ.")
            return estimates

        loss = f"the repetitions from number {first} on are then repeated"
        return _read_part(path, ("estimates",), unpack, loss)
