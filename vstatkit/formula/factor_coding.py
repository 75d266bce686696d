"""Codings of factors: contrasts, indicators of levels, or codes for trees to split."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.names_in_code import bare_name, category_name, parse_code
from vstatkit.formula.patsy_engine import Matrix, SideInfo
from vstatkit.formula.plain_columns import consecutive_slices
from vstatkit.formula.terms import Codes, Model, distinct_codes

# Levels of a factor, or combinations of levels, that one column of codes may have.
MAX_LEVELS = 64

# Levels up to which trees split sets of levels by default. Of three levels, a set
# splits off one: the column does what three indicators do, and counts as one predictor
# where predictors are tried at random. With more levels the best of many sets fits
# noise, and indicators are more accurate in simulations.
FEW_LEVELS = 3

FactorCoding = Literal["treatment", "indicators", "trees", "splits", "whole"]
"""How factors are coded: "treatment" leaves the reference out, as linear models need
it. "indicators" has a column for every level, or combination of levels; two levels
need one. "trees" and "splits" are for learners that split sets of levels themselves:
a factor of 3 to `FEW_LEVELS` ("trees") or `MAX_LEVELS` ("splits") levels has one
column of codes, and an ordered one a column of numbers. "whole" is the coding of
files up to layout 7 and of tables without a formula: codes for unordered factors that
are in no product, "treatment" for others.
"""

CODINGS: tuple[FactorCoding, ...] = get_args(FactorCoding)


@dataclass(frozen=True)
class RecodedInfo:
    """One side of a formula, with columns that treat the levels of a factor alike."""

    info: SideInfo  # what was learnt about the factors, each of them by itself
    terms: tuple[Codes, ...]  # terms that have columns, in order
    # Those that have one column of codes: 0 for the first level, or the first
    # combination of levels, 1 for the second, and so on
    coded_terms: frozenset[Codes]
    # Factors whose levels have an order: a column of their codes is one of numbers
    ordered: frozenset[str]
    # Factors whose levels are treated alike. Others are columns of numbers, such as
    # those of a contrast that the formula asks for.
    alike: frozenset[str]

    @property
    def levels(self) -> Mapping[str, tuple[Any, ...] | None]:
        """Levels of every factor by its code; None for numbers."""
        return self.info.levels

    @property
    def references(self) -> Mapping[str, int]:
        """Place of every factor's reference level, by the factor's code."""
        return self.info.references

    @cached_property
    def slices(self) -> Mapping[Codes, slice]:
        """Columns of every term."""
        widths = {term: len(names) for term, names in self._names.items()}
        return consecutive_slices(widths)

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix; one of codes is called as its term."""
        return [name for names in self._names.values() for name in names]

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        return self.join_factors(self.info.matrix(frame))

    def join_factors(self, X: Floats) -> Floats:
        """Write the columns of all terms, given those of every factor by itself."""
        joined = np.empty((len(X), len(self.column_names)), order="F")
        for term, place in self.slices.items():
            joined[:, place] = self._block(X, term)
        return joined

    def has_indicators(self, term: Codes) -> bool:
        """Whether the columns of a term are indicators, or products with them."""
        return term not in self.coded_terms and bool(self._alike_factors(term))

    def _alike_factors(self, term: Codes) -> list[str]:
        return [code for code in term if code in self.alike]

    def _number_factors(self, term: Codes) -> list[str]:
        return [code for code in term if code not in self.alike]

    @cached_property
    def _names(self) -> dict[Codes, list[str]]:
        return {term: self._term_names(term) for term in self.terms}

    def _term_names(self, term: Codes) -> list[str]:
        if term in self.coded_terms:
            return [":".join(term)]
        if term in self.info.slices and not self._alike_factors(term):
            return list(self.info.column_names[self.info.slices[term]])
        alike, numbers = self._alike_factors(term), self._number_factors(term)
        # The last of several columns of numbers changes slowest, as in patsy.
        slowest_first = (*alike, *numbers[::-1])
        names = []
        for parts in product(*(self._factor_names(code) for code in slowest_first)):
            part_of = dict(zip(slowest_first, parts, strict=True))
            names.append(":".join(part_of[code] for code in term))
        return names

    def _factor_names(self, code: str) -> list[str]:
        if code in self.alike:
            return [f"{code}[{level}]" for level in self.levels[code] or ()]
        return list(self.info.column_names[self.info.slices[code,]])

    def _block(self, X: Floats, term: Codes) -> Floats:
        alike = self._alike_factors(term)
        if not alike and term in self.info.slices:
            return X[:, self.info.slices[term]]
        numbers = np.ones((len(X), 1))
        for code in self._number_factors(term):
            numbers = _multiply(X[:, self.info.slices[code,]], numbers)
        if not alike:
            return numbers
        codes = np.zeros(len(X))
        for code in alike:
            codes = codes * len(self.levels[code] or ()) + self._level_codes(X, code)
        if term in self.coded_terms:
            return codes[:, None]
        sets = (codes[:, None] == np.arange(_n_levels(self, alike))).astype(np.float64)
        return _multiply(sets, numbers) if self._number_factors(term) else sets

    def _level_codes(self, X: Floats, code: str) -> Floats:
        """Find the place of every row's level."""
        block = X[:, self.info.slices[code,]]
        places = np.arange(len(self.levels[code] or ()))
        if block.shape[1] == places.size:
            return np.asarray(block @ places)
        reference = self.references[code]
        shown = np.delete(places, reference)
        return np.asarray(reference + block @ (shown - reference))


def _multiply(outer: Floats, inner: Floats) -> Floats:
    """Multiply all columns by all others, those of `inner` changing fastest."""
    return (outer[:, :, None] * inner[:, None, :]).reshape(len(outer), -1)


def separate_factors(model: Model, factors: FactorCoding) -> Model:
    """Write every factor as a term by itself, for codings that join them again."""
    if factors in ("treatment", "whole"):
        return model
    alone = tuple((code,) for code in distinct_codes(model.right))
    return replace(model, right=((), *alone))


def recode_info(
    info: SideInfo, model: Model, frame: pd.DataFrame, factors: FactorCoding
) -> SideInfo:
    """Give the terms of a formula the columns that a coding asks for.

    `info` was learnt of `separate_factors(model, factors)`; `frame` has the kind of
    every column.
    """
    if factors == "treatment":
        return info
    in_order = _ordered_factors(info, frame)
    if factors == "whole":
        return _recode_whole(info, frame, in_order)
    alike = frozenset(info.references)
    # A factor of one level tells nothing, and has no column unless it is in a product.
    terms = [
        term
        for term in model.right
        if len(term) != 1 or len(info.levels[term[0]] or "two") != 1
    ]
    terms.sort(key=lambda term: bool(term) and not alike.issuperset(term))
    most = {"trees": FEW_LEVELS, "splits": MAX_LEVELS}.get(factors, 0)
    coded = {
        term
        for term in terms
        if term and alike.issuperset(term) and 2 < _n_levels(info, term) <= most
    }
    ordered = {code for code in in_order & alike if (code,) in terms and most}
    coded |= {(code,) for code in ordered}
    if not alike and set(terms) == set(info.slices):
        return info
    return RecodedInfo(info, tuple(terms), frozenset(coded), frozenset(ordered), alike)


def _recode_whole(
    info: SideInfo, frame: pd.DataFrame, in_order: frozenset[str]
) -> SideInfo:
    terms = tuple(info.slices)
    in_products = {code for term in terms if len(term) > 1 for code in term}
    whole = frozenset(
        code
        for code in info.references
        if (code,) in terms
        and code not in in_products | in_order
        and 1 < len(info.levels[code] or ()) <= MAX_LEVELS
        and category_name(code) in frame.columns
        and not _has_arguments(code)
    )
    coded = frozenset((code,) for code in whole)
    return RecodedInfo(info, terms, coded, frozenset(), whole)


def _has_arguments(code: str) -> bool:
    """Tell `C(column, ...)` from `C(column)` and a column."""
    node = parse_code(code).body
    if not isinstance(node, ast.Call) or bare_name(code) is not None:
        return False
    return len(node.args) > 1 or bool(node.keywords)


def _n_levels(info: SideInfo, term: Iterable[str]) -> int:
    return prod(len(info.levels[code] or ()) for code in term)


def _ordered_factors(info: SideInfo, frame: pd.DataFrame) -> frozenset[str]:
    """List the factors that are columns whose levels have an order."""
    return frozenset(
        code
        for code, levels in info.levels.items()
        if levels is not None
        and (name := category_name(code)) in frame.columns
        and getattr(frame[name].dtype, "ordered", False)
    )


def bare_info(info: SideInfo) -> SideInfo:
    """Give what was learnt before terms were given other columns."""
    return info.info if isinstance(info, RecodedInfo) else info


def recode_matrix(right: Matrix, info: SideInfo) -> Matrix:
    """Write the columns of `recode_info` in place of those that the engine has made."""
    if not isinstance(info, RecodedInfo):
        return right
    return Matrix(info.join_factors(right.values), right.rows, info)


def level_counts(info: SideInfo) -> Ints:
    """Levels of every column of codes; 0 for other columns."""
    counts = np.zeros(len(info.column_names), dtype=np.int64)
    if isinstance(info, RecodedInfo):
        for term in info.coded_terms:
            if not info.ordered & set(term):
                counts[info.slices[term]] = _n_levels(info, term)
    return counts


def indicator_columns(info: SideInfo) -> Ints:
    """Columns that are indicators of levels, or products with them."""
    listed: list[int] = []
    if isinstance(info, RecodedInfo):
        for term in filter(info.has_indicators, info.terms):
            listed += range(info.slices[term].start, info.slices[term].stop)
    return np.array(listed, dtype=np.int64)


def first_rows(info: SideInfo, X: Floats) -> Ints:
    """Find the row in which each indicator is first not zero; -1 where it never is."""
    rows = np.full(len(info.column_names), -1)
    for j in indicator_columns(info):
        some = (X[:, j] != 0) & ~np.isnan(X[:, j])
        rows[j] = some.argmax() if some.any() else -1
    return rows


def arrange_columns(info: SideInfo, columns: Ints, first: Ints) -> Ints:
    """Order columns that are used by the data, not by the order of levels.

    `first` has the row in which each of all columns is first not zero, or -1.
    Indicators of levels come in the order of these rows. Those of levels that no row
    has are left out. One indicator tells two levels apart: that of the second.
    """
    if not isinstance(info, RecodedInfo):
        return columns
    arranged: list[int] = []
    for term, place in info.slices.items():
        block = columns[(columns >= place.start) & (columns < place.stop)]
        if info.has_indicators(term):
            if info.alike.issuperset(term):
                block = block[first[block] >= 0]
            block = block[np.lexsort((first[block], first[block] < 0))]
            if len(term) == 1 and len(block) == 2:
                block = block[1:]
        arranged += block.tolist()
    return np.array(arranged, dtype=np.int64)
