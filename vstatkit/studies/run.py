"""Run the iterations of an experiment: workers, progress, checkpoints."""

import sys
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from vstatkit.storage.directory import locked
from vstatkit.studies.checkpoint import Checkpoints, stack
from vstatkit.studies.experiment import Experiment, Record, check_seed
from vstatkit.workers import in_parallel

SAVE_SECONDS = 5.0
"""Finished work that a kill may cost at most, in seconds."""


def run_experiment(
    experiment: Experiment,
    iterations: int,
    *,
    seed: int,
    directory: Path | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Record:
    """Run the iterations that are not finished yet, and return all of them.

    The numbers depend on (seed, experiment, iteration) alone: not on `n_jobs`, on
    the order, or on how often the run was interrupted.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    iterations : int
        Number of iterations.
    seed : int
        Seed of the study.
    directory : Path, optional
        Where finished iterations are kept; nowhere by default. One process at a time
        can use it.
    n_jobs : int, optional
        Workers, as joblib counts them.
    progress : bool, optional
        Show progress with the time remaining; by default on a terminal.

    Returns
    -------
    dict of ndarray
        Arrays with iterations as their first axis.
    """
    iterations, seed = check_iterations(iterations), check_seed(seed)
    if directory is None:
        return _run(experiment, iterations, seed, n_jobs=n_jobs, progress=progress)
    with locked(directory):
        with one_thread():
            kept = Checkpoints(directory, experiment, seed)
        return _run(
            experiment, iterations, seed, kept, n_jobs=n_jobs, progress=progress
        )


def _run(
    experiment: Experiment,
    iterations: int,
    seed: int,
    kept: Checkpoints | None = None,
    *,
    n_jobs: int | None,
    progress: bool | None,
) -> Record:
    records = {} if kept is None else kept.load()
    missing = [one for one in range(iterations) if one not in records]
    fresh: dict[int, Record] = {}
    saved = time.monotonic()
    bar = tqdm(
        desc=experiment.name,
        total=iterations,
        initial=iterations - len(missing),
        unit="it",
        disable=None if progress is None else not progress,
        mininterval=0.5 if sys.stderr.isatty() else 20,
    )
    try:
        with bar, closing(_finished(experiment, missing, seed, n_jobs)) as finished:
            for iteration, record in finished:
                records[iteration] = fresh[iteration] = record
                bar.update()
                if kept is not None and time.monotonic() - saved > SAVE_SECONDS:
                    kept.save(fresh)
                    fresh, saved = {}, time.monotonic()
    finally:
        if kept is not None:
            kept.save(fresh)
    return stack([records[iteration] for iteration in range(iterations)])


def check_iterations(iterations: Any) -> int:
    """Refuse what is no number of data sets, and numbers that are too small."""
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer):
        raise TypeError(f"`iterations` must be a whole number; got {iterations!r}.")
    if iterations < 2:
        raise ValueError(
            f"`iterations` must be at least 2, to see how they vary; got {iterations}."
        )
    return int(iterations)


def one_thread() -> threadpool_limits:
    """Give matrix products one thread each.

    The iterations fill the cores, and sums come out the same to the last bit for
    any number of them.
    """
    return threadpool_limits(limits=1, user_api="blas")


def _finished(
    experiment: Experiment, missing: list[int], seed: int, n_jobs: int | None
) -> Generator[tuple[int, Record], None, None]:
    """Yield iterations as they finish."""
    with one_thread():
        yield from in_parallel(
            _run_one,
            ((iteration,) for iteration in missing),
            n_jobs=n_jobs,
            ordered=False,
            shared=(experiment, seed),
        )


def _run_one(experiment: Experiment, seed: int, iteration: int) -> tuple[int, Record]:
    with one_thread():  # in other processes, too
        return iteration, experiment.run(seed, iteration)
