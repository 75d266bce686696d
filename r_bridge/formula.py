"""Translate R's formulas into patsy's, or say what cannot be translated."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import quote

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
  | (?P<backtick>`(?:[^`\\]|\\.)*`)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>(?:[^\W\d_]|\.(?!\d))[\w.]*)
  | (?P<operator>%[^%\s]*%|:::?|<-|->|\|\||\||&&|&|[=!<>]=|\*\*
      |[-+*/^~:(),=<>!\[\]{}$@?;])
    """,
    re.VERBOSE,
)

SAME_FUNCTIONS = frozenset(
    {"I", "C", "Q", "bs", "poly", "log", "exp", "sqrt", "abs", "sign", "floor"}
    | {"sin", "cos", "tan", "sinh", "cosh", "tanh", "trunc"}
    | {"log2", "log10", "log1p", "expm1", "round"}
)
"""Functions that R and our formulas have under the same name."""

RENAMED_FUNCTIONS = {
    "factor": "C",
    "as.factor": "C",
    "ifelse": "where",
    "ceiling": "ceil",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "pmin": "minimum",
    "pmax": "maximum",
}
"""Functions that have another name here."""

KNOWN_FUNCTIONS = SAME_FUNCTIONS | set(RENAMED_FUNCTIONS)
"""Functions of R's that can be translated."""

ROUND = "r_round"
"""R's rounding to digits; numpy's, which is `round` here, differs in the last one."""

ONE_ARGUMENT = frozenset({"log", "factor", "as.factor", "C", "Q"})
"""Functions whose further arguments mean something else here, or nothing."""

_CONSTANTS = {"TRUE": "True", "FALSE": "False"}

_SHORT_CONSTANTS = {"T": "True", "F": "False"}
"""Truth values where they are given to an option; elsewhere they are columns."""

_OPERATORS = {"^": "**"}

_UNTRANSLATABLE = {
    "|": "conditioning, or a logical or",
    "||": "a logical or",
    "&": "a logical and",
    "&&": "a logical and",
    "!": "a logical not",
    "$": "access to a part",
    "@": "access to a slot",
    "[": "indexing",
    "]": "indexing",
    "::": "a package's function",
    ":::": "a package's function",
    "<-": "an assignment",
    "->": "an assignment",
    "{": "a block of code",
    "}": "a block of code",
    "?": "help",
    ";": "a second statement",
}


@dataclass(frozen=True)
class Token:
    """A word of a formula: its kind and its text."""

    kind: str
    text: str


def translate_formula(formula: str) -> str:
    """Write an R formula as vstatkit reads it.

    Parameters
    ----------
    formula : str
        As in R: `I(x^2)`, `poly(x, 2)`, `.`, `log(y)`, `a:b`, `a*b`, `-1`,
        backticks, names with dots. What patsy and R write alike, `Q("my x")`
        too, stays.

    Returns
    -------
    str
        A formula for `vstatkit.fit`.

    Examples
    --------
    >>> translate_formula("log(y) ~ I(x^2) + `my x` + Sepal.Width - 1")
    'log(y) ~ I(x**2) + Q("my x") + Q("Sepal.Width") - 1'
    >>> translate_formula("y ~ factor(g) + poly(x, 2, raw = TRUE)")
    'y ~ C(g) + poly(x, 2, raw = True)'
    """
    if not isinstance(formula, str):
        raise TypeError(
            f"`formula` must be text like 'y ~ x1 + x2'; got {type(formula).__name__}."
        )
    tokens = tokenize(formula)
    written = []
    for place, token in enumerate(tokens):
        written.append(_WRITERS[token.kind](tokens, place))
    return "".join(written)


def tokenize(formula: str) -> list[Token]:
    """Split an R formula into tokens, spaces included."""
    found, place = [], 0
    while place < len(formula):
        match = _TOKEN.match(formula, place)
        if match is None:
            raise FormulaError(
                f"cannot read the R formula {formula!r}: {formula[place]!r} at "
                f"position {place} is nothing that R's formulas have."
            )
        found.append(Token(str(match.lastgroup), match.group()))
        place = match.end()
    return found


def _same(tokens: Sequence[Token], place: int) -> str:
    return tokens[place].text


def _number(tokens: Sequence[Token], place: int) -> str:
    text = tokens[place].text.removesuffix("L")
    power = _next_text(tokens, place) == "^" or _is_negative_power(tokens, place)
    # R computes powers of whole numbers as decimals; numpy refuses negative ones.
    return f"{text}.0" if power and text.isdigit() else text


def _backtick(tokens: Sequence[Token], place: int) -> str:
    inside = tokens[place].text[1:-1]
    return quote(re.sub(r"\\(.)", r"\1", inside))


def _operator(tokens: Sequence[Token], place: int) -> str:
    text = tokens[place].text
    meaning = _UNTRANSLATABLE.get(text)
    if text.startswith("%"):
        meaning = "a special operator"
    if meaning is not None:
        raise _untranslatable(f"`{text}`, {meaning},")
    return _OPERATORS.get(text, text)


def _name(tokens: Sequence[Token], place: int) -> str:
    text = tokens[place].text
    if _next_text(tokens, place) == "(":
        return _function(tokens, place)
    if text == "." or _next_text(tokens, place) == "=":  # all columns; an option
        return text
    if text in _SHORT_CONSTANTS and _last_texts(tokens, place, 1) == ["="]:
        return _SHORT_CONSTANTS[text]
    return _CONSTANTS.get(text) or quote(text)


def _function(tokens: Sequence[Token], place: int) -> str:
    name = tokens[place].text
    several = _has_comma(tokens, place)
    if name == "round" and several:
        return ROUND
    if name in ONE_ARGUMENT and several:
        raise _untranslatable(f"`{name}(...)` with more than one argument")
    if name in SAME_FUNCTIONS:
        return name
    if name in RENAMED_FUNCTIONS:
        return RENAMED_FUNCTIONS[name]
    raise _untranslatable(f"`{name}(...)`")


def _untranslatable(construct: str) -> FormulaError:
    return FormulaError(
        f"R's {construct} has no counterpart in formulas here. Compute a column of the "
        "data first, and name it in the formula."
    )


def _next_text(tokens: Sequence[Token], place: int) -> str:
    following = (one.text for one in tokens[place + 1 :] if one.kind != "space")
    return next(following, "")


def _last_texts(tokens: Sequence[Token], place: int, count: int) -> list[str]:
    before = [one.text for one in tokens[:place] if one.kind != "space"]
    return before[-count:]


def _is_negative_power(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a number is the exponent in `x^-2` or `x^(-2)`."""
    before = _last_texts(tokens, place, 3)
    return before[-2:] == ["^", "-"] or before == ["^", "(", "-"]


def _has_comma(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether the call that starts here has a second argument."""
    depth = 0
    for token in tokens[place + 1 :]:
        if token.text == "," and depth == 1:
            return True
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.kind != "space":
            return False
    return False


_WRITERS: dict[str, Callable[[Sequence[Token], int], str]] = {
    "space": _same,
    "number": _number,
    "backtick": _backtick,
    "text": _same,
    "name": _name,
    "operator": _operator,
}
