"""The rows that learners are evaluated on, in sparse form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints


@dataclass(frozen=True)
class UnitRows:
    """The rows of every unit, if units are clusters."""

    bounds: Ints  # (n_units + 1,): where the rows of each unit begin and end
    rows: NDArray[np.int32]  # (n_rows,): rows, unit after unit

    @classmethod
    def of(cls, unit_of_row: Ints, n_units: int) -> "UnitRows":
        """Sort rows by their unit."""
        bounds = np.zeros(n_units + 1, dtype=np.int64)
        np.cumsum(np.bincount(unit_of_row, minlength=n_units), out=bounds[1:])
        return cls(bounds, np.argsort(unit_of_row, kind="stable").astype(np.int32))


@dataclass(frozen=True)
class RowDraw:
    """The rows of one learner."""

    # Distinct rows, in ascending order, and how often each was drawn
    rows: Ints
    times: Ints
    n_rows: int  # rows of the data

    @property
    def counts(self) -> Ints:
        """Times each row of the data was drawn, shape (n_rows,)."""
        counts = np.zeros(self.n_rows, dtype=np.int64)
        counts[self.rows] = self.times
        return counts

    @property
    def repeated_rows(self) -> Ints:
        """Rows, each as often as it was drawn."""
        return np.repeat(self.rows, self.times)

    def holds(self, rows: Ints) -> NDArray[np.bool_]:
        """Return whether rows were drawn."""
        places = np.minimum(np.searchsorted(self.rows, rows), self.rows.size - 1)
        return np.asarray(self.rows[places] == rows)


@dataclass(frozen=True)
class UnitDraw:
    """Units that consecutive learners drew, and their rows."""

    counts: Counts  # (L, n_units): times each unit was drawn by each learner
    # (n_rows,): unit of every row, if units are clusters
    unit_of_row: Ints | None = None
    index: UnitRows | None = None  # the rows of every unit, if units are clusters

    @property
    def row_counts(self) -> Floats:
        """Times each row is in each subsample, shape (L, n_rows)."""
        counts = self.counts
        units = counts.toarray() if sparse.issparse(counts) else counts
        return np.asarray(
            units if self.unit_of_row is None else units[:, self.unit_of_row]
        )

    def rows(self, learner: int) -> tuple[Ints, Ints]:
        """List the rows of one learner, ascending, and how often each is drawn."""
        table = sparse.csr_array(self.counts[[learner]])
        drawn = table.data > 0
        units, times = table.indices[drawn].astype(np.int64), table.data[drawn]
        if self.index is not None:
            first, last = self.index.bounds[units], self.index.bounds[units + 1]
            sizes = last - first
            ends = np.cumsum(sizes)
            places = np.arange(sizes.sum()) + np.repeat(last - ends, sizes)
            units = self.index.rows[places].astype(np.int64)
            times = np.repeat(times, sizes)
        order = np.argsort(units)
        return units[order], times[order].astype(np.int64)
