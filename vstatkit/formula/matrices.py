"""Design matrices of training data; rows with missing values dropped or kept."""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import Environment, Matrix, learn, rows_with_response
from vstatkit.formula.model import Model

Missing = Literal["drop", "raise", "pass"]
"""What is done with missing values."""


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
        _check_missing_categories(frame, variables)
        kept = frame.loc[rows_with_response(model, frame, environment)]
        return learn(model, kept, environment, missing="keep")
    if missing == "raise":
        hint = "\nUse missing='drop' to leave rows with missing values out."
        return learn(model, frame, environment, missing="raise", hint=hint)
    complete = frame.dropna(subset=model.stateful(frame.columns))
    frame = complete if len(complete) else frame
    return learn(model, frame, environment, missing="drop")


def _check_missing_categories(frame: pd.DataFrame, variables: Sequence[str]) -> None:
    for name in variables:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column.dtype) and column.isna().any():
            raise FormulaError(
                f"`missing='pass'` keeps missing numbers only; {name!r} is not numeric "
                "and has missing values. Make missing a level of its own, or drop."
            )
