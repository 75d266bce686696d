"""Variance components: the registry of estimators and their dispatch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints, Labels
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.formulas import (
    centred_pairs,
    grouped_monte_carlo,
    jackknife_after_bootstrap,
    little_bags,
    matched_pairs,
    noise_variance,
    positive_mean,
    zeta_1_bm,
    zeta_1_corrected_u,
    zeta_1_corrected_v,
    zeta_1_corrected_v_simple,
    zeta_1_ij,
    zeta_1_ij_u,
    zeta_1_im,
)
from vstatkit.variance.moments import (
    EnsembleMoments,
    EnsembleSums,
    PresenceMoments,
    moments_from_sums,
    presence_moments,
    sum_ensemble,
)
from vstatkit.variance.orders import (
    HigherOrders,
    KernelKind,
    measure_orders,
    spread_columns,
)

Source = Literal["moments", "presence", "groups"]

LEAST_ABSENT = 4
LEAST_ABSENT_SHARE = 0.1
"""Units that subsamples leave out, and their share, for presence to tell enough."""


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """An estimated variance, split into its parts; nothing is clipped.

    Attributes
    ----------
    method : str
        Name of the estimator.
    zeta_1 : ndarray of shape (m,)
        Variance of a learner's conditional mean given one observation.
    zeta_k : ndarray of shape (m,)
        Variance of a single learner.
    sampling : ndarray of shape (m,)
        `k**2/n * zeta_1`: what remains with infinitely many learners. Negative
        when noise of a small ensemble exceeds it.
    monte_carlo : ndarray of shape (m,)
        `zeta_k / B`: what growing more learners removes.
    total : ndarray of shape (m,)
        `sampling + monte_carlo`.
    mc_se : ndarray of shape (m,)
        Monte Carlo standard error of `total`.
    noise : ndarray of shape (m,) or None
        Monte Carlo variance of one observation's influence, where the estimator
        is a sum of squared influences.
    n : int
        Number of independent units.
    ceiling : ndarray of shape (m,)
        The most that the sampling variance can be, given how much single learners
        vary; infinite where nothing is known.
    concentration : ndarray of shape (m,) or None
        `sum c**4 / (sum c**2)**2` of the influences c, without their noise: one over
        the number of units that matter. It has no unit and no scale.
    orders : HigherOrders or None
        What is known beyond the first order, where the estimator uses it.
    """

    method: str
    zeta_1: Floats
    zeta_k: Floats
    sampling: Floats
    monte_carlo: Floats
    total: Floats
    mc_se: Floats
    noise: Floats | None
    n: int
    ceiling: Floats
    concentration: Floats | None = None
    orders: HigherOrders | None = None

    @property
    def rho(self) -> float | None:
        """`Q_2 / Q_1`, where the estimator goes beyond the first order."""
        return None if self.orders is None else self.orders.rho

    @property
    def rho_se(self) -> float | None:
        """Standard error of `rho`."""
        return None if self.orders is None else self.orders.error

    @property
    def q_1(self) -> Floats | None:
        """The jackknife variance `Q_1 = V_1 + 2 V_2 + 3 V_3 + ...`."""
        return None if self.orders is None else self.sampling / self.orders.factor

    @property
    def q_2(self) -> Floats | None:
        """`Q_2 = V_2 + 3 V_3 + ...`, `rho` times `Q_1`."""
        q_1 = self.q_1
        return None if self.orders is None or q_1 is None else self.orders.rho * q_1

    @classmethod
    def join(cls, parts: Sequence["VarianceComponents"]) -> "VarianceComponents":
        """Put the components of several groups of query points together."""
        joined = {
            name: _join_arrays([getattr(part, name) for part in parts])
            for name in (*COMPONENTS, "noise", "ceiling", "concentration")
        }
        first = parts[0]
        return cls(method=first.method, n=first.n, orders=first.orders, **joined)

    def in_units(self, unit: Floats) -> "VarianceComponents":
        """Scale the components of values that were divided by `unit`, shape (m,).

        What is beyond the range of floating point becomes infinite or zero.
        """
        with np.errstate(over="ignore", under="ignore"):
            scaled: dict[str, Any] = {
                name: None if part is None else part * unit * unit
                for name in (*COMPONENTS, "noise", "ceiling")
                for part in [getattr(self, name)]
            }
        return replace(self, **scaled)

    def to_frame(self, index: Labels | None = None) -> pd.DataFrame:
        """Tabulate the components, one row a query point."""
        frame = pd.DataFrame({name: getattr(self, name) for name in COMPONENTS}, index)
        if self.orders is None:
            return frame
        beyond = {name: getattr(self, name) for name in ("q_1", "q_2", "rho", "rho_se")}
        return frame.assign(**beyond)


COMPONENTS = ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se")
"""Components of every estimator, in the order of the tables."""


def _join_arrays(arrays: Sequence[Any]) -> Any:
    return None if arrays[0] is None else np.concatenate(arrays)


@dataclass(frozen=True)
class Estimator:
    """An entry of the registry.

    Attributes
    ----------
    label : str
        Name in printed tables.
    source : {"moments", "presence", "groups"}
        What it is computed from.
    nonnegative : bool
        Whether it cannot be negative, so that it needs no stabilising.
    replace : bool or None
        The sampling it is valid for; None for both.
    design : str or None
        The design that it needs.
    zeta_1 : callable or None
        `(moments, replace) -> zeta_1` of moment-based estimators.
    inflated : bool
        Whether it is inflated for sampling without replacement.
    beyond : bool
        Whether it goes beyond the first order, by a `rho`.
    """

    label: str
    source: Source = "moments"
    nonnegative: bool = False
    replace: bool | None = None
    design: str | None = None
    zeta_1: Callable[[EnsembleMoments, bool], Floats] | None = None
    inflated: bool = False
    beyond: bool = False


ESTIMATORS: dict[str, Estimator] = {
    "im": Estimator("IM", "groups", nonnegative=True, design="two-level"),
    "bm": Estimator("BM", nonnegative=True, zeta_1=lambda mo, _: zeta_1_bm(mo)),
    "ij": Estimator("IJ", nonnegative=True, zeta_1=lambda mo, _: zeta_1_ij(mo)),
    "ij_u": Estimator(
        "IJ-U",
        zeta_1=lambda mo, replace: zeta_1_ij_u(mo, replace=replace),
        inflated=True,
    ),
    "jackknife": Estimator("J-U", "presence"),
    "hoeffding": Estimator("Hoeffding", "presence", beyond=True),
    "corrected_v": Estimator(
        "corrected-V", replace=True, zeta_1=lambda mo, _: zeta_1_corrected_v(mo)
    ),
    "corrected_v_simple": Estimator(
        "corrected-V (simple)",
        replace=True,
        zeta_1=lambda mo, _: zeta_1_corrected_v_simple(mo),
    ),
    "corrected_u": Estimator(
        "corrected-U",
        replace=False,
        zeta_1=lambda mo, _: zeta_1_corrected_u(mo),
        inflated=True,
    ),
    "little_bags": Estimator(
        "little bags", "groups", nonnegative=True, design="little-bags"
    ),
    "matched": Estimator("matched pairs", "groups", replace=False, design="matched"),
}
"""Estimators by name."""


GROUPED_DESIGNS: dict[str, str] = {
    estimator.design: name
    for name, estimator in ESTIMATORS.items()
    if estimator.design is not None
}
"""The estimator that a design of groups was made for."""


def resolve_method(
    method: str,
    *,
    replace: bool,
    design: str,
    k: int,
    n: int,
    complete: bool = False,
    grouped: bool = False,
    n_absent: float = 0.0,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> str:
    """Name the estimator meant, or say why it does not apply.

    Parameters
    ----------
    method : str
        A key of `ESTIMATORS`; "auto": what holds for the kernel, the design and k;
        or "corrected": the paper's estimator that fits the sampling, or the one
        that a design of groups was made for.
    replace : bool
        Sampling with replacement.
    design : str
        Name of the subsample design; "given" may carry any groups.
    k, n : int
        Subsample size and number of units.
    complete : bool
        Whether all subsamples were evaluated.
    grouped : bool
        Whether learners were drawn in groups, so that they depend on each other.
    n_absent : float
        Units that a subsample leaves out, on average.
    kind : KernelKind
        How the kernel depends on its observations.
    """
    if method == "auto":
        tells = n_absent >= max(LEAST_ABSENT, LEAST_ABSENT_SHARE * n)
        beyond = tells and kind != KernelKind.SMOOTH
        alone = not complete and not grouped and design not in GROUPED_DESIGNS
        method = "hoeffding" if beyond and alone else "corrected"
    if method == "corrected":
        plain = "corrected_v" if replace else "corrected_u"
        method = GROUPED_DESIGNS.get(design, plain)
    if method not in ESTIMATORS:
        names = ", ".join(map(repr, ["auto", "corrected", *ESTIMATORS]))
        raise ValueError(f"`variance` must be one of {names}; got {method!r}.")
    estimator = ESTIMATORS[method]
    if estimator.replace is not None and estimator.replace != replace:
        fitting = "corrected_v" if replace else "corrected_u"
        way = "with" if estimator.replace else "without"
        raise ValueError(
            f"`variance={method!r}` assumes sampling {way} replacement; this design "
            f"has `replace={replace}`. Use {fitting!r}."
        )
    if estimator.design is not None and design not in (estimator.design, "given"):
        raise ValueError(
            f"`variance={method!r}` needs `design={estimator.design!r}`; "
            f"this design is {design!r}. Refit with that design, or use 'corrected'."
        )
    if grouped and estimator.source != "groups":
        raise ValueError(_not_for_groups(method, design))
    if estimator.inflated and not replace and k >= n:
        raise ValueError(
            f"`variance={method!r}` needs k < n without replacement, where subsamples "
            f"differ; got k = n = {n}. Use a smaller `k`, or `replace=True`."
        )
    if complete and estimator.source == "groups":
        raise ValueError(f"`variance={method!r}` does not apply to `B='complete'`.")
    return method


def _not_for_groups(method: str, design: str) -> str:
    """Say which estimator fits learners that were drawn in groups."""
    assumes = (
        f"`variance={method!r}` assumes learners drawn independently of each other; "
        "here they come in groups, which would bias it."
    )
    if design in GROUPED_DESIGNS:
        return f"{assumes} Use {GROUPED_DESIGNS[design]!r}, or refit with design='iid'."
    names = ", ".join(map(repr, GROUPED_DESIGNS.values()))
    return (
        f"{assumes} Use the one of {names} that the groups were drawn for, or give "
        "one learner of each group, without `groups`."
    )


def moment_sampling(method: str, moments: EnsembleMoments, *, replace: bool) -> Floats:
    """Estimate the sampling variance (m,), or covariance of joint moments."""
    zeta_1 = ESTIMATORS[method].zeta_1
    if zeta_1 is None:
        raise ValueError(f"{method!r} is not computed from moments.")
    return moments.size**2 / moments.n * zeta_1(moments, replace)


def moment_components(
    method: str, moments: EnsembleMoments, *, replace: bool
) -> VarianceComponents:
    """Estimate the components from moments, by a moment-based estimator."""
    n, k = moments.n, moments.size
    sampling = moment_sampling(method, moments, replace=replace)
    inflated = ESTIMATORS[method].inflated and not replace
    inflation = (n / (n - k)) ** 2 if inflated else 1.0
    noise = inflation * moments.count_variance * moments.monte_carlo
    return VarianceComponents(
        method=method,
        zeta_1=n / k**2 * sampling,
        zeta_k=moments.zeta_k,
        sampling=sampling,
        monte_carlo=moments.monte_carlo,
        total=sampling + moments.monte_carlo,
        mc_se=np.sqrt(noise_variance(sampling, noise, n)),
        noise=noise,
        n=n,
        ceiling=_ceiling(noise, moments.n_learners, n, complete=moments.complete),
        concentration=moment_concentration(moments),
    )


def presence_components(
    method: str,
    presence: PresenceMoments,
    *,
    k: int,
    n: int,
    complete: bool = False,
    orders: HigherOrders | None = None,
) -> VarianceComponents:
    """Estimate the components by the jackknife after bootstrap.

    Parameters
    ----------
    method : {"jackknife", "hoeffding"}
        Name of the estimator.
    presence : PresenceMoments
        Of sums taken with indicators for counts.
    k, n : int
        Subsample size and number of units.
    complete : bool
        Whether every subsample was evaluated.
    orders : HigherOrders or None
        What the variance is divided by for orders beyond the first.
    """
    B, q = presence.n_learners, presence.absent
    factor = 1.0 if orders is None else orders.factor
    zeta_k = presence.squares / (B - 1)
    monte_carlo = zeta_k * 0.0 if complete else zeta_k / B
    sampling = factor * jackknife_after_bootstrap(presence, complete=complete)
    # What the learners without an observation differ by is one influence.
    noise = factor * (1 - q) / q * monte_carlo
    ceiling = _ceiling(noise, B, n, complete=complete)
    if not complete:  # nor does a mean vary more than what it is a mean of
        ceiling = np.minimum(ceiling, zeta_k - monte_carlo)
    parts = VarianceComponents(
        method=method,
        zeta_1=n / k**2 * sampling,
        zeta_k=zeta_k,
        sampling=sampling,
        monte_carlo=monte_carlo,
        total=sampling + monte_carlo,
        mc_se=np.sqrt(noise_variance(sampling, noise, n)),
        noise=noise,
        n=n,
        ceiling=ceiling,
        concentration=influence_concentration(
            presence.left_out, presence.quartic, (1 - q) / q * monte_carlo, n
        ),
        orders=orders,
    )
    if orders is None:
        return parts
    common = orders.relative_mc_error * np.maximum(sampling, 0.0)
    return replace(parts, mc_se=np.hypot(parts.mc_se, common))


def group_components(
    method: str,
    values: Floats,
    groups: Ints,
    *,
    k: int,
    n: int,
    redrawn_share: float = 1.0,
) -> VarianceComponents:
    """Estimate the components by an estimator that compares groups of learners.

    Parameters
    ----------
    method : {"im", "little_bags", "matched"}
        Name of the estimator.
    values : ndarray of shape (B, m)
        Kernel values.
    groups : ndarray of shape (B,)
        Group of every learner.
    k, n : int
        Subsample size and number of units.
    redrawn_share : float
        Share of the variance between groups that another draw of them would show.
    """
    G = np.unique(groups).size
    zeta_k = values.var(axis=0, ddof=1)
    monte_carlo = grouped_monte_carlo(values, groups, redrawn_share)
    ceiling = zeta_k
    if method == "im":
        sampling = k**2 / n * zeta_1_im(values, groups)
        mc_se = sampling * np.sqrt(2 / (G - 1))
        ceiling = k / n * zeta_k
    elif method == "little_bags":
        sampling, mc_se = little_bags(values, groups)
    else:
        sampling = matched_pairs(values, groups)
        first, second = centred_pairs(values, groups)
        mc_se = (first * second).std(axis=0, ddof=1) / np.sqrt(G)
    return VarianceComponents(
        method=method,
        zeta_1=n / k**2 * sampling,
        zeta_k=zeta_k,
        sampling=sampling,
        monte_carlo=monte_carlo,
        total=sampling + monte_carlo,
        mc_se=mc_se,
        noise=None,
        n=n,
        ceiling=ceiling,
    )


def group_covariance(
    method: str, values: Floats, groups: Ints, *, k: int, n: int
) -> Floats:
    """Estimate the sampling covariance (m, m) by an estimator that compares groups."""
    if method == "im":
        return k**2 / n * zeta_1_im(values, groups, joint=True)
    if method == "little_bags":
        return little_bags(values, groups, joint=True)[0]
    return matched_pairs(values, groups, joint=True)


def moment_concentration(moments: EnsembleMoments) -> Floats | None:
    """Say how much the covariances with the counts rest on few units."""
    if moments.quartic is None:
        return None
    n, noise = moments.n, moments.count_variance * moments.monte_carlo
    squares = moments.size**2 / n * zeta_1_ij(moments)
    return influence_concentration(squares, moments.quartic, noise, n)


def influence_concentration(
    squares: Floats, fourth: Floats, noise: Floats, n: int
) -> Floats:
    """Say how much the squared influences rest on few units, from 1/n to 1.

    Parameters
    ----------
    squares, fourth : ndarray of shape (m,)
        Sums over units of the second and fourth powers of their influences.
    noise : ndarray of shape (m,)
        Monte Carlo variance of one influence.
    n : int
        Number of units.

    Returns
    -------
    ndarray of shape (m,)
        `sum c**4 / (sum c**2)**2` with the noise taken out of both sums; 1/n where
        all units matter alike, one where a single unit matters.

    Notes
    -----
    Noise of variance s2 in every c adds `6 s2 sum c**2 + 3 n s2**2` to the fourth
    powers and `n s2` to the squares. These may be negative then, and are made
    positive as variances are.
    """
    known = squares - n * noise
    powers = fourth - 6 * noise * known - 3 * n * noise**2
    positive = positive_mean(known, np.sqrt(noise_variance(known, noise, n)))
    alike = np.full_like(positive, 1 / n)
    share = np.divide(powers, positive**2, out=alike, where=positive > 0)
    return np.clip(share, 1 / n, 1.0)


def _ceiling(noise: Floats, B: float, n: int, *, complete: bool) -> Floats:
    """Bound a sum of squared influences by the spread of single learners.

    Notes
    -----
    Influences are covariances with the counts, and counts of different units are
    as good as uncorrelated, so `sum c**2` is at most the variance of a count times
    that of a learner (the share of it that is linear in the counts is what the
    influences see); the noise of one influence is the same product over B.
    """
    if complete:
        return np.full_like(noise, np.inf)
    return noise * (B - 1) * n / (n - 1)


def estimate_components(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> VarianceComponents:
    """Estimate the variance components of an ensemble.

    Parameters
    ----------
    method : str
        A resolved name, see `resolve_method`.
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values.
    orders : HigherOrders, optional
        Beyond the first order, for the estimators that use it; by default measured
        on the values.
    """
    source = ESTIMATORS[method].source
    if source == "groups":
        groups = learner_groups(method, design, len(values))
        return group_components(
            method,
            values,
            groups,
            k=design.k,
            n=design.n,
            redrawn_share=design.redrawn_share(np.unique(groups).size),
        )
    sums = sum_ensemble(design, values, presence=source == "presence")
    orders = known_orders(method, design, values, orders)
    return components_from_sums(method, design, sums, orders)


def components_from_sums(
    method: str,
    design: SubsampleDesign,
    sums: EnsembleSums,
    orders: HigherOrders | None,
) -> VarianceComponents:
    """Estimate the components from sums over learners.

    `sums` are taken with indicators for the estimators that see presence.
    """
    if ESTIMATORS[method].source == "moments":
        moments = moments_from_sums(sums, complete=design.complete)
        return moment_components(method, moments, replace=design.replace)
    return presence_components(
        method,
        presence_moments(sums),
        k=design.k,
        n=design.n,
        complete=design.complete,
        orders=orders,
    )


def known_orders(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> HigherOrders | None:
    """Give what an estimator has to know beyond the first order.

    Measured on the values themselves where it is not given; None for estimators
    that do not use it.
    """
    if not ESTIMATORS[method].beyond:
        return None
    if orders is not None:
        return orders
    columns = spread_columns(values.shape[1])
    return measure_orders(design, len(values), lambda L: values[:L, columns], kind)


def estimate_covariance(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> tuple[Floats, Floats]:
    """Estimate the sampling and the Monte Carlo covariance, each (m, m).

    Nothing is repaired: with few learners the sampling part may be indefinite.
    """
    source = ESTIMATORS[method].source
    if source == "groups":
        groups = learner_groups(method, design, len(values))
        sampling = group_covariance(method, values, groups, k=design.k, n=design.n)
        share = design.redrawn_share(np.unique(groups).size)
        return sampling, grouped_monte_carlo(values, groups, share, joint=True)
    sums = sum_ensemble(design, values, joint=True, presence=source == "presence")
    if source == "presence":
        presence, complete = presence_moments(sums), design.complete
        known = known_orders(method, design, values, orders)
        factor = 1.0 if known is None else known.factor
        sampling = factor * jackknife_after_bootstrap(presence, complete=complete)
        zeta_k = presence.squares / (presence.n_learners - 1)
        return sampling, zeta_k * (0.0 if complete else 1 / presence.n_learners)
    moments = moments_from_sums(sums, complete=design.complete)
    sampling = moment_sampling(method, moments, replace=design.replace)
    return sampling, moments.monte_carlo


def learner_groups(method: str, design: SubsampleDesign, B: int) -> Ints:
    """Give the groups of the learners, checked for the estimator."""
    groups = design.groups(B)
    if groups is None:
        raise ValueError(
            f"{method!r} compares groups of learners; give the group of every "
            "learner as `groups`."
        )
    sizes = np.unique(groups, return_counts=True)[1]
    if sizes.size < 2:
        raise ValueError(f"{method!r} needs at least two groups of learners; got 1.")
    if method == "matched" and np.any(sizes != 2):
        raise ValueError("'matched' needs groups of exactly two learners.")
    if np.any(sizes != sizes[0]) or (method == "little_bags" and sizes[0] < 2):
        raise ValueError(
            f"{method!r} needs groups of one size, at least two learners for "
            f"'little_bags'; got sizes {sizes.min()} to {sizes.max()}."
        )
    return groups
