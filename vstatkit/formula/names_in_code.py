"""Names in code: the columns and functions that the factors of a formula read."""

import ast
import keyword
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from vstatkit.exceptions import FormulaError


class Use(NamedTuple):
    """A name that stands in code."""

    name: str  # the name; of `Q("...")`, the column
    quoted: bool = False  # whether it is written `Q("...")`
    called: bool = False  # whether it is called, as functions are


def find_uses(tree: ast.AST) -> Iterator[Use]:
    """List the names that stand in code, and how."""
    nodes = list(ast.walk(tree))
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if is_quoted(node):
            yield Use(names_of(node)[0], quoted=True)
        elif isinstance(node, ast.Name) and not is_quoted(calls.get(id(node))):
            yield Use(node.id, called=id(node) in calls)


def names_in(code: str) -> list[str]:
    """Names that a piece of code reads or calls, quoted columns included."""
    return [use.name for use in _uses_in(code)]


def columns_in(code: str) -> list[str]:
    """Names in a piece of code that columns may have: those that are not called."""
    return [use.name for use in _uses_in(code) if not use.called]


def _uses_in(code: str) -> Iterable[Use]:
    return [Use(code)] if is_name(code) else find_uses(parse_code(code))


def is_name(code: str) -> bool:
    """Tell plain names at once: parsing ten thousand of them takes seconds."""
    return code.isidentifier() and not keyword.iskeyword(code)


def parse_code(code: str) -> ast.Expression:
    """Parse the code of a factor."""
    try:
        return ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(
            f"{code.strip()[:200]!r} is not an expression. A column whose name is no "
            'plain Python name is written Q("...").'
        ) from error


def bare_name(code: str) -> str | None:
    """Name of the column when the code is nothing but a column."""
    if is_name(code):
        return code
    node = parse_code(code).body
    names = names_of(node)
    return names[0] if names and isinstance(node, ast.Name | ast.Call) else None


def category_name(code: str) -> str | None:
    """Name of the column that the code takes as a category: `x` or `C(x, ...)`."""
    if is_name(code):
        return code
    node: ast.AST = parse_code(code).body
    if _is_call_of(node, "C") and node.args:
        node = node.args[0]
    return next(iter(names_of(node)), None)


def names_of(node: ast.AST) -> list[str]:
    """Names that one node of a syntax tree reads."""
    if isinstance(node, ast.Name):
        return [node.id]
    if is_quoted(node):
        return [node.args[0].value]  # type: ignore[attr-defined]
    return []


def is_quoted(node: ast.AST | None) -> bool:
    """Tell whether a node is `Q("...")`."""
    return (
        _is_call_of(node, "Q")
        and len(node.args) == 1
        and not node.keywords
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    )


def _is_call_of(node: ast.AST | None, name: str) -> TypeGuard[ast.Call]:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Name) and function.id == name
