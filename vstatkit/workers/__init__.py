"""Parallel calls in threads, in other processes or on a cluster, and Ctrl-C."""

from vstatkit.workers.cancellation import (
    CalledOffError,
    current_stop,
    go_on,
    others_at_work,
)
from vstatkit.workers.parallel import in_parallel, one_at_a_time

__all__ = [
    "CalledOffError",
    "current_stop",
    "go_on",
    "in_parallel",
    "one_at_a_time",
    "others_at_work",
]
