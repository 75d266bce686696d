"""Simulations: the paper's experiments, and coverage studies of any law."""

from vstatkit.studies.coverage import coverage
from vstatkit.studies.reproduce import reproduce

__all__ = ["coverage", "reproduce"]
