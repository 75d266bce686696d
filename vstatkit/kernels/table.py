"""Features in ranked form and the response, prepared once and shared by all trees."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Floats

Ranks = NDArray[np.int32]


@dataclass(frozen=True)
class RankedTable:
    """Every column of a design matrix in its order.

    Attributes
    ----------
    values : ndarray of shape (p, n)
        Every column in ascending order, missing values last.
    order : ndarray of shape (p, n)
        Row of every rank; equal values keep the order of the rows.
    rank : ndarray of shape (p, n)
        Rank of every row.
    n_known : ndarray of shape (p,)
        Values that are not missing.
    """

    values: Floats
    order: Ranks
    rank: Ranks
    n_known: Ranks

    @classmethod
    def of(cls, X: Floats) -> "RankedTable":
        """Rank the columns of a matrix."""
        rows = np.asfortranarray(X, dtype=np.float64)
        # NaN sorts last. The order of equal values decides on roundings: it must not
        # depend on the other rows, which a tree's own table does not hold.
        order = np.argsort(rows.T, axis=1, kind="stable")
        rank = np.empty(order.shape, dtype=np.int32)
        np.put_along_axis(
            rank, order, np.arange(len(rows), dtype=np.int32)[None], axis=1
        )
        return cls(
            values=np.ascontiguousarray(np.take_along_axis(rows.T, order, axis=1)),
            order=order.astype(np.int32),
            rank=rank,
            n_known=np.count_nonzero(~np.isnan(rows), axis=0).astype(np.int32),
        )


def standardised(y: Floats) -> tuple[Floats, float, float]:
    """Centre y and scale it by a power of two near its spread, which is exact.

    Returns
    -------
    scaled : ndarray of shape (n,)
        `(y - centre) / scale`.
    centre, scale : float
        Mean, and power of two.

    Notes
    -----
    A power of two near the largest number is taken out first: squares of huge
    and of tiny numbers would leave the range of floating point.

    Examples
    --------
    >>> standardised(np.array([2e200, 4e200, 6e200]))[1] == 4e200
    True
    """
    largest = float(np.abs(y).max())
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    unit = np.ldexp(y, -exponent)
    middle = float(unit.mean())
    spread = float(np.std(unit))
    shift = int(np.round(np.log2(spread))) if spread > 0 else -exponent
    shift = min(shift, 1023 - exponent)  # the largest power of two that there is
    scaled = np.ascontiguousarray(np.ldexp(unit - middle, -shift), dtype=np.float64)
    return scaled, math.ldexp(middle, exponent), math.ldexp(1.0, shift + exponent)
