"""Compare pairs of learners by the observations that they share."""

from typing import Any, NamedTuple

import numpy as np

from vstatkit._typing import Floats
from vstatkit.sampling.counts import dense

BLOCK = 256
"""Learners that are compared with all others at a time."""


class PairChances(NamedTuple):
    """Chances that one observation, or both, one or none of two are in a subsample.

    `split` is the chance that the first of two is present and the second absent.
    """

    one: float
    both: float
    split: float
    none: float


def pair_chances(n: int, k: int, *, replace: bool) -> PairChances:
    """Chances that given observations are in a subsample of k out of n.

    Examples
    --------
    >>> pair_chances(4, 2, replace=False).both
    0.16666666666666666
    """
    if replace:
        absent, none = (1 - 1 / n) ** k, (1 - 2 / n) ** k
        return PairChances(1 - absent, 1 - 2 * absent + none, absent - none, none)
    both, none = k * (k - 1) / (n * (n - 1)), (n - k) * (n - k - 1) / (n * (n - 1))
    return PairChances(k / n, both, k * (n - k) / (n * (n - 1)), none)


def pair_weights(
    overlap: Floats, size: Floats, other: Floats, n: int, chances: PairChances
) -> tuple[Floats, Floats]:
    """Weights of products of two learners' values in `Q_1` and `Q_2`.

    Parameters
    ----------
    overlap : ndarray
        Distinct observations that both subsamples hold.
    size, other : ndarray
        Distinct observations of the first and of the second subsample.
    n : int
        Number of observations.
    chances : PairChances
        Of the design.

    Notes
    -----
    `Q_1` is a sum over observations of squared differences between the mean of the
    learners that hold it and of those that do not, `Q_2` a sum over pairs of
    squared second differences. Each square is a double sum over learners, whose
    weights depend on how many observations are in both subsamples, in one of them,
    or in neither. With subsamples of fixed size, and all of them, the c-th order
    has the coefficient `c (n-1)/(n-c)` in `Q_1` and
    `c (c-1)/2 (n-2)(n-3)/((n-c)(n-c-1))` in `Q_2`.
    """
    one, both, split, none = chances
    sizes = size + other
    # Both polynomials come from counting observations that are in both subsamples
    # (overlap), in one (sizes - 2 overlap) and in neither (n - sizes + overlap).
    single = 1 / one + 1 / (1 - one)
    singles = overlap * single**2 - sizes * (single / (1 - one))
    singles += n / (1 - one) ** 2
    in_both, in_one, in_none = 1 / both, 1 / split, 1 / none
    second = (in_both + 2 * in_one + in_none) ** 2 / 2
    mixed = -(in_both + 2 * in_one + in_none) * (in_one + in_none)
    pairs = overlap * (second * overlap + mixed * sizes + _slope(n, chances))
    pairs += sizes * (sizes * (in_none * (in_both + in_none) / 2 + in_one * in_none))
    pairs += sizes * _tilt(n, chances)
    pairs += size * other * (in_one**2 - in_both * in_none)
    pairs += n * (n - 1) * in_none**2 / 2
    return (n - 1) / n * one**2 * singles, (n - 3) / (n - 1) * both**2 * pairs


def _slope(n: int, chances: PairChances) -> float:
    """Coefficient of the overlap alone in the weight of `Q_2`."""
    both, one, none = 1 / chances.both, 1 / chances.split, 1 / chances.none
    return (
        -(both**2) / 2
        + n * one**2
        + both * none
        + 2 * n * one * none
        + (2 * n - 1) * none**2 / 2
    )


def _tilt(n: int, chances: PairChances) -> float:
    """Coefficient of the sum of the sizes in the weight of `Q_2`."""
    both, one, none = 1 / chances.both, 1 / chances.split, 1 / chances.none
    return -both * none / 2 - n * one * none - (2 * n - 1) * none**2 / 2


class PairSums(NamedTuple):
    """`Q_1` and `Q_2`, pooled, and what tells the error of their ratio.

    `rows` are the parts of the two from each learner; `squares` the mean squares of the
    terms of `Q_1`, of the products of the terms of both, and of those of `Q_2`.
    """

    q_1: float
    q_2: float
    rows: Floats
    squares: Floats

    @property
    def rho(self) -> float:
        """Ratio of the second to the first; NaN where there is none."""
        return self.q_2 / self.q_1 if self.q_1 > 0 else np.nan

    @property
    def error(self) -> float:
        """Monte Carlo error of `rho`: a U-statistic's over pairs of learners."""
        if self.q_1 <= 0:
            return np.nan
        return self._error_of(-self.rho, 1.0) / self.q_1

    @property
    def q_1_error(self) -> float:
        """Monte Carlo error of `q_1`."""
        return self._error_of(1.0, 0.0)

    def _error_of(self, first: float, second: float) -> float:
        """Monte Carlo error of a combination of the two sums."""
        L = self.rows.shape[1]
        pair = float(np.array([first**2, 2 * first * second, second**2]) @ self.squares)
        row = float((first * self.rows[0] + second * self.rows[1]).var(ddof=1))
        single = max(row - pair / (L - 1), 0.0)
        return float(np.sqrt(4 * single / L + 2 * pair / (L * (L - 1))))

    @property
    def outlook(self) -> float:
        """Error that falls with the number of learners, also where no `Q_1` shows."""
        L = self.rows.shape[1]
        first, _, second = np.sqrt(2 * np.abs(self.squares) / (L * (L - 1)))
        return float(second / max(self.q_1, first)) if first > 0 else np.inf


def sum_pairs(
    presence: Any,
    values: Floats,
    chances: PairChances,
    weights: Floats | None = None,
) -> PairSums:
    """Compare all pairs of learners, block after block.

    Parameters
    ----------
    presence : ndarray or csr_array of shape (L, n)
        Whether an observation is in a subsample, as single precision: overlaps are
        whole numbers, which it holds exactly.
    values : ndarray of shape (L, r)
        Reference values.
    chances : PairChances
        Of the design.
    weights : ndarray of shape (L,), optional
        Of the learners of a complete design. There a learner is compared with
        itself too: a mean over all subsamples has no Monte Carlo bias.
    """
    L, n = presence.shape
    share = np.full(L, 1.0) if weights is None else weights * (L / weights.sum())
    h = _standardised(values, share)
    size = np.asarray(presence.sum(axis=1, dtype=np.float64))
    rows, squares = np.zeros((2, L)), np.zeros(3)
    for start in range(0, L, BLOCK):
        stop = min(start + BLOCK, L)
        block = slice(start, stop)
        # Pairs are compared once: with learners of the block and after it.
        overlap = dense(presence[block] @ presence[start:].T).astype(np.float64)
        terms = pair_weights(overlap, size[block, None], size[start:], n, chances)
        product = h[block] @ h[start:].T
        if weights is None:
            np.einsum("ii->i", product[:, : stop - start])[:] = 0.0
        for row, term in zip(rows, terms, strict=True):
            np.multiply(term, product, out=term)
            row[block] += term.sum(axis=1)
            row[stop:] += term[:, stop - start :].sum(axis=0)
        squares += 2 * _products(*terms)
        squares -= _products(*(term[:, : stop - start] for term in terms))
    pairs = L * (L - 1) if weights is None else L * L
    q_1, q_2 = rows.sum(axis=1) / pairs
    return PairSums(float(q_1), float(q_2), rows / (L - 1), squares / pairs)


def _products(first: Floats, second: Floats) -> Floats:
    """Sum the squares of the first, the products, and the squares of the second."""
    a, b = first.ravel(), second.ravel()
    return np.array([a @ a, a @ b, b @ b])


def _standardised(values: Floats, share: Floats) -> Floats:
    """Centre and scale the columns that vary, so that no unit counts more."""
    centred = values - values[0]
    centred = centred - np.average(centred, axis=0, weights=share)
    spread = np.abs(centred).max(axis=0, initial=0.0)
    live = spread > 0
    scaled = centred[:, live] / spread[live]
    scaled /= np.sqrt(np.average(scaled**2, axis=0, weights=share))
    scaled *= share[:, None] / np.sqrt(max(scaled.shape[1], 1))
    return np.asarray(scaled)
