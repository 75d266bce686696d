"""What a formula and data come to."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.coding import Coding


@dataclass(frozen=True)
class ParsedFormula:
    """A formula applied to data.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Response, or class codes.
    X : ndarray of shape (n, p)
        Design matrix.
    names : tuple of str
        Its columns.
    response : str
        Left-hand side as written.
    classes : tuple or None
        Levels of a categorical response, those that occur.
    unused_levels : tuple
        Levels of the response that no row has.
    rows : ndarray of shape (n,) or RangeIndex
        Positions in the data of the rows kept.
    n_dropped : int
        Rows dropped for missing values.
    frame : DataFrame or Variables
        The variables of the right-hand side, rows kept, in the data's own index;
        or what is known of them where they are not held.
    data : DataFrame or StoredFrame
        All columns of the data, rows kept; on disk, the columns that the formula
        reads.
    coding : Coding
        Codes new data as the training data was.
    levels : ndarray of shape (p,)
        Number of levels of every column that is a factor in codes 0, 1, ...; 0 for
        columns of numbers, which all are unless whole factors were asked for.
    """

    y: Floats
    X: Floats
    names: tuple[str, ...]
    response: str
    classes: tuple[Any, ...] | None
    unused_levels: tuple[Any, ...]
    rows: Ints | pd.RangeIndex
    n_dropped: int
    frame: Any
    data: Any
    coding: Coding
    levels: Ints

    @cached_property
    def typical(self) -> pd.DataFrame:
        """The typical row: medians, and the most frequent levels."""
        return self.coding.typical(self.frame)
