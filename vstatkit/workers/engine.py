"""Common base of engines in other processes: distribute, collect, limit."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

from vstatkit.workers.cancellation import call_for_another
from vstatkit.workers.parcels import Parcel, Sent, pack, sent

Handle = TypeVar("Handle")

Arguments = tuple[Any, ...]

AT_LEAST = 16
"""Calls handed out however few workers there are: more of them may be on their way."""

PER_CORE = 3
"""Calls handed out for every core, so that none waits for work."""


class LostError(Exception):
    """A call was lost along with its worker; it has to be made again."""


@dataclass(frozen=True)
class Work:
    """Calls to make elsewhere.

    Attributes
    ----------
    function : callable
        What to call, with the shared arguments first.
    shared : tuple
        First arguments of all calls.
    lasting : tuple
        Objects within `shared` that stay with the workers for later calls.
    n_jobs : int or None
        Most calls at a time; None, or below one, for as many as there is room for.
    name : str
        Name of this work among all that the workers do.
    """

    function: Callable[..., Any]
    shared: Arguments
    lasting: tuple[Any, ...]
    n_jobs: int | None
    name: str = field(default_factory=lambda: uuid4().hex)

    def room(self, cores: int) -> int:
        """Say how many calls may be under way."""
        room = max(AT_LEAST, PER_CORE * cores)
        return room if self.n_jobs is None or self.n_jobs < 1 else self.n_jobs

    def parts(self) -> list[tuple[Any, Sent]]:
        """List the lasting objects, and where they were sent."""
        found = ((value, sent(value)) for value in self.lasting)
        return [(value, known) for value, known in found if known is not None]

    def parcel(self) -> Parcel:
        """Pack what is shared, the lasting objects apart."""
        return pack(self.shared, {id(one): known.key for one, known in self.parts()})


class Engine(Protocol[Handle]):
    """Something that makes calls in other processes."""

    def room(self) -> int:
        """Say how many calls may be under way."""

    def submit(self, number: int, given: Arguments) -> Handle:
        """Have a call made."""

    def wait(self, pending: list[Handle]) -> Handle:
        """Wait until one of the calls has ended."""

    def take(self, handle: Handle) -> Any:
        """Take the answer of a call that has ended, or raise its error."""

    def call_off(self, pending: list[Handle]) -> None:
        """Let the calls that have not ended know that nobody waits for them."""


class Collector(Generic[Handle]):
    """Hands out calls and yields their answers, in order or as they come."""

    def __init__(self, engine: Engine[Handle], *, ordered: bool) -> None:
        self._engine = engine
        self._ordered = ordered
        self._pending: dict[Handle, tuple[int, Arguments]] = {}
        self._answers: dict[int, Any] = {}

    def collect(self, arguments: Iterable[Arguments]) -> Generator[Any, None, None]:
        """Yield the answers; close the iterator, or read it to its end."""
        waiting = enumerate(arguments)
        following = count()
        try:
            self._hand_out(waiting)
            while self._pending:
                self._take_one()
                if not self._ordered:
                    for number in list(self._answers):
                        yield self._answers.pop(number)
                else:
                    following = yield from self._in_order(following)
                self._hand_out(waiting)
        except BaseException:
            self._engine.call_off(list(self._pending))
            raise

    def _in_order(self, following: Any) -> Generator[Any, None, Any]:
        number = next(following)
        while number in self._answers:
            yield self._answers.pop(number)
            number = next(following)
        return count(number)

    def _hand_out(self, waiting: Any) -> None:
        room = self._engine.room()
        while len(self._pending) + len(self._answers) < room:
            number, given = next(waiting, (None, ()))
            if number is None:
                return
            self._pending[self._engine.submit(number, given)] = number, given

    def _take_one(self) -> None:
        handle = self._engine.wait(list(self._pending))
        number, given = self._pending.pop(handle)
        try:
            self._answers[number] = self._engine.take(handle)
        except LostError:
            self._pending[self._engine.submit(number, given)] = number, given


def perform(
    function: Callable[..., Any],
    given: Arguments,
    name: str,
    whole: Parcel,
    *parts: Parcel,
) -> Parcel:
    """Make a call in a worker process, and pack the answer."""
    return pack(call_for_another(name, function, (*whole.open(parts), *given)))
