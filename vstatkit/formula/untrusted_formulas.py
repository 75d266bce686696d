"""Formulas from untrusted sources: the code that they may have, bounds on its cost."""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_checks import is_number_kind
from vstatkit.formula.formula_text import PATSY_BUILTINS
from vstatkit.formula.names_in_code import (
    bare_name,
    find_uses,
    is_quoted,
    names_in,
    parse_code,
)
from vstatkit.formula.transforms import cut, log, ns, poly, r_round

MAX_LENGTH = 1_000_000  # characters of a formula
MAX_SIGNS = 30_000  # operators, commas and brackets of a formula
MAX_NESTING = 40  # brackets within brackets, and operations within operations
MAX_CODE = 5_000  # characters of the code of one factor
MAX_NODES = 10_000  # operations, calls, names and numbers in the code of all factors
MAX_WHOLE = 2**63  # whole numbers, written or computed from written ones
MAX_DEGREE = 100  # degree, degrees of freedom or knots of a spline or polynomial
MAX_LEVELS = 1_000  # levels of a category
# Columns of the design matrix that are more than a column of the data.
MAX_COLUMNS = 5_000
MAX_ENTRIES = 10**8  # numbers in those columns

_CONTRASTS = frozenset({"Treatment", "Poly", "Sum", "Helmert", "Diff"})
_SCALERS = frozenset({"center", "standardize", "scale"})
# Leading arguments of what makes several columns of one.
_SPLINES = {
    "bs": ("x", "df", "knots", "degree"),
    "cr": ("x", "df", "knots"),
    "cc": ("x", "df", "knots"),
    "poly": ("x", "degree"),
    "ns": ("x", "df", "knots"),
    "cut": ("x", "breaks"),
}

_ARITY = {"where": (3, 3), "clip": (3, 3), "log": (1, 2), "I": (1, 1), "C": (1, 3)}

# Functions that round, and what they call the number of digits.
_ROUNDING = {"round": "decimals", "r_round": "digits"}
_KEYWORDS = {"log": ("base",)}  # arguments of elementwise functions that may be named

# numpy's elementwise functions and some of R's: they compute, nothing else.
SAFE_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).signature is None
}
SAFE_FUNCTIONS |= {"where": np.where, "clip": np.clip, "round": np.round}
SAFE_FUNCTIONS |= {"r_round": r_round, "log": log, "poly": poly, "ns": ns, "cut": cut}

_SAFE_NODES = (
    *(ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword),
    *(ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp, ast.List, ast.Tuple),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)


def check_text(formula: str) -> None:
    """Refuse formulas that are too long, or nested too deeply, to be read."""
    if len(formula) > MAX_LENGTH or sum(map(formula.count, "+-*/:~,([{")) > MAX_SIGNS:
        raise FormulaError(
            f"a formula given as text may have {MAX_LENGTH:,} characters and "
            f"{MAX_SIGNS:,} signs; this one has more. Use `.` for all columns."
        )
    depth = 0
    for letter in formula:
        depth += (letter in "([{") - (letter in ")]}")
        _check_nesting(depth)


def check_trusted(codes: Iterable[str], columns: pd.Index) -> None:
    """Refuse code in a formula that came from a command line or a file."""
    names = set(columns)
    trees = (parse_code(code) for code in codes if code not in names)
    for node in (node for tree in trees for node in ast.walk(tree)):
        if not _is_trusted(node, columns):
            raise _refusal(
                node,
                "only columns, arithmetic, patsy's built-ins and numpy's elementwise "
                "functions are.",
            )


def _is_trusted(node: ast.AST, columns: pd.Index) -> bool:
    if isinstance(node, ast.Attribute):
        numpys = isinstance(node.value, ast.Name) and node.value.id == "np"
        return numpys and "np" not in columns and node.attr in SAFE_FUNCTIONS
    if isinstance(node, ast.Call):
        # A column is never called: the engine looks functions up, whatever columns are.
        return isinstance(node.func, ast.Attribute) or (
            isinstance(node.func, ast.Name)
            and (node.func.id in PATSY_BUILTINS or node.func.id in SAFE_FUNCTIONS)
        )
    if isinstance(node, ast.Name):
        known = (columns, PATSY_BUILTINS, SAFE_FUNCTIONS, ("np",))
        return any(node.id in names for names in known)
    return isinstance(node, _SAFE_NODES)


def shorten_code(node: ast.AST) -> str:
    """Write code for a message: its beginning, or what it is."""
    try:
        return ast.unparse(node)[:80]
    except (RecursionError, ValueError):
        return type(node).__name__


def check_lengths(codes: Sequence[str]) -> None:
    """Refuse factors that are too long to be parsed."""
    for code in codes:
        if len(code) > MAX_CODE:
            raise FormulaError(
                f"a factor of a formula given as text may have {MAX_CODE:,} "
                f"characters; {code[:40]!r}... has {len(code):,}."
            )


def check_codes(codes: Sequence[str], frame: pd.DataFrame) -> None:
    """Refuse code that could take more time or memory than the data call for."""
    kinds = {
        str(name): "number" if is_number_kind(kind) or kind.kind == "b" else "text"
        for name, kind in frame.dtypes.items()
    }
    left = MAX_NODES
    for code in codes:
        if bare_name(code) in kinds:
            continue
        tree = parse_code(code)
        left -= sum(1 for _ in ast.walk(tree))
        if left < 0:
            raise FormulaError(
                f"a formula given as text may have {MAX_NODES:,} operations, names and "
                "numbers; this one has more."
            )
        _Judge(kinds).kind(tree.body)


def check_width(terms: Sequence[Sequence[str]], frame: pd.DataFrame) -> None:
    """Refuse products and splines that make too many columns."""
    codes = dict.fromkeys(code for term in terms for code in term)
    widths = {code: _width(parse_code(code).body, frame) for code in codes}
    total = 0
    for term in terms:
        count = math.prod(widths[code] for code in term)
        plain = len(term) == 1 and term[0] in frame.columns and count == 1
        total += 0 if plain else count
    bound = min(MAX_COLUMNS, MAX_ENTRIES // max(1, len(frame)))
    if total > bound:
        raise FormulaError(
            f"the formula makes {total:,} columns of the design matrix; a formula "
            f"given as text may make {bound:,} besides those of the data."
        )


def _check_nesting(depth: int) -> None:
    if depth > MAX_NESTING:
        raise FormulaError(
            f"a formula given as text may be nested {MAX_NESTING} deep; this one is "
            "more."
        )


def _refusal(node: ast.AST, why: str) -> FormulaError:
    return FormulaError(
        f"{shorten_code(node)!r} is not allowed in a formula given as text: {why}"
    )


class _Judge:
    """Tell what an expression gives: "number", "text", "category" or "setting"."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._depth = 0

    def kind(self, node: ast.AST) -> str:
        self._depth += 1
        _check_nesting(self._depth)
        kind = self._kind(node)
        self._depth -= 1
        return kind

    def _kind(self, node: ast.AST) -> str:
        if is_quoted(node):
            return self._columns.get(node.args[0].value, "setting")  # type: ignore[attr-defined]
        judges: dict[type[ast.AST], Callable[[Any], str]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.UnaryOp: self._unary_operation,
            ast.BinOp: self._binary_operation,
            ast.Compare: self._compare,
            ast.Call: self._call,
            ast.List: self._list,
            ast.Tuple: self._list,
        }
        if type(node) not in judges:
            raise _refusal(node, "only arithmetic on columns is.")
        return judges[type(node)](node)

    def numbers(self, nodes: Sequence[ast.AST]) -> None:
        """Refuse operands that are not numbers: a product repeats text and lists."""
        for node in nodes:
            if self.kind(node) != "number":
                raise _refusal(node, "arithmetic takes numbers.")

    def _constant(self, node: ast.Constant) -> str:
        if isinstance(node.value, bool | int | float):
            _check_whole(node, node.value)
            return "number"
        if node.value is not None and not isinstance(node.value, str):
            raise _refusal(node, "numbers and text are.")
        return "setting" if node.value is None else "text"

    def _name(self, node: ast.Name) -> str:
        if node.id in self._columns:
            return self._columns[node.id]
        if node.id not in _CONTRASTS:
            raise _refusal(node, "a function needs its arguments.")
        return "setting"

    def _unary_operation(self, node: ast.UnaryOp) -> str:
        self.numbers([node.operand])
        if not isinstance(node.op, ast.UAdd | ast.USub) and not _reads_data(node):
            raise _refusal(node, "conditions are on columns.")
        if isinstance(node.op, ast.Not):
            raise _refusal(node, "write ~ for not.")
        return "number"

    def _binary_operation(self, node: ast.BinOp) -> str:
        self.numbers([node.left, node.right])
        if not _reads_data(node):
            _fold(node)
        return "number"

    def _compare(self, node: ast.Compare) -> str:
        known = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        usual = all(isinstance(sign, known) for sign in node.ops)
        if not usual or not _reads_data(node):
            raise _refusal(node, "conditions are ==, !=, <, <=, > and >= on columns.")
        for side in (node.left, *node.comparators):
            if self.kind(side) not in ("number", "text"):
                raise _refusal(side, "conditions compare numbers or text.")
        return "number"

    def _list(self, node: ast.List | ast.Tuple) -> str:
        self._settings(node.elts)
        return "setting"

    def _settings(self, nodes: Sequence[ast.AST]) -> None:
        """Refuse options of functions that are computed from columns."""
        for node in nodes:
            if _reads_data(node) or self.kind(node) == "category":
                raise _refusal(node, "options are numbers, text, lists or contrasts.")

    def _call(self, node: ast.Call) -> str:
        name = _function_name(node)
        if any(keyword.arg is None for keyword in node.keywords):
            raise _refusal(node, "arguments are written one by one.")
        if name in SAFE_FUNCTIONS and name not in _SPLINES:
            return self._elementwise_call(node, name)
        if name == "Q":
            raise _refusal(node, "Q takes one text, the name of a column.")
        options: list[ast.AST] = [keyword.value for keyword in node.keywords]
        if name in _CONTRASTS or name == "ContrastMatrix":
            self._settings([*node.args, *options])
            return "setting"
        if name == "te":
            self.numbers(node.args)
            self._settings(options)
        else:
            low, high = _ARITY.get(name, (1, 8))
            if not low <= len(node.args) <= high:
                raise _refusal(node, f"{name} has other arguments.")
            self._settings([*node.args[1:], *options])
        if name in _SPLINES or name in _SCALERS or name == "te":
            self.numbers(node.args[:1])
            _spline_columns(node)
            return "category" if name == "cut" else "number"
        kind = self.kind(node.args[0])
        return "category" if name == "C" else kind

    def _elementwise_call(self, node: ast.Call, name: str) -> str:
        """Judge numpy's functions: without `out`, which would write into the data."""
        if name in _ROUNDING:
            return self._rounding_call(node, _ROUNDING[name])
        n_inputs = getattr(SAFE_FUNCTIONS[name], "nin", 0)
        low, high = _ARITY.get(name, (n_inputs, n_inputs))
        known = _KEYWORDS.get(name, ())
        named = [keyword.value for keyword in node.keywords if keyword.arg in known]
        given = [*node.args, *named]
        if not low <= len(given) <= high or len(named) < len(node.keywords):
            raise _refusal(node, f"{name} takes {high} columns or numbers here.")
        if name == "where":
            self.numbers(node.args[:1])
            kinds = {self.kind(argument) for argument in node.args[1:]}
            if not kinds <= {"number", "text"}:
                raise _refusal(node, "where gives numbers or text.")
            return "text" if "text" in kinds else "number"
        self.numbers(given)
        return "number"

    def _rounding_call(self, node: ast.Call, option: str) -> str:
        """Judge rounding: a column, and how many digits of it."""
        named = [keyword.value for keyword in node.keywords if keyword.arg == option]
        digits = [*node.args[1:], *named]
        if len(named) < len(node.keywords) or not node.args or len(digits) > 1:
            raise _refusal(node, f"rounding takes a column and its `{option}`.")
        if any(abs(_whole_number(number, node)) > MAX_DEGREE for number in digits):
            raise _refusal(node, f"at most {MAX_DEGREE} digits are.")
        self.numbers(node.args[:1])
        return "number"


def _function_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    if isinstance(node.func, ast.Name):
        return node.func.id
    raise _refusal(node, "functions are called by their names.")


def _reads_data(node: ast.AST) -> bool:
    """Tell whether a value comes from numpy, where all numbers have one size."""
    return any(
        use.quoted
        or not (use.name in _CONTRASTS or (use.called and use.name in _UNCHANGED))
        for use in find_uses(node)
    )


# Names whose calls hand on numbers of Python's.
_UNCHANGED = _CONTRASTS | {"I", "ContrastMatrix"}

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _check_whole(node: ast.AST, value: Any) -> None:
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        raise _refusal(node, "whole numbers have at most 19 digits.")


def _fold(node: ast.AST) -> Any:
    """Compute a number that stands for itself, every step within bounds."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _fold(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if (
        isinstance(node, ast.Call)
        and _function_name(node) == "I"
        and len(node.args) == 1
    ):
        return _fold(node.args[0])
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
        raise _refusal(node, "numbers are written out, or computed by + - * / // % **.")
    left, right = _fold(node.left), _fold(node.right)
    if isinstance(node.op, ast.Pow) and abs(right) > 64:
        raise _refusal(node, "exponents of written numbers are at most 64.")
    try:
        value = _OPERATORS[type(node.op)](left, right)
    except (ArithmeticError, ValueError) as error:
        raise _refusal(node, f"{error}.") from error
    if isinstance(value, complex):
        raise _refusal(node, "it is no real number.")
    _check_whole(node, value)
    return value


def _whole_number(node: ast.AST, call: ast.AST) -> int:
    value = _fold(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refusal(call, "degrees and digits are whole numbers.")
    return value


def _spline_columns(node: ast.Call) -> int:
    """Bound the columns that a spline or polynomial of one variable makes."""
    given = dict(zip(_SPLINES.get(_function_name(node), ()), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    total = 1
    for option in ("df", "degree", "knots", "breaks"):
        value = given.get(option)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            continue
        if isinstance(value, ast.List | ast.Tuple):
            count = len(value.elts)
        else:
            count = _whole_number(value, node)
        if count > MAX_DEGREE:
            raise _refusal(node, f"{option} is at most {MAX_DEGREE}.")
        total += max(0, count)
    return total


def _width(node: ast.AST, frame: pd.DataFrame) -> int:
    """Bound the columns that a factor makes."""
    if not isinstance(node, ast.Call) or is_quoted(node):
        return _levels(node, frame, numbers=False)
    name = _function_name(node)
    if name == "C":
        return _levels(node.args[0], frame, numbers=True)
    if name in _SPLINES:
        return _spline_columns(node)
    widths = [_width(argument, frame) for argument in node.args]
    return math.prod(widths) if name == "te" else max(widths, default=1)


def _levels(node: ast.AST, frame: pd.DataFrame, *, numbers: bool) -> int:
    """Bound the levels of a category by the rows of its columns that differ."""
    if isinstance(node, ast.Compare):
        return 2
    read = [node.id] if isinstance(node, ast.Name) else names_in(ast.unparse(node))
    names = list(dict.fromkeys(name for name in read if name in frame.columns))
    kinds = [frame[name].dtype for name in names]
    if not names or (not numbers and all(map(is_number_kind, kinds))):
        return 1
    if len(names) == 1 and isinstance(kinds[0], pd.CategoricalDtype):
        count = len(kinds[0].categories)
    elif len(names) == 1:
        count = frame[names[0]].nunique(dropna=False)
    else:
        count = len(frame[names].drop_duplicates())
    if count > MAX_LEVELS:
        raise FormulaError(
            f"{shorten_code(node)!r} may have {count:,} levels; in a formula given "
            f"as text a category has at most {MAX_LEVELS:,}."
        )
    return max(1, count)
