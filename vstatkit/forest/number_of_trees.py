"""Grow forests until their standard errors are precise, or warn that they are not."""

from dataclasses import replace

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.growth import StoppingRule, grow_enough, make_runner
from vstatkit.ensemble.pooled_variance import can_pool
from vstatkit.exceptions import MonteCarloWarning, warn_caller
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.stopping import (
    TOL,
    ErrorCurve,
    Tolerance,
    round_up,
    tolerance_of,
)
from vstatkit.kernels.base import Evaluation, KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.registry import (
    ESTIMATORS,
    large_k_problem,
    resolve_for_design,
)

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
    the share of it that counts for tolerances. The first trees are enough if variances
    can be pooled.
    """
    rows = watched_rows(reference, n_outputs)
    run = make_runner(replace(task, at=rows), None, n_jobs=n_jobs, progress=False)
    start = run(0, AUTO_FIRST)
    if why_no_errors(task.design, variance) is not None:
        return start
    nodes = sum(tree.nodes.size for tree in start.learners) / AUTO_FIRST
    most = int(np.clip(AUTO_NODES / nodes, AUTO_FIRST, AUTO_MOST))
    method = resolve_for_design(variance, task.design, KernelKind.TREES)
    if ESTIMATORS[method].beyond and can_pool(task.kernel, task.design):
        return start  # pooled variances are known with few trees
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
