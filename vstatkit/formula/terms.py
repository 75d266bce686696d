"""The algebra of formulas: which terms a right- or left-hand side stands for.

Works on the syntax tree that patsy's parser gives, without recursion, so that sums
of ten thousand columns are read like sums of two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import canonical

Codes = tuple[str, ...]
"""Python code of the factors of one term, in order."""

Products = dict[frozenset[str], Codes]
"""Terms in order, by their factors: `a:b` and `b:a` are one term."""

TWO_TILDES = "`~` may stand in a formula only once: write response ~ predictors."


@dataclass
class Side:
    """One side of a formula, or a part of it.

    Attributes
    ----------
    terms : dict
        Terms without the intercept.
    intercept : bool
        Whether an intercept was written.
    removed : bool
        Whether the intercept was taken out.
    """

    terms: Products
    intercept: bool = False
    removed: bool = False


def sides(tree: Any, max_terms: int) -> tuple[Side, Side]:
    """List the terms of both sides of `left ~ right`.

    Parameters
    ----------
    tree : patsy.infix_parser.ParseNode
        Syntax tree of a formula.
    max_terms : int
        Products of more terms than these are refused.

    Returns
    -------
    left, right : Side
    """
    if len(tree.args) != 2:
        raise FormulaError("a formula has one response, a `~` and a right-hand side.")
    left, right = (_expand(side, max_terms) for side in tree.args)
    return left, right


def written_factors(tree: Any) -> dict[str, Any]:
    """List the code of every factor that is written, and where it stands.

    Factors that are taken out again are among them.
    """
    found: dict[str, Any] = {}
    for node in _bottom_up(tree):
        if node.type == "PYTHON_EXPR":
            found.setdefault(canonical(node.token.extra), node.origin)
    return found


def _bottom_up(tree: Any) -> Iterator[Any]:
    """Visit children before their parents, left before right."""
    waiting, order = [tree], []
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.args)
    yield from reversed(order)


def _expand(tree: Any, max_terms: int) -> Side:
    _check_no_numbers([tree])
    found: list[Side] = []
    for node in _bottom_up(tree):
        count = len(node.args)
        parts = found[len(found) - count :]
        del found[len(found) - count :]
        found.append(_evaluate(node, parts, max_terms))
    return found[0]


def _evaluate(node: Any, parts: list[Side], max_terms: int) -> Side:
    """Evaluate one node, given what its children stand for."""
    if not parts:
        return _leaf(node)
    _check_no_numbers(node.args[: 1 if node.type == "**" else None])
    if len(parts) == 1:
        return _unary(node, parts[0])
    left, right = parts
    if node.type in ("+", "-"):
        combine = _plus if node.type == "+" else _minus
        return combine(left, right, literal_zero=node.args[1].type == "ZERO")
    if node.type == "**":
        return _power(left, node.args[1], max_terms)
    return _product(node.type, left, right, max_terms)


def _product(sign: str, left: Side, right: Side, max_terms: int) -> Side:
    if sign == "~":
        raise FormulaError(TWO_TILDES)
    if sign == "/":
        return _nested(left, right, max_terms)
    crossed = _interaction(left, right, max_terms)
    if sign == ":":
        return crossed
    return Side(_union(left.terms, right.terms, crossed.terms))


def _leaf(node: Any) -> Side:
    if node.type == "PYTHON_EXPR":
        code = canonical(node.token.extra)
        return Side({frozenset([code]): (code,)})
    return Side({}, intercept=node.type == "ONE", removed=node.type == "ZERO")


def _unary(node: Any, part: Side) -> Side:
    if node.type == "+":
        return part
    if node.type == "~":
        raise FormulaError(TWO_TILDES)
    kind = node.args[0].type
    if kind not in ("ZERO", "ONE"):
        raise FormulaError("a minus without a left-hand side takes only 1 or 0.")
    return Side({}, intercept=kind == "ZERO", removed=kind == "ONE")


def _plus(left: Side, right: Side, *, literal_zero: bool) -> Side:
    # In place: every part is used once, and a copy at each plus costs the square.
    for key, codes in right.terms.items():
        left.terms.setdefault(key, codes)
    if literal_zero:
        return Side(left.terms, removed=True)
    if right.intercept:
        return Side(left.terms, intercept=True)
    return left


def _minus(left: Side, right: Side, *, literal_zero: bool) -> Side:
    for key in right.terms:
        left.terms.pop(key, None)
    if literal_zero:
        return Side(left.terms, intercept=True)
    if right.intercept:
        return Side(left.terms, removed=True)
    return left


def _power(base: Side, exponent: Any, max_terms: int) -> Side:
    _check_no_intercept(base)
    digits = exponent.token.extra if exponent.type in ("ONE", "NUMBER") else ""
    whole = digits.isdecimal() and len(digits.lstrip("0")) > 0
    if not whole:
        raise FormulaError("`**` between terms needs a whole number above zero.")
    # No term has more factors than there are terms, whatever the exponent.
    large = len(digits) > len(str(max_terms))
    times = len(base.terms) if large else min(int(digits), len(base.terms))
    terms, last = dict(base.terms), base
    for _ in range(1, times):
        last = _interaction(base, last, max_terms)
        for key, codes in last.terms.items():
            terms.setdefault(key, codes)
        _check_number(len(terms), max_terms)
    return Side(terms)


def _nested(left: Side, right: Side, max_terms: int) -> Side:
    """Expand `a / b`: a, and b within every combination of what is on the left."""
    _check_no_intercept(left)
    factors = tuple(dict.fromkeys(code for one in left.terms.values() for code in one))
    together = Side({frozenset(factors): factors})
    within = _interaction(together, right, max_terms)
    return Side(_union(left.terms, within.terms))


def _interaction(left: Side, right: Side, max_terms: int) -> Side:
    _check_no_intercept(left)
    _check_no_intercept(right)
    _check_number(len(left.terms) * len(right.terms), max_terms)
    terms: Products = {}
    for one in left.terms.values():
        for other in right.terms.values():
            codes = tuple(dict.fromkeys(one + other))
            terms.setdefault(frozenset(codes), codes)
    return Side(terms)


def _union(*parts: Products) -> Products:
    """Join terms; each keeps the order of factors in which it came first."""
    found: Products = {}
    for part in parts:
        for key, codes in part.items():
            found.setdefault(key, codes)
    return found


def _check_no_numbers(nodes: Sequence[Any]) -> None:
    for node in nodes:
        if node.type == "NUMBER":
            raise FormulaError(
                f"a number stands for a term only as 0 or 1; got {node.token.extra}. "
                "Arithmetic is written I(...)."
            )


def _check_no_intercept(part: Side) -> None:
    if part.intercept:
        raise FormulaError("the intercept, 1, cannot interact with other terms.")


def _check_number(count: int, max_terms: int) -> None:
    if count > max_terms:
        raise FormulaError(
            f"the formula has products of {count:,} terms or more; at most "
            f"{max_terms:,} are allowed. Write the terms that matter one by one."
        )
