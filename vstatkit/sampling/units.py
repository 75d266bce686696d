"""The units that are resampled: observations, or clusters of them."""

import numpy as np
import pandas as pd

from vstatkit._typing import Ints

MIN_UNITS = 2


def check_units(n: int, what: str = "observations") -> None:
    """Refuse data with too few units to estimate a variance from."""
    if n < MIN_UNITS:
        raise ValueError(
            f"a variance needs at least {MIN_UNITS} {what}; the data have {n}."
        )


def unit_codes(
    clusters: pd.Series | None, index: pd.Index
) -> tuple[Ints | None, pd.Index]:
    """Code clusters; without them every observation is its own unit."""
    if clusters is None:
        return None, index
    codes, levels = pd.factorize(clusters, sort=True)
    check_units(len(levels), "clusters")
    return codes.astype(np.int64), pd.Index(levels)
