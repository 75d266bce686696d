"""p-values of several tests at once."""

import numpy as np

from vstatkit._typing import Floats


def holm(pvalues: Floats) -> Floats:
    """Adjust p-values so that rejecting below alpha errs at all with chance alpha.

    Notes
    -----
    The j-th smallest of m is multiplied by `m - j + 1`; none is smaller than the one
    before it, nor above one.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(pvalues)
    raised = pvalues[order] * np.arange(len(pvalues), 0, -1)
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def benjamini_hochberg(pvalues: Floats) -> Floats:
    """Adjust p-values so that a share alpha of those rejected below alpha is false.

    Notes
    -----
    The j-th smallest of m is multiplied by `m / j`; none is larger than the one after
    it.

    References
    ----------
    Benjamini and Hochberg (1995), Controlling the false discovery rate, JRSS B 57.
    doi:10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(pvalues)[::-1]
    m = len(pvalues)
    raised = pvalues[order] * m / np.arange(m, 0, -1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(raised), 1.0)
    return adjusted
