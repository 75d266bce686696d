"""Estimators that only the study of the paper needs.

`corrected_ij` is Wager and Athey's factor on the infinitesimal jackknife. The
others are readings of the correction of section 5.2 that count an observation
once per subsample, however often it was drawn: candidates for what the column
"corrected" of the paper's Table 2 was computed with.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.studies.prefixes import Prefix
from vstatkit.variance.formulas import between_variance
from vstatkit.variance.registry import ESTIMATORS, estimate_components, moment_sampling


@dataclass(frozen=True)
class DistinctSquares:
    """Sums of squares in which an observation counts once per subsample.

    Attributes
    ----------
    appearances : ndarray of shape (n,)
        Number of subsamples that hold each observation, `D_i`.
    within : ndarray of shape (m,)
        `sum_i sum_{b: i in b} (h_b - m_i)**2`, with the paper's means `m_i`,
        weighted by the number of appearances.
    within_own, between_own : ndarray of shape (m,)
        The same about the unweighted means of the learners that hold i; and
        `sum_i D_i` times the squared deviations of these means.
    """

    appearances: Floats
    within: Floats
    within_own: Floats
    between_own: Floats


def distinct_squares(prefix: Prefix) -> DistinctSquares:
    """Take the sums of squares over distinct members."""
    sums, presence = prefix.sums, prefix.presence
    q = prefix.origin.size
    shift = sums.total / sums.n_learners
    D = presence.appearances
    held = presence.weighted[:, :q] - np.multiply.outer(D, shift)
    squares = (
        presence.weighted[:, q:].sum(axis=0)
        - 2 * shift * presence.weighted[:, :q].sum(axis=0)
        + shift**2 * D.sum()
    )
    N = sums.appearances
    m = _means(sums.weighted - np.multiply.outer(N, shift), N)
    own = _means(held, D)
    centre = D @ own / D.sum()
    return DistinctSquares(
        appearances=D,
        within=squares - 2 * np.einsum("ij,ij->j", m, held) + D @ m**2,
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
    squares = distinct_squares(prefix)
    sigma2 = squares.within / (_draws(prefix) - prefix.moments.n)
    return _anova(prefix, sigma2)


def distinct_within_own_size(prefix: Prefix) -> Floats:
    """As `distinct_within`, divided by the number of distinct members less n."""
    squares = distinct_squares(prefix)
    sigma2 = squares.within / (squares.appearances.sum() - prefix.moments.n)
    return _anova(prefix, sigma2)


def distinct_from_ij(prefix: Prefix) -> Floats:
    """Infinitesimal jackknife less the balanced form's correction, distinct members.

    `V_IJ - k**2/n * sigma2/r` with `r = B k / n`, equation (5.2)'s special case.
    """
    moments = prefix.moments
    sigma2 = distinct_squares(prefix).within / (_draws(prefix) - moments.n)
    return moments.jackknife - moments.size / moments.n_learners * sigma2


def distinct_throughout(prefix: Prefix) -> Floats:
    """Section 5.2 with every count replaced by an indicator."""
    moments, squares = prefix.moments, distinct_squares(prefix)
    D, n = squares.appearances, moments.n
    C = D.sum()
    sigma2 = squares.within_own / (C - n)
    zeta_1 = between_variance(squares.between_own, sigma2, D, n, C)
    return np.asarray(moments.size**2 / n * zeta_1)


def _draws(prefix: Prefix) -> float:
    return prefix.moments.n_learners * prefix.moments.size


def _anova(prefix: Prefix, sigma2: Floats) -> Floats:
    """Estimate as in section 5.2, given its `sigma2_eps`."""
    moments, n, C = prefix.moments, prefix.moments.n, _draws(prefix)
    N, ss_tau = moments.appearances, moments.between_weighted
    return moments.size**2 / n * between_variance(ss_tau, sigma2, N, n, C)


VARIANTS: dict[str, Callable[[Prefix], Floats]] = {
    "corrected_ij": corrected_ij,
    "distinct_within": distinct_within,
    "distinct_within_own_size": distinct_within_own_size,
    "distinct_from_ij": distinct_from_ij,
    "distinct_throughout": distinct_throughout,
}
"""Sampling variance, `k**2/n * zeta_1`, by name."""


def sampling_variance(method: str, prefix: Prefix) -> Floats:
    """Estimate the sampling variance (m,), whatever the sampling was.

    The paper applies corrected-V to subsamples without replacement, to show that
    it does not serve there; so nothing is refused here.
    """
    if method in VARIANTS:
        return VARIANTS[method](prefix)
    design = prefix.design
    if ESTIMATORS[method].source == "moments":
        return moment_sampling(method, prefix.moments, replace=design.replace)
    return estimate_components(method, design, prefix.values).sampling
