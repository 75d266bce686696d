"""From a formula and data to design matrices; the only importer of patsy."""

import ast
import builtins
import difflib
import io
import keyword
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import patsy
import patsy.builtins

from vstatkit._typing import DataLike, Floats, Ints, Restrictions
from vstatkit.exceptions import FormulaError

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
        check_trusted(description, frame.columns)
    plain = frame.reset_index(drop=True)
    variables = _variables(description.rhs_termlist, frame.columns)
    used = [*variables, *_variables(description.lhs_termlist, frame.columns)]
    _check_infinite(plain, used)
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


def as_frame(data: DataLike) -> pd.DataFrame:
    """Read any accepted kind of data as a data frame.

    Nullable and Arrow-backed columns become numpy ones, which patsy reads.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, Mapping):
        frame = _frame_of_mapping(data)
    elif hasattr(data, "to_pydict"):  # an Arrow table
        frame = pd.DataFrame(data.to_pydict())
    elif hasattr(data, "get_columns"):  # a polars frame
        frame = pd.DataFrame({column.name: column.to_list() for column in data})
    else:
        raise TypeError(
            "`data` must be a DataFrame, a dict of columns, a polars frame or an "
            f"Arrow table; got {type(data).__name__}."
        )
    bad = [name for name in frame.columns if not isinstance(name, str)]
    if bad:
        raise FormulaError(
            f"column names must be strings; got {bad[0]!r} "
            f"({type(bad[0]).__name__}). Use data.rename(columns=str)."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise FormulaError(f"column names must be unique; {twice!r} occurs twice.")
    if len(frame) == 0:
        raise FormulaError("`data` has no rows.")
    plain = {
        name: _plain_column(frame[name])
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.api.extensions.ExtensionDtype)
        and not isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**plain) if plain else frame


def _frame_of_mapping(data: Mapping[str, Any]) -> pd.DataFrame:
    if all(np.ndim(value) == 0 for value in data.values()):
        return pd.DataFrame({name: [value] for name, value in data.items()})
    return pd.DataFrame(dict(data))


def _plain_column(column: pd.Series) -> pd.Series:
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.astype(bool)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return column.astype(np.float64)
    return column.astype(object).where(column.notna(), None)


def expand_dot(formula: str, columns: Sequence[str]) -> str:
    """Replace a standalone `.` by all columns the left-hand side does not use.

    Examples
    --------
    >>> expand_dot("y ~ . - b", ["y", "a", "b", "my x"])
    'y ~ (a + b + Q("my x")) - b'
    """
    if not isinstance(formula, str):
        raise TypeError(
            f"`formula` must be a string like 'y ~ x1 + x2'; "
            f"got {type(formula).__name__}."
        )
    formula = formula.replace("\n", " ")
    left, _, right = formula.partition("~")
    if not left.strip() or not right.strip():
        raise FormulaError(
            "`formula` must have a response, a `~` and a right-hand side, like "
            f"'y ~ x1 + x2'; got {formula!r}."
        )
    dots = _standalone_dots(right)
    if not dots:
        return formula
    used = _names_in(left)
    others = [quote(name) for name in columns if name not in used]
    if not others:
        raise FormulaError("`.` stands for no column: the response is the only one.")
    everything = "(" + " + ".join(others) + ")"
    for position in reversed(dots):
        right = right[:position] + everything + right[position + 1 :]
    return f"{left}~{right}"


def _standalone_dots(text: str) -> list[int]:
    """Offsets of dots that are neither attribute access nor part of a number."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError) as error:
        raise FormulaError(f"cannot read {text!r}: {error}") from error
    offset = len(text) - len(text.lstrip())
    found = []
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        attached = after.type == tokenize.NAME and after.start == token.end
        follows = (
            before is not None
            and before.end == token.start
            and (before.type == tokenize.NAME or before.string in (")", "]"))
        )
        if token.string == "." and not attached and not follows:
            found.append(offset + token.start[1])
    return found


def quote(name: str) -> str:
    """Write a column name so that patsy reads it as one."""
    if name.isidentifier() and not keyword.iskeyword(name) and name not in _BUILTINS:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'Q("{escaped}")'


def plain_name(name: str) -> str:
    """Strip `Q('...')` from a name for display.

    Examples
    --------
    >>> plain_name("log(Q('my x')):b")
    'log(my x):b'
    """
    return re.sub(r"""Q\((["'])(.*?)\1\)""", r"\2", name)


_BUILTINS = frozenset(patsy.builtins.__all__)


def _describe(formula: str) -> patsy.ModelDesc:
    try:
        return patsy.ModelDesc.from_formula(formula)
    except patsy.PatsyError as error:
        raise FormulaError(f"cannot read the formula: {error}") from error


def _codes(terms: Sequence[Any]) -> list[str]:
    """Python code of every factor, in order of appearance."""
    codes = [factor.code for term in terms for factor in term.factors]
    return list(dict.fromkeys(codes))


def _names_in(code: str) -> list[str]:
    """Names that a piece of code reads, quoted columns included."""
    tree = ast.parse(code.strip(), mode="eval")
    return [name for node in ast.walk(tree) for name in _names_of(node)]


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and node.id != "Q":
        return [node.id]
    if _is_quoted(node):
        return [node.args[0].value]  # type: ignore[attr-defined]
    return []


def _is_quoted(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Q"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
    )


def _variables(terms: Sequence[Any], columns: pd.Index) -> list[str]:
    names = [name for code in _codes(terms) for name in _names_in(code)]
    return [name for name in dict.fromkeys(names) if name in columns]


_STATEFUL = frozenset({"center", "standardize", "scale", "bs", "cr", "cc", "te"})


def _stateful(description: patsy.ModelDesc, columns: pd.Index) -> list[str]:
    """Columns that a stateful transform reads.

    A transform learns from every row, so that one missing value would make all
    its values missing; rows that lack such a column are dropped beforehand.
    """
    terms = [*description.lhs_termlist, *description.rhs_termlist]
    names = [
        name
        for code in _codes(terms)
        if _STATEFUL & set(_names_in(code))
        for name in _names_in(code)
    ]
    return [name for name in dict.fromkeys(names) if name in columns]


def _categorical(info: patsy.DesignInfo, variables: Sequence[str]) -> frozenset[str]:
    names = {
        name
        for factor, facts in info.factor_infos.items()
        if facts.type == "categorical"
        for name in _names_in(factor.code)
    }
    return frozenset(names & set(variables))


def nearest(name: str, columns: Sequence[str] | pd.Index) -> str:
    """Suggest the column that was probably meant."""
    close = difflib.get_close_matches(name, [str(c) for c in columns], n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def _check_names(
    description: patsy.ModelDesc, columns: pd.Index, env: patsy.EvalEnvironment
) -> None:
    terms = [*description.lhs_termlist, *description.rhs_termlist]
    for code in _codes(terms):
        for node in ast.walk(ast.parse(code, mode="eval")):
            for name in _names_of(node):
                known = name in columns or (
                    not _is_quoted(node)
                    and (
                        name in _BUILTINS
                        or name in env.namespace
                        or hasattr(builtins, name)
                    )
                )
                if not known:
                    shown = ", ".join(map(str, columns[:12]))
                    more = ", ..." if len(columns) > 12 else ""
                    raise FormulaError(
                        f"{name!r} is not a column of the data"
                        f"{nearest(name, columns)} The columns are {shown}{more}."
                    )


def _check_infinite(frame: pd.DataFrame, used: Sequence[str]) -> None:
    for name in used:
        column = frame[name]
        if not pd.api.types.is_float_dtype(column.dtype):
            continue
        rows = np.flatnonzero(np.isinf(column.to_numpy()))
        if rows.size:
            raise FormulaError(
                f"column {name!r} must be finite; {rows.size} value(s) are infinite, "
                f"the first in row {rows[0]}. Remove or replace them."
            )


def check_finite(
    X: Floats, names: Sequence[str], *, allow_missing: bool = False
) -> None:
    """Refuse a design matrix with infinite or, unless allowed, missing values."""
    bad = np.isinf(X) if allow_missing else ~np.isfinite(X)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise FormulaError(
            f"{names[column]!r} must be finite in every row; row {row} has "
            f"{X[row, column]}. Remove such rows, or change the transformation."
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
        if missing == "raise" and "missing values" in str(error):
            raise FormulaError(
                f"the data have missing values, and `missing='raise'`: {error}. Use "
                "missing='drop' to leave such rows out."
            ) from error
        raise
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
    left = patsy.dmatrix(only_left, frame, environment, return_type="dataframe")
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


SAFE_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc)
} | {"where": np.where, "clip": np.clip, "round": np.round}
"""numpy's elementwise functions: they compute and touch nothing else."""


def restricted_environment() -> patsy.EvalEnvironment:
    """Names that somebody else's formula may use besides columns."""
    return patsy.EvalEnvironment([{**SAFE_FUNCTIONS, "np": np}])


_SAFE_NODES = (
    ast.Expression,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.keyword,
    ast.UnaryOp,
    ast.BinOp,
    ast.Compare,
    ast.BoolOp,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.boolop,
    ast.List,
    ast.Tuple,
)


def check_trusted(description: patsy.ModelDesc, columns: pd.Index) -> None:
    """Refuse code in a formula that came from a command line or a file.

    Formulas are Python to patsy. Here only columns, arithmetic, patsy's
    built-ins and numpy's elementwise functions may stand.
    """
    terms = [*description.lhs_termlist, *description.rhs_termlist]
    for code in _codes(terms):
        for node in ast.walk(ast.parse(code, mode="eval")):
            if not _is_trusted(node, columns):
                raise FormulaError(
                    f"{ast.unparse(node)!r} is not allowed in a formula given as "
                    "text: only columns, arithmetic, patsy's built-ins and numpy's "
                    "elementwise functions are."
                )


def _is_trusted(node: ast.AST, columns: pd.Index) -> bool:
    if isinstance(node, ast.Attribute):
        return (
            isinstance(node.value, ast.Name)
            and node.value.id == "np"
            and "np" not in columns
            and node.attr in SAFE_FUNCTIONS
        )
    if isinstance(node, ast.Call):
        # A column is never called, whatever its name.
        return isinstance(node.func, ast.Attribute) or (
            isinstance(node.func, ast.Name)
            and node.func.id not in columns
            and (node.func.id in _BUILTINS or node.func.id in SAFE_FUNCTIONS)
        )
    if isinstance(node, ast.Name):
        return (
            node.id in columns
            or node.id in _BUILTINS
            or node.id in SAFE_FUNCTIONS
            or node.id == "np"
        )
    return isinstance(node, _SAFE_NODES)
