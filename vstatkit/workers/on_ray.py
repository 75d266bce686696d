"""Calls on a Ray cluster: what they share is put into its object store once."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from vstatkit.exceptions import WorkerError
from vstatkit.workers.engine import Arguments, Work, perform
from vstatkit.workers.parcels import Parcel, pack, recall


class Ray:
    """Makes calls on a Ray cluster.

    Parameters
    ----------
    options : dict
        Options of Ray's remote functions.
    work : Work
        What to do there.
    """

    def __init__(self, options: dict[str, Any], work: Work) -> None:
        import ray  # noqa: PLC0415 optional

        if not ray.is_initialized():
            ray.init()
        self._ray = ray
        self._work = work
        self._remote = ray.remote(_perform)
        self._remote = self._remote.options(**{"num_cpus": 1, **options})
        whole = work.parcel()
        # In a list, a reference is not resolved anew for each of the calls.
        self._places = [(whole.key, ray.put(whole)), *map(self._part, work.parts())]

    def _part(self, part: Any) -> tuple[str, Any]:
        value, known = part
        place = "ray", self._ray.get_runtime_context().get_job_id()
        if place not in known.places:
            known.places[place] = self._ray.put(pack(value, key=known.key))
        return known.key, known.places[place]

    def room(self) -> int:
        """Count the cores of the cluster."""
        return self._work.room(int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, number: int, given: Arguments) -> Any:
        """Have a call made; Ray makes it again where a worker dies."""
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
                f"workers of the Ray cluster were lost, again and again: {error}"
            ) from error

    def call_off(self, pending: list[Any]) -> None:
        """Cancel the calls that have not ended."""
        with contextlib.suppress(Exception):  # the error that led here counts
            for one in pending:
                self._ray.cancel(one)


def _perform(
    function: Callable[..., Any],
    given: Arguments,
    name: str,
    places: Sequence[tuple[str, Any]],
) -> Parcel:
    import ray  # noqa: PLC0415 optional

    def fetch(key: str, place: Any) -> Parcel:
        return recall(key, lambda: ray.get(place))

    whole, *parts = (fetch(key, place) for key, place in places)
    return perform(function, given, name, whole, *parts)
