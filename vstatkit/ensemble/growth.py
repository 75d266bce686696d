"""Grow an ensemble: a fixed number of learners, all of them, or until precise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import BATCH_SIZE, LearnerKeeper, Task, evaluate
from vstatkit.exceptions import MonteCarloWarning, warn_caller
from vstatkit.inference.estimates import Estimates, stabilise
from vstatkit.inference.intervals import value_limit
from vstatkit.inference.stopping import (
    TOL,
    ErrorCurve,
    Tolerance,
    round_up,
    scale_share,
    tolerance_of,
)
from vstatkit.kernels.base import Evaluation, KernelKind, kind_of
from vstatkit.kernels.tree import Tree
from vstatkit.sampling.design import CompleteDesign, SubsampleDesign
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.variance.estimators import SumEstimator, VarianceComponents
from vstatkit.variance.higher_orders import HigherOrders, expected_orders
from vstatkit.variance.large_moments import is_wide
from vstatkit.variance.moments import EnsembleSums, sum_ensemble, value_units
from vstatkit.variance.registry import ESTIMATORS, large_k_problem, resolve_for_design

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


AUTO_FIRST = 500  # trees that `n_estimators="auto"` grows at least
AUTO_MOST = 5_000  # trees that "auto" grows at most
# Nodes (of 16 bytes) beyond which "auto" adds no trees, even if standard errors could
# be more precise.
AUTO_NODES = 16_000_000
# Fewest and most reference rows whose standard errors "auto" checks.
WATCHED_ROWS = (10, 50)
WATCHED_VALUES = 200  # most predictions of a tree at these rows, for many classes

# Relative Monte Carlo error of standard errors above which the user is warned.
UNSURE = 0.25


def grow_forest(
    task: Task,
    reference: Floats,
    n_outputs: int,
    *,
    variance: str,
    limit: float | None,
    share: float,
    n_jobs: int | None,
) -> Evaluation:
    """Grow trees until the Monte Carlo error of standard errors is small enough.

    The trees of the task must be kept. The checked rows are taken from the `reference`.
    `limit` is the largest standard deviation that a prediction can have, and `share`
    the share of it that counts for tolerances.
    """
    rows = watched_rows(reference, n_outputs)
    run = make_runner(replace(task, at=rows), None, n_jobs=n_jobs, progress=False)
    start = run(0, AUTO_FIRST)
    if why_no_errors(task.design, variance) is not None:
        return start
    nodes = sum(tree.nodes.size for tree in start.learners) / AUTO_FIRST
    most = int(np.clip(AUTO_NODES / nodes, AUTO_FIRST, AUTO_MOST))
    method = resolve_for_design(variance, task.design, KernelKind.TREES)
    tolerance = pooled_tolerance(TOL, limit, share)
    rule = StoppingRule(method, tolerance, most, kind=KernelKind.TREES)
    return grow_enough(run, task.design, rule, limit, start)[0]


def watched_rows(reference: Floats, n_outputs: int) -> Floats:
    """Take the reference rows that "auto" checks."""
    low, high = WATCHED_ROWS
    return reference[: int(np.clip(WATCHED_VALUES // n_outputs, low, high))]


def why_no_errors(design: SubsampleDesign, variance: str) -> str | None:
    """Return the reason why there are no standard errors, or None."""
    if design.n < 2:
        return "standard errors need at least two training rows."
    if not design.replace and design.k == design.n:
        return (
            "standard errors need trees that see different rows; use "
            "bootstrap=True, or `max_samples` below the number of rows."
        )
    problem = large_k_problem(variance, design.k, design.n, replace=design.replace)
    return problem or None


def pooled_tolerance(tol: float, limit: float | None, share: float) -> Tolerance:
    """Return the tolerance of standard errors, pooled over all points."""
    return replace(tolerance_of(tol, None, limit, share=share), pooled=True)


def warn_if_imprecise(
    found: Estimates, n_trees: int, limit: float | None, share: float
) -> bool:
    """Warn if standard errors are imprecise, with the number of trees that suffices.

    Return whether there was a warning.
    """
    if pooled_tolerance(UNSURE, limit, share).excess(found) <= 1:
        return False
    error = ErrorCurve.of_mean(found).relative_error(n_trees).item()
    needed = round_up(pooled_tolerance(TOL, limit, share).learners_needed(found).item())
    warn_caller(
        f"the standard errors of {n_trees} trees have a Monte Carlo "
        f"error of about {error:.0%}. About {needed} trees would bring it to "
        f"{TOL:.0%}, or below what matters: raise `n_estimators`.",
        MonteCarloWarning,
    )
    return True


def mean_importances(trees: Sequence[Tree]) -> Floats:
    """Average each feature's share of the reduction in impurity over the trees."""
    gains = np.stack([tree.gains for tree in trees])
    totals = gains.sum(axis=1, keepdims=True)
    shares = np.divide(gains, totals, out=np.zeros_like(gains), where=totals > 0)
    mean = shares.mean(axis=0)
    return np.asarray(mean / mean.sum()) if mean.any() else mean
