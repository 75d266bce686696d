"""Parallel calls by threads, by other processes, or on a Dask or Ray cluster.

Only the main thread receives Ctrl-C. Every call therefore carries a flag: the thread
that collects the answers sets it when anything goes wrong, compiled code and loops over
learners read it, and the error is raised when the last of the calls has ended. A thread
that is still in compiled code when the interpreter ends would crash the process.

Dask and Ray are optional, and imported only when they are used.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import methodcaller
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import joblib
from joblib.parallel import get_active_backend
from tqdm.auto import tqdm

from vstatkit.exceptions import WorkerError
from vstatkit.native._engine import Stop
from vstatkit.workers.shared_data import Parcel, ParcelFile, pack, recall, sent

Arguments = tuple[Any, ...]
Answer = TypeVar("Answer")

PATIENCE = 10.0  # seconds to wait for a call that does not read the flag

# The crew that the running call belongs to.
_CURRENT: "ContextVar[Crew | None]" = ContextVar("_CURRENT", default=None)

_AT_EXIT = Stop()
atexit.register(_AT_EXIT.set)


class CalledOffError(RuntimeError):
    """Ends a call whose result is no longer needed."""


def current_stop() -> Any:
    """Flag that the running call reads; None if it cannot be set."""
    crew = _CURRENT.get()
    if crew is not None:
        return crew.stop
    main = threading.current_thread() is threading.main_thread()
    return None if main else _AT_EXIT


def others_at_work() -> bool:
    """Whether the running call is one of several at a time."""
    crew = _CURRENT.get()
    return crew is not None and not crew.alone


def go_on() -> None:
    """Raise an error if the running call was called off."""
    flag = current_stop()
    if flag is not None and flag.is_set():
        raise CalledOffError("the work was called off.")


class Crew:
    """Counts the calls that are under way in this process, and calls them off.

    `alone` tells that there is one call at a time.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone and not others_at_work()
        self.stop = Stop(current_stop())
        self.under_way = 0
        self.change = threading.Condition()

    def call(
        self, function: Callable[..., Answer], arguments: tuple[Any, ...]
    ) -> Answer:
        """Call a function that reads this crew's flag."""
        with self.change:
            self.under_way += 1
        before = _CURRENT.set(self)
        try:
            go_on()
            return function(*arguments)
        finally:
            _CURRENT.reset(before)
            with self.change:
                self.under_way -= 1
                self.change.notify_all()

    def call_off(self) -> None:
        """Set the flag, and wait for the calls to end."""
        self.stop.set()
        with self.change:
            self.change.wait_for(lambda: self.under_way == 0, PATIENCE)


# Crews of this process that work for another one, by the name of their work.
_CREWS: "WeakValueDictionary[str, Crew]" = WeakValueDictionary()
_CREWS_LOCK = threading.Lock()


def sequentially(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function whose own joblib calls run one after the other."""
    with joblib.parallel_config("sequential"):
        return function(*arguments)


async def call_off_here(work: str) -> None:
    """Set the flag of the calls that this process makes for another one.

    A coroutine: Dask waits for plain functions, and nobody has to wait for this one.
    """
    crew = _CREWS.get(work)
    if crew is not None:
        crew.stop.set()


# Calls handed out however few workers there are: more of them may be on their way.
MIN_CALLS = 16
CALLS_PER_CORE = 3  # calls handed out for every core, so that none waits for work


@dataclass(frozen=True)
class Work:
    """Calls to make elsewhere."""

    function: Callable[..., Any]  # called with the shared arguments first
    shared: Arguments  # first arguments of all calls
    lasting: tuple[Any, ...]  # objects in `shared` that workers keep for later calls
    # Most calls at a time; None, or below one, for as many as the workers take
    n_jobs: int | None
    # Name of this work among all that the workers do
    name: str = field(default_factory=lambda: uuid4().hex)

    def capacity(self, cores: int) -> int:
        """Return how many calls may be under way on so many cores."""
        capacity = max(MIN_CALLS, CALLS_PER_CORE * cores)
        return capacity if self.n_jobs is None or self.n_jobs < 1 else self.n_jobs

    def parcel(self) -> Parcel:
        """Pack the shared arguments without the lasting objects."""
        records = [(value, sent(value)) for value in self.lasting]
        return pack(self.shared, {id(v): record.key for v, record in records if record})

    def send_lasting(
        self,
        backend: Any,
        send: Callable[[Parcel], Any],
        is_lost: Callable[[Any], bool] = lambda place: place is None,
    ) -> list[tuple[str, Any]]:
        """Send the lasting objects that a backend lacks; list all keys and places."""
        places = []
        for value in self.lasting:
            record = sent(value)
            if record is None:
                continue
            if is_lost(record.places.get(backend)):
                record.places[backend] = send(pack(value, key=record.key))
            places.append((record.key, record.places[backend]))
        return places


def perform(
    function: Callable[..., Any],
    given: Arguments,
    name: str,
    whole: Parcel,
    *parts: Parcel,
) -> Parcel:
    """Make a call in a worker process, and pack the answer.

    The workers are all busy, so joblib calls within the function (those of
    scikit-learn's estimators) run one after the other: neither in further processes
    nor by way of the scheduler.
    """
    arguments = (function, *whole.open(parts), *given)
    with _CREWS_LOCK:
        crew = _CREWS.setdefault(name, Crew())
    return pack(crew.call(sequentially, arguments))


def _fetch_and_perform(
    fetch: Callable[[str, Any], Parcel],
    function: Callable[..., Any],
    given: Arguments,
    name: str,
    places: Sequence[tuple[str, Any]],
) -> Parcel:
    """Make a call with parcels that this process has, or fetches from their places."""
    parcels = (recall(key, partial(fetch, key, place)) for key, place in places)
    return perform(function, given, name, *parcels)


# Calls for each worker, if a backend returns no answer before all calls have ended.
SLICE = 8


def by_threads(
    work: Work, arguments: Iterable[Arguments], *, ordered: bool, elsewhere: bool
) -> Generator[Any, None, None]:
    """Make the calls in threads of this process.

    If joblib's active backend is one of other processes (`elsewhere`), neither these
    calls nor joblib calls within them may go there.
    """
    backend = {"backend": "threading"} if elsewhere else {"prefer": "threads"}
    function, shared = work.function, work.shared
    if elsewhere:
        function, shared = sequentially, (function, *shared)
    run = joblib.Parallel(n_jobs=work.n_jobs, return_as=_kind(ordered), **backend)
    crew = Crew(alone=joblib.effective_n_jobs(run.n_jobs) == 1)
    calls = (
        joblib.delayed(crew.call)(function, (*shared, *given)) for given in arguments
    )
    yield from _iterate(run, calls, call_off=crew.call_off)


def by_processes(
    work: Work, arguments: Iterable[Arguments], *, ordered: bool, generates: bool
) -> Generator[Any, None, None]:
    """Make the calls in processes of this machine, by the active backend of joblib.

    The shared arguments are written to a file, which the processes map into memory.
    `generates` tells whether the backend returns answers before the last call has
    ended.
    """
    whole = ParcelFile(work.parcel())
    files = [(whole.key, whole), *work.send_lasting("file", ParcelFile)]
    places = [(key, file.path) for key, file in files]
    perform_call = joblib.delayed(_fetch_and_perform)
    calls = (
        perform_call(Parcel.read, work.function, given, work.name, places)
        for given in arguments
    )
    if generates:
        run = joblib.Parallel(n_jobs=work.n_jobs, return_as=_kind(ordered))
        yield from _iterate(run, calls, unpack=methodcaller("take"))
        return
    with joblib.Parallel(n_jobs=work.n_jobs) as run:
        size = SLICE * joblib.effective_n_jobs(run.n_jobs)
        while some := list(islice(calls, size)):
            for answer in run(some):
                yield answer.take()


def _kind(ordered: bool) -> str:
    return "generator" if ordered else "generator_unordered"


def _iterate(
    run: Any,
    calls: Iterable[Any],
    unpack: Callable[[Any], Any] = lambda answer: answer,
    call_off: Callable[[], None] = lambda: None,
) -> Generator[Any, None, None]:
    """Yield answers of joblib; if anything goes wrong, call off the calls."""
    answers: Any = iter(())
    try:
        answers = run(calls)
        for answer in answers:
            yield unpack(answer)
    except BaseException:
        call_off()
        if hasattr(answers, "throw"):
            # Closed, joblib's iterator would warn of answers that were not read.
            with contextlib.suppress(CalledOffError):
                answers.throw(CalledOffError())
        raise


class LostError(Exception):
    """A call was lost along with its worker; it has to be made again."""


def by_cluster(
    cluster: "Dask | Ray", arguments: Iterable[Arguments], *, ordered: bool
) -> Generator[Any, None, None]:
    """Make the calls on other machines; close the iterator, or read it to its end."""
    waiting = enumerate(arguments)
    pending: dict[Any, tuple[int, Arguments]] = {}
    answers: dict[int, Any] = {}
    following = 0

    def submit(number: int, given: Arguments) -> None:
        pending[cluster.submit(number, given)] = number, given

    def hand_out() -> None:
        free = cluster.capacity() - len(pending) - len(answers)
        for number, given in islice(waiting, max(0, free)):
            submit(number, given)

    try:
        hand_out()
        while pending:
            handle = cluster.wait(list(pending))
            number, given = pending.pop(handle)
            try:
                answers[number] = cluster.take(handle)
            except LostError:
                submit(number, given)
            while answers:
                number = following if ordered else next(iter(answers))
                if number not in answers:
                    break
                following += 1
                yield answers.pop(number)
            hand_out()
    except BaseException:
        cluster.call_off(list(pending))
        raise


# Times that a call is handed out to Dask, if its data are lost with the workers.
ATTEMPTS = 4
WAIT = 300  # seconds to wait for a worker of a Dask cluster that has none
SECONDS_BETWEEN_COUNTS = 1.0  # between two counts of the cores of a Dask cluster
SEE_LOG = (
    "See the cluster's log for the reason; too little memory is the most frequent one."
)

_PROCESS = {"forked": False}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _PROCESS.update(forked=True))


def in_dask_worker() -> bool:
    """Tell whether this thread runs a task of a Dask worker."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.get_worker() is not None
    except ValueError:
        return False


def active_client() -> Any:
    """Return the Dask client of this process, or None.

    A forked process has a copy of its parent's client, but not the thread that
    communicates for it.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or _PROCESS["forked"]:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    usable = client.status == "running" and not client.asynchronous
    return client if usable else None


class Dask:
    """Makes calls on a Dask cluster, to which shared data are scattered once."""

    def __init__(self, client: Any, work: Work) -> None:
        import distributed  # noqa: PLC0415 optional, and slow to import

        self._client = client
        self._work = work
        self._parcel = work.parcel()
        self._completed = distributed.as_completed(loop=client.loop)
        self._failures: Any = distributed.KilledWorker
        self._attempts: Counter[int] = Counter()
        self._numbers: dict[Any, int] = {}
        self._whole: Any = None
        self._capacity = 0
        self._counted = -SECONDS_BETWEEN_COUNTS

    def capacity(self) -> int:
        """Count the cores now and then: clusters grow and shrink."""
        now = time.monotonic()
        if now - self._counted >= SECONDS_BETWEEN_COUNTS:
            cores = sum(self._client.ncores().values())
            self._capacity, self._counted = self._work.capacity(cores), now
        return self._capacity

    def submit(self, number: int, given: Arguments) -> Any:
        """Submit a call that refers to data on the workers."""
        self._attempts[number] += 1
        if _is_lost(self._whole):
            self._whole = self._scatter(self._parcel)
        place = "dask", self._client.id
        parts = self._work.send_lasting(place, self._scatter, _is_lost)
        future = self._client.submit(
            *(perform, self._work.function, given, self._work.name, self._whole),
            *(future for _, future in parts),
            key=f"vstatkit-{self._work.name}-{number}-{self._attempts[number]}",
            pure=False,
        )
        self._numbers[future] = number
        self._completed.add(future)
        return future

    def _scatter(self, parcel: Parcel) -> Any:
        for _ in range(ATTEMPTS):
            try:
                self._client.wait_for_workers(1, timeout=WAIT)
            except TimeoutError as error:
                raise WorkerError(
                    f"the Dask cluster has had no worker for {WAIT} seconds. Start "
                    "some, or close the client to work in this process."
                ) from error
            try:
                return self._client.scatter(parcel, broadcast=True, hash=False)
            except (KeyError, OSError) as error:
                # A worker that was there when the sending began is gone; the
                # scheduler takes a moment to forget it.
                lost = error
                time.sleep(SECONDS_BETWEEN_COUNTS)
        raise WorkerError(
            f"workers of the Dask cluster were lost {ATTEMPTS} times while data were "
            f"sent to them. {SEE_LOG}"
        ) from lost

    def wait(self, pending: list[Any]) -> Any:
        """Wait until a call has ended."""
        return next(self._completed)

    def take(self, handle: Any) -> Any:
        """Take an answer; raise `LostError` if it was lost with its worker."""
        number = self._numbers.pop(handle)
        try:
            return handle.result().take()
        except CancelledError as error:
            if self._attempts[number] >= ATTEMPTS:
                raise WorkerError(
                    f"workers of the Dask cluster were lost {ATTEMPTS} times, and "
                    f"their calls with them. {SEE_LOG}"
                ) from error
            # The scheduler takes a moment to forget a worker that is gone, and would
            # send lost data to it again.
            time.sleep(SECONDS_BETWEEN_COUNTS * (self._attempts[number] - 1))
            raise LostError from error
        except self._failures as error:
            raise WorkerError(
                "the same call was under way on several workers when they were lost, "
                f"so Dask gives it up: {error}"
            ) from error

    def call_off(self, pending: list[Any]) -> None:
        """Cancel the calls that wait, and set the flag of those that run."""
        with contextlib.suppress(Exception):  # the error that led here counts
            self._client.cancel(pending)
            self._client.run(call_off_here, self._work.name, wait=False)


def _is_lost(future: Any) -> bool:
    return future is None or future.status in ("cancelled", "lost", "error")


class Ray:
    """Makes calls on a Ray cluster; shared data are put into its object store once."""

    def __init__(self, options: dict[str, Any], work: Work) -> None:
        import ray  # noqa: PLC0415 optional

        if not ray.is_initialized():
            ray.init()
        self._ray = ray
        self._work = work
        self._remote = ray.remote(_perform_on_ray)
        self._remote = self._remote.options(**{"num_cpus": 1, **options})
        whole, place = work.parcel(), ("ray", ray.get_runtime_context().get_job_id())
        # In a list, a reference is not resolved anew for each of the calls.
        self._places = [(whole.key, ray.put(whole))]
        self._places += work.send_lasting(place, ray.put)

    def capacity(self) -> int:
        """Count the cores of the cluster."""
        return self._work.capacity(int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, number: int, given: Arguments) -> Any:
        """Submit a call; Ray repeats it if a worker dies."""
        work = self._work
        return self._remote.remote(work.function, given, work.name, self._places)

    def wait(self, pending: list[Any]) -> Any:
        """Wait until a call has ended."""
        ended, _ = self._ray.wait(pending, num_returns=1)
        return ended[0]

    def take(self, handle: Any) -> Any:
        """Take an answer."""
        try:
            return self._ray.get(handle).take()
        except self._ray.exceptions.RayTaskError as error:
            raise getattr(error, "cause", error) from error
        except self._ray.exceptions.RayError as error:
            raise WorkerError(
                f"workers of the Ray cluster were lost repeatedly: {error}"
            ) from error

    def call_off(self, pending: list[Any]) -> None:
        """Cancel the calls that have not ended."""
        with contextlib.suppress(Exception):  # the error that led here counts
            for handle in pending:
                self._ray.cancel(handle)


def _perform_on_ray(*call: Any) -> Parcel:
    import ray  # noqa: PLC0415 optional

    return _fetch_and_perform(lambda _, place: ray.get(place), *call)


def in_parallel(
    function: Callable[..., Answer],
    arguments: Iterable[Arguments],
    *,
    n_jobs: int | None,
    ordered: bool = True,
    shared: Arguments = (),
    lasting: tuple[Any, ...] = (),
    here: bool = False,
    short: bool = False,
) -> Generator[Answer, None, None]:
    """Call a function with each tuple of arguments and yield the answers.

    Close the iterator, or read it to its end: then no call is left running, nor after
    an error. Calls run in threads, unless `joblib.parallel_config` names a backend or
    a Dask client is active; joblib calls within them run one after the other.

    The `shared` arguments come first in all calls, and are sent once to workers in
    other processes. Objects within them that later calls will share too are `lasting`:
    they stay with the workers as long as they live here, and must not change in that
    time. `n_jobs` counts workers as joblib does; on a cluster None and numbers below
    one mean all of it, and one means this process, whatever is active. Answers come in
    the order of the arguments if they are `ordered`. Calls are made `here`, in threads
    of this process, if shared data cannot be sent. `short` calls take less time in one
    thread than several threads need to begin.
    """
    backend, most = _active_backend(n_jobs)
    work = Work(function, shared, lasting, n_jobs)
    elsewhere = not (backend is None or _shares_memory(backend))
    stays = here or most == 1 or in_dask_worker()  # its cluster is busy with such calls
    if not stays and (backend is None or elsewhere):
        cluster = _find_cluster(backend, replace(work, n_jobs=most))
        if cluster is not None:
            return by_cluster(cluster, arguments, ordered=ordered)
    if stays or not elsewhere:
        work = replace(work, n_jobs=1) if short else work
        return by_threads(work, arguments, ordered=ordered, elsewhere=elsewhere)
    generates = bool(backend.supports_return_generator)
    return by_processes(work, arguments, ordered=ordered, generates=generates)


def one_at_a_time(n_jobs: int | None, *, here: bool = False) -> bool:
    """Tell whether `in_parallel` makes one call after the other, in this process."""
    backend, most = _active_backend(n_jobs)
    if most == 1 or in_dask_worker():
        return True
    threads = not active_client() if backend is None else _shares_memory(backend)
    return (here or threads) and joblib.effective_n_jobs(most) == 1


def _find_cluster(backend: Any, work: Work) -> Dask | Ray | None:
    client = active_client() if backend is None else getattr(backend, "client", None)
    if client is not None:
        return Dask(client, work)
    if type(backend).__name__ == "RayBackend":
        return Ray(getattr(backend, "ray_remote_args", None) or {}, work)
    return None


def _active_backend(n_jobs: int | None) -> tuple[Any, int | None]:
    """Return the backend that `joblib.parallel_config` names, if any, and `n_jobs`.

    Without one joblib follows the caller's preference, so we compare two.
    """
    backend, _ = get_active_backend(prefer="threads")
    other, configured = get_active_backend(prefer="processes")
    named = backend if type(backend) is type(other) else None
    return named, configured if n_jobs is None else n_jobs


def _shares_memory(backend: Any) -> bool:
    return bool(getattr(backend, "supports_sharedmem", False))


PROGRESS_DELAY = 1.0  # seconds of work after which a progress bar appears


def progress_bar(progress: bool | None, **options: Any) -> Any:
    """Make a progress bar of tqdm; by default for work over a second on a terminal."""
    return tqdm(
        delay=0 if progress else PROGRESS_DELAY,
        disable=None if progress is None else not progress,
        leave=False,
        **options,
    )
