"""Design matrices of training data; rows with missing values dropped or kept."""

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.formula_text import bare_name, category_name, parse_code
from vstatkit.formula.patsy_engine import (
    Environment,
    Matrix,
    OnMissing,
    SideInfo,
    code_rows,
    environment_of,
    learn_batches,
)
from vstatkit.formula.terms import Codes, Model, distinct_codes

Levels = tuple[Any, ...]

INTERCEPT = "Intercept"  # name of the column of ones


@dataclass(frozen=True)
class PlainInfo:
    """What was learnt about columns that stand by themselves."""

    model: Model  # the formula
    # One side of it in the order of the columns: the intercept, categories, numbers
    terms: tuple[Codes, ...]
    # Levels of every factor by its code; None for numbers
    levels: Mapping[str, Levels | None]

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix, as the formula writes them."""
        names = [INTERCEPT] if () in self.terms else []
        for code, levels in self.categories.items():
            first = self._first_level(code)
            mark = "T." if first else ""
            names += [f"{code}[{mark}{level}]" for level in levels[first:]]
        return names + self.numbers

    @cached_property
    def categories(self) -> dict[str, Levels]:
        """Levels of the factors that are categories."""
        return {
            code: levels for code, levels in self.levels.items() if levels is not None
        }

    @cached_property
    def numbers(self) -> list[str]:
        """Codes of the factors that are numbers."""
        return [code for code, levels in self.levels.items() if levels is None]

    @cached_property
    def slices(self) -> Mapping[Codes, slice]:
        """Columns of every term."""
        widths = dict.fromkeys(self.terms, 1)
        for code, levels in self.categories.items():
            widths[code,] = len(levels) - self._first_level(code)
        return _consecutive_slices(widths)

    @property
    def references(self) -> Mapping[str, int]:
        """Place of the reference level of every category: the first."""
        return dict.fromkeys(self.categories, 0)

    def _first_level(self, code: str) -> int:
        """Place of the first level with a column; one category may need them all."""
        return int(() in self.terms or code != next(iter(self.categories)))

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        coded = self.code_rows(frame, "keep")
        return self.engine_info().matrix(frame) if coded is None else coded.values

    def code_rows(self, frame: pd.DataFrame, missing: OnMissing) -> Matrix | None:
        """Code rows; None if that needs the engine, or it says what is missing."""
        columns, kinds = self.model.columns, frame.dtypes.to_dict()
        names = [columns[code] for code in self.numbers]
        if not all(_is_real(kinds[name]) for name in names):
            return None
        numbers = frame[names].to_numpy(dtype=np.float64)
        absent = np.zeros(len(frame), dtype=bool)
        if missing != "keep":
            absent |= np.isnan(numbers).any(axis=1)
        places: dict[str, Ints] = {}
        for code, levels in self.categories.items():
            codes = _codes(frame[columns[code]], levels)
            if codes is None:
                return None
            places[code] = codes
            absent |= codes < 0
        if absent.any() and missing != "drop":
            return None
        X = np.empty((int((~absent).sum()), len(self.column_names)), order="F")
        at = int(() in self.terms)
        X[:, :at] = 1.0
        for code, codes in places.items():
            kept = codes[~absent]
            for level in range(self._first_level(code), len(self.categories[code])):
                X[:, at] = kept == level
                at += 1
        X[:, at:] = numbers[~absent]
        return Matrix(X, frame.index.to_numpy()[~absent], self)

    def engine_info(self) -> SideInfo:
        """Let the engine learn the same from rows that have every level."""
        size = max((len(levels) for levels in self.categories.values()), default=1)
        rows = np.arange(size)
        columns: dict[str, Any] = {}
        for code, levels in self.levels.items():
            column: Any = rows.astype(np.float64)
            if levels is not None:
                index = pd.Index(list(levels), dtype=object, tupleize_cols=False)
                column = pd.Categorical.from_codes(rows % len(levels), index)
            columns[self.model.columns[code]] = column
        frame = pd.DataFrame(columns, index=rows)
        nothing = environment_of({})
        return learn_batches(
            self.model, self.terms, lambda: iter([frame]), nothing, missing="raise"
        )


def _consecutive_slices(widths: Mapping[Codes, int]) -> dict[Codes, slice]:
    """Give every term its columns, one term after the other."""
    ends = accumulate(widths.values())
    return {
        term: slice(end - width, end)
        for (term, width), end in zip(widths.items(), ends, strict=True)
    }


def plain_info(
    model: Model, terms: Iterable[Codes], frame: pd.DataFrame
) -> PlainInfo | None:
    """Learn one side of a formula; None where that needs the engine."""
    listed, columns = tuple(terms), model.columns
    codes = [code for term in listed for code in term]
    plain = all(len(term) < 2 for term in listed) and all(
        code in columns for code in codes
    )
    if not plain or INTERCEPT in codes:  # the engine refuses a column of this name
        return None
    kinds = frame.dtypes.to_dict()
    levels = {
        code: None if _is_real(kinds[columns[code]]) else _levels(frame[columns[code]])
        for code in codes
    }
    if () in levels.values():
        return None
    ordered = sorted(codes, key=lambda code: levels[code] is None)  # numbers last
    intercept = [term for term in listed if not term]
    return PlainInfo(
        model,
        terms=(*intercept, *((code,) for code in ordered)),
        levels={code: levels[code] for code in ordered},
    )


def _is_real(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "fiu"


def _levels(column: pd.Series) -> Levels:
    """Levels of a column; none where the engine has to find them."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return tuple(kind.categories)
    if kind == np.bool_:
        return False, True
    known = _known_texts(column)
    if known is None:
        return ()
    levels = sorted(set(known))
    # To the engine, texts that read as numbers which are not one are missing.
    return () if any(map(_reads_as_missing, levels)) else tuple(levels)


def _known_texts(column: pd.Series) -> NDArray[Any] | None:
    """Texts of a column without missing values; None where it holds other things."""
    if column.dtype != object:
        return None
    values, gaps = column.to_numpy(), column.isna().to_numpy()
    known: NDArray[Any] = values[~gaps]
    texts = pd.api.types.infer_dtype(known, skipna=False) in ("string", "empty")
    usual = all(value is None or isinstance(value, float) for value in values[gaps])
    return known if texts and usual else None


def _reads_as_missing(text: str) -> bool:
    try:
        return math.isnan(float(text))
    except ValueError:
        return False


def _codes(column: pd.Series, levels: Levels) -> Ints | None:
    """Positions of the levels, -1 where missing; None where that is not so plain."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        same = tuple(kind.categories) == levels
        return column.cat.codes.to_numpy().astype(np.int64) if same else None
    if kind == np.bool_:
        return column.to_numpy().astype(np.int64) if levels == (False, True) else None
    if _known_texts(column) is None:
        return None
    places = {level: at for at, level in enumerate(levels)}
    codes, texts = pd.factorize(column.to_numpy())
    if not all(text in places for text in texts):
        return None
    # Missing ones have the code -1, which takes the last place.
    return np.array([*(places[text] for text in texts), -1])[codes]


Missing = Literal["drop", "raise", "pass"]  # what is done with missing values


def check_missing_option(missing: str) -> None:
    """Refuse unknown treatments of missing values."""
    if missing not in ("drop", "raise", "pass"):
        raise ValueError(
            f"`missing` must be 'drop', 'raise' or 'pass'; got {missing!r}."
        )


def build_matrices(
    model: Model,
    frame: pd.DataFrame,
    environment: Environment,
    missing: Missing,
    variables: Sequence[str],
) -> tuple[Matrix, Matrix]:
    """Build both matrices of rows counted from 0; the right side reads `variables`."""

    def build(terms: Sequence[Codes], rows: pd.DataFrame, how: OnMissing) -> Matrix:
        info = learn_side(
            model,
            terms,
            rows,
            lambda: iter([rows]),
            environment=environment,
            missing=how,
        )
        return code_side(info, rows, how)

    if missing == "pass":
        check_missing_categories(frame, variables)
        left = build(model.left, frame, "drop")
        if len(left.rows) < len(frame):
            frame = frame.loc[left.rows]
        right = build(model.right, frame, "keep")
    else:
        stateful = model.stateful_columns(frame.columns) if missing == "drop" else []
        complete = frame.dropna(subset=stateful) if stateful else frame
        frame = complete if len(complete) else frame
        left = build(model.left, frame, missing)
        right = build(model.right, frame, missing)
    if not left.info.column_names:
        raise FormulaError("model is missing required outcome variables")
    return common_rows(left, right)


def learn_side(
    model: Model,
    terms: Sequence[Codes],
    rows: pd.DataFrame,
    batches: Callable[[], Iterator[pd.DataFrame]],
    *,
    environment: Environment,
    missing: OnMissing,
) -> SideInfo:
    """Learn one side; the batches are read only if some factor is no plain column.

    `rows` has the dtype of every column, and all levels of columns that are not
    numeric.
    """
    plain = plain_info(model, terms, rows)
    if plain is not None:
        return plain
    return learn_batches(model, terms, batches, environment, missing=missing)


def code_side(info: SideInfo, batch: pd.DataFrame, missing: OnMissing) -> Matrix:
    """Code one side; plain columns do not need the engine."""
    if len(batch) == 0:
        empty = np.empty((0, len(info.column_names)))
        return Matrix(empty, batch.index.to_numpy(), info)
    engine = info
    if isinstance(info, PlainInfo):
        matrix = info.code_rows(batch, missing)
        if matrix is not None:
            return matrix
        engine = info.engine_info()
    return replace(code_rows(engine, batch, missing), info=info)


def common_rows(left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Keep the rows that both sides have."""
    if np.array_equal(left.rows, right.rows):
        return left, right
    rows = np.intersect1d(left.rows, right.rows, assume_unique=True)
    return left.select_rows(rows), right.select_rows(rows)


def check_missing_categories(frame: pd.DataFrame, variables: Sequence[str]) -> None:
    """Refuse missing values of categories where they are to be kept."""
    for name in variables:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column.dtype) and column.isna().any():
            raise FormulaError(
                f"`missing='pass'` keeps missing numbers only; {name!r} is not numeric "
                "and has missing values. Make missing a level of its own, or drop."
            )


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
        return _consecutive_slices(widths)

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
