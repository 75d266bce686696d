"""Natural cubic splines in formulas, as R's `ns` gives them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.vectors import is_whole, one_variable

USAGE = "`ns` takes one variable, `df`, `knots` and `intercept`."


class NaturalSpline:
    """Cubic splines that are straight lines beyond the data they were made from.

    patsy calls `memorize_chunk` with the data, part by part, then
    `memorize_finish`, then `transform` with any data.

    Notes
    -----
    Cubic B-splines with fourfold knots at the ends of the data; of their
    combinations those whose second derivative is zero at both ends, in the
    coordinates of Householder's decomposition, as R has them.
    """

    def __init__(self) -> None:
        self._chunks: list[Floats] = []

    def memorize_chunk(
        self,
        x: Any,
        df: int | None = None,
        knots: Sequence[float] | None = None,
        intercept: bool = False,
    ) -> None:
        """Take part of the data."""
        self._chunks.append(one_variable(x, USAGE))
        self._df, self._knots, self._intercept = df, knots, bool(intercept)

    def memorize_finish(self) -> None:
        """Place the knots, and find the combinations that are natural."""
        x = np.concatenate(self._chunks)
        self._chunks.clear()
        ends = float(x.min()), float(x.max())
        if ends[0] == ends[1]:
            raise FormulaError("`ns` needs a variable with more than one value.")
        inner = self._inner_knots(x)
        self._ends = ends
        self._all_knots = np.sort(np.r_[np.repeat(ends, 4), inner])
        self._first = 0 if self._intercept else 1
        bends = self._splines().derivative(2)(np.array(ends))[:, self._first :]
        rotation = np.linalg.qr(bends.T, mode="complete")[0]
        self._natural = rotation[:, 2:]

    def _inner_knots(self, x: Floats) -> Floats:
        """Take the knots that were given, or quantiles."""
        if self._knots is not None:
            return np.asarray(self._knots, dtype=np.float64).ravel()
        if self._df is None:
            return np.empty(0)
        least = 1 + self._intercept
        if not is_whole(self._df) or self._df < least:
            raise FormulaError(
                f"`ns` needs a whole number of at least {least} as df; got {self._df}."
            )
        count = self._df - 1 - self._intercept
        return np.quantile(x, np.linspace(0, 1, count + 2)[1:-1])

    def _splines(self) -> BSpline:
        size = self._all_knots.size - 4
        return BSpline(self._all_knots, np.eye(size), 3)

    def transform(
        self,
        x: Any,
        df: int | None = None,
        knots: Sequence[float] | None = None,
        intercept: bool = False,
    ) -> Floats:
        """Evaluate the splines, shape (rows, columns)."""
        values = one_variable(x, USAGE)
        within = np.clip(values, *self._ends)
        splines = self._splines()
        beyond = (values - within)[:, None]  # where the data end, a line goes on
        basis = splines(within) + beyond * splines.derivative()(within)
        return np.asarray(basis[:, self._first :] @ self._natural)


def ns(
    x: Any,
    df: int | None = None,
    knots: Sequence[float] | None = None,
    intercept: bool = False,
) -> Floats:
    """Natural cubic splines of a variable, with knots at quantiles unless given.

    Examples
    --------
    >>> import numpy as np
    >>> ns(np.arange(10.0), df=3).shape
    (10, 3)
    """
    made = NaturalSpline()
    made.memorize_chunk(x, df, knots, intercept)
    made.memorize_finish()
    return made.transform(x, df, knots, intercept)


# By this attribute patsy knows that new data must be coded as the training data.
ns.__patsy_stateful_transform__ = NaturalSpline  # type: ignore[attr-defined]
