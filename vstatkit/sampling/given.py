"""Subsamples that were drawn elsewhere."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.sampling.counts import dense
from vstatkit.sampling.design import SubsampleDesign


@dataclass(frozen=True, eq=False)
class GivenDesign(SubsampleDesign):
    """Subsamples drawn elsewhere and handed over as counts.

    Attributes
    ----------
    table : ndarray or csr_array of shape (B, n)
        Times each observation occurs in each subsample.
    labels : ndarray of shape (B,) or None
        Group of every learner, for the grouped estimators.
    """

    table: Counts
    labels: Ints | None = None

    name: ClassVar[str] = "given"

    def members(self, start: int, stop: int) -> Ints:
        """List the units of learners `start` to `stop`."""
        block = dense(self.counts(start, stop)).astype(np.int64)
        units = np.arange(self.n)
        return np.stack([np.repeat(units, row) for row in block])

    def counts(
        self,
        start: int,
        stop: int,
        out: Floats | None = None,
    ) -> Counts:
        """Give the counts of learners `start` to `stop`."""
        return self.table[start:stop]

    @property
    def n_absent(self) -> float:
        """Units that the subsamples leave out, on average."""
        table = self.table.data if sparse.issparse(self.table) else self.table
        present = np.count_nonzero(table) / self.table.shape[0]
        return float(self.n - present)

    def groups(self, B: int) -> Ints | None:
        """Give the group of every learner."""
        return None if self.labels is None else self.labels[:B]

    @property
    def grouped(self) -> bool:
        """Whether some group has more than one learner."""
        return self.labels is not None and np.unique(self.labels).size < len(
            self.labels
        )
