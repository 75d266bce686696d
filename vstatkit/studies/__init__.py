"""Simulation studies: the paper's experiments, and coverage studies of any design."""

from vstatkit.studies import paper, validity
from vstatkit.studies.coverage import coverage
from vstatkit.studies.registry import STUDIES, Plan, Study, register, reproduce
from vstatkit.studies.report import Report

__all__ = [
    "STUDIES",
    "Plan",
    "Report",
    "Study",
    "coverage",
    "paper",
    "register",
    "reproduce",
    "validity",
]
