"""The paper, reproduced: run experiments and write what they show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vstatkit.studies import bias, table1, table2, transition
from vstatkit.studies import data as sources
from vstatkit.studies.experiment import Experiment, Record
from vstatkit.studies.report import Report
from vstatkit.studies.run import run_experiment
from vstatkit.studies.scale import QUICK

PARTS = ("table1", "table2", "figures", "all")
CHECKPOINTS = "checkpoints"
QUICK_FOLDER = "quick"
QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)


@dataclass(frozen=True)
class Plan:
    """How to run experiments.

    Attributes
    ----------
    out : Path
        Where results go; checkpoints go into its subdirectory `checkpoints`.
    iterations : int or None
        Iterations, instead of each experiment's own number.
    capped : bool
        Whether `iterations` only ever lowers that number.
    seed : int
        Seed of everything.
    n_jobs : int or None
        Threads.
    path : Path or None
        Where `boston.csv` and `retinopathy.arff` are.
    quick : bool
        Run small studies of the same layout.
    progress : bool or None
        Show progress with the time remaining.
    """

    out: Path
    iterations: int | None = None
    capped: bool = False
    seed: int = 1
    n_jobs: int | None = -1
    path: Path | None = None
    quick: bool = False
    progress: bool | None = None

    def run(self, experiment: Experiment, iterations: int) -> Record:
        """Run an experiment, given its own number of iterations."""
        wanted = iterations if self.iterations is None else self.iterations
        return run_experiment(
            experiment,
            min(wanted, iterations) if self.capped else wanted,
            seed=self.seed,
            directory=self.out / CHECKPOINTS / experiment.name,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )


def reproduce(
    part: str,
    out: Path | str,
    *,
    iterations: int | None = None,
    seed: int = 1,
    n_jobs: int | None = -1,
    data: Path | str | None = None,
    quick: bool = False,
    progress: bool | None = None,
) -> Iterator[Report]:
    """Run experiments of the paper, writing and yielding what each one shows.

    Parameters
    ----------
    part : {"table1", "table2", "figures", "all"}
        What to reproduce.
    out : path
        Directory for CSV, Markdown and PNG files. Finished iterations are kept in
        its subdirectory `checkpoints`: a run that was stopped goes on from there,
        and gives the same numbers.
    iterations : int, optional
        Data sets (of Table 1: splits) instead of each experiment's own number: 20
        splits for Table 1, 500 for Table 2 as in print, 300 for the boxes and 1000
        for the variance components; with "figures" and "all", if it is smaller.
    seed : int
        Seed of everything.
    n_jobs : int, optional
        Threads; all cores by default.
    data : path, optional
        Directory with `boston.csv` and `retinopathy.arff`, or one of them; by
        default what the environment variable `VSTATKIT_DATA` names.
    quick : bool
        Run small studies of the same layout, in seconds; their files go into the
        subdirectory `quick`, apart from those of full studies.
    progress : bool, optional
        Show progress with the time remaining; by default on a terminal.

    Yields
    ------
    Report
        After its files are written.
    """
    if part not in PARTS:
        raise ValueError(f"`part` must be one of {', '.join(PARTS)}; got {part!r}.")
    plan = Plan(
        out=Path(out) / QUICK_FOLDER if quick else Path(out),
        iterations=iterations,
        capped=part in ("figures", "all"),
        seed=seed,
        n_jobs=n_jobs,
        path=sources.checked_path(data),
        quick=quick,
        progress=progress,
    )
    for name, makers in MAKERS.items():
        if part in (name, "all"):
            for make in makers:
                report = _noted(make(plan), quick=quick)
                report.write(plan.out)
                yield report


def _noted(report: Report, *, quick: bool) -> Report:
    if not quick:
        return report
    text = f"{QUICK_NOTE}\n\n{report.markdown}"
    return Report(report.name, text, report.tables, report.pictures)


def _table1(plan: Plan) -> Report:
    from vstatkit.studies import table1_report  # noqa: PLC0415 only pictures need it

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
    return table1_report.report(records, missing)


def _table2(plan: Plan) -> Report:
    from vstatkit.studies import table2_report  # noqa: PLC0415 only pictures need it

    study = table2.simulation(plan.seed, QUICK if plan.quick else None)
    return table2_report.report(plan.run(study, table2.ITERATIONS), study)


def _bias(plan: Plan) -> Report:
    from vstatkit.studies import figures_report  # noqa: PLC0415 only pictures need it

    study = bias.simulation(QUICK if plan.quick else None)
    record = plan.run(study, bias.ITERATIONS)
    return figures_report.bias_report(record, study)


def _transition(plan: Plan) -> Report:
    from vstatkit.studies import figures_report  # noqa: PLC0415 only pictures need it

    study = transition.simulation(QUICK if plan.quick else None)
    record = plan.run(study, transition.ITERATIONS)
    return figures_report.transition_report(record, study)


MAKERS: dict[str, tuple[Callable[[Plan], Report], ...]] = {
    "table1": (_table1,),
    "table2": (_table2,),
    "figures": (_bias, _transition),
}
