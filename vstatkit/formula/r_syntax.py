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
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<backtick>`(?:[^`\\]|\\.)*`)
  | (?P<package>(?<![\w.])[^\W\d]\w*:::?(?=[^\W\d][\w.]*\s*\())
  | (?P<call>(?<![\w.])(?:as\.factor|[^\W\d]\w*)(?=\s*\())
  | (?P<option>(?<![\w.])[^\W\d][\w.]*(?=\s*=(?!=)))
  | (?P<name>(?<![\w.])[^\W\d]\w*)
  | (?P<number>(?<![\w.])\d+(?![\w.]))
  | (?P<operator>%(?:in|o|x|\*|/|)%)
  | (?P<space>\s+)
  | (?P<other>[\w.]+|.)
    """,
    re.VERBOSE,
)

_NAMES = "|".join(["offset", "c", "bs", "cut", *map(re.escape, RENAMED_FUNCTIONS)])

_HABIT = re.compile(
    rf"[`^%]|::|\b(?:{_NAMES})\s*\(|\b(?:{'|'.join(CONSTANTS)})\b|=\s*[TF]\b"
)
"""What a formula must have somewhere, to be read word by word."""


def check_division(before: Sequence[str], sign: str) -> None:
    """Refuse `a * b %% c`: R computes `%%` before `*`, Python after it.

    Parameters
    ----------
    before : sequence of str
        Words that stand before the sign.
    sign : str
        `%%` or `%/%`.
    """
    depth = 0
    for text in reversed(before):
        if depth == 0 and text in ("*", "/"):
            raise FormulaError(
                f"`{text}` before `{sign}` needs brackets, as in "
                f"a {text} (b {sign} c); R computes `{sign}` first."
            )
        if depth == 0 and text in ("+", "-", ",", "~", "<", ">", "=", "(", "["):
            return
        depth += (text in (")", "]")) - (text in ("(", "["))


class _Word(NamedTuple):
    kind: str
    text: str


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
        return formula  # `expand_dot` refuses what is no text
    words = [
        _Word(str(match.lastgroup), match.group())
        for match in _TOKEN.finditer(formula.replace("\n", " "))
    ]
    return "".join(_Writer(words, known).write())


class _Writer:
    """Writes word after word; it knows which calls each of them stands in."""

    def __init__(self, words: Sequence[_Word], known: Callable[[str], bool]) -> None:
        self._words = words
        self._known = known
        self._open: list[str] = []
        """What brackets that are open belong to: a function, or ""."""
        self._left = any(word.text == "~" for word in words)
        """Whether the words belong to the left-hand side."""

    def write(self) -> list[str]:
        return [self._write(place, word) for place, word in enumerate(self._words)]

    def _write(self, place: int, word: _Word) -> str:
        writers: dict[str, Callable[[int, str], str]] = {
            "backtick": self._backtick,
            "package": lambda place, text: "",
            "operator": self._operator,
            "call": self._call,
            "option": self._option,
            "name": self._name,
            "number": self._number,
            "other": self._sign,
        }
        write = writers.get(word.kind)
        return word.text if write is None else write(place, word.text)

    def _backtick(self, place: int, text: str) -> str:
        return quote(re.sub(r"\\(.)", r"\1", text[1:-1]))

    def _option(self, place: int, text: str) -> str:
        inner = self._open[-1] if self._open else ""
        return RENAMED_OPTIONS.get((inner, text), text)

    @property
    def _in_arithmetic(self) -> bool:
        """Whether operators compute; between terms they have other meanings."""
        return self._left or any(self._open)

    def _operator(self, place: int, text: str) -> str:
        within = self._in_arithmetic
        if text in DIVISIONS and within:
            check_division([word.text for word in self._words[:place]], text)
            return DIVISIONS[text]
        if text != NESTING:
            raise FormulaError(f"`{text}` between terms has no counterpart here.")
        if within:
            raise FormulaError(NO_MEMBERSHIP)
        return ":"

    def _call(self, place: int, name: str) -> str:
        if self._known(name):
            return name
        if name == "offset":
            raise FormulaError(NO_OFFSET)
        return "" if name == "c" else RENAMED_FUNCTIONS.get(name, name)

    def _name(self, place: int, name: str) -> str:
        if self._known(name) or not self._in_arithmetic:
            return name
        if name in ("T", "F") and self._near(place, -1) == "=":
            return {"T": "True", "F": "False"}[name]
        return CONSTANTS.get(name, name)

    def _number(self, place: int, text: str) -> str:
        """Write whole numbers in powers as R computes them, where that differs."""
        before = [self._near(place, -step) for step in (3, 2, 1)]
        negative = before[1:] == ["^", "-"] or before == ["^", "(", "-"]
        power = self._near(place, 1) == "^" or negative
        return f"{text}.0" if power and self._in_arithmetic else text

    def _sign(self, place: int, text: str) -> str:
        if text == "~":
            self._left = False
        if text == "^":
            return "**"
        if text == "(":
            called = self._words[place - 1] if place else _Word("", "")
            if called.kind == "space" and place > 1:
                called = self._words[place - 2]
            mine = called.kind == "call" and not self._known(called.text)
            self._open.append(called.text if called.kind == "call" else "")
            return "[" if mine and called.text == "c" else "("
        if text == ")" and self._open:
            name = self._open.pop()
            return "]" if name == "c" and not self._known("c") else ")"
        return text

    def _near(self, place: int, step: int) -> str:
        """Find the word so many steps away; spaces do not count."""
        side = self._words[place + 1 :] if step > 0 else self._words[:place][::-1]
        texts = [word.text for word in side[:8] if word.kind != "space"]
        return texts[abs(step) - 1] if len(texts) >= abs(step) else ""
