"""Averages over rows, and curves of them, learner by learner."""

import itertools
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.memory import FLOAT, POINTS, check_memory
from vstatkit.ensemble.prediction import LearnerSums, OwnLearners, Predictor
from vstatkit.inference.estimates import Estimation, ensemble_mean
from vstatkit.inference.population import (
    RowInfluence,
    deletions,
    row_influence,
    row_noise,
)
from vstatkit.kernels.tree import StoredTreeKernel
from vstatkit.kernels.tree_prediction import Axis, Grid
from vstatkit.text import suggest_name

MAX_LEVELS = 50  # most levels of a column that averages are taken by
# Rows that are coded and predicted at a time, of several settings.
STACKED_ROWS = 50_000
PICKED = (5, 100)  # fewest and most rows of an average whose own predictions are used
# Predictions of such rows, of all averages together, by one learner.
PICKED_VALUES = 2_000


@dataclass(frozen=True)
class Sample:
    """Rows that are averaged over."""

    frame: pd.DataFrame  # the rows
    # (rows,): which of the training rows they are; None for rows of another sample
    places: Ints | None
    n_all: int  # rows that they were drawn from
    variables: tuple[str, ...]  # columns that are needed to predict
    # (rows,): sampling weights of the rows, all positive; None where they are equal
    weights: Floats | None = None
    weighting: str = ""  # description of the weighting; empty for a fit without weights

    def __len__(self) -> int:
        return len(self.frame)

    def select(self, rows: Ints) -> "Sample":
        """Take some of the rows."""
        frame = self.frame.iloc[rows]
        places = None if self.places is None else self.places[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, frame=frame, places=places, weights=weights)

    @property
    def shares(self) -> Any:
        """Weights of the rows in an average over all of them, shape (1, rows)."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        return sparse.csr_array(weights[None] / weights.sum())

    def at(self, settings: dict[str, Any]) -> pd.DataFrame:
        """Set columns to one value each, or one for every row; all others stay."""
        columns = {
            name: _fill(self.frame[name], value) for name, value in settings.items()
        }
        return self.frame[list(self.variables)].assign(**columns)

    def along(self, name: str, values: list[Any]) -> pd.DataFrame:
        """Repeat the first row, with a column set to each of several values."""
        first = self.frame.iloc[np.zeros(len(values), dtype=np.int64)]
        first = first[list(self.variables)].reset_index(drop=True)
        return first.assign(**{name: _fill(first[name], values)})

    def __str__(self) -> str:
        kind = "other rows" if self.places is None else "training rows"
        n = f"{len(self):,}"
        some = n if len(self) == self.n_all else f"{n} of {self.n_all:,}"
        return f"{some} {kind}{self.weighting}"


def _fill(column: pd.Series, values: Any) -> Any:
    """Convert a value, or a list, to the type of a column; floats stay as they are."""
    if isinstance(values, np.ndarray):
        return values
    values = values if isinstance(values, list) else [values] * len(column)
    number = isinstance(values[0], float | np.floating)
    if number and not isinstance(column.dtype, pd.CategoricalDtype):
        return np.array(values, dtype=np.float64)
    return pd.Series(values, index=column.index, dtype=column.dtype)


def training_places(training: pd.DataFrame | None, frame: pd.DataFrame) -> Ints | None:
    """Find rows among the training rows, by labels and values; None unless all are."""
    if training is None or not training.index.is_unique or len(frame) == 0:
        return None
    places = training.index.get_indexer(frame.index)
    if (places < 0).any():
        return None
    common = [name for name in training.columns if name in frame.columns]
    known = training[common].iloc[places]
    return places.astype(np.int64) if known.equals(frame[common]) else None


# Columns that averages are taken by; None for one average over all rows.
By = str | Sequence[str] | None


class Division:
    """Rows divided by the levels of columns, or all of them together.

    If there are several columns, they are crossed, and only combinations that occur
    count; `levels` are then tuples. There are no `columns` if rows are not divided. The
    weights of the rows in each average, `shares` of shape (g, rows), add up to one;
    `counts` has the rows of each average.
    """

    def __init__(self, sample: Sample, by: By) -> None:
        rows = len(sample)
        self.columns = _by_columns(by)
        codes = np.zeros(rows, dtype=np.int64)
        self.levels: list[Any] = []
        if self.columns:
            codes, self.levels = _crossed_levels(sample.frame, self.columns)
        self.counts = np.bincount(codes)
        weights = np.ones(rows) if sample.weights is None else sample.weights
        self.shares = _cell_shares(codes, weights, self.counts.size)


def _by_columns(by: By) -> tuple[str, ...]:
    if by is None:
        return ()
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns or not all(isinstance(name, str) for name in columns):
        raise ValueError(
            "`by` must be the name of a column, or a list of names; got "
            f"{reprlib.repr(by)}."
        )
    if len(set(columns)) < len(columns):
        raise ValueError(f"`by` names a column twice: {', '.join(columns)}.")
    return columns


def _crossed_levels(
    frame: pd.DataFrame, columns: Sequence[str]
) -> tuple[Ints, list[Any]]:
    """Code the combinations of levels that occur, the first column outermost."""
    coded = [_levels(frame, name) for name in columns]
    if len(coded) == 1:
        return coded[0]
    sizes = [len(levels) for _, levels in coded]
    places = np.ravel_multi_index([codes for codes, _ in coded], sizes)
    occurring, codes = np.unique(places, return_inverse=True)
    _check_levels(", ".join(columns), occurring.size)
    combinations = np.transpose(np.unravel_index(occurring, sizes))
    levels = [
        tuple(own[place] for (_, own), place in zip(coded, row, strict=True))
        for row in combinations
    ]
    return codes.astype(np.int64), levels


def _levels(frame: pd.DataFrame, by: str) -> tuple[Ints, list[Any]]:
    """Code the levels of a column that occur, in order."""
    if by not in frame.columns:
        names = ", ".join(map(str, frame.columns))
        raise ValueError(
            f"`by` must be a column of the data, one of {names}; got {by!r}"
            f"{suggest_name(by, frame.columns)}"
        )
    column = pd.Categorical(frame[by]).remove_unused_categories()
    if (column.codes < 0).any():
        raise ValueError(
            f"the column {by!r} has missing values; every row must have a level of it "
            "to be averaged `by` it."
        )
    levels = list(column.categories)
    _check_levels(by, len(levels))
    return column.codes.astype(np.int64), levels


def _check_levels(by: str, size: int) -> None:
    if size > MAX_LEVELS:
        raise ValueError(
            f"`by` must be a column of at most {MAX_LEVELS} levels; {by!r} has "
            f"{size:,}. Cut it into classes, for instance with pandas.cut."
        )


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows in averages, and of some rows by themselves."""

    shares: Any  # (g, rows): weights of the rows in each average
    picked: Any  # (p, rows): weights of single rows, one in each
    codes: Ints  # (p,): the average that each of these rows is in
    # (p,): factors that turn the difference between the row and its average into the
    # influence of the row and of the rows that it represents
    scales: Floats

    @classmethod
    def of(cls, shares: Any, most: int) -> "RowWeights":
        """Pick at most so many rows of each average, evenly spaced."""
        places, codes, scales = [], [], []
        for code in range(shares.shape[0]):
            own = slice(*shares.indptr[code : code + 2])
            rows, weights = shares.indices[own], shares.data[own]
            G, s = len(rows), min(len(rows), most)
            some = np.linspace(0, G - 1, s).astype(np.int64)
            places.append(rows[some])
            codes.append(np.full(s, code))
            scales.append(G / np.sqrt(max(G - 1, 1) * max(s, 1)) * weights[some])
        columns = np.concatenate(places)
        entries = np.ones(columns.size), (np.arange(columns.size), columns)
        picked = sparse.csr_array(entries, shape=(columns.size, shares.shape[1]))
        return cls(shares, picked, np.concatenate(codes), np.concatenate(scales))

    def divide(self, widths: Floats) -> "RowWeights":
        """Divide the weights of the rows by widths."""
        shares = self.shares.multiply(1 / widths).tocsr()
        picked = self.picked.multiply(1 / widths).tocsr()
        return replace(self, shares=shares, picked=picked)

    @cached_property
    def stacked(self) -> Any:
        """Weights of averages, then those of single rows, shape (g + p, rows)."""
        return sparse.vstack([self.shares, self.picked], format="csr")

    def split_averages(self, values: Floats, own: Floats | None) -> "LearnerAverages":
        """Separate averages from single rows, given sums of shape (B, (g + p) * c)."""
        B, g = len(values), self.shares.shape[0]
        sums = values.reshape(B, self.stacked.shape[0], -1)
        means, rows = sums[:, :g], sums[:, g:]
        errors = self.scales[:, None] * (rows - means[:, self.codes])
        return LearnerAverages(means.reshape(B, -1), own, errors)


@dataclass(frozen=True)
class RowMove:
    """Rows that are set to one value of a predictor, and to another."""

    start: dict[str, Any]  # values by predictor, one for all rows or one for each
    end: dict[str, Any]  # values after the move
    widths: Floats  # (rows,): divisors of the difference between a row's predictions
    # (rows,): rows that can move, where a predictor is missing in others; None for all
    known: Bools | None = None

    def shares_of(self, shares: Any) -> Any:
        """Weights (g, rows) of rows that can move, zero for others; sums are one."""
        if self.known is None:
            return shares
        weights = shares.data * self.known[shares.indices]
        entries = weights, shares.indices, shares.indptr
        movable = sparse.csr_array(entries, shares.shape)
        totals = movable.sum(axis=1)
        if not totals.all():
            raise ValueError(
                f"{', '.join(self.start)} is missing in all rows of an average. Join "
                "levels of `by`, or leave the predictor out."
            )
        movable.data /= np.repeat(totals, np.diff(movable.indptr))
        return movable

    def divisors(self, shares: Any) -> Floats:
        """Width of every average: no slope exceeds the largest difference over it."""
        return np.asarray(1 / (shares @ (1 / self.widths)))


@dataclass(frozen=True)
class Averager:
    """Averages predictions over rows, with the influences for standard errors."""

    predictor: Predictor  # the learners
    estimation: Estimation  # how variances of predictions are estimated
    sample: Sample  # rows averaged over
    units: Ints | None  # (rows,): unit of every row, where the rows are training rows
    population: bool  # whether to compute the influence of the rows
    # Whether the influence of a training row uses only learners that did not see it
    out_of_bag: bool

    def code_rows(self, frame: pd.DataFrame) -> Floats:
        """Code rows, after a check of the memory."""
        entries = len(frame) * self.predictor.kernel.n_features
        check_memory({POINTS: 2 * FLOAT * entries})
        return self.predictor.rows(frame)[0]

    def sums(self, *frames: pd.DataFrame, shares: Any) -> LearnerSums:
        """Sum over the rows of frames: the sample's rows in several settings."""
        own = None
        if self.population:
            units = self.units if self.out_of_bag else None
            units = None if units is None else np.tile(units, len(frames))
            own = OwnLearners(self.estimation.design, units)
        # Coded one by one: errors name the rows by their labels.
        coded: list[Any] = [self.code_rows(frame) for frame in frames]
        as_frames = isinstance(coded[0], pd.DataFrame)  # forests of R take frames
        stacked = pd.concat(coded) if as_frames else np.concatenate(coded)
        return self.predictor.sums(stacked, shares, own)

    def weights(self, shares: Any, times: int) -> RowWeights:
        """Weight rows for averages that are taken so many times, in different settings.

        Rows of another sample are looked at by themselves, too, for the population.
        """
        n_values = times * shares.shape[0] * self.predictor.kernel.n_outputs
        most = int(np.clip(PICKED_VALUES // n_values, *PICKED))
        alone = self.population and self.units is None
        return RowWeights.of(shares, most if alone else 0)

    def slopes(
        self, moves: Sequence["RowMove"], weights: Sequence[RowWeights]
    ) -> list["LearnerAverages"]:
        """Average the difference between two settings of the rows, over the widths."""
        settings, divided = [], []
        for move, row_weights in zip(moves, weights, strict=True):
            settings += [move.start, move.end]
            divided += [row_weights.divide(move.widths)] * 2
        averages = self.averages(settings, divided)
        rows = zip(moves, averages[::2], averages[1::2], strict=True)
        return [after.subtract(before, move.widths) for move, before, after in rows]

    def averages(
        self, settings: Sequence[dict[str, Any]], weights: Sequence[RowWeights]
    ) -> list["LearnerAverages"]:
        """Average over all rows, with columns set in each of several ways.

        Rows of several settings are predicted together: as many as STACKED_ROWS, or
        all of them if learners are fitted again for every prediction.
        """
        step = max(1, STACKED_ROWS // len(self.sample))
        if self.predictor.refits:
            step = len(settings)
        averages: list[LearnerAverages] = []
        for first in range(0, len(settings), step):
            some, own = settings[first : first + step], weights[first : first + step]
            frames = [self.sample.at(columns) for columns in some]
            stacked = [row_weights.stacked for row_weights in own]
            shares = sparse.block_diag(stacked, format="csr")
            sums = self.sums(*frames, shares=shares)
            parts = np.split(sums.values, len(some), axis=1)
            rows: list[Any] = [None] * len(some)
            if self.population:
                rows = np.split(sums.own, len(some))
            averages += map(RowWeights.split_averages, own, parts, rows)
        return averages

    def influence(
        self, averages: Sequence["LearnerAverages"], weights: Sequence[RowWeights]
    ) -> RowInfluence | None:
        """Influence of the rows on averages, in several settings one after the other.

        All levels of a setting are in a row, and all outputs of each. The weights of
        the settings differ where rows cannot move.
        """
        if not self.population:
            return None
        parts = [
            self._influences(own, row_weights.shares)
            for own, row_weights in zip(averages, weights, strict=True)
        ]
        noise = None
        if self.units is None:
            errors = np.stack([own.errors for own in averages], axis=2)
            codes, n_averages = weights[0].codes, weights[0].shares.shape[0]
            noise = row_noise(self.estimation, errors, codes, n_averages)
        return RowInfluence(
            np.concatenate(parts, axis=1), self.units is not None, noise
        )

    def _influences(self, averages: "LearnerAverages", shares: Any) -> Floats:
        """Influences on the averages of one setting."""
        predictions = np.asarray(averages.own)
        design = self.estimation.design
        n_units = len(predictions) if self.units is None else design.n
        without: list[Any] = [None] * shares.shape[0]
        if self.out_of_bag:
            whole = ensemble_mean(design, averages.values)
            left_out = whole - deletions(design, averages.values)[0]
            without = np.split(left_out, len(without), axis=1)
        parts = [
            row_influence(predictions, share, self.units, n_units, centre)
            for share, centre in zip(shares.toarray(), without, strict=True)
        ]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class LearnerAverages:
    """Averages by every learner."""

    values: Floats  # (B, g * outputs): the averages
    own: Floats | None  # (rows, outputs): a prediction of every row, for its influence
    errors: Floats  # (B, p, outputs): influences of single rows, by every learner

    def subtract(self, other: "LearnerAverages", widths: Floats) -> "LearnerAverages":
        """Subtract averages; differences of rows are divided by their widths."""
        differences = None
        if self.own is not None and other.own is not None:
            differences = (self.own - other.own) / widths[:, None]
        return LearnerAverages(
            self.values - other.values, differences, self.errors - other.errors
        )


ENDS = (0.05, 0.95)  # quantiles between which a curve is drawn


def quantile_grid(column: Floats, points: int) -> Floats:
    """Choose points of a curve: quantiles, each once."""
    known = column[np.isfinite(column)]
    return np.unique(np.quantile(known, np.linspace(*ENDS, points)))


def average_grid(
    averager: Averager, axes: Mapping[str, list[Any]]
) -> tuple[Floats, RowInfluence | None]:
    """Average over all rows, with columns set to every combination of values.

    Trees are traversed once, with all rows and the whole grid, if each of the columns
    has its own columns of the design matrix; otherwise rows are predicted point by
    point. See `average_settings` for what is returned.
    """
    grid = None if averager.population else build_grid(averager, axes)
    if grid is not None:
        return averager.predictor.dependence(grid), None
    points = itertools.product(*axes.values())
    settings = [dict(zip(axes, point, strict=True)) for point in points]
    return average_settings(averager, settings)


def build_grid(averager: Averager, axes: Mapping[str, list[Any]]) -> Grid | None:
    """Code the rows and the axes separately; None if trees cannot be traversed."""
    sample, predictor = averager.sample, averager.predictor
    predictors = (
        [predictor] if predictor.centre is None else [predictor, predictor.centre]
    )
    trees = all(isinstance(each.kernel, StoredTreeKernel) for each in predictors)
    coding = predictor.coding
    # Columns of the design matrix that each column of the data has to itself, if any.
    columns = [
        (sample.variables.index(name),) if coding is None else coding.own_columns(name)
        for name in axes
    ]
    if not trees or not all(columns):
        return None
    rows = averager.code_rows(sample.at({name: axes[name][0] for name in axes}))
    coded = [averager.code_rows(sample.along(name, axes[name])) for name in axes]
    pairs = zip(columns, coded, strict=True)
    axis_values = tuple(Axis(own, X[:, own]) for own, X in pairs)
    return Grid(rows, axis_values, sample.weights)


def average_settings(
    averager: Averager, settings: list[dict[str, Any]]
) -> tuple[Floats, RowInfluence | None]:
    """Average over all rows, with columns set in each of several ways.

    Return the averages by every learner, shape (B, settings * outputs), and the
    influence of the rows, if it is requested.
    """
    weights = [averager.weights(averager.sample.shares, len(settings))] * len(settings)
    parts = averager.averages(settings, weights)
    values = np.concatenate([part.values for part in parts], axis=1)
    return values, averager.influence(parts, weights)


@dataclass(frozen=True)
class Intervals:
    """A numeric predictor cut into intervals, each row in one of them."""

    name: str  # the predictor
    edges: Floats  # (K + 1,): ascending edges
    # (rows,): interval of every row; intervals hold their upper edge, the first both
    codes: Ints
    weights: Floats  # (rows,): weights of the rows

    @classmethod
    def of(
        cls, name: str, column: Floats, intervals: int, weights: Floats | None = None
    ) -> "Intervals":
        """Cut a column at its quantiles; rows have equal weights by default."""
        if not np.isfinite(column).all():
            raise ValueError(
                f"{name!r} has missing values; accumulated effects need a value in "
                "every row. Give rows without missing values as `data`."
            )
        edges = np.unique(np.quantile(column, np.linspace(0, 1, intervals + 1)))
        if edges.size < 2:
            raise ValueError(f"{name!r} does not vary, so it has no effect to show.")
        codes = np.searchsorted(edges, column, side="left") - 1
        codes = np.clip(codes, 0, edges.size - 2).astype(np.int64)
        weights = np.ones(column.size) if weights is None else weights
        return cls(name, edges, codes, weights)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Lower and upper edge of every row's interval."""
        return self.edges[self.codes], self.edges[self.codes + 1]

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


def accumulate_line(averager: Averager, cut: Intervals) -> Floats:
    r"""Accumulated local effects of one predictor, for every learner.

    They are at the edges, shape (B, K + 1, outputs).

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
    frames = (averager.sample.at({cut.name: edges}) for edges in cut.ends)
    low, high = (averager.sums(frame, shares=shares).values for frame in frames)
    steps = (high - low).reshape(len(low), K, -1)
    line = _accumulate(steps, 1)
    middle = (line[:, 1:] + line[:, :-1]) / 2
    weights = cut.masses / cut.masses.sum()
    return np.asarray(line - np.einsum("bkc,k->bc", middle, weights)[:, None])


def accumulate_map(
    averager: Averager, first: Intervals, second: Intervals
) -> tuple[Floats, Bools]:
    """Accumulated local effects of two predictors together, for every learner.

    The effects of each predictor alone are subtracted. Cells without rows take the
    difference of the nearest cell with rows, by the ranks of the intervals. Return the
    values at the corners of the cells, shape (B, K + 1, L + 1, outputs), and which
    cells, shape (K, L), have no rows.
    """
    K, L = first.masses.size, second.masses.size
    cells = first.codes * L + second.codes
    shares = _cell_shares(cells, first.weights, K * L)
    corners = []
    for edges, across in itertools.product(first.ends, second.ends):
        frame = averager.sample.at({first.name: edges, second.name: across})
        corners.append(averager.sums(frame, shares=shares).values)
    steps = (corners[3] - corners[2]) - (corners[1] - corners[0])
    counts = np.bincount(cells, minlength=K * L).reshape(K, L)
    steps = steps.reshape(len(steps), K * L, -1)[:, _nearest_cells(counts)]
    steps = steps.reshape(len(steps), K, L, -1)
    table = _accumulate(_accumulate(steps, 1), 2)
    weights = _masses(cells, first.weights, K * L).reshape(K, L)
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


def _accumulate(steps: Floats, axis: int) -> Floats:
    """Add up along an axis, from zero at its first edge."""
    first = np.zeros_like(np.take(steps, [0], axis=axis))
    return np.concatenate([first, np.cumsum(steps, axis=axis)], axis=axis)


def _main_part(table: Floats, weights: Floats) -> Floats:
    """Compute the main effect of a map's first predictor, (B, K + 1, 1, outputs)."""
    rise = table[:, 1:] - table[:, :-1]
    middle = (rise[:, :, 1:] + rise[:, :, :-1]) / 2
    totals = weights.sum(axis=1)
    mean = np.einsum("bklc,kl->bkc", middle, weights / totals[:, None])
    return _accumulate(mean, 1)[:, :, None]


def _nearest_cells(counts: Ints) -> Ints:
    """Return for every cell itself, or the nearest cell that has rows."""
    K, L = counts.shape
    rows, columns = np.indices((K, L)).reshape(2, -1)
    places = np.column_stack([(rows + 0.5) / K, (columns + 0.5) / L])
    full = np.flatnonzero(counts.ravel())
    distance = ((places[:, None] - places[full][None]) ** 2).sum(axis=2)
    return np.asarray(full[distance.argmin(axis=1)])
