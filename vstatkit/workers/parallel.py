"""Parallel calls by threads, by other processes, or on a cluster."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend

from vstatkit.workers.backends import (
    Arguments,
    Dask,
    Ray,
    Work,
    active_client,
    by_cluster,
    by_processes,
    by_threads,
    in_dask_worker,
)

Answer = TypeVar("Answer")


def in_parallel(
    function: Callable[..., Answer],
    arguments: Iterable[Arguments],
    *,
    n_jobs: int | None,
    ordered: bool = True,
    shared: Arguments = (),
    lasting: tuple[Any, ...] = (),
    here: bool = False,
) -> Generator[Answer, None, None]:
    """Call a function with each tuple of arguments and yield the answers.

    Close the iterator, or read it to its end: then no call is left running, nor after
    an error. Calls run in threads, unless `joblib.parallel_config` names a backend or
    a Dask client is active; joblib calls within them run one after the other.

    Parameters
    ----------
    function : callable
        Called with the shared arguments first: `function(*shared, *given)`.
    arguments : iterable of tuple
        Arguments that differ between the calls; sent with each of them.
    n_jobs : int or None
        Workers, as joblib counts them; on a cluster None and numbers below one mean
        all of it. One means this process, whatever is active.
    ordered : bool
        Whether answers are in the order of the arguments, or as they come.
    shared : tuple
        First arguments of all calls; sent once to workers in other processes.
    lasting : tuple
        Objects within `shared` that later calls will share too. They stay with the
        workers as long as they live here, and must not change in that time.
    here : bool
        Make the calls in threads of this process whatever is active, because shared
        data cannot be sent.
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
