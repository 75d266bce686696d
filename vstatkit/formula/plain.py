"""Code columns that stand by themselves, as the engine would, without the engine.

Numbers are taken as they are; text, booleans and categories get indicator columns.
Where anything is out of the ordinary, such as an unknown level, the engine is asked,
so that its coding and its messages are the only ones.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.formula.engine import Learnt, environment_of, learn_side
from vstatkit.formula.model import Model
from vstatkit.formula.terms import Codes

Levels = tuple[Any, ...]

INTERCEPT = "Intercept"
"""Name of the column of ones."""


@dataclass(frozen=True)
class PlainInfo:
    """What was learnt about columns that stand by themselves.

    Attributes
    ----------
    model : Model
        The formula.
    terms : tuple of tuple of str
        One side of it in the order of the columns: the intercept, categories,
        numbers.
    levels : mapping
        Levels of every factor by its code; None for numbers.
    """

    model: Model
    terms: tuple[Codes, ...]
    levels: Mapping[str, Levels | None]

    @cached_property
    def column_names(self) -> Sequence[str]:
        """Columns of the design matrix, as the formula writes them."""
        names = [INTERCEPT] if () in self.terms else []
        for code, levels in self.coded.items():
            mark = "" if code == self._full else "T."
            names += [f"{code}[{mark}{level}]" for level in self._shown(code, levels)]
        return names + self.numbers

    @cached_property
    def coded(self) -> dict[str, Levels]:
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
        found: dict[Codes, slice] = {}
        at = 0
        for term in self.terms:
            levels = self.levels[term[0]] if term else None
            width = 1 if levels is None else len(self._shown(term[0], levels))
            found[term] = slice(at, at + width)
            at += width
        return found

    @property
    def references(self) -> Mapping[str, int]:
        """Place of the reference level of every category: the first."""
        return dict.fromkeys(self.coded, 0)

    @property
    def _full(self) -> str | None:
        """The factor with a column for every level: the first, for the intercept."""
        return None if () in self.terms else next(iter(self.coded), None)

    def _shown(self, code: str, levels: Levels) -> Levels:
        """Levels that have a column."""
        return levels if code == self._full else levels[1:]

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """Code new data, all columns; missing values stay missing."""
        values = evaluate(self, frame)
        if values is None or values.gaps().any():
            return self.engines().matrix(frame)
        return values.filled(np.full(len(frame), True))

    def engines(self) -> Learnt:
        """Let the engine learn the same from rows that have every level."""
        size = max((len(levels) for levels in self.coded.values()), default=1)
        rows = np.arange(size)
        columns = {
            self.model.columns[code]: rows.astype(np.float64)
            if levels is None
            else pd.Categorical.from_codes(rows % len(levels), dtype=_kind_of(levels))
            for code, levels in self.levels.items()
        }
        learnt = learn_side(
            self.model,
            self.terms,
            pd.DataFrame(columns, index=rows),
            environment_of({}),
            missing="raise",
        )
        return learnt.info


@dataclass(frozen=True)
class PlainValues:
    """Values of the factors over rows of data.

    Attributes
    ----------
    info : PlainInfo
        The factors.
    codes : mapping
        Position of each row's level, -1 where it is missing, for every category.
    numbers : ndarray of shape (n, factors that are numbers)
        Numbers.
    """

    info: PlainInfo
    codes: Mapping[str, Ints]
    numbers: Floats

    def gaps(self) -> Bools:
        """Rows that lack a category."""
        found = np.zeros(len(self.numbers), dtype=bool)
        for codes in self.codes.values():
            found |= codes < 0
        return found

    def missing(self) -> Bools:
        """Rows that lack a category or a number."""
        return np.asarray(self.gaps() | np.isnan(self.numbers).any(axis=1))

    def filled(self, rows: Bools) -> Floats:
        """Write the design matrix of the given rows, which lack no category."""
        info = self.info
        X = np.empty((int(rows.sum()), len(info.column_names)), order="F")
        at = 0
        if () in info.terms:
            X[:, 0], at = 1.0, 1
        for code, levels in info.coded.items():
            codes = self.codes[code][rows]
            first = len(levels) - len(info._shown(code, levels))
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
    codes = [code for one in listed for code in one]
    if any(len(one) > 1 for one in listed):
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
            *(one for one in listed if not one),
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
    for code, levels in info.coded.items():
        found = _codes(frame[columns[code]], levels)
        if found is None:
            return None
        codes[code] = found
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
    usual = all(one is None or isinstance(one, float) for one in values[gaps])
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
    found, texts = pd.factorize(column.to_numpy())
    if not all(text in places for text in texts):
        return None
    # Missing ones have the code -1, which takes the last place.
    return np.array([*(places[text] for text in texts), -1])[found]
