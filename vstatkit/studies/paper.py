"""The paper's studies in the order in which they run: two tables and the figures."""

from dataclasses import replace
from typing import Any

from vstatkit.studies import figures, table1, table2
from vstatkit.studies.registry import Study, register

QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)

_STUDIES: tuple[Study[Any], ...] = (
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

for _study in _STUDIES:
    register(replace(_study, in_all=True, quick_note=QUICK_NOTE))
