"""A whole fit repeated on units that are drawn again."""

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.progress import progress_bar
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.sampling.given import ResampledDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.workers import go_on, in_parallel

SAVE_SECONDS = 5.0
"""Seconds between two files: finished repetitions that a kill costs at most."""


class RepetitionKeeper(Protocol):
    """Keeps repetitions while others are made."""

    def known(self, R: int) -> Floats:
        """Read the first repetitions, at most R of them, shape (r, m)."""

    def save(self, first: int, estimates: Floats) -> None:
        """Keep consecutive repetitions from number `first` on."""

    def check_first(self, then: Floats, now: Floats) -> None:
        """Refuse repetitions that the same fit does not give now."""


@dataclass(frozen=True)
class Repeating:
    """What all repetitions of a fit have in common.

    Attributes
    ----------
    task : Task
        What was evaluated, with the design that was used.
    B : int
        Learners of every repetition.
    n_values : int
        Values, the first ones, that are estimates.
    seed : int
        Seed of the resampling.
    """

    task: Task
    B: int
    n_values: int
    seed: int


def repeat_fit(
    repeating: Repeating,
    R: int,
    *,
    n_jobs: int | None,
    progress: bool | None,
    keeper: RepetitionKeeper | None = None,
) -> Floats:
    """Estimate anew on R resampled data sets, shape (R, m).

    Repetition r depends on the seed and r alone, not on `n_jobs`, nor on what the
    `keeper` has of an earlier call.
    """
    found = np.empty((R, repeating.n_values))
    done = 0
    if keeper is not None:
        kept = keeper.known(R)
        done = len(kept)
        found[:done] = kept
        if done:
            keeper.check_first(kept[0], _repeated(repeating, 0))
    bar = progress_bar(progress, total=R, initial=done, unit=" fits")
    parts = in_parallel(
        _repeated,
        ((number,) for number in range(done, R)),
        n_jobs=n_jobs,
        shared=(repeating,),
        lasting=(repeating.task.kernel,),
    )
    with bar, closing(parts), closing(_saved(parts, done, keeper)) as passing:
        for number, part in enumerate(passing, done):
            found[number] = part
            bar.update()
    return found


def _saved(
    parts: Iterator[Floats], done: int, keeper: RepetitionKeeper | None
) -> Generator[Floats, None, None]:
    """Pass repetitions on, and keep them every few seconds and at the end."""
    fresh: list[Floats] = []
    written = time.monotonic()
    try:
        for part in parts:
            fresh.append(part)
            if keeper is not None and time.monotonic() - written > SAVE_SECONDS:
                keeper.save(done, np.stack(fresh))
                done, written = done + len(fresh), time.monotonic()
                fresh.clear()
            yield part
    finally:
        if keeper is not None and fresh:
            keeper.save(done, np.stack(fresh))


def _repeated(repeating: Repeating, number: int) -> Floats:
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
