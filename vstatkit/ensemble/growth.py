"""Grow an ensemble: a fixed number of learners, all of them, or until precise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import BATCH_SIZE, LearnerKeeper, Task, evaluate
from vstatkit.exceptions import MonteCarloWarning, warn_caller
from vstatkit.inference.estimates import Estimates, stabilise
from vstatkit.inference.intervals import value_limit
from vstatkit.inference.stopping import Tolerance, round_up, scale_share, tolerance_of
from vstatkit.kernels.base import Evaluation, KernelKind, kind_of
from vstatkit.sampling.design import CompleteDesign, SubsampleDesign
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.variance.estimators import SumEstimator, VarianceComponents
from vstatkit.variance.higher_orders import HigherOrders, expected_orders
from vstatkit.variance.large_moments import is_wide
from vstatkit.variance.moments import EnsembleSums, sum_ensemble, value_units
from vstatkit.variance.registry import ESTIMATORS

FIRST_B = 256  # learners grown before the Monte Carlo error is first estimated
MAX_B = 10_000  # learners at which "auto" stops, whatever the Monte Carlo error
# Largest factor by which B grows at once, since early estimates are noisy.
LARGEST_STEP = 4

Size = int | Literal["auto", "complete"]

Run = Callable[[int, int], Evaluation]  # A function that evaluates a range of learners


@dataclass(frozen=True)
class StoppingRule:
    """When "auto" stops growing."""

    method: str  # variance estimator whose Monte Carlo error is estimated
    tolerance: Tolerance  # tolerance of the standard errors
    max_B: int  # number of learners at which growth stops in any case
    n_query: int | None = None  # leading values that are estimates, before the effects
    kind: KernelKind = KernelKind.UNKNOWN  # how the kernel depends on its observations


def grow(
    task: Task,
    B: Size,
    *,
    method: str,
    n_query: int | None,
    tol: float,
    max_B: int,
    atol: float | None = None,
    start: Evaluation | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    keeper: LearnerKeeper | None = None,
) -> tuple[SubsampleDesign, Evaluation]:
    """Evaluate a number of learners, or as many as the tolerance requires.

    If `B` is "auto", these are as many as bring the Monte Carlo error of the standard
    errors, by the variance estimator `method`, below the relative tolerance `tol` or
    the absolute one, `atol` (see `tolerance_of`), or `max_B`, with a warning. The first
    `n_query` values are estimates (None for all), the others belong to effects. `start`
    has the first learners if they were evaluated earlier.

    Return the design with its number of learners fixed, and their values: at the query
    points, then the differences behind the effects.
    """
    design = task.design
    run = make_runner(task, n_query, n_jobs=n_jobs, progress=progress, keeper=keeper)
    if isinstance(design, CompleteDesign):
        return design, run(0, design.n_subsamples)
    if isinstance(B, int):
        evaluation = run(0, B) if start is None else start + run(len(start.values), B)
        return design.with_size(B), evaluation
    check_growth(tol, max_B, atol)
    limit, share = value_limit(task.kernel), scale_share(task.kernel)
    replicates = isinstance(design, ShardsDesign)
    tolerance = tolerance_of(tol, atol, limit, share=share, replicates=replicates)
    rule = StoppingRule(method, tolerance, max_B, n_query, kind_of(task.kernel))
    evaluation, last = grow_enough(run, design, rule, limit, start)
    if tolerance.excess(last) > 1 and not replicates:  # these are valid at any size
        _warn_of_error(last, tolerance, max_B)
    return design.with_size(len(evaluation.values)), evaluation


def make_runner(task: Task, n_query: int | None, **options: Any) -> Run:
    """Return the function that evaluates a range of learners; see `evaluate`."""

    def run(start: int, stop: int) -> Evaluation:
        sized = task.design if task.design.complete else task.design.with_size(stop)
        part = evaluate(replace(task, design=sized), start, stop, **options)
        return part.with_moves(n_query)

    return run


def grow_enough(
    run: Run,
    design: SubsampleDesign,
    rule: StoppingRule,
    limit: float | None,
    start: Evaluation | None = None,
) -> tuple[Evaluation, Estimates]:
    """Grow until the tolerance is met, or as many learners as the rule allows.

    `run` evaluates a range of learners, `limit` is the largest standard deviation that
    an estimate can have, and `start` has the first learners if there are some.

    The estimates must meet a tightened tolerance (see `Tolerance.tighten`), and the
    effects, which are many, the tolerance itself.
    """
    if start is None:
        start = run(0, design.round_size(FIRST_B, at_most=rule.max_B))
    evaluation, split = start, rule.n_query
    beyond = ESTIMATORS[rule.method].beyond
    orders = expected_orders(design, rule.kind) if beyond else None
    most = np.inf if limit is None else limit
    monitor = _ErrorMonitor(rule.method, most, orders)
    watched = [(monitor, rule.tolerance.tighten(), slice(split))]
    if split is not None and start.values.shape[1] > split:
        monitor = _ErrorMonitor(rule.method, 2 * most, orders)  # of a difference
        watched.append((monitor, rule.tolerance, slice(split, None)))
    while True:
        size = len(evaluation.values)
        needed, current = 0.0, []
        for monitor, tolerance, part in watched:
            latest = monitor.update(design.with_size(size), evaluation.values[:, part])
            current.append(latest)
            if tolerance.excess(latest) > 1:
                needed = max(needed, float(tolerance.learners_needed(latest).max()))
        # Slightly beyond the estimated need, in whole batches.
        wanted = float(np.clip(1.05 * needed, 1.2 * size, LARGEST_STEP * size))
        batches = int(np.ceil(wanted / BATCH_SIZE))
        target = design.round_size(batches * BATCH_SIZE, at_most=rule.max_B)
        if needed == 0 or target <= size:
            return evaluation, current[0]
        evaluation = evaluation + run(size, target)


def _warn_of_error(estimates: Estimates, tolerance: Tolerance, max_B: int) -> None:
    size = int(estimates.n_learners)
    reached = float(estimates.relative_mc_error.max())
    needed = float(tolerance.learners_needed(estimates).max())
    warn_caller(
        f"the ensemble stopped at {size} learners (`max_B` = {max_B}) with a relative "
        f"Monte Carlo error of the standard error of {reached:.2g}; `tol` is "
        f"{tolerance.tol:g}. About {round_up(needed)} learners would reach it: raise "
        "`max_B`, or accept a larger `tol` or `atol`.",
        MonteCarloWarning,
    )


def check_growth(tol: float, max_B: int, atol: float | None = None) -> None:
    """Check the options of `B="auto"`."""
    if not 0 < tol < 1:
        raise ValueError(f"`tol` must lie strictly between 0 and 1; got {tol}.")
    if atol is not None and not 0 <= atol < np.inf:
        raise ValueError(
            "`atol` must be a number of at least 0, in the unit of the estimates; "
            f"got {atol}."
        )
    if max_B < 2:
        raise ValueError(f"`max_B` must be at least 2; got {max_B}.")


class _ErrorMonitor:
    """Estimate the Monte Carlo error repeatedly; sums are extended, not recomputed."""

    def __init__(self, method: str, limit: float, orders: HigherOrders | None) -> None:
        self._method, self._limit, self._orders = method, limit, orders
        self._sums: EnsembleSums | None = None
        self._seen = 0
        self._unit = np.ones(0)
        self._flat = np.zeros(0, dtype=bool)

    def update(self, design: SubsampleDesign, values: Floats) -> Estimates:
        """Estimate from all values so far."""
        flat = np.all(values == values[0], axis=0)
        if self._seen == 0 or np.any(self._flat & ~flat):
            # A column that has begun to vary has no unit yet: sum from the start.
            self._sums, self._seen = None, 0
            self._unit, self._flat = value_units(values), flat
        components = self._components(design, values / self._unit)
        size, mean = float(len(values)), values.mean(axis=0)
        return stabilise(mean, components, size, unit=self._unit, limit=self._limit)

    def _components(
        self, design: SubsampleDesign, values: Floats
    ) -> VarianceComponents:
        estimator = ESTIMATORS[self._method]
        wide = is_wide(design, *values.shape)  # a table to extend would be too large
        if wide or not isinstance(estimator, SumEstimator):
            return estimator.components(design, values, self._orders)
        fresh = sum_ensemble(
            design,
            values[self._seen :],
            start=self._seen,
            origin=None if self._sums is None else self._sums.origin,
            presence=estimator.source == "presence",
        )
        self._sums = fresh if self._sums is None else self._sums + fresh
        self._seen = len(values)
        return estimator.from_sums(design, self._sums, self._orders)
