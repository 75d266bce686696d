"""The paper's studies in the order in which they run: two tables and the figures."""

from collections.abc import Callable
from typing import Any

from vstatkit.studies import figures, table1, table2
from vstatkit.studies.registry import Plan, Study, register
from vstatkit.studies.report import Report

QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)


def _register(
    name: str,
    description: str,
    iterations: int,
    run: Callable[[Plan], tuple[Any, Any]],
    report: Callable[[Any, Any], Report],
    *,
    unit: str = "data sets",
    part: str = "",
) -> None:
    register(
        Study(
            name,
            description,
            iterations,
            run,
            lambda findings: report(*findings),
            unit=unit,
            part=part,
            in_all=True,
            quick_note=QUICK_NOTE,
        )
    )


_register(
    "table1",
    "how well forests predict, by sampling and subsample size",
    table1.ITERATIONS,
    table1.run,
    table1.report,
    unit="splits",
)
_register(
    "table2",
    "normality, variance ratio and coverage on MARS data",
    table2.ITERATIONS,
    table2.run,
    table2.report,
)
_register(
    "bias",
    "the bias of the variance estimators, and the corrections",
    figures.BIAS_ITERATIONS,
    figures.run_bias,
    figures.report_bias,
    part="figures",
)
_register(
    "transition",
    "the two parts of the variance as B grows",
    figures.TRANSITION_ITERATIONS,
    figures.run_transition,
    figures.report_transition,
    part="figures",
)
