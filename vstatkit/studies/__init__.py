"""Simulation studies: the paper's experiments, and coverage studies of any design."""

from dataclasses import replace
from typing import Any

from vstatkit.studies import figures, table1, table2, validity
from vstatkit.studies.coverage import coverage
from vstatkit.studies.registry import STUDIES, Plan, Study, register, reproduce
from vstatkit.studies.report import Report

__all__ = [
    "STUDIES",
    "Plan",
    "Report",
    "Study",
    "coverage",
    "register",
    "reproduce",
    "validity",
]

_QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)
# The paper's studies, in the order in which they run.
_PAPER: tuple[Study[Any], ...] = (
    Study(
        "table1",
        "how well forests predict, by sampling and subsample size",
        *(table1.ITERATIONS, table1.run, table1.report),
        unit="splits",
    ),
    Study(
        "table2",
        "normality, variance ratio and coverage on MARS data",
        *(table2.ITERATIONS, table2.run, table2.report),
    ),
    Study(
        "bias",
        "the bias of the variance estimators, and the corrections",
        *(figures.BIAS_ITERATIONS, figures.run_bias, figures.report_bias),
        part="figures",
    ),
    Study(
        "transition",
        "the two parts of the variance as B grows",
        *(figures.TRANSITION_ITERATIONS, figures.run_transition),
        figures.report_transition,
        part="figures",
    ),
)

for _study in _PAPER:
    register(replace(_study, in_all=True, quick_note=_QUICK_NOTE))
register(validity.STUDY)
