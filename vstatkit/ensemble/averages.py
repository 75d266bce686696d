"""Averages over rows, learner by learner: an average of kernels is a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.memory import FLOAT, POINTS, check_memory
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.reading import LearnerSums, OwnLearners
from vstatkit.inference.estimate import Estimation, ensemble_mean
from vstatkit.inference.population import RowInfluence, deletions, row_influence
from vstatkit.inference.row_noise import RowNoise, row_noise
from vstatkit.sampling.design import SubsampleDesign

MAX_LEVELS = 50
"""Most levels of a column that averages are taken by."""

PICKED = (5, 100)
"""Fewest and most rows of an average whose own predictions are looked at."""

PICKED_VALUES = 2_000
"""Predictions of such rows, of all averages together, by one learner."""


@dataclass(frozen=True)
class Sample:
    """Rows that are averaged over.

    Attributes
    ----------
    frame : DataFrame
        The rows.
    places : ndarray of shape (rows,) or None
        Which of the training rows they are; None for rows of another sample.
    n_all : int
        Rows that they were drawn from.
    variables : tuple of str
        Columns that are needed to predict.
    """

    frame: pd.DataFrame
    places: Ints | None
    n_all: int
    variables: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frame)

    def only(self, rows: Ints) -> "Sample":
        """Take some of the rows."""
        places = None if self.places is None else self.places[rows]
        return replace(self, frame=self.frame.iloc[rows], places=places)

    def at(self, settings: dict[str, Any]) -> pd.DataFrame:
        """Set columns to one value each, or one for every row; all others stay."""
        made = {
            name: _column(self.frame[name], value) for name, value in settings.items()
        }
        return self.frame[list(self.variables)].assign(**made)

    def along(self, name: str, values: list[Any]) -> pd.DataFrame:
        """Repeat the first row, with a column set to each of several values."""
        first = self.frame.iloc[np.zeros(len(values), dtype=np.int64)]
        first = first[list(self.variables)].reset_index(drop=True)
        return first.assign(**{name: _filled(first[name], values)})

    def __str__(self) -> str:
        kind = "other rows" if self.places is None else "training rows"
        n = f"{len(self):,}"
        return (
            f"{n} {kind}"
            if len(self) == self.n_all
            else f"{n} of {self.n_all:,} {kind}"
        )


def _column(column: pd.Series, value: Any) -> Any:
    """Fill a column with a value, in a kind that formulas read in the same way."""
    if isinstance(value, np.ndarray):
        return value
    return _filled(column, [value] * len(column))


def _filled(column: pd.Series, values: list[Any]) -> Any:
    """Write values in the kind of a column; numbers as they are."""
    kind = column.dtype
    if isinstance(values[0], float | np.floating) and not isinstance(
        kind, pd.CategoricalDtype
    ):
        return np.array(values, dtype=np.float64)
    return pd.Series(values, index=column.index, dtype=kind)


def training_places(training: pd.DataFrame | None, frame: pd.DataFrame) -> Ints | None:
    """Find the rows of a frame among the training rows, by labels and values.

    None unless all of them are there: then they are another sample.
    """
    if training is None or not training.index.is_unique or len(frame) == 0:
        return None
    places = training.index.get_indexer(frame.index)
    if (places < 0).any():
        return None
    common = [name for name in training.columns if name in frame.columns]
    known = training[common].iloc[places]
    return places.astype(np.int64) if known.equals(frame[common]) else None


class Division:
    """Rows divided by the levels of a column, or all of them together.

    Attributes
    ----------
    levels : list
        Levels; empty where rows are not divided.
    shares : csr_array of shape (g, rows)
        Weights of the rows in each average; those of an average add up to one.
    counts : ndarray of shape (g,)
        Rows of each average.
    """

    def __init__(self, frame: pd.DataFrame, by: str | None) -> None:
        rows = len(frame)
        codes = np.zeros(rows, dtype=np.int64)
        self.levels: list[Any] = []
        if by is not None:
            codes, self.levels = _levels(frame, by)
        self.counts = np.bincount(codes)
        self.shares = sparse.csr_array(
            (1 / self.counts[codes], (codes, np.arange(rows))),
            shape=(self.counts.size, rows),
        )


def _levels(frame: pd.DataFrame, by: str) -> tuple[Ints, list[Any]]:
    if by not in frame.columns:
        names = ", ".join(map(str, frame.columns))
        raise ValueError(
            f"`by` must be a column of the data, one of {names}; got {by!r}."
        )
    found = pd.Categorical(frame[by]).remove_unused_categories()
    if (found.codes < 0).any():
        raise ValueError(
            f"the column {by!r} has missing values; every row must have a level of it "
            "to be averaged `by` it."
        )
    levels = list(found.categories)
    if len(levels) > MAX_LEVELS:
        raise ValueError(
            f"`by` must be a column of at most {MAX_LEVELS} levels; {by!r} has "
            f"{len(levels):,}. Cut it into classes, for instance with pandas.cut."
        )
    return found.codes.astype(np.int64), levels


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows in averages, and of some rows by themselves.

    Attributes
    ----------
    shares : csr_array of shape (g, rows)
        Weights of the rows in each average.
    picked : csr_array of shape (p, rows)
        Weights of single rows, one in each.
    codes : ndarray of shape (p,)
        The average that each of these rows is in.
    scales : ndarray of shape (p,)
        What the difference between the row and its average is multiplied by, to be the
        row's influence and that of the rows it stands for.
    """

    shares: Any
    picked: Any
    codes: Ints
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

    def over(self, widths: Floats) -> "RowWeights":
        """Divide the weights of the rows by widths."""
        shares, picked = (
            one.multiply(1 / widths).tocsr() for one in (self.shares, self.picked)
        )
        return replace(self, shares=shares, picked=picked)

    @cached_property
    def stacked(self) -> Any:
        """Weights of averages, then those of single rows, shape (g + p, rows)."""
        return sparse.vstack([self.shares, self.picked], format="csr")

    def averaged(self, values: Floats, own: Floats | None) -> "Averaged":
        """Tell averages and single rows apart, from sums of shape (B, (g + p) * c)."""
        B, g = len(values), self.shares.shape[0]
        sums = values.reshape(B, self.stacked.shape[0], -1)
        means, rows = sums[:, :g], sums[:, g:]
        errors = self.scales[:, None] * (rows - means[:, self.codes])
        return Averaged(means.reshape(B, -1), own, errors)


@dataclass(frozen=True)
class RowMove:
    """Rows that are set to one value of a predictor, and to another.

    Attributes
    ----------
    start, end : dict
        The values by predictor, one for all rows or one for each.
    widths : ndarray of shape (rows,)
        What the difference of a row's predictions is divided by.
    """

    start: dict[str, Any]
    end: dict[str, Any]
    widths: Floats

    def divisors(self, shares: Any) -> Floats:
        """Width of every average: no slope exceeds the largest difference over it."""
        return np.asarray(1 / (shares @ (1 / self.widths)))


@dataclass(frozen=True)
class Averager:
    """Averages predictions over rows, with what standard errors need.

    Attributes
    ----------
    predictor : Predictor
        The learners.
    estimation : Estimation
        How variances of predictions are estimated.
    sample : Sample
        Rows averaged over.
    units : ndarray of shape (rows,) or None
        Unit of every row, where the rows are training rows.
    population : bool
        Whether the influence of the rows is asked for.
    out_of_bag : bool
        Whether a training row's influence rests on the learners that did not see it.
    """

    predictor: Predictor
    estimation: Estimation
    sample: Sample
    units: Ints | None
    population: bool
    out_of_bag: bool

    @property
    def design(self) -> SubsampleDesign:
        """Which units each learner saw."""
        return self.estimation.design

    def coded(self, frame: pd.DataFrame) -> Floats:
        """Code rows, if there is room."""
        entries = len(frame) * self.predictor.kernel.n_features
        check_memory({POINTS: 2 * FLOAT * entries})
        return self.predictor.rows(frame)[0]

    def sums(self, frame: pd.DataFrame, shares: Any, times: int = 1) -> LearnerSums:
        """Sum over the rows of a frame: the sample's, `times` after each other."""
        own = None
        if self.population:
            units = self.units if self.out_of_bag else None
            own = OwnLearners(
                self.design, None if units is None else np.tile(units, times)
            )
        return self.predictor.sums(self.coded(frame), shares, own)

    def weights(self, shares: Any, times: int) -> RowWeights:
        """Weight rows for averages that are taken so many times, in different settings.

        Rows of another sample are looked at by themselves, too, for the population.
        """
        n_values = times * shares.shape[0] * self.predictor.kernel.n_outputs
        most = int(np.clip(PICKED_VALUES // n_values, *PICKED))
        alone = self.population and self.units is None
        return RowWeights.of(shares, most if alone else 0)

    def slopes(self, move: "RowMove", weights: RowWeights) -> "Averaged":
        """Average what changes between two settings of the rows, over their widths."""
        over = weights.over(move.widths)
        before = self.averages(self.sample.at(move.start), over)
        after = self.averages(self.sample.at(move.end), over)
        return after.less(before, move.widths)

    def averages(self, frame: pd.DataFrame, weights: RowWeights) -> "Averaged":
        """Average over the rows of a frame, in several ways."""
        found = self.sums(frame, weights.stacked)
        return weights.averaged(found.values, found.own if self.population else None)

    def influence(
        self, found: Sequence["Averaged"], weights: RowWeights
    ) -> RowInfluence | None:
        """Influence of the rows on averages, in several settings one after the other.

        All levels of a setting are in a row, and all outputs of each.
        """
        if not self.population:
            return None
        parts = [self._influences(one, weights.shares) for one in found]
        noise = self._noise(found, weights) if self.units is None else None
        shared = self.units is not None
        return RowInfluence(np.concatenate(parts, axis=1), shared, noise)

    def _influences(self, found: "Averaged", shares: Any) -> Floats:
        """Influences on the averages of one setting."""
        own = np.asarray(found.own)
        n_units = len(own) if self.units is None else self.design.n
        without: list[Any] = [None] * shares.shape[0]
        if self.out_of_bag:
            whole = ensemble_mean(self.design, found.values)
            left_out = whole - deletions(self.design, found.values)[0]
            without = np.split(left_out, len(without), axis=1)
        parts = [
            row_influence(own, one, self.units, n_units, centre)
            for one, centre in zip(shares.toarray(), without, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def _noise(self, found: Sequence["Averaged"], weights: RowWeights) -> RowNoise:
        errors = np.stack([one.errors for one in found], axis=2)
        return row_noise(
            self.estimation, errors, weights.codes, weights.shares.shape[0]
        )


@dataclass(frozen=True)
class Averaged:
    """Averages by every learner.

    Attributes
    ----------
    values : ndarray of shape (B, g * outputs)
        The averages.
    own : ndarray of shape (rows, outputs) or None
        A prediction of every row, for its influence.
    errors : ndarray of shape (B, p, outputs)
        Influences of single rows, by every learner.
    """

    values: Floats
    own: Floats | None
    errors: Floats

    def less(self, other: "Averaged", widths: Floats) -> "Averaged":
        """Take differences; those of rows over their widths, which averages are."""
        own = None
        if self.own is not None and other.own is not None:
            own = (self.own - other.own) / widths[:, None]
        return Averaged(self.values - other.values, own, self.errors - other.errors)
