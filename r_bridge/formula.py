"""Translation of R formulas into patsy formulas."""

from collections.abc import Callable, Sequence

from vstatkit.exceptions import FormulaError
from vstatkit.formula.formula_text import quote
from vstatkit.formula.r_syntax import (
    CONSTANTS,
    DIVISIONS,
    NESTING,
    NO_MEMBERSHIP,
    NO_OFFSET,
    RENAMED_FUNCTIONS,
    RENAMED_OPTIONS,
    Token,
    check_division,
    token_near,
    tokenize_r,
    write_backtick,
    write_number,
)

# Functions that R and our formulas have under the same name
SAME_FUNCTIONS = frozenset(
    {"I", "C", "Q", "bs", "ns", "poly", "scale", "cut", "c"}
    | {"log", "exp", "sqrt", "abs", "sign", "floor"}
    | {"sin", "cos", "tan", "sinh", "cosh", "tanh", "trunc"}
    | {"log2", "log10", "log1p", "expm1", "round"}
)

# Functions of R's that can be translated
KNOWN_FUNCTIONS = SAME_FUNCTIONS | set(RENAMED_FUNCTIONS)

# R's rounding to digits; numpy's, which is `round` here, differs in the last one
ROUND = "r_round"

# Functions whose further arguments mean something else here, or nothing
ONE_ARGUMENT = frozenset({"factor", "as.factor", "C", "Q"})

# Options that functions have here too
OPTIONS = {
    "poly": {"degree", "raw"},
    "bs": {"df", "knots", "degree", "intercept"},
    "ns": {"df", "knots", "intercept"},
    "scale": {"center", "scale"},
    "cut": {"breaks", "labels", "include.lowest", "right"},
    "log": {"base"},
    "round": {"digits"},
}

# Packages of the functions above; their names may stand before them
PACKAGES = frozenset({"base", "stats", "splines"})

_LOGICAL = frozenset({"TRUE", "FALSE", "T", "F"})

# Truth values where they are given to an option; elsewhere they are columns
_SHORT_CONSTANTS = {"T": "True", "F": "False"}

_OPERATORS = {"^": "**", **DIVISIONS}

# Stands for a call around the left-hand side, which is arithmetic as arguments are
RESPONSE = "response"

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
    "<-": "an assignment",
    "->": "an assignment",
    "{": "a block of code",
    "}": "a block of code",
    "?": "help",
    ";": "a second statement",
}


def translate_formula(formula: str) -> str:
    """Translate an R formula for vstatkit.

    Parameters
    ----------
    formula : str
        As in R: `I(x^2)`, `poly(x, 2)`, `.`, `log(y)`, `a:b`, `a*b`, `-1`,
        backticks, names with dots. What patsy and R write alike, `Q("my x")`
        too, stays. So do the operators of the left-hand side, which is named in
        tables as R writes it.

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
    >>> translate_formula("y^2 - `my z` ~ x^2")
    'y^2 - Q("my z") ~ x**2'
    """
    if not isinstance(formula, str):
        raise TypeError(
            f"`formula` must be text like 'y ~ x1 + x2'; got {type(formula).__name__}."
        )
    tokens = _without_packages(_read_tokens(formula))
    calls = _calls(tokens)
    return "".join(
        _WRITERS[token.kind](tokens, place, calls[place])
        for place, token in enumerate(tokens)
    )


def _read_tokens(formula: str) -> list[Token]:
    """Split an R formula into tokens; refuse signs that R's formulas do not have."""
    tokens, place = [], 0
    for kind, text in tokenize_r(formula):
        # A word that starts with a digit, such as 2nd, is refused with a better hint.
        if text.startswith("_") or (kind == "other" and not text[0].isdigit()):
            raise FormulaError(
                f"cannot read the R formula {formula!r}: {formula[place]!r} at "
                f"position {place} is not valid in R's formulas."
            )
        number = kind == "number"
        tokens.append(Token(kind, text.removesuffix("L") if number else text))
        place += len(text)
    return tokens


def _without_packages(tokens: Sequence[Token]) -> list[Token]:
    """Remove package prefixes such as `splines::` of known functions."""
    kept: list[Token] = []
    for token in tokens:
        after = bool(kept) and kept[-1].text in ("::", ":::")
        if after and len(kept) > 1 and token.text in KNOWN_FUNCTIONS:
            if kept[-2].text in PACKAGES:
                del kept[-2:]
        elif after:
            raise _untranslatable(f"`{kept[-1].text}`, a package's function,")
        kept.append(token)
    return kept


def _calls(tokens: Sequence[Token]) -> list[tuple[str, ...]]:
    """List the functions that every token is an argument of, the outermost first.

    Brackets around terms are a function without a name, and belong to the call that
    they open or close.
    """
    has_response = any(token.text == "~" for token in tokens[1:])
    found, inside = [], [RESPONSE if has_response else ""]
    for place, token in enumerate(tokens):
        if token.text == "~":
            inside[0] = ""
        if token.text == "(":
            kind, text = token_near(tokens, place, -1)
            inside.append(text if kind == "name" else "")
        found.append(tuple(inside))
        if token.text == ")" and len(inside) > 1:
            inside.pop()
    return found


Calls = tuple[str, ...]


def _same(tokens: Sequence[Token], place: int, calls: Calls) -> str:
    return tokens[place].text


def _number(tokens: Sequence[Token], place: int, calls: Calls) -> str:
    # `vstatkit.formula.r_syntax` reads powers of the response.
    return tokens[place].text if calls[0] == RESPONSE else write_number(tokens, place)


def _backtick(tokens: Sequence[Token], place: int, calls: Calls) -> str:
    return write_backtick(tokens[place].text)


def _operator(tokens: Sequence[Token], place: int, calls: Calls) -> str:
    text = tokens[place].text
    if text in ("(", ")"):
        return _bracket(tokens, place, calls[-1])
    within = any(calls)
    if text == NESTING:
        if within:
            raise FormulaError(NO_MEMBERSHIP)
        return ":"
    if text in DIVISIONS and within:
        check_division(tokens[:place], text)
    meaning = _UNTRANSLATABLE.get(text)
    if text.startswith("%") and not (within and text in DIVISIONS):
        meaning = "a special operator"
    if meaning is not None:
        raise _untranslatable(f"`{text}`, {meaning},")
    return text if calls[0] == RESPONSE else _OPERATORS.get(text, text)


def _bracket(tokens: Sequence[Token], place: int, function: str) -> str:
    """Write vectors as lists, and `scale` with R's standard deviation."""
    text = tokens[place].text
    if function == "c":
        return {"(": "[", ")": "]"}[text]
    return ", ddof=1)" if function == "scale" and text == ")" else text


def _name(tokens: Sequence[Token], place: int, calls: Calls) -> str:
    text = tokens[place].text
    following = token_near(tokens, place, 1).text
    if following == "(":
        return _function(tokens, place)
    if following == "=":
        return _option(tokens, place, calls[-1])
    if text == ".":  # all columns
        return text
    if text in _SHORT_CONSTANTS and token_near(tokens, place, -1).text == "=":
        return _SHORT_CONSTANTS[text]
    if text in CONSTANTS and (any(calls) or text in _LOGICAL):
        return CONSTANTS[text]
    return quote(text)


def _option(tokens: Sequence[Token], place: int, function: str) -> str:
    """Write the name of an option, if the function supports it."""
    text = tokens[place].text
    if text not in OPTIONS.get(function, {text}):
        raise _untranslatable(f"`{text}`, an option of `{function}`,")
    return RENAMED_OPTIONS.get((function, text), text)


def _function(tokens: Sequence[Token], place: int) -> str:
    name = tokens[place].text
    several = len(_arguments(tokens, place)) > 1
    if name == "offset":
        raise FormulaError(NO_OFFSET)
    if name == "round" and several:
        return ROUND
    if name in ONE_ARGUMENT and several:
        raise _untranslatable(f"`{name}(...)` with more than one argument")
    if name in RENAMED_FUNCTIONS:
        return RENAMED_FUNCTIONS[name]
    if name not in SAME_FUNCTIONS:
        raise _untranslatable(f"`{name}(...)`")
    if name == "scale":
        _check_scale(tokens, place)
    return "" if name == "c" else name


def _check_scale(tokens: Sequence[Token], place: int) -> None:
    """Raise an error for `center` and `scale` options that are not supported."""
    arguments = _arguments(tokens, place)[1:]
    for position, words in zip(("center", "scale"), arguments, strict=False):
        named = words[1:2] == ["="]
        option = words[0] if named else position
        value = "".join(words[2:] if named else words)
        if value not in _LOGICAL or (option == "center" and value in ("FALSE", "F")):
            raise _untranslatable(f"`scale(...)` with `{option} = {value}`")


def _untranslatable(construct: str) -> FormulaError:
    return FormulaError(
        f"R's {construct} has no counterpart in formulas here. Compute a column of the "
        "data first, and use it in the formula."
    )


def _arguments(tokens: Sequence[Token], place: int) -> list[list[str]]:
    """Split the call that starts here into its arguments, without spaces."""
    depth, found = 0, [[""]]
    for token in tokens[place + 1 :]:
        depth -= token.text == ")"
        if depth == 0 and token.text == ")":
            break
        if token.text == "," and depth == 1:
            found.append([])
        elif depth > 0 and token.kind != "space":
            found[-1].append(token.text)
        depth += token.text == "("
    return found


_WRITERS: dict[str, Callable[[Sequence[Token], int, Calls], str]] = {
    "space": _same,
    "number": _number,
    "other": _same,
    "backtick": _backtick,
    "text": _same,
    "name": _name,
    "operator": _operator,
}
