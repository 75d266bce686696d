"""Coverage study of any simulation design, formula and kernel."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, KernelLike, Seed
from vstatkit.exceptions import VstatkitWarning
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.input_checks import as_frame
from vstatkit.formula.patsy_engine import caller_environment
from vstatkit.sampling.grouped_learners import TwoLevelDesign
from vstatkit.sampling.registry import design_options as known_options
from vstatkit.sampling.streams import resolve_seed
from vstatkit.studies.experiment import (
    Record,
    check_iterations,
    one_thread,
    run_experiment,
)
from vstatkit.studies.measures import Interval, Intervals, Method
from vstatkit.studies.metrics import interval_frame
from vstatkit.studies.simulation import DROPPED, Arm, FirstData, Generator, Simulation
from vstatkit.validation import check_alpha, split_options
from vstatkit.variance.registry import resolve_for_design

LEARNERS = 1000
"""Number of learners where `B` is not given."""


def coverage(
    generator: Generator,
    formula: str,
    *,
    at: DataLike | None = None,
    kernel: KernelLike = "forest",
    k: int | float | None = None,
    B: int | Sequence[int] | None = None,
    replace: bool = True,
    design: str = "iid",
    variance: str | Sequence[str] = "auto",
    interval: Interval = "t",
    alpha: float = 0.05,
    missing: Missing = "drop",
    iterations: int = 200,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    checkpoint: Path | str | None = None,
    **kernel_options: Any,
) -> pd.DataFrame:
    """Check standard errors on data sets drawn from a known law.

    Every iteration draws a data set and grows one ensemble; the smaller numbers of
    learners are its first ones. What is covered is the mean of the estimates over
    all iterations, the target of an ensemble's interval.

    Parameters
    ----------
    generator : callable
        Draws a data set, as `fit` takes it, from a numpy Generator. Called once
        per data set; for the first one before all others.
    formula : str
        As in `fit`.
    at : DataFrame or dict of columns, optional
        Query points; needed by kernels that predict.
    kernel, k, replace, design
        As in `fit`.
    B : int or increasing sequence of int, optional
        Numbers of learners; by default 1000, or what `n_out` and `n_in` make.
    variance : str or sequence of str
        Variance estimators, all different.
    interval : {"t", "normal"}
        "t" is what `conf_int` gives: a stabilised variance and Student's t.
        "normal" takes the raw variance and normal quantiles, as the paper does;
        an interval whose variance is negative covers nothing.
    alpha : float
        One minus the nominal coverage.
    missing : {"drop", "raise", "pass"}
        As in `fit`; a warning says how many rows were dropped.
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
        from there; give a seed, so that it can. Checkpoints of other settings,
        or of a generator or kernel that gives other numbers, are refused.
    **kernel_options
        Options of the kernel and of the design, as in `fit`.

    Returns
    -------
    DataFrame
        One row per `method`, `B` and `point`: the `response` (for two classes, the
        one whose probability it is), `mean`, `true_variance` (of the estimates over
        iterations), `mean_variance` (estimated), `ratio` of the
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
    _check_level(alpha)
    check_iterations(iterations)
    if interval not in ("t", "normal"):
        raise ValueError(f"`interval` must be 't' or 'normal'; got {interval!r}.")
    design_options, options = split_options(kernel_options, known_options())
    sizes = _learner_numbers(_default_size(design_options) if B is None else B)
    names = _names(variance)
    # The estimators are known once the first data set is.
    arm = Arm("", k, sizes, Intervals((), alpha), replace, design, design_options)
    plan = Simulation(
        name="coverage",
        generator=generator,
        formula=formula,
        arms=(arm,),
        at=None if at is None else as_frame(at),
        kernel=kernel,
        options=options,
        environment=caller_environment(1),
        missing=missing,
    )
    seed = resolve_seed(rng)
    with one_thread():
        plan, first = plan.begun(seed)
    methods = _methods(_estimators(names, first), interval)
    plan = _measuring(plan, Intervals(methods, alpha))
    record = run_experiment(
        plan,
        iterations,
        seed=seed,
        directory=None if checkpoint is None else Path(checkpoint),
        n_jobs=n_jobs,
        progress=progress,
    )
    _warn_of_dropped(record)
    return _coverage_frame(record, plan.arms[0], first)


def _methods(names: list[str], interval: Interval) -> tuple[Method, ...]:
    return tuple(Method(name, name, interval=interval) for name in names)


def _measuring(plan: Simulation, measure: Intervals) -> Simulation:
    """Let the only arm of a simulation measure something else."""
    (arm,) = plan.arms
    return changed(plan, arms=(changed(arm, measure=measure),))


def _coverage_frame(record: Record, arm: Arm, first: FirstData) -> pd.DataFrame:
    frame = interval_frame(record, arm, first.points)
    frame.insert(list(frame.columns).index("point") + 1, "response", first.response)
    return frame.drop(columns=["ratio_spread", "iterations"])


def _check_level(alpha: Any) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"`alpha` must be a number between 0 and 1; got {alpha!r}.")
    check_alpha(float(alpha))


def _default_size(options: Mapping[str, Any]) -> int:
    """Multiply out a two-level design; whether the options fit it comes later."""
    pins, within = options.get("n_out"), options.get("n_in", TwoLevelDesign.n_in)
    if _is_whole(pins) and _is_whole(within) and pins * within > 1:
        return int(pins * within)
    return LEARNERS


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _learner_numbers(B: Any) -> tuple[int, ...]:
    """Read `B`: one number of learners, or several."""
    listed = isinstance(B, Sequence | np.ndarray) and not isinstance(B, str)
    sizes = list(B) if listed else [B]
    if not all(map(_is_whole, sizes)):
        raise TypeError(
            "`B` must be a number of learners, or an increasing sequence of such "
            f"numbers; got {B!r}."
        )
    if not sizes or min(sizes) < 2:
        raise ValueError(
            "`B` must be one number or more, each at least 2, to see how learners "
            f"vary; got {B!r}."
        )
    if any(a >= b for a, b in pairwise(sizes)):
        raise ValueError(f"`B` must be increasing; got {B!r}.")
    return tuple(map(int, sizes))


def _names(variance: Any) -> list[str]:
    """Read `variance`: one name, or several."""
    names = [variance] if isinstance(variance, str) else variance
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            "`variance` must be the name of an estimator, or a list of names; got "
            f"{variance!r}."
        )
    if not names:
        raise ValueError("`variance` must name at least one estimator; got none.")
    return list(names)


def _estimators(names: list[str], first: FirstData) -> list[str]:
    """Name the estimators meant; all must differ."""
    meant: dict[str, str] = {}
    for name in names:
        method = resolve_for_design(name, first.design, first.kind)
        if method in meant:
            raise ValueError(
                f"`variance` must name different estimators; {meant[method]!r} and "
                f"{name!r} are both {method!r} here."
            )
        meant[method] = name
    return list(meant)


def _warn_of_dropped(record: Record) -> None:
    dropped = record[DROPPED]
    if dropped.any():
        warnings.warn(
            f"{int(dropped.sum()):,} rows with missing values dropped, from "
            f"{np.count_nonzero(dropped)} of {len(dropped)} data sets.",
            VstatkitWarning,
            stacklevel=3,
        )
