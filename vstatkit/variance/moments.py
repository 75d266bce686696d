"""Sums over learners, and the moments that variance estimators use.

`EnsembleSums` is additive: there is one object per batch, and the order of adding is
free. `EnsembleMoments` is computed from it: every estimator is a linear function of its
fields, so that fields of shape (m,) give variances and fields of shape (m, m) give
covariances by the same code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats
from vstatkit.native._engine import add_product
from vstatkit.sampling.design import SPARSE_BELOW, SubsampleDesign, to_dense
from vstatkit.text import short_repr
from vstatkit.variance.large_moments import is_wide, sum_powers

BATCH_ENTRIES = 2_000_000  # most counts in memory while summing over learners
SPARSE_BATCH_ENTRIES = 250_000  # of sparse counts, which take four times the memory
# Most entries of a table (observations x query points) in memory, where columns of
# values can be processed in parts
CHUNK_ENTRIES = 2_000_000
ROW_BLOCK = 128  # observations in a block, so that it stays in the cache


@dataclass(slots=True)
class EnsembleSums:
    """Additive sums over learners, relative to an origin."""

    size: int  # subsample size k
    # (m,): subtracted from every value, so that a large offset costs no digits
    origin: Floats
    # (n, m + 1): sum over learners of count times value, and of counts
    table: Floats
    total: Floats  # (m,): sum of values
    squares: Floats  # (m,) or (m, m): sum of squared values, or of outer products
    # (m,) or (m, m): the same, each learner weighted by the sum of its counts: by its
    # distinct observations, if indicators stand for counts
    sized_squares: Floats
    n_learners: float = 0.0  # number B of learners (total weight in a complete design)
    count_squares: float = 0.0  # sum of the squared counts

    @classmethod
    def zero(
        cls, n: int, size: int, origin: Floats, *, joint: bool = False
    ) -> "EnsembleSums":
        """Return the sums of no learners; `joint` keeps outer products."""
        m = origin.size
        squares = np.zeros((2, m, m) if joint else (2, m))
        return cls(size, origin, np.zeros((n, m + 1)), np.zeros(m), *squares)

    @property
    def weighted(self) -> Floats:
        """Sum over learners of count times value, shape (n, m)."""
        return self.table[:, :-1]

    @property
    def appearances(self) -> Floats:
        """Times that each observation was drawn, `N_i`, shape (n,)."""
        return self.table[:, -1].copy()

    def add(
        self,
        counts: Counts,
        values: Floats,
        weights: Floats | None = None,
        scratch: Floats | None = None,
    ) -> None:
        """Add one batch of L learners in place, with `counts` of shape (L, n).

        `weights` are those of the learners. `scratch`, of the shape of `table`, is
        overwritten: new memory would cost more than the product.
        """
        m = values.shape[1]
        # With a column of ones the product gives N_i as well.
        extended = np.ones((len(values), m + 1))
        h = np.subtract(values, self.origin, out=extended[:, :m])
        weighted = extended if weights is None else extended * weights[:, None]
        wh = weighted[:, :m]
        if sparse.issparse(counts):
            # Squares and sums of short integers would overflow.
            N = counts.astype(np.float64, copy=False)
            add_product(
                np.asarray(N.indptr, dtype=np.int64),
                np.asarray(N.indices, dtype=np.int32),
                np.asarray(N.data, dtype=np.float64),
                np.ascontiguousarray(weighted),
                self.table,
            )
        else:
            N = np.ascontiguousarray(counts, dtype=np.float64)
            if self.n_learners == 0:
                np.matmul(N.T, weighted, out=self.table)
            else:
                self.table += np.matmul(N.T, weighted, out=scratch)
        self.n_learners += float(weighted[:, m].sum())
        self.count_squares += _count_squares(N, weights)
        self.total += wh.sum(axis=0)
        squares = self._squares(h, wh)
        self.squares += squares
        sizes = np.asarray(N.sum(axis=1)).ravel()
        if (sizes == sizes[0]).all():
            self.sized_squares += sizes[0] * squares
        else:
            self.sized_squares += self._squares(h, wh * sizes[:, None])

    def _squares(self, h: Floats, weighted: Floats) -> Floats:
        """Sum weighted squares of values, or outer products."""
        if self.squares.ndim == 2:
            return h.T @ weighted
        return np.asarray(np.einsum("bj,bj->j", h, weighted))

    def __add__(self, other: "EnsembleSums") -> "EnsembleSums":
        additive = (
            *("table", "total", "squares", "sized_squares"),
            *("n_learners", "count_squares"),
        )
        sums = {name: getattr(self, name) + getattr(other, name) for name in additive}
        return replace(self, **sums)


def _count_squares(N: Counts, weights: Floats | None) -> float:
    entries = N.data if sparse.issparse(N) else N
    if weights is None:
        return float(np.vdot(entries, entries))
    squared = N.multiply(N) if sparse.issparse(N) else N * N
    return float(np.asarray(squared.sum(axis=1)) @ weights)


def value_units(values: Floats) -> Floats:
    """Compute powers of two near the spreads of columns; dividing by them is exact."""
    first = values[0]
    spread = np.maximum(values.max(axis=0) - first, first - values.min(axis=0))
    exponent = np.frexp(spread)[1]
    return np.ldexp(1.0, np.where(spread > 0, exponent, 0))


def sum_ensemble(
    design: SubsampleDesign,
    values: Floats,
    *,
    start: int = 0,
    origin: Floats | None = None,
    joint: bool = False,
    presence: bool = False,
) -> EnsembleSums:
    """Sum over the learners of a design, in batches of bounded memory.

    `values` are those of the learners from `start` on, shape (L, m), and `origin` is
    by default their mean. `joint` keeps outer products, for covariances. With
    `presence`, an observation counts once, however often it was drawn.
    """
    n, k = design.n, design.k
    dense = SPARSE_BELOW * n <= k
    at_once = BATCH_ENTRIES // n if dense else SPARSE_BATCH_ENTRIES // k
    step = int(np.clip(at_once, 16, 1024))
    origin = values.mean(axis=0) if origin is None else origin
    buffer = np.empty((min(step, len(values)), n)) if dense else None
    sums = EnsembleSums.zero(n, k, origin, joint=joint)
    scratch = np.empty_like(sums.table) if dense and len(values) > step else None
    for first in range(0, len(values), step):
        block = values[first : first + step]
        begin, end = start + first, start + first + len(block)
        counts = design.counts(begin, end, buffer)
        if presence:
            counts = mark_presence(counts)
        sums.add(counts, block, design.weights(begin, end), scratch)
    return sums


def mark_presence(counts: Counts) -> Counts:
    """Mark the counts that are above zero, with ones and zeros."""
    if not sparse.issparse(counts):
        return (counts > 0).astype(np.float64)
    # Comparing sparse arrays would cost several times as much as the sums. Designs have
    # no duplicate entries.
    entries = (counts.data > 0).astype(np.float64)
    return sparse.csr_array(
        (entries, counts.indices, counts.indptr), shape=counts.shape
    )


@dataclass(frozen=True, slots=True)
class EnsembleMoments:
    """Input of the variance estimators; q is m, or (m, m) for covariances."""

    n: int  # number of observations
    size: int  # subsample size k
    n_learners: float  # number B of learners
    n_seen: int  # observations that were drawn at least once
    mean: Floats  # (m,): `hbar`
    appearances: Floats  # (n,): `N_i`
    # Mean over observations of the variance of their counts over learners
    count_variance: float
    squares: Floats  # sum over learners of `(h - hbar)**2`
    jackknife: Floats  # sum over observations of `cov_b(N[b, i], h_b)**2`
    between: Floats  # sum over observations of `(m_i - mbar)**2`
    between_weighted: Floats  # sum over observations of `N_i (m_i - m_w)**2`
    # (m,): sums over observations of third and fourth powers of `cov_b(N[b, i], h_b)`
    cubic: Floats | None
    quartic: Floats | None
    # Whether every subsample was evaluated, so that there is no Monte Carlo error
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
    """Compute the influences `cov_b(N[b, i], h_b)` of observations, shape (n, m)."""
    shift = sums.total / sums.n_learners
    centred = sums.weighted - np.multiply.outer(sums.appearances, shift)
    return centred / sums.n_learners


def _centred_blocks(
    sums: EnsembleSums, shift: Floats
) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of `D_i = sum_b N[b, i] (h_b - hbar)`, and their rows."""
    for start in range(0, sums.appearances.size, ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        D = np.multiply.outer(sums.appearances[rows], shift)
        np.subtract(sums.weighted[rows], D, out=D)
        yield rows, D


def invert(N: Floats) -> Floats:
    """Compute 1 / N, zero for N = 0."""
    return np.divide(1.0, N, out=np.zeros_like(N), where=N > 0)


def moments_from_sums(sums: EnsembleSums, *, complete: bool = False) -> EnsembleMoments:
    """Compute the moments from sums.

    The N-weighted mean of the `m_i` is `hbar` if every subsample has size k, so that
    `m_i - m_w = D_i / N_i` with `D_i = sum_b N[b, i] (h_b - hbar)`.
    """
    N, B, joint = sums.appearances, sums.n_learners, sums.squares.ndim == 2
    shift, inverse = sums.total / B, invert(N)
    powers = np.stack([np.ones_like(N), inverse**2, inverse])
    forms = np.zeros((3, *sums.squares.shape))
    first, third, fourth = np.zeros((3, *shift.shape))
    ones = np.ones(ROW_BLOCK)
    for rows, D in _centred_blocks(sums, shift):
        first += inverse[rows] @ D
        if joint:
            forms += np.stack([(D.T * w) @ D for w in powers[:, rows]])
        square = D * D
        if not joint:
            forms += powers[:, rows] @ square
        third += ones[: len(D)] @ np.multiply(D, square, out=D)
        square *= square
        fourth += ones[: len(D)] @ square
    return moments_of_powers(
        size=sums.size,
        n_learners=B,
        mean=sums.origin + shift,
        appearances=N,
        count_squares=sums.count_squares,
        squares=sums.squares - _times(sums.total, shift, joint),
        forms=forms,
        first=first,
        cubic=third / B**3,
        quartic=fourth / B**4,
        complete=complete,
    )


def moments_of(design: SubsampleDesign, values: Floats) -> EnsembleMoments:
    """Compute the moments of an ensemble, without a large table of units by values."""
    if not is_wide(design, *values.shape):
        return moments_from_sums(sum_ensemble(design, values), complete=design.complete)
    sums = sum_powers(
        design, values, lambda N: (np.ones_like(N), invert(N)), presence=False
    )
    B, powers = len(values), sums.powers
    return moments_of_powers(
        size=design.k,
        n_learners=float(B),
        mean=sums.origin,
        appearances=sums.appearances,
        count_squares=sums.count_squares,
        squares=sums.squares,
        forms=np.stack([powers.squares, powers.tilted_squares, powers.mixed]),
        first=powers.tilted,
        cubic=powers.cubes / B**3,
        quartic=powers.fourths / B**4,
        complete=design.complete,
    )


def _times(a: Floats, b: Floats, joint: bool) -> Floats:
    return np.outer(a, b) if joint else a * b


def moments_of_powers(
    *,
    n_learners: float,
    appearances: Floats,
    count_squares: float,
    squares: Floats,
    forms: Floats,
    first: Floats,
    **fields: Any,
) -> EnsembleMoments:
    """Compute moments from the forms `sum_i w_i D_i**2` for w = 1, 1/N**2, 1/N."""
    N, B, n = appearances, n_learners, appearances.size
    n_seen = int(np.count_nonzero(N))
    return EnsembleMoments(
        n=n,
        n_learners=B,
        n_seen=n_seen,
        appearances=N,
        count_variance=float(count_squares / B - N @ N / B**2) / n,
        squares=squares,
        jackknife=forms[0] / B**2,
        between=forms[1] - _times(first, first / n_seen, squares.ndim == 2),
        between_weighted=forms[2],
        **fields,
    )


@dataclass(frozen=True, slots=True)
class PresenceMoments:
    """Input of the jackknife; q is m, or (m, m) for covariances."""

    n_learners: float  # number B of learners
    n_left_out: int  # observations that a learner can leave out
    # Chance of an observation to be in a subsample over that of being left out, mean
    # over these observations
    odds: float
    # Sum over observations of `(t_i - hbar)**2`, `t_i` the mean of the learners without
    # observation i
    left_out: Floats
    own: Floats  # the part of this sum in which learners are multiplied by themselves
    # Factor that makes up for centring by `hbar` instead of its expectation
    centring: float
    # (m,): sums over observations of `(hbar - t_i)**3`, whose sign is that of an
    # influence, and of the fourth powers
    cubic: Floats
    quartic: Floats
    squares: Floats  # sum over learners of `(h - hbar)**2`


def _invert_absences(appearances: Floats, B: float, chance: float | None) -> Floats:
    """Return -1 over the learners without each observation; zero for none."""
    if chance is not None:
        return np.full_like(appearances, -1 / (B * chance))
    without = B - appearances
    return np.divide(-1.0, without, out=np.zeros_like(without), where=without > 0.5)


def _presence_of_powers(
    appearances: Floats,
    B: float,
    chance: float | None,
    *,
    squares: Floats,
    sized_squares: Floats,
    **powers: Floats,
) -> PresenceMoments:
    """Collect the sums, and compute the products of learners with themselves.

    With a known chance q = 1 - p, learner b has the part
    `(h - hbar)**2 sum_i (Z_bi - p)**2 / (B q)**2`, and the sum over i is
    `(1 - 2 p) D_b + n p**2` for `D_b` distinct observations.
    """
    n, seen = appearances.size, B - appearances > 0.5
    if not seen.any():
        raise ValueError(
            "the jackknife needs learners that left an observation out; here every "
            "subsample holds every observation. Use a smaller `k`."
        )
    if chance is None:
        share = appearances[seen] / B
        n, odds = int(seen.sum()), float(np.mean(share / (1 - share)))
        own, centring = n * odds * squares / (B * (B - 1)), 1.0
    else:
        q, p = chance, 1 - chance
        odds = p / q
        own = ((1 - 2 * p) * sized_squares + n * p**2 * squares) / (B * q) ** 2
        centring = B**3 / ((B - 1) * (B**2 - 2 * B + 2))
    return PresenceMoments(
        n_learners=B,
        n_left_out=n,
        odds=odds,
        own=own,
        centring=centring,
        squares=squares,
        **powers,
    )


def presence_moments(
    sums: EnsembleSums, chance: float | None = None
) -> PresenceMoments:
    """Compute moments of presence from sums of indicators; see `chance_absent`."""
    N, B, joint = sums.appearances, sums.n_learners, sums.squares.ndim == 2
    shift, inverse = sums.total / B, _invert_absences(N, B, chance)
    left_out = np.zeros_like(sums.squares)
    third, fourth = np.zeros((2, *shift.shape))
    ones = np.ones(ROW_BLOCK)
    for rows, D in _centred_blocks(sums, shift):
        T = np.multiply(D, inverse[rows, None], out=D)
        if joint:
            left_out += T.T @ T
        square = T * T
        if not joint:
            left_out += ones[: len(T)] @ square
        T *= square
        third -= ones[: len(T)] @ T
        square *= square
        fourth += ones[: len(T)] @ square
    sized = sums.weighted.sum(axis=0)
    moved = _times(sized, shift, joint) + _times(shift, sized, joint)
    draws = float(N.sum())
    sized_squares = sums.sized_squares - moved + draws * _times(shift, shift, joint)
    return _presence_of_powers(
        N,
        B,
        chance,
        left_out=left_out,
        cubic=third,
        quartic=fourth,
        squares=sums.squares - _times(sums.total, shift, joint),
        sized_squares=sized_squares,
    )


def presence_of(design: SubsampleDesign, values: Floats) -> PresenceMoments:
    """Compute the moments of presence, without a large table of units by values."""
    chance = design.chance_absent
    if not is_wide(design, *values.shape):
        return presence_moments(sum_ensemble(design, values, presence=True), chance)
    B = float(len(values))
    sums = sum_powers(
        design, values, lambda N: (_invert_absences(N, B, chance), None), presence=True
    )
    return _presence_of_powers(
        sums.appearances,
        B,
        chance,
        left_out=sums.powers.squares,
        cubic=-sums.powers.cubes,
        quartic=sums.powers.fourths,
        squares=sums.squares,
        sized_squares=sums.sized_squares,
    )


def gram_is_cheaper(n: int, B: int, m: int) -> bool:
    """Compare the B x B Gram form with the n x m product, in multiplications."""
    return 3 * B * B * (n / 2 + m) < n * B * m


def moments_by_gram(counts: Counts, values: Floats, *, size: int) -> EnsembleMoments:
    """Compute the moments from `counts` (B, n) without the n x m product.

    `sum_i w_i D_i**2 = h' (N diag(w) N') h` for centred values h: three B x B
    matrices serve any number of query points. The cubic and the quartic moment are not
    available in this form.
    """
    origin = values.mean(axis=0)
    h = values - origin
    N = to_dense(counts).astype(np.float64)
    appearances = N.sum(axis=0)
    inverse = invert(appearances)
    roots = (np.ones_like(inverse), inverse, np.sqrt(inverse))
    halves = (N * root for root in roots)
    forms = [np.einsum("bj,bj->j", h, (half @ half.T) @ h) for half in halves]
    return moments_of_powers(
        size=size,
        n_learners=float(len(values)),
        mean=origin,
        appearances=appearances,
        count_squares=float(np.einsum("bi,bi->", N, N)),
        squares=np.einsum("bj,bj->j", h, h),
        forms=np.stack(forms),
        first=(N @ inverse) @ h,
        cubic=None,
        quartic=None,
    )
