"""The trees of a fitted forest, as a list that is short to look at."""

from typing import Any

import numpy as np


class Trees(list[Any]):
    """Fitted trees.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(50, rng=1)
    >>> forest = vs.ForestRegressor(3, max_leaf_nodes=4, random_state=1)
    >>> forest.fit(data[["x1", "x2"]], data["y"]).estimators_
    <3 trees of 4 to 4 leaves>
    """

    def __repr__(self) -> str:
        leaves = [int(np.sum(tree.nodes["feature"] < 0)) for tree in self]
        span = f" of {min(leaves)} to {max(leaves)} leaves" if leaves else ""
        return f"<{len(self)} trees{span}>"
