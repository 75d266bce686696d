"""Sums over learners, and the moments that the variance estimators see.

`EnsembleSums` is additive: one object a batch, added up in any grouping.
`EnsembleMoments` is what is left of it after the pass: every estimator is a
linear function of its fields, so that fields of shape (m,) give variances and
fields of shape (m, m) give covariances by the same code.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats
from vstatkit.native._engine import add_product
from vstatkit.sampling.counts import SPARSE_BELOW, dense
from vstatkit.sampling.design import SubsampleDesign

BATCH_ENTRIES = 2_000_000
"""Counts held at a time while summing over learners."""

SPARSE_BATCH_ENTRIES = 250_000
"""The same for sparse counts, which take four times the memory, and are gathered."""

ROW_BLOCK = 128
"""Observations reduced at a time, so that the working block stays in cache."""


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Additive sums over learners, relative to an origin.

    Attributes
    ----------
    size : int
        Subsample size k.
    origin : ndarray of shape (m,)
        Subtracted from every value, so that a large offset costs no digits.
    n_learners : float
        Number B of learners (total weight in a complete design).
    appearances : ndarray of shape (n,)
        `N_i`, times each observation was drawn.
    count_squares : float
        Sum of the squared counts.
    weighted : ndarray of shape (n, m)
        Sum over learners of count times value.
    total : ndarray of shape (m,)
        Sum of values.
    squares : ndarray of shape (m,) or (m, m)
        Sum of squared values, or of outer products.
    """

    size: int
    origin: Floats
    n_learners: float
    appearances: Floats
    count_squares: float
    weighted: Floats
    total: Floats
    squares: Floats

    @classmethod
    def from_learners(
        cls,
        counts: Counts,
        values: Floats,
        *,
        size: int,
        origin: Floats,
        weights: Floats | None = None,
        joint: bool = False,
    ) -> "EnsembleSums":
        """Sum over one batch of learners.

        Parameters
        ----------
        counts : ndarray or csr_array of shape (L, n)
            Counts of each observation in each subsample.
        values : ndarray of shape (L, m)
            Kernel values.
        size : int
            Subsample size k.
        origin : ndarray of shape (m,)
            Any value near the mean.
        weights : ndarray of shape (L,), optional
            Weight of each learner; one by default.
        joint : bool
            Whether to keep outer products, for covariances.
        """
        running = _RunningSums.start(counts.shape[1], size, origin, joint=joint)
        running.add(counts, values, weights)
        return running.freeze()

    def __add__(self, other: "EnsembleSums") -> "EnsembleSums":
        return EnsembleSums(
            size=self.size,
            origin=self.origin,
            n_learners=self.n_learners + other.n_learners,
            appearances=self.appearances + other.appearances,
            count_squares=self.count_squares + other.count_squares,
            weighted=self.weighted + other.weighted,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )


def _count_squares(N: Counts, weights: Floats | None) -> float:
    entries = N.data if sparse.issparse(N) else N
    if weights is None:
        return float(np.vdot(entries, entries))
    squared = N.multiply(N) if sparse.issparse(N) else N * N
    return float(np.asarray(squared.sum(axis=1)) @ weights)


@dataclass
class _RunningSums:
    """Sums that batches are added to in place: nothing of size n x m is copied.

    Attributes
    ----------
    table : ndarray of shape (n, m + 1)
        `weighted`, and `appearances` as its last column.
    scratch : ndarray of shape (n, m + 1) or None
        Product of the latest batch.
    """

    size: int
    origin: Floats
    joint: bool
    table: Floats
    total: Floats
    squares: Floats
    n_learners: float = 0.0
    count_squares: float = 0.0
    scratch: Floats | None = None

    @classmethod
    def start(cls, n: int, size: int, origin: Floats, *, joint: bool) -> "_RunningSums":
        """Begin with nothing."""
        m = origin.size
        squares = np.zeros((m, m) if joint else m)
        return cls(size, origin, joint, np.zeros((n, m + 1)), np.zeros(m), squares)

    def add(self, counts: Counts, values: Floats, weights: Floats | None) -> None:
        """Add one batch of learners."""
        m = values.shape[1]
        # A column of ones rides along, so that the product gives N_i as well.
        extended = np.ones((len(values), m + 1))
        h = np.subtract(values, self.origin, out=extended[:, :m])
        weighted = extended if weights is None else extended * weights[:, None]
        wh = weighted[:, :m]
        if sparse.issparse(counts):
            # Squares and sums of short integers would overflow.
            N = counts.astype(np.float64, copy=False)
            _add_sparse_product(N, weighted, self.table)
        else:
            N = np.ascontiguousarray(counts, dtype=np.float64)
            self._add_product(N, weighted)
        self.n_learners += float(weighted[:, m].sum())
        self.count_squares += _count_squares(N, weights)
        self.total += wh.sum(axis=0)
        self.squares += h.T @ wh if self.joint else np.einsum("bj,bj->j", h, wh)

    def _add_product(self, N: Floats, weighted: Floats) -> None:
        """Add `N.T @ weighted`; fresh pages would cost more than the product."""
        if self.n_learners == 0:
            np.matmul(N.T, weighted, out=self.table)
            return
        if self.scratch is None:
            self.scratch = np.empty_like(self.table)
        np.matmul(N.T, weighted, out=self.scratch)
        self.table += self.scratch

    def freeze(self) -> EnsembleSums:
        """Give the sums."""
        return EnsembleSums(
            size=self.size,
            origin=self.origin,
            n_learners=self.n_learners,
            appearances=self.table[:, -1].copy(),
            count_squares=self.count_squares,
            weighted=self.table[:, :-1],
            total=self.total,
            squares=self.squares,
        )


def _add_sparse_product(N: Counts, weighted: Floats, table: Floats) -> None:
    """Add `N.T @ weighted` to the table in place."""
    add_product(
        np.asarray(N.indptr, dtype=np.int64),
        np.asarray(N.indices, dtype=np.int32),
        np.asarray(N.data, dtype=np.float64),
        np.ascontiguousarray(weighted),
        table,
    )


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

    Parameters
    ----------
    design : SubsampleDesign
        Draws the counts anew.
    values : ndarray of shape (L, m)
        Kernel values of learners `start` to `start + L`.
    start : int
        First learner.
    origin : ndarray of shape (m,), optional
        By default the mean of the values.
    joint : bool
        Whether to keep outer products, for covariances.
    presence : bool
        Whether to count an observation once, however often it was drawn.
    """
    dense_share = SPARSE_BELOW * design.n <= design.k
    at_once = (
        BATCH_ENTRIES // design.n if dense_share else SPARSE_BATCH_ENTRIES // design.k
    )
    step = int(np.clip(at_once, 16, 1024))
    origin = values.mean(axis=0) if origin is None else origin
    buffer = np.empty((min(step, len(values)), design.n)) if dense_share else None

    running = _RunningSums.start(design.n, design.k, origin, joint=joint)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        begin, end = start + first, start + first + len(block)
        counts = design.counts(begin, end, buffer)
        if presence:
            counts = present(counts)
        running.add(counts, block, design.weights(begin, end))
    return running.freeze()


def present(counts: Counts) -> Counts:
    """Say which counts are above zero, as ones and zeros."""
    if not sparse.issparse(counts):
        return (counts > 0).astype(np.float64)
    # A comparison of sparse arrays would cost several times the sums. Designs have
    # one entry a place.
    entries = (counts.data > 0).astype(np.float64)
    return sparse.csr_array(
        (entries, counts.indices, counts.indptr), shape=counts.shape
    )


@dataclass(frozen=True, slots=True)
class EnsembleMoments:
    """What the variance estimators see; `q` is m, or (m, m) when joint.

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
        Every subsample was evaluated, so there is no Monte Carlo error.
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
    moments = _moments(
        sums, shift, squares=squares, forms=forms, first=first, quartic=fourth / B**4
    )
    return replace(moments, complete=complete)


def _outer(D: Floats, powers: Floats) -> Floats:
    return np.stack([(D.T * w) @ D for w in powers])


def _times(a: Floats, b: Floats, joint: bool) -> Floats:
    return np.outer(a, b) if joint else a * b


def _moments(
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
    """What the jackknife sees; `q` is m, or (m, m) when joint.

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
    without = B - sums.appearances
    seen = without > 0.5
    if not seen.any():
        raise ValueError(
            "the jackknife needs learners that left an observation out; here every "
            "subsample holds every observation. Use a smaller `k`."
        )
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


def gram_is_cheaper(n: int, B: int, m: int) -> bool:
    """Compare the B x B Gram form with the n x m product, in multiplications."""
    return 3 * B * B * (n / 2 + m) < n * B * m


def moments_by_gram(counts: Counts, values: Floats, *, size: int) -> EnsembleMoments:
    """Compute the moments without ever forming the n x m product.

    `sum_i w_i D_i**2 = h' (N diag(w) N') h` for centred values h: three B x B
    matrices serve any number of query points. The quartic moment is not
    available in this form.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (B, n)
        Counts of each observation in each subsample.
    values : ndarray of shape (B, m)
        Kernel values.
    size : int
        Subsample size k.
    """
    B = len(values)
    origin = values.mean(axis=0)
    h = values - origin
    N = dense(counts).astype(np.float64)
    sums = EnsembleSums(
        size=size,
        origin=origin,
        n_learners=float(B),
        appearances=N.sum(axis=0),
        count_squares=float(np.einsum("bi,bi->", N, N)),
        weighted=np.empty((0, 0)),
        total=np.zeros(h.shape[1]),
        squares=np.einsum("bj,bj->j", h, h),
    )
    appearances = sums.appearances
    inverse = np.divide(
        1.0, appearances, out=np.zeros_like(appearances), where=appearances > 0
    )
    forms = []
    for root in (np.ones_like(inverse), inverse, np.sqrt(inverse)):
        half = N * root
        forms.append(np.einsum("bj,bj->j", h, (half @ half.T) @ h))
    return _moments(
        sums,
        sums.total,
        squares=sums.squares,
        forms=np.stack(forms),
        first=(N @ inverse) @ h,
        quartic=None,
    )
