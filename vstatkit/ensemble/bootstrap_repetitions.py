"""Repeat a fit on resampled data, for its bootstrap."""

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.sampling.given import ResampledDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.workers import go_on, in_parallel
from vstatkit.workers.parallel import progress_bar

SAVE_SECONDS = 5.0  # seconds between two files; an interruption loses at most these


class RepetitionKeeper(Protocol):
    """Saves repetitions while others are computed."""

    def known(self, R: int) -> Floats:
        """Read the first repetitions, at most R of them, shape (r, m)."""

    def save(self, first: int, estimates: Floats) -> None:
        """Save consecutive repetitions from number `first` on."""

    def check_first(self, then: Floats, now: Floats) -> None:
        """Check that the first repetition is reproduced."""


@dataclass(frozen=True)
class RepeatedFit:
    """The arguments that all repetitions of a fit share."""

    task: Task  # the task that was evaluated, with its final design
    B: int  # learners of every repetition
    n_values: int  # values, the first ones, that are estimates
    seed: int  # seed of the resampling


def repeat_fit(
    repeating: RepeatedFit,
    R: int,
    *,
    n_jobs: int | None,
    progress: bool | None,
    keeper: RepetitionKeeper | None = None,
) -> Floats:
    """Repeat the estimation on R resampled data sets, shape (R, m).

    Repetition r depends on the seed and r alone, not on `n_jobs`, nor on what the
    `keeper` has of an earlier call. It saves others every few seconds and at the end.
    """
    estimates, done = np.empty((R, repeating.n_values)), 0
    if keeper is not None:
        stored = keeper.known(R)
        done = len(stored)
        estimates[:done] = stored
        if done:
            keeper.check_first(stored[0], _repeat(repeating, 0))
    bar = progress_bar(progress, total=R, initial=done, unit=" fits")
    parts = in_parallel(
        _repeat,
        ((number,) for number in range(done, R)),
        n_jobs=n_jobs,
        shared=(repeating,),
        lasting=(repeating.task.kernel,),
    )
    saved, written = done, time.monotonic()
    with bar, closing(parts):
        try:
            for part in parts:
                estimates[done] = part
                done += 1
                if keeper is not None and time.monotonic() - written > SAVE_SECONDS:
                    keeper.save(saved, estimates[saved:done])
                    saved, written = done, time.monotonic()
                bar.update()
        finally:
            if keeper is not None and done > saved:
                keeper.save(saved, estimates[saved:done])
    return estimates


def _repeat(repeating: RepeatedFit, number: int) -> Floats:
    """Draw units and their subsamples, fit, and average."""
    go_on()
    task = repeating.task
    rng = stream(repeating.seed, number, Purpose.BOOTSTRAP)
    n = task.design.n
    drawn = rng.integers(n, size=n)
    inner = replace(task.design, seed=int(rng.integers(2**63)))
    design = ResampledDesign.of(inner, drawn)
    again = replace(task, design=design, keep=False, oob=False)
    values = evaluate(again, 0, repeating.B, n_jobs=1, progress=False).values
    return ensemble_mean(design, values[:, : repeating.n_values])
