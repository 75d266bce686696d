"""The studies of the paper: two tables, and the figures by two simulations."""

from vstatkit.studies import bias, table1, table2, transition
from vstatkit.studies import data as sources
from vstatkit.studies.experiment import Record
from vstatkit.studies.registry import Plan, Study, register
from vstatkit.studies.report import Report
from vstatkit.studies.simulation import QUICK, Simulation

QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)

Simulated = tuple[Record, Simulation]
"""What was measured, and the simulation that it comes from."""

Scored = tuple[dict[str, Record], dict[str, str]]
"""Scores by data set, and why other data sets were left out."""


def _run_table1(plan: Plan) -> Scored:
    records: dict[str, Record] = {}
    missing: dict[str, str] = {}
    for name in sources.SOURCES:
        try:
            source = sources.load(name, plan.path)
        except sources.MissingDataError as error:
            missing[name] = str(error)
            continue
        size = {"forests": 2, "trees": 10} if plan.quick else {}
        experiment = table1.Prediction(name, source, quick=plan.quick, **size)
        records[name] = plan.run(experiment, table1.ITERATIONS)
    return records, missing


def _report_table1(found: Scored) -> Report:
    from vstatkit.studies import table1_report  # noqa: PLC0415 only pictures need it

    return table1_report.report(*found)


def _run_table2(plan: Plan) -> Simulated:
    study = table2.simulation(plan.seed, QUICK if plan.quick else None)
    return plan.run(study, table2.ITERATIONS), study


def _report_table2(found: Simulated) -> Report:
    from vstatkit.studies import table2_report  # noqa: PLC0415 only pictures need it

    return table2_report.report(*found)


def _run_bias(plan: Plan) -> Simulated:
    study = bias.simulation(QUICK if plan.quick else None)
    return plan.run(study, bias.ITERATIONS), study


def _report_bias(found: Simulated) -> Report:
    from vstatkit.studies import figures_report  # noqa: PLC0415 only pictures need it

    return figures_report.bias_report(*found)


def _run_transition(plan: Plan) -> Simulated:
    study = transition.simulation(QUICK if plan.quick else None)
    return plan.run(study, transition.ITERATIONS), study


def _report_transition(found: Simulated) -> Report:
    from vstatkit.studies import figures_report  # noqa: PLC0415 only pictures need it

    return figures_report.transition_report(*found)


register(
    Study(
        "table1",
        "how well forests predict, by sampling and subsample size",
        table1.ITERATIONS,
        _run_table1,
        _report_table1,
        unit="splits",
        in_all=True,
        quick_note=QUICK_NOTE,
    )
)
register(
    Study(
        "table2",
        "normality, variance ratio and coverage on MARS data",
        table2.ITERATIONS,
        _run_table2,
        _report_table2,
        in_all=True,
        quick_note=QUICK_NOTE,
    )
)
register(
    Study(
        "bias",
        "the bias of the variance estimators, and the corrections",
        bias.ITERATIONS,
        _run_bias,
        _report_bias,
        part="figures",
        in_all=True,
        quick_note=QUICK_NOTE,
    )
)
register(
    Study(
        "transition",
        "the two parts of the variance as B grows",
        transition.ITERATIONS,
        _run_transition,
        _report_transition,
        part="figures",
        in_all=True,
        quick_note=QUICK_NOTE,
    )
)
