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
    check_trusted,
    expand_dot,
    is_quoted,
    names_in,
    names_of,
    parse_code,
)
from vstatkit.formula.frames import listed, nearest
from vstatkit.formula.limits import (
    MAX_COLUMNS,
    check_codes,
    check_lengths,
    check_text,
    check_width,
)
from vstatkit.formula.model import Model, distinct, model_of
from vstatkit.formula.terms import written_factors

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
            name: visible[name]
            for code in codes
            for name in names_in(code)
            if name not in self.frame.columns
            and name in visible
            and visible[name] is not SAFE_FUNCTIONS.get(name)
        }


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
    if environment is None and isinstance(formula, str):
        check_text(formula)
    text = expand_dot(formula, [c for c in frame.columns if c not in not_in_dot])
    tree = read_tree(text)
    # Factors that are taken out again too: a slip in their names would go unseen.
    codes = list(written_factors(tree))
    if environment is None:
        environment = environment_of({**SAFE_FUNCTIONS, "np": np})
        check_lengths(codes)
        _check_names(codes, frame.columns, visible_names(environment))
        check_trusted(codes, frame.columns)
        check_codes(codes, frame)
        model = model_of(tree, frame.columns, MAX_COLUMNS)
        check_width(model.terms, frame)
    else:
        environment = with_functions(environment, SAFE_FUNCTIONS)
        names = visible_names(environment)
        _check_names(codes, frame.columns, names)
        frame = _with_outside_columns(codes, frame, names)
        model = model_of(tree, frame.columns, MAX_PRODUCTS)
    return Reading(model, frame, environment)


def _with_outside_columns(
    codes: Sequence[str], frame: pd.DataFrame, names: Mapping[str, Any]
) -> pd.DataFrame:
    """Add the caller's arrays that are as long as the data as columns."""
    outside = {}
    for name in dict.fromkeys(name for code in codes for name in names_in(code)):
        if name not in frame.columns and name in names:
            value = names[name]
            if isinstance(value, np.ndarray | pd.Series | list | tuple):
                array = np.asarray(value)
                if array.ndim == 1 and array.size == len(frame):
                    outside[name] = array
    return frame.assign(**outside) if outside else frame


def _check_names(
    codes: Sequence[str], columns: pd.Index, names: Mapping[str, Any]
) -> None:
    """Refuse names that are neither columns nor defined where the code looks."""
    held = set(columns)
    for code in codes:
        if code in held and names_in(code) == [code]:
            continue
        for node in ast.walk(parse_code(code)):
            for name in names_of(node):
                elsewhere = not is_quoted(node) and (
                    name in PATSY_BUILTINS or name in names or hasattr(builtins, name)
                )
                if name not in held and not elsewhere:
                    raise FormulaError(
                        f"{name!r} is not a column of the data"
                        f"{nearest(name, columns)} The columns are {listed(columns)}."
                    )
