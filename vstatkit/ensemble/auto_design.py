"""Choose a design when the user leaves it open."""

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np

from vstatkit.ensemble.growth import MAX_B
from vstatkit.exceptions import MonteCarloWarning, VstatkitWarning
from vstatkit.inference.stopping import TOL, round_up
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.registry import subsample_size
from vstatkit.sampling.shards import N_SHARDS, ShardsDesign
from vstatkit.variance.registry import ESTIMATORS

AUTO = "auto"
"""The design that is chosen here."""

MOST_ERROR = 0.5
"""Monte Carlo error of a jackknife variance, relative to it, that is too much."""

FEWEST_SHARDS = 20
"""Shards that are worth choosing: a standard error is then known to 16 %."""

ESTIMATE_B = 512
"""Learners that "auto" grows where no feasible number gives standard errors: the
estimates themselves are then known well."""


class Wish(NamedTuple):
    """What was asked for, as far as it bears on the design.

    Attributes
    ----------
    design : str
        Name of a design, or "auto".
    variance : str
        Name of a variance estimator, "auto" or "corrected".
    k : int, float or None
        Subsample size, or a fraction.
    size : int, "auto" or "complete"
        Number of learners.
    max_B : int
        Most learners that "auto" may grow.
    """

    design: str
    variance: str
    k: int | float | None
    size: int | Literal["auto", "complete"]
    max_B: int

    @property
    def learners(self) -> int:
        """Learners that are feasible, whether or not they are asked for."""
        requested = self.size if isinstance(self.size, int) else self.max_B
        return max(MAX_B, requested)


def jackknife_error(n: int, B: float, ratio: float) -> float:
    """Predict the Monte Carlo error of a jackknife variance, relative to it.

    Parameters
    ----------
    n : int
        Units.
    B : float
        Learners.
    ratio : float
        `zeta_k / (k zeta_1)`.

    Notes
    -----
    Each of n squared influences carries noise of variance `s2 = k/n zeta_k / B`, and
    the noise of their sum is `sqrt(2 n) s2`; the sum is `k**2/n zeta_1`.
    """
    return float(np.sqrt(2 * n) * ratio / B)


def jackknife_learners(n: int, ratio: float, tol: float = TOL) -> float:
    """Predict the learners that make a jackknife's standard error known to `tol`."""
    return jackknife_error(n, 1.0, ratio) / (2 * tol)


def choose(
    wish: Wish, n: int, kind: KernelKind, options: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Settle the name of the design, and its options.

    Parameters
    ----------
    wish : Wish
        What was asked for.
    n : int
        Units.
    kind : KernelKind
        How the kernel depends on its observations.
    options : dict
        Options of designs.

    Returns
    -------
    name, options
        Shards where they are asked for by a name or an option, or where a jackknife of
        all feasible learners would say little and a shard has room for the `k` that
        was asked for; independent subsamples otherwise. The default `k` is never made
        smaller: that would change what is estimated.
    """
    shards = ShardsDesign.name
    if wish.design != AUTO:
        _warn_of_jackknife(wish, n, kind)
        return wish.design, options
    if wish.variance == shards or "n_shards" in options:
        return shards, options
    if not _is_hard(wish, n, kind, options):
        _warn_of_jackknife(wish, n, kind)
        return IidDesign.name, options
    G = 0 if wish.k is None else min(N_SHARDS, n // subsample_size(wish.k, n))
    if G >= FEWEST_SHARDS:
        return shards, {"n_shards": G}
    _warn_of_no_errors(wish, n, kind)
    return IidDesign.name, options


def feasible_size(
    wish: Wish, n: int, kind: KernelKind, name: str, options: dict[str, Any]
) -> int | Literal["auto", "complete"]:
    """Say how many learners are grown; see `choose` for the parameters.

    Where a jackknife of all feasible learners would say little, "auto" grows as many
    as the estimates need.
    """
    left = wish.design == AUTO and name == IidDesign.name and wish.size == "auto"
    return ESTIMATE_B if left and _is_hard(wish, n, kind, options) else wish.size


def _is_hard(wish: Wish, n: int, kind: KernelKind, options: dict[str, Any]) -> bool:
    """Whether standard errors are not feasible, and nobody asked for a jackknife."""
    free = wish.variance in (AUTO, "corrected") and wish.size != "complete"
    return _error(wish, n, kind) > MOST_ERROR and free and not options


def whole_shards(design: ShardsDesign, B: int) -> int:
    """Round a number of learners that was meant for another design, and say so."""
    rounded = design.round_size(B, at_most=max(2 * B, 2 * design.n_shards))
    if rounded != B:
        warnings.warn(
            f"design='shards' was chosen, and B = {B} rounded up to {rounded}, so "
            f"that each of {design.n_shards} shards has as many learners.",
            VstatkitWarning,
            stacklevel=4,
        )
    return rounded


def _error(wish: Wish, n: int, kind: KernelKind) -> float:
    return jackknife_error(n, wish.learners, kind.typical_ratio)


def _warn_of_no_errors(wish: Wish, n: int, kind: KernelKind) -> None:
    """Say that there are estimates, but no standard errors, and the two ways out."""
    needed = round_up(jackknife_learners(n, kind.typical_ratio))
    grown = f"{ESTIMATE_B} learners" if wish.size == "auto" else f"B = {wish.size:,}"
    size = subsample_size(wish.k, n)
    warnings.warn(
        f"standard errors of {n:,} units at k = {size:,} would need about {needed} "
        f"learners. The fit has {grown}: the estimates can be used, but their "
        "standard errors are mostly Monte Carlo noise. There are two ways out: a "
        f"smaller `k` (up to n / {FEWEST_SHARDS} = {n // FEWEST_SHARDS:,}), or "
        f"design='shards' (k up to n / {N_SHARDS} = {n // N_SHARDS:,}). Both estimate "
        "the mean of learners of that size, which have more bias.",
        MonteCarloWarning,
        stacklevel=5,
    )


def _warn_of_jackknife(wish: Wish, n: int, kind: KernelKind) -> None:
    """Warn of estimators that see the learners of single units, of which few are."""
    estimator = ESTIMATORS.get(wish.variance)
    grouped = estimator is not None and estimator.source == "groups"
    plain = wish.design in (AUTO, IidDesign.name, "balanced") and not grouped
    error = _error(wish, n, kind)
    if not plain or wish.size == "complete" or error <= MOST_ERROR:
        return
    needed = jackknife_learners(n, kind.typical_ratio)
    warnings.warn(
        f"with {n:,} units and {wish.learners:,} learners the Monte Carlo error of "
        f"the variance is predicted to be {error:.0%} of it; a standard error known to "
        f"{TOL:.0%} would need about {round_up(needed)} learners. design='shards' "
        f"needs no more than some hundreds, for `k` up to n / {N_SHARDS}.",
        MonteCarloWarning,
        stacklevel=5,
    )
