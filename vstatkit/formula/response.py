"""The response of a formula: an expression that gives numbers, or codes of classes."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import find_uses, names_of, parse_code
from vstatkit.formula.input_checks import check_finite, holds_text, list_names
from vstatkit.formula.patsy_engine import Matrix, SideInfo


def wrap_response(formula: str) -> str:
    """Write arithmetic on the left-hand side so that the engine computes it.

    Between terms the engine reads `-`, `*`, `/` and `**` as its own algebra. A sum of
    columns is refused: it could mean two responses.

    Examples
    --------
    >>> wrap_response("log(a) - log(b) ~ x")
    'I(log(a) - log(b)) ~ x'
    >>> wrap_response("log(a) ~ x")
    'log(a) ~ x'
    """
    left, _, right = formula.partition("~")
    left = left.strip()
    try:
        node = parse_code(left).body
    except FormulaError:
        _check_crossed(left)
        return formula  # the engine marks the place that cannot be read
    if not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp):
        return formula
    _check_sums(node, left)
    if not _reads_names(node):
        raise FormulaError(
            f"the left-hand side must be a response; {left!r} reads no column."
        )
    return f"I({left}) ~{right}"


def _check_crossed(left: str) -> None:
    """Refuse `a:b`, which is no expression, where its product may be meant."""
    parts = left.split(":")
    if len(parts) == 2 and all(part.strip().isidentifier() for part in parts):
        product = " * ".join(part.strip() for part in parts)
        raise FormulaError(
            f"{left!r} is no response: `:` joins terms of the right-hand side. Write "
            f"{product} for the product."
        )


def _check_sums(node: ast.AST, left: str) -> None:
    """Refuse sums of columns that stand by themselves, not within other arithmetic."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        is_sum = isinstance(node.op, ast.Add)
        if is_sum and _reads_names(node.left) and _reads_names(node.right):
            raise FormulaError(
                f"{left!r} could mean several responses, or their sum. Write I({left}) "
                "for the sum, or fit one response at a time."
            )
        node = node.left


def _reads_names(node: ast.AST) -> bool:
    return any(not use.called and use.name != "np" for use in find_uses(node))


def check_operands(code: str, frame: pd.DataFrame) -> None:
    """Refuse text in the arithmetic of a response: `name * 2` would repeat it."""
    for node in ast.walk(parse_code(code)):
        operands: list[ast.AST] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            operands = [node.operand]
        for name in (name for operand in operands for name in names_of(operand)):
            if name in frame.columns and holds_text(frame[name]):
                raise FormulaError(
                    f"arithmetic on the left-hand side takes numbers; column {name!r} "
                    "holds text or categories. Convert it: "
                    f"data[{name!r}] = pd.to_numeric(data[{name!r}])."
                )


@dataclass(frozen=True)
class Response:
    """What the left-hand side of a formula gives.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Numbers, or class codes.
    classes : tuple or None
        Levels of a categorical response, those that occur.
    unused_levels : tuple
        Levels that no row has.
    """

    y: Floats
    classes: tuple[Any, ...] | None
    unused_levels: tuple[Any, ...]


class DroppedRows(NamedTuple):
    """Rows that were dropped for missing values.

    Attributes
    ----------
    n_rows : int
        How many.
    n_missing : mapping of str to int
        Missing values of every column of the formula.
    """

    n_rows: int
    n_missing: Mapping[str, int]


def read_response(left: Matrix, dropped: DroppedRows) -> Response:
    """Read the response: numbers, or codes of the levels that occur."""
    values, levels = response_values(left)
    if levels is None:
        return Response(values, None, ())
    places = values.astype(np.int64)
    occurs = np.bincount(places, minlength=len(levels)) > 0
    return Response(class_codes(occurs)[places], *split_levels(levels, occurs, dropped))


def response_values(
    left: Matrix, first: int = 0
) -> tuple[Floats, tuple[Any, ...] | None]:
    """Read numbers, or the place of every row's level among all levels.

    In messages rows are counted from `first`.
    """
    levels, names = response_levels(left.info), left.info.column_names
    if levels is not None:
        return _level_places(left.values, levels), levels
    if len(names) != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(names)}."
        )
    check_finite(left.values, names, first=first)
    return left.values[:, 0], None


def response_levels(info: SideInfo) -> tuple[Any, ...] | None:
    """List all levels of the response; None for numbers."""
    factors = list(info.levels.values())
    return factors[0] if len(factors) == 1 else None


def _level_places(indicators: Floats, levels: tuple[Any, ...]) -> Floats:
    plain = indicators.shape[1] == len(levels) and np.isin(indicators, (0, 1)).all()
    if not plain or not (indicators.sum(axis=1) == 1).all():
        raise FormulaError(
            "a categorical response takes no contrast: write C(y), or y, on the "
            "left-hand side."
        )
    return np.asarray(indicators.argmax(axis=1), dtype=np.float64)


def split_levels(
    levels: tuple[Any, ...], occurs: Bools, dropped: DroppedRows
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """List the levels that occur, and those that do not; refuse fewer than two."""
    classes = tuple(level for level, used in zip(levels, occurs, strict=True) if used)
    unused = tuple(level for level in levels if level not in classes)
    if len(classes) < 2:
        raise FormulaError(
            "a categorical response needs at least two levels; got "
            f"{classes!r}{_dropping_note(dropped)}."
        )
    return classes, unused


def _dropping_note(dropped: DroppedRows) -> str:
    """Say which columns rows were dropped for, and what to do about it."""
    names = [name for name, count in dropped.n_missing.items() if count]
    if not dropped.n_rows or not names:
        return ""
    shown = list_names([repr(name) for name in names])
    return (
        f" after dropping {dropped.n_rows:,} rows with missing values (in {shown}). "
        "Leave such columns out of the formula, fill them in, or use missing='pass', "
        "with which trees keep missing numbers"
    )


def class_codes(occurs: Bools) -> Floats:
    """Give the code of every level, by its place among all levels."""
    return (np.cumsum(occurs) - 1).astype(np.float64)
