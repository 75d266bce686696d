"""Notation of R and Stata in formulas: translated, or refused with advice."""

import ast
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from vstatkit.exceptions import FormulaError
from vstatkit.formula.formula_text import PATSY_BUILTINS, quote, tokenize_line
from vstatkit.formula.untrusted_formulas import SAFE_FUNCTIONS
from vstatkit.text import suggest_name

# Functions that have another name here.
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
# Options that have another name here, by function.
RENAMED_OPTIONS = {
    ("bs", "intercept"): "include_intercept",
    ("scale", "scale"): "rescale",
    ("cut", "include.lowest"): "include_lowest",
}
# Values in calls, as Python writes them; 1e999 is infinite.
CONSTANTS = {
    "TRUE": "True",
    "FALSE": "False",
    "NULL": "None",
    "Inf": "1e999",
    "pi": "3.141592653589793",
}

NESTING = "%in%"

# What is left by a division, and what is whole of it; both programs round down.
DIVISIONS = {"%%": "%", "%/%": "//"}
# R's own operators between percent signs.
SPECIAL = frozenset({NESTING, "%o%", "%x%", "%*%", *DIVISIONS})

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

# What a formula must have somewhere, to be read word by word.
_HABIT = re.compile(
    rf"[`^%]|::|\b(?:{_NAMES})\s*\(|\b(?:{'|'.join(CONSTANTS)})\b|=\s*[TF]\b"
)


# What stands between the name of a package and that of its function.
_SCOPES = ("::", ":::")


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


# Signs that are computed after `%%`.
_LOOSER = frozenset({*"+-,~=([!<>&|", "<-", "->", "<=", ">=", "==", "!=", "&&", "||"})


def check_division(before: Sequence[Token], sign: str) -> None:
    """Refuse `a * b %% c`: R computes `%%` before `*`, Python after it."""
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

    `known` tells which names are columns, or the caller's own: these stay.

    Examples
    --------
    >>> translate_r("y ~ I(x^2) + factor(g) + `my x`", lambda name: False)
    'y ~ I(x**2) + C(g) + Q("my x")'
    >>> translate_r("y ~ (a + b)^2 + cut(x, c(0, 1, Inf))", lambda name: False)
    'y ~ (a + b)**2 + cut(x, [0, 1, 1e999])'
    """
    if not _HABIT.search(formula):
        return formula
    tokens = tokenize_r(formula.replace("\n", " "))
    writer = _Writer(tokens, known)
    return "".join(writer.write(place, token) for place, token in enumerate(tokens))


class _Writer:
    """Writes token after token; it knows which calls each of them stands in."""

    def __init__(self, tokens: Sequence[Token], known: Callable[[str], bool]) -> None:
        self._tokens = tokens
        self._known = known
        # What brackets that are open belong to: a function, or ""
        self._open: list[str] = []
        # Whether the tokens belong to the left-hand side
        self._left = any(token.text == "~" for token in tokens)

    def write(self, place: int, token: Token) -> str:
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
            if self._known(name):
                return name
            if name == "offset":
                raise FormulaError(NO_OFFSET)
            return "" if name == "c" else RENAMED_FUNCTIONS.get(name, name)
        if self._near(place, 1) == "=":
            inner = self._open[-1] if self._open else ""
            return RENAMED_OPTIONS.get((inner, name), name)
        return self._value(place, name)

    def _value(self, place: int, name: str) -> str:
        if self._known(name) or not self._in_arithmetic:
            return name
        if name in ("T", "F") and self._near(place, -1).endswith("="):
            return {"T": "True", "F": "False"}[name]
        return CONSTANTS.get(name, name)

    def _operator(self, place: int, text: str) -> str:
        if text == "~":
            self._left = False
        if text == "^":
            return "**"
        if text in ("(", ")"):
            return self._bracket(place, text)
        if text in _SCOPES and place and self._is_package(place - 1):
            return ""
        if text not in SPECIAL:
            return text
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
        else:
            name = self._open.pop() if self._open else ""
        if name == "c" and not self._known(name):  # a vector is a list
            return "[" if text == "(" else "]"
        return text


_SHIFTED = (
    "formulas do not shift rows. Compute the column before the fit, from rows in "
    "order of time, such as data[{new!r}] = data[{old!r}]{how} (with panels "
    "data.groupby('id')[{old!r}]{how}), and write {new} in the formula."
)

# Operators on time, of R and Stata: what the column is called, how pandas does it.
SHIFTS = {
    **dict.fromkeys(("lag", "Lag", "L", "shift"), ("lag", ".shift({periods})")),
    **dict.fromkeys(("lead", "F"), ("lead", ".shift(-{periods})")),
    **dict.fromkeys(("diff", "d", "D", "S"), ("diff", ".diff({periods})")),
}


# Advice for functions that have no counterpart.
OTHER_FUNCTIONS = {
    **dict.fromkeys(
        ("s", "ti", "t2", "lo", "rcs", "pspline"),
        "Trees need no smooth terms: write the column alone. For kernels that are "
        "linear in their columns use bs(x, df=5) or cr(x, df=5).",
    ),
    **dict.fromkeys(
        ("rank", "cumsum", "mean", "sd", "median", "quantile"),
        "Formulas apply functions element by element, because learners see subsamples. "
        "Compute a column of the data first.",
    ),
    **dict.fromkeys(
        ("strata", "cluster", "frailty", "re"),
        "Give clusters of rows as groups='column'; they are resampled whole.",
    ),
    **dict.fromkeys(
        ("ordered", "relevel"),
        "Set the levels in the data, as by "
        "pd.Categorical(values, levels, ordered=True).",
    ),
}

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
    """Refuse Stata's prefixes, such as `L.x` and `i.x`, in the code of a factor."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        prefix, column = node.value.id, node.attr
        match = _STATA.fullmatch(prefix)
        if match is None or prefix in columns or column not in columns:
            continue
        if prefix in names and hasattr(names[prefix], column):
            continue
        kind, written, plain = match["kind"], f"{prefix}.{column}", quote(column)
        if kind in SHIFTS:
            advice = _shift_advice(kind, column, match["steps"])
            raise FormulaError(f"{written!r} is Stata's notation, and {advice}")
        instead = plain if kind == "c" else f"C({plain})"
        raise FormulaError(f"{written!r} is Stata's notation; write {instead}.")


def _shift_advice(function: str, column: str, steps: str = "") -> str:
    what, how = SHIFTS[function]
    periods = steps or "1"
    how = ".diff()" if (what, periods) == ("diff", "1") else how.format(periods=periods)
    return _SHIFTED.format(new=f"{column}_{what}{periods}", old=column, how=how)


def advise_function(
    name: str, code: str, tree: ast.AST, columns: Container[str], *, trusted: bool
) -> str:
    """Say that a factor calls an unknown function, and what to do instead."""
    call = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
    )
    said = f"there is no function {name!r}, which {code[:80]!r} calls"
    arguments = (node.id for node in call.args if isinstance(node, ast.Name))
    column = next((name for name in arguments if name in columns), "x")
    if name in SHIFTS:
        steps = ""
        for more in call.args[1:2]:
            if isinstance(more, ast.Constant) and isinstance(more.value, int):
                steps = str(more.value)
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
