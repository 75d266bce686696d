"""Code new data like the training data; typical values of the training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, DataLike, Floats, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_checks import (
    check_finite,
    first_non_number,
    is_number,
    is_number_kind,
)
from vstatkit.formula.column_spellings import respell_columns
from vstatkit.formula.column_summaries import Variables, as_variables
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.formula_text import plain_name
from vstatkit.formula.names_in_code import category_name, columns_in
from vstatkit.formula.patsy_engine import SideInfo
from vstatkit.text import list_names, row_name, suggest_name

if TYPE_CHECKING:
    from vstatkit.formula.parse import Recipe


@dataclass(frozen=True)
class Coding:
    """How the right-hand side was coded."""

    info: SideInfo  # levels and states of stateful transforms, as the engine has them
    columns: Ints  # which of its columns are used
    variables: tuple[str, ...]  # columns of the data that the right-hand side reads
    categorical: frozenset[str]  # those that enter as categories
    recipe: "Recipe"  # how to build it again

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the engine holds: it cannot be pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "info"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, info=state["recipe"].repeat().info)

    @property
    def names(self) -> list[str]:
        """Columns of the design matrix, by their plain names."""
        written = self.info.column_names
        return [plain_name(written[j]) for j in self.columns]

    def matrix(self, data: DataLike) -> Floats:
        """Code new data exactly as the training data was; refuse missing values."""
        frame, passes = as_frame(data), self.recipe.missing == "pass"
        try:
            X = self.raw_matrix(frame)
        except FormulaError:
            self._check_present(frame)
            raise
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if not passes and bad.size:
            self._check_present(frame.iloc[bad])
        names, where = self.names, "the new data: "
        check_finite(X, names, allow_missing=passes, where=where, labels=frame.index)
        return X

    def _check_present(self, frame: pd.DataFrame) -> None:
        """Refuse missing values, in rows that cannot be coded."""
        frame = respell_columns(frame, self.variables)
        known = self.recipe.frame.dtypes
        for name in self.variables:
            if name not in frame:
                continue
            column = frame[name]
            missing = frame.index[column.isna()]
            # Something else in a column of numbers is worse.
            other = not is_number_kind(column.dtype) and column.notna().any()
            if len(missing) and not (other and is_number_kind(known[name])):
                raise FormulaError(
                    f"the new data: column {name!r} is missing in row "
                    f"{row_name(missing[0])} ({len(missing):,} such row(s)). Leave "
                    f"them out, data.dropna(subset=[{name!r}]), or fill them in. "
                    "Forests fitted with missing='pass' predict rows without a number."
                )

    def raw_matrix(self, data: DataLike) -> Floats:
        """Code new data, whatever values come out."""
        frame = respell_columns(as_frame(data), self.variables)
        self._check_columns(frame)
        plain = frame[list(self.variables)].reset_index(drop=True)
        plain = self._set_trained_levels(plain)
        try:
            return self.info.matrix(plain)[:, self.columns]
        except FormulaError:
            self._check_levels(plain)
            raise

    def _set_trained_levels(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Give categories their levels in training, in that order, if all are known."""
        changed: dict[str, pd.Series] = {}
        trained = self.recipe.frame.dtypes.to_dict()
        for name, kind in frame.dtypes.items():
            known = trained[name]
            if not isinstance(kind, pd.CategoricalDtype):
                continue
            # Categories without an order are equal in any order of the levels.
            if kind == known and list(kind.categories) == list(known.categories):
                continue
            values = frame[name].astype(object)
            if not isinstance(known, pd.CategoricalDtype):
                changed[str(name)] = values  # text, in which levels are found by value
            elif values.dropna().isin(known.categories).all():
                changed[str(name)] = values.astype(known)
        return frame.assign(**changed) if changed else frame

    def usable_rows(self, X: Floats) -> Bools:
        """Rows that a learner can take: finite, or missing where that may pass."""
        good = np.isfinite(X)
        if self.recipe.missing == "pass":
            good |= np.isnan(X)
        return np.asarray(good.all(axis=1))

    def reference(self, name: str) -> Any:
        """Level that others are compared with; None if the predictor is no factor.

        The first level in the order of the coding, or the one that `Treatment(...)`
        names. If a factor enters in several ways, an explicit one counts.
        """
        references = self.info.references
        factors = [
            (references.get(code, 0), code, levels)
            for code, levels in self.info.levels.items()
            if levels and category_name(code) == name
        ]
        factors.sort(key=lambda factor: (factor[0] == 0, factor[1] == name))
        return factors[0][2][factors[0][0]] if factors else None

    def own_columns(self, name: str) -> tuple[int, ...]:
        """Columns of a variable that enters as it is; none where it does otherwise."""
        places: list[int] = []
        for term, place in self.info.slices.items():
            if any(name in columns_in(code) for code in term):
                if len(term) > 1 or category_name(term[0]) != name:
                    return ()
                places += range(place.start, place.stop)
        return tuple(np.flatnonzero(np.isin(self.columns, places)).tolist())

    def _check_columns(self, frame: pd.DataFrame) -> None:
        kinds, trained = frame.dtypes.to_dict(), self.recipe.frame.dtypes.to_dict()
        for name in self.variables:
            if name not in kinds:
                raise FormulaError(
                    f"the new data lack column {name!r}"
                    f"{suggest_name(name, frame.columns)} They must have the columns "
                    f"{list_names(self.variables)}."
                )
            if is_number_kind(trained[name]) and not is_number_kind(kinds[name]):
                text = str(first_non_number(frame[name]))
                raise FormulaError(
                    f"column {name!r} must be numeric, as in the training data; the "
                    f"new data have values such as {text!r}."
                )

    def _check_levels(self, frame: pd.DataFrame) -> None:
        """Name a level that the training data do not have."""
        for code, levels in self.info.levels.items():
            name = category_name(code)
            if levels is None or name not in frame.columns:
                continue
            given = frame[name].dropna()
            for level in given[~given.isin(levels)]:
                # Whole numbers are written without a point, however they came.
                text = f"{level:.15g}" if isinstance(level, float) else str(level)
                raise FormulaError(
                    f"the new data have {text!r} in {name!r}; the training "
                    f"data have {list_names(levels)}. Leave such rows out, or "
                    "give them one of these levels."
                ) from None

    def typical_row(self, frame: pd.DataFrame | Variables) -> pd.DataFrame:
        """One row of medians and, for categories, most frequent levels."""
        variables = as_variables(frame)
        modes = {name: variables.mode(name) for name in self.categorical}
        values: dict[Any, Any] = {**variables.median(self.numeric_variables), **modes}
        kinds = {
            name: kind
            for name, kind in variables.kinds.items()
            if name in self.categorical or kind in (np.float16, np.float32)
        }
        columns = {name: [values[name]] for name in self.variables}
        return pd.DataFrame(columns, index=["typical"]).astype(kinds)

    def ranges(self, frame: pd.DataFrame | Variables) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of every numeric variable."""
        ends = as_variables(frame).extremes(self.numeric_variables)
        return {name: (float(low), float(high)) for name, (low, high) in ends.items()}

    @property
    def numeric_variables(self) -> list[str]:
        """Variables that are numbers."""
        return [name for name in self.variables if name not in self.categorical]


def categorical_variables(
    info: SideInfo, frame: pd.DataFrame, variables: Sequence[str]
) -> frozenset[str]:
    """Variables that are categories: by their kind, or made so by `C(...)`.

    A number inside a condition, as in `I(x > 1)`, stays a number.
    """
    levels = info.levels.items()
    coded = {category_name(code) for code, known in levels if known is not None}
    return frozenset(
        name for name in variables if name in coded or not is_number(frame[name])
    )
