"""Partial dependence of a fitted forest, with scikit-learn's interface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats.mstats import mquantiles
from sklearn.utils import Bunch

from vstatkit._typing import Floats
from vstatkit.formula.input_checks import suggest_name
from vstatkit.kernels.tree import row_weights
from vstatkit.kernels.tree_options import Factors
from vstatkit.kernels.tree_prediction import MOST_AXES, Axis, Grid

if TYPE_CHECKING:
    from vstatkit.forest.base import Forest


class Dependence:
    """The method of forests."""

    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        sample_weight: Any = None,
        percentiles: tuple[float, float] = (0.05, 0.95),
        grid_resolution: int = 100,
        custom_values: Mapping[Any, Any] | None = None,
        return_std: bool = False,
    ) -> Bunch:
        """Average the predictions over rows, with one or two features set.

        What `sklearn.inspection.partial_dependence` computes with method="brute", for
        the same grid; but a tree is walked once for all rows and points.

        Parameters
        ----------
        X : array-like of shape (rows, p)
            Rows to average over.
        features : int, str, or two of them
            Features that are set, by place or name.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows in the average.
        percentiles : tuple of float
            Quantiles of a feature that the grid ends at.
        grid_resolution : int
            Points of a feature; factors, and features with fewer values, have one
            for each value.
        custom_values : dict, optional
            The points themselves, by feature.
        return_std : bool
            Whether to estimate standard errors, too: for these rows as they are.

        Returns
        -------
        Bunch
            `grid_values`, a list with the points of each feature, and `average`, of
            shape (outputs, points) or (outputs, points, points): one output for numbers
            and two classes (the second), else one for each class. `std_error`, of the
            same shape, if asked for.

        See Also
        --------
        EnsembleResults.partial_dependence : With bands, tests and a picture.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> X, y = data[["x1", "x2", "x4"]], data["y"]
        >>> forest = vs.ForestRegressor(50, random_state=1).fit(X, y)
        >>> forest.partial_dependence(X, "x4", grid_resolution=5).average.shape
        (1, 5)
        """
        forest = cast("Forest", self)
        rows, names = forest._rows(X), forest._feature_names()
        values, grid = grid_of(
            *(X, rows, places_of(features, names)),
            Marks(percentiles, grid_resolution, custom_values or {}),
            names=names,
            factors=forest._factors,
            weights=sample_weight,
        )
        trees = forest._predictor.dependence(grid)
        result = Bunch(
            grid_values=values, average=by_output(trees.mean(axis=0), values)
        )
        if return_std:
            result.std_error = by_output(forest._average_errors(trees), values)
        return result


@dataclass(frozen=True)
class Marks:
    """Where the points of a grid are.

    Attributes
    ----------
    percentiles : tuple of float
        Quantiles between which numbers are divided evenly.
    resolution : int
        Points of a feature; one that has fewer values, or is a factor, has these.
    custom : mapping
        Points by feature, where they are given.
    """

    percentiles: tuple[float, float]
    resolution: int
    custom: Mapping[Any, Any]

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

    def given(self, keys: Sequence[Any]) -> NDArray[Any] | None:
        """Take the points that are given for a feature, by its place or its name."""
        found = next((self.custom[key] for key in keys if key in self.custom), None)
        if found is None:
            return None
        points = np.asarray(found)
        if points.ndim != 1 or not points.size:
            raise ValueError(
                f"`custom_values` must have a list of points for {keys[0]!r}; got "
                f"{found!r}."
            )
        return points.astype(object) if points.dtype.kind == "U" else points

    def numbers(self, column: Floats, *, factor: bool) -> Floats:
        """Choose the points of a column of numbers or codes."""
        known = np.unique(column[~np.isnan(column)])
        if factor or known.size < self.resolution:
            return known
        low, high = mquantiles(column[~np.isnan(column)], self.percentiles)
        if low == high:
            raise ValueError(
                f"a feature is {low:g} at both `percentiles`; choose some that are "
                "further apart, or give `custom_values`."
            )
        return np.linspace(float(low), float(high), self.resolution)


def places_of(features: Any, names: Sequence[str]) -> list[int]:
    """Find one or two features by their places or names."""
    keys = np.ravel(np.asarray(features, dtype=object)).tolist()
    if not 1 <= len(keys) <= MOST_AXES or len(set(keys)) < len(keys):
        raise ValueError(
            f"`features` must be one feature, or two different ones; got {features!r}."
        )
    known = {key: j for j, name in enumerate(names) for key in (j, name)}
    for one in keys:
        if isinstance(one, bool) or one not in known:
            raise ValueError(
                f"`features` must be places from 0 to {len(names) - 1} or names; got "
                f"{one!r}{suggest_name(str(one), names)}"
            )
    return [known[one] for one in keys]


def grid_of(
    X: Any,
    rows: Floats,
    places: Sequence[int],
    marks: Marks,
    *,
    names: Sequence[str],
    factors: Factors,
    weights: Any,
) -> tuple[list[NDArray[Any]], Grid]:
    """Lay out a grid.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows as they were given.
    rows : ndarray of shape (n, p)
        Rows as trees read them.
    places : sequence of int
        Features that are set.
    marks : Marks
        Where the points are.
    names : sequence of str
        Names of the features.
    factors : Factors
        Features that are unordered factors.
    weights : array-like of shape (n,) or None
        Of the rows.

    Returns
    -------
    values : list of ndarray
        Points of every feature, as users write them.
    grid : Grid
        The same for the trees.
    """
    values, axes = [], []
    for place in places:
        points = marks.given((place, names[place]))
        levels = factors.categories.get(place) if isinstance(X, pd.DataFrame) else None
        if points is None:
            points = marks.numbers(rows[:, place], factor=place in factors.places)
            if levels is not None:
                points = np.sort(np.asarray(levels)[points.astype(np.int64)])
        codes = _codes(points, levels)
        values.append(points)
        axes.append(Axis((place,), codes[:, None]))
    return values, Grid(rows, tuple(axes), row_weights(weights, len(rows)))


def _codes(points: NDArray[Any], levels: Any) -> Floats:
    if levels is None:
        return points.astype(np.float64)
    codes = levels.get_indexer(points)
    if (codes < 0).any():
        raise ValueError(
            f"{points[codes < 0][0]!r} is none of the categories {list(levels)}."
        )
    return np.asarray(codes, dtype=np.float64)


def by_output(values: Floats, points: Sequence[NDArray[Any]]) -> Floats:
    """Shape what is known of every point as scikit-learn does: outputs first."""
    sizes = [len(axis) for axis in points]
    return np.moveaxis(values.reshape(*sizes, -1), -1, 0)
