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
from vstatkit.kernels.leaf_weights import leaf_weights
from vstatkit.kernels.tree import StoredTreeKernel, Tree
from vstatkit.text import short_repr


@dataclass(frozen=True)
class LeafInfluence:
    """Influence of units on m estimates, by groups of trees."""

    # G sparse arrays, (m, n_units), scaled so that products of different groups add up
    # to means over pairs of trees
    groups: tuple[Any, ...]

    __repr__ = short_repr

    @property
    def variance(self) -> Floats:
        """The variance A of every estimate, shape (m,)."""
        whole = _sum_squares(sum(self.groups[1:], self.groups[0]))
        return np.asarray(whole - sum(_sum_squares(group) for group in self.groups))

    @property
    def covariance(self) -> Floats:
        """The covariances of all estimates, shape (m, m)."""
        whole = sum(self.groups[1:], self.groups[0])
        matrix = whole @ whole.T - sum(group @ group.T for group in self.groups)
        return np.asarray(matrix.toarray())

    @property
    def fourth_powers(self) -> Floats:
        """Sum over units of the fourth powers of influences, shape (m,); may be noisy.

        Four groups are multiplied, so that it has no Monte Carlo bias.
        """
        G = len(self.groups)
        quarters = [sum(self.groups[j + 4 : G : 4], self.groups[j]) for j in range(4)]
        first, second, third, last = quarters
        product = first.multiply(second).multiply(third.multiply(last))
        # A group's sum is scaled by the root of G (G - 1) group sizes, a mean by four.
        scale = (4 * np.sqrt((G - 1) / G)) ** 4
        return np.asarray(product.sum(axis=1) * scale).ravel()

    def combine(self, coefs: Any) -> "LeafInfluence":
        """Return the influence on linear combinations, with coefficients (r, m)."""
        left = sparse.csr_array(coefs)
        return LeafInfluence(tuple((left @ group).tocsr() for group in self.groups))

    def divide(self, unit: Floats) -> "LeafInfluence":
        """Divide the estimates by units, shape (m,)."""
        return self.combine(sparse.diags_array(1 / unit))

    def take(self, places: Any) -> "LeafInfluence":
        """Select estimates."""
        return LeafInfluence(tuple(group[places] for group in self.groups))

    @staticmethod
    def join(parts: Sequence["LeafInfluence"]) -> "LeafInfluence":
        """Join the influences on several sets of estimates."""
        groups = zip(*(part.groups for part in parts), strict=True)
        return LeafInfluence(tuple(sparse.vstack(g, format="csr") for g in groups))


def _sum_squares(table: Any) -> Floats:
    """Sum the squares of every row."""
    return np.asarray(table.multiply(table).sum(axis=1)).ravel()


@dataclass(frozen=True)
class RowResiduals:
    """Out-of-bag residuals of the training rows, and their units."""

    residuals: Floats  # (n_rows, outputs)
    unit_of_row: Ints | None  # (n_rows,); None if every row is its own unit
    n_units: int

    __repr__ = short_repr

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
        return LeafInfluence(
            tuple(
                parts[0] if K == 1 else sparse.vstack(parts, format="csr")[order]
                for parts in groups
            )
        )
