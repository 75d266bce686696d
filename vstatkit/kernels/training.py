"""What a kernel is built from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats
from vstatkit.formula.parsed import ParsedFormula


@dataclass(frozen=True)
class Training:
    """Training data, coded.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Design matrix.
    y : ndarray of shape (n,)
        Response, or class codes.
    names : tuple of str
        Columns of the design matrix.
    classes : tuple or None
        Levels of a categorical response.
    weights : ndarray of shape (n,) or None
        Weight of every observation.
    data : DataFrame
        All columns of the data, the same rows.
    levels : tuple of int or None
        Number of levels of every column that holds the codes of an unordered
        factor, 0 for numbers; None where all are numbers.
    """

    X: Floats
    y: Floats
    names: tuple[str, ...]
    classes: tuple[Any, ...] | None
    weights: Floats | None
    data: pd.DataFrame
    levels: tuple[int, ...] | None = None

    @classmethod
    def of(cls, parsed: ParsedFormula, weights: Floats | None = None) -> "Training":
        """Take what a formula gave."""
        return cls(
            X=parsed.X,
            y=parsed.y,
            names=parsed.names,
            classes=parsed.classes,
            weights=weights,
            data=parsed.data,
            levels=tuple(parsed.levels.tolist()) if parsed.levels.any() else None,
        )

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return None if self.classes is None else len(self.classes)

    @property
    def response(self) -> NDArray[Any]:
        """The response as it was given: numbers, or levels."""
        if self.classes is None:
            return self.y
        return np.asarray(np.asarray(self.classes)[self.y.astype(int)])
