"""Curves and maps of averages: partial dependence and accumulated local effects."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.averages import Averager
from vstatkit.inference.population import RowInfluence
from vstatkit.kernels.tree_prediction import Axis, Grid, walks

ENDS = (0.05, 0.95)
"""Quantiles between which a curve is drawn."""


def quantile_grid(column: Floats, points: int) -> Floats:
    """Choose points of a curve: quantiles, each once."""
    known = column[np.isfinite(column)]
    return np.unique(np.quantile(known, np.linspace(*ENDS, points)))


def quantile_edges(column: Floats, intervals: int) -> Floats:
    """Choose edges of intervals that hold about as many rows each."""
    return np.unique(np.quantile(column, np.linspace(0, 1, intervals + 1)))


def grid_averages(
    averager: Averager, axes: Mapping[str, list[Any]]
) -> tuple[Floats, RowInfluence | None]:
    """Average over all rows, with columns set to every combination of values.

    Trees are walked once, with all rows and the whole grid, where each of the columns
    has columns of the design matrix to itself; else rows are predicted at each point.

    Returns
    -------
    values, influence
        See `set_averages`.
    """
    grid = None if averager.population else walked_grid(averager, axes)
    if grid is not None:
        return averager.predictor.dependence(grid), None
    settings = [
        dict(zip(axes, one, strict=True)) for one in itertools.product(*axes.values())
    ]
    return set_averages(averager, settings)


def walked_grid(averager: Averager, axes: Mapping[str, list[Any]]) -> Grid | None:
    """Code the rows and the axes by themselves; None where trees cannot be walked."""
    sample, kernel = averager.sample, averager.predictor.kernel
    columns = [own for own in (_own_columns(averager, name) for name in axes) if own]
    centre = averager.predictor.centre
    walked = walks(kernel) and (centre is None or walks(centre.kernel))
    if not walked or len(columns) < len(axes):
        return None
    rows = averager.coded(sample.at({name: axes[name][0] for name in axes}))
    coded = [averager.coded(sample.along(name, axes[name])) for name in axes]
    pairs = zip(columns, coded, strict=True)
    axis_values = tuple(Axis(own, X[:, own]) for own, X in pairs)
    return Grid(rows, axis_values, sample.weights)


def _own_columns(averager: Averager, name: str) -> tuple[int, ...]:
    """Columns of the design matrix that one of the data has to itself, if any."""
    coding = averager.predictor.coding
    if coding is None:
        return (averager.sample.variables.index(name),)
    return coding.own_columns(name)


def set_averages(
    averager: Averager, settings: list[dict[str, Any]]
) -> tuple[Floats, RowInfluence | None]:
    """Average over all rows, with columns set in each of several ways.

    Returns
    -------
    values : ndarray of shape (B, settings * outputs)
        Averages by every learner.
    influence : RowInfluence or None
        Influence of the rows, if it was asked for.
    """
    weights = [averager.weights(averager.sample.shares, len(settings))] * len(settings)
    parts = averager.averages(settings, weights)
    values = np.concatenate([part.values for part in parts], axis=1)
    return values, averager.influence(parts, weights)


@dataclass(frozen=True)
class Intervals:
    """A numeric predictor cut into intervals, each row in one of them.

    Attributes
    ----------
    name : str
        The predictor.
    edges : ndarray of shape (K + 1,)
        Edges, ascending.
    codes : ndarray of shape (rows,)
        Interval of every row: it is above the lower edge, up to the upper one; the
        first holds its lower edge too.
    weights : ndarray of shape (rows,)
        Weights of the rows.
    """

    name: str
    edges: Floats
    codes: Ints
    weights: Floats

    @classmethod
    def of(
        cls, name: str, column: Floats, intervals: int, weights: Floats | None = None
    ) -> "Intervals":
        """Cut a column at its quantiles; rows weigh the same unless told otherwise."""
        if not np.isfinite(column).all():
            raise ValueError(
                f"{name!r} has missing values; accumulated effects need a value in "
                "every row. Give rows without missing values as `data`."
            )
        edges = quantile_edges(column, intervals)
        if edges.size < 2:
            raise ValueError(f"{name!r} does not vary, so it has no effect to show.")
        codes = np.searchsorted(edges, column, side="left") - 1
        codes = np.clip(codes, 0, edges.size - 2).astype(np.int64)
        weights = np.ones(column.size) if weights is None else weights
        return cls(name, edges, codes, weights)

    @property
    def lower(self) -> Floats:
        """Lower edge of every row's interval."""
        return self.edges[self.codes]

    @property
    def upper(self) -> Floats:
        """Upper edge of every row's interval."""
        return self.edges[self.codes + 1]

    @property
    def masses(self) -> Floats:
        """Weight of the rows of every interval; none is empty."""
        return _masses(self.codes, self.weights, self.edges.size - 1)


def _masses(codes: Ints, weights: Floats, n_cells: int) -> Floats:
    """Add up the weights of the rows in each cell."""
    return np.asarray(np.bincount(codes, weights, minlength=n_cells), dtype=np.float64)


def _cell_shares(codes: Ints, weights: Floats, n_cells: int) -> Any:
    """Weights that average the rows of each cell; zero where it is empty."""
    masses = _masses(codes, weights, n_cells)
    rows = np.arange(codes.size)
    shares = weights / masses[codes]
    return sparse.csr_array((shares, (codes, rows)), (n_cells, codes.size))


def accumulated_line(averager: Averager, cut: Intervals) -> Floats:
    r"""Accumulated local effects of one predictor, for every learner.

    Returns
    -------
    ndarray of shape (B, K + 1, outputs)
        At the edges.

    Notes
    -----
    .. math::

        A_k = \sum_{l \le k} \frac{1}{n_l} \sum_{i \in l} w_i
        \bigl( f(z_l, x_i) - f(z_{l-1}, x_i) \bigr) - \bar A ,

    with the sum of the weights :math:`w_i` of an interval in :math:`n_l`, and the mean
    of the two edges of every row's interval in :math:`\bar A`.
    """
    K = cut.masses.size
    shares = _cell_shares(cut.codes, cut.weights, K)
    frames = (averager.sample.at({cut.name: one}) for one in (cut.lower, cut.upper))
    low, high = (averager.sums(frame, shares=shares).values for frame in frames)
    steps = (high - low).reshape(len(low), K, -1)
    line = _accumulated(steps, 1)
    middle = (line[:, 1:] + line[:, :-1]) / 2
    weights = cut.masses / cut.masses.sum()
    return np.asarray(line - np.einsum("bkc,k->bc", middle, weights)[:, None])


def accumulated_map(
    averager: Averager, one: Intervals, two: Intervals
) -> tuple[Floats, Bools]:
    """Accumulated local effects of two predictors together, for every learner.

    What each does by itself is taken out. Cells without rows take the difference of
    the nearest cell that has some, by the ranks of the intervals.

    Returns
    -------
    values : ndarray of shape (B, K + 1, L + 1, outputs)
        At the corners of the cells.
    empty : ndarray of shape (K, L)
        Cells without rows.
    """
    K, L = one.masses.size, two.masses.size
    cells = one.codes * L + two.codes
    shares = _cell_shares(cells, one.weights, K * L)
    corners = {}
    for a, first in enumerate((one.lower, one.upper)):
        for b, second in enumerate((two.lower, two.upper)):
            frame = averager.sample.at({one.name: first, two.name: second})
            corners[a, b] = averager.sums(frame, shares=shares).values
    steps = (corners[1, 1] - corners[1, 0]) - (corners[0, 1] - corners[0, 0])
    counts = np.bincount(cells, minlength=K * L).reshape(K, L)
    steps = steps.reshape(len(steps), K * L, -1)[:, _nearest_cells(counts)]
    steps = steps.reshape(len(steps), K, L, -1)
    table = _accumulated(_accumulated(steps, 1), 2)
    weights = _masses(cells, one.weights, K * L).reshape(K, L)
    table = (
        table
        - _main_part(table, weights)
        - _main_part(table.swapaxes(1, 2), weights.T).swapaxes(1, 2)
    )
    middle = (
        table[:, 1:, 1:] + table[:, 1:, :-1] + table[:, :-1, 1:] + table[:, :-1, :-1]
    ) / 4
    mean = np.einsum("bklc,kl->bc", middle, weights / weights.sum())
    return np.asarray(table - mean[:, None, None]), counts == 0


def _accumulated(steps: Floats, axis: int) -> Floats:
    """Add up along an axis, from zero at its first edge."""
    first = np.zeros_like(np.take(steps, [0], axis=axis))
    return np.concatenate([first, np.cumsum(steps, axis=axis)], axis=axis)


def _main_part(table: Floats, weights: Floats) -> Floats:
    """Find what a map's first predictor does by itself, (B, K + 1, 1, outputs)."""
    rise = table[:, 1:] - table[:, :-1]
    middle = (rise[:, :, 1:] + rise[:, :, :-1]) / 2
    totals = weights.sum(axis=1)
    mean = np.einsum("bklc,kl->bkc", middle, weights / totals[:, None])
    return _accumulated(mean, 1)[:, :, None]


def _nearest_cells(counts: Ints) -> Ints:
    """For every cell itself, or the nearest cell that has rows."""
    K, L = counts.shape
    places = np.stack(
        np.meshgrid((np.arange(K) + 0.5) / K, (np.arange(L) + 0.5) / L, indexing="ij"),
        axis=-1,
    ).reshape(-1, 2)
    full = np.flatnonzero(counts.ravel())
    distance = ((places[:, None] - places[full][None]) ** 2).sum(axis=2)
    return np.asarray(full[distance.argmin(axis=1)])
