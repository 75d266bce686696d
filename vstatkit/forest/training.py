"""What a forest keeps of its fit: to grow on, and to answer as results do."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Labels
from vstatkit.kernels.evaluation import OutOfBag
from vstatkit.kernels.trees import TreeKernel
from vstatkit.sampling.iid import IidDesign

DATA = {"X": "`X`", "y": "`y`", "weights": "the weights"}
"""Fields of a kernel that are data, in words."""

SAME_DATA = ("centre", "scale", "n_classes", "n_features")
"""Fields that follow from the data."""


@dataclass(frozen=True)
class Trained:
    """What a forest was grown from.

    Attributes
    ----------
    kernel : TreeKernel
        Holds the data and the options of the trees.
    design : IidDesign
        Which rows each tree saw.
    oob : OutOfBag or None
        Out-of-bag sums of all trees, if scores were asked for.
    y : ndarray of shape (n,)
        Response, or class codes.
    units : Index of length n
        Labels of the rows.
    response : str
        Name of the response.
    """

    kernel: TreeKernel
    design: IidDesign
    oob: OutOfBag | None
    y: Floats
    units: Labels
    response: str

    def difference(self, kernel: TreeKernel, design: IidDesign) -> str | None:
        """Name what differs between this fit and another; None if nothing does."""
        return next(self._differences(kernel, design), None)

    def _differences(self, other: TreeKernel, design: IidDesign) -> Iterator[str]:
        mine = self.kernel
        if mine.X.shape != other.X.shape:
            yield DATA["X"]
        if type(mine) is not type(other):
            yield "`trend` or `boost`"
        for one in fields(mine):
            known = one.name in (*DATA, *SAME_DATA, "options")
            if not known and getattr(mine, one.name) != getattr(other, one.name):
                yield f"`{_PARAMETERS.get(one.name, one.name)}`"
        for name, value in mine.options.items():
            if other.options[name] != value:
                yield f"`{_PARAMETERS.get(name, name)}`"
        if (self.design.k, self.design.replace) != (design.k, design.replace):
            yield "`max_samples` or `bootstrap`"
        for name, words in DATA.items():
            if not _same(getattr(mine, name), getattr(other, name)):
                yield words


_PARAMETERS = {
    "random": "splitter",
    "loss": "criterion",
    "balanced": "class_weight",
    "levels": "categorical_features",
    "stages": "trend` or `boost",
}
"""What users call some options of the grower."""


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=True)
