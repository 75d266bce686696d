"""The design matrix of plain columns, without the formula engine."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats, Ints
from vstatkit.formula.patsy_engine import (
    Matrix,
    OnMissing,
    SideInfo,
    environment_of,
    learn_batches,
)
from vstatkit.formula.terms import Codes, Model

INTERCEPT = "Intercept"  # name of the column of ones


Levels = tuple[Any, ...]


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
        return consecutive_slices(widths)

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


def consecutive_slices(widths: Mapping[Codes, int]) -> dict[Codes, slice]:
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
