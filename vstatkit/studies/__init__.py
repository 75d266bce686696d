"""Simulations: the paper's experiments, and coverage studies of any law."""

from vstatkit.studies.coverage import coverage

__all__ = ["coverage"]
