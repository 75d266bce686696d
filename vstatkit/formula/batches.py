"""Learn and code both sides of a formula batch after batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import (
    Environment,
    Learnt,
    Matrix,
    OnMissing,
    code_rows,
    learn_batches,
    level_places,
)
from vstatkit.formula.matrices import (
    HINT,
    Missing,
    check_missing_categories,
    common_rows,
    plain_matrix,
)
from vstatkit.formula.model import Model
from vstatkit.formula.plain import PlainInfo, plain_info
from vstatkit.formula.terms import Codes

Batches = Callable[[], Iterator[pd.DataFrame]]
"""Reads the data from the beginning."""


Level = tuple[int, str, int]
"""A level of a factor: number of the side, code of the factor, place of the level."""


@dataclass(frozen=True)
class Sides:
    """Both sides of a formula, learnt from batches.

    Attributes
    ----------
    left, right : Learnt
        What was learnt about each.
    missing : {"drop", "raise", "pass"}
        What is done with missing values.
    stateful : list of str
        Columns that stateful transforms read.
    variables : sequence of str
        Columns that the right-hand side reads.
    """

    left: Learnt
    right: Learnt
    missing: Missing
    stateful: list[str]
    variables: Sequence[str]

    def learnt(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Take the rows of a batch that the engine learns from."""
        if self.missing == "pass":
            return batch.loc[_code(self.left, batch, "drop").rows]
        return learnt_rows(batch, self.stateful)

    def coded(self, batch: pd.DataFrame) -> tuple[Matrix, Matrix]:
        """Code a batch as `build_matrices` would code it within all the data."""
        if self.missing == "pass":
            check_missing_categories(batch, self.variables)
            left = _code(self.left, batch, "drop")
            kept = batch if len(left.rows) == len(batch) else batch.loc[left.rows]
            return left, _code(self.right, kept, "keep")
        batch = learnt_rows(batch, self.stateful)
        how: OnMissing = "raise" if self.missing == "raise" else "drop"
        left, right = (_code(one, batch, how) for one in (self.left, self.right))
        if len(left.rows) == len(right.rows) == len(batch):
            return left, right
        return common_rows(left, right)


def learn_sides(
    model: Model,
    rows: pd.DataFrame,
    batches: Batches,
    *,
    environment: Environment,
    missing: Missing,
    variables: Sequence[str],
) -> Sides:
    """Learn both sides; the data are not read where all columns are plain.

    Parameters
    ----------
    model : Model
        Terms of the formula.
    rows : DataFrame
        Rows that have the kind of every column, and all levels of those that are
        not numbers.
    batches : callable
        Reads the data from the beginning.
    environment : Environment
        Where names that are not columns are looked up.
    missing : {"drop", "raise", "pass"}
        What to do with missing values.
    variables : sequence of str
        Columns that the right-hand side reads.
    """
    stateful = [] if missing != "drop" else model.stateful(rows.columns)
    how: OnMissing = "raise" if missing == "raise" else "drop"

    def side(terms: Sequence[Codes], read: Batches, how: OnMissing) -> Learnt:
        plain = plain_info(model, terms, rows)
        if plain is not None:
            return plain
        hint = HINT if how == "raise" else ""
        return learn_batches(model, terms, read, environment, missing=how, hint=hint)

    def complete() -> Iterator[pd.DataFrame]:
        return filled(learnt_rows(batch, stateful) for batch in batches())

    left = side(model.left, complete, how)
    if missing != "pass":
        return Sides(
            left, side(model.right, complete, how), missing, stateful, variables
        )

    def with_response() -> Iterator[pd.DataFrame]:
        return filled(batch.loc[_code(left, batch, "drop").rows] for batch in batches())

    right = side(model.right, with_response, "keep")
    return Sides(left, right, missing, stateful, variables)


def learnt_rows(batch: pd.DataFrame, stateful: list[str]) -> pd.DataFrame:
    """Leave out rows that lack what a stateful transform reads."""
    return batch.dropna(subset=stateful) if stateful else batch


def filled(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Leave out batches without rows.

    Raises
    ------
    FormulaError
        When there are no others.
    """
    some = False
    for batch in batches:
        if len(batch):
            some = True
            yield batch
    if not some:
        raise FormulaError(
            "all rows have missing values in the columns of the formula. Fill them in, "
            "or leave such columns out."
        )


def _code(info: Learnt, batch: pd.DataFrame, missing: OnMissing) -> Matrix:
    """Code one side, without the engine where the columns are plain."""
    if len(batch) == 0:
        empty = np.empty((0, len(info.column_names)))
        return Matrix(empty, batch.index.to_numpy(), info)
    engines = info
    if isinstance(info, PlainInfo):
        found = plain_matrix(info, batch, missing)
        if found is not None:
            return found
        engines = info.engines()
    hint = HINT if missing == "raise" else ""
    coded = code_rows(engines, batch, missing, hint)
    return Matrix(coded.values, coded.rows, info)


def has_levels(*sides: Learnt) -> bool:
    """Whether the engine has learnt levels, which few rows need not show."""
    return any(
        levels is not None
        for info in sides
        if not isinstance(info, PlainInfo)
        for levels in info.levels.values()
    )


def first_levels(sides: Sequence[Learnt], batch: pd.DataFrame) -> dict[Level, int]:
    """Find the first row, by its label, of every level that the engine has learnt."""
    found: dict[Level, int] = {}
    if len(batch) == 0:
        return found
    labels = batch.index.to_numpy()
    for number, info in enumerate(sides):
        for code, places in level_places(info, batch).items():
            levels, firsts = np.unique(places, return_index=True)
            for level, row in zip(levels.tolist(), labels[firsts], strict=True):
                if level >= 0:
                    found[number, code, level] = int(row)
    return found
