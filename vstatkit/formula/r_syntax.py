"""R's notation in formulas, translated for the engine."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import quote

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

RENAMED_OPTIONS = {
    ("bs", "intercept"): "include_intercept",
    ("scale", "scale"): "rescale",
    ("cut", "include.lowest"): "include_lowest",
}
"""Options that have another name here, by function."""

CONSTANTS = {
    "TRUE": "True",
    "FALSE": "False",
    "NULL": "None",
    "Inf": "1e999",
    "pi": "3.141592653589793",
}
"""Values in calls, as Python writes them; 1e999 is infinite."""

NESTING = "%in%"

DIVISIONS = {"%%": "%", "%/%": "//"}
"""What is left by a division, and what is whole of it; both programs round down."""

SPECIAL = frozenset({NESTING, "%o%", "%x%", "%*%", *DIVISIONS})
"""R's own operators between percent signs."""

NO_OFFSET = (
    "`offset(...)` is not available: learners have no part that is fixed. Subtract it "
    "from a numeric response, as in I(y - w) ~ x, or make it a predictor."
)

NO_MEMBERSHIP = (
    "`%in%` between values has no counterpart in formulas; between terms it nests. "
    "Compute a column of the data first, such as data['g'].isin(['a', 'b'])."
)

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?(?![\w.]))
  | (?P<backtick>`(?:[^`\\]|\\.)*`)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>(?:[^\W\d]|\.(?!\d))[\w.]*)
  | (?P<operator>%(?:[\w.]*|[^\w\s%(),"'`]*)%|:::?|<-|->|\|\||\||&&|&|[=!<>]=|\*\*
      |[-+*/^~:(),=<>!\[\]{}$@?;])
  | (?P<other>[\w.]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_NAMES = "|".join(["offset", "c", "bs", "cut", *map(re.escape, RENAMED_FUNCTIONS)])

_HABIT = re.compile(
    rf"[`^%]|::|\b(?:{_NAMES})\s*\(|\b(?:{'|'.join(CONSTANTS)})\b|=\s*[TF]\b"
)
"""What a formula must have somewhere, to be read word by word."""


_SCOPES = ("::", ":::")
"""What stands between the name of a package and that of its function."""


class Token(NamedTuple):
    """A word of a formula: its kind, a group of the pattern, and its text."""

    kind: str
    text: str


def tokenize_r(formula: str) -> list[Token]:
    """Split a formula into tokens, spaces included; joined, they are the formula."""
    return [
        Token(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(formula)
    ]


def token_near(tokens: Sequence[Token], place: int, step: int) -> Token:
    """Find the token so many steps away; spaces do not count."""
    after, before = tokens[place + 1 : place + 9], tokens[max(0, place - 8) : place]
    side = after if step > 0 else before[::-1]
    words = [token for token in side if token.kind != "space"]
    return words[abs(step) - 1] if len(words) >= abs(step) else Token("", "")


def write_number(tokens: Sequence[Token], place: int) -> str:
    """Write a whole number in a power as a decimal: R computes it so.

    numpy refuses negative powers of whole numbers.
    """
    text = tokens[place].text
    before = [token_near(tokens, place, -step).text for step in (3, 2, 1)]
    negative = before[1:] == ["^", "-"] or before == ["^", "(", "-"]
    power = negative or token_near(tokens, place, 1).text == "^"
    return f"{text}.0" if power and text.isdigit() else text


def write_backtick(text: str) -> str:
    """Write a name in backticks as a column."""
    return quote(re.sub(r"\\(.)", r"\1", text[1:-1]))


_LOOSER = frozenset({"+", "-", ",", "~", "=", "(", "[", "!", "<-", "->"}) | {
    *("<", ">", "<=", ">=", "==", "!=", "&", "&&", "|", "||")
}
"""Signs that are computed after `%%`."""


def check_division(before: Sequence[Token], sign: str) -> None:
    """Refuse `a * b %% c`: R computes `%%` before `*`, Python after it.

    Parameters
    ----------
    before : sequence of Token
        Tokens before the sign.
    sign : str
        `%%` or `%/%`.
    """
    depth = 0
    for _, text in reversed(before):
        if depth == 0 and text in ("*", "/"):
            raise FormulaError(
                f"`{text}` before `{sign}` needs brackets, as in "
                f"a {text} (b {sign} c); R computes `{sign}` first."
            )
        if depth == 0 and text in _LOOSER:
            return
        depth += (text in (")", "]")) - (text in ("(", "["))


def translate_r(formula: str, known: Callable[[str], bool]) -> str:
    """Write a formula in the engine's words, where it has some of R's.

    Parameters
    ----------
    formula : str
        A formula.
    known : callable
        Tells which names are columns, or the caller's own: these stay.

    Examples
    --------
    >>> translate_r("y ~ I(x^2) + factor(g) + `my x`", lambda name: False)
    'y ~ I(x**2) + C(g) + Q("my x")'
    >>> translate_r("y ~ (a + b)^2 + cut(x, c(0, 1, Inf))", lambda name: False)
    'y ~ (a + b)**2 + cut(x, [0, 1, 1e999])'
    """
    if not isinstance(formula, str) or not _HABIT.search(formula):
        return formula  # `check_formula` refuses what is no text
    tokens = tokenize_r(formula.replace("\n", " "))
    return "".join(_Writer(tokens, known).write())


class _Writer:
    """Writes token after token; it knows which calls each of them stands in."""

    def __init__(self, tokens: Sequence[Token], known: Callable[[str], bool]) -> None:
        self._tokens = tokens
        self._known = known
        self._open: list[str] = []
        """What brackets that are open belong to: a function, or ""."""
        self._left = any(token.text == "~" for token in tokens)
        """Whether the tokens belong to the left-hand side."""

    def write(self) -> list[str]:
        return [self._write(place, token) for place, token in enumerate(self._tokens)]

    def _write(self, place: int, token: Token) -> str:
        if token.kind == "backtick":
            return write_backtick(token.text)
        if token.kind == "number" and self._in_arithmetic:
            return write_number(self._tokens, place)
        if token.kind == "name":
            return self._name(place, token.text)
        if token.kind == "operator":
            return self._operator(place, token.text)
        return token.text

    @property
    def _in_arithmetic(self) -> bool:
        """Whether operators compute; between terms they have other meanings."""
        return self._left or any(self._open)

    def _near(self, place: int, step: int) -> str:
        return token_near(self._tokens, place, step).text

    def _is_call(self, place: int) -> bool:
        """Whether a name is called; a dot looks a function up in a module."""
        kind, name = self._tokens[place]
        plain = kind == "name" and ("." not in name or name == "as.factor")
        return plain and self._near(place, 1) == "("

    def _is_package(self, place: int) -> bool:
        """Whether `::` after this place leads to a function that is called."""
        three = self._tokens[place : place + 3]
        names = [token.kind for token in three[::2]] == ["name", "name"]
        return names and three[1].text in _SCOPES and self._near(place, 3) == "("

    def _name(self, place: int, name: str) -> str:
        if self._is_package(place):
            return ""
        if self._is_call(place):
            return self._function(name)
        if self._near(place, 1) == "=":
            inner = self._open[-1] if self._open else ""
            return RENAMED_OPTIONS.get((inner, name), name)
        if self._known(name) or not self._in_arithmetic:
            return name
        if name in ("T", "F") and self._near(place, -1).endswith("="):
            return {"T": "True", "F": "False"}[name]
        return CONSTANTS.get(name, name)

    def _function(self, name: str) -> str:
        if self._known(name):
            return name
        if name == "offset":
            raise FormulaError(NO_OFFSET)
        return "" if name == "c" else RENAMED_FUNCTIONS.get(name, name)

    def _operator(self, place: int, text: str) -> str:
        if text == "~":
            self._left = False
        if text == "^":
            return "**"
        if text in ("(", ")"):
            return self._bracket(place, text)
        if text in _SCOPES and place and self._is_package(place - 1):
            return ""
        return self._special(place, text) if text in SPECIAL else text

    def _special(self, place: int, text: str) -> str:
        if text in DIVISIONS and self._in_arithmetic:
            check_division(self._tokens[:place], text)
            return DIVISIONS[text]
        if text != NESTING:
            raise FormulaError(f"`{text}` between terms has no counterpart here.")
        if self._in_arithmetic:
            raise FormulaError(NO_MEMBERSHIP)
        return ":"

    def _bracket(self, place: int, text: str) -> str:
        if text == "(":
            back = 2 if place > 1 and self._tokens[place - 1].kind == "space" else 1
            called = place >= back and self._is_call(place - back)
            name = self._tokens[place - back].text if called else ""
            self._open.append(name)
            return "[" if name == "c" and not self._known(name) else "("
        name = self._open.pop() if self._open else ""
        return "]" if name == "c" and not self._known(name) else ")"
