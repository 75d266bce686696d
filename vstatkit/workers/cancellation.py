"""Calls that can be cancelled and leave no thread running.

Only the main thread hears Ctrl-C. Every call therefore carries a flag: the thread that
collects the answers sets it when anything goes wrong, compiled code and loops over
learners read it, and nothing goes on before the last of the calls has ended. A thread
that is still in compiled code when the interpreter ends would take the process with it.
"""

import atexit
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import joblib

from vstatkit.native._engine import Stop

PATIENCE = 10.0  # seconds to wait for a call that does not read the flag

Answer = TypeVar("Answer")

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


def call_for_another(
    work: str, function: Callable[..., Answer], arguments: tuple[Any, ...]
) -> Answer:
    """Call a function in a process that works for another one.

    The workers are all busy, so joblib calls within the function (those of
    scikit-learn's estimators) run one after the other: neither in further processes
    nor by way of the scheduler.
    """
    with _CREWS_LOCK:
        crew = _CREWS.setdefault(work, Crew())
    answer: Answer = crew.call(sequentially, (function, *arguments))
    return answer


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
