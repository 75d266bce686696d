"""How the experiments of a study are run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vstatkit.studies.experiment import Experiment, Record
from vstatkit.studies.run import run_experiment

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
