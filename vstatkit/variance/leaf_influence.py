r"""Influence of units on the predictions of trees whose splits are fixed.

With the weight :math:`w_{bi}(x)` that tree b gives row i at x and the out-of-bag
residuals :math:`e_i`, the prediction of fixed trees has the variance

.. math:: A(x) = \sum_u \Bigl( \sum_{i \in u} \bar w_i(x) e_i \Bigr)^2 ,

u being the units. The mean over trees is estimated, so that its square would have a
Monte Carlo bias. The trees are divided into groups, and only products of different
groups are added up. There is one such influence for every estimate that is linear in
predictions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.kernels.leaf_weights import influence_powers, leaf_weights
from vstatkit.kernels.tree import StoredTreeKernel, Tree
from vstatkit.text import short_repr


@dataclass(frozen=True)
class InfluencePowers:
    """Sums of powers of the influences of units on m estimates."""

    variance: Floats  # (m,): sum of squares, A
    fourth_powers: Floats  # (m,): sum of fourth powers; may be noisy
    n_units: int
    unit: float = 1.0  # unit of the influences

    __repr__ = short_repr

    @property
    def powers(self) -> "InfluencePowers":
        """These sums themselves."""
        return self

    def divide(self, unit: Floats) -> "InfluencePowers":
        """Divide the estimates by units, shape (m,)."""
        square = (self.unit / unit) ** 2
        variance = self.variance * square
        return InfluencePowers(variance, self.fourth_powers * square**2, self.n_units)

    def take(self, places: slice) -> "InfluencePowers":
        """Select estimates."""
        powers = self.variance[places], self.fourth_powers[places]
        return InfluencePowers(*powers, self.n_units, self.unit)


@dataclass(frozen=True)
class LeafInfluence:
    """Influence of units on m estimates, by groups of trees."""

    # G sparse arrays, (m, n_units), scaled so that products of different groups add up
    # to means over pairs of trees
    groups: tuple[Any, ...]
    unit: float = 1.0  # unit of the influences, a power of two

    __repr__ = short_repr

    @property
    def powers(self) -> InfluencePowers:
        """Sums of powers of the influences."""
        n_units = int(self.groups[0].shape[1])
        return InfluencePowers(
            self.variance, self._sum_fourth_powers(), n_units, self.unit
        )

    @property
    def variance(self) -> Floats:
        """The variance A of every estimate, shape (m,), in squares of `unit`."""
        whole = _sum_squares(sum(self.groups[1:], self.groups[0]))
        return np.asarray(whole - sum(_sum_squares(group) for group in self.groups))

    @property
    def covariance(self) -> Floats:
        """The covariances of all estimates, shape (m, m), in squares of `unit`."""
        whole = sum(self.groups[1:], self.groups[0])
        matrix = whole @ whole.T - sum(group @ group.T for group in self.groups)
        return np.asarray(matrix.toarray())

    def _sum_fourth_powers(self) -> Floats:
        """Sum the products of four sets of groups: they have no Monte Carlo bias."""
        G = len(self.groups)
        quarters = [sum(self.groups[j + 4 : G : 4], self.groups[j]) for j in range(4)]
        first, second, third, last = quarters
        product = first.multiply(second).multiply(third.multiply(last))
        # A group's sum is scaled by the root of G (G - 1) group sizes, a mean by four.
        scale = (4 * np.sqrt((G - 1) / G)) ** 4
        return np.asarray(product.sum(axis=1) * scale).ravel()

    def largest_squares(self) -> tuple[Ints, Floats]:
        """Find the unit with the largest squared influence on every estimate.

        Return its place and the square, in squares of `unit`.
        """
        whole = sum(self.groups[1:], self.groups[0])
        own = (group.multiply(group) for group in self.groups)
        squares = (whole.multiply(whole) - sum(own)).tocsr()
        places = np.asarray(squares.argmax(axis=1)).ravel()
        largest = np.asarray(squares.max(axis=1).todense()).ravel()
        return places.astype(np.int64), np.maximum(largest, 0.0)

    def divide(self, unit: Floats) -> "LeafInfluence":
        """Divide the estimates by units, shape (m,)."""
        scaled = self.combine(sparse.diags_array(self.unit / unit))
        return LeafInfluence(scaled.groups)

    def combine(self, coefs: Any) -> "LeafInfluence":
        """Return the influence on linear combinations, with coefficients (r, m)."""
        left = sparse.csr_array(coefs)
        groups = tuple((left @ group).tocsr() for group in self.groups)
        return LeafInfluence(groups, self.unit)

    def take(self, places: Any) -> "LeafInfluence":
        """Select estimates."""
        return LeafInfluence(tuple(group[places] for group in self.groups), self.unit)

    @staticmethod
    def join(parts: Sequence["LeafInfluence"]) -> "LeafInfluence":
        """Join the influences on several sets of estimates, in the same unit."""
        groups = zip(*(part.groups for part in parts), strict=True)
        joined = tuple(sparse.vstack(g, format="csr") for g in groups)
        return LeafInfluence(joined, parts[0].unit)


def _sum_squares(table: Any) -> Floats:
    """Sum the squares of every row."""
    return np.asarray(table.multiply(table).sum(axis=1)).ravel()


@dataclass(frozen=True)
class RowResiduals:
    """Out-of-bag residuals of the training rows, and their units."""

    residuals: Floats  # (n_rows, outputs), divided by `unit`
    unit_of_row: Ints | None  # (n_rows,); None if every row is its own unit
    n_units: int
    unit: float = 1.0  # a power of two near the spread of the response

    __repr__ = short_repr

    def powers(
        self, kernel: StoredTreeKernel, trees: Sequence[Tree], X: Floats
    ) -> InfluencePowers:
        """Sum powers of the influences on predictions; faster than `influence`."""
        sums = influence_powers(
            *(kernel, trees, X, self.residuals),
            unit_of_row=self.unit_of_row,
            n_units=self.n_units,
        )
        return InfluencePowers(*sums, self.n_units, self.unit)

    def influence(
        self,
        kernel: StoredTreeKernel,
        trees: Sequence[Tree],
        X: Floats,
        used: Bools | None = None,
    ) -> LeafInfluence:
        """Compute the influence on predictions, shape (rows * outputs, n_units)."""
        n_rows, K = self.residuals.shape
        weights = leaf_weights(kernel, trees, X, n_rows, used)
        rows = np.arange(n_rows)
        units = rows if self.unit_of_row is None else self.unit_of_row
        by_output = [
            sparse.csr_array((column, (rows, units)), shape=(n_rows, self.n_units))
            for column in self.residuals.T
        ]
        order = np.arange(K * len(X)).reshape(K, -1).T.ravel()  # rows, then outputs
        groups = (
            [(group @ errors).tocsr() for errors in by_output] for group in weights
        )
        joined = tuple(
            parts[0] if K == 1 else sparse.vstack(parts, format="csr")[order]
            for parts in groups
        )
        return LeafInfluence(joined, self.unit)
