"""Calls on a Dask cluster: what they share is scattered once, the calls are small."""

import contextlib
import os
import sys
import time
from collections import Counter
from concurrent.futures import CancelledError
from typing import Any

from vstatkit.exceptions import WorkerError
from vstatkit.workers.cancellation import call_off_here
from vstatkit.workers.engine import Arguments, LostError, Work, perform
from vstatkit.workers.parcels import Parcel, pack

ATTEMPTS = 4
"""Times that a call is handed out, if what it needs is lost with the workers."""

WAIT = 300
"""Seconds to wait for a worker, where there is none (yet, or any more)."""

SECONDS_BETWEEN_COUNTS = 1.0
"""Time after which the cores of the cluster are counted again."""

_HERE = {"forked": False}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _HERE.update(forked=True))


def in_dask_worker() -> bool:
    """Say whether this thread runs a task of a Dask worker."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def active_client() -> Any:
    """Find the Dask client of this process; None where there is none in use.

    A forked process has a copy of its parent's client, but not the thread that
    speaks for it.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or _HERE["forked"]:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    usable = client.status == "running" and not client.asynchronous
    return client if usable else None


class Dask:
    """Makes calls on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Connection to the cluster.
    work : Work
        What to do there.
    """

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
        self._room = 0
        self._counted = -SECONDS_BETWEEN_COUNTS

    def room(self) -> int:
        """Count the cores now and then: clusters grow and shrink."""
        now = time.monotonic()
        if now - self._counted >= SECONDS_BETWEEN_COUNTS:
            cores = sum(self._client.ncores().values())
            self._room, self._counted = self._work.room(cores), now
        return self._room

    def submit(self, number: int, given: Arguments) -> Any:
        """Submit a call that refers to what is on the workers."""
        self._attempts[number] += 1
        future = self._client.submit(
            *(perform, self._work.function, given, self._work.name),
            *self._shared(),
            key=f"vstatkit-{self._work.name}-{number}-{self._attempts[number]}",
            pure=False,
        )
        self._numbers[future] = number
        self._completed.add(future)
        return future

    def _shared(self) -> list[Any]:
        """Send what all calls need, where it is not on the workers, or not any more."""
        if _is_lost(self._whole):
            self._whole = self._scatter(self._parcel)
        return [self._whole, *map(self._part, self._work.parts())]

    def _part(self, part: Any) -> Any:
        value, known = part
        place = "dask", self._client.id
        if _is_lost(known.places.get(place)):
            known.places[place] = self._scatter(pack(value, key=known.key))
        return known.places[place]

    def _scatter(self, parcel: Parcel) -> Any:
        for _ in range(ATTEMPTS):
            self._await_workers()
            try:
                return self._client.scatter(parcel, broadcast=True, hash=False)
            except (KeyError, OSError) as error:
                # A worker that was there when the sending began is gone; the
                # scheduler takes a moment to forget it.
                lost = error
                time.sleep(SECONDS_BETWEEN_COUNTS)
        raise WorkerError(
            f"workers of the Dask cluster were lost {ATTEMPTS} times over while data "
            "were sent to them. The cluster's log says why; too little memory is the "
            "most frequent reason."
        ) from lost

    def _await_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError as error:
            raise WorkerError(
                f"the Dask cluster has had no worker for {WAIT} seconds. Start some, "
                "or close the client to work in this process."
            ) from error

    def wait(self, pending: list[Any]) -> Any:
        """Wait until a call has ended."""
        return next(self._completed)

    def take(self, handle: Any) -> Any:
        """Take an answer; what was lost with its worker is to be asked for again."""
        number = self._numbers.pop(handle)
        try:
            return handle.result().take()
        except CancelledError as error:
            if self._attempts[number] >= ATTEMPTS:
                raise WorkerError(
                    f"workers of the Dask cluster were lost {ATTEMPTS} times over, and "
                    "with them what they worked on. The cluster's log says why; too "
                    "little memory is the most frequent reason."
                ) from error
            # The scheduler takes a moment to forget a worker that is gone, and would
            # send what is lost to it again.
            time.sleep(SECONDS_BETWEEN_COUNTS * (self._attempts[number] - 1))
            raise LostError from error
        except self._failures as error:
            raise WorkerError(
                "the same part of the work was under way on several workers when they "
                f"were lost, so Dask gives it up: {error}"
            ) from error

    def call_off(self, pending: list[Any]) -> None:
        """Cancel what waits, and set the flag of what runs."""
        with contextlib.suppress(Exception):  # the error that led here counts
            self._client.cancel(pending)
            self._client.run(call_off_here, self._work.name, wait=False)


def _is_lost(future: Any) -> bool:
    return future is None or future.status in ("cancelled", "lost", "error")
