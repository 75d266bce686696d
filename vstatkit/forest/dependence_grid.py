"""Grids of partial dependence, as scikit-learn lays them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats.mstats import mquantiles

from vstatkit._typing import Floats
from vstatkit.kernels.tree import row_weights
from vstatkit.kernels.tree_options import Factors
from vstatkit.kernels.tree_prediction import MOST_AXES, Axis, Grid
from vstatkit.text import suggest_name


@dataclass(frozen=True)
class GridPoints:
    """How the points of a grid are chosen."""

    # Quantiles of a feature between which points are evenly spaced
    percentiles: tuple[float, float]
    # Number of points of a feature. A factor, or a feature with fewer values, has one
    # point for each value.
    resolution: int
    custom: Mapping[Any, Any]  # points that were given, by feature

    def __post_init__(self) -> None:
        low, high = self.percentiles
        if not 0 <= low < high <= 1:
            raise ValueError(
                "`percentiles` must be two numbers from 0 to 1, in ascending order; "
                f"got {self.percentiles!r}."
            )
        if self.resolution < 2:
            raise ValueError(
                f"`grid_resolution` must be at least 2; got {self.resolution}."
            )

    def custom_points(self, keys: Sequence[Any]) -> NDArray[Any] | None:
        """Return the points that were given for a feature, by position or name."""
        values = next((self.custom[key] for key in keys if key in self.custom), None)
        if values is None:
            return None
        points = np.asarray(values)
        if points.ndim != 1 or not points.size:
            raise ValueError(
                f"`custom_values` must have a list of points for {keys[0]!r}; got "
                f"{values!r}."
            )
        return points.astype(object) if points.dtype.kind == "U" else points

    def choose(self, column: Floats, *, factor: bool) -> Floats:
        """Choose the points of a column of numbers or codes."""
        observed = column[~np.isnan(column)]
        values = np.unique(observed)
        if factor or values.size < self.resolution:
            return values
        low, high = mquantiles(observed, self.percentiles)
        if low == high:
            raise ValueError(
                f"a feature has the value {low:g} at both `percentiles`; choose "
                "percentiles that are further apart, or give `custom_values`."
            )
        return np.linspace(float(low), float(high), self.resolution)


def find_features(features: Any, names: Sequence[str]) -> list[int]:
    """Find the positions of one or two features, given by position or name."""
    keys = np.ravel(np.asarray(features, dtype=object)).tolist()
    if not 1 <= len(keys) <= MOST_AXES or len(set(keys)) < len(keys):
        raise ValueError(
            f"`features` must be one feature, or two different ones; got {features!r}."
        )
    places = {key: j for j, name in enumerate(names) for key in (j, name)}
    for key in keys:
        if isinstance(key, bool) or key not in places:
            raise ValueError(
                f"`features` must be positions from 0 to {len(names) - 1} or names; "
                f"got {key!r}{suggest_name(str(key), names)}"
            )
    return [places[key] for key in keys]


def build_grid(
    X: Any,
    rows: Floats,
    places: Sequence[int],
    points: GridPoints,
    *,
    names: Sequence[str],
    factors: Factors,
    weights: Any,
) -> tuple[list[NDArray[Any]], Grid]:
    """Build the grid of one or two features at `places`.

    X are rows as they were given, `rows` the same rows as trees read them. The first
    answer has the points of every feature in the user's coding, the grid has them in
    the coding of the trees.
    """
    values, axes = [], []
    for place in places:
        ticks = points.custom_points((place, names[place]))
        levels = factors.categories.get(place) if isinstance(X, pd.DataFrame) else None
        if ticks is None:
            ticks = points.choose(rows[:, place], factor=place in factors.places)
            if levels is not None:
                ticks = np.sort(np.asarray(levels)[ticks.astype(np.int64)])
        codes = ticks if levels is None else levels.get_indexer(pd.Index(ticks))
        if levels is not None and (codes < 0).any():
            raise ValueError(
                f"{ticks[codes < 0][0]!r} is none of the categories {list(levels)}."
            )
        values.append(ticks)
        axes.append(Axis((place,), codes.astype(np.float64)[:, None]))
    return values, Grid(rows, tuple(axes), row_weights(weights, len(rows)))


def by_output(values: Floats, points: Sequence[NDArray[Any]]) -> Floats:
    """Reshape the values of points to (outputs, points of each feature)."""
    sizes = [len(axis) for axis in points]
    return np.moveaxis(values.reshape(*sizes, -1), -1, 0)
