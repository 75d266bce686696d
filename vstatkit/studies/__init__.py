"""Simulations: the paper's experiments, and coverage studies of any design."""

from vstatkit.studies import paper, validity_study
from vstatkit.studies.coverage import coverage
from vstatkit.studies.registry import STUDIES, Plan, Study, register
from vstatkit.studies.report import Report
from vstatkit.studies.reproduce import reproduce

__all__ = [
    "STUDIES",
    "Plan",
    "Report",
    "Study",
    "coverage",
    "paper",
    "register",
    "reproduce",
    "validity_study",
]
