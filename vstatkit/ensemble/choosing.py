"""Choose a design: where a jackknife would need too many learners, shards do not."""

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np

from vstatkit.ensemble.growth import MAX_B
from vstatkit.exceptions import MonteCarloWarning, VstatkitWarning
from vstatkit.inference.precision import TOL, about
from vstatkit.kernels.kind import KernelKind
from vstatkit.sampling.iid import IidDesign
from vstatkit.sampling.shards import N_SHARDS, ShardsDesign
from vstatkit.variance.registry import ESTIMATORS

AUTO = "auto"
"""The design that is chosen here."""

MOST_ERROR = 0.5
"""Monte Carlo error of a jackknife variance, relative to it, that is too much."""

FEWEST_SHARDS = 20
"""Shards that are worth choosing: a standard error is then known to 16 %."""

TYPICAL_RATIO = {
    KernelKind.SMOOTH: 1.0,
    KernelKind.UNKNOWN: 3.0,
    KernelKind.TREES: 10.0,
}
"""What is typical of `zeta_k / (k zeta_1)`, which is one at least: means and
regressions attain one; 6 to 47 was measured for forests, 4 to 20 for single trees."""


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
        asked = self.size if isinstance(self.size, int) else self.max_B
        return max(MAX_B, asked)


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
        all feasible learners would say little; independent subsamples otherwise.
    """
    shards = ShardsDesign.name
    if wish.design != AUTO:
        _warn_of_jackknife(wish, n, kind)
        return wish.design, options
    if wish.variance == shards or "n_shards" in options:
        return shards, options
    hard = _error(wish, n, kind) > MOST_ERROR
    free = wish.variance in (AUTO, "corrected") and wish.size != "complete"
    if not hard or not free or options:
        _warn_of_jackknife(wish, n, kind)
        return IidDesign.name, options
    G = min(N_SHARDS, n // _size(wish.k, n))
    if G < FEWEST_SHARDS:
        _warn_of_jackknife(wish, n, kind)
        return IidDesign.name, options
    return shards, {"n_shards": G}


def whole_shards(design: ShardsDesign, B: int) -> int:
    """Round a number of learners that was meant for another design, and say so."""
    rounded = design.rounded(B, at_most=max(2 * B, 2 * design.n_shards))
    if rounded != B:
        warnings.warn(
            f"design='shards' was chosen, and B = {B} rounded up to {rounded}, so "
            f"that each of {design.n_shards} shards has as many learners.",
            VstatkitWarning,
            stacklevel=4,
        )
    return rounded


def _size(k: int | float | None, n: int) -> int:
    """Size of a subsample, as far as it was asked for; one where it was not."""
    if k is None:
        return 1
    return max(1, round(k * n)) if isinstance(k, float) else max(1, int(k))


def _error(wish: Wish, n: int, kind: KernelKind) -> float:
    return jackknife_error(n, wish.learners, TYPICAL_RATIO[kind])


def _warn_of_jackknife(wish: Wish, n: int, kind: KernelKind) -> None:
    """Warn of estimators that see the learners of single units, of which few are."""
    asked = ESTIMATORS.get(wish.variance)
    grouped = asked is not None and asked.source == "groups"
    plain = wish.design in (AUTO, IidDesign.name, "balanced") and not grouped
    error = _error(wish, n, kind)
    if not plain or wish.size == "complete" or error <= MOST_ERROR:
        return
    needed = jackknife_learners(n, TYPICAL_RATIO[kind])
    warnings.warn(
        f"with {n:,} units and {wish.learners:,} learners the Monte Carlo error of "
        f"the variance is predicted to be {error:.0%} of it; a standard error known to "
        f"{TOL:.0%} would need about {about(needed)} learners. design='shards' needs "
        f"no more than some hundreds, for `k` up to n / {N_SHARDS}.",
        MonteCarloWarning,
        stacklevel=5,
    )
