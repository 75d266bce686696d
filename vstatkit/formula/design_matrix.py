"""Design matrices of training data; rows with missing values dropped or kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.patsy_engine import (
    Environment,
    Matrix,
    OnMissing,
    SideInfo,
    code_rows,
    learn_batches,
)
from vstatkit.formula.plain_columns import PlainInfo, plain_info
from vstatkit.formula.terms import Codes, Model

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
