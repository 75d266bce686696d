"""Small studies of the same layout, which check the machinery in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """By how much a study is smaller than the paper's.

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
