"""Array aliases used in annotations."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = Any  # an array or sparse array of shape (B, n)

Seed: TypeAlias = int | np.random.Generator | None
DataLike: TypeAlias = pd.DataFrame | Mapping[str, Any] | Any
Labels: TypeAlias = pd.Index
Restrictions: TypeAlias = (
    str | Sequence[str] | Sequence[float] | Floats | Mapping[str, float]
)
KernelLike: TypeAlias = Any  # A name, a scikit-learn estimator or a function
