"""Grow an ensemble: a fixed number of learners, all of them, or enough."""

import warnings
from dataclasses import replace
from typing import Literal

import numpy as np

from vstatkit._typing import Floats
from vstatkit.components import (
    ESTIMATORS,
    VarianceComponents,
    components_from_sums,
    estimate_components,
)
from vstatkit.ensemble import BATCH_SIZE, Task, evaluate
from vstatkit.evaluation import Evaluation
from vstatkit.exceptions import MonteCarloWarning
from vstatkit.inference import Estimates, stabilise, value_units
from vstatkit.kernels import kind_of, value_limit
from vstatkit.moments import EnsembleSums, sum_ensemble
from vstatkit.orders import HigherOrders, expected_orders
from vstatkit.subsample import CompleteDesign, SubsampleDesign

FIRST_B = 256
"""Learners grown before the first look at the Monte Carlo error."""

LARGEST_STEP = 4
"""Factor that B grows by at most: early looks are noisy."""

Size = int | Literal["auto", "complete"]


def grow(
    task: Task,
    B: Size,
    *,
    method: str,
    n_query: int | None,
    tol: float,
    max_B: int,
    n_jobs: int | None = None,
    batch_size: int | None = None,
    progress: bool | None = None,
) -> tuple[SubsampleDesign, Evaluation]:
    """Evaluate as many learners as `B` asks for.

    Parameters
    ----------
    task : Task
        What to evaluate.
    B : int, "auto" or "complete"
        Number of learners; all subsamples of a complete design; or as many as
        bring the relative Monte Carlo error of the standard errors below `tol`.
    method : str
        Variance estimator that "auto" watches.
    n_query : int or None
        Leading values that "auto" watches; None for all.
    tol : float
        Tolerance of "auto".
    max_B : int
        Where "auto" gives up, with a warning.
    n_jobs, batch_size, progress
        See `evaluate`.

    Returns
    -------
    design, evaluation
        The design with its number of learners fixed, and their values.
    """
    design = task.design

    def run(start: int, stop: int) -> Evaluation:
        return evaluate(
            replace(task, design=design.sized(stop)),
            start,
            stop,
            n_jobs=n_jobs,
            batch_size=batch_size,
            progress=progress,
        )

    if isinstance(design, CompleteDesign):
        return design, run(0, design.n_subsamples)
    if isinstance(B, int):
        return design.sized(B), run(0, B)
    check_growth(tol, max_B)
    aim = cautious(tol)
    size = design.rounded(FIRST_B, at_most=max_B)
    evaluation = run(0, size)
    orders = None
    if ESTIMATORS[method].beyond:
        orders = expected_orders(design, kind_of(task.kernel))
    watch = _Watch(method, value_limit(task.kernel), orders)
    while True:
        estimates = watch.look(design.sized(size), evaluation.values[:, :n_query])
        reached = float(estimates.relative_mc_error.max())
        needed = float(estimates.learners_needed(aim).max())
        if reached <= aim:
            break
        target = design.rounded(_next_size(size, needed), at_most=max_B)
        if target <= size:
            if reached <= tol:
                break
            warnings.warn(
                f"the ensemble stopped at {size} learners (`max_B` = {max_B}) with a "
                f"relative Monte Carlo error of the standard error of {reached:.2g}; "
                f"`tol` is {tol:g}. About {np.ceil(needed):.0f} learners would reach "
                "it: raise `max_B`, or accept a larger `tol`.",
                MonteCarloWarning,
                stacklevel=3,
            )
            break
        evaluation = evaluation + run(size, target)
        size = target
    return design.sized(size), evaluation


def cautious(tol: float) -> float:
    """Tighten the tolerance, because the variance is estimated too.

    An ensemble that happens to overestimate its variance V looks precise early.
    So the error s of V is held against V - 2 s: `s / (2 (V - 2 s)) <= tol` is
    `s / (2 V) <= tol / (1 + 4 tol)`.
    """
    return tol / (1 + 4 * tol)


def check_growth(tol: float, max_B: int) -> None:
    """Check the options of `B="auto"`."""
    if not 0 < tol < 1:
        raise ValueError(f"`tol` must lie strictly between 0 and 1; got {tol}.")
    if max_B < 2:
        raise ValueError(f"`max_B` must be at least 2; got {max_B}.")


def _next_size(size: int, needed: float) -> int:
    """Aim a little beyond what the last look asked for, in whole batches."""
    aim = float(np.clip(1.05 * needed, 1.2 * size, LARGEST_STEP * size))
    return int(np.ceil(aim / BATCH_SIZE)) * BATCH_SIZE


class _Watch:
    """Follow the Monte Carlo error; sums are only ever extended."""

    def __init__(
        self, method: str, limit: float | None, orders: HigherOrders | None
    ) -> None:
        self._method = method
        self._orders = orders
        self._limit = np.inf if limit is None else limit
        self._sums: EnsembleSums | None = None
        self._seen = 0
        self._unit: Floats | None = None

    def look(self, design: SubsampleDesign, values: Floats) -> Estimates:
        """Estimate from all values so far."""
        method = self._method
        if self._unit is None:
            self._unit = value_units(values)
        source = ESTIMATORS[method].source
        if source == "groups":
            components = estimate_components(method, design, values / self._unit)
            return self._stabilised(values, components)
        fresh = sum_ensemble(
            design,
            values[self._seen :] / self._unit,
            start=self._seen,
            origin=None if self._sums is None else self._sums.origin,
            presence=source == "presence",
        )
        self._sums = fresh if self._sums is None else self._sums + fresh
        self._seen = len(values)
        components = components_from_sums(method, design, self._sums, self._orders)
        return self._stabilised(values, components)

    def _stabilised(self, values: Floats, components: VarianceComponents) -> Estimates:
        unit = np.ones(values.shape[1]) if self._unit is None else self._unit
        return stabilise(
            values.mean(axis=0),
            components,
            float(len(values)),
            unit=unit,
            limit=self._limit,
        )
