"""Comparisons with R: quantities, comparisons and their tables."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

TOLERANCE = 1e-10  # largest relative difference of numbers that differ in rounding only

WIDTH = 83  # columns of a printed table

Verdict = Literal["equal", "DIFFERENT", "not compared", "information"]


@dataclass(frozen=True)
class Quantity:
    """One quantity, computed here and in R.

    Attributes
    ----------
    name : str
        What it is.
    ours, theirs : ndarray
        Numbers of the same shape; missing where the estimate is negative and a
        standard error does not exist.
    tolerance : float or None
        Largest relative difference allowed; None where the two must differ.
    reason : str
        How ours was made comparable, or why the two must differ.
    """

    name: str
    ours: NDArray[np.floating[Any]]
    theirs: NDArray[np.floating[Any]]
    tolerance: float | None = TOLERANCE
    reason: str = ""

    def __post_init__(self) -> None:
        if np.shape(self.ours) != np.shape(self.theirs):
            raise ValueError(
                f"{self.name!r}: both sides must have one shape; ours is "
                f"{np.shape(self.ours)}, R's {np.shape(self.theirs)}."
            )

    @property
    def points(self) -> int:
        """Numbers compared."""
        return int(np.size(self.ours))

    @property
    def n_missing(self) -> int:
        """Numbers that are missing in R."""
        return int(np.isnan(self.theirs).sum())

    @cached_property
    def n_zero(self) -> int:
        """Numbers that are zero on both sides, where a wrong factor goes unnoticed."""
        zero = (np.asarray(self.ours) == 0) & (np.asarray(self.theirs) == 0)
        return int(zero.sum())

    @property
    def same_missing(self) -> bool:
        """Whether the same numbers are missing on both sides."""
        return bool(np.array_equal(np.isnan(self.ours), np.isnan(self.theirs)))

    @cached_property
    def difference(self) -> float:
        """Largest relative difference; infinite if one side is missing."""
        if self.tolerance is not None and not self.same_missing:
            return float("inf")
        return largest_relative_difference(self.ours, self.theirs)

    @property
    def verdict(self) -> Verdict:
        """Whether both sides agree within the tolerance, if some number is not zero."""
        if self.tolerance is None:
            return "information"
        if self.difference > self.tolerance:
            return "DIFFERENT"
        left = self.points - self.n_missing - self.n_zero
        return "equal" if left else "not compared"


def largest_relative_difference(a: ArrayLike, b: ArrayLike) -> float:
    """Compute the largest `|a - b| / max(|a|, |b|)` over non-missing numbers.

    An infinite number differs infinitely from any other.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    unequal = ~(np.isnan(x) | np.isnan(y)) & (x != y)
    if not unequal.any():
        return 0.0
    x, y = x[unequal], y[unequal]
    scale = np.maximum(np.abs(x), np.abs(y))
    if np.isinf(scale).any():
        return float("inf")
    return float((np.abs(x - y) / scale).max())


@dataclass(frozen=True)
class Comparison:
    """Quantities that were compared with R's, for one forest.

    Attributes
    ----------
    title : str
        Which packages, and which data.
    setting : str
        How the forest was grown.
    quantities : tuple of Quantity
        What was compared.
    versions : dict
        Versions of R, of the package and of vstatkit.
    """

    title: str
    setting: str
    quantities: tuple[Quantity, ...]
    versions: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether all required comparisons agree."""
        return all(quantity.verdict != "DIFFERENT" for quantity in self.quantities)

    @property
    def difference(self) -> float:
        """Largest relative difference of the required comparisons."""
        return max(
            (q.difference for q in self.quantities if q.tolerance is not None),
            default=0.0,
        )

    def to_frame(self) -> pd.DataFrame:
        """Tabulate, with one row per quantity."""
        rows = [
            {
                "quantity": quantity.name,
                "points": quantity.points,
                "missing": quantity.n_missing,
                "zero": quantity.n_zero,
                "largest relative difference": quantity.difference,
                "tolerance": quantity.tolerance,
                "verdict": quantity.verdict,
            }
            for quantity in self.quantities
        ]
        return pd.DataFrame(rows)

    def assert_close(self) -> None:
        """Raise an `AssertionError` with the table if a comparison fails."""
        if not self.ok:
            raise AssertionError(f"vstatkit and R differ.\n{self}")

    def __str__(self) -> str:
        found = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        head = [self.title, self.setting, found]
        reasons = wrapped(notes(self.quantities))
        return "\n".join([*head, table(self.quantities), *reasons])

    __repr__ = __str__


def table(quantities: Sequence[Quantity]) -> str:
    """Write a table of quantities for a terminal."""
    widths = (21, 8, 7, 7, 12, 10, 12)
    heads = (
        *("quantity", "points", "missing", "zero"),
        *("largest rel.", "tolerance", "verdict"),
    )
    rows = [_aligned(heads, widths)]
    rows += [_aligned(table_cells(quantity), widths) for quantity in quantities]
    rule = "-" * len(rows[0])
    return "\n".join([rule, rows[0], rule, *rows[1:], rule])


def table_cells(quantity: Quantity) -> tuple[str, ...]:
    """Format a quantity as a row of a table."""
    bound = "" if quantity.tolerance is None else f"{quantity.tolerance:.0e}"
    return (
        quantity.name,
        str(quantity.points),
        str(quantity.n_missing),
        str(quantity.n_zero),
        f"{quantity.difference:.1e}",
        bound,
        quantity.verdict,
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells[1:], widths[1:], strict=True)
    rest = [f"{cell:>{width}}" for cell, width in pairs]
    return " ".join([f"{cells[0]:<{widths[0]}}", *rest])


def notes(quantities: Sequence[Quantity]) -> list[str]:
    """Write the reasons below a table, each once."""
    named: dict[str, list[str]] = {}
    for quantity in quantities:
        names = named.setdefault(quantity.reason, [])
        if quantity.name not in names:
            names.append(quantity.name)
    return [
        f"{', '.join(names)}: {reason}" for reason, names in named.items() if reason
    ]


def wrapped(lines: Sequence[str]) -> list[str]:
    """Break long lines for a terminal."""
    return [textwrap.fill(line, WIDTH, subsequent_indent="    ") for line in lines]
