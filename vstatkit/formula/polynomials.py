"""Orthogonal polynomials in formulas, as R's `poly` gives them."""

from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.vectors import is_whole, one_variable

USAGE = "`poly` takes one variable, the degree and `raw`."


class Polynomial:
    """Polynomials that are orthogonal over the data that they were made from.

    patsy calls `memorize_chunk` with the data, part by part, then
    `memorize_finish`, then `transform` with any data.

    Notes
    -----
    Stieltjes' recurrence `p[j+1] = (x - a[j]) p[j] - (s[j] / s[j-1]) p[j-1]`, with
    `s[j]` the sum of squares of `p[j]`; new data go through the same recurrence.
    """

    def __init__(self) -> None:
        self._chunks: list[Floats] = []
        self._centres: list[float] = []
        self._squares: list[float] = []

    def memorize_chunk(self, x: Any, degree: int = 1, raw: bool = False) -> None:
        """Take part of the data."""
        self._chunks.append(one_variable(x, USAGE))
        self._degree, self._raw = _checked_degree(degree), raw

    def memorize_finish(self) -> None:
        """Find the coefficients of the recurrence."""
        if self._raw:
            return
        x = np.concatenate(self._chunks)
        self._chunks.clear()
        distinct = np.unique(x).size
        if self._degree >= distinct:
            raise FormulaError(
                f"`poly` needs more distinct values than its degree {self._degree}; "
                f"there are {distinct}."
            )
        before, p, last = np.zeros_like(x), np.ones_like(x), 1.0
        for _ in range(self._degree):
            square = float(p @ p)
            centre = float(x @ p**2) / square
            self._squares.append(square)
            self._centres.append(centre)
            before, p = p, (x - centre) * p - square / last * before
            last = square
        self._squares.append(float(p @ p))

    def transform(self, x: Any, degree: int = 1, raw: bool = False) -> Floats:
        """Evaluate the polynomials, shape (rows, degree)."""
        values = one_variable(x, USAGE)
        if raw:
            return values[:, None] ** np.arange(1, degree + 1)
        columns, last = [np.zeros_like(values), np.ones_like(values)], 1.0
        for centre, square in zip(self._centres, self._squares, strict=False):
            p = (values - centre) * columns[-1] - square / last * columns[-2]
            columns.append(p)
            last = square
        return np.column_stack(columns[2:]) / np.sqrt(self._squares[1:])


def poly(x: Any, degree: int = 1, raw: bool = False) -> Floats:
    """Polynomials of a variable, orthogonal over the data unless `raw`.

    Examples
    --------
    >>> import numpy as np
    >>> z = poly(np.array([1.0, 2.0, 4.0, 8.0]), 2)
    >>> np.allclose(z.T @ z, np.eye(2))
    True
    """
    made = Polynomial()
    made.memorize_chunk(x, degree, raw)
    made.memorize_finish()
    return made.transform(x, degree, raw)


# By this attribute patsy knows that new data must be coded as the training data.
poly.__patsy_stateful_transform__ = Polynomial  # type: ignore[attr-defined]


def _checked_degree(degree: Any) -> int:
    if not is_whole(degree):
        raise FormulaError(f"`poly` needs a whole number as degree; got {degree!r}.")
    if degree < 1:
        raise FormulaError(f"`poly` needs a degree of at least 1; got {degree}.")
    return int(degree)
