r"""Formulas of the variance estimators and of their Monte Carlo noise.

Every function of moments is linear in them, so it serves variances (fields of
shape (m,)) and covariances (fields of shape (m, m)) alike. The formulas are
written for variances; a covariance has products in place of squares.

In them, :math:`N_{bi}` is the number of times that observation i occurs in
subsample b, :math:`N_i = \sum_b N_{bi}`, and :math:`h_b` is the value of learner b.

.. math::

    \bar h = \frac{1}{B} \sum_b h_b, \qquad
    m_i = \frac{1}{N_i} \sum_b N_{bi} h_b, \qquad
    c_i = \frac{1}{B} \sum_b \Bigl( N_{bi} - \frac{N_i}{B} \Bigr) (h_b - \bar h), \qquad
    \zeta_k = \frac{1}{B - 1} \sum_b (h_b - \bar h)^2 .

The sampling variance is :math:`V = (k^2 / n) \, \zeta_1`. Functions named `zeta_1_...`
return an estimate of :math:`\zeta_1`, the others of :math:`V`. In a complete design,
where there is no Monte Carlo error, every term with :math:`\zeta_k / B` is zero.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from vstatkit._typing import Floats, Ints
from vstatkit.variance.moments import EnsembleMoments, PresenceMoments


def zeta_1_bm(moments: EnsembleMoments) -> Floats:
    r"""Estimate `zeta_1` by BM, the variance of the conditional means `m_i`.

    Notes
    -----
    .. math::

        \hat\zeta_1^{BM} = \frac{1}{n - 1} \sum_i (m_i - \bar m)^2, \qquad
        \bar m = \frac{1}{n} \sum_i m_i ,

    over the n observations that were drawn at least once.

    References
    ----------
    Zhou, Mentch and Hooker (2021), section 4.2. doi:10.48550/arXiv.1912.01089
    """
    return moments.between / max(moments.n_seen - 1, 1)  # zero where one was seen


def zeta_1_ij(moments: EnsembleMoments) -> Floats:
    r"""Estimate `zeta_1` by the infinitesimal jackknife.

    Notes
    -----
    .. math:: \hat\zeta_1^{IJ} = \frac{n}{k^2} \sum_i c_i^2 .

    References
    ----------
    Wager, Hastie and Efron (2014). doi:10.48550/arXiv.1311.4555

    Zhou, Mentch and Hooker (2021), section 4.3. doi:10.48550/arXiv.1912.01089
    """
    return moments.n / moments.size**2 * moments.jackknife


def zeta_1_ij_u(moments: EnsembleMoments, *, replace: bool) -> Floats:
    r"""Estimate `zeta_1` by the infinitesimal jackknife minus its Monte Carlo bias.

    Notes
    -----
    .. math::

        \hat\zeta_1^{IJ\text{-}U} = \frac{n}{k^2} f \Bigl[ \sum_i c_i^2
        - \frac{n v}{B} \, \frac{B - 1}{B} \zeta_k \Bigr], \qquad
        v = \frac{1}{n B} \sum_i \sum_b \Bigl( N_{bi} - \frac{N_i}{B} \Bigr)^2 ,

    with :math:`f = 1` with replacement and :math:`f = (n / (n - k))^2` without. This
    is what R's ranger computes before calibration.

    References
    ----------
    Wager, Hastie and Efron (2014). doi:10.48550/arXiv.1311.4555
    """
    n, k, B = moments.n, moments.size, moments.n_learners
    population = moments.monte_carlo * (B - 1) / B
    bias = n * moments.count_variance * population
    inflation = 1.0 if replace else (n / (n - k)) ** 2
    return n / k**2 * inflation * (moments.jackknife - bias)


def zeta_1_corrected_v(moments: EnsembleMoments) -> Floats:
    r"""Estimate `zeta_1` by an unbalanced one-way analysis of variance.

    Notes
    -----
    Observations are the groups, and a learner belongs to the group of every
    observation that it has drawn, as often as it has drawn it. With :math:`C = B k`,

    .. math::

        \hat\zeta_1^{V} = \frac{SS_\tau - (n - 1) \, SS_\epsilon / (C - n)}
        {C - \sum_i N_i^2 / C}, \quad
        SS_\tau = \sum_i N_i (m_i - \bar h)^2, \quad
        SS_\epsilon = \sum_i \sum_b N_{bi} (h_b - m_i)^2 ,

    over the n observations that were drawn at least once. :math:`\bar h` is the mean
    of the :math:`m_i` weighted by :math:`N_i`. In a complete design this is BM.

    References
    ----------
    Zhou, Mentch and Hooker (2021), section 5.2 and appendix C.
    doi:10.48550/arXiv.1912.01089
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

    They were drawn N times each and C times in all, have the sum of squares `ss_tau`
    between them, and the variance `sigma2_eps` within.
    """
    return (ss_tau - (n - 1) * sigma2_eps) / (C - N @ N / C)


def zeta_1_corrected_v_simple(moments: EnsembleMoments) -> Floats:
    r"""Estimate `zeta_1` by BM minus its leading Monte Carlo bias.

    Notes
    -----
    .. math:: \hat\zeta_1 = \hat\zeta_1^{BM} - \frac{n}{k} \, \frac{\zeta_k}{B} .

    References
    ----------
    Zhou, Mentch and Hooker (2021), appendix D. doi:10.48550/arXiv.1912.01089
    """
    return zeta_1_bm(moments) - moments.n / moments.size * moments.monte_carlo


def zeta_1_corrected_u(moments: EnsembleMoments) -> Floats:
    r"""Estimate `zeta_1` by BM corrected for sampling without replacement.

    Notes
    -----
    .. math::

        \hat\zeta_1^{U} = \frac{n (n - 1)}{(n - k)^2} \Bigl[ \hat\zeta_1^{BM}
        - \frac{n - k}{k} \, \frac{\zeta_k}{B} \Bigr] .

    References
    ----------
    Zhou, Mentch and Hooker (2021), appendix E. doi:10.48550/arXiv.1912.01089
    """
    n, k = moments.n, moments.size
    bias = (n - k) / k * moments.monte_carlo
    return n * (n - 1) / (n - k) ** 2 * (zeta_1_bm(moments) - bias)


def jackknife_after_bootstrap(presence: PresenceMoments, *, complete: bool) -> Floats:
    r"""Estimate the sampling variance from the learners without each observation.

    Parameters
    ----------
    presence : PresenceMoments
        Moments of sums in which counts are replaced by indicators of presence.
    complete : bool
        Whether every subsample was evaluated, so that there is no Monte Carlo bias.

    Notes
    -----
    Let :math:`Z_{bi}` say whether observation i is in subsample b, which has the
    probability p, and :math:`\tilde h_b = h_b - \bar h`. Over pairs of learners,

    .. math::

        \hat V^{J} = \frac{n - 1}{n} \, \frac{B}{(B - 1)(B^2 - 2 B + 2)}
        \sum_{b \ne b'} \tilde h_b \tilde h_{b'} \sum_i
        \frac{(Z_{bi} - p)(Z_{b'i} - p)}{(1 - p)^2} .

    Products of different learners have no Monte Carlo bias, and the factor
    :math:`B^2 / (B^2 - 2 B + 2)` makes up for centring by :math:`\bar h`: given the
    data, the mean over independent subsamples is exactly the value of infinitely many
    learners,

    .. math::

        \frac{n - 1}{n} \sum_i (t_i - \bar h)^2, \qquad
        t_i = E(h_b \mid Z_{bi} = 0) ,

    for any number of learners. It is computed as the sum over all pairs minus the part
    of learners multiplied by themselves,
    :math:`\sum_b \tilde h_b^2 \sum_i (Z_{bi} - p)^2 / (1 - p)^2`. Subsamples that were
    drawn in another way, with unequal probabilities, have the share of the learners
    that hold observation i in place of p; the bias is then of the order V / B.

    References
    ----------
    Efron (1992). doi:10.1111/j.2517-6161.1992.tb01866.x

    Wager, Hastie and Efron (2014). doi:10.48550/arXiv.1311.4555
    """
    n = presence.n_left_out
    if complete:
        return (n - 1) / n * presence.left_out
    return (n - 1) / n * presence.centring * (presence.left_out - presence.own)


def cross_products(a: Floats, b: Floats, *, joint: bool) -> Floats:
    """Sum products over rows: of each column with itself, or of all pairs."""
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
    r"""Estimate the Monte Carlo variance of learners that come in equal groups.

    The learners of a group depend on each other, so what counts is the variance of
    the group means, not that of single learners.

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
    With G groups of g learners, their means :math:`\bar h_j` and the share s,

    .. math::

        \hat M = \frac{1}{G} \Bigl( s\,\hat\beta + \frac{\hat w}{g} \Bigr), \quad
        \hat w = \frac{1}{G (g - 1)} \sum_j \sum_{b \in j} (h_b - \bar h_j)^2, \quad
        \hat\beta = \frac{1}{G - 1} \sum_j (\bar h_j - \bar h)^2 - \frac{\hat w}{g} .

    :math:`\hat\beta` is the variance between groups, and :math:`\hat w` the variance
    within them. With s = 1 this is the variance of the group means over G.
    """
    centred = values - values.mean(axis=0)
    means = group_means(centred, groups)
    G, size = len(means), len(values) / len(means)
    spread = cross_products(means, means, joint=joint) / (G - 1)
    if redrawn_share == 1.0 or size == 1:
        return spread / G
    squares = cross_products(centred, centred, joint=joint)
    squares -= size * cross_products(means, means, joint=joint)
    within = squares / (len(values) - G) / size
    return (redrawn_share * spread + (1 - redrawn_share) * within) / G


def zeta_1_im(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    r"""Estimate `zeta_1` by IM, the variance of the means of pinned observations.

    `groups` says which learners share a pin; see `grouped_monte_carlo`.

    Notes
    -----
    With the means :math:`\bar h_j` of the learners of each of G pins,

    .. math::

        \hat\zeta_1^{IM} = \frac{1}{G - 1} \sum_j \Bigl( \bar h_j
        - \frac{1}{G} \sum_l \bar h_l \Bigr)^2 .

    References
    ----------
    Mentch and Hooker (2016). doi:10.48550/arXiv.1404.6473

    Zhou, Mentch and Hooker (2021), section 4.1. doi:10.48550/arXiv.1912.01089
    """
    means = group_means(values - values.mean(axis=0), groups)
    means -= means.mean(axis=0)  # erratum: printed without its divisor
    return cross_products(means, means, joint=joint) / (len(means) - 1)


def little_bags(
    values: Floats, groups: Ints, *, joint: bool = False, centre: Floats | None = None
) -> tuple[Floats, Floats]:
    r"""Estimate the sampling variance by the bootstrap of little bags.

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
        Posterior mean under a flat prior on positive values (off the diagonal: the
        moment estimate itself), and the scale of the noise.

    Notes
    -----
    With G half-samples of g learners each, and :math:`\bar h_j` the mean of the
    learners of half-sample j,

    .. math::

        \hat V = \beta - w, \qquad
        \beta = \frac{1}{G} \sum_j (\bar h_j - \bar h)^2, \qquad
        w = \frac{1}{g - 1} \Bigl[ \frac{1}{G g} \sum_b (h_b - \bar h)^2
        - \beta \Bigr], \qquad
        s = \max(\beta, w) \sqrt{2 / G} ,

    :math:`\bar h` being `centre` where it is given. The answer is `positive_mean` of
    :math:`\hat V` with the scale s. This is what grf reports, without its absolute
    threshold of 1e-10, which makes the answer depend on the unit of the response.

    References
    ----------
    Athey, Tibshirani and Wager (2019). doi:10.1214/18-AOS1709
    """
    debiased, scale = bag_moments(values, groups, joint=joint, centre=centre)
    if joint:
        diagonal = np.diag_indices(len(debiased))
        debiased[diagonal] = positive_mean(debiased[diagonal], scale[diagonal])
        return debiased, scale
    return positive_mean(debiased, scale), scale


def bag_moments(
    values: Floats, groups: Ints, *, joint: bool = False, centre: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute `little_bags` before it is made positive, and its noise."""
    rho = values - (values.mean(axis=0) if centre is None else centre)
    bags = group_means(rho, groups)
    G, g = len(bags), len(values) / len(bags)
    between = cross_products(bags, bags, joint=joint) / G
    within = (cross_products(rho, rho, joint=joint) / len(rho) - between) / (g - 1)
    return between - within, np.maximum(between, within) * np.sqrt(2 / G)


def matched_pairs(values: Floats, groups: Ints, *, joint: bool = False) -> Floats:
    r"""Estimate the sampling variance from pairs of learners on disjoint subsamples.

    `groups` says which learners are a pair; see `grouped_monte_carlo`.

    Notes
    -----
    With the values :math:`h_{j1}` and :math:`h_{j2}` of the two learners of pair j,
    out of G pairs,

    .. math::

        \hat V = V_h - V_s = -\frac{1}{G} \sum_j (h_{j1} - \bar h)(h_{j2} - \bar h),
        \quad
        V_h = \frac{1}{G} \sum_j \frac{(h_{j1} - h_{j2})^2}{2}, \quad
        V_s = \frac{1}{2 G} \sum_j \sum_{l = 1}^{2} (h_{jl} - \bar h)^2 .

    :math:`V_h` is the variance of a learner, from learners that share no observation,
    and :math:`V_s` the variance over all learners, given the data.

    References
    ----------
    Xu, Zhu and Shao (2023). doi:10.48550/arXiv.2202.09008
    """
    first, second = centred_pairs(values, groups)
    product = cross_products(first, second, joint=joint) / len(first)
    return -(product + product.T) / 2 if joint else -product


def centred_pairs(values: Floats, groups: Ints) -> tuple[Floats, Floats]:
    """Split centred values into the first and the second of every pair."""
    order = np.argsort(groups, kind="stable")
    centred = (values - values.mean(axis=0))[order]
    return centred[::2], centred[1::2]


class ShardMoments(NamedTuple):
    """Variances of learners on disjoint shards; q is m, or (m, m) for covariances."""

    n_shards: int  # number G of shards
    per_shard: int  # learners L of each
    between: Floats  # variance `S**2` of the shards' means
    within: Floats  # variance `w` of the learners of one shard, pooled over the shards


def shard_moments(values: Floats, groups: Ints, *, joint: bool = False) -> ShardMoments:
    r"""Compute the variances between and within shards of equal numbers of learners.

    With the mean :math:`\bar h_g` of the L learners of shard g, out of G shards,

    .. math::

        S^2 = \frac{1}{G - 1} \sum_g (\bar h_g - \bar h)^2, \qquad
        w = \frac{1}{G (L - 1)} \sum_g \sum_{b \in g} (h_b - \bar h_g)^2 .

    Shards share no observation, so that their means are independent and identically
    distributed: :math:`S^2 / G` is unbiased for the variance of :math:`\bar h`, what
    random draws of subsamples add to it included, for any kernel and any L.
    :math:`w / (G L)` of it goes away with more learners.
    """
    centred = values - values.mean(axis=0)
    means = group_means(centred, groups)
    residuals = centred - means[groups]
    G, B = len(means), len(values)
    between = cross_products(means, means, joint=joint) / (G - 1)
    within = cross_products(residuals, residuals, joint=joint) / (B - G)
    return ShardMoments(G, B // G, between, within)


def shard_influence(values: Floats, groups: Ints) -> Floats:
    """Compute the influence of shards, shape (G, m); squares add up to `S**2 / G`."""
    means = group_means(values - values.mean(axis=0), groups)
    G = len(means)
    return np.asarray(means / np.sqrt(G * (G - 1)))


def positive_mean(estimate: Floats, scale: Floats) -> Floats:
    r"""Make an estimate positive: its posterior mean under a flat prior.

    Parameters
    ----------
    estimate : ndarray
        Unbiased, possibly negative.
    scale : ndarray
        Standard error of the estimate; where it is zero the answer is
        `max(estimate, 0)`.

    Notes
    -----
    The mean of a normal distribution with mean V and standard deviation s, given
    that the variable is positive:

    .. math:: V^{+} = V + s \, \varphi(V / s) / \Phi(V / s) .

    Examples
    --------
    >>> positive_mean(np.array([-1.0, 0.0, 9.0]), np.ones(3)).round(4)
    array([0.5251, 0.7979, 9.    ])
    """
    exact = scale <= 0
    s = np.where(exact, 1.0, scale)
    z = np.where(exact, 0.0, estimate / s)
    # phi(z) / Phi(z) by logarithms: both underflow far below zero. Beyond 500 it is
    # not needed, and the rounding of z**2 would overflow.
    near = np.clip(z, -500, 500)
    hazard = np.exp(-(near**2) / 2 - np.log(2 * np.pi) / 2 - special.log_ndtr(near))
    # z + hazard cancels there; -1/z is its expansion, good to 1e-5 at z = -500.
    mean = np.where(z < -500, -1 / np.minimum(z, -1), z + hazard)
    return np.where(exact, np.maximum(estimate, 0.0), s * mean)


def noise_variance(sampling: Floats, noise: Floats, n: int) -> Floats:
    r"""Compute the Monte Carlo variance of a sum V of n squared influences.

    `sampling` is V without its bias, and `noise` the Monte Carlo variance of one
    influence.

    .. math:: 2 n s_2^2 + 4 s_2 \max(V, 0) .

    Each influence carries independent noise of variance :math:`s_2`. The square of the
    noise has variance :math:`2 s_2^2`, and twice the product of the noise and an
    influence has :math:`4 s_2` times the squared influence.
    """
    return 2 * n * noise**2 + 4 * noise * np.maximum(sampling, 0.0)
