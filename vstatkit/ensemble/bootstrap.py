"""A whole fit repeated on units that are drawn again."""

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from tqdm.auto import tqdm

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import PROGRESS_DELAY, Task, evaluate
from vstatkit.inference.estimate import ensemble_mean
from vstatkit.sampling.resampled import ResampledDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.workers import go_on, in_parallel


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
) -> Floats:
    """Estimate anew on R resampled data sets, shape (R, m).

    Repetition r depends on the seed and r alone, not on `n_jobs`.
    """
    found = np.empty((R, repeating.n_values))
    bar = tqdm(
        total=R,
        unit=" fits",
        delay=0 if progress else PROGRESS_DELAY,
        disable=None if progress is None else not progress,
        leave=False,
    )
    parts = in_parallel(
        _repeated,
        ((number,) for number in range(R)),
        n_jobs=n_jobs,
        shared=(repeating,),
        lasting=(repeating.task.kernel,),
    )
    with bar, closing(parts):
        for number, part in enumerate(parts):
            found[number] = part
            bar.update()
    return found


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
