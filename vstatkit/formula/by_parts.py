"""Do something with every part of the data, side by side."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from vstatkit.workers import CalledOffError, in_parallel, one_at_a_time

Answer = TypeVar("Answer")


def by_parts(
    function: Callable[..., Answer],
    parts: Sequence[tuple[Any, ...]],
    *,
    shared: tuple[Any, ...],
    n_jobs: int | None,
    here: bool = False,
) -> Generator[Answer | None, None, None]:
    """Call a function for every part, and yield the answers in the order of the parts.

    Close the iterator, or read it to its end: then no call is left running.

    Parameters
    ----------
    function : callable
        What to call: `function(*shared, *part)`.
    parts : sequence of tuple
        A part of the data, and what else differs between the calls.
    shared, n_jobs, here
        See `in_parallel`.

    Yields
    ------
    object or None
        None where the caller is to do the part by itself: there is no other to work
        beside it, or the call has failed. What fails for a reason of its own fails
        again, with the message that it has after all that came before; what a worker
        could not do, such as read a file that it does not see, is done all the same.
    """
    if len(parts) == 1 or one_at_a_time(n_jobs, here=here):
        yield from (None for _ in parts)
        return
    answers = in_parallel(
        _tried, parts, n_jobs=n_jobs, shared=(function, *shared), here=here
    )
    with closing(answers):
        yield from answers


def _tried(function: Callable[..., Answer], *arguments: Any) -> Answer | None:
    try:
        return function(*arguments)
    except CalledOffError:
        raise
    except Exception:  # the caller meets it again
        return None
