"""The terms of a formula one by one, and what they read."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import bare_name, columns_in, names_in
from vstatkit.formula.terms import Codes, sides, written_factors

STATEFUL = frozenset(
    {"center", "standardize", "scale", "bs", "cr", "cc", "te", "poly", "ns", "cut"}
)
"""Functions that learn from the training data how to code new data."""


@dataclass(frozen=True)
class Model:
    """Both sides of a formula, term by term.

    Attributes
    ----------
    left, right : tuple of tuple of str
        Codes of the factors of every term; the intercept has none.
    columns : mapping
        The column that a factor is, by its code, for factors that are nothing more.
    origins : mapping
        Where each factor that is written stands in the formula, for messages.
    """

    left: tuple[Codes, ...]
    right: tuple[Codes, ...]
    columns: Mapping[str, str]
    origins: Mapping[str, Any]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out where factors stand: the engine's notes on it cannot be pickled."""
        return {**self.__dict__, "origins": dict.fromkeys(self.origins)}

    @property
    def terms(self) -> tuple[Codes, ...]:
        """Terms of both sides."""
        return self.left + self.right

    def stateful(self, columns: Container[str]) -> list[str]:
        """Columns that a stateful transform reads.

        A transform learns from every row, so that one missing value would make all
        its values missing; rows that lack such a column are dropped beforehand.
        """
        names = [
            name
            for code in distinct(self.terms)
            if STATEFUL & set(names_in(code))
            for name in columns_in(code)
        ]
        return [name for name in dict.fromkeys(names) if name in columns]

    def written(self) -> str:
        """Write the terms one by one, as a formula that is read the same way."""
        left, right = (
            [":".join(codes) or "1" for codes in side]
            for side in (self.left, self.right)
        )
        if "1" not in right:
            right.insert(0, "0")
        return f"{' + '.join(left)} ~ {' + '.join(right)}"


def model_of(tree: Any, columns: Iterable[str], max_terms: int) -> Model:
    """List the terms of a formula.

    Parameters
    ----------
    tree : Any
        Syntax tree of the formula.
    columns : iterable of str
        Columns of the data.
    max_terms : int
        Products of more terms than these are refused.
    """
    left, right = sides(tree, max_terms)
    _check_response(left.terms.values(), right.terms.values())
    origins = written_factors(tree)
    held = set(columns)
    bare = {code: bare_name(code) for code in origins}
    return Model(
        left=_with_intercept(left.terms.values(), left.intercept),
        right=_with_intercept(right.terms.values(), not right.removed),
        columns={
            code: name
            for code, name in bare.items()
            if name is not None and name in held
        },
        origins=origins,
    )


def _check_response(left: Iterable[Codes], right: Iterable[Codes]) -> None:
    """Refuse a response that is a predictor too: it would predict itself."""
    both = set(distinct(left)) & set(distinct(right))
    if both:
        name = sorted(both)[0]
        raise FormulaError(
            f"{name!r} stands on both sides of the formula: a response cannot be its "
            "own predictor. Take it out of the right-hand side."
        )


def _with_intercept(terms: Iterable[Codes], intercept: bool) -> tuple[Codes, ...]:
    return ((), *terms) if intercept else tuple(terms)


def distinct(terms: Iterable[Codes]) -> list[str]:
    """Codes of the factors of terms, each once, in order of appearance."""
    return list(dict.fromkeys(code for codes in terms for code in codes))


def variables(terms: Iterable[Codes], columns: Container[str]) -> list[str]:
    """Columns of the data that terms read, in order of appearance."""
    names = (name for code in distinct(terms) for name in columns_in(code))
    return [name for name in dict.fromkeys(names) if name in columns]
