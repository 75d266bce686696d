"""Formulas as text: dots, quoting, arithmetic in the response."""

import ast
import io
import re
import tokenize
import unicodedata
from collections.abc import Sequence

from vstatkit.exceptions import FormulaError
from vstatkit.formula.names_in_code import columns_in, find_uses, is_name, parse_code

# Names that patsy defines in every formula.
PATSY_BUILTINS = frozenset(
    {"I", "Q", "C", "ContrastMatrix", "Treatment", "Poly", "Sum", "Helmert", "Diff"}
    | {"center", "standardize", "scale", "bs", "cr", "cc", "te"}
)


def expand_dot(formula: str, columns: Sequence[str]) -> str:
    """Replace a standalone `.` by all columns the left-hand side does not use."""
    formula = formula.replace("\n", " ")
    left, _, right = formula.partition("~")
    if not left.strip() or not right.strip():
        raise FormulaError(
            "`formula` must have a response, a `~` and a right-hand side, like "
            f"'y ~ x1 + x2'; got {formula!r}."
        )
    dots = _standalone_dots(right)
    if not dots:
        return formula
    used = columns_in(left)
    others = [quote(name) for name in columns if name not in used]
    if not others:
        raise FormulaError("`.` stands for no column: the response is the only one.")
    everything = "(" + " + ".join(others) + ")"
    for position in reversed(dots):
        right = right[:position] + everything + right[position + 1 :]
    return f"{left}~{right}"


def tokenize_line(text: str) -> list[tokenize.TokenInfo]:
    """Cut one line of code into Python's words and signs."""
    try:
        return list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError) as error:
        raise FormulaError(f"cannot read {text!r}: {error}") from error


def _standalone_dots(text: str) -> list[int]:
    """Offsets of dots that are neither attribute access nor part of a number."""
    tokens = tokenize_line(text)
    offset = len(text) - len(text.lstrip())
    offsets = []
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        attached = after.type == tokenize.NAME and after.start == token.end
        follows = (
            before is not None
            and before.end == token.start
            and (before.type == tokenize.NAME or before.string in (")", "]"))
        )
        if token.string == "." and not attached and not follows:
            offsets.append(offset + token.start[1])
    return offsets


def quote(name: str) -> str:
    """Write a column name so that patsy reads it as one."""
    return name if is_plain(name) and name not in PATSY_BUILTINS else q_call(name)


def is_plain(name: str) -> bool:
    """Tell names that Python and patsy read as they are written.

    Python takes the micro sign for the letter mu, and patsy no letter that is written
    as two signs; `inf` and `nan` it takes for numbers.
    """
    return (
        is_name(name)
        and unicodedata.normalize("NFKC", name) == name
        and re.fullmatch(r"\w+", name) is not None
        and re.fullmatch("inf|infinity|nan", name, re.IGNORECASE) is None
    )


def q_call(name: str) -> str:
    """Write a column name as `Q("...")`."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'Q("{escaped}")'


def normalize_quotes(code: str) -> str:
    """Write quoted columns in one way, so that one of them can be taken out again."""
    quoted = re.fullmatch(r"""Q\((["'])([^"'\\]*)\1\)""", code)
    return code if quoted is None else q_call(quoted[2])


def plain_name(name: str) -> str:
    """Strip `Q('...')` and backticks from a name for display."""
    return re.sub(r"""Q\((["'])(.*?)\1\)|`([^`]*)`""", r"\2\3", name)


def wrap_response(formula: str) -> str:
    """Write arithmetic on the left-hand side so that the engine computes it.

    Between terms the engine reads `-`, `*`, `/` and `**` as its own algebra. A sum of
    columns is refused: it could mean two responses.

    Examples
    --------
    >>> wrap_response("log(a) - log(b) ~ x")
    'I(log(a) - log(b)) ~ x'
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
    parts = [part.strip() for part in left.split(":")]
    if len(parts) == 2 and all(part.isidentifier() for part in parts):
        raise FormulaError(
            f"{left!r} is no response: `:` joins terms of the right-hand side. Write "
            f"{' * '.join(parts)} for the product."
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
