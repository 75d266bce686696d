"""Weights of rows, as scikit-learn's estimators take them, and of classes."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from vstatkit._typing import Floats


def row_weights(sample_weight: Any, n: int) -> Floats | None:
    """Check the weights of n rows; one number is for all of them."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weights: Floats = check_array(
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        input_name="sample_weight",
        copy=True,
    )
    if weights.shape != (n,):
        raise ValueError(
            f"`sample_weight` must have a number for each of the {n} rows; got an "
            f"array of shape {weights.shape}."
        )
    if (weights < 0).any():
        raise ValueError(
            "`sample_weight` must be at least 0, and above it for some rows; got "
            f"numbers from {weights.min():g} to {weights.max():g}."
        )
    if not weights.any():
        raise ValueError(
            "`sample_weight` must be above 0 for some rows; every weight is zero."
        )
    return weights


def balance(counts: Any, codes: Floats) -> Floats:
    """Weigh classes so that those of a subsample weigh the same.

    Parameters
    ----------
    counts : ndarray or sparse array of shape (L, n)
        Times each row occurs in each subsample.
    codes : ndarray of shape (n,)
        Class of every row, from 0 on.

    Returns
    -------
    ndarray of shape (L, K)
        Rows of the subsample over (its classes times its rows of the class).

    Examples
    --------
    >>> balance(np.array([[2, 1, 1]]), np.array([0, 0, 1])).round(3)
    array([[0.667, 2.   ]])
    """
    member = np.eye(1 + int(codes.max()))[codes.astype(np.int64)]
    of_class = np.asarray(counts @ member, dtype=np.float64)
    present = (of_class > 0).sum(axis=1, keepdims=True)
    rows = of_class.sum(axis=1, keepdims=True)
    return np.asarray(rows / (present * np.maximum(of_class, 1.0)))
