"""The variance estimators, one short pure function each.

Every function here is linear in the moments, so it serves variances (fields of
shape (m,)) and covariances (fields of shape (m, m)) alike.
"""

import numpy as np
from scipy import special

from vstatkit._typing import Floats, Ints
from vstatkit.variance.moments import EnsembleMoments, PresenceMoments


def zeta_1_bm(moments: EnsembleMoments) -> Floats:
    """Estimate by BM, the variance of the conditional means `m_i`.

    References
    ----------
    Zhou, Mentch and Hooker, section 4.2.
    """
    return moments.between / max(moments.n_seen - 1, 1)  # zero where one was seen


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
    if n >= C:
        raise ValueError(
            "'corrected_v' compares learners that share observations, so B * k must "
            f"exceed the {n} observations drawn; got {C:g}. Raise `B`."
        )
    ss_tau = moments.between_weighted  # erratum: 5.2 prints the unweighted mean
    ss_eps = moments.size * moments.squares - ss_tau
    sigma2_eps = ss_eps / (C - n)
    if n == 1:  # nothing to compare
        return ss_tau * 0.0
    return between_variance(ss_tau, sigma2_eps, N, n, C)


def between_variance(
    ss_tau: Floats, sigma2_eps: Floats, N: Floats, n: int, C: float
) -> Floats:
    """Variance between n observations of an unbalanced one-way ANOVA.

    Parameters
    ----------
    ss_tau : ndarray
        Sum of squares between observations.
    sigma2_eps : ndarray
        Variance within them.
    N : ndarray
        How often each observation was drawn.
    n : int
        Observations that were compared.
    C : float
        All draws, the sum of N.
    """
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


def jackknife_after_bootstrap(presence: PresenceMoments, *, complete: bool) -> Floats:
    """Jackknife over learners that left an observation out, less its bias.

    Parameters
    ----------
    presence : PresenceMoments
        Of sums taken with indicators (observation is in the subsample) for counts.
    complete : bool
        Whether every subsample was evaluated, so that there is no bias.

    Notes
    -----
    `(n-1)/n sum_i (t_i - hbar)**2 - n (1-q)/q v/B` with `t_i` the mean of the
    learners without observation i, q the share of learners without it and v the
    variance of the learners. For bootstrap samples of size n, `(1-q)/q` is
    `e - 1`, the constant of Wager, Hastie and Efron (2014).
    """
    n, B, q = presence.n_left_out, presence.n_learners, presence.absent
    bias = 0.0 if complete else n * (1 - q) / q / B
    return (n - 1) / n * presence.left_out - bias * presence.squares / B


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


def grouped_monte_carlo(
    values: Floats, groups: Ints, redrawn_share: float = 1.0, *, joint: bool = False
) -> Floats:
    """Monte Carlo variance of the mean of learners that come in equal groups.

    Learners of a group depend on each other, so that the variance of their means
    over groups counts, not that of single learners.

    Parameters
    ----------
    values : ndarray of shape (B, m)
        Kernel values.
    groups : ndarray of shape (B,)
        Group of every learner.
    redrawn_share : float
        Share of the variance between groups that another draw of them would show:
        one for independent groups; less for pins, which are drawn without
        replacement from the observations.
    joint : bool
        Whether covariances are wanted.

    Notes
    -----
    The variance over groups of their means is the variance `b` between groups plus
    `w / g`, the variance within them over their size. The mean of G groups has the
    Monte Carlo variance `(share b + w / g) / G`.
    """
    centred = values - values.mean(axis=0)
    means = group_means(centred, groups)
    G, size = len(means), len(values) / len(means)
    spread = _cross(means, means, joint) / (G - 1)
    if redrawn_share == 1.0 or size == 1:
        return spread / G
    squares = _cross(centred, centred, joint) - size * _cross(means, means, joint)
    within = squares / (len(values) - G) / size
    return (redrawn_share * spread + (1 - redrawn_share) * within) / G


def zeta_1_im(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    """Estimate by IM, the variance of the pinned observations' means.

    References
    ----------
    Zhou, Mentch and Hooker, section 4.1; Mentch and Hooker (2016).
    """
    means = group_means(values - values.mean(axis=0), groups)
    means -= means.mean(axis=0)  # erratum: printed without its divisor
    return _cross(means, means, joint) / (len(means) - 1)


def little_bags(
    values: Floats,
    groups: Ints,
    *,
    joint: bool = False,
    centre: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Variance between half-samples, less the noise within, kept positive.

    Parameters
    ----------
    values : ndarray of shape (B, m)
        Kernel values.
    groups : ndarray of shape (B,)
        Half-sample of every learner.
    joint : bool
        Whether covariances are wanted.
    centre : ndarray of shape (m,), optional
        What deviations are taken from; the mean of the values by default.

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
    debiased, scale = bag_moments(values, groups, joint=joint, centre=centre)
    if joint:
        diagonal = np.diag_indices(len(debiased))
        debiased[diagonal] = positive_mean(debiased[diagonal], scale[diagonal])
        return debiased, scale
    return positive_mean(debiased, scale), scale


def bag_moments(
    values: Floats,
    groups: Ints,
    *,
    joint: bool = False,
    centre: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Moment estimate behind `little_bags`, of either sign, and its noise.

    See `little_bags` for the parameters.
    """
    rho = values - (values.mean(axis=0) if centre is None else centre)
    bags = group_means(rho, groups)
    G, g = len(bags), len(values) / len(bags)
    between = _cross(bags, bags, joint) / G
    within = (_cross(rho, rho, joint) / len(rho) - between) / (g - 1)
    return between - within, np.maximum(between, within) * np.sqrt(2 / G)


def matched_pairs(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    """Learners' variance between disjoint subsamples less that over all of them.

    The difference `Vh - Vs` equals the negative mean product of the two centred
    values of a pair.

    References
    ----------
    Xu, Zhu and Shao (2023), arXiv 2202.09008.
    """
    first, second = centred_pairs(values, groups)
    product = _cross(first, second, joint) / len(first)
    return -(product + product.T) / 2 if joint else -product


def centred_pairs(values: Floats, groups: Ints) -> tuple[Floats, Floats]:
    """Split centred values into the first and the second of every pair."""
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
    # phi(z) / Phi(z) by logarithms: both underflow far below zero. Beyond 500 it is
    # not needed, and the rounding of z**2 would overflow.
    near = np.clip(z, -500, 500)
    hazard = np.exp(-(near**2) / 2 - np.log(2 * np.pi) / 2 - special.log_ndtr(near))
    # z + hazard cancels there; -1/z is its expansion, good to 1e-5 at z = -500.
    mean = np.where(z < -500, -1 / np.minimum(z, -1), z + hazard)
    return np.where(known, np.maximum(estimate, 0.0), s * mean)


def noise_variance(sampling: Floats, noise: Floats, n: int) -> Floats:
    """Monte Carlo variance of a sum of n squared influences.

    Each influence carries independent noise of variance `noise`: squaring it
    gives `2 noise**2`, and its product with the influence `4 noise` times the
    squared influence.
    """
    return 2 * n * noise**2 + 4 * noise * np.maximum(sampling, 0.0)
