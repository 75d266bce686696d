"""How factors become columns of a design matrix.

Linear models need the columns of a basis: one indicator for each level but the
reference, which the intercept stands for. Trees and other learners do not: without a
column of its own, the reference could not be told from the other levels, and results
would depend on which level that is. They get columns that treat all levels alike.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.engine import Learnt, Matrix
from vstatkit.formula.expressions import bare_name, category_name, parse_code
from vstatkit.formula.model import Model, distinct
from vstatkit.formula.terms import Codes

MAX_LEVELS = 64
"""Levels of a factor, or combinations of levels, that one column of codes may have."""

FEW_LEVELS = 3
"""Levels up to which trees split sets of levels by default.

Of three levels, a set splits off one: the column does what three indicators do, and
counts as one predictor where predictors are tried at random. With more levels the best
of many sets fits noise, and indicators are more accurate in simulations.
"""

FactorCoding = Literal["treatment", "indicators", "trees", "splits", "whole"]
"""How factors are coded.

"treatment" leaves the reference out, as linear models need it. "indicators" has a
column for every level, or combination of levels; two levels need one. "trees" and
"splits" are for learners that split sets of levels themselves: a factor of 3 to
`FEW_LEVELS` ("trees") or `MAX_LEVELS` ("splits") levels has one column of codes, and an
ordered one a column of numbers. "whole" is the coding of files up to layout 7 and of
tables without a formula: codes for unordered factors that are in no product,
"treatment" for others.
"""

CODINGS: tuple[FactorCoding, ...] = get_args(FactorCoding)


@dataclass(frozen=True)
class Recoded:
    """One side of a formula, with columns that treat the levels of a factor alike.

    Attributes
    ----------
    info : Learnt
        What was learnt about the factors, each of them by itself.
    terms : tuple of tuple of str
        Terms that have columns, in order.
    coded : frozenset of tuple of str
        Those that have one column of codes: 0 for the first level, or the first
        combination of levels, 1 for the second, and so on.
    ordered : frozenset of str
        Factors whose levels have an order: a column of their codes is one of numbers.
    alike : frozenset of str
        Factors whose levels are treated alike. Others are columns of numbers, such as
        those of a contrast that the formula asks for.
    """

    info: Learnt
    terms: tuple[Codes, ...]
    coded: frozenset[Codes]
    ordered: frozenset[str]
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
        found: dict[Codes, slice] = {}
        at = 0
        for term, names in self._names.items():
            found[term] = slice(at, at + len(names))
            at += len(names)
        return found

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix; one of codes is called as its term."""
        return [name for names in self._names.values() for name in names]

    @property
    def counts(self) -> Ints:
        """Levels of every column of codes; 0 for other columns."""
        counts = np.zeros(len(self.column_names), dtype=np.int64)
        for term in self.coded:
            if not self.ordered & set(term):
                counts[self.slices[term]] = self._n_levels(term)
        return counts

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        return self.joined(self.info.matrix(frame))

    def joined(self, X: Floats) -> Floats:
        """Write the columns of all terms, given those of every factor by itself."""
        made = np.empty((len(X), len(self.column_names)), order="F")
        for term, place in self.slices.items():
            made[:, place] = self._block(X, term)
        return made

    def arrange(self, columns: Ints, first: Ints) -> Ints:
        """Order columns by the data, not by the order of levels.

        Parameters
        ----------
        columns : ndarray
            Columns that are used.
        first : ndarray of shape (all columns,)
            The row in which each column is first not zero; -1 where it never is.

        Returns
        -------
        ndarray
            Indicators of levels in the order in which levels come first. Those of
            levels that no row has are left out. One indicator tells two levels apart:
            that of the second.
        """
        arranged: list[int] = []
        for term, place in self.slices.items():
            block = columns[(columns >= place.start) & (columns < place.stop)]
            if self._is_spread(term):
                never = first[block] < 0
                if not self._numbers(term):
                    block, never = block[~never], never[~never]
                block = block[np.lexsort((first[block], never))]
                if len(term) == 1 and len(block) == 2:
                    block = block[1:]
            arranged += block.tolist()
        return np.array(arranged, dtype=np.int64)

    @property
    def spread(self) -> Ints:
        """Columns that are indicators of levels, or products with them."""
        return np.array(
            [
                j
                for term, place in self.slices.items()
                if self._is_spread(term)
                for j in range(place.start, place.stop)
            ],
            dtype=np.int64,
        )

    def _is_spread(self, term: Codes) -> bool:
        return term not in self.coded and bool(self._alike(term))

    def _alike(self, term: Codes) -> list[str]:
        return [code for code in term if code in self.alike]

    def _numbers(self, term: Codes) -> list[str]:
        return [code for code in term if code not in self.alike]

    def _n_levels(self, term: Codes) -> int:
        return prod(len(self.levels[code] or ()) for code in self._alike(term))

    @cached_property
    def _names(self) -> dict[Codes, list[str]]:
        return {term: self._term_names(term) for term in self.terms}

    def _term_names(self, term: Codes) -> list[str]:
        if term in self.coded:
            return [":".join(term)]
        if term in self.info.slices and not self._alike(term):
            return list(self.info.column_names[self.info.slices[term]])
        parts = {code: self._factor_names(code) for code in term}
        alike, numbers = self._alike(term), self._numbers(term)
        sets = product(*(parts[code] for code in alike))
        # The last of several columns of numbers changes slowest, as in patsy.
        others = product(*(parts[code] for code in numbers[::-1]))
        columns = [one[::-1] for one in others]
        found = []
        for levels in sets:
            for one in columns:
                named = dict(zip((*alike, *numbers), (*levels, *one), strict=True))
                found.append(":".join(named[code] for code in term))
        return found

    def _factor_names(self, code: str) -> list[str]:
        if code in self.alike:
            return [f"{code}[{level}]" for level in self.levels[code] or ()]
        return list(self.info.column_names[self.info.slices[code,]])

    def _block(self, X: Floats, term: Codes) -> Floats:
        """Write the columns of a term."""
        alike = self._alike(term)
        if not alike and term in self.info.slices:
            return X[:, self.info.slices[term]]
        numbers = np.ones((len(X), 1))
        for code in self._numbers(term):
            block = X[:, self.info.slices[code,]]
            numbers = (block[:, :, None] * numbers[:, None, :]).reshape(len(X), -1)
        if not alike:
            return numbers
        codes = np.zeros(len(X))
        for code in alike:
            codes = codes * len(self.levels[code] or ()) + self._level_codes(X, code)
        if term in self.coded:
            return codes[:, None]
        sets = (codes[:, None] == np.arange(self._n_levels(term))).astype(np.float64)
        if not self._numbers(term):
            return np.asarray(sets)
        return np.asarray((sets[:, :, None] * numbers[:, None, :]).reshape(len(X), -1))

    def _level_codes(self, X: Floats, code: str) -> Floats:
        """Find the place of every row's level."""
        block = X[:, self.info.slices[code,]]
        places = np.arange(len(self.levels[code] or ()))
        if block.shape[1] == places.size:
            return np.asarray(block @ places)
        reference = self.references[code]
        shown = np.delete(places, reference)
        return np.asarray(reference + block @ (shown - reference))


def factors_alone(model: Model, factors: FactorCoding) -> Model:
    """Write every factor as a term by itself, for codings that join them again."""
    if factors in ("treatment", "whole"):
        return model
    alone = tuple((code,) for code in distinct(model.right))
    return replace(model, right=((), *alone))


def recoded(
    info: Learnt, model: Model, frame: pd.DataFrame, factors: FactorCoding
) -> Learnt:
    """Give the terms of a formula the columns that a coding asks for.

    Parameters
    ----------
    info : Learnt
        What was learnt of `factors_alone(model, factors)`.
    model : Model
        Terms of the formula.
    frame : DataFrame
        Data that have the kind of every column.
    factors : FactorCoding
        The coding.
    """
    if factors == "treatment":
        return info
    in_order = _ordered(info, frame)
    if factors == "whole":
        return _as_in_old_files(info, frame, in_order)
    alike = frozenset(info.references)
    # A factor of one level tells nothing, and has no column unless it is in a product.
    terms = [
        term
        for term in model.right
        if not (len(term) == 1 and len(info.levels[term[0]] or "two") == 1)
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
    return Recoded(info, tuple(terms), frozenset(coded), frozenset(ordered), alike)


def _as_in_old_files(
    info: Learnt, frame: pd.DataFrame, in_order: frozenset[str]
) -> Learnt:
    terms = list(info.slices)
    in_products = {code for term in terms if len(term) > 1 for code in term}
    whole = {
        code
        for code in info.references
        if (code,) in terms
        and code not in in_products | in_order
        and 1 < len(info.levels[code] or ()) <= MAX_LEVELS
        and category_name(code) in frame.columns
        and not _has_arguments(code)
    }
    coded = frozenset((code,) for code in whole)
    return Recoded(info, tuple(terms), coded, frozenset(), frozenset(whole))


def _has_arguments(code: str) -> bool:
    """Tell `C(column, ...)` from `C(column)` and a column."""
    node = parse_code(code).body
    call = isinstance(node, ast.Call) and bare_name(code) is None
    return call and (len(node.args) > 1 or bool(node.keywords))  # type: ignore[attr-defined]


def _n_levels(info: Learnt, term: Codes) -> int:
    return prod(len(info.levels[code] or ()) for code in term)


def _ordered(info: Learnt, frame: pd.DataFrame) -> frozenset[str]:
    """List the factors that are columns whose levels have an order."""
    names = {
        code: category_name(code)
        for code, levels in info.levels.items()
        if levels is not None
    }
    return frozenset(
        code
        for code, name in names.items()
        if name in frame.columns and getattr(frame[name].dtype, "ordered", False)
    )


def bare_info(info: Learnt) -> Learnt:
    """Give what was learnt before terms were given other columns."""
    return info.info if isinstance(info, Recoded) else info


def recode(right: Matrix, info: Learnt) -> Matrix:
    """Write the columns of `recoded` in place of those that the engine has made."""
    if not isinstance(info, Recoded):
        return right
    return Matrix(info.joined(right.values), right.rows, info)


def level_counts(info: Learnt) -> Ints:
    """Levels of every column of codes; 0 for other columns."""
    if isinstance(info, Recoded):
        return info.counts
    return np.zeros(len(info.column_names), dtype=np.int64)


def spread_columns(info: Learnt) -> Ints:
    """Columns that are indicators of levels, or products with them."""
    return info.spread if isinstance(info, Recoded) else np.empty(0, dtype=np.int64)


def first_rows(info: Learnt, X: Floats) -> Ints:
    """Find the row in which each indicator is first not zero; -1 where it never is."""
    found = np.full(len(info.column_names), -1)
    for j in spread_columns(info):
        some = (X[:, j] != 0) & ~np.isnan(X[:, j])
        found[j] = some.argmax() if some.any() else -1
    return found


def arranged_columns(info: Learnt, columns: Ints, first: Ints) -> Ints:
    """Order columns so that the order of levels does not matter; see `arrange`."""
    return info.arrange(columns, first) if isinstance(info, Recoded) else columns
