"""Design matrices of training data; rows with missing values dropped or kept."""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import bare_name, category_name, parse_code
from vstatkit.formula.patsy_engine import (
    Environment,
    Matrix,
    OnMissing,
    SideInfo,
    environment_of,
    learn,
    learn_side,
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
            mark = "" if code == self._full_factor else "T."
            names += [
                f"{code}[{mark}{level}]" for level in self._shown_levels(code, levels)
            ]
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
        slices: dict[Codes, slice] = {}
        at = 0
        for term in self.terms:
            levels = self.levels[term[0]] if term else None
            width = 1 if levels is None else len(self._shown_levels(term[0], levels))
            slices[term] = slice(at, at + width)
            at += width
        return slices

    @property
    def references(self) -> Mapping[str, int]:
        """Place of the reference level of every category: the first."""
        return dict.fromkeys(self.categories, 0)

    @property
    def _full_factor(self) -> str | None:
        """The factor with a column for every level: the first, for the intercept."""
        return None if () in self.terms else next(iter(self.categories), None)

    def _shown_levels(self, code: str, levels: Levels) -> Levels:
        """Levels that have a column."""
        return levels if code == self._full_factor else levels[1:]

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        values = evaluate(self, frame)
        if values is None or values.gaps().any():
            return self.engine_info().matrix(frame)
        return values.fill_matrix(np.full(len(frame), True))

    def engine_info(self) -> SideInfo:
        """Let the engine learn the same from rows that have every level."""
        size = max((len(levels) for levels in self.categories.values()), default=1)
        rows = np.arange(size)
        columns = {
            self.model.columns[code]: rows.astype(np.float64)
            if levels is None
            else pd.Categorical.from_codes(rows % len(levels), dtype=_kind_of(levels))
            for code, levels in self.levels.items()
        }
        engine = learn_side(
            self.model,
            self.terms,
            pd.DataFrame(columns, index=rows),
            environment_of({}),
            missing="raise",
        )
        return engine.info


@dataclass(frozen=True)
class PlainValues:
    """Values of the factors over rows of data."""

    info: PlainInfo  # the factors
    # Position of each row's level, -1 where it is missing, for every category
    codes: Mapping[str, Ints]
    numbers: Floats  # (n, factors that are numbers): numbers

    def gaps(self) -> Bools:
        """Rows that lack a category."""
        gaps = np.zeros(len(self.numbers), dtype=bool)
        for codes in self.codes.values():
            gaps |= codes < 0
        return gaps

    def missing_rows(self) -> Bools:
        """Rows that lack a category or a number."""
        return np.asarray(self.gaps() | np.isnan(self.numbers).any(axis=1))

    def fill_matrix(self, rows: Bools) -> Floats:
        """Write the design matrix of the given rows, which lack no category."""
        info = self.info
        X = np.empty((int(rows.sum()), len(info.column_names)), order="F")
        at = 0
        if () in info.terms:
            X[:, 0], at = 1.0, 1
        for code, levels in info.categories.items():
            codes = self.codes[code][rows]
            first = len(levels) - len(info._shown_levels(code, levels))
            for level in range(first, len(levels)):
                X[:, at] = codes == level
                at += 1
        X[:, at:] = self.numbers[rows]
        return X


def plain_info(
    model: Model, terms: Iterable[Codes], frame: pd.DataFrame
) -> PlainInfo | None:
    """Learn one side of a formula; None where that needs the engine."""
    listed = tuple(terms)
    codes = [code for term in listed for code in term]
    if any(len(term) > 1 for term in listed):
        return None
    if any(code not in model.columns for code in codes):
        return None
    if INTERCEPT in codes:  # the engine refuses a column of this name
        return None
    levels: dict[str, Levels | None] = {}
    kinds = frame.dtypes.to_dict()
    for code in codes:
        name = model.columns[code]
        levels[code] = None if _is_real(kinds[name]) else _levels(frame[name])
        if levels[code] == ():
            return None
    categories = [code for code in codes if levels[code] is not None]
    numbers = [code for code in codes if levels[code] is None]
    return PlainInfo(
        model,
        terms=(
            *(term for term in listed if not term),
            *((code,) for code in categories + numbers),
        ),
        levels={code: levels[code] for code in categories + numbers},
    )


def evaluate(info: PlainInfo, frame: pd.DataFrame) -> PlainValues | None:
    """Look the factors up in data; None where that needs the engine."""
    columns, kinds = info.model.columns, frame.dtypes.to_dict()
    numbers = [columns[code] for code in info.numbers]
    if not all(_is_real(kinds[name]) for name in numbers):
        return None
    codes: dict[str, Ints] = {}
    for code, levels in info.categories.items():
        places = _codes(frame[columns[code]], levels)
        if places is None:
            return None
        codes[code] = places
    return PlainValues(info, codes, _floats(frame, numbers))


def _floats(frame: pd.DataFrame, names: list[str]) -> Floats:
    return frame[names].to_numpy(dtype=np.float64)


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
    values = column.to_numpy()
    gaps = column.isna().to_numpy()
    known: NDArray[Any] = values[~gaps]
    texts = pd.api.types.infer_dtype(known, skipna=False) in ("string", "empty")
    usual = all(value is None or isinstance(value, float) for value in values[gaps])
    return known if texts and usual else None


def _kind_of(levels: Levels) -> pd.CategoricalDtype:
    index = pd.Index(list(levels), dtype=object, tupleize_cols=False)
    return pd.CategoricalDtype(index)


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
# What to do where missing values are refused.
HINT = "\nUse missing='drop' to leave rows with missing values out."


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
    """Build both design matrices; the frame's index counts its rows from 0.

    Parameters
    ----------
    model : Model
        Terms of the formula.
    frame : DataFrame
        Training data.
    environment : Environment
        Where names that are not columns are looked up.
    missing : {"drop", "raise", "pass"}
        What to do with missing values.
    variables : sequence of str
        Columns that the right-hand side reads.

    Returns
    -------
    left, right : Matrix
    """
    if missing == "pass":
        check_missing_categories(frame, variables)
        left = _learn_left(model, frame, environment, "drop")
        if len(left.rows) < len(frame):
            frame = frame.loc[left.rows]
        return _learn_both(model, frame, environment, "keep")
    if missing == "raise":
        return _learn_both(model, frame, environment, "raise", HINT)
    stateful = model.stateful_columns(frame.columns)
    complete = frame.dropna(subset=stateful) if stateful else frame
    frame = complete if len(complete) else frame
    return _learn_both(model, frame, environment, "drop")


def _learn_both(
    model: Model,
    frame: pd.DataFrame,
    environment: Environment,
    missing: OnMissing,
    hint: str = "",
) -> tuple[Matrix, Matrix]:
    """Learn both sides, without the engine where the columns are plain."""
    right = _learn_plain(model, model.right, frame, missing)
    if right is None:
        return learn(model, frame, environment, missing=missing, hint=hint)
    left = _learn_left(model, frame, environment, missing, hint)
    if not left.info.column_names:  # the engine says that there is no response
        return learn(model, frame, environment, missing=missing, hint=hint)
    if len(left.rows) == len(right.rows) == len(frame):
        return left, right
    return common_rows(left, right)


def common_rows(left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Keep the rows that both sides have."""
    rows = np.intersect1d(left.rows, right.rows, assume_unique=True)
    return left.select_rows(rows), right.select_rows(rows)


def _learn_left(
    model: Model,
    frame: pd.DataFrame,
    environment: Environment,
    missing: OnMissing,
    hint: str = "",
) -> Matrix:
    matrix = _learn_plain(model, model.left, frame, missing)
    if matrix is not None:
        return matrix
    return learn_side(model, model.left, frame, environment, missing=missing, hint=hint)


def _learn_plain(
    model: Model, terms: Sequence[Codes], frame: pd.DataFrame, missing: OnMissing
) -> Matrix | None:
    """Learn columns that stand by themselves; None where that needs the engine."""
    info = plain_info(model, terms, frame)
    return None if info is None else plain_matrix(info, frame, missing)


def plain_matrix(
    info: PlainInfo, frame: pd.DataFrame, missing: OnMissing
) -> Matrix | None:
    """Code columns that stand by themselves; None where that needs the engine."""
    values = evaluate(info, frame)
    if values is None:
        return None
    absent = values.gaps() if missing == "keep" else values.missing_rows()
    if absent.any() and missing != "drop":
        return None  # the engine says what is missing
    return Matrix(values.fill_matrix(~absent), frame.index.to_numpy()[~absent], info)


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
        slices: dict[Codes, slice] = {}
        at = 0
        for term, names in self._names.items():
            slices[term] = slice(at, at + len(names))
            at += len(names)
        return slices

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix; one of codes is called as its term."""
        return [name for names in self._names.values() for name in names]

    @property
    def counts(self) -> Ints:
        """Levels of every column of codes; 0 for other columns."""
        counts = np.zeros(len(self.column_names), dtype=np.int64)
        for term in self.coded_terms:
            if not self.ordered & set(term):
                counts[self.slices[term]] = self._n_levels(term)
        return counts

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        return self.join_factors(self.info.matrix(frame))

    def join_factors(self, X: Floats) -> Floats:
        """Write the columns of all terms, given those of every factor by itself."""
        joined = np.empty((len(X), len(self.column_names)), order="F")
        for term, place in self.slices.items():
            joined[:, place] = self._block(X, term)
        return joined

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
            if self._has_indicators(term):
                never = first[block] < 0
                if not self._number_factors(term):
                    block, never = block[~never], never[~never]
                block = block[np.lexsort((first[block], never))]
                if len(term) == 1 and len(block) == 2:
                    block = block[1:]
            arranged += block.tolist()
        return np.array(arranged, dtype=np.int64)

    @property
    def indicators(self) -> Ints:
        """Columns that are indicators of levels, or products with them."""
        return np.array(
            [
                j
                for term, place in self.slices.items()
                if self._has_indicators(term)
                for j in range(place.start, place.stop)
            ],
            dtype=np.int64,
        )

    def _has_indicators(self, term: Codes) -> bool:
        return term not in self.coded_terms and bool(self._alike_factors(term))

    def _alike_factors(self, term: Codes) -> list[str]:
        return [code for code in term if code in self.alike]

    def _number_factors(self, term: Codes) -> list[str]:
        return [code for code in term if code not in self.alike]

    def _n_levels(self, term: Codes) -> int:
        return prod(len(self.levels[code] or ()) for code in self._alike_factors(term))

    @cached_property
    def _names(self) -> dict[Codes, list[str]]:
        return {term: self._term_names(term) for term in self.terms}

    def _term_names(self, term: Codes) -> list[str]:
        if term in self.coded_terms:
            return [":".join(term)]
        if term in self.info.slices and not self._alike_factors(term):
            return list(self.info.column_names[self.info.slices[term]])
        parts = {code: self._factor_names(code) for code in term}
        alike, numbers = self._alike_factors(term), self._number_factors(term)
        sets = product(*(parts[code] for code in alike))
        # The last of several columns of numbers changes slowest, as in patsy.
        others = product(*(parts[code] for code in numbers[::-1]))
        columns = [column[::-1] for column in others]
        codes, names = (*alike, *numbers), []
        for levels in sets:
            for column in columns:
                part_of = dict(zip(codes, (*levels, *column), strict=True))
                names.append(":".join(part_of[code] for code in term))
        return names

    def _factor_names(self, code: str) -> list[str]:
        if code in self.alike:
            return [f"{code}[{level}]" for level in self.levels[code] or ()]
        return list(self.info.column_names[self.info.slices[code,]])

    def _block(self, X: Floats, term: Codes) -> Floats:
        """Write the columns of a term."""
        alike = self._alike_factors(term)
        if not alike and term in self.info.slices:
            return X[:, self.info.slices[term]]
        numbers = np.ones((len(X), 1))
        for code in self._number_factors(term):
            block = X[:, self.info.slices[code,]]
            numbers = (block[:, :, None] * numbers[:, None, :]).reshape(len(X), -1)
        if not alike:
            return numbers
        codes = np.zeros(len(X))
        for code in alike:
            codes = codes * len(self.levels[code] or ()) + self._level_codes(X, code)
        if term in self.coded_terms:
            return codes[:, None]
        sets = (codes[:, None] == np.arange(self._n_levels(term))).astype(np.float64)
        if not self._number_factors(term):
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

    Parameters
    ----------
    info : SideInfo
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
    in_order = _ordered_factors(info, frame)
    if factors == "whole":
        return _recode_whole(info, frame, in_order)
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
    return RecodedInfo(info, tuple(terms), frozenset(coded), frozenset(ordered), alike)


def _recode_whole(
    info: SideInfo, frame: pd.DataFrame, in_order: frozenset[str]
) -> SideInfo:
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
    return RecodedInfo(info, tuple(terms), coded, frozenset(), frozenset(whole))


def _has_arguments(code: str) -> bool:
    """Tell `C(column, ...)` from `C(column)` and a column."""
    node = parse_code(code).body
    call = isinstance(node, ast.Call) and bare_name(code) is None
    return call and (len(node.args) > 1 or bool(node.keywords))  # type: ignore[attr-defined]


def _n_levels(info: SideInfo, term: Codes) -> int:
    return prod(len(info.levels[code] or ()) for code in term)


def _ordered_factors(info: SideInfo, frame: pd.DataFrame) -> frozenset[str]:
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
    if isinstance(info, RecodedInfo):
        return info.counts
    return np.zeros(len(info.column_names), dtype=np.int64)


def indicator_columns(info: SideInfo) -> Ints:
    """Columns that are indicators of levels, or products with them."""
    return (
        info.indicators
        if isinstance(info, RecodedInfo)
        else np.empty(0, dtype=np.int64)
    )


def first_rows(info: SideInfo, X: Floats) -> Ints:
    """Find the row in which each indicator is first not zero; -1 where it never is."""
    rows = np.full(len(info.column_names), -1)
    for j in indicator_columns(info):
        some = (X[:, j] != 0) & ~np.isnan(X[:, j])
        rows[j] = some.argmax() if some.any() else -1
    return rows


def arrange_columns(info: SideInfo, columns: Ints, first: Ints) -> Ints:
    """Order columns so that the order of levels does not matter; see `arrange`."""
    return info.arrange(columns, first) if isinstance(info, RecodedInfo) else columns
