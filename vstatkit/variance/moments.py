"""Sums over learners, and the moments that the variance estimators see.

`EnsembleSums` is additive: there is one object per batch, and the order of adding
is free. `EnsembleMoments` is what the pass leaves of it: every estimator is a
linear function of its fields, so that fields of shape (m,) give variances and
fields of shape (m, m) give covariances by the same code.
"""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Bools, Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.showing import short_repr
from vstatkit.variance.powers import Weights, is_wide, sum_powers
from vstatkit.variance.sums import ROW_BLOCK, EnsembleSums, sum_ensemble


@dataclass(frozen=True, slots=True)
class EnsembleMoments:
    """What the variance estimators see; q is m, or (m, m) for covariances.

    Attributes
    ----------
    n, size : int
        Observations n, subsample size k.
    n_learners : float
        Number B of learners.
    n_seen : int
        Observations that were drawn at least once.
    mean : ndarray of shape (m,)
        `hbar`.
    appearances : ndarray of shape (n,)
        `N_i`.
    count_variance : float
        Mean over observations of the variance of their counts over learners.
    squares : ndarray of shape q
        Sum over learners of `(h - hbar)**2`.
    jackknife : ndarray of shape q
        Sum over observations of `cov_b(N[b, i], h_b)**2`.
    between : ndarray of shape q
        Sum over observations of `(m_i - mbar)**2`.
    between_weighted : ndarray of shape q
        Sum over observations of `N_i (m_i - m_w)**2`.
    quartic : ndarray of shape (m,) or None
        Sum over observations of `cov_b(N[b, i], h_b)**4`.
    complete : bool
        Whether every subsample was evaluated, so that there is no Monte Carlo error.
    """

    n: int
    size: int
    n_learners: float
    n_seen: int
    mean: Floats
    appearances: Floats
    count_variance: float
    squares: Floats
    jackknife: Floats
    between: Floats
    between_weighted: Floats
    quartic: Floats | None
    complete: bool = False

    __repr__ = short_repr

    @property
    def zeta_k(self) -> Floats:
        """Variance of a single learner."""
        return self.squares / (self.n_learners - 1)

    @property
    def monte_carlo(self) -> Floats:
        """Monte Carlo variance of the ensemble, `zeta_k / B`."""
        return self.zeta_k * 0.0 if self.complete else self.zeta_k / self.n_learners


def influence_values(sums: EnsembleSums) -> Floats:
    """Influence of every observation, `cov_b(N[b, i], h_b)`, shape (n, m)."""
    shift = sums.total / sums.n_learners
    centred = sums.weighted - np.multiply.outer(sums.appearances, shift)
    return centred / sums.n_learners


def moments_from_sums(sums: EnsembleSums, *, complete: bool = False) -> EnsembleMoments:
    """Reduce the sums to moments.

    The N-weighted mean of the `m_i` is `hbar` whenever every subsample has size
    k, so `m_i - m_w = D_i / N_i` with `D_i = sum_b N[b, i] (h_b - hbar)`.
    """
    N, B = sums.appearances, sums.n_learners
    shift = sums.total / B
    joint = sums.squares.ndim == 2
    inverse = np.divide(1.0, N, out=np.zeros_like(N), where=N > 0)
    powers = np.stack([np.ones_like(N), inverse**2, inverse])
    forms = np.zeros((3, *sums.squares.shape))
    first = np.zeros_like(shift)
    fourth = np.zeros_like(shift)
    ones = np.ones(ROW_BLOCK)
    for start in range(0, N.size, ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        D = np.multiply.outer(N[rows], shift)
        np.subtract(sums.weighted[rows], D, out=D)
        first += inverse[rows] @ D
        if joint:
            forms += _outer(D, powers[:, rows])
        D *= D
        if not joint:
            forms += powers[:, rows] @ D
        D *= D
        fourth += ones[: len(D)] @ D
    squares = sums.squares - _times(sums.total, shift, joint)
    moments = moments_of_powers(
        sums, shift, squares=squares, forms=forms, first=first, quartic=fourth / B**4
    )
    return replace(moments, complete=complete)


def moments_of(design: SubsampleDesign, values: Floats) -> EnsembleMoments:
    """Moments of an ensemble; of many units or values without a table of both."""
    if not is_wide(design, *values.shape):
        return moments_from_sums(sum_ensemble(design, values), complete=design.complete)
    found = sum_powers(design, values, _by_appearances, presence=False)
    B, powers = len(values), found.powers
    sums = EnsembleSums(
        size=design.k,
        origin=found.origin,
        n_learners=float(B),
        appearances=found.appearances,
        count_squares=found.count_squares,
        weighted=np.empty((0, 0)),
        total=np.zeros_like(found.origin),
        squares=found.squares,
    )
    moments = moments_of_powers(
        sums,
        sums.total,
        squares=found.squares,
        forms=np.stack([powers.squares, powers.tilted_squares, powers.mixed]),
        first=powers.tilted,
        quartic=powers.fourths / B**4,
    )
    return replace(moments, complete=design.complete)


def _by_appearances(N: Floats) -> Weights:
    inverse = np.divide(1.0, N, out=np.zeros_like(N), where=N > 0)
    return np.ones_like(N), inverse


def _outer(D: Floats, powers: Floats) -> Floats:
    return np.stack([(D.T * w) @ D for w in powers])


def _times(a: Floats, b: Floats, joint: bool) -> Floats:
    return np.outer(a, b) if joint else a * b


def moments_of_powers(
    sums: EnsembleSums,
    shift: Floats,
    *,
    squares: Floats,
    forms: Floats,
    first: Floats,
    quartic: Floats | None,
) -> EnsembleMoments:
    """Name the quadratic forms `sum_i w_i D_i**2` for w = 1, 1/N**2, 1/N."""
    N, B, n = sums.appearances, sums.n_learners, sums.appearances.size
    n_seen = int(np.count_nonzero(N))
    return EnsembleMoments(
        n=n,
        size=sums.size,
        n_learners=B,
        n_seen=n_seen,
        mean=sums.origin + shift,
        appearances=N,
        count_variance=float(sums.count_squares / B - N @ N / B**2) / n,
        squares=squares,
        jackknife=forms[0] / B**2,
        between=forms[1] - _times(first, first / n_seen, squares.ndim == 2),
        between_weighted=forms[2],
        quartic=quartic,
    )


@dataclass(frozen=True, slots=True)
class PresenceMoments:
    """What the jackknife sees; q is m, or (m, m) for covariances.

    Attributes
    ----------
    n_learners : float
        Number B of learners.
    n_left_out : int
        Observations that some learner left out.
    absent : float
        Share of the learners without an observation, mean over these observations.
    left_out : ndarray of shape q
        Sum over observations of `(t_i - hbar)**2`, `t_i` the mean of the learners
        without observation i.
    quartic : ndarray of shape (m,)
        Sum over observations of `(t_i - hbar)**4`.
    squares : ndarray of shape q
        Sum over learners of `(h - hbar)**2`.
    """

    n_learners: float
    n_left_out: int
    absent: float
    left_out: Floats
    quartic: Floats
    squares: Floats


def presence_moments(sums: EnsembleSums) -> PresenceMoments:
    """Reduce sums that were taken with indicators for counts."""
    B, joint = sums.n_learners, sums.squares.ndim == 2
    without, seen = _left_out(B, sums.appearances)
    shift = sums.total / B
    inverse = np.divide(-1.0, without, out=np.zeros_like(without), where=seen)
    left_out = np.zeros_like(sums.squares)
    fourth = np.zeros_like(shift)
    ones = np.ones(ROW_BLOCK)
    for start in range(0, without.size, ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        T = np.multiply.outer(sums.appearances[rows], shift)
        np.subtract(sums.weighted[rows], T, out=T)
        T *= inverse[rows, None]
        if joint:
            left_out += T.T @ T
        T *= T
        if not joint:
            left_out += ones[: len(T)] @ T
        T *= T
        fourth += ones[: len(T)] @ T
    return PresenceMoments(
        n_learners=B,
        n_left_out=int(seen.sum()),
        absent=float(without[seen].mean() / B),
        left_out=left_out,
        quartic=fourth,
        squares=sums.squares - _times(sums.total, shift, joint),
    )


def presence_of(design: SubsampleDesign, values: Floats) -> PresenceMoments:
    """Find what the jackknife sees; of many units or values without a table of both."""
    if not is_wide(design, *values.shape):
        return presence_moments(sum_ensemble(design, values, presence=True))
    B = float(len(values))

    def mean_without(appearances: Floats) -> Weights:
        without = B - appearances
        seen = without > 0.5
        inverse = np.divide(-1.0, without, out=np.zeros_like(without), where=seen)
        return inverse, None

    found = sum_powers(design, values, mean_without, presence=True)
    without, seen = _left_out(B, found.appearances)
    return PresenceMoments(
        n_learners=B,
        n_left_out=int(seen.sum()),
        absent=float(without[seen].mean() / B),
        left_out=found.powers.squares,
        quartic=found.powers.fourths,
        squares=found.squares,
    )


def _left_out(B: float, appearances: Floats) -> tuple[Floats, Bools]:
    """Count the learners without each observation, and say where there are any."""
    without = B - appearances
    seen = without > 0.5
    if not seen.any():
        raise ValueError(
            "the jackknife needs learners that left an observation out; here every "
            "subsample holds every observation. Use a smaller `k`."
        )
    return without, seen
