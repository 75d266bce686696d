"""Forests: how many trees they need, and what may be said of them."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task
from vstatkit.ensemble.growth import Rule, grow_enough, runner
from vstatkit.exceptions import MonteCarloWarning
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.stopping import TOL, ErrorLaw, Tolerance, about, tolerance_of
from vstatkit.kernels.base import Evaluation, KernelKind
from vstatkit.kernels.tree import Tree
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.registry import large_k_problem, resolve_method

AUTO_FIRST = 500
"""Trees that `n_estimators="auto"` grows at least."""

AUTO_MOST = 5_000
"""Trees that "auto" grows at most."""

AUTO_NODES = 16_000_000
"""Nodes (of 16 bytes) beyond which "auto" adds no trees, even if standard errors
could be more precise."""

WATCHED_ROWS = (10, 50)
"""Fewest and most reference rows that "auto" watches."""

WATCHED_VALUES = 200
"""Predictions of a tree at these rows, where they are of many classes."""


UNSURE = 0.25
"""Relative Monte Carlo error of standard errors above which the user is warned."""


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
    """Grow the first trees, and on until standard errors are known well enough.

    Parameters
    ----------
    task : Task
        Trees to grow; they must be kept.
    reference : ndarray
        Rows of which some are watched.
    n_outputs : int
        Predictions of a tree at each row.
    variance : str
        Variance estimator, as in `fit`.
    limit : float or None
        Largest standard deviation that a prediction can have.
    share : float
        Share of it that counts for tolerances.
    n_jobs : int or None
        Threads.
    """
    rows = watched_rows(reference, n_outputs)
    run = runner(replace(task, at=rows), None, n_jobs=n_jobs, progress=False)
    start = run(0, AUTO_FIRST)
    if why_no_errors(task.design, variance) is not None:
        return start
    nodes = sum(tree.nodes.size for tree in start.learners) / AUTO_FIRST
    most = int(np.clip(AUTO_NODES / nodes, AUTO_FIRST, AUTO_MOST))
    method = tree_variance(variance, task.design)
    tolerance = pooled_tolerance(TOL, limit, share)
    rule = Rule(method, tolerance, most, kind=KernelKind.TREES)
    return grow_enough(run, task.design, rule, limit, start)[0]


def watched_rows(reference: Floats, n_outputs: int) -> Floats:
    """Take the reference rows that "auto" watches."""
    low, high = WATCHED_ROWS
    return reference[: int(np.clip(WATCHED_VALUES // n_outputs, low, high))]


def why_no_errors(design: SubsampleDesign, variance: str) -> str | None:
    """Say why these data and subsamples have no standard errors, if so."""
    if design.n < 2:
        return "standard errors need at least two training rows."
    if not design.replace and design.k == design.n:
        return (
            "standard errors need trees that see different rows; use "
            "bootstrap=True, or `max_samples` below the number of rows."
        )
    problem = large_k_problem(variance, design.k, design.n, replace=design.replace)
    return problem or None


def tree_variance(variance: str, design: SubsampleDesign) -> str:
    """Settle the variance estimator of trees."""
    return resolve_method(
        variance,
        replace=design.replace,
        design=design.name,
        k=design.k,
        n=design.n,
        n_absent=design.n_absent,
        kind=KernelKind.TREES,
    )


def pooled_tolerance(tol: float, limit: float | None, share: float) -> Tolerance:
    """Say what standard errors must meet, all points taken together."""
    return replace(tolerance_of(tol, None, limit, share=share), pooled=True)


def tell_of_error(
    found: Estimates,
    n_trees: int,
    limit: float | None,
    share: float,
    *,
    stacklevel: int,
) -> bool:
    """Warn where standard errors are hardly known, and say how many trees are enough.

    Returns
    -------
    bool
        Whether there was a warning.
    """
    if pooled_tolerance(UNSURE, limit, share).excess(found) <= 1:
        return False
    error = ErrorLaw.typical(found).relative_error(n_trees).item()
    needed = about(pooled_tolerance(TOL, limit, share).needed(found).item())
    warnings.warn(
        f"the standard errors of {n_trees} trees have a Monte Carlo "
        f"error of about {error:.0%}. About {needed} trees would bring it to "
        f"{TOL:.0%}, or below what matters: raise `n_estimators`.",
        MonteCarloWarning,
        stacklevel=stacklevel,
    )
    return True


def importances(trees: Sequence[Tree]) -> Floats:
    """Share of the impurity that the splits on each feature remove."""
    gains = np.stack([tree.gains for tree in trees])
    totals = gains.sum(axis=1, keepdims=True)
    shares = np.divide(gains, totals, out=np.zeros_like(gains), where=totals > 0)
    mean = shares.mean(axis=0)
    return np.asarray(mean / mean.sum()) if mean.any() else mean
