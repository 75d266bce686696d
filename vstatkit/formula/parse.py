"""From a formula and data to a parsed formula, and the recipe to do it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, DataLike, Floats, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula import column_checks, design_matrix, factor_coding
from vstatkit.formula.data_frames import as_frame, replace_missing_dates
from vstatkit.formula.data_warnings import warn_of_texts
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.factor_coding import FactorCoding
from vstatkit.formula.formula_text import plain_name, quote
from vstatkit.formula.formula_to_terms import ResolvedFormula, read_formula
from vstatkit.formula.new_data_coding import Coding, categorical_variables
from vstatkit.formula.patsy_engine import (
    Environment,
    Matrix,
    SideInfo,
    States,
    environment_of,
    pack_names,
    restore_states,
    unpack_names,
)
from vstatkit.formula.plain_columns import INTERCEPT
from vstatkit.formula.terms import variables
from vstatkit.pandas_pickling import plain_state, take_state
from vstatkit.text import list_names


@dataclass(frozen=True)
class ParsedFormula:
    """A formula applied to data."""

    y: Floats  # (n,): response, or class codes
    X: Floats  # (n, p): design matrix
    names: tuple[str, ...]  # its columns
    response: str  # left-hand side as written
    # Levels of a categorical response, those that occur
    classes: tuple[Any, ...] | None
    unused_levels: tuple[Any, ...]  # levels of the response that no row has
    # (n,) or RangeIndex: positions in the data of the rows kept
    rows: Ints | pd.RangeIndex
    n_dropped: int  # rows dropped for missing values
    # The variables of the right-hand side, rows kept, in the data's own index; or what
    # is known of them where they are not held
    frame: Any
    # All columns of the data, rows kept; on disk, the columns that the formula reads
    data: Any
    coding: Coding  # codes new data as the training data was
    # (p,): number of levels of every column that is a factor in codes 0, 1, ...; 0 for
    # columns of numbers, which all are unless whole factors were asked for
    levels: Ints

    @cached_property
    def typical_row(self) -> pd.DataFrame:
        """The typical row: medians, and the most frequent levels."""
        return self.coding.typical_row(self.frame)


@dataclass(frozen=True)
class Recipe:
    """What is needed to code the same data the same way again."""

    formula: str  # its terms one by one: `.`, products and what was taken out are gone
    # The columns that the formula reads, every row: stateful transforms have seen rows
    # that were dropped later
    frame: pd.DataFrame
    intercept: bool  # whether the intercept column is used
    missing: Missing  # what is done with missing values
    # What the formula names besides columns and functions that every formula may use,
    # such as a function of the caller's. Files do not hold it; pickles do.
    names: dict[str, Any] = field(default_factory=dict)
    factors: FactorCoding = "treatment"  # how factors are coded
    # What stateful transforms have learnt from more rows than the frame has; empty
    # where it has all that they saw. Files do not hold it; pickles do.
    states: States = field(default_factory=dict)
    # Columns of the design matrix that are used, in their order; None for all
    columns: tuple[int, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.states:
            self.repeat()  # says now, not later, that it cannot be done
        return plain_state(self.__dict__) | {"names": pack_names(self.names)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        take_state(self, {**state, "names": unpack_names(state["names"])})

    def parse_again(self) -> ParsedFormula:
        """Parse again, trusting nobody; the formula may come from a file."""
        return self._parse(None)

    def rebuild(self) -> Coding:
        """Code again, trusting nobody."""
        if self.states:
            raise FormulaError(
                f"{next(iter(self.states))} was learnt from data that were read batch "
                "after batch, and files do not hold what it has learnt. Put it into a "
                "column of the data, or pickle the results."
            )
        return self.parse_again().coding

    def repeat(self) -> Coding:
        """Code again with the names that the formula was read with."""
        coding = self._parse(environment_of(self.names)).coding
        restore_states(factor_coding.bare_info(coding.info), self.states)
        return coding

    def predictors(self, nobs: int, n_dropped: int) -> pd.DataFrame | None:
        """Return the predictors in the rows that were used; None for data on disk."""
        if len(self.frame) != nobs + n_dropped:
            return None
        if n_dropped == 0:
            return self.frame
        frame = self._parse(environment_of(self.names)).frame
        return frame if len(frame) == nobs else None

    def _parse(self, environment: Environment | None) -> ParsedFormula:
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
    """Apply a formula, with both sides, to observations in rows.

    `.` stands for all columns that neither the left-hand side uses nor `not_in_dot`
    has. Names that are not columns are looked up in the environment, before numpy's
    elementwise functions (so that `log(x)` works as in R). None trusts nobody: only
    columns, patsy's built-ins and those functions evaluate. The intercept column is
    built either way, so that factors are coded alike; `intercept` keeps it.
    `missing="pass"` keeps missing predictors and drops rows without a response.

    Columns that are probably mistaken are refused if `fresh`; what was accepted once is
    read again. `columns` of the design matrix are those that an earlier parse chose.
    """
    design_matrix.check_missing_option(missing)
    reading = read_formula(formula, as_frame(data), environment, not_in_dot)
    model, frame = reading.model, reading.frame
    used = variables(model.right + model.left, frame.columns)
    column_checks.check_infinite(frame, used)
    column_checks.check_dates(model, frame)
    n_missing = dict(zip(used, frame[used].isna().sum().tolist(), strict=True))
    if fresh:
        n = len(frame)
        sides = column_checks.check_mistakes(model, frame, missing, n_missing, n)
        warn_of_texts(frame, *sides, n)
    plain = replace_missing_dates(frame.reset_index(drop=True))
    left, right = design_matrix.build_matrices(
        factor_coding.separate_factors(model, factors),
        plain,
        reading.environment,
        missing,
        variables(model.right, frame.columns),
    )
    rows = right.rows
    check_rows(rows.size, len(plain), used)
    response = read_response(left, len(plain) - rows.size, n_missing)
    info = factor_coding.recode_info(right.info, model, plain, factors)
    right = factor_coding.recode_matrix(right, info)
    if columns is None:
        first = factor_coding.first_rows(info, right.values)
        places = choose_columns(info, first, intercept, formula)
    else:
        places = check_column_places(columns, info.column_names, intercept)
    parsed = assemble_parsed(
        formula,
        reading,
        response,
        info=info,
        columns=places,
        examples=plain[used],
        X=right.values[:, places],
        rows=rows,
        n_rows=len(plain),
        data=frame.iloc[rows],
        intercept=intercept,
        missing=missing,
        factors=factors,
    )
    column_checks.check_finite(parsed.X, parsed.names, allow_missing=missing == "pass")
    return parsed


def assemble_parsed(
    formula: str,
    reading: ResolvedFormula,
    response: "Response",
    *,
    info: SideInfo,
    columns: Ints,
    examples: pd.DataFrame,
    X: Floats,
    rows: Ints | pd.RangeIndex,
    n_rows: int,
    data: Any,
    **recipe: Any,
) -> ParsedFormula:
    """Build a `ParsedFormula`; `examples` is the frame of the recipe."""
    names = variables(reading.model.right, reading.frame.columns)
    coding = Coding(
        info=info,
        columns=columns,
        variables=tuple(names),
        categorical=categorical_variables(info, reading.frame, names),
        recipe=Recipe(
            reading.model.write(),
            examples,
            names=reading.names(),
            columns=tuple(columns.tolist()),
            **recipe,
        ),
    )
    return ParsedFormula(
        **vars(response),
        X=X,
        names=tuple(coding.names),
        response=plain_name(formula.partition("~")[0].strip()),
        rows=rows,
        n_dropped=n_rows - rows.size,
        frame=data[names],
        data=data,
        coding=coding,
        levels=factor_coding.level_counts(info)[columns],
    )


@dataclass(frozen=True)
class Response:
    """What the left-hand side of a formula gives; see `ParsedFormula`."""

    y: Floats
    classes: tuple[Any, ...] | None
    unused_levels: tuple[Any, ...]


def read_response(
    left: Matrix, n_dropped: int, n_missing: Mapping[str, int]
) -> Response:
    """Read the response: numbers, or codes of the levels that occur."""
    values, levels = response_values(left)
    if levels is None:
        return Response(values, None, ())
    places = values.astype(np.int64)
    occurs = np.bincount(places, minlength=len(levels)) > 0
    classes, unused = split_levels(levels, occurs, n_dropped, n_missing)
    return Response(class_codes(occurs)[places], classes, unused)


def response_values(
    left: Matrix, first: int = 0
) -> tuple[Floats, tuple[Any, ...] | None]:
    """Read numbers, or the place of every row's level; messages count from `first`."""
    levels, names = response_levels(left.info), left.info.column_names
    if levels is not None:
        indicators = left.values
        plain = indicators.shape[1] == len(levels) and np.isin(indicators, (0, 1)).all()
        if not plain or not (indicators.sum(axis=1) == 1).all():
            raise FormulaError(
                "a categorical response takes no contrast: write C(y), or y, on the "
                "left-hand side."
            )
        return np.asarray(indicators.argmax(axis=1), dtype=np.float64), levels
    if len(names) != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(names)}."
        )
    column_checks.check_finite(left.values, names, first=first)
    return left.values[:, 0], None


def response_levels(info: SideInfo) -> tuple[Any, ...] | None:
    """List all levels of the response; None for numbers."""
    factors = list(info.levels.values())
    return factors[0] if len(factors) == 1 else None


def split_levels(
    levels: tuple[Any, ...], occurs: Bools, n_dropped: int, n_missing: Mapping[str, int]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """List the levels that occur, and those that do not; refuse fewer than two."""
    classes = tuple(compress(levels, occurs))
    if len(classes) >= 2:
        return classes, tuple(compress(levels, ~occurs))
    names = [repr(name) for name, count in n_missing.items() if count]
    dropping = (
        f" after dropping {n_dropped:,} rows with missing values (in "
        f"{list_names(names)}). Leave such columns out of the formula, fill them in, "
        "or use missing='pass', with which trees keep missing numbers"
    )
    raise FormulaError(
        "a categorical response needs at least two levels; got "
        f"{classes!r}{dropping if n_dropped and names else ''}."
    )


def class_codes(occurs: Bools) -> Floats:
    """Give the code of every level, by its place among all levels."""
    return (np.cumsum(occurs) - 1).astype(np.float64)


def check_rows(n_kept: int, n_rows: int, used: Sequence[str]) -> None:
    """Refuse data of which no row is left."""
    if n_kept == 0:
        raise FormulaError(
            f"all {n_rows} rows have missing values in the columns of the formula "
            f"({list_names(used)}). Fill them in, or leave such columns out."
        )


def check_column_places(
    columns: Sequence[int], written: Sequence[str], intercept: bool
) -> Ints:
    """Check the columns that an earlier parse has chosen."""
    inside = all(0 <= place < len(written) for place in columns)
    if not (columns and inside and len(set(columns)) == len(columns)):
        raise FormulaError(
            f"the columns that are used must be distinct places among {len(written)}."
        )
    constant = INTERCEPT in {written[place] for place in columns}
    if constant != (intercept and INTERCEPT in written):
        raise FormulaError("the columns that are used disagree about the intercept.")
    return np.array(columns, dtype=np.int64)


def choose_columns(info: SideInfo, first: Ints, intercept: bool, formula: str) -> Ints:
    """Choose and order the columns that are used; see `arrange_columns` for `first`."""
    written = enumerate(info.column_names)
    places = [j for j, name in written if intercept or name != INTERCEPT]
    if not places:
        raise FormulaError(
            f"the formula {formula!r} has no predictors on its right-hand side. "
            "Name at least one, or use `.` for all columns."
        )
    return factor_coding.arrange_columns(info, np.array(places), first)


def parse_table(
    features: pd.DataFrame,
    y: Floats,
    *,
    response: str,
    classes: Sequence[Any] | None = None,
) -> ParsedFormula:
    """Read features and a response as `response ~ .` does, columns in their order.

    Categories stay in one column of codes, and missing values stay. `y` holds numbers,
    or codes of `classes`. The name of the response is changed if a feature has it.
    """
    while response in features.columns:
        response += "_"
    parsed = parse(
        f"{quote(response)} ~ .",
        features.assign(**{response: np.asarray(y, dtype=np.float64)}),
        environment=None,
        intercept=False,
        missing="pass",
        factors="whole",
    )
    places = {name: j for j, name in enumerate(map(plain_name, parsed.names))}
    wanted = [places.get(name) for name in features.columns]
    if None in wanted or len(wanted) != len(places):
        raise FormulaError(
            "a factor of one level, or of more than 64, has no column of codes. Leave "
            "it out, or join rare levels."
        )
    order = np.array(wanted, dtype=np.int64)
    columns = parsed.coding.columns[order]
    recipe = replace(parsed.coding.recipe, columns=tuple(columns.tolist()))
    coding = replace(parsed.coding, columns=columns, recipe=recipe)
    return replace(
        parsed,
        X=parsed.X[:, order],
        names=tuple(parsed.names[j] for j in order),
        levels=parsed.levels[order],
        coding=coding,
        classes=None if classes is None else tuple(classes),
        response=response,
    )


def check_order(formula: Any, data: Any) -> None:
    """Refuse X and y, or data and formula, in the place of formula and data."""
    if isinstance(formula, str):
        return
    kind = type(formula).__name__
    if isinstance(data, str) and "~" in data:
        raise TypeError(
            f"the formula comes first, then the data: fit({data!r}, data); got a "
            f"{kind} first."
        )
    tables = (list, np.ndarray, pd.DataFrame, pd.Series)
    if isinstance(formula, tables) and isinstance(data, tables):
        named = isinstance(formula, pd.DataFrame) or isinstance(data, pd.DataFrame)
        frame = "X" if named else "pd.DataFrame(X).add_prefix('x')"
        raise TypeError(
            "`fit` takes a formula and a table of data, as in fit('y ~ x1 + x2', "
            f"data); got {kind} and {type(data).__name__}. With predictors X and a "
            f"response y write fit('y ~ .', {frame}.assign(y=y)), or use "
            "ForestRegressor().fit(X, y)."
        )


def response_name(parsed: ParsedFormula) -> str:
    """Name what is estimated: the response, or the probability of its class."""
    if parsed.classes is None or len(parsed.classes) != 2:
        return parsed.response
    return f"P({parsed.response} = {parsed.classes[1]})"


def read_observations(data: Any) -> tuple[Any, pd.Index]:
    """Read the data of a statistic: observations in rows, and their labels."""
    if not isinstance(data, pd.DataFrame | pd.Series):
        named = isinstance(data, Mapping) or hasattr(data, "get_columns")
        data = as_frame(data) if named else np.asarray(data)
    if data.ndim not in (1, 2):
        raise ValueError(
            "`data` must have observations in rows: one or two dimensions; got "
            f"{data.ndim}."
        )
    frame = isinstance(data, pd.DataFrame)
    array = np.asarray(data.select_dtypes("number") if frame else data)
    if np.issubdtype(array.dtype, np.number) and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(
            f"`data` must be finite; row {row} is missing or infinite. Drop such rows."
        )
    labelled = frame or isinstance(data, pd.Series)
    return data, data.index if labelled else pd.RangeIndex(len(data))
