"""The registry of studies, and the plan by which they run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from vstatkit.studies.experiment import Experiment, Record, run_experiment
from vstatkit.studies.report import Report

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Plan:
    """How to run experiments.

    Attributes
    ----------
    out : Path
        Where results go; checkpoints go into its subdirectory `checkpoints`.
    iterations : int or None
        Number of iterations that replaces each experiment's own.
    capped : bool
        Whether `iterations` may only lower that number.
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
    options : dict of str to sequence of str
        The study's own options, as far as they were given.
    """

    out: Path
    iterations: int | None = None
    capped: bool = False
    seed: int = 1
    n_jobs: int | None = -1
    path: Path | None = None
    quick: bool = False
    progress: bool | None = None
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

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


ALL = "all"
"""The part that runs every study of the paper."""

QUICK_NOTE = (
    "*Quick: a small study of the same layout. This checks the machinery, not the "
    "numbers.*"
)

Findings = TypeVar("Findings")


@dataclass(frozen=True)
class Study(Generic[Findings]):
    """A study: what it is called, how it runs, and how it reports.

    Attributes
    ----------
    name : str
        Name in the registry.
    description : str
        One line for `vstatkit reproduce --help`.
    iterations : int
        Data sets of a full run.
    run : callable
        Takes a `Plan` and gives the findings. `plan.run(experiment, iterations)`
        runs an experiment with workers, progress and checkpoints.
    report : callable
        Turns the findings into a `Report`.
    unit : str
        What an iteration is.
    part : str
        What `vstatkit reproduce` calls it: its name by default. Studies with the
        same part run one after the other.
    in_all : bool
        Whether `vstatkit reproduce all`, the whole paper, includes it.
    quick_note : str
        First paragraph of a report by `--quick`.
    options : dict of str to str
        Options of its own and their help texts. Each is a list of names, which
        `plan.options` holds: `--laws a,b` on the command line, `laws=["a", "b"]`
        in `reproduce`.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", self.part or self.name)

    def make(self, plan: Plan) -> Report:
        """Run the study and report what it found."""
        found = self.report(self.run(plan))
        if not plan.quick:
            return found
        text = f"{self.quick_note}\n\n{found.markdown}"
        return Report(found.name, text, found.tables, found.pictures)


STUDIES: dict[str, Study[Any]] = {}
"""Studies by name, in the order in which they run."""


def register(study: Study[Any]) -> Study[Any]:
    """Add a study, so that `reproduce` and the command line know it.

    Parameters
    ----------
    study : Study
        What to add. Its name must be new, and must not be "all".

    Returns
    -------
    Study
        The same.
    """
    taken = [ALL, *STUDIES, *parts()]
    if study.name in taken or study.part == ALL:
        raise ValueError(
            f"the name of a study must be new; {study.name!r} (part {study.part!r}) is "
            "taken. Choose another."
        )
    owners = options()
    for option in study.options:
        if option in owners:
            raise ValueError(
                f"the option {option!r} belongs to the study {owners[option].name!r}. "
                "Choose another name."
            )
    STUDIES[study.name] = study
    return study


def parts() -> list[str]:
    """List what `reproduce` can be asked for: the paper, all of it, other studies."""
    paper, others = (
        [one.part for one in STUDIES.values() if one.in_all is wanted]
        for wanted in (True, False)
    )
    return list(dict.fromkeys([*paper, ALL, *others]))


def studies_of(part: str) -> list[Study[Any]]:
    """Find the studies of a part, in the order in which they run."""
    if part not in parts():
        raise ValueError(f"`part` must be one of {', '.join(parts())}; got {part!r}.")
    return [
        study
        for study in STUDIES.values()
        if study.part == part or (part == ALL and study.in_all)
    ]


def options() -> dict[str, Study[Any]]:
    """Map every option that a study has of its own to that study."""
    return {name: study for study in STUDIES.values() for name in study.options}
