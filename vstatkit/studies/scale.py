"""Smaller studies of the same layout, to check the machinery in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """How much smaller than the paper's a study is.

    Attributes
    ----------
    units : int
        Divisor of n and k.
    learners : int
        Divisor of B.
    """

    units: int = 1
    learners: int = 1


QUICK = Scale(units=5, learners=10)
