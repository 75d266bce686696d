"""From a formula and data to a parsed formula, and the recipe to do it again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.coding import Coding, categories
from vstatkit.formula.engine import (
    Environment,
    States,
    environment_of,
    restore_states,
)
from vstatkit.formula.expressions import plain_name
from vstatkit.formula.factors import (
    FactorCoding,
    arranged_columns,
    bare_info,
    factors_alone,
    first_rows,
    level_counts,
    recode,
    recoded,
)
from vstatkit.formula.frames import (
    as_frame,
    check_dates,
    check_finite,
    check_infinite,
    listed,
    missing_dates_as_none,
)
from vstatkit.formula.matrices import Missing, build_matrices, check_missing_option
from vstatkit.formula.mistakes import check_mistakes, n_missing
from vstatkit.formula.model import Model, variables
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.formula.plain import INTERCEPT
from vstatkit.formula.portable import pack_names, unpack_names
from vstatkit.formula.reading import read_formula
from vstatkit.formula.response import Dropped, read_response
from vstatkit.pickling import plain_state, take_state


@dataclass(frozen=True)
class Recipe:
    """What is needed to code the same data the same way again.

    Attributes
    ----------
    formula : str
        Its terms one by one: `.`, products and what was taken out are gone.
    frame : DataFrame
        The columns that the formula reads, every row: stateful transforms have
        seen rows that were dropped later.
    intercept : bool
        Whether the intercept column is used.
    missing : {"drop", "raise", "pass"}
        What is done with missing values.
    names : dict
        What the formula names besides columns and functions that every formula may
        use, such as a function of the caller's. Files do not hold it; pickles do.
    factors : FactorCoding
        How factors are coded.
    states : dict
        What stateful transforms have learnt from more rows than the frame has; empty
        where it has all that they saw. Files do not hold it; pickles do.
    columns : tuple of int or None
        Columns of the design matrix that are used, in their order; None for all.
    """

    formula: str
    frame: pd.DataFrame
    intercept: bool
    missing: Missing
    names: dict[str, Any] = field(default_factory=dict)
    factors: FactorCoding = "treatment"
    states: States = field(default_factory=dict)
    columns: tuple[int, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.states:
            self.repeat()  # says now, not later, that it cannot be done
        return plain_state(self.__dict__) | {"names": pack_names(self.names)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        take_state(self, {**state, "names": unpack_names(state["names"])})

    def parsed(self) -> ParsedFormula:
        """Parse again, trusting nobody; the formula may come from a file."""
        return self._parsed(None)

    def rebuild(self) -> Coding:
        """Code again, trusting nobody."""
        if self.states:
            raise FormulaError(
                f"{next(iter(self.states))} was learnt from data that were read batch "
                "after batch, and files do not hold what it has learnt. Put it into a "
                "column of the data, or pickle the results."
            )
        return self.parsed().coding

    def repeat(self) -> Coding:
        """Code again with the names that the formula was read with."""
        coding = self._parsed(environment_of(self.names)).coding
        restore_states(bare_info(coding.info), self.states)
        return coding

    def predictors(self, nobs: int, n_dropped: int) -> pd.DataFrame | None:
        """Return the predictors in the rows that were used.

        Parameters
        ----------
        nobs, n_dropped : int
            Rows of the data that were used, and that were dropped.

        Returns
        -------
        DataFrame or None
            None if the frame does not have all rows, as for data on disk.
        """
        if len(self.frame) != nobs + n_dropped:
            return None
        if n_dropped == 0:
            return self.frame
        frame = self._parsed(environment_of(self.names)).frame
        return frame if len(frame) == nobs else None

    def _parsed(self, environment: Environment | None) -> ParsedFormula:
        return parse(
            self.formula,
            self.frame,
            environment=environment,
            intercept=self.intercept,
            missing=self.missing,
            factors=self.factors,
            fresh=False,
            columns=self.columns,
        )


def parse(
    formula: str,
    data: DataLike,
    *,
    environment: Environment | None,
    intercept: bool,
    missing: Missing = "drop",
    not_in_dot: tuple[str, ...] = (),
    factors: FactorCoding = "treatment",
    fresh: bool = True,
    columns: tuple[int, ...] | None = None,
) -> ParsedFormula:
    """Apply a formula to data.

    Parameters
    ----------
    formula : str
        Any patsy formula with a left- and a right-hand side; `.` stands for all
        columns that the left-hand side does not use.
    data : DataFrame, mapping of columns, polars frame or Arrow table
        Observations in rows.
    environment : Environment or None
        Where names that are not columns are looked up, before numpy's elementwise
        functions (so that `log(x)` works as in R). None trusts nobody: only
        columns, patsy's built-ins and those functions evaluate.
    intercept : bool
        Keep patsy's intercept column. It is built either way, so that factors
        are coded alike.
    missing : {"drop", "raise", "pass"}
        What to do with rows that have missing values. "pass" keeps missing
        predictors and drops rows without a response.
    not_in_dot : tuple of str
        Columns that `.` does not stand for.
    factors : FactorCoding
        How factors are coded; "treatment" leaves the reference level out.
    fresh : bool
        Whether to refuse columns that are probably mistaken; what was accepted once is
        read again.
    columns : tuple of int, optional
        Columns of the design matrix to use, as an earlier parse has chosen them.

    Returns
    -------
    ParsedFormula
    """
    check_missing_option(missing)
    reading = read_formula(formula, as_frame(data), environment, not_in_dot)
    model, frame = reading.model, reading.frame
    right_names = variables(model.right, frame.columns)
    used = list(dict.fromkeys([*right_names, *variables(model.left, frame.columns)]))
    _check_used(model, frame, used)
    if fresh:
        check_mistakes(model, frame, missing, n_missing(frame, used), len(frame))
    plain = missing_dates_as_none(frame.reset_index(drop=True))
    left, right = build_matrices(
        factors_alone(model, factors),
        plain,
        reading.environment,
        missing,
        right_names,
    )
    rows = right.rows
    check_rows(rows.size, len(plain), used)
    dropped = Dropped(len(plain) - rows.size, n_missing(frame, used))
    response = read_response(left, dropped)
    info = recoded(right.info, model, plain, factors)
    right = recode(right, info)
    written = info.column_names
    if columns is None:
        kept = kept_columns(written, intercept, formula)
        kept = arranged_columns(info, kept, first_rows(info, right.values))
    else:
        kept = given_columns(columns, written, intercept)
    X = right.values[:, kept]
    names = tuple(plain_name(written[j]) for j in kept)
    check_finite(X, names, allow_missing=missing == "pass")
    return ParsedFormula(
        y=response.y,
        X=X,
        names=names,
        response=plain_name(formula.partition("~")[0].strip()),
        classes=response.classes,
        unused_levels=response.unused_levels,
        rows=rows,
        n_dropped=dropped.n_rows,
        frame=frame.iloc[rows][right_names],
        data=frame.iloc[rows],
        coding=Coding(
            info=info,
            columns=kept,
            variables=tuple(right_names),
            categorical=categories(info, frame, right_names),
            recipe=Recipe(
                model.written(),
                plain[used],
                intercept,
                missing,
                reading.names(),
                factors,
                columns=tuple(kept.tolist()),
            ),
        ),
        levels=level_counts(info)[kept],
    )


def _check_used(model: Model, frame: pd.DataFrame, used: Sequence[str]) -> None:
    """Refuse infinite values, and dates that stand by themselves."""
    check_infinite(frame, used)
    bare = set(model.columns.values())
    check_dates(frame, [name for name in used if name in bare])


def check_rows(n_kept: int, n_rows: int, used: Sequence[str]) -> None:
    """Refuse data of which no row is left."""
    if n_kept == 0:
        raise FormulaError(
            f"all {n_rows} rows have missing values in the columns of the formula "
            f"({listed(used)}). Fill them in, or leave such columns out."
        )


def given_columns(
    columns: Sequence[int], written: Sequence[str], intercept: bool
) -> Ints:
    """Check the columns that an earlier parse has chosen."""
    inside = all(0 <= one < len(written) for one in columns)
    if not (columns and inside and len(set(columns)) == len(columns)):
        raise FormulaError(
            f"the columns that are used must be distinct places among {len(written)}."
        )
    constant = INTERCEPT in {written[one] for one in columns}
    if constant != (intercept and INTERCEPT in written):
        raise FormulaError("the columns that are used disagree about the intercept.")
    return np.array(columns, dtype=np.int64)


def kept_columns(written: Sequence[str], intercept: bool, formula: str) -> Ints:
    """Positions of the columns that are used: all, or all but the intercept."""
    kept = [j for j, name in enumerate(written) if intercept or name != INTERCEPT]
    if not kept:
        raise FormulaError(
            f"the formula {formula!r} has no predictors on its right-hand side. "
            "Name at least one, or use `.` for all columns."
        )
    return np.array(kept)
