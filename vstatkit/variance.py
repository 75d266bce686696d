"""The variance estimators, one short pure function each, and their registry.

Every function here is linear in the moments, so it serves variances (fields of
shape (m,)) and covariances (fields of shape (m, m)) alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from vstatkit._typing import Floats, Ints, Labels
from vstatkit.moments import (
    EnsembleMoments,
    EnsembleSums,
    moments_from_sums,
    sum_ensemble,
)
from vstatkit.subsample import SubsampleDesign

Source = Literal["moments", "presence", "groups"]


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
    quartic : ndarray of shape (m,) or None
        Sum of the fourth powers of the influences, on the same scale.
    n : int
        Number of independent units.
    """

    method: str
    zeta_1: Floats
    zeta_k: Floats
    sampling: Floats
    monte_carlo: Floats
    total: Floats
    mc_se: Floats
    noise: Floats | None
    quartic: Floats | None
    n: int

    def to_frame(self, index: Labels | None = None) -> pd.DataFrame:
        """Tabulate the components, one row a query point."""
        columns = ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, index)


def zeta_1_bm(moments: EnsembleMoments) -> Floats:
    """Balanced method: the variance of the conditional means `m_i`.

    References
    ----------
    Zhou, Mentch and Hooker, section 4.2.
    """
    return moments.between / (moments.n_seen - 1)


def zeta_1_ij(moments: EnsembleMoments) -> Floats:
    """Infinitesimal jackknife, rescaled from a variance to `zeta_1`.

    References
    ----------
    Zhou, Mentch and Hooker, section 4.3.
    """
    return moments.n / moments.size**2 * moments.jackknife


def zeta_1_ij_u(moments: EnsembleMoments, *, replace: bool) -> Floats:
    """Infinitesimal jackknife less its Monte Carlo bias.

    Without replacement it is inflated by `(n / (n - k))**2`. This is what R's
    ranger computes before calibration.

    References
    ----------
    Wager, Hastie and Efron (2014), Journal of Machine Learning Research 15.
    """
    n, k, B = moments.n, moments.size, moments.n_learners
    population = moments.monte_carlo * (B - 1) / B
    bias = n * moments.count_variance * population
    inflation = 1.0 if replace else (n / (n - k)) ** 2
    return n / k**2 * inflation * (moments.jackknife - bias)


def zeta_1_corrected_v(moments: EnsembleMoments) -> Floats:
    """Between-observation variance of an unbalanced one-way ANOVA.

    References
    ----------
    Zhou, Mentch and Hooker, section 5.2 and appendix C.
    """
    if moments.complete:
        return zeta_1_bm(moments)
    N, n = moments.appearances, moments.n_seen
    C = moments.n_learners * moments.size
    if C <= n:
        raise ValueError(
            "'corrected_v' compares learners that share observations, so B * k must "
            f"exceed the {n} observations drawn; got {C:g}. Raise `B`."
        )
    ss_tau = moments.between_weighted  # erratum: 5.2 prints the unweighted mean
    ss_eps = moments.size * moments.squares - ss_tau
    sigma2_eps = ss_eps / (C - n)
    return (ss_tau - (n - 1) * sigma2_eps) / (C - N @ N / C)


def zeta_1_corrected_v_simple(moments: EnsembleMoments) -> Floats:
    """Balanced method less its leading Monte Carlo bias.

    References
    ----------
    Zhou, Mentch and Hooker, appendix D.
    """
    return zeta_1_bm(moments) - moments.n / moments.size * moments.monte_carlo


def zeta_1_corrected_u(moments: EnsembleMoments) -> Floats:
    """Balanced method corrected for sampling without replacement.

    References
    ----------
    Zhou, Mentch and Hooker, appendix E.
    """
    n, k = moments.n, moments.size
    bias = (n - k) / k * moments.monte_carlo
    return n * (n - 1) / (n - k) ** 2 * (zeta_1_bm(moments) - bias)


def jackknife_after_bootstrap(presence: EnsembleSums, *, complete: bool) -> Floats:
    """Jackknife over learners that left an observation out, less its bias.

    Parameters
    ----------
    presence : EnsembleSums
        Sums taken with indicators (observation is in the subsample) for counts.
    complete : bool
        Whether every subsample was evaluated, so that there is no bias.

    Notes
    -----
    `(n-1)/n sum_i (t_i - hbar)**2 - n (1-q)/q v/B` with `t_i` the mean of the
    learners without observation i, q the share of learners without it and v the
    variance of the learners. For bootstrap samples of size n, `(1-q)/q` is
    `e - 1`, the constant of Wager, Hastie and Efron (2014).
    """
    B, joint = presence.n_learners, presence.squares.ndim == 2
    without = B - presence.appearances
    seen = without > 0.5
    if not seen.any():
        raise ValueError(
            "'jackknife' needs learners that left an observation out; here every "
            "subsample holds every observation. Use a smaller `k`."
        )
    shift = presence.total / B
    t = (presence.total - presence.weighted[seen]) / without[seen, None] - shift
    n = int(seen.sum())
    outer = np.multiply.outer(presence.total, shift)
    v = (presence.squares - (outer if joint else presence.total * shift)) / B
    q = float(without[seen].mean() / B)
    bias = 0.0 if complete else n * (1 - q) / q / B
    return (n - 1) / n * _cross(t, t, joint) - bias * v


def _cross(a: Floats, b: Floats, joint: bool) -> Floats:
    """Sum of products over rows: of each column with itself, or of all pairs."""
    return a.T @ b if joint else np.einsum("ij,ij->j", a, b)


def group_means(values: Floats, groups: Ints) -> Floats:
    """Average the learners of each group, shape (G, m)."""
    _, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    sums = np.zeros((sizes.size, values.shape[1]))
    np.add.at(sums, member, values)
    return sums / sizes[:, None]


def zeta_1_im(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    """Internal method: the variance of the pinned observations' means.

    References
    ----------
    Zhou, Mentch and Hooker, section 4.1; Mentch and Hooker (2016).
    """
    means = group_means(values - values.mean(axis=0), groups)
    means -= means.mean(axis=0)  # erratum: printed without its divisor
    return _cross(means, means, joint) / (len(means) - 1)


def little_bags(
    values: Floats, groups: Ints, *, joint: bool = False
) -> tuple[Floats, Floats]:
    """Variance between half-samples, less the noise within, kept positive.

    Returns
    -------
    variance, scale : ndarray
        Posterior mean under a flat prior on positive values (the moment estimate
        itself off the diagonal), and the scale of the noise.

    Notes
    -----
    What grf reports, without its absolute threshold of 1e-10: that one makes
    the answer depend on the units of the response.

    References
    ----------
    Athey, Tibshirani and Wager (2019), Annals of Statistics 47.
    """
    rho = values - values.mean(axis=0)
    bags = group_means(rho, groups)
    G, g = len(bags), len(values) / len(bags)
    between = _cross(bags, bags, joint) / G
    within = (_cross(rho, rho, joint) / len(rho) - between) / (g - 1)
    debiased = between - within
    scale = np.maximum(between, within) * np.sqrt(2 / G)
    if joint:
        diagonal = np.diag_indices(len(debiased))
        debiased[diagonal] = positive_mean(debiased[diagonal], scale[diagonal])
        return debiased, scale
    return positive_mean(debiased, scale), scale


def matched_pairs(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    """Learners' variance between disjoint subsamples less that over all of them.

    The difference `Vh - Vs` equals the negative mean product of the two centred
    values of a pair.

    References
    ----------
    Xu, Zhu and Shao (2023), arXiv 2202.09008.
    """
    first, second = _pairs(values, groups)
    product = _cross(first, second, joint) / len(first)
    return -(product + product.T) / 2 if joint else -product


def _pairs(values: Floats, groups: Ints) -> tuple[Floats, Floats]:
    order = np.argsort(groups, kind="stable")
    centred = (values - values.mean(axis=0))[order]
    return centred[::2], centred[1::2]


def positive_mean(estimate: Floats, scale: Floats) -> Floats:
    """Mean of a normal law at `estimate` with sd `scale`, given it is positive.

    Parameters
    ----------
    estimate : ndarray
        Unbiased, possibly negative.
    scale : ndarray
        Standard error of the estimate; where it is zero the answer is
        `max(estimate, 0)`.

    Examples
    --------
    >>> positive_mean(np.array([-1.0, 0.0, 9.0]), np.ones(3)).round(4)
    array([0.5251, 0.7979, 9.    ])
    """
    known = scale <= 0
    s = np.where(known, 1.0, scale)
    z = np.where(known, 0.0, estimate / s)
    # phi(z) / Phi(z) by logarithms: both underflow far below zero.
    hazard = np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - special.log_ndtr(z))
    # z + hazard cancels there; -1/z is its expansion, good to 1e-5 at z = -500.
    mean = np.where(z < -500, -1 / np.minimum(z, -1), z + hazard)
    return np.where(known, np.maximum(estimate, 0.0), s * mean)


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
    """

    label: str
    source: Source = "moments"
    nonnegative: bool = False
    replace: bool | None = None
    design: str | None = None
    zeta_1: Callable[[EnsembleMoments, bool], Floats] | None = None
    inflated: bool = False


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
    method: str, *, replace: bool, design: str, k: int, n: int, complete: bool = False
) -> str:
    """Name the estimator meant, or say why it does not apply.

    Parameters
    ----------
    method : str
        A key of `ESTIMATORS`, or "corrected": the estimator that fits the
        sampling, or the one that a design of groups was made for.
    replace : bool
        Sampling with replacement.
    design : str
        Name of the subsample design; "given" may carry any groups.
    k, n : int
        Subsample size and number of units.
    complete : bool
        Whether all subsamples were evaluated.
    """
    if method == "corrected":
        plain = "corrected_v" if replace else "corrected_u"
        method = GROUPED_DESIGNS.get(design, plain)
    if method not in ESTIMATORS:
        names = ", ".join(map(repr, ["corrected", *ESTIMATORS]))
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
    if estimator.inflated and not replace and k >= n:
        raise ValueError(
            f"`variance={method!r}` needs k < n without replacement, where subsamples "
            f"differ; got k = n = {n}. Use a smaller `k`, or `replace=True`."
        )
    if complete and estimator.source == "groups":
        raise ValueError(f"`variance={method!r}` does not apply to `B='complete'`.")
    return method


def moment_components(
    method: str, moments: EnsembleMoments, *, replace: bool
) -> VarianceComponents:
    """Estimate the components from moments, by a moment-based estimator."""
    estimator = ESTIMATORS[method]
    if estimator.zeta_1 is None:
        raise ValueError(f"{method!r} is not computed from moments.")
    n, k = moments.n, moments.size
    zeta_1 = estimator.zeta_1(moments, replace)
    inflation = (n / (n - k)) ** 2 if estimator.inflated and not replace else 1.0
    noise = inflation * moments.count_variance * moments.monte_carlo
    quartic = None if moments.quartic is None else inflation**2 * moments.quartic
    return _components(
        method, zeta_1 * k**2 / n, moments, k=k, n=n, noise=noise, quartic=quartic
    )


def presence_components(
    method: str, presence: EnsembleSums, moments: EnsembleMoments, *, replace: bool
) -> VarianceComponents:
    """Estimate the components by the jackknife after bootstrap."""
    sampling = jackknife_after_bootstrap(presence, complete=moments.complete)
    q = 1 - float(presence.appearances.mean() / presence.n_learners)
    # To first order t_i - hbar is minus the influence of observation i, inflated
    # by 1/q when sampling is without replacement.
    scale = 1.0 if replace else 1 / q**4
    quartic = None if moments.quartic is None else scale * moments.quartic
    return _components(
        method,
        sampling,
        moments,
        k=moments.size,
        n=moments.n,
        noise=(1 - q) / q * moments.monte_carlo,
        quartic=quartic,
    )


def group_components(
    method: str, values: Floats, groups: Ints, *, k: int, n: int
) -> VarianceComponents:
    """Estimate the components by an estimator that compares groups of learners."""
    B, G = len(values), np.unique(groups).size
    zeta_k = values.var(axis=0, ddof=1)
    if method == "im":
        sampling = k**2 / n * zeta_1_im(values, groups)
        mc_se = sampling * np.sqrt(2 / (G - 1))
    elif method == "little_bags":
        sampling, mc_se = little_bags(values, groups)
    else:
        sampling = matched_pairs(values, groups)
        first, second = _pairs(values, groups)
        mc_se = (first * second).std(axis=0, ddof=1) / np.sqrt(G)
    return VarianceComponents(
        method=method,
        zeta_1=n / k**2 * sampling,
        zeta_k=zeta_k,
        sampling=sampling,
        monte_carlo=zeta_k / B,
        total=sampling + zeta_k / B,
        mc_se=mc_se,
        noise=None,
        quartic=None,
        n=n,
    )


def group_covariance(
    method: str, values: Floats, groups: Ints, *, k: int, n: int
) -> Floats:
    """Sampling covariance (m, m) by an estimator that compares groups."""
    if method == "im":
        return k**2 / n * zeta_1_im(values, groups, joint=True)
    if method == "little_bags":
        return little_bags(values, groups, joint=True)[0]
    return matched_pairs(values, groups, joint=True)


def _components(
    method: str,
    sampling: Floats,
    moments: EnsembleMoments,
    *,
    k: int,
    n: int,
    noise: Floats,
    quartic: Floats | None,
) -> VarianceComponents:
    return VarianceComponents(
        method=method,
        zeta_1=n / k**2 * sampling,
        zeta_k=moments.zeta_k,
        sampling=sampling,
        monte_carlo=moments.monte_carlo,
        total=sampling + moments.monte_carlo,
        mc_se=np.sqrt(noise_variance(sampling, noise, n)),
        noise=noise,
        quartic=quartic,
        n=n,
    )


def noise_variance(sampling: Floats, noise: Floats, n: int) -> Floats:
    """Monte Carlo variance of a sum of n squared influences.

    Each influence carries independent noise of variance `noise`: squaring it
    gives `2 noise**2`, and its product with the influence `4 noise` times the
    squared influence.
    """
    return 2 * n * noise**2 + 4 * noise * np.maximum(sampling, 0.0)


def estimate_components(
    method: str, design: SubsampleDesign, values: Floats
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
    """
    source = ESTIMATORS[method].source
    if source == "groups":
        groups = learner_groups(method, design, len(values))
        return group_components(method, values, groups, k=design.k, n=design.n)
    moments = moments_from_sums(sum_ensemble(design, values), complete=design.complete)
    if source == "presence":
        presence = sum_ensemble(design, values, presence=True)
        return presence_components(method, presence, moments, replace=design.replace)
    return moment_components(method, moments, replace=design.replace)


def estimate_covariance(
    method: str, design: SubsampleDesign, values: Floats
) -> tuple[Floats, Floats]:
    """Estimate the sampling and the Monte Carlo covariance, each (m, m).

    Nothing is repaired: with few learners the sampling part may be indefinite.
    """
    source = ESTIMATORS[method].source
    if source == "groups":
        groups = learner_groups(method, design, len(values))
        sampling = group_covariance(method, values, groups, k=design.k, n=design.n)
        return sampling, np.atleast_2d(np.cov(values.T)) / len(values)
    sums = sum_ensemble(design, values, joint=True)
    moments = moments_from_sums(sums, complete=design.complete)
    if source == "presence":
        presence = sum_ensemble(design, values, presence=True, joint=True)
        sampling = jackknife_after_bootstrap(presence, complete=design.complete)
        return sampling, moments.monte_carlo
    components = moment_components(method, moments, replace=design.replace)
    return components.sampling, components.monte_carlo


def learner_groups(method: str, design: SubsampleDesign, B: int) -> Ints:
    """Groups of the learners, checked for the estimator that compares them."""
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
