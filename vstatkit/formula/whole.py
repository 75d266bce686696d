"""Factors in one column of codes, for learners that split categories themselves."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.engine import Learnt, Matrix
from vstatkit.formula.expressions import bare_name, category_name, parse_code
from vstatkit.formula.terms import Codes

MAX_LEVELS = 64
"""Levels of a factor that is kept in one column."""


@dataclass(frozen=True)
class WholeInfo:
    """One side of a formula, with some factors in one column each.

    Attributes
    ----------
    info : Learnt
        The same with indicator columns.
    whole : frozenset of tuple of str
        Terms, each a factor by itself, that have one column: 0 for the first level,
        1 for the second, and so on.
    """

    info: Learnt
    whole: frozenset[Codes]

    @property
    def levels(self) -> Mapping[str, tuple[Any, ...] | None]:
        """Levels of every factor by its code; None for numbers."""
        return self.info.levels

    @cached_property
    def slices(self) -> Mapping[Codes, slice]:
        """Columns of every term."""
        found: dict[Codes, slice] = {}
        at = 0
        for term, place in self.info.slices.items():
            width = 1 if term in self.whole else place.stop - place.start
            found[term] = slice(at, at + width)
            at += width
        return found

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix; a whole factor's is called as the factor."""
        written = self.info.column_names
        return [
            name
            for term, place in self.info.slices.items()
            for name in ([term[0]] if term in self.whole else written[place])
        ]

    @property
    def counts(self) -> Ints:
        """Levels of every column that is a whole factor; 0 for other columns."""
        counts = np.zeros(len(self.column_names), dtype=np.int64)
        for term in self.whole:
            counts[self.slices[term]] = len(self.info.levels[term[0]] or ())
        return counts

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        return self.joined(self.info.matrix(frame))

    def joined(self, X: Floats) -> Floats:
        """Put the indicator columns of every whole factor together."""
        made = np.empty((len(X), len(self.column_names)), order="F")
        for term, place in self.info.slices.items():
            block = X[:, place]
            if term in self.whole:
                # Without a column of its own, the first level is where all are 0.
                first = len(self.info.levels[term[0]] or ()) - block.shape[1]
                block = block @ np.arange(first, first + block.shape[1])[:, None]
            made[:, self.slices[term]] = block
        return made


def with_whole_factors(right: Matrix, frame: pd.DataFrame) -> Matrix:
    """Keep every unordered factor that stands by itself in one column of codes.

    Factors of more than `MAX_LEVELS` levels, with contrasts or in products keep
    their indicator columns.
    """
    whole = _whole_terms(right.info, frame)
    if not whole:
        return right
    info = WholeInfo(right.info, whole)
    return Matrix(info.joined(right.values), right.rows, info)


def bare_info(info: Learnt) -> Learnt:
    """Give what was learnt before factors were put into one column each."""
    return info.info if isinstance(info, WholeInfo) else info


def level_counts(info: Learnt) -> Ints:
    """Levels of every column that is a whole factor; 0 for other columns."""
    if isinstance(info, WholeInfo):
        return info.counts
    return np.zeros(len(info.column_names), dtype=np.int64)


def _whole_terms(info: Learnt, frame: pd.DataFrame) -> frozenset[Codes]:
    terms, levels = list(info.slices), info.levels
    in_products = {code for term in terms if len(term) > 1 for code in term}
    return frozenset(
        term
        for term in terms
        if len(term) == 1
        and term[0] not in in_products
        and 1 < len(levels[term[0]] or ()) <= MAX_LEVELS
        and _is_unordered(term[0], frame)
    )


def _is_unordered(code: str, frame: pd.DataFrame) -> bool:
    """Tell a column, or `C(column)` without a contrast, whose levels have no order."""
    node = parse_code(code).body
    marked = isinstance(node, ast.Call) and category_name(code) != bare_name(code)
    if marked and (len(node.args) > 1 or node.keywords):  # type: ignore[attr-defined]
        return False
    name = category_name(code) if marked else bare_name(code)
    return name in frame.columns and not getattr(frame[name].dtype, "ordered", False)
