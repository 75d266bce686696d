"""From the text of a formula to its terms: notation of R, names, trust."""

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula import patsy_engine, r_syntax, untrusted_formulas
from vstatkit.formula.column_checks import holds_text
from vstatkit.formula.column_spellings import add_quoting_hints, settle_names
from vstatkit.formula.formula_text import (
    PATSY_BUILTINS,
    expand_dot,
    wrap_response,
)
from vstatkit.formula.names_in_code import find_uses, names_in, names_of, parse_code
from vstatkit.formula.patsy_engine import Environment
from vstatkit.formula.terms import Model, build_model, distinct_codes, written_factors
from vstatkit.formula.untrusted_formulas import MAX_COLUMNS, SAFE_FUNCTIONS
from vstatkit.text import list_names, suggest_name

MAX_PRODUCTS = 1_000_000  # terms that products in a formula may expand to


@dataclass(frozen=True)
class ResolvedFormula:
    """A formula that was read against the columns of data."""

    model: Model  # its terms
    frame: pd.DataFrame  # the data, with arrays of the caller's that the formula names
    environment: Environment  # where other names are looked up

    def names(self) -> dict[str, Any]:
        """Names read from the environment beyond `SAFE_FUNCTIONS`, with values."""
        codes = distinct_codes(self.model.terms)
        codes = [code for code in codes if code not in self.model.columns]
        visible = patsy_engine.visible_names(self.environment) if codes else {}
        return {
            use.name: visible[use.name]
            for code in codes
            for use in find_uses(parse_code(code))
            if (use.called or use.name not in self.frame.columns)
            and use.name in visible
            and visible[use.name] is not SAFE_FUNCTIONS.get(use.name)
        }


@dataclass(frozen=True)
class FormulaNames:
    """A formula whose names were found among columns, or where they are looked up."""

    tree: Any  # syntax tree
    # Code of every factor that is written; those too that are taken out again, since a
    # slip in their names would go unseen
    codes: list[str]
    environment: Environment  # where names that are not columns are looked up
    # Whether the formula may use all of Python; other formulas are bounded
    trusted: bool

    def model(self, columns: pd.Index) -> Model:
        """List the terms."""
        most = MAX_PRODUCTS if self.trusted else MAX_COLUMNS
        return build_model(self.tree, columns, most)


def read_names(
    formula: str,
    columns: pd.Index,
    environment: Environment | None,
    not_in_dot: tuple[str, ...],
) -> FormulaNames:
    """Read a formula as far as that needs only names; see `read_formula`."""
    trusted = environment is not None
    if not trusted and isinstance(formula, str):
        untrusted_formulas.check_text(formula)
    if not isinstance(formula, str):
        raise TypeError(
            f"`formula` must be a string like 'y ~ x1 + x2'; "
            f"got {type(formula).__name__}."
        )
    # Names that the caller has stay the caller's, whatever they mean to R.
    own = {} if environment is None else patsy_engine.visible_names(environment)
    text = r_syntax.translate_r(formula, lambda name: name in columns or name in own)
    text = settle_names(text, columns)
    text = expand_dot(text, [c for c in columns if c not in not_in_dot])
    if not trusted:
        untrusted_formulas.check_lengths([text.partition("~")[0]])
    text = wrap_response(text)
    with add_quoting_hints(formula, columns):
        r_syntax.check_signs(text)
        tree = patsy_engine.read_tree(text)
    codes = list(written_factors(tree))
    if environment is None:
        environment = patsy_engine.environment_of({**SAFE_FUNCTIONS, "np": np})
        untrusted_formulas.check_lengths(codes)
    else:
        environment = patsy_engine.add_functions(environment, SAFE_FUNCTIONS)
    with add_quoting_hints(formula, columns):
        check_names(
            codes, columns, patsy_engine.visible_names(environment), trusted=trusted
        )
    if not trusted:
        untrusted_formulas.check_trusted(codes, columns)
    return FormulaNames(tree, codes, environment, trusted)


def read_formula(
    formula: str,
    frame: pd.DataFrame,
    environment: Environment | None,
    not_in_dot: tuple[str, ...],
) -> ResolvedFormula:
    """Read a formula as `parse` does; it is bounded if there is no environment."""
    named = read_names(formula, frame.columns, environment, not_in_dot)
    if named.trusted:
        names = outside_columns(named, frame.columns, len(frame))
        frame = frame.assign(**names) if names else frame
    return resolve_formula(named, frame)


def resolve_formula(named: FormulaNames, frame: pd.DataFrame) -> ResolvedFormula:
    """List the terms; check first what an untrusted formula would cost."""
    if not named.trusted:
        untrusted_formulas.check_codes(named.codes, frame)
    model = named.model(frame.columns)
    for code in distinct_codes(model.left):
        if code not in model.columns:
            check_operands(code, frame)
    if not named.trusted:
        untrusted_formulas.check_width(model.terms, frame)
    return ResolvedFormula(model, frame, named.environment)


def check_operands(code: str, frame: pd.DataFrame) -> None:
    """Refuse text in the arithmetic of a response: `name * 2` would repeat it."""
    operands: list[ast.AST] = []
    for node in ast.walk(parse_code(code)):
        if isinstance(node, ast.BinOp):
            operands += [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            operands.append(node.operand)
    for name in (name for operand in operands for name in names_of(operand)):
        if name in frame.columns and holds_text(frame[name]):
            raise FormulaError(
                f"arithmetic on the left-hand side takes numbers; column {name!r} "
                "holds text or categories. Convert it: "
                f"data[{name!r}] = pd.to_numeric(data[{name!r}])."
            )


def outside_columns(
    named: FormulaNames, columns: pd.Index, n_rows: int
) -> dict[str, Any]:
    """Find the caller's arrays that are as long as the data: they are columns too."""
    visible = patsy_engine.visible_names(named.environment)
    names = dict.fromkeys(name for code in named.codes for name in names_in(code))
    arrays = {
        name: np.asarray(visible[name])
        for name in names
        if name not in columns
        and isinstance(visible.get(name), np.ndarray | pd.Series | list | tuple)
    }
    return {name: array for name, array in arrays.items() if array.shape == (n_rows,)}


def check_names(
    codes: Sequence[str], columns: pd.Index, names: Mapping[str, Any], *, trusted: bool
) -> None:
    """Refuse names that are neither columns nor defined where the code looks."""
    known = set(columns)
    for code in codes:
        if code in known and names_in(code) == [code]:
            continue
        tree = parse_code(code)
        for node in ast.walk(tree):
            # Python would look for a `y` within `x`, of a column `x.y`.
            if isinstance(node, ast.Attribute) and ast.unparse(node) in known:
                raise FormulaError(f"{ast.unparse(node)!r} is no name to Python.")
        r_syntax.check_prefixes(tree, known, names)
        for name, quoted, called in find_uses(tree):
            elsewhere = not quoted and (
                name in PATSY_BUILTINS or name in names or hasattr(builtins, name)
            )
            if elsewhere or (name in known and not called):
                continue
            if name in known:
                raise FormulaError(
                    f"{name!r} is a column, and {code!r} calls it like a function."
                )
            if called:
                raise FormulaError(
                    r_syntax.advise_function(name, code, tree, known, trusted=trusted)
                )
            raise FormulaError(
                f"{name!r} is not a column of the data{suggest_name(name, columns)} "
                f"The columns are {list_names(columns)}."
            )
