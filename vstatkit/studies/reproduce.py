"""The paper and the validity study: run experiments, write what they show."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vstatkit.exceptions import VstatkitWarning
from vstatkit.studies import bias, table1, table2, transition, validity, validity_peers
from vstatkit.studies import data as sources
from vstatkit.studies.experiment import Experiment, Record
from vstatkit.studies.laws import LAWS, chosen_laws
from vstatkit.studies.report import Report
from vstatkit.studies.run import run_experiment
from vstatkit.studies.scale import QUICK

PARTS = ("table1", "table2", "figures", "all", "validity")
CHECKPOINTS = "checkpoints"
QUICK_FOLDER = "quick"
QUICK_NOTE = (
    "*Quick: data sets, subsamples and ensembles are a fifth to a tenth of the "
    "paper's. This checks the machinery, not the paper.*"
)
QUICK_VALIDITY = (
    "*Quick: a few trees where there should be thousands. This checks the machinery, "
    "not the intervals.*"
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
    laws, settings : sequence of str or None
        Laws and settings of the validity study; all of them by default.
    """

    out: Path
    iterations: int | None = None
    capped: bool = False
    seed: int = 1
    n_jobs: int | None = -1
    path: Path | None = None
    quick: bool = False
    progress: bool | None = None
    laws: Sequence[str] | None = None
    settings: Sequence[str] | None = None

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
    laws: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
) -> Iterator[Report]:
    """Run experiments, writing and yielding what each one shows.

    Parameters
    ----------
    part : {"table1", "table2", "figures", "all", "validity"}
        What to reproduce; "all" is all of the paper, and "validity" the study of
        standard errors on laws of our own.
    out : path
        Directory for CSV, Markdown and PNG files. Finished iterations are kept in
        its subdirectory `checkpoints`: a run that was stopped goes on from there,
        and gives the same numbers.
    iterations : int, optional
        Data sets (of Table 1: splits) instead of each experiment's own number: 20
        splits for Table 1, 500 for Table 2 as in print, 300 for the boxes and 1000
        for the variance components, 500 for the validity study; with "figures" and
        "all", if it is smaller.
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
    laws : sequence of str, optional
        Laws of the validity study, of `studies.laws.LAWS`; all of them by default.
    settings : sequence of str, optional
        Settings of the validity study, of "fit", "estimators", "half", "whole" and
        "B500"; "seeds" for the Monte Carlo error, and "peers" for other packages.
        All of them by default, "peers" not where `quick` is.

    Yields
    ------
    Report
        After its files are written.
    """
    if part not in PARTS:
        raise ValueError(f"`part` must be one of {', '.join(PARTS)}; got {part!r}.")
    if part != "validity" and (laws is not None or settings is not None):
        raise ValueError(
            f"`laws` and `settings` are for the part 'validity' alone; got {part!r}."
        )
    plan = Plan(
        out=Path(out) / QUICK_FOLDER if quick else Path(out),
        iterations=iterations,
        capped=part in ("figures", "all"),
        seed=seed,
        n_jobs=n_jobs,
        path=sources.checked_path(data),
        quick=quick,
        progress=progress,
        laws=laws,
        settings=settings,
    )
    for name, makers in MAKERS.items():
        if part == name or (part == "all" and name != "validity"):
            for make in makers:
                report = _noted(make(plan), quick=quick)
                report.write(plan.out)
                yield report


def _noted(report: Report, *, quick: bool) -> Report:
    if not quick:
        return report
    note = QUICK_VALIDITY if report.name == "validity" else QUICK_NOTE
    text = f"{note}\n\n{report.markdown}"
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


def _validity(plan: Plan) -> Report:
    from vstatkit.studies import validity_metrics as metrics  # noqa: PLC0415 with it
    from vstatkit.studies import validity_report  # noqa: PLC0415 only pictures need it

    extras = validity.EXTRAS[:1] if plan.quick else validity.EXTRAS
    wanted = [*validity.SETTINGS, *extras] if plan.settings is None else plan.settings
    validity.check_settings(wanted)
    with warnings.catch_warnings():
        # An ensemble that is too small is what is studied.
        warnings.simplefilter("ignore", VstatkitWarning)
        records = _law_records(plan, wanted)
        seeds = _seed_records(plan) if "seeds" in wanted else {}
    there, absent = validity_peers.installed() if "peers" in wanted else ([], [])
    peers = _peer_records(plan, there)
    return validity_report.report(
        validity_report.Findings(
            metrics.point_frame(records),
            metrics.law_frame(records),
            metrics.seeds_frame(seeds) if seeds else None,
            metrics.peer_frame(peers) if peers else None,
            absent,
        )
    )


def _law_records(plan: Plan, wanted: Sequence[str]) -> dict[tuple[str, str], Record]:
    """Run every law in one setting after the other, the defaults first."""
    laws = chosen_laws(plan.laws)
    return {
        (setting.name, law.name): plan.run(
            validity.Validity(law, setting, plan.quick), validity.ITERATIONS
        )
        for setting in validity.SETTINGS.values()
        if setting.name in wanted
        for law in laws
        if setting.applies(law)
    }


def _seed_records(plan: Plan) -> dict[tuple[str, str], Record]:
    """Run the study of the Monte Carlo error on those of its laws that are wanted."""
    capped = replace(plan, capped=True)
    names = [law.name for law in chosen_laws(plan.laws)]
    return {
        (str(B), law): capped.run(
            validity.Seeds(LAWS[law], B, plan.quick), validity.SEEDS
        )
        for B in validity.MC_SIZES
        for law in validity.MC_LAWS
        if law in names
    }


def _peer_records(plan: Plan, there: Sequence[str]) -> dict[tuple[str, str], Record]:
    """Run other packages, on a block of data sets at a time."""
    size = {"trees": 100, "block": 2} if plan.quick else {}
    found = {}
    for name in there:
        for law in chosen_laws(plan.laws):
            if validity_peers.applies(name, law):
                peer = validity_peers.Peer(name, law, **size)
                wanted = plan.iterations or validity_peers.ITERATIONS
                data_sets = min(wanted, validity_peers.ITERATIONS)
                blocks = max(2, -(-data_sets // peer.block))
                record = replace(plan, iterations=blocks).run(peer, blocks)
                found[name, law.name] = validity_peers.one_by_one(record)
    return found


MAKERS: dict[str, tuple[Callable[[Plan], Report], ...]] = {
    "table1": (_table1,),
    "table2": (_table2,),
    "figures": (_bias, _transition),
    "validity": (_validity,),
}
