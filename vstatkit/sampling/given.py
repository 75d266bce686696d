"""Designs of given subsamples, and of resampled units."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.sampling.design import SubsampleDesign, check_units, to_dense

# Standard deviations by which the appearances of exchangeable units may differ.
MOST_DEVIATION = 6.0


@dataclass(frozen=True, eq=False)
class GivenDesign(SubsampleDesign):
    """Subsamples that are given as counts."""

    table: Counts  # (B, n): times each observation occurs in each subsample
    # (B,): group of every learner, for the grouped estimators
    labels: Ints | None = None

    name: ClassVar[str] = "given"

    def members(self, start: int, stop: int) -> Ints:
        """List the units of learners `start` to `stop`."""
        block = to_dense(self.counts(start, stop)).astype(np.int64)
        units = np.arange(self.n)
        return np.stack([np.repeat(units, row) for row in block])

    def counts(self, start: int, stop: int, out: Floats | None = None) -> Counts:
        """Return the counts of learners `start` to `stop`."""
        return self.table[start:stop]

    def sparse_counts(self, start: int, stop: int) -> Any:
        """Return the counts in sparse form."""
        counts = sparse.csr_array(self.counts(start, stop), copy=True)
        counts.eliminate_zeros()
        return counts

    @property
    def n_absent(self) -> float:
        """Mean number of units that a subsample leaves out."""
        table = self.table.data if sparse.issparse(self.table) else self.table
        present = np.count_nonzero(table) / self.table.shape[0]
        return float(self.n - present)

    @cached_property
    def chance_absent(self) -> float | None:
        """Probability that a subsample leaves a unit out; None if units differ in it.

        It follows from n, k and `replace`, unless the numbers of subsamples that hold
        each unit vary more than those of units drawn with equal probabilities would.
        """
        B = self.table.shape[0]
        q = super().n_absent / self.n
        spread = B * q * (1 - q)
        if spread <= 0:
            return q
        appearances = np.asarray((self.table > 0).sum(axis=0)).ravel()
        excess = float(np.sum((appearances - B * (1 - q)) ** 2)) / spread - self.n
        likely = MOST_DEVIATION * np.sqrt(self.n * (2 + 1 / spread))
        return q if excess <= likely else None

    def groups(self, B: int) -> Ints | None:
        """Return the group of every learner."""
        return None if self.labels is None else self.labels[:B]

    @property
    def has_groups(self) -> bool:
        """Whether some group has more than one learner."""
        labels = self.labels
        return labels is not None and np.unique(labels).size < len(labels)


def check_ensemble(counts: Any, values: Any) -> tuple[Counts, Floats, int]:
    """Check counts (B, n) and values (B, m); return arrays, and the size k."""
    if sparse.issparse(counts):
        table = sparse.csr_array(counts, dtype=np.float64, copy=True)
        table.sum_duplicates()
    else:
        table = np.asarray(counts)
    h = np.asarray(values, dtype=np.float64)
    h = h[:, None] if h.ndim == 1 else h
    if table.ndim != 2 or h.ndim != 2 or table.shape[0] != len(h):
        raise ValueError(
            "`counts` must have shape (B, n) and `values` (B, m) or (B,), learners "
            f"first; got {table.shape} and {np.shape(values)}."
        )
    if len(h) < 2:
        raise ValueError(f"an ensemble needs at least 2 learners; got {len(h)}.")
    check_units(table.shape[1])
    entries = np.asarray(table.data if sparse.issparse(table) else table)
    if not np.isfinite(h).all():
        learner = int(np.argwhere(~np.isfinite(h))[0, 0])
        raise ValueError(f"`values` must be finite; learner {learner} is not.")
    if (entries < 0).any() or (entries != np.round(entries)).any():
        raise ValueError("`counts` must be whole numbers, zero or more.")
    sizes = np.unique(np.asarray(table.sum(axis=1)))
    if sizes.size != 1 or sizes[0] < 1:
        raise ValueError(
            "every subsample must have the same size k, so every row of `counts` the "
            f"same sum; got sums from {sizes.min():g} to {sizes.max():g}."
        )
    return table, h, int(sizes[0])


def collapse_clusters(counts: Counts, clusters: Any) -> Counts:
    """Count clusters instead of rows; clusters must have been drawn whole."""
    unit_of_row, levels = pd.factorize(np.asarray(clusters))
    if unit_of_row.size != counts.shape[1]:
        raise ValueError(
            "`groups` must have one value for each observation (column of `counts`); "
            f"got {unit_of_row.size} for {counts.shape[1]}."
        )
    rows = to_dense(counts)
    first = np.array([np.flatnonzero(unit_of_row == g)[0] for g in range(len(levels))])
    units = rows[:, first]
    if (units[:, unit_of_row] != rows).any():
        raise ValueError(
            "`groups` are clusters that were resampled whole, so the rows of a "
            "cluster must have equal counts in every subsample; here they differ."
        )
    return units


def given_ensemble(
    counts: Any,
    values: Any,
    *,
    replace: bool,
    groups: Any = None,
    compares_groups: bool = False,
) -> tuple[GivenDesign, Floats]:
    """Check a given ensemble, and build its design.

    `groups` are groups of learners if the variance estimator compares those, or if
    only the number of learners fits; otherwise they are clusters of rows.
    """
    table, h, k = check_ensemble(counts, values)
    labels = None
    if groups is not None:
        if compares_groups or len(groups) == len(h) != table.shape[1]:
            labels = np.asarray(pd.factorize(np.asarray(groups))[0])
        else:
            table, h, k = check_ensemble(collapse_clusters(table, groups), h)
    if labels is not None and labels.size != len(h):
        raise ValueError(
            f"`groups` must have one value for each of the {len(h)} learners; "
            f"got {labels.size}."
        )
    if not replace and table.max() > 1:
        raise ValueError(
            "`counts` above one mean sampling with replacement. Pass `replace=True`."
        )
    n = table.shape[1]
    design = GivenDesign(n=n, k=k, replace=replace, seed=0, table=table, labels=labels)
    return design, h


def index_of_length(names: Any, length: int, argument: str) -> pd.Index:
    """Convert names to an index, and check its length."""
    index = names if isinstance(names, pd.Index) else pd.Index(list(names))
    if len(index) != length:
        raise ValueError(f"`{argument}` must have {length} names; got {len(index)}.")
    return index


@dataclass(frozen=True, eq=False)
class ResampledDesign(SubsampleDesign):
    """A design on units drawn with replacement; every draw is a unit by itself."""

    inner: SubsampleDesign  # draws places in the data set
    drawn: Ints = field(repr=False)  # (n,): the unit at each place

    name: ClassVar[str] = "resampled"

    def __post_init__(self) -> None:
        """Rely on the checks of the inner design."""

    @classmethod
    def of(cls, inner: SubsampleDesign, drawn: Ints) -> "ResampledDesign":
        """Build the design from an inner design and the drawn units."""
        return cls(inner.n, inner.k, inner.replace, inner.seed, inner, drawn)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        return np.asarray(self.drawn[self.inner.members(start, stop)])

    def weights(self, start: int, stop: int) -> Floats | None:
        """Return the weights of the inner design."""
        return self.inner.weights(start, stop)

    def groups(self, B: int) -> Ints | None:
        """Return the groups of the inner design."""
        return self.inner.groups(B)

    @property
    def has_groups(self) -> bool:
        """Whether the inner design draws learners in groups."""
        return self.inner.has_groups
