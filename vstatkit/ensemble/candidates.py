"""Learners that may aim at E[y|x], from the least biased to the smoothest."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vstatkit.kernels.staged_tree import Stages, restaged
from vstatkit.kernels.tree import TreeKernel
from vstatkit.kernels.tree_options import LOSSES
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.iid import IidDesign

STAGES = {
    "both": Stages(trend=True, boost=True),
    "boost": Stages(boost=True),
    "trend": Stages(trend=True),
    "plain": Stages(),
}
"""What learners are made of, those with the least bias first."""

SMALL_LEAVES = (1, 5)
"""Rows in the smallest leaves that are tried."""

MOST_LEAVES = 5
"""Leaves that a tree of the largest ones that are tried can have."""


class Candidate(NamedTuple):
    """A learner to choose from.

    Attributes
    ----------
    name : str
        Of its stages, one of `STAGES`.
    min_samples_leaf : int
        Least number of rows in a leaf; of all rows, if it has no tree at all.
    max_features : int
        Columns that a split tries.
    splits : bool
        Whether it has trees.
    """

    name: str
    min_samples_leaf: int
    max_features: int
    splits: bool = True

    def kernel(self, kernel: TreeKernel) -> TreeKernel:
        """Grow such learners with the other options of a kernel of trees."""
        chosen = {
            "min_samples_leaf": self.min_samples_leaf,
            "max_features": self.max_features,
        }
        options = {**kernel.options, **chosen}
        return restaged(replace(kernel, options=options), STAGES[self.name])

    def text(self, n_features: int) -> str:
        """Say in words what the learner is."""
        stages = STAGES[self.name]
        if not self.splits:
            return "a linear trend" if stages.trend else "a mean"
        tried = "all" if self.max_features == n_features else f"{self.max_features} of"
        rows = "row" if self.min_samples_leaf == 1 else "rows"
        text = f"{stages.text}, with leaves of {self.min_samples_leaf} {rows} or more"
        if n_features == 1:
            return text
        return f"{text} and {tried} {n_features} columns tried at a split"


def candidates(
    kernel: TreeKernel, n_rows: int, given: Collection[str] = ()
) -> list[Candidate]:
    """List learners to choose from, those with the least bias first.

    Parameters
    ----------
    kernel : TreeKernel
        Grows plain trees.
    n_rows : int
        Rows of a subsample.
    given : collection of str
        Names of options that the user has set; these are not chosen.

    Notes
    -----
    Small leaves come before large ones; among equal leaves, few columns tried at a
    split before all of them; and then more stages before fewer. Last come a linear
    trend and a mean, without any tree.

    Examples
    --------
    >>> X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    >>> from vstatkit.kernels.tree import tree_kernel
    >>> how = {"n_classes": None, "weights": None, "options": {}}
    >>> kernel = tree_kernel("forest", X, y, **how)
    >>> listed = candidates(kernel, 100)
    >>> len(listed), listed[0]
    (34, Candidate(name='both', min_samples_leaf=1, max_features=1, splits=True))
    >>> [one.min_samples_leaf for one in listed[::8]]
    [1, 5, 10, 20, 6]
    """
    own, p = int(kernel.options["max_features"]), kernel.n_features
    features = [own] if "max_features" in given else sorted({own, p})
    leaves = [int(kernel.options["min_samples_leaf"])]
    free = "min_samples_leaf" not in given
    if free:
        middle, large = round(float(np.sqrt(n_rows))), n_rows // MOST_LEAVES
        least = max(SMALL_LEAVES)
        leaves = sorted({*SMALL_LEAVES, max(least, middle), max(least, large)})
    names = [name for name, stages in STAGES.items() if may_have(kernel, stages)]
    found = [
        Candidate(name, leaf, tried)
        for leaf in leaves
        for tried in features
        for name in names
    ]
    whole = [name for name in names if free and not STAGES[name].boost]
    return found + [Candidate(name, len(kernel.y), own, False) for name in whole]


def may_have(kernel: TreeKernel, stages: Stages) -> bool:
    """Whether learners of a kernel of trees may have these stages; see `with_stages`.

    Stages are fitted to what others leave, by least squares; a trend needs numbers.
    """
    squared = kernel.options["loss"] == LOSSES["squared_error"]
    numbers = kernel.levels is None
    return (squared or not any(stages)) and (numbers or not stages.trend)


def larger(design: SubsampleDesign) -> SubsampleDesign:
    """Draw subsamples of size `ceil(n**0.9)` where they are independent.

    The bias of trees falls with the size of subsamples; their variance is smoothed away
    by larger leaves.
    """
    if not isinstance(design, IidDesign):
        return design
    return replace(design, k=int(np.ceil(design.n**0.9)))
