"""Registry of studies, and `reproduce`, which runs them and writes their reports."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from vstatkit.studies.experiment import Experiment, Record, run_experiment
from vstatkit.studies.report import Report

DATA_VARIABLE = "VSTATKIT_DATA"  # environment variable that names the data of Table 1
CHECKPOINTS = "checkpoints"
QUICK_FOLDER = "quick"


@dataclass(frozen=True)
class Plan:
    """How to run experiments."""

    out: Path  # directory for results; checkpoints go into a subdirectory
    # Number of iterations that replaces each experiment's own
    iterations: int | None = None
    capped: bool = False  # whether `iterations` can only lower that number
    seed: int = 1  # seed of all random streams
    n_jobs: int | None = -1  # number of threads
    path: Path | None = None  # directory of `boston.csv` and `retinopathy.arff`
    quick: bool = False  # run small studies of the same layout
    progress: bool | None = None  # show progress with the time remaining
    # Options of the study that were given
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def run(self, experiment: Experiment, iterations: int) -> Record:
        """Run an experiment, given its default number of iterations."""
        wanted = iterations if self.iterations is None else self.iterations
        return run_experiment(
            experiment,
            min(wanted, iterations) if self.capped else wanted,
            seed=self.seed,
            directory=self.out / CHECKPOINTS / experiment.name,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )


ALL = "all"  # the part that runs every study of the paper

QUICK_NOTE = (
    "*Quick: a small study of the same layout. This checks the machinery, not the "
    "numbers.*"
)

Findings = TypeVar("Findings")


@dataclass(frozen=True)
class Study(Generic[Findings]):
    """A simulation study: its name, how it runs, and how it is reported.

    Attributes
    ----------
    name : str
        Name in the registry.
    description : str
        One line for `vstatkit reproduce --help`.
    iterations : int
        Data sets of a full run.
    run : callable
        Takes a `Plan` and returns the findings. `plan.run(experiment, iterations)`
        runs an experiment with workers, progress and checkpoints.
    report : callable
        Turns the findings into a `Report`.
    unit : str
        What one iteration is.
    part : str
        Name of the study in `vstatkit reproduce`, by default `name`. Studies with
        the same part run one after the other.
    in_all : bool
        Whether `vstatkit reproduce all`, the whole paper, includes it.
    quick_note : str
        First paragraph of the report of a `--quick` run.
    options : dict of str to str
        Names and help texts of the study's own options. Each is a list of names in
        `plan.options`: `--designs a,b` on the command line, `designs=["a", "b"]` in
        `reproduce`.
    aliases : dict of str to str
        Alternative names of options, and the option each stands for.
    """

    name: str
    description: str
    iterations: int
    run: Callable[[Plan], Findings]
    report: Callable[[Findings], Report]
    unit: str = "data sets"
    part: str = ""
    in_all: bool = False
    quick_note: str = QUICK_NOTE
    options: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", self.part or self.name)

    def make(self, plan: Plan) -> Report:
        """Run the study and return its report."""
        report = self.report(self.run(plan))
        if not plan.quick:
            return report
        return replace(report, markdown=f"{self.quick_note}\n\n{report.markdown}")


STUDIES: dict[str, Study[Any]] = {}  # studies by name, in the order in which they run


def register(study: Study[Any]) -> Study[Any]:
    """Add a study to those of `reproduce` and `vstatkit reproduce`.

    Parameters
    ----------
    study : Study
        The study. Its name must be new, and must not be "all".

    Returns
    -------
    Study
        The same study.
    """
    if study.name in [ALL, *STUDIES, *parts()] or study.part == ALL:
        raise ValueError(
            f"the name of a study must be new; {study.name!r} (part {study.part!r}) is "
            "taken. Choose another."
        )
    owners = options()
    owners |= {alias: owners[name] for alias, name in _aliases().items()}
    for option in (*study.options, *study.aliases):
        if option in owners:
            raise ValueError(
                f"the option {option!r} belongs to the study {owners[option].name!r}. "
                "Choose another name."
            )
    STUDIES[study.name] = study
    return study


def parts() -> list[str]:
    """List the parts that `reproduce` accepts: the paper's, "all", then the others."""
    paper = [study.part for study in STUDIES.values() if study.in_all]
    others = [study.part for study in STUDIES.values() if not study.in_all]
    return list(dict.fromkeys([*paper, ALL, *others]))


def studies_of(part: str) -> list[Study[Any]]:
    """List the studies of a part, in the order in which they run."""
    if part not in parts():
        raise ValueError(f"`part` must be one of {', '.join(parts())}; got {part!r}.")
    return [
        study
        for study in STUDIES.values()
        if study.part == part or (part == ALL and study.in_all)
    ]


def options() -> dict[str, Study[Any]]:
    """Map the option of every study to that study."""
    return {name: study for study in STUDIES.values() for name in study.options}


def _aliases() -> dict[str, str]:
    """Map the alternative names of options to the options."""
    return {a: name for study in STUDIES.values() for a, name in study.aliases.items()}


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
    **study_options: Sequence[str] | None,
) -> Iterator[Report]:
    """Run studies, write their reports, and yield each report.

    Parameters
    ----------
    part : {"table1", "table2", "figures", "all", "validity"}
        What to reproduce: a table of the paper, its figures, "all" of the paper, or
        "validity", our study of standard errors on 17 simulation designs. Studies
        added by `register` are selected by their own names.
    out : path
        Directory for CSV, Markdown and PNG files. Finished iterations are saved in
        its subdirectory `checkpoints`: an interrupted run resumes from there and
        gives the same numbers.
    iterations : int, optional
        Number of data sets (splits for Table 1). By default 20 splits for Table 1,
        500 data sets for Table 2 as in the paper, 300 for the box plots, 1000 for
        the variance components and 500 for the validity study. A part of several
        studies, such as "figures" and "all", runs at most these numbers.
    seed : int
        Seed of all random streams.
    n_jobs : int, optional
        Number of threads; all cores by default.
    data : path, optional
        Directory with `boston.csv` and `retinopathy.arff`, or one of the two files;
        by default the value of the environment variable `VSTATKIT_DATA`.
    quick : bool
        Run small studies of the same layout, in seconds. Their files go into the
        subdirectory `quick`.
    progress : bool, optional
        Show progress with the time remaining; by default on a terminal.
    **study_options
        Options of the study, each a list of names. The validity study has `designs`
        (alias `laws`), names in `studies.dgps.DGPS`, and `settings`, some of "fit",
        "estimators", "half", "whole" and "B500", with "seeds" for the Monte Carlo
        error and "peers" for other packages. Both default to everything, except
        that quick runs omit "peers".

    Yields
    ------
    Report
        After its files are written.
    """
    studies = studies_of(part)
    plan = Plan(
        out=Path(out) / QUICK_FOLDER if quick else Path(out),
        iterations=iterations,
        capped=len(studies) > 1,
        seed=seed,
        n_jobs=n_jobs,
        path=resolve_data_path(data),
        quick=quick,
        progress=progress,
        options=_resolve_options(study_options, part),
    )
    for study in studies:
        report = study.make(plan)
        report.write(plan.out)
        yield report


def _resolve_options(
    given: Mapping[str, Sequence[str] | None], part: str
) -> dict[str, Sequence[str]]:
    """Replace aliases; raise if an option is unknown or belongs to another part."""
    owners, aliases = options(), _aliases()
    selection: dict[str, Sequence[str]] = {}
    for key, names in given.items():
        if names is None:
            continue
        option = aliases.get(key, key)
        if option not in owners:
            raise TypeError(
                f"no study has the option {key!r}; available options: "
                f"{', '.join(owners) or 'none'}."
            )
        owner = owners[option].part
        if owner != part:
            raise ValueError(f"`{key}` is an option of {owner!r} only; got {part!r}.")
        if option in selection:
            raise ValueError(
                f"give one of {option!r} and its alias, not both; got {key!r} too."
            )
        selection[option] = names
    return selection


def resolve_data_path(given: Path | str | None) -> Path | None:
    """Return the path of the data, by default from the environment; it must exist."""
    path = os.environ.get(DATA_VARIABLE) if given is None else given
    if not path:
        return None
    if not Path(path).exists():
        origin = f"{DATA_VARIABLE} in the environment" if given is None else "`data`"
        raise ValueError(
            f"{origin} must name a directory with boston.csv and retinopathy.arff, or "
            f"one of the two; {path} does not exist."
        )
    return Path(path)
