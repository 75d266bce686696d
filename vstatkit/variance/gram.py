"""Moments of few learners of many units, by their B x B products."""

import numpy as np

from vstatkit._typing import Counts, Floats
from vstatkit.sampling.counts import dense
from vstatkit.variance.moments import EnsembleMoments, moments_of_powers
from vstatkit.variance.sums import EnsembleSums


def gram_is_cheaper(n: int, B: int, m: int) -> bool:
    """Compare the B x B Gram form with the n x m product, in multiplications."""
    return 3 * B * B * (n / 2 + m) < n * B * m


def moments_by_gram(counts: Counts, values: Floats, *, size: int) -> EnsembleMoments:
    """Compute the moments without ever forming the n x m product.

    `sum_i w_i D_i**2 = h' (N diag(w) N') h` for centred values h: three B x B
    matrices serve any number of query points. The cubic and the quartic
    moment are not available in this form.

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
        sized_squares=N.sum(axis=1) @ h**2,
    )
    appearances = sums.appearances
    inverse = np.divide(
        1.0, appearances, out=np.zeros_like(appearances), where=appearances > 0
    )
    forms = []
    for root in (np.ones_like(inverse), inverse, np.sqrt(inverse)):
        half = N * root
        forms.append(np.einsum("bj,bj->j", h, (half @ half.T) @ h))
    return moments_of_powers(
        sums,
        sums.total,
        squares=sums.squares,
        forms=np.stack(forms),
        first=(N @ inverse) @ h,
        cubic=None,
        quartic=None,
    )
