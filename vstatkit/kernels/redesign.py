"""The same kernel on another design matrix."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.kernels.protocol import Predictive


def with_design(kernel: Any, X: Floats) -> Any:
    """Give the kernel other predictors; response, weights and options stay.

    Parameters
    ----------
    kernel : Predictive
        A frozen data class with the field `X`, as the kernels of the package are.
    X : ndarray of shape (n, p)
        Design matrix of the same shape.
    """
    known = {one.name for one in fields(kernel)} if is_dataclass(kernel) else set()
    if not isinstance(kernel, Predictive) or "X" not in known:
        raise ValueError(
            f"{type(kernel).__name__} cannot be fitted to other predictors: that needs "
            "a kernel that predicts and is a data class with the field `X`."
        )
    changes: dict[str, Any] = {"X": X}
    if "rank" in known:  # linear kernels compare it with that of each subsample
        changes["rank"] = int(np.linalg.matrix_rank(X))
    same: Any = kernel
    return replace(same, **changes)
