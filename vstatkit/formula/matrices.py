"""Design matrices of training data; rows with missing values dropped or kept."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import Environment, Matrix, OnMissing, learn, learn_side
from vstatkit.formula.model import Model
from vstatkit.formula.plain import PlainInfo, evaluate, plain_info
from vstatkit.formula.terms import Codes

Missing = Literal["drop", "raise", "pass"]
"""What is done with missing values."""

HINT = "\nUse missing='drop' to leave rows with missing values out."
"""What to do where missing values are refused."""


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
        kept = frame if len(left.rows) == len(frame) else frame.loc[left.rows]
        return _learn_both(model, kept, environment, "keep")
    if missing == "raise":
        return _learn_both(model, frame, environment, "raise", HINT)
    stateful = model.stateful(frame.columns)
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
    return left.at(rows), right.at(rows)


def _learn_left(
    model: Model,
    frame: pd.DataFrame,
    environment: Environment,
    missing: OnMissing,
    hint: str = "",
) -> Matrix:
    found = _learn_plain(model, model.left, frame, missing)
    if found is not None:
        return found
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
    absent = values.gaps() if missing == "keep" else values.missing()
    if absent.any() and missing != "drop":
        return None  # the engine says what is missing
    return Matrix(values.filled(~absent), frame.index.to_numpy()[~absent], info)


def check_missing_categories(frame: pd.DataFrame, variables: Sequence[str]) -> None:
    """Refuse missing values of categories where they are to be kept."""
    for name in variables:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column.dtype) and column.isna().any():
            raise FormulaError(
                f"`missing='pass'` keeps missing numbers only; {name!r} is not numeric "
                "and has missing values. Make missing a level of its own, or drop."
            )
