"""Averages over rows, learner by learner: an average of kernels is a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.memory import FLOAT, POINTS, check_memory
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.reading import LearnerSums, OwnLearners
from vstatkit.inference.estimate import ensemble_mean
from vstatkit.inference.population import RowInfluence, deletions, row_influence
from vstatkit.sampling.design import SubsampleDesign

MAX_LEVELS = 50
"""Most levels of a column that averages are taken by."""


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
    design : SubsampleDesign
        Which units each learner saw.
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
    design: SubsampleDesign
    sample: Sample
    units: Ints | None
    population: bool
    out_of_bag: bool

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

    def slopes(self, move: "RowMove", shares: Any) -> "Averaged":
        """Average what changes between two settings of the rows, over their widths."""
        weights = shares.multiply(1 / move.widths).tocsr()
        before = self.averages(self.sample.at(move.start), weights)
        after = self.averages(self.sample.at(move.end), weights)
        return after.less(before, move.widths)

    def averages(self, frame: pd.DataFrame, shares: Any) -> "Averaged":
        """Average over the rows of a frame, in several ways."""
        found = self.sums(frame, shares)
        own = found.own if self.population else None
        return Averaged(found.values, own)

    def influence(self, found: "Averaged", shares: Any) -> RowInfluence | None:
        """Influence of the rows on each of the averages, all outputs of it in a row."""
        own = found.own
        if own is None:
            return None
        shared = self.units is not None
        n_units = self.design.n if shared else len(own)
        without: list[Any] = [None] * shares.shape[0]
        if self.out_of_bag:
            whole = ensemble_mean(self.design, found.values)
            left_out = whole - deletions(self.design, found.values)[0]
            without = np.split(left_out, len(without), axis=1)
        parts = [
            row_influence(own, one, self.units, n_units, centre)
            for one, centre in zip(shares.toarray(), without, strict=True)
        ]
        return RowInfluence(np.concatenate(parts, axis=1), shared)


@dataclass(frozen=True)
class Averaged:
    """Averages by every learner.

    Attributes
    ----------
    values : ndarray of shape (B, g * outputs)
        The averages.
    own : ndarray of shape (rows, outputs) or None
        A prediction of every row, for its influence.
    """

    values: Floats
    own: Floats | None

    def less(self, other: "Averaged", widths: Floats) -> "Averaged":
        """Take differences; those of rows over their widths, which averages are."""
        own = None
        if self.own is not None and other.own is not None:
            own = (self.own - other.own) / widths[:, None]
        return Averaged(self.values - other.values, own)


def joined_influence(parts: Sequence[RowInfluence | None]) -> RowInfluence | None:
    """Put the influences on several averages side by side."""
    known = [one for one in parts if one is not None]
    if not known:
        return None
    values = np.concatenate([one.values for one in known], axis=1)
    return replace(known[0], values=values)
