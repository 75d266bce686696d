"""Run calls side by side, and leave none of them running when the work is called off.

Only the main thread hears Ctrl-C. Every call therefore carries a flag: the thread that
collects the answers sets it when anything goes wrong, compiled code and loops over
learners read it, and nothing goes on before the last of the calls has ended. A thread
that is still in compiled code when the interpreter ends would take the process with it.
"""

import atexit
import contextlib
import threading
from collections.abc import Callable, Generator, Iterable
from contextvars import ContextVar
from typing import Any, TypeVar

import joblib

from vstatkit.native._engine import Stop

PATIENCE = 10.0
"""Seconds to wait for a call that does not read the flag, such as a user's kernel."""

Answer = TypeVar("Answer")

_CURRENT: ContextVar[Any] = ContextVar("_CURRENT", default=None)

_AT_EXIT = Stop()
atexit.register(_AT_EXIT.set)


class CalledOffError(RuntimeError):
    """Ends a call whose answer nobody waits for any more."""


def current_stop() -> Any:
    """Flag that the running call is to read; None where nobody could set one."""
    flag = _CURRENT.get()
    if flag is None and threading.current_thread() is not threading.main_thread():
        return _AT_EXIT
    return flag


def go_on() -> None:
    """Raise an error if the running call was called off."""
    flag = current_stop()
    if flag is not None and flag.is_set():
        raise CalledOffError("the work was called off.")


def in_parallel(
    function: Callable[..., Answer],
    arguments: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    ordered: bool = True,
) -> Generator[Answer, None, None]:
    """Call a function with each tuple of arguments and yield the answers.

    Close the iterator, or read it to its end: then no call is left running, nor after
    an error.

    Parameters
    ----------
    function : callable
        What to call.
    arguments : iterable of tuple
        Its arguments.
    n_jobs : int or None
        Workers, as joblib counts them; the active `joblib.parallel_config` decides on
        the backend (threads by default).
    ordered : bool
        Answers in the order of the arguments, or as they come.
    """
    crew = _Crew()
    run = joblib.Parallel(
        n_jobs=n_jobs,
        prefer="threads",
        return_as="generator" if ordered else "generator_unordered",
    )
    answers: Any = iter(())
    try:
        answers = run(joblib.delayed(crew.call)(function, given) for given in arguments)
        for answer in answers:  # noqa: UP028 what ends this must not close joblib yet
            yield answer
    except BaseException:
        crew.call_off()
        if hasattr(answers, "throw"):
            # Closed instead, joblib would warn of answers that nobody has read.
            with contextlib.suppress(CalledOffError):
                answers.throw(CalledOffError())
        raise


class _Crew:
    """Counts the calls that are under way in this process, and calls them off."""

    def __init__(self) -> None:
        self.stop = Stop(current_stop())
        self.under_way = 0
        self.change = threading.Condition()

    def __reduce__(self) -> tuple[type["_Crew"], tuple[()]]:
        return _Crew, ()  # another process hears Ctrl-C itself

    def call(
        self, function: Callable[..., Answer], arguments: tuple[Any, ...]
    ) -> Answer:
        with self.change:
            self.under_way += 1
        before = _CURRENT.set(self.stop)
        try:
            go_on()
            return function(*arguments)
        finally:
            _CURRENT.reset(before)
            with self.change:
                self.under_way -= 1
                self.change.notify_all()

    def call_off(self) -> None:
        self.stop.set()
        with self.change:
            self.change.wait_for(lambda: self.under_way == 0, PATIENCE)
