"""Parallel calls in threads, in other processes or on a cluster, and Ctrl-C."""

from vstatkit.workers.parallel import (
    CalledOffError,
    current_stop,
    go_on,
    in_parallel,
    one_at_a_time,
    others_at_work,
)

__all__ = [
    "CalledOffError",
    "current_stop",
    "go_on",
    "in_parallel",
    "one_at_a_time",
    "others_at_work",
]
