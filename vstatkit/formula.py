"""From a formula and data to design matrices; the only importer of patsy."""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import patsy

from vstatkit._typing import DataLike, Floats, Ints, Restrictions
from vstatkit.exceptions import FormulaError
from vstatkit.expressions import (
    PATSY_BUILTINS,
    SAFE_FUNCTIONS,
    check_trusted,
    expand_dot,
    is_quoted,
    names_in,
    names_of,
    plain_name,
)
from vstatkit.frames import as_frame, check_finite, check_infinite, nearest

Missing = Literal["drop", "raise", "pass"]


@dataclass(frozen=True)
class Design:
    """A formula applied to data.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Response, or class codes.
    X : ndarray of shape (n, p)
        Design matrix.
    names : tuple of str
        Its columns.
    response : str
        Left-hand side as written.
    classes : tuple or None
        Levels of a categorical response.
    rows : ndarray of shape (n,)
        Positions in the data of the rows kept.
    n_dropped : int
        Rows dropped for missing values.
    frame : DataFrame
        The variables of the right-hand side, rows kept, in the data's own index.
    data : DataFrame
        All columns of the data, rows kept.
    coding : Coding
        Codes new data as the training data was.
    """

    y: Floats
    X: Floats
    names: tuple[str, ...]
    response: str
    classes: tuple[Any, ...] | None
    rows: Ints
    n_dropped: int
    frame: pd.DataFrame
    data: pd.DataFrame
    coding: "Coding"


@dataclass(frozen=True)
class Recipe:
    """What is needed to code the same data the same way again.

    Attributes
    ----------
    formula : str
        With `.` expanded.
    frame : DataFrame
        The columns that the formula reads, every row: stateful transforms have
        seen rows that were dropped later.
    intercept : bool
        Whether patsy's intercept column is used.
    missing : {"drop", "raise", "pass"}
        What is done with missing values.
    """

    formula: str
    frame: pd.DataFrame
    intercept: bool
    missing: Missing

    def rebuild(self) -> "Coding":
        """Code again, trusting nobody; the formula may come from a file."""
        return parse(
            self.formula,
            self.frame,
            environment=None,
            intercept=self.intercept,
            missing=self.missing,
        ).coding


@dataclass(frozen=True)
class Coding:
    """How the right-hand side was coded.

    Attributes
    ----------
    info : patsy.DesignInfo
        Levels and states of stateful transforms. It cannot be pickled.
    columns : ndarray
        Which of patsy's columns are used.
    variables : tuple of str
        Columns of the data that the right-hand side reads.
    categorical : frozenset of str
        Those that enter as categories.
    recipe : Recipe
        How to build it again.
    """

    info: patsy.DesignInfo
    columns: Ints
    variables: tuple[str, ...]
    categorical: frozenset[str]
    recipe: Recipe

    def matrix(self, data: DataLike) -> Floats:
        """Code new data exactly as the training data was."""
        frame = as_frame(data)
        for name in self.variables:
            if name not in frame.columns:
                raise FormulaError(
                    f"the new data lack column {name!r}{nearest(name, frame.columns)} "
                    f"They must have the columns {', '.join(self.variables)}."
                )
        plain = frame[list(self.variables)].reset_index(drop=True)
        action = patsy.NAAction(on_NA="raise", NA_types=[])
        try:
            (matrix,) = patsy.build_design_matrices(
                [self.info], plain, NA_action=action, return_type="matrix"
            )
        except patsy.PatsyError as error:
            raise FormulaError(f"the new data cannot be coded: {error}") from error
        X = np.asarray(matrix, dtype=np.float64)
        if len(X) != len(plain):  # a constant right-hand side
            X = np.repeat(X, len(plain), axis=0)
        X = X[:, self.columns]
        names = [self.info.column_names[j] for j in self.columns]
        check_finite(X, names, allow_missing=self.recipe.missing == "pass")
        return X

    def typical(self, frame: pd.DataFrame) -> pd.DataFrame:
        """One row of medians and, for categories, most frequent levels."""
        return pd.DataFrame(
            {name: [self._typical_value(frame[name], name)] for name in self.variables},
            index=["typical"],
        ).astype({name: frame[name].dtype for name in self.categorical})

    def ranges(self, frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of every numeric variable."""
        numeric = [name for name in self.variables if name not in self.categorical]
        return {
            name: (float(frame[name].min()), float(frame[name].max()))
            for name in numeric
        }

    def _typical_value(self, column: pd.Series, name: str) -> Any:
        if name in self.categorical:
            return column.mode().iloc[0]
        return column.median()


def caller_environment(depth: int) -> patsy.EvalEnvironment:
    """Capture the names visible `depth` calls up; 1 is the caller's caller."""
    return patsy.EvalEnvironment.capture(depth + 1)


def parse(
    formula: str,
    data: DataLike,
    *,
    environment: patsy.EvalEnvironment | None,
    intercept: bool,
    missing: Missing = "drop",
) -> Design:
    """Apply a formula to data.

    Parameters
    ----------
    formula : str
        Any patsy formula with a left- and a right-hand side; `.` stands for all
        columns that the left-hand side does not use.
    data : DataFrame, mapping of columns, polars frame or Arrow table
        Observations in rows.
    environment : EvalEnvironment or None
        Where names that are not columns are looked up. None trusts nobody: only
        columns, patsy's built-ins and numpy's elementwise functions evaluate.
    intercept : bool
        Keep patsy's intercept column. It is built either way, so that factors
        are coded alike.
    missing : {"drop", "raise", "pass"}
        What to do with rows that have missing values. "pass" keeps missing
        predictors and drops rows without a response.

    Returns
    -------
    Design
    """
    if missing not in ("drop", "raise", "pass"):
        raise ValueError(
            f"`missing` must be 'drop', 'raise' or 'pass'; got {missing!r}."
        )
    frame = as_frame(data)
    text = expand_dot(formula, list(frame.columns))
    description = _describe(text)
    trusted = environment is not None
    environment = environment if trusted else restricted_environment()
    _check_names(description, frame.columns, environment)
    if not trusted:
        check_trusted(_all_codes(description), frame.columns)
    plain = frame.reset_index(drop=True)
    variables = _variables(description.rhs_termlist, frame.columns)
    used = [*variables, *_variables(description.lhs_termlist, frame.columns)]
    check_infinite(plain, used)
    complete = plain.dropna(subset=_stateful(description, frame.columns))
    clean = complete if missing == "drop" and len(complete) else plain
    left, right = _matrices(description, clean, environment, missing, variables)
    rows = right.index.to_numpy()
    if rows.size == 0:
        raise FormulaError(
            f"all {len(plain)} rows have missing values in the columns of the formula "
            f"({', '.join(map(str, used))}). Fill them in, or leave such columns out."
        )
    y, classes = _response(left)
    kept = [
        j
        for j, name in enumerate(right.design_info.column_names)
        if intercept or name != "Intercept"
    ]
    if not kept:
        raise FormulaError(
            f"the formula {formula!r} has no predictors on its right-hand side. "
            "Name at least one, or use `.` for all columns."
        )
    coding = Coding(
        info=right.design_info,
        columns=np.array(kept),
        variables=tuple(variables),
        categorical=_categorical(right.design_info, variables),
        recipe=Recipe(text, plain[list(dict.fromkeys(used))], intercept, missing),
    )
    X = right.to_numpy(dtype=np.float64)[:, kept]
    names = tuple(plain_name(right.design_info.column_names[j]) for j in kept)
    check_finite(X, names, allow_missing=missing == "pass")
    return Design(
        y=y,
        X=X,
        names=names,
        response=plain_name(formula.partition("~")[0].strip()),
        classes=classes,
        rows=rows,
        n_dropped=len(plain) - rows.size,
        frame=frame.iloc[rows][variables],
        data=frame.iloc[rows],
        coding=coding,
    )


def _describe(formula: str) -> patsy.ModelDesc:
    try:
        return patsy.ModelDesc.from_formula(formula)
    except patsy.PatsyError as error:
        raise FormulaError(f"cannot read the formula: {error}") from error


def _codes(terms: Sequence[Any]) -> list[str]:
    """Python code of every factor, in order of appearance."""
    codes = [factor.code for term in terms for factor in term.factors]
    return list(dict.fromkeys(codes))


def _all_codes(description: patsy.ModelDesc) -> list[str]:
    return _codes([*description.lhs_termlist, *description.rhs_termlist])


def _variables(terms: Sequence[Any], columns: pd.Index) -> list[str]:
    names = [name for code in _codes(terms) for name in names_in(code)]
    return [name for name in dict.fromkeys(names) if name in columns]


_STATEFUL = frozenset({"center", "standardize", "scale", "bs", "cr", "cc", "te"})


def _stateful(description: patsy.ModelDesc, columns: pd.Index) -> list[str]:
    """Columns that a stateful transform reads.

    A transform learns from every row, so that one missing value would make all
    its values missing; rows that lack such a column are dropped beforehand.
    """
    names = [
        name
        for code in _all_codes(description)
        if _STATEFUL & set(names_in(code))
        for name in names_in(code)
    ]
    return [name for name in dict.fromkeys(names) if name in columns]


def _categorical(info: patsy.DesignInfo, variables: Sequence[str]) -> frozenset[str]:
    names = {
        name
        for factor, facts in info.factor_infos.items()
        if facts.type == "categorical"
        for name in names_in(factor.code)
    }
    return frozenset(names & set(variables))


def _check_names(
    description: patsy.ModelDesc, columns: pd.Index, env: patsy.EvalEnvironment
) -> None:
    """Refuse names that are neither columns nor found where code looks them up."""
    for code in _all_codes(description):
        for node in ast.walk(ast.parse(code, mode="eval")):
            for name in names_of(node):
                elsewhere = not is_quoted(node) and (
                    name in PATSY_BUILTINS
                    or name in env.namespace
                    or hasattr(builtins, name)
                )
                if name not in columns and not elsewhere:
                    shown = ", ".join(map(str, columns[:12]))
                    more = ", ..." if len(columns) > 12 else ""
                    raise FormulaError(
                        f"{name!r} is not a column of the data"
                        f"{nearest(name, columns)} The columns are {shown}{more}."
                    )


def _matrices(
    description: patsy.ModelDesc,
    frame: pd.DataFrame,
    environment: patsy.EvalEnvironment,
    missing: Missing,
    variables: Sequence[str],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    if missing == "pass":
        _check_missing_categories(frame, variables)
        frame = _drop_missing_response(description, frame, environment)
        action = patsy.NAAction(on_NA="raise", NA_types=[])
    else:
        action = patsy.NAAction(on_NA=missing)
    try:
        left, right = patsy.dmatrices(
            description, frame, environment, NA_action=action, return_type="dataframe"
        )
    except patsy.PatsyError as error:
        hint = ""
        if missing == "raise" and "missing values" in str(error):
            hint = "\nUse missing='drop' to leave rows with missing values out."
        raise FormulaError(f"{error}{hint}") from error
    return left, right


def _check_missing_categories(frame: pd.DataFrame, variables: Sequence[str]) -> None:
    for name in variables:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column.dtype) and column.isna().any():
            raise FormulaError(
                f"`missing='pass'` keeps missing numbers only; {name!r} is not numeric "
                "and has missing values. Make missing a level of its own, or drop."
            )


def _drop_missing_response(
    description: patsy.ModelDesc,
    frame: pd.DataFrame,
    environment: patsy.EvalEnvironment,
) -> pd.DataFrame:
    only_left = patsy.ModelDesc([], description.lhs_termlist)
    try:
        left: pd.DataFrame = patsy.dmatrix(
            only_left, frame, environment, return_type="dataframe"
        )
    except patsy.PatsyError as error:
        raise FormulaError(str(error)) from error
    return frame.loc[left.index]


def _response(left: pd.DataFrame) -> tuple[Floats, tuple[Any, ...] | None]:
    info = left.design_info
    facts = list(info.factor_infos.values())
    if len(facts) == 1 and facts[0].type == "categorical":
        levels = tuple(facts[0].categories)
        if len(levels) < 2:
            raise FormulaError(
                f"a categorical response needs at least two levels; got {levels!r}."
            )
        return left.to_numpy().argmax(axis=1).astype(np.float64), levels
    if left.shape[1] != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(info.column_names)}."
        )
    y = left.to_numpy(dtype=np.float64)[:, 0]
    check_finite(y[:, None], info.column_names)
    return y, None


def linear_constraint(
    R: Restrictions, names: Sequence[str]
) -> tuple[Floats, Floats, list[str]]:
    """Read linear restrictions on named parameters.

    Parameters
    ----------
    R : str, matrix or mapping
        "x1 = x2, x3 = 0", or a matrix with a column for each parameter.
    names : sequence of str
        Parameters.

    Returns
    -------
    coefs, constants, labels
        `coefs @ params = constants`, shapes (r, m) and (r,), and a text for each.
    """
    info = patsy.DesignInfo([quote_free(name) for name in names])
    if isinstance(R, str):
        constraint = info.linear_constraint(R)
    else:
        matrix = np.atleast_2d(np.asarray(R, dtype=np.float64))
        if matrix.shape[1] != len(names):
            raise ValueError(
                f"`R` must have a column for each of the {len(names)} estimates; "
                f"got {matrix.shape[1]}."
            )
        constraint = info.linear_constraint(matrix)
    coefs = np.asarray(constraint.coefs, dtype=np.float64)
    constants = np.asarray(constraint.constants, dtype=np.float64).ravel()
    labels = [f"c{j}" for j in range(len(coefs))]
    return coefs, constants, labels


def quote_free(name: str) -> str:
    """Name as patsy's constraint parser wants it: without surrounding space."""
    return str(name).strip()


def restricted_environment() -> patsy.EvalEnvironment:
    """Names that somebody else's formula may use besides columns."""
    return patsy.EvalEnvironment([{**SAFE_FUNCTIONS, "np": np}])
