"""Methods compared in simulations: variance estimates and intervals of one ensemble."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.estimates import ensemble_mean, stabilise
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.studies.experiment import Record
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.formulas import between_variance
from vstatkit.variance.higher_orders import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.moments import (
    EnsembleMoments,
    EnsembleSums,
    moments_from_sums,
    sum_ensemble,
)
from vstatkit.variance.registry import ESTIMATORS, estimate_components, moment_estimator


@dataclass(frozen=True)
class Prefix:
    """The first B learners of an ensemble."""

    design: SubsampleDesign
    values: Floats  # (B, m)
    origin: Floats  # sums are taken about it; the same for all prefixes
    shorter: "Prefix | None"  # the next shorter prefix, whose sums are extended
    # Values that effects beyond the first order are estimated from; default: `values`
    reference: Floats | None = None
    kind: KernelKind = KernelKind.UNKNOWN

    @property
    def n_learners(self) -> int:
        """Number B of learners."""
        return len(self.values)

    @property
    def mean(self) -> Floats:
        """The ensemble's estimates, `hbar`."""
        return ensemble_mean(self.design, self.values)

    @property
    def _start(self) -> int:
        return 0 if self.shorter is None else self.shorter.n_learners

    @cached_property
    def sums(self) -> EnsembleSums:
        """Sums with the counts of each observation."""
        start = self._start
        part = sum_ensemble(
            self.design, self.values[start:], start=start, origin=self.origin
        )
        return part if self.shorter is None else self.shorter.sums + part

    @cached_property
    def presence(self) -> EnsembleSums:
        """Sums of `h` and `h**2` about `origin`, with each observation counted once."""
        h = self.values[self._start :] - self.origin
        part = sum_ensemble(
            self.design,
            np.concatenate([h, h**2], axis=1),
            start=self._start,
            origin=np.zeros(2 * self.origin.size),
            presence=True,
        )
        return part if self.shorter is None else self.shorter.presence + part

    @cached_property
    def orders(self) -> HigherOrders:
        """Variance components beyond the first order, estimated as by `fit`."""
        reference = self.values if self.reference is None else self.reference
        columns = reference[:, spread_columns(reference.shape[1])]
        B = self.n_learners
        return measure_orders(self.design, B, lambda L: columns[:L], self.kind)

    @cached_property
    def moments(self) -> EnsembleMoments:
        """Moments for the moment-based estimators."""
        return moments_from_sums(self.sums)


def build_prefixes(
    design: SubsampleDesign,
    values: Floats,
    sizes: Sequence[int],
    *,
    reference: Floats | None = None,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> list[Prefix]:
    """Build the prefixes of an ensemble with increasing numbers of learners."""
    if not sizes or any(a >= b for a, b in pairwise([0, *sizes])):
        raise ValueError(f"`sizes` must be increasing and positive; got {sizes!r}.")
    origin = values[: sizes[0]].mean(axis=0)
    prefixes: list[Prefix] = []
    for size in sizes:
        shorter = prefixes[-1] if prefixes else None
        prefixes.append(Prefix(design, values[:size], origin, shorter, reference, kind))
    return prefixes


@dataclass(frozen=True)
class DistinctSquares:
    """Sums of squares in which an observation counts once per subsample."""

    appearances: Floats  # (n,), the number D_i of subsamples that contain observation i
    # (m,), `sum_i sum_{b: i in b} (h_b - m_i)**2` with the paper's means `m_i`, which
    # are weighted by appearances
    within: Floats
    within_own: Floats  # the same about the unweighted means of the learners with i
    between_own: Floats  # `sum_i D_i` times the squared deviations of these means


def distinct_squares(prefix: Prefix) -> DistinctSquares:
    """Compute the sums of squares over distinct members."""
    sums, presence = prefix.sums, prefix.presence
    q = prefix.origin.size
    shift = sums.total / sums.n_learners
    D = presence.appearances
    present = presence.weighted[:, :q] - np.multiply.outer(D, shift)
    squares = (
        presence.weighted[:, q:].sum(axis=0)
        - 2 * shift * presence.weighted[:, :q].sum(axis=0)
        + shift**2 * D.sum()
    )
    N = sums.appearances
    m = _means(sums.weighted - np.multiply.outer(N, shift), N)
    own = _means(present, D)
    centre = D @ own / D.sum()
    return DistinctSquares(
        appearances=D,
        within=squares - 2 * np.einsum("ij,ij->j", m, present) + D @ m**2,
        within_own=squares - D @ own**2,
        between_own=D @ (own - centre) ** 2,
    )


def _means(weighted: Floats, appearances: Floats) -> Floats:
    """Divide by the appearances; observations never drawn have deviation zero."""
    N = appearances[:, None]
    return np.divide(weighted, N, out=np.zeros_like(weighted), where=N > 0)


def corrected_ij(prefix: Prefix) -> Floats:
    """Infinitesimal jackknife times `n (n - 1) / (n - k)**2`.

    References
    ----------
    Wager and Athey (2018), Journal of the American Statistical Association 113;
    Zhou, Mentch and Hooker, section 5.1.
    """
    n, k = prefix.moments.n, prefix.moments.size
    return n * (n - 1) / (n - k) ** 2 * prefix.moments.jackknife


def distinct_within(prefix: Prefix) -> Floats:
    """Section 5.2 with `SS_eps` over distinct members, and all else as printed."""
    return _anova(prefix, _sigma2_within(prefix))


def distinct_within_own_size(prefix: Prefix) -> Floats:
    """As `distinct_within`, with the number of distinct members minus n as divisor."""
    squares = distinct_squares(prefix)
    size = squares.appearances.sum() - prefix.moments.n
    return _anova(prefix, squares.within / size)


def distinct_from_ij(prefix: Prefix) -> Floats:
    """Infinitesimal jackknife minus the balanced correction over distinct members.

    `V_IJ - k**2/n * sigma2/r` with `r = B k / n`, equation (5.2)'s special case.
    """
    moments, sigma2 = prefix.moments, _sigma2_within(prefix)
    return moments.jackknife - moments.size / moments.n_learners * sigma2


def distinct_throughout(prefix: Prefix) -> Floats:
    """Section 5.2 with every count replaced by an indicator."""
    moments, squares = prefix.moments, distinct_squares(prefix)
    D, n = squares.appearances, moments.n
    C = D.sum()
    sigma2 = squares.within_own / (C - n)
    zeta_1 = between_variance(squares.between_own, sigma2, D, n, C)
    return np.asarray(moments.size**2 / n * zeta_1)


def _sigma2_within(prefix: Prefix) -> Floats:
    draws = prefix.moments.n_learners * prefix.moments.size
    return distinct_squares(prefix).within / (draws - prefix.moments.n)


def _anova(prefix: Prefix, sigma2: Floats) -> Floats:
    """Estimate as in section 5.2, given its `sigma2_eps`."""
    moments, n = prefix.moments, prefix.moments.n
    N, C = moments.appearances, moments.n_learners * moments.size
    zeta_1 = between_variance(moments.between_weighted, sigma2, N, n, C)
    return moments.size**2 / n * zeta_1


# Sampling variance, `k**2/n * zeta_1`, by name.
VARIANTS: dict[str, Callable[[Prefix], Floats]] = {
    "corrected_ij": corrected_ij,
    "distinct_within": distinct_within,
    "distinct_within_own_size": distinct_within_own_size,
    "distinct_from_ij": distinct_from_ij,
    "distinct_throughout": distinct_throughout,
}


def sampling_variance(method: str, prefix: Prefix) -> Floats:
    """Estimate the sampling variance (m,), without checking that the method applies.

    The paper applies corrected-V to subsamples without replacement, to show that it
    is not valid there.
    """
    if method in VARIANTS:
        return VARIANTS[method](prefix)
    design = prefix.design
    if ESTIMATORS[method].source == "moments":
        return moment_estimator(method).sampling(prefix.moments, replace=design.replace)
    return estimate_components(method, design, prefix.values).sampling


Interval = Literal["normal", "t"]
Measure = Callable[[Prefix], Record]  # a function of an ensemble whose result is saved


@dataclass(frozen=True)
class Method:
    """A variance estimator and the interval based on it."""

    label: str  # name in tables
    sampling: str  # estimator of the sampling variance: of vstatkit, or in `VARIANTS`
    monte_carlo: bool = True  # whether `zeta_k / B` is added
    # "normal" multiplies a normal quantile by the root of the raw variance; "t" is the
    # interval that vstatkit reports, with a stabilised variance and Student's t
    interval: Interval = "normal"


@dataclass(frozen=True)
class Intervals:
    """Measure estimates, variances and half the widths of intervals, by method."""

    methods: tuple[Method, ...]
    alpha: float = 0.05

    @property
    def beyond(self) -> bool:
        """Whether some method needs estimates beyond the first order."""
        names = [m.sampling for m in self.methods if m.sampling in ESTIMATORS]
        return any(ESTIMATORS[name].beyond for name in names)

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        pairs = [self._interval(method, prefix) for method in self.methods]
        variance, half_width = map(np.stack, zip(*pairs, strict=True))
        return {"mean": prefix.mean, "variance": variance, "half_width": half_width}

    def _interval(self, method: Method, prefix: Prefix) -> tuple[Floats, Floats]:
        if method.interval == "t":
            components = _components(method.sampling, prefix)
            estimates = stabilise(prefix.mean, components, prefix.n_learners)
            return estimates.variance, estimates.half_width(self.alpha)
        variance = sampling_variance(method.sampling, prefix)
        if method.monte_carlo:
            variance = variance + learner_variance(prefix) / prefix.n_learners
        # A negative variance has no interval: NaN never covers.
        root = np.sqrt(np.where(variance < 0, np.nan, variance))
        return variance, stats.norm.isf(self.alpha / 2) * root


@dataclass(frozen=True)
class Components:
    """Measure estimates and variance components, by estimator."""

    methods: tuple[str, ...]

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        n, k = prefix.design.n, prefix.design.k
        sampling = np.stack([_estimate_or_nan(name, prefix) for name in self.methods])
        return {
            "mean": prefix.mean,
            "sampling": sampling,
            "zeta_1": n / k**2 * sampling,
            "zeta_k": learner_variance(prefix),
        }


def _estimate_or_nan(method: str, prefix: Prefix) -> Floats:
    # Corrected-V is not defined before some observation has been drawn twice, as
    # happens with the smallest ensembles of quick studies.
    if method == "corrected_v" and prefix.moments.appearances.max() <= 1:
        return np.full(prefix.origin.size, np.nan)
    return sampling_variance(method, prefix)


def learner_variance(prefix: Prefix) -> Floats:
    """Variance of a single learner, `zeta_k`."""
    return np.asarray(prefix.values.var(axis=0, ddof=1))


def _components(method: str, prefix: Prefix) -> VarianceComponents:
    if ESTIMATORS[method].source == "moments":
        replace = prefix.design.replace
        return moment_estimator(method).from_moments(prefix.moments, replace=replace)
    orders = prefix.orders if ESTIMATORS[method].beyond else None
    return estimate_components(method, prefix.design, prefix.values, orders)
