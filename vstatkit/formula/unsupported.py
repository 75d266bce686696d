"""Notation of other packages that formulas do not have, and what to write instead."""

import ast
import re
from collections.abc import Container, Mapping
from typing import Any

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import (
    PATSY_BUILTINS,
    SAFE_FUNCTIONS,
    quote,
    tokenize_line,
)
from vstatkit.formula.input_checks import suggest_name

_SHIFTED = (
    "formulas do not shift rows. Compute the column before the fit, from rows in "
    "order of time, such as data[{new!r}] = data[{old!r}]{how} (with panels "
    "data.groupby('id')[{old!r}]{how}), and write {new} in the formula."
)

SHIFTS = {
    "lag": ("lag", ".shift(1)"),
    "Lag": ("lag", ".shift(1)"),
    "L": ("lag", ".shift(1)"),
    "shift": ("lag", ".shift(1)"),
    "lead": ("lead", ".shift(-1)"),
    "F": ("lead", ".shift(-1)"),
    "diff": ("diff", ".diff()"),
    "d": ("diff", ".diff()"),
    "D": ("diff", ".diff()"),
    "S": ("diff", ".diff()"),
}
"""Operators on time, of R and Stata: what the column is called, how pandas does it."""

_SMOOTH = (
    "Trees need no smooth terms: write the column alone. For kernels that are linear "
    "in their columns use bs(x, df=5) or cr(x, df=5)."
)

_LEVELS = (
    "Set the levels in the data, as by pd.Categorical(values, levels, ordered=True)."
)

OTHER_FUNCTIONS = {
    **dict.fromkeys(("s", "ti", "t2", "lo", "rcs", "pspline"), _SMOOTH),
    **dict.fromkeys(
        ("rank", "cumsum", "mean", "sd", "median", "quantile"),
        "Formulas apply functions element by element, because learners see subsamples. "
        "Compute a column of the data first.",
    ),
    **dict.fromkeys(
        ("strata", "cluster", "frailty", "re"),
        "Give clusters of rows as groups='column'; they are resampled whole.",
    ),
    **dict.fromkeys(("ordered", "relevel"), _LEVELS),
}
"""Advice for functions that have no counterpart."""

_STATA = re.compile(r"(?P<kind>i|ib\d+|c|[LFDS])(?P<steps>\d*)")

_CROSSED = re.compile(r"(?<![\w.])(?:i|ib\d+|c)\.(\w+)\s*##?\s*(?:i|ib\d+|c)\.(\w+)")


def check_signs(formula: str) -> None:
    """Refuse `i.a#c.b`, in which Python sees a comment, and bars between terms."""
    match = _CROSSED.search(formula)
    if match is not None:
        a, b = map(quote, match.groups())
        sign = "*" if "##" in match[0] else ":"
        raise FormulaError(
            f"{match[0]!r} is Stata's notation. Write {a}{sign}{b}; a column of "
            f"numbers is a factor as C({a})."
        )
    if "|" in formula:
        _check_bars(formula.strip())


def _check_bars(formula: str) -> None:
    """Refuse bars outside of calls; `I(a | b)` is Python's."""
    opened: list[tuple[int, bool]] = []
    start, before = 0, ""
    for token in tokenize_line(formula):
        sign, (_, place) = token.string, token.start
        if sign in ("(", "["):
            opened.append((place + 1, sign == "[" or before.isidentifier()))
        elif sign in (")", "]") and opened:
            opened.pop()
        elif sign == "~" and not opened:
            start = place + 1
        elif sign in ("|", "||") and not any(call for _, call in opened):
            raise FormulaError(
                _bar_message(formula, opened[-1][0] if opened else start, place)
            )
        before = sign


def _bar_message(formula: str, start: int, place: int) -> str:
    left = formula[start:place].strip()
    after = re.match(r"[^()|]*(?:\([^()]*\)[^()|]*)*", formula[place:].lstrip("|"))
    right = "" if after is None else after[0].strip()
    instead = f"For clusters, or random intercepts by {right}, use groups={right!r}."
    if not left.isdecimal():
        instead = (
            f"To adjust for {right} write {left} + {right}, or C({right}) for fixed "
            f"effects; for clusters use groups={right!r}; instruments are not "
            "supported."
        )
    return (
        f"`|` between terms is not supported in formulas; got '{left} | {right}'. "
        f"{instead} A condition is written I((a > 0) | (b > 0))."
    )


def check_prefixes(
    tree: ast.AST, columns: Container[str], names: Mapping[str, Any]
) -> None:
    """Refuse Stata's prefixes, such as `L.x` and `i.x`.

    Parameters
    ----------
    tree : ast.AST
        Code of one factor, parsed.
    columns : container of str
        Columns of the data.
    names : mapping
        Other names that the formula sees.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            _check_prefix(node.value.id, node.attr, columns, names)


def _check_prefix(
    prefix: str, column: str, columns: Container[str], names: Mapping[str, Any]
) -> None:
    match = _STATA.fullmatch(prefix)
    if match is None or prefix in columns or column not in columns:
        return
    if prefix in names and hasattr(names[prefix], column):
        return
    written = f"{prefix}.{column}"
    if match["kind"] in SHIFTS:
        raise FormulaError(
            f"{written!r} is Stata's notation, and "
            f"{_shift_advice(match['kind'], column, match['steps'])}"
        )
    plain = quote(column)
    instead = plain if match["kind"] == "c" else f"C({plain})"
    raise FormulaError(f"{written!r} is Stata's notation; write {instead}.")


def _shift_advice(function: str, column: str, steps: str = "") -> str:
    what, how = SHIFTS[function]
    periods = steps or "1"
    if periods != "1":
        how = {
            ".shift(1)": f".shift({periods})",
            ".shift(-1)": f".shift(-{periods})",
        }.get(how, f".diff({periods})")
    return _SHIFTED.format(new=f"{column}_{what}{periods}", old=column, how=how)


def advise_function(
    name: str, code: str, tree: ast.AST, columns: Container[str], *, trusted: bool
) -> str:
    """Say that a function is unknown, and what to do instead.

    Parameters
    ----------
    name : str
        What is called.
    code : str
        Code of the factor that calls it.
    tree : ast.AST
        The same, parsed.
    columns : container of str
        Columns of the data.
    trusted : bool
        Whether formulas may call functions of the caller's.
    """
    call = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
    )
    said = f"there is no function {name!r}, which {code[:80]!r} calls"
    arguments = [
        argument.id for argument in call.args if isinstance(argument, ast.Name)
    ]
    column = next((name for name in arguments if name in columns), "x")
    if name in SHIFTS:
        more = call.args[1] if len(call.args) > 1 else None
        whole = isinstance(more, ast.Constant) and isinstance(more.value, int)
        steps = str(more.value) if whole else ""  # type: ignore[union-attr]
        return f"{said}; {_shift_advice(name, column, steps)}"
    if name in OTHER_FUNCTIONS:
        return f"{said}. {OTHER_FUNCTIONS[name]}"
    define = f"Define {name} where you call `fit`, or compute" if trusted else "Compute"
    known = [*SAFE_FUNCTIONS, *PATSY_BUILTINS] if len(name) > 3 else []
    return (
        f"{said}{suggest_name(name, known)} Formulas know "
        "numpy's elementwise functions (log, sqrt, exp), C, I, poly, bs, cut. "
        f"{define} a column of the data first, such as data['{name}_{column}']."
    )
