"""Plan the sampling: the design, the number of learners, the variance estimator."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from vstatkit._typing import Seed
from vstatkit.ensemble.bias_reduction import with_larger_k
from vstatkit.ensemble.growth import MAX_B, Size
from vstatkit.exceptions import MonteCarloWarning, VstatkitWarning
from vstatkit.inference.stopping import TOL, round_up
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import IidDesign, SubsampleDesign
from vstatkit.sampling.grouped_learners import N_SHARDS, ShardsDesign
from vstatkit.sampling.registry import build_design, ensemble_size, subsample_size
from vstatkit.sampling.streams import resolve_seed
from vstatkit.variance.registry import ESTIMATORS, large_k_warning, resolve_for_design

AUTO = "auto"  # name of the design that `choose_design` chooses
# Monte Carlo error of a jackknife variance, relative to it, that is too much.
MOST_ERROR = 0.5
# Shards that are worth choosing: a standard error is then known to 16 %.
FEWEST_SHARDS = 20
# Learners that "auto" grows where no feasible number gives standard errors: the
# estimates themselves are then known well.
ESTIMATE_B = 512


class SamplingPlan(NamedTuple):
    """How subsamples are drawn, and how their variance is estimated."""

    design: SubsampleDesign  # which units each learner sees
    size: Size  # number of learners, "auto" or "complete"
    variance: str  # name of the variance estimator


def jackknife_error(n: int, B: float, ratio: float) -> float:
    """Predict the Monte Carlo error of a jackknife variance of n units, relative to it.

    Notes
    -----
    Each of n squared influences carries noise of variance `s2 = k/n zeta_k / B`, and
    the noise of their sum is `sqrt(2 n) s2`; the sum is `k**2/n zeta_1`. The `ratio` is
    `zeta_k / (k zeta_1)`.
    """
    return float(np.sqrt(2 * n) * ratio / B)


def jackknife_learners(n: int, ratio: float) -> float:
    """Predict the learners that make a jackknife's standard error known to `TOL`."""
    return jackknife_error(n, 1.0, ratio) / (2 * TOL)


def plan_sampling(
    n: int,
    kind: KernelKind,
    *,
    design: str,
    k: int | float | None,
    B: int | str,
    replace: bool,
    rng: Seed,
    variance: str,
    max_B: int,
    options: dict[str, Any],
    larger_k: bool = False,
) -> SamplingPlan:
    """Resolve the sampling arguments of `fit`, for n units.

    The `options` are those of the design. With `larger_k` the default `k` is the larger
    one that reduces bias.
    """
    size = ensemble_size(B)
    name, chosen_options = choose_design(
        n,
        kind,
        design=design,
        k=k,
        size=size,
        variance=variance,
        max_B=max_B,
        options=options,
    )
    if design == AUTO and name == IidDesign.name and size == "auto":
        error = jackknife_error(n, _feasible_learners(size, max_B), kind.typical_ratio)
        size = ESTIMATE_B if _is_hard(error, size, variance, options) else size
    chose_shards = design == AUTO and name == ShardsDesign.name
    drawn, planned = build_design(
        name,
        n,
        k,
        "auto" if chose_shards else size,
        replace=replace,
        seed=resolve_seed(rng),
        options=chosen_options,
    )
    if isinstance(drawn, ShardsDesign) and chose_shards:
        planned = _round_to_shards(drawn, size) if isinstance(size, int) else size
    if larger_k and k is None:
        drawn = with_larger_k(drawn)
    method = resolve_for_design(variance, drawn, kind)
    warning = large_k_warning(method, drawn, kind)
    if warning:
        warnings.warn(warning, VstatkitWarning, stacklevel=3)
    return SamplingPlan(drawn, planned, method)


def choose_design(
    n: int,
    kind: KernelKind,
    *,
    design: str = AUTO,
    k: int | float | None = None,
    size: Size = "auto",
    variance: str = AUTO,
    max_B: int = MAX_B,
    options: dict[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Choose the name of the design, and its options; see `plan_sampling`.

    They are shards if a name or an option asks for them, or if a jackknife of all
    feasible learners would be too noisy and a shard has room for the given `k`;
    independent subsamples otherwise. The default `k` is never reduced, because that
    would change what is estimated.
    """
    options = {} if options is None else options
    feasible = _feasible_learners(size, max_B)
    error = jackknife_error(n, feasible, kind.typical_ratio)
    estimator = ESTIMATORS.get(variance)
    by_group = estimator is not None and estimator.source == "groups"
    noisy = error > MOST_ERROR and size != "complete" and not by_group
    if design != AUTO:
        if noisy and design in (IidDesign.name, "balanced"):
            _warn_of_jackknife(n, kind, feasible, error)
        return design, options
    if variance == ShardsDesign.name or "n_shards" in options:
        return ShardsDesign.name, options
    if not _is_hard(error, size, variance, options):
        if noisy:
            _warn_of_jackknife(n, kind, feasible, error)
        return IidDesign.name, options
    n_shards = 0 if k is None else min(N_SHARDS, n // subsample_size(k, n))
    if n_shards >= FEWEST_SHARDS:
        return ShardsDesign.name, {"n_shards": n_shards}
    _warn_of_no_errors(n, kind, k, size)
    return IidDesign.name, options


def _feasible_learners(size: Size, max_B: int) -> int:
    """Count the learners that are feasible, whether or not they were requested."""
    return max(MAX_B, size if isinstance(size, int) else max_B)


def _is_hard(error: float, size: Size, variance: str, options: dict[str, Any]) -> bool:
    """Whether standard errors are not feasible, and no jackknife was requested."""
    free = variance in (AUTO, "corrected") and size != "complete"
    return error > MOST_ERROR and free and not options


def _round_to_shards(design: ShardsDesign, B: int) -> int:
    """Round a number of learners that was meant for another design, with a warning."""
    rounded = design.round_size(B, at_most=max(2 * B, 2 * design.n_shards))
    if rounded != B:
        warnings.warn(
            f"design='shards' was chosen, and B = {B} rounded up to {rounded}, so "
            f"that each of {design.n_shards} shards has as many learners.",
            VstatkitWarning,
            stacklevel=4,
        )
    return rounded


def _warn_of_no_errors(
    n: int, kind: KernelKind, k: int | float | None, requested: Size
) -> None:
    """Warn that the standard errors are noise, and name the two alternatives."""
    needed = round_up(jackknife_learners(n, kind.typical_ratio))
    size = f"{ESTIMATE_B} learners" if requested == "auto" else f"B = {requested:,}"
    warnings.warn(
        f"standard errors of {n:,} units at k = {subsample_size(k, n):,} would need "
        f"about {needed} learners. The fit has {size}: the estimates can be used, but "
        "their standard errors are mostly Monte Carlo noise. Use a smaller `k` (up to "
        f"n / {FEWEST_SHARDS} = {n // FEWEST_SHARDS:,}), or design='shards' (k up to "
        f"n / {N_SHARDS} = {n // N_SHARDS:,}). Both estimate the mean of learners of "
        "that size, which have more bias.",
        MonteCarloWarning,
        stacklevel=5,
    )


def _warn_of_jackknife(n: int, kind: KernelKind, learners: int, error: float) -> None:
    """Warn of estimators that compare learners with and without single units."""
    needed = jackknife_learners(n, kind.typical_ratio)
    warnings.warn(
        f"with {n:,} units and {learners:,} learners the Monte Carlo error of the "
        f"variance is predicted to be {error:.0%} of it; a standard error known to "
        f"{TOL:.0%} would need about {round_up(needed)} learners. design='shards' "
        f"needs a few hundred, for `k` up to n / {N_SHARDS}.",
        MonteCarloWarning,
        stacklevel=5,
    )
