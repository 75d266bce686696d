"""Coverage and variance ratios of intervals, and a study of any simulation design."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import DataLike, Floats, KernelLike, Seed
from vstatkit.exceptions import VstatkitWarning
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.design_matrix import Missing
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
from vstatkit.studies.methods import Interval, Intervals, Method
from vstatkit.studies.simulation import DROPPED, Arm, FirstData, Generator, Simulation
from vstatkit.validation import check_alpha, is_whole, split_options
from vstatkit.variance.registry import resolve_for_design

LEARNERS = 1000  # default number of learners
BOUNDS = 0.95  # level of the Monte Carlo bounds


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
    """Estimate variance ratio and coverage on data sets from a known distribution.

    Every iteration draws a data set and grows one ensemble; a smaller number of
    learners means the first ones of that ensemble. Coverage is that of the mean of
    the estimates over all iterations, the target of an ensemble's interval.

    Parameters
    ----------
    generator : callable
        Draws a data set for `fit` from a numpy Generator. It is called once for each
        data set, and for the first one before all others.
    formula : str
        As in `fit`.
    at : DataFrame or dict of columns, optional
        Query points; required by kernels that predict.
    kernel, k, replace, design
        As in `fit`.
    B : int or increasing sequence of int, optional
        Numbers of learners; by default 1000, or `n_out` times `n_in` if given.
    variance : str or sequence of str
        Variance estimators, all different.
    interval : {"t", "normal"}
        "t" is the interval of `conf_int`: a stabilised variance and Student's t.
        "normal" uses the raw variance and normal quantiles, as the paper does;
        an interval whose variance is negative never covers.
    alpha : float
        One minus the nominal coverage.
    missing : {"drop", "raise", "pass"}
        As in `fit`; a warning reports how many rows were dropped.
    iterations : int
        Number of data sets.
    rng : int, Generator or None
        Seed. The same seed gives the same numbers for any `n_jobs`.
    n_jobs : int, optional
        Number of threads, as in joblib.
    progress : bool, optional
        Show progress; by default on a terminal.
    checkpoint : path, optional
        Directory for finished iterations, from which an interrupted run resumes; this
        requires a seed. Checkpoints of other settings, or of a generator or kernel
        that gives other numbers, raise an error.
    **kernel_options
        Options of the kernel and of the design, as in `fit`.

    Returns
    -------
    DataFrame
        One row per `method`, `B` and `point`: the `response` (for two classes, the
        one whose probability is estimated), `mean`, `true_variance` (of the estimates
        over iterations), `mean_variance` (estimated), their `ratio` (estimated over
        true) and `coverage`, with 95 % Monte Carlo bounds `ratio_lower`,
        `ratio_upper`, `coverage_lower` and `coverage_upper`.

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
    names = _estimator_names(variance)
    # Which estimators `variance` means depends on the first data set.
    arm = Arm("", k, sizes, Intervals((), alpha), replace, design, design_options)
    study = Simulation(
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
        study, first = study.draw_first(seed)
    methods = (
        Method(name, name, interval=interval)
        for name in _resolve_estimators(names, first)
    )
    arm = dataclasses.replace(arm, measure=Intervals(tuple(methods), alpha))
    record = run_experiment(
        dataclasses.replace(study, arms=(arm,)),
        iterations,
        seed=seed,
        directory=None if checkpoint is None else Path(checkpoint),
        n_jobs=n_jobs,
        progress=progress,
    )
    dropped = record[DROPPED]
    if dropped.any():
        warnings.warn(
            f"{int(dropped.sum()):,} rows with missing values dropped, from "
            f"{np.count_nonzero(dropped)} of {len(dropped)} data sets.",
            VstatkitWarning,
            stacklevel=2,
        )
    frame = interval_frame(record, arm, first.points)
    frame.insert(list(frame.columns).index("point") + 1, "response", first.response)
    return frame.drop(columns=["ratio_spread", "iterations"])


def _check_level(alpha: Any) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"`alpha` must be a number between 0 and 1; got {alpha!r}.")
    check_alpha(float(alpha))


def _default_size(options: Mapping[str, Any]) -> int:
    """Return `n_out` times `n_in` if `n_out` is given; the design checks them later."""
    pins, within = options.get("n_out"), options.get("n_in", TwoLevelDesign.n_in)
    if is_whole(pins) and is_whole(within) and pins * within > 1:
        return int(pins * within)
    return LEARNERS


def _learner_numbers(B: Any) -> tuple[int, ...]:
    """Return the numbers of learners as a tuple; they must increase."""
    several = isinstance(B, Sequence | np.ndarray) and not isinstance(B, str)
    sizes = list(B) if several else [B]
    if not all(map(is_whole, sizes)):
        raise TypeError(
            "`B` must be a number of learners, or an increasing sequence of such "
            f"numbers; got {B!r}."
        )
    if not sizes or min(sizes) < 2:
        raise ValueError(
            "`B` must be one or more numbers of learners, each at least 2, to estimate "
            f"variances; got {B!r}."
        )
    if any(a >= b for a, b in pairwise(sizes)):
        raise ValueError(f"`B` must be increasing; got {B!r}.")
    return tuple(map(int, sizes))


def _estimator_names(variance: Any) -> list[str]:
    """Return the names in `variance` as a list."""
    names = [variance] if isinstance(variance, str) else variance
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            "`variance` must be the name of an estimator, or a list of names; got "
            f"{variance!r}."
        )
    if not names:
        raise ValueError("`variance` must name at least one estimator; got none.")
    return list(names)


def _resolve_estimators(names: list[str], first: FirstData) -> list[str]:
    """Replace "auto" and "corrected" by estimators; all must differ."""
    aliases: dict[str, str] = {}
    for name in names:
        method = resolve_for_design(name, first.design, first.kind)
        if method in aliases:
            raise ValueError(
                f"`variance` must name different estimators; {aliases[method]!r} and "
                f"{name!r} are both {method!r} here."
            )
        aliases[method] = name
    return list(aliases)


def normal_quantile(level: float) -> float:
    """Two-sided quantile of the normal distribution."""
    return float(stats.norm.isf((1 - level) / 2))


def true_variance(mean: Floats) -> Floats:
    """Variance of the estimates over iterations (the first axis)."""
    return np.asarray(mean.var(axis=0, ddof=1))


def variance_ratio(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Divide the mean estimated variance by the true one; iterations are first axis.

    Both are estimated from the same iterations. To first order, iteration j changes
    the ratio R by `(V_j - R (f_j - fbar)**2) / s2` divided by their number. Also return
    the spread of these changes: the standard error of R times the root of the number.
    """
    truth = true_variance(mean)
    value = variance.mean(axis=0) / truth
    changes = (variance - value * (mean - mean.mean(axis=0)) ** 2) / truth
    return value, changes.std(axis=0, ddof=1)


def ratio_bound(
    spread: Floats, level: float, iterations: int, others: int | None = None
) -> Floats:
    """Bound the sampling error of a ratio with this spread, at a two-sided level.

    With `others`, the number of iterations of a second study, bound the difference of
    the two studies.
    """
    share = 1 / iterations + (1 / others if others else 0)
    return np.asarray(normal_quantile(level) * spread * np.sqrt(share))


def covers_mean(mean: Floats, half_width: Floats) -> Floats:
    """Return 1 where an interval covers the mean of all estimates; NaN never covers."""
    return np.asarray(np.abs(mean - mean.mean(axis=0)) <= half_width, dtype=np.float64)


def binomial_interval(successes: Floats, trials: int, level: float) -> Floats:
    """Clopper and Pearson's exact interval of a proportion, shape (2, ...)."""
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, successes, trials - successes + 1)
    high = stats.beta.isf(tail, successes + 1, trials - successes)
    low = np.where(successes == 0, 0.0, low)
    return np.stack([low, np.where(successes == trials, 1.0, high)])


def interval_frame(record: Record, arm: Arm, points: pd.Index) -> pd.DataFrame:
    """Tabulate an arm whose measure is `Intervals`, one row per method, B and point.

    The columns are those of `coverage`, with `ratio_spread` and `iterations`.
    """
    if not isinstance(arm.measure, Intervals):
        raise TypeError(f"arm {arm.label!r} does not measure intervals.")
    fields = ("mean", "variance", "half_width")
    mean, variance, half = (record[f"{arm.label}/{field}"] for field in fields)
    mean = mean[:, :, None, :]  # iterations, sizes, methods, points
    # Equal numbers do not vary, but their computed mean may be off by rounding.
    varying = np.where(np.ptp(mean, axis=0) == 0, 0.0, mean)
    inside = covers_mean(varying, half)
    with np.errstate(divide="ignore", invalid="ignore"):  # the variance may be zero
        wide = np.broadcast_to(varying, variance.shape)
        ratio, spread = variance_ratio(wide, variance)
    value = np.where(np.isinf(ratio), np.nan, ratio)
    error = ratio_bound(spread, BOUNDS, len(mean))
    bounds = binomial_interval(inside.sum(axis=0), len(mean), BOUNDS)
    rows = []
    cells = map(enumerate, (arm.measure.methods, arm.sizes, points))
    for (j, method), (i, size), (q, point) in product(*cells):
        at = (i, j, q)
        rows.append(
            {
                "method": method.label,
                "B": size,
                "point": point,
                "mean": mean[:, i, 0, q].mean(),
                "true_variance": float(true_variance(varying[:, i, 0, q])),
                "mean_variance": variance[:, i, j, q].mean(),
                "ratio": value[at],
                "ratio_lower": value[at] - error[at],
                "ratio_upper": value[at] + error[at],
                "coverage": inside[:, i, j, q].mean(),
                "coverage_lower": bounds[0][at],
                "coverage_upper": bounds[1][at],
                "ratio_spread": spread[at],
                "iterations": len(mean),
            }
        )
    return pd.DataFrame(rows)
