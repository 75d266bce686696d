"""Weights of rows, as scikit-learn's estimators take them."""

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
        sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight"
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
