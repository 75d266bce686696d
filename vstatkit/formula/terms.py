"""The algebra of formulas, and the terms of a formula one by one."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from vstatkit.exceptions import FormulaError
from vstatkit.formula.formula_text import normalize_quotes
from vstatkit.formula.names_in_code import bare_name, columns_in, names_in

Codes = tuple[str, ...]  # python code of the factors of one term, in order
# Terms in order, by their factors: `a:b` and `b:a` are one term.
Products = dict[frozenset[str], Codes]

TWO_TILDES = "`~` may stand in a formula only once: write response ~ predictors."


@dataclass
class Side:
    """One side of a formula, or a part of it."""

    terms: Products  # terms without the intercept
    intercept: bool = False  # whether an intercept was written
    removed: bool = False  # whether the intercept was taken out


def sides(tree: Any, max_terms: int) -> tuple[Side, Side]:
    """List the terms of both sides of `left ~ right`; products are bounded."""
    if len(tree.args) != 2:
        raise FormulaError("a formula has one response, a `~` and a right-hand side.")
    left, right = (_expand(side, max_terms) for side in tree.args)
    return left, right


def written_factors(tree: Any) -> dict[str, Any]:
    """List all factors, also those that are taken out again, and where they stand."""
    factors: dict[str, Any] = {}
    for node in _bottom_up(tree):
        if node.type == "PYTHON_EXPR":
            factors.setdefault(normalize_quotes(node.token.extra), node.origin)
    return factors


def _bottom_up(tree: Any) -> list[Any]:
    """List children before their parents, left before right."""
    waiting, order = [tree], []
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.args)
    return order[::-1]


def _expand(tree: Any, max_terms: int) -> Side:
    _check_no_numbers([tree])
    stack: list[Side] = []
    for node in _bottom_up(tree):
        first = len(stack) - len(node.args)
        stack[first:] = [_evaluate(node, stack[first:], max_terms)]
    return stack[0]


def _evaluate(node: Any, parts: list[Side], max_terms: int) -> Side:
    """Evaluate one node, given what its children stand for."""
    if not parts:
        return _leaf(node)
    _check_no_numbers(node.args[: 1 if node.type == "**" else None])
    if node.type == "~":
        raise FormulaError(TWO_TILDES)
    if len(parts) == 1:
        return _unary_sign(node, parts[0])
    left, right = parts
    if node.type in ("+", "-"):
        return _add_or_subtract(node, left, right)
    if node.type == "**":
        return _power(left, node.args[1], max_terms)
    if node.type == "/":
        return _nesting(left, right, max_terms)
    crossed = _interaction(left, right, max_terms)
    if node.type == "*":
        for terms in (right.terms, crossed.terms):
            _add_terms(left.terms, terms)
        crossed = Side(left.terms)
    return crossed


def _leaf(node: Any) -> Side:
    if node.type == "PYTHON_EXPR":
        code = normalize_quotes(node.token.extra)
        return Side({frozenset([code]): (code,)})
    return Side({}, intercept=node.type == "ONE", removed=node.type == "ZERO")


def _unary_sign(node: Any, part: Side) -> Side:
    if node.type == "+":
        return part
    kind = node.args[0].type
    if kind not in ("ZERO", "ONE"):
        raise FormulaError("a minus without a left-hand side takes only 1 or 0.")
    return Side({}, intercept=kind == "ZERO", removed=kind == "ONE")


def _add_or_subtract(node: Any, left: Side, right: Side) -> Side:
    # In place: every part is used once, and a copy at each sign costs the square.
    adds = node.type == "+"
    if adds:
        _add_terms(left.terms, right.terms)
    else:
        for key in right.terms:
            left.terms.pop(key, None)
    if node.args[1].type == "ZERO":
        return Side(left.terms, intercept=not adds, removed=adds)
    if right.intercept:
        return Side(left.terms, intercept=adds, removed=not adds)
    return left


def _add_terms(terms: Products, more: Products) -> None:
    """Add terms; each keeps the order of factors in which it came first."""
    for key, codes in more.items():
        terms.setdefault(key, codes)


def _power(base: Side, exponent: Any, max_terms: int) -> Side:
    _check_no_intercept(base)
    digits = exponent.token.extra if exponent.type in ("ONE", "NUMBER") else ""
    if not (digits.isdecimal() and digits.lstrip("0")):
        raise FormulaError("`**` between terms needs a whole number above zero.")
    # No term has more factors than there are terms, whatever the exponent.
    large = len(digits) > len(str(max_terms))
    times = len(base.terms) if large else min(int(digits), len(base.terms))
    terms, last = dict(base.terms), base
    for _ in range(1, times):
        last = _interaction(base, last, max_terms)
        _add_terms(terms, last.terms)
        _check_number(len(terms), max_terms)
    return Side(terms)


def _nesting(left: Side, right: Side, max_terms: int) -> Side:
    """Expand `a / b`: a, and b within every combination of what is on the left."""
    _check_no_intercept(left)
    factors = tuple(distinct_codes(left.terms.values()))
    together = Side({frozenset(factors): factors})
    within = _interaction(together, right, max_terms)
    _add_terms(left.terms, within.terms)
    return Side(left.terms)


def _interaction(left: Side, right: Side, max_terms: int) -> Side:
    _check_no_intercept(left)
    _check_no_intercept(right)
    _check_number(len(left.terms) * len(right.terms), max_terms)
    terms: Products = {}
    for first, other in product(left.terms.values(), right.terms.values()):
        codes = tuple(dict.fromkeys(first + other))
        terms.setdefault(frozenset(codes), codes)
    return Side(terms)


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


# Functions that learn from the training data how to code new data.
STATEFUL = frozenset(
    {"center", "standardize", "scale", "bs", "cr", "cc", "te", "poly", "ns", "cut"}
)


@dataclass(frozen=True)
class Model:
    """Both sides of a formula, term by term."""

    left: tuple[Codes, ...]  # codes of the factors of every term; () is the intercept
    right: tuple[Codes, ...]
    # The column that a factor is, by its code, for factors that are nothing more
    columns: Mapping[str, str]
    # Where each factor that is written stands in the formula, for messages
    origins: Mapping[str, Any]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out where factors stand: the engine's notes on it cannot be pickled."""
        return {**self.__dict__, "origins": dict.fromkeys(self.origins)}

    @property
    def terms(self) -> tuple[Codes, ...]:
        """Terms of both sides."""
        return self.left + self.right

    def stateful_columns(self, columns: Container[str]) -> list[str]:
        """Columns that a stateful transform reads.

        A transform learns from every row, so that one missing value would make all
        its values missing; rows that lack such a column are dropped beforehand.
        """
        codes = [code for codes in self.terms for code in codes]
        stateful = (code for code in codes if STATEFUL & set(names_in(code)))
        return variables([tuple(stateful)], columns)

    def write(self) -> str:
        """Write the terms one by one, as a formula that is read the same way."""
        left, right = (
            [":".join(codes) or "1" for codes in side]
            for side in (self.left, self.right)
        )
        if "1" not in right:
            right.insert(0, "0")
        return f"{' + '.join(left)} ~ {' + '.join(right)}"


def build_model(tree: Any, columns: Iterable[str], max_terms: int) -> Model:
    """List the terms of a formula, given its syntax tree; see `sides`."""
    left, right = sides(tree, max_terms)
    both = set(distinct_codes(left.terms.values()))
    both &= set(distinct_codes(right.terms.values()))
    if both:
        raise FormulaError(
            f"{min(both)!r} stands on both sides of the formula: a response cannot be "
            "its own predictor. Take it out of the right-hand side."
        )
    origins, known = written_factors(tree), set(columns)
    return Model(
        left=_add_intercept(left.terms.values(), left.intercept),
        right=_add_intercept(right.terms.values(), not right.removed),
        columns={
            code: name
            for code in origins
            if (name := bare_name(code)) is not None and name in known
        },
        origins=origins,
    )


def _add_intercept(terms: Iterable[Codes], intercept: bool) -> tuple[Codes, ...]:
    return ((), *terms) if intercept else tuple(terms)


def distinct_codes(terms: Iterable[Codes]) -> list[str]:
    """Codes of the factors of terms, each once, in order of appearance."""
    return list(dict.fromkeys(code for codes in terms for code in codes))


def variables(terms: Iterable[Codes], columns: Container[str]) -> list[str]:
    """Columns of the data that terms read, in order of appearance."""
    names = (name for code in distinct_codes(terms) for name in columns_in(code))
    return [name for name in dict.fromkeys(names) if name in columns]
