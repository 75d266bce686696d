"""From a formula and data to design matrices; the only importer of patsy."""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import patsy
from patsy.parse_formula import parse_formula

from vstatkit._typing import Bools, DataLike, Floats, Ints, Restrictions
from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import (
    PATSY_BUILTINS,
    SAFE_FUNCTIONS,
    bare_name,
    category_name,
    check_trusted,
    expand_dot,
    is_quoted,
    names_in,
    names_of,
    parse_code,
    plain_name,
)
from vstatkit.formula.frames import (
    as_frame,
    check_dates,
    check_finite,
    check_infinite,
    is_number,
    is_number_kind,
    missing_dates_as_none,
    nearest,
)
from vstatkit.formula.limits import (
    MAX_COLUMNS,
    check_codes,
    check_lengths,
    check_text,
    check_width,
)
from vstatkit.formula.terms import Codes, sides, written_factors

Missing = Literal["drop", "raise", "pass"]

MAX_PRODUCTS = 1_000_000
"""Terms that products in a formula may expand to."""

MAX_MESSAGE = 600
"""Characters of somebody else's message that are passed on."""


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
        Levels of a categorical response, those that occur.
    unused_levels : tuple
        Levels of the response that no row has.
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
    unused_levels: tuple[Any, ...]
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
        Its terms one by one: `.`, products and what was taken out are gone.
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
        """Code new data exactly as the training data was; refuse missing values."""
        X = self.raw_matrix(data)
        written = self.info.column_names
        names = [plain_name(written[j]) for j in self.columns]
        check_finite(
            X,
            names,
            allow_missing=self.recipe.missing == "pass",
            where="the new data: ",
        )
        return X

    def raw_matrix(self, data: DataLike) -> Floats:
        """Code new data, whatever values come out."""
        frame = as_frame(data)
        self._check_columns(frame)
        plain = frame[list(self.variables)].reset_index(drop=True)
        action = patsy.NAAction(on_NA="raise", NA_types=[])
        with _formula_errors("the new data cannot be coded: "):
            (matrix,) = patsy.build_design_matrices(
                [self.info], plain, NA_action=action, return_type="matrix"
            )
        X = np.asarray(matrix, dtype=np.float64)
        if len(X) != len(plain):  # a constant right-hand side
            X = np.repeat(X, len(plain), axis=0)
        return X[:, self.columns]

    def usable(self, X: Floats) -> Bools:
        """Rows that a learner can take: finite, or missing where that may pass."""
        good = np.isfinite(X)
        if self.recipe.missing == "pass":
            good |= np.isnan(X)
        return np.asarray(good.all(axis=1))

    def _check_columns(self, frame: pd.DataFrame) -> None:
        kinds, trained = frame.dtypes.to_dict(), self.recipe.frame.dtypes.to_dict()
        for name in self.variables:
            if name not in kinds:
                raise FormulaError(
                    f"the new data lack column {name!r}{nearest(name, frame.columns)} "
                    f"They must have the columns {_listed(self.variables)}."
                )
            if is_number_kind(trained[name]) and not is_number_kind(kinds[name]):
                raise FormulaError(
                    f"column {name!r} must be numeric, as in the training data; the "
                    f"new data have {kinds[name]}."
                )

    def typical(self, frame: pd.DataFrame) -> pd.DataFrame:
        """One row of medians and, for categories, most frequent levels."""
        medians = frame[self._numeric()].median().to_dict()
        modes = {name: frame[name].mode().iloc[0] for name in self.categorical}
        values: dict[Any, Any] = {**medians, **modes}
        kept = {
            name: kind
            for name, kind in frame.dtypes.items()
            if name in self.categorical or kind in (np.float16, np.float32)
        }
        made = pd.DataFrame(
            {name: [values[name]] for name in self.variables}, index=["typical"]
        )
        return made.astype(kept) if kept else made

    def ranges(self, frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of every numeric variable."""
        numeric = frame[self._numeric()]
        low, high = numeric.min().to_dict(), numeric.max().to_dict()
        return {name: (float(low[name]), float(high[name])) for name in numeric.columns}

    def _numeric(self) -> list[str]:
        return [name for name in self.variables if name not in self.categorical]


def caller_environment(depth: int) -> patsy.EvalEnvironment:
    """Capture the names visible `depth` calls up; 1 is the caller's caller.

    There are none where no Python code called, as from R through reticulate.
    """
    try:
        sys._getframe(depth + 1)
    except ValueError:
        return patsy.EvalEnvironment([{}])
    return patsy.EvalEnvironment.capture(depth + 1)


def parse(
    formula: str,
    data: DataLike,
    *,
    environment: patsy.EvalEnvironment | None,
    intercept: bool,
    missing: Missing = "drop",
    not_in_dot: tuple[str, ...] = (),
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

    Returns
    -------
    Design
    """
    if missing not in ("drop", "raise", "pass"):
        raise ValueError(
            f"`missing` must be 'drop', 'raise' or 'pass'; got {missing!r}."
        )
    frame = as_frame(data)
    if environment is None and isinstance(formula, str):
        check_text(formula)
    text = expand_dot(formula, [c for c in frame.columns if c not in not_in_dot])
    tree = _read(text)
    # Factors that are taken out again too: a slip in their names would go unseen.
    codes = list(written_factors(tree))
    if environment is None:
        environment = restricted_environment()
        check_lengths(codes)
        _check_names(codes, frame.columns, environment)
        check_trusted(codes, frame.columns)
        check_codes(codes, frame)
        description = _describe(tree, frame.columns, MAX_COLUMNS)
        check_width(_products(description), frame)
    else:
        environment = environment.with_outer_namespace(SAFE_FUNCTIONS)
        _check_names(codes, frame.columns, environment)
        frame = _with_outside_columns(codes, frame, environment)
        description = _describe(tree, frame.columns, MAX_PRODUCTS)
    variables = _variables(description.rhs_termlist, frame.columns)
    used = [*variables, *_variables(description.lhs_termlist, frame.columns)]
    used = list(dict.fromkeys(used))
    check_infinite(frame, used)
    bare = _bare_names(description)
    check_dates(frame, [name for name in used if name in bare])
    plain = missing_dates_as_none(frame.reset_index(drop=True))
    left, right = _matrices(description, plain, environment, missing, variables)
    rows = right.index.to_numpy()
    if rows.size == 0:
        raise FormulaError(
            f"all {len(plain)} rows have missing values in the columns of the formula "
            f"({_listed(used)}). Fill them in, or leave such columns out."
        )
    y, classes, unused_levels = _response(left)
    info = right.design_info
    written = info.column_names
    kept = [j for j, name in enumerate(written) if intercept or name != "Intercept"]
    if not kept:
        raise FormulaError(
            f"the formula {formula!r} has no predictors on its right-hand side. "
            "Name at least one, or use `.` for all columns."
        )
    X = right.to_numpy(dtype=np.float64)[:, kept]
    names = tuple(plain_name(written[j]) for j in kept)
    check_finite(X, names, allow_missing=missing == "pass")
    return Design(
        y=y,
        X=X,
        names=names,
        response=plain_name(formula.partition("~")[0].strip()),
        classes=classes,
        unused_levels=unused_levels,
        rows=rows,
        n_dropped=len(plain) - rows.size,
        frame=frame.iloc[rows][variables],
        data=frame.iloc[rows],
        coding=Coding(
            info=info,
            columns=np.array(kept),
            variables=tuple(variables),
            categorical=_categorical(info, frame, variables),
            recipe=Recipe(_written(description), plain[used], intercept, missing),
        ),
    )


@contextmanager
def _formula_errors(prefix: str = "", hint: str = "") -> Iterator[None]:
    """Turn what patsy and the formula's own code raise into one kind of error."""
    try:
        yield
    except FormulaError:
        raise
    except patsy.PatsyError as error:
        # With the formula comes a mark below the place, which needs short lines.
        whole = str(error)
        text = whole if len(whole) <= MAX_MESSAGE else error.message[:MAX_MESSAGE]
        raise FormulaError(f"{prefix}{text}{hint}") from error
    except _OTHER_ERRORS as error:
        kind = type(error).__name__
        text = str(error)[:MAX_MESSAGE]
        raise FormulaError(f"{prefix}{kind}: {text}{hint}") from error


_OTHER_ERRORS = (
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    LookupError,
    AssertionError,
    RuntimeError,  # too deep a recursion is one
    MemoryError,
    SyntaxError,
)
"""What code in a formula raises; names and files that it lacks pass through."""


class _Column:
    """A column of the data as a factor, for patsy.

    patsy would compile and run a name like any other code, for every column and
    every call; a column is only looked up.
    """

    def __init__(self, code: str, column: str, origin: Any) -> None:
        self.code = code
        self.origin = origin
        self._column = column

    def name(self) -> str:
        """Name in the design matrix: as written."""
        return self.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Column) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def memorize_passes_needed(self, state: Any, env: Any) -> int:
        """Tell patsy that there is nothing to learn from the data."""
        return 0

    def eval(self, state: Any, data: pd.DataFrame) -> Any:
        """Look the column up; numbers without the overhead of a Series."""
        column = data[self._column]
        return column.to_numpy() if is_number(column) else column


def _read(formula: str) -> Any:
    """Parse a formula to patsy's syntax tree."""
    with _formula_errors("cannot read the formula: "):
        return parse_formula(formula)


def _describe(tree: Any, columns: pd.Index, max_terms: int) -> patsy.ModelDesc:
    """List the terms; columns that stand by themselves are only looked up."""
    left, right = sides(tree, max_terms)
    held = set(columns)
    factors = {
        code: _factor(code, origin, held)
        for code, origin in written_factors(tree).items()
    }

    def terms(codes: Iterable[Codes], intercept: bool) -> list[patsy.Term]:
        listed = [patsy.Term([factors[code] for code in one]) for one in codes]
        return [patsy.Term([]), *listed] if intercept else listed

    return patsy.ModelDesc(
        terms(left.terms.values(), left.intercept),
        terms(right.terms.values(), not right.removed),
    )


def _factor(code: str, origin: Any, columns: set[str]) -> Any:
    name = bare_name(code)
    if name in columns:
        return _Column(code, name, origin)
    return patsy.EvalFactor(code, origin)


def _written(description: patsy.ModelDesc) -> str:
    """Write the terms one by one, as a formula that is read the same way."""
    left, right = (
        [":".join(factor.code for factor in term.factors) or "1" for term in terms]
        for terms in (description.lhs_termlist, description.rhs_termlist)
    )
    if "1" not in right:
        right.insert(0, "0")
    return f"{' + '.join(left)} ~ {' + '.join(right)}"


def _products(description: patsy.ModelDesc) -> list[list[str]]:
    """Codes of the factors of every term."""
    terms = [*description.lhs_termlist, *description.rhs_termlist]
    return [[factor.code for factor in term.factors] for term in terms]


def _codes(terms: Sequence[Any]) -> list[str]:
    """Python code of every factor, in order of appearance."""
    codes = [factor.code for term in terms for factor in term.factors]
    return list(dict.fromkeys(codes))


def _all_codes(description: patsy.ModelDesc) -> list[str]:
    return _codes([*description.lhs_termlist, *description.rhs_termlist])


def _variables(terms: Sequence[Any], columns: pd.Index) -> list[str]:
    names = [name for code in _codes(terms) for name in names_in(code)]
    return [name for name in dict.fromkeys(names) if name in columns]


_STATEFUL = frozenset(
    {"center", "standardize", "scale", "bs", "cr", "cc", "te", "poly"}
)


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


def _bare_names(description: patsy.ModelDesc) -> set[str]:
    """Columns that stand in the formula by themselves, as `x` or `Q("x")`."""
    found = (bare_name(code) for code in _all_codes(description))
    return {name for name in found if name is not None}


def _categorical(
    info: patsy.DesignInfo, frame: pd.DataFrame, variables: Sequence[str]
) -> frozenset[str]:
    """Variables that are categories: by their kind, or made so by `C(...)`.

    A number inside a condition, as in `I(x > 1)`, stays a number.
    """
    coded = {
        category_name(factor.code)
        for factor, facts in info.factor_infos.items()
        if facts.type == "categorical"
    }
    return frozenset(
        name for name in variables if name in coded or not is_number(frame[name])
    )


def _with_outside_columns(
    codes: Sequence[str], frame: pd.DataFrame, env: patsy.EvalEnvironment
) -> pd.DataFrame:
    """Take arrays of the caller's that run along the data as columns of it."""
    outside = {}
    for name in dict.fromkeys(name for code in codes for name in names_in(code)):
        if name not in frame.columns and name in env.namespace:
            value = env.namespace[name]
            if isinstance(value, np.ndarray | pd.Series | list | tuple):
                array = np.asarray(value)
                if array.ndim == 1 and array.size == len(frame):
                    outside[name] = array
    return frame.assign(**outside) if outside else frame


def _check_names(
    codes: Sequence[str], columns: pd.Index, env: patsy.EvalEnvironment
) -> None:
    """Refuse names that are neither columns nor found where code looks them up."""
    held = set(columns)
    for code in codes:
        if code in held and names_in(code) == [code]:
            continue
        for node in ast.walk(parse_code(code)):
            for name in names_of(node):
                elsewhere = not is_quoted(node) and (
                    name in PATSY_BUILTINS
                    or name in env.namespace
                    or hasattr(builtins, name)
                )
                if name not in held and not elsewhere:
                    raise FormulaError(
                        f"{name!r} is not a column of the data"
                        f"{nearest(name, columns)} The columns are {_listed(columns)}."
                    )


def _listed(names: Sequence[str] | pd.Index) -> str:
    """Write names after one another, the first of many."""
    shown = ", ".join(map(str, names[:12]))
    return f"{shown}, ..." if len(names) > 12 else shown


def _matrices(
    description: patsy.ModelDesc,
    frame: pd.DataFrame,
    environment: patsy.EvalEnvironment,
    missing: Missing,
    variables: Sequence[str],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Build both design matrices; their indexes are positions of rows kept."""
    hint = ""
    action = patsy.NAAction(on_NA=missing if missing != "pass" else "drop")
    if missing == "pass":
        _check_missing_categories(frame, variables)
        frame = _drop_missing_response(description, frame, environment)
        action = patsy.NAAction(on_NA="raise", NA_types=[])
    elif missing == "raise":
        hint = "\nUse missing='drop' to leave rows with missing values out."
    else:
        complete = frame.dropna(subset=_stateful(description, frame.columns))
        frame = complete if len(complete) else frame
    with _formula_errors(hint=hint):
        left, right = patsy.dmatrices(
            description, frame, environment, NA_action=action, return_type="dataframe"
        )
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
    with _formula_errors():
        left = patsy.dmatrix(only_left, frame, environment, return_type="dataframe")
    kept: pd.DataFrame = frame.loc[left.index]
    return kept


def _response(
    left: pd.DataFrame,
) -> tuple[Floats, tuple[Any, ...] | None, tuple[Any, ...]]:
    """Read the response: numbers, or codes of the levels that occur.

    Returns
    -------
    y, classes, unused levels
    """
    info = left.design_info
    facts = list(info.factor_infos.values())
    if len(facts) == 1 and facts[0].type == "categorical":
        return _class_codes(left.to_numpy(), tuple(facts[0].categories))
    if left.shape[1] != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(info.column_names)}."
        )
    y = left.to_numpy(dtype=np.float64)[:, 0]
    check_finite(y[:, None], info.column_names)
    return y, None, ()


def _class_codes(
    indicators: Floats, levels: tuple[Any, ...]
) -> tuple[Floats, tuple[Any, ...], tuple[Any, ...]]:
    plain = indicators.shape[1] == len(levels) and np.isin(indicators, (0, 1)).all()
    if not plain or not (indicators.sum(axis=1) == 1).all():
        raise FormulaError(
            "a categorical response takes no contrast: write C(y), or y, on the "
            "left-hand side."
        )
    occurs = np.asarray(indicators.any(axis=0))
    classes = tuple(level for level, kept in zip(levels, occurs, strict=True) if kept)
    unused = tuple(level for level in levels if level not in classes)
    if len(classes) < 2:
        raise FormulaError(
            f"a categorical response needs at least two levels; got {classes!r}."
        )
    codes = indicators[:, occurs].argmax(axis=1)
    return codes.astype(np.float64), classes, unused


def linear_constraint(
    R: Restrictions, names: Sequence[str]
) -> tuple[Floats, Floats, list[str]]:
    """Read linear restrictions on named parameters.

    Parameters
    ----------
    R : str or matrix
        "x1 = x2, x3 = 0", or a matrix with a column for each parameter.
    names : sequence of str
        Parameters.

    Returns
    -------
    coefs, constants, labels
        `coefs @ params = constants`, shapes (r, m) and (r,), and a text for each.
    """
    if not isinstance(R, str):
        coefs = np.atleast_2d(np.asarray(R, dtype=np.float64))
        if coefs.shape[1] != len(names):
            raise ValueError(
                f"`R` must have a column for each of the {len(names)} estimates; "
                f"got {coefs.shape[1]}."
            )
        constants = np.zeros(len(coefs))
    else:
        if len(set(names)) < len(names):
            raise ValueError(
                "restrictions in words need estimates with different names; give a "
                "matrix with a column for each estimate."
            )
        with _formula_errors("cannot read the restrictions: "):
            constraint = patsy.DesignInfo(names).linear_constraint(R)
        coefs = np.asarray(constraint.coefs, dtype=np.float64)
        constants = np.asarray(constraint.constants, dtype=np.float64).ravel()
    texts = [part.strip() for part in R.split(",")] if isinstance(R, str) else []
    if len(texts) != len(coefs):
        texts = [f"c{j}" for j in range(len(coefs))]
    return coefs, constants, texts


def restricted_environment() -> patsy.EvalEnvironment:
    """Names that somebody else's formula may use besides columns."""
    return patsy.EvalEnvironment([{**SAFE_FUNCTIONS, "np": np}])
