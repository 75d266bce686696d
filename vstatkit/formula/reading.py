"""From the text of a formula to its terms, with every name checked."""

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import (
    Environment,
    environment_of,
    read_tree,
    visible_names,
    with_functions,
)
from vstatkit.formula.expressions import (
    PATSY_BUILTINS,
    SAFE_FUNCTIONS,
    check_formula,
    check_trusted,
    expand_dot,
    names_in,
    parse_code,
    uses,
)
from vstatkit.formula.frames import listed, nearest
from vstatkit.formula.habits import without_habits
from vstatkit.formula.limits import (
    MAX_COLUMNS,
    check_codes,
    check_lengths,
    check_text,
    check_width,
)
from vstatkit.formula.model import Model, distinct, model_of
from vstatkit.formula.response import check_operands, wrap_response
from vstatkit.formula.spelling import quoting_hints, settle_names
from vstatkit.formula.terms import written_factors
from vstatkit.formula.unsupported import (
    advise_function,
    check_prefixes,
    check_signs,
)

MAX_PRODUCTS = 1_000_000
"""Terms that products in a formula may expand to."""


@dataclass(frozen=True)
class Reading:
    """A formula that was read against the columns of data.

    Attributes
    ----------
    model : Model
        Its terms.
    frame : DataFrame
        The data, with arrays of the caller's that the formula names.
    environment : Environment
        Where other names are looked up.
    """

    model: Model
    frame: pd.DataFrame
    environment: Environment

    def names(self) -> dict[str, Any]:
        """Names that the formula reads from the environment, and their values.

        Functions that every formula may use are not among them.
        """
        codes = [
            code
            for code in distinct(self.model.terms)
            if code not in self.model.columns
        ]
        visible = visible_names(self.environment) if codes else {}
        return {
            use.name: visible[use.name]
            for code in codes
            for use in uses(parse_code(code))
            if (use.called or use.name not in self.frame.columns)
            and use.name in visible
            and visible[use.name] is not SAFE_FUNCTIONS.get(use.name)
        }


@dataclass(frozen=True)
class Named:
    """A formula whose names were found among columns, or where they are looked up.

    Attributes
    ----------
    tree : Any
        Syntax tree.
    codes : list of str
        Code of every factor that is written; those too that are taken out again,
        since a slip in their names would go unseen.
    environment : Environment
        Where names that are not columns are looked up.
    trusted : bool
        Whether the formula may do what Python can; a stranger's is bounded.
    """

    tree: Any
    codes: list[str]
    environment: Environment
    trusted: bool

    def model(self, columns: pd.Index) -> Model:
        """List the terms."""
        most = MAX_PRODUCTS if self.trusted else MAX_COLUMNS
        return model_of(self.tree, columns, most)


def read_names(
    formula: str,
    columns: pd.Index,
    environment: Environment | None,
    not_in_dot: tuple[str, ...],
) -> Named:
    """Read a formula as far as that needs no more than the names of the columns.

    See `read_formula`.
    """
    if environment is None and isinstance(formula, str):
        check_text(formula)
    check_formula(formula)
    text = settle_names(_in_our_words(formula, columns, environment), columns)
    text = expand_dot(text, [c for c in columns if c not in not_in_dot])
    if environment is None:
        check_lengths([text.partition("~")[0]])
    text = wrap_response(text)
    with quoting_hints(formula, columns):
        check_signs(text)
        tree = read_tree(text)
    codes = list(written_factors(tree))
    trusted = environment is not None
    if environment is None:
        environment = environment_of({**SAFE_FUNCTIONS, "np": np})
        check_lengths(codes)
    else:
        environment = with_functions(environment, SAFE_FUNCTIONS)
    with quoting_hints(formula, columns):
        _check_names(codes, columns, visible_names(environment), trusted=trusted)
    if not trusted:
        check_trusted(codes, columns)
    return Named(tree, codes, environment, trusted)


def _in_our_words(
    formula: str, columns: pd.Index, environment: Environment | None
) -> str:
    """Translate habits of R's; names that the caller has stay the caller's."""
    names = {} if environment is None else visible_names(environment)
    return without_habits(formula, lambda name: name in columns or name in names)


def read_formula(
    formula: str,
    frame: pd.DataFrame,
    environment: Environment | None,
    not_in_dot: tuple[str, ...],
) -> Reading:
    """Read a formula; without an environment it is a stranger's, and bounded.

    Parameters
    ----------
    formula : str
        Formula with a left- and a right-hand side.
    frame : DataFrame
        The data.
    environment : Environment or None
        Where names that are not columns are looked up; None trusts nobody.
    not_in_dot : tuple of str
        Columns that `.` does not stand for.
    """
    named = read_names(formula, frame.columns, environment, not_in_dot)
    if named.trusted:
        names = outside_columns(named, frame.columns, len(frame))
        return reading_of(named, frame.assign(**names) if names else frame)
    return reading_of(named, frame)


def reading_of(named: Named, frame: pd.DataFrame) -> Reading:
    """List the terms of a formula; a stranger's is judged by the data."""
    if not named.trusted:
        check_codes(named.codes, frame)
    model = named.model(frame.columns)
    for code in distinct(model.left):
        if code not in model.columns:
            check_operands(code, frame)
    if not named.trusted:
        check_width(model.terms, frame)
    return Reading(model, frame, named.environment)


def outside_columns(named: Named, columns: pd.Index, n_rows: int) -> dict[str, Any]:
    """Find the caller's arrays that are as long as the data: they are columns too."""
    names = visible_names(named.environment)
    outside = {}
    for name in dict.fromkeys(name for code in named.codes for name in names_in(code)):
        if name not in columns and name in names:
            value = names[name]
            if isinstance(value, np.ndarray | pd.Series | list | tuple):
                array = np.asarray(value)
                if array.ndim == 1 and array.size == n_rows:
                    outside[name] = array
    return outside


def _check_names(
    codes: Sequence[str],
    columns: pd.Index,
    names: Mapping[str, Any],
    *,
    trusted: bool,
) -> None:
    """Refuse names that are neither columns nor defined where the code looks."""
    held = set(columns)
    for code in codes:
        if code in held and names_in(code) == [code]:
            continue
        tree = parse_code(code)
        _check_dots(tree, held)
        check_prefixes(tree, held, names)
        for name, quoted, called in uses(tree):
            elsewhere = not quoted and (
                name in PATSY_BUILTINS or name in names or hasattr(builtins, name)
            )
            if elsewhere or (name in held and not called):
                continue
            if name in held:
                raise FormulaError(
                    f"{name!r} is a column, and {code!r} calls it like a function."
                )
            if called:
                raise FormulaError(
                    advise_function(name, code, tree, held, trusted=trusted)
                )
            raise FormulaError(
                f"{name!r} is not a column of the data{nearest(name, columns)} "
                f"The columns are {listed(columns)}."
            )


def _check_dots(tree: ast.AST, held: set[str]) -> None:
    """Refuse `x.y` where that is a column: Python would look for a `y` within `x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in held:
            raise FormulaError(f"{ast.unparse(node)!r} is no name to Python.")
