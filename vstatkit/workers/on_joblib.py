"""Calls by joblib: threads of this process, or other processes of this machine."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import joblib

from vstatkit.workers.cancellation import CalledOffError, Crew, sequentially
from vstatkit.workers.engine import Arguments, Work, perform
from vstatkit.workers.parcels import Parcel, ParcelFile, pack, recall

SLICE = 8
"""Calls for each worker, where a backend has nothing to show before all have ended."""


def by_threads(
    work: Work, arguments: Iterable[Arguments], *, ordered: bool, elsewhere: bool
) -> Generator[Any, None, None]:
    """Make the calls in threads of this process.

    Parameters
    ----------
    work : Work
        What to do.
    arguments : iterable of tuple
        What each call is given.
    ordered : bool
        Answers in the order of the arguments, or as they come.
    elsewhere : bool
        Whether joblib's active backend is one of other processes: neither these calls
        nor joblib calls within them may go there.
    """
    chosen = {"backend": "threading"} if elsewhere else {"prefer": "threads"}
    function, shared = work.function, work.shared
    if elsewhere:
        function, shared = sequentially, (function, *shared)
    run = joblib.Parallel(n_jobs=work.n_jobs, return_as=_kind(ordered), **chosen)
    crew = Crew(alone=joblib.effective_n_jobs(run.n_jobs) == 1)
    calls = (
        joblib.delayed(crew.call)(function, (*shared, *given)) for given in arguments
    )
    answers: Any = iter(())
    try:
        answers = run(calls)
        for answer in answers:  # noqa: UP028 what ends this must not close joblib yet
            yield answer
    except BaseException:
        crew.call_off()
        _end(answers)
        raise


def by_processes(
    work: Work, arguments: Iterable[Arguments], *, ordered: bool, generates: bool
) -> Generator[Any, None, None]:
    """Make the calls in processes of this machine, by the active backend of joblib.

    What the calls share is written to a file, which the processes map into memory.

    Parameters
    ----------
    work : Work
        What to do.
    arguments : iterable of tuple
        What each call is given.
    ordered : bool
        Answers in the order of the arguments, or as they come.
    generates : bool
        Whether the backend shows answers before the last call has ended.
    """
    files = [ParcelFile(work.parcel()), *(_part(*part) for part in work.parts())]
    places = [(file.key, file.path) for file in files]
    calls = (
        joblib.delayed(_perform)(work.function, given, work.name, places)
        for given in arguments
    )
    if not generates:
        for answer in _by_slices(joblib.Parallel(n_jobs=work.n_jobs), calls):
            yield answer.take()
        return
    answers: Any = iter(())
    try:
        answers = joblib.Parallel(n_jobs=work.n_jobs, return_as=_kind(ordered))(calls)
        for answer in answers:
            yield answer.take()
    except BaseException:
        _end(answers)
        raise


def _by_slices(run: Any, calls: Iterable[Any]) -> Generator[Any, None, None]:
    with run:
        size = SLICE * joblib.effective_n_jobs(run.n_jobs)
        waiting = iter(calls)
        while chosen := list(islice(waiting, size)):
            yield from run(chosen)


def _kind(ordered: bool) -> str:
    return "generator" if ordered else "generator_unordered"


def _end(answers: Any) -> None:
    """End joblib's iterator; closed, it would warn of answers that nobody has read."""
    if hasattr(answers, "throw"):
        with contextlib.suppress(CalledOffError):
            answers.throw(CalledOffError())


def _part(value: Any, known: Any) -> ParcelFile:
    if "file" not in known.places:
        known.places["file"] = ParcelFile(pack(value, key=known.key))
    file: ParcelFile = known.places["file"]
    return file


def _perform(
    function: Callable[..., Any],
    given: Arguments,
    name: str,
    places: Sequence[tuple[str, Path]],
) -> Parcel:
    def fetch(key: str, path: Path) -> Parcel:
        return recall(key, lambda: Parcel.read(key, path))

    whole, *parts = (fetch(key, path) for key, path in places)
    return perform(function, given, name, whole, *parts)
