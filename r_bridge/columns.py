"""Columns for R's forests, from a formula."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.convert import to_r_frame
from r_bridge.formula import translate_formula
from r_bridge.objects import RObject
from vstatkit._typing import DataLike, Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_checks import is_number
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.names_in_code import bare_name
from vstatkit.formula.parse import ParsedFormula, parse

# Code new data with the factor levels of the training data. ranger and randomForest
# code a factor by the levels that the new data happen to have, and would silently
# predict another category.
_ALIGN = """
function(new, train) {
  for (name in intersect(names(new), names(train))) {
    known <- train[[name]]
    if (is.character(known)) known <- factor(known)
    if (!is.factor(known)) next
    given <- as.character(new[[name]])
    strange <- setdiff(given, c(levels(known), NA))
    if (length(strange)) {
      stop("column '", name, "' of `newdata` has levels that the training data lack: ",
           paste(strange, collapse = ", "))
    }
    new[[name]] <- factor(given, levels = levels(known), ordered = is.ordered(known))
  }
  new
}
"""

POINTS = 20  # query points where none are given: ranger calibrates above 20


Kind = Literal["numeric", "logical", "a date", "category"]


@dataclass(frozen=True)
class ForestData:
    """Training data and query points as columns."""

    parsed: ParsedFormula  # the formula applied to the training data
    # Predictors of the training data, rows with missing values left out
    x: pd.DataFrame
    new: pd.DataFrame  # predictors of the query points

    @property
    def response(self) -> pd.Series:
        """Numbers, or classes as a category."""
        y, classes = self.parsed.y, self.parsed.classes
        if classes is None:
            return pd.Series(y)
        levels = pd.Index([str(one) for one in classes])
        return pd.Series(pd.Categorical.from_codes(y.astype(np.int64), levels))


def read_columns(
    formula: str,
    data: DataLike,
    newdata: DataLike | None,
    *,
    not_in_dot: tuple[str, ...] = (),
    missing: Missing = "drop",
) -> ForestData:
    """Apply a formula of plain columns to the data and to the query points.

    The right-hand side names columns, or is `.`, without the columns `not_in_dot`.
    Query points are by default the first rows of the training data. Rows with missing
    values are dropped, or kept if their response is known ("pass").
    """
    parsed = parse(
        translate_formula(formula),
        data,
        environment=None,
        intercept=False,
        not_in_dot=not_in_dot,
        missing=missing,
    )
    check_plain(parsed)
    points = parsed.frame.head(POINTS) if newdata is None else as_query(newdata)
    parsed.coding.matrix(points)  # says what is wrong with the new data
    names = list(parsed.coding.variables)
    x = parsed.frame[names]
    kinds = {name: "category" for name in names if not is_number(x[name])}
    x = x.astype(kinds)
    new = points[names].astype({name: x[name].dtype for name in kinds})
    return ForestData(parsed, x, new)


def check_plain(parsed: ParsedFormula) -> None:
    """Raise an error for terms that are not plain columns."""
    for codes in parsed.coding.info.slices:
        if len(codes) > 1 or any(bare_name(code) is None for code in codes):
            raise FormulaError(
                f"formulas for R's forests must have plain columns; got "
                f"{':'.join(codes)!r}. Add it to the data as a column."
            )


def as_query(newdata: DataLike) -> pd.DataFrame:
    """Read query points; there must be at least one."""
    columns = newdata.values() if isinstance(newdata, Mapping) else ()
    frame = isinstance(newdata, pd.DataFrame)
    if (frame and len(newdata) == 0) or any(np.size(one) == 0 for one in columns):
        raise ValueError("`newdata` must have at least one row; it has none.")
    return as_frame(newdata)


def options_of_r(given: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, Any]:
    """Write option names with R's dots; reject those that are separate arguments."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    for name in named:
        if name in own:
            raise TypeError(
                f"R's option {name!r} is set by the argument `{own[name]}`."
            )
    return named


# R's whole numbers have 32 bits, and ranger's seed is one more than ours
LARGEST_SEED = 2**31 - 2


def seed_of_r(rng: Any) -> int:
    """Check that a seed is a whole number in R's range."""
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(
            f"`rng` must be a whole number, the seed here and in R; got {rng!r}."
        )
    if not 0 <= rng <= LARGEST_SEED:
        raise ValueError(
            f"`rng` must be from 0 to {LARGEST_SEED}, since R takes it too; got {rng}."
        )
    return int(rng)


def aligned_frame(newdata: pd.DataFrame, train: RObject) -> RObject:
    """Convert query points to an R data frame, with the training levels."""
    return session.keep(_ALIGN, to_r_frame(newdata), train)


def kind_of(column: pd.Series) -> Kind:
    """Return the type of a column for R's forests; text is a category."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if is_number(column):
        return "numeric"
    if pd.api.types.is_bool_dtype(column.dtype):
        return "logical"
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "a date"
    return "category"


def check_kinds(points: pd.DataFrame, kinds: Mapping[str, Kind]) -> None:
    """Raise an error if columns of query points have other types than in training.

    R's forests would take the codes of text or categories for numbers. Where the
    training data have categories, the levels are compared in R.
    """
    for name, expected in kinds.items():
        given = kind_of(points[name])
        if expected not in ("category", given):
            raise ValueError(
                f"column {name!r} must be {expected}, as in the training data; the new "
                f"data have {points[name].dtype}."
            )


def matrix(x: pd.DataFrame) -> Floats:
    """Convert columns to a numeric matrix, for forests that need one."""
    wrong = [name for name in x.columns if not is_number(x[name])]
    if wrong:
        raise FormulaError(
            f"grf takes numbers only; column {wrong[0]!r} is {x[wrong[0]].dtype}. "
            "Code it as numbers, for example by pandas.get_dummies."
        )
    return x.to_numpy(dtype=np.float64)
