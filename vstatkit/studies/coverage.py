"""Do intervals cover? A study of any law, formula and kernel."""

from collections.abc import Sequence
from dataclasses import replace as changed
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, KernelLike, Seed
from vstatkit._validation import subsample_size
from vstatkit.components import resolve_method
from vstatkit.formula import caller_environment
from vstatkit.frames import as_frame
from vstatkit.inference import check_alpha
from vstatkit.streams import resolve_seed
from vstatkit.studies.experiment import Record
from vstatkit.studies.metrics import (
    Ratio,
    binomial_interval,
    covered,
    true_variance,
    variance_ratio,
)
from vstatkit.studies.run import run_experiment
from vstatkit.studies.simulation import (
    Arm,
    Generator,
    Interval,
    Intervals,
    Method,
    Simulation,
)

BOUNDS = 0.95
"""Level of the Monte Carlo bounds."""


def coverage(
    generator: Generator,
    formula: str,
    *,
    at: DataLike | None = None,
    kernel: KernelLike = "forest",
    k: int | float | None = None,
    B: int | Sequence[int] = 1000,
    replace: bool = True,
    design: str = "iid",
    variance: str | Sequence[str] = "corrected",
    interval: Interval = "t",
    alpha: float = 0.05,
    iterations: int = 200,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    checkpoint: Path | str | None = None,
    **kernel_options: Any,
) -> pd.DataFrame:
    """Check standard errors on data sets of a known law.

    Every iteration draws a data set and grows one ensemble; the smaller numbers of
    learners are its first ones. What is covered is the mean of the estimates over
    all iterations, the target of an ensemble's interval.

    Parameters
    ----------
    generator : callable
        Gives a data set, as `fit` takes it, from a numpy Generator.
    formula : str
        As in `fit`.
    at : DataFrame or dict of columns, optional
        Query points; needed by kernels that predict.
    kernel, k, replace, design
        As in `fit`.
    B : int or sequence of int
        Numbers of learners.
    variance : str or sequence of str
        Variance estimators.
    interval : {"t", "normal"}
        "t" is what `conf_int` gives: a stabilised variance and Student's t.
        "normal" takes the raw variance and normal quantiles, as the paper does;
        where that variance is negative, nothing is covered.
    alpha : float
        One minus the nominal coverage.
    iterations : int
        Data sets.
    rng : int, Generator or None
        Seed. The same seed gives the same numbers for any `n_jobs`.
    n_jobs : int, optional
        Threads, as joblib counts them.
    progress : bool, optional
        Show progress; by default on a terminal.
    checkpoint : path, optional
        Directory that keeps finished iterations. A run that was stopped goes on
        from there; give a seed, so that it can.
    **kernel_options
        As in `fit`.

    Returns
    -------
    DataFrame
        One row for each `method`, `B` and `point`: `mean`, `true_variance` (of the
        estimates over iterations), `mean_variance` (estimated), `ratio` of the
        latter to the former and `coverage`, these two with 95 % Monte Carlo bounds
        `ratio_lower`, `ratio_upper`, `coverage_lower`, `coverage_upper`.

    Examples
    --------
    >>> import vstatkit as vs
    >>> table = vs.studies.coverage(
    ...     lambda rng: vs.datasets.mars(60, rng=rng),
    ...     "y ~ .",
    ...     at={f"x{j}": [0.5] for j in range(1, 6)},
    ...     k=20,
    ...     B=[50, 100],
    ...     variance=["ij", "corrected"],
    ...     iterations=10,
    ...     rng=1,
    ... )
    >>> table[["method", "B"]].to_numpy().tolist()
    [['ij', 50], ['ij', 100], ['corrected_v', 50], ['corrected_v', 100]]
    """
    check_alpha(alpha)
    if interval not in ("t", "normal"):
        raise ValueError(f"`interval` must be 't' or 'normal'; got {interval!r}.")
    sizes = tuple(sorted({B} if isinstance(B, int) else set(B)))
    names = [variance] if isinstance(variance, str) else list(variance)
    plan = Simulation(
        name="coverage",
        generator=generator,
        formula=formula,
        arms=(Arm("", k, sizes, Intervals((), alpha), replace, design),),
        at=None if at is None else as_frame(at),
        kernel=kernel,
        options=kernel_options,
        environment=caller_environment(1),
    )
    seed = resolve_seed(rng)
    n, points = plan.first(seed)
    size = subsample_size(k, n)
    resolved = [
        resolve_method(name, replace=replace, design=design, k=size, n=n)
        for name in names
    ]
    methods = tuple(Method(name, name, interval=interval) for name in resolved)
    arm = changed(plan.arms[0], measure=Intervals(methods, alpha))
    simulation = changed(plan, arms=(arm,))
    record = run_experiment(
        simulation,
        iterations,
        seed=seed,
        directory=None if checkpoint is None else Path(checkpoint),
        n_jobs=n_jobs,
        progress=progress,
    )
    frame = interval_frame(record, arm, points)
    return frame.drop(columns=["ratio_spread", "iterations"])


def interval_frame(record: Record, arm: Arm, points: pd.Index) -> pd.DataFrame:
    """Tabulate what an `Intervals` arm measured.

    Parameters
    ----------
    record : dict of ndarray
        Results of a simulation, iterations first.
    arm : Arm
        One whose measure is `Intervals`.
    points : Index
        Names of the values.

    Returns
    -------
    DataFrame
        Tidy; beside the columns of `coverage`, `ratio_spread` and `iterations`.
    """
    if not isinstance(arm.measure, Intervals):
        raise TypeError(f"arm {arm.label!r} does not measure intervals.")
    fields = ("mean", "variance", "half_width")
    mean, variance, half = (record[f"{arm.label}/{field}"] for field in fields)
    mean = mean[:, :, None, :]  # iterations, sizes, methods, points
    inside = covered(mean, half)
    ratio = variance_ratio(np.broadcast_to(mean, variance.shape), variance)
    error = ratio.half_width(BOUNDS)
    rows = []
    bounds = binomial_interval(inside.sum(axis=0), len(mean), BOUNDS)
    cells = product(enumerate(arm.measure.methods), enumerate(arm.sizes))
    for (j, method), (i, size) in cells:
        for q, point in enumerate(points):
            at = (i, j, q)
            rows.append(
                {
                    "method": method.label,
                    "B": size,
                    "point": point,
                    "mean": mean[:, i, 0, q].mean(),
                    "true_variance": float(true_variance(mean[:, i, 0, q])),
                    "mean_variance": variance[:, i, j, q].mean(),
                    "ratio": ratio.value[at],
                    "ratio_lower": ratio.value[at] - error[at],
                    "ratio_upper": ratio.value[at] + error[at],
                    "coverage": inside[:, i, j, q].mean(),
                    "coverage_lower": bounds[0][at],
                    "coverage_upper": bounds[1][at],
                    "ratio_spread": ratio.spread[at],
                    "iterations": len(mean),
                }
            )
    return pd.DataFrame(rows)


def ratio_of(frame: pd.DataFrame) -> Ratio:
    """Give the ratios of a tidy table with what their bounds need."""
    return Ratio(
        frame["ratio"].to_numpy(dtype=np.float64),
        frame["ratio_spread"].to_numpy(dtype=np.float64),
        int(frame["iterations"].iloc[0]),
    )
