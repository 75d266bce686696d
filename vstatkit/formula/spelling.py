"""Names in a formula as people write them: one letter has several spellings.

The micro sign and the letter mu look alike, `é` is one sign or two, and some texts
have `fi` as a single sign. Python takes all spellings of a name for one; to a table
they are different columns.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import in_quotes, is_plain

_STRING = re.compile(r"""(?P<quoted>\bQ\(\s*)?(["'])(?P<text>(?:\\.|(?!\2).)*)\2""")

_OPERATORS = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "for", "lambda"}
    | {"None", "True", "False"}
)
"""Words that mean something in an expression."""


def settle_names(formula: str, columns: Sequence[str] | pd.Index) -> str:
    r"""Write the names of columns so that they are read as the columns they mean.

    Names that are read as they are written stay as they are.

    Examples
    --------
    >>> settle_names("y ~ log(\u03bc) + class", ["y", "\u00b5", "class"])
    'y ~ log(Q("µ")) + Q("class")'
    """
    odd = [name for name in columns if not is_plain(str(name))]
    if not odd and formula.isascii():
        return formula
    held, alike = set(columns), _by_form(columns)
    parts, end = [], 0
    for found in _STRING.finditer(formula):
        parts.append(_settled_words(formula[end : found.start()], held, alike))
        meant = alike.get(_form(found["text"]))
        if found["quoted"] and found["text"] not in held and meant:
            parts.append(f"{found['quoted']}{in_quotes(meant)[2:-1]}")
        else:
            parts.append(found[0])
        end = found.end()
    return "".join([*parts, _settled_words(formula[end:], held, alike)])


def _form(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


def _by_form(columns: Sequence[str] | pd.Index) -> dict[str, str]:
    """List columns by the form that all their spellings have; None may share one."""
    found: dict[str, str] = {}
    shared: set[str] = set()
    for name in map(str, columns):
        form = _form(name)
        if form in found:
            shared.add(form)
        found[form] = name
    return {form: name for form, name in found.items() if form not in shared}


def _settled_words(text: str, held: set[str], alike: dict[str, str]) -> str:
    written = []
    for word in _words(text):
        if word in held:
            meant: str | None = word
        else:
            meant = alike.get(_form(word)) if not word.isspace() else None
        odd = meant is not None and not is_plain(meant) and meant not in _OPERATORS
        if meant is None or not (odd or meant != word) or not _is_word(word):
            written.append(word)
        else:
            written.append(in_quotes(meant) if odd else meant)
    return "".join(written)


def _words(text: str) -> Iterator[str]:
    """Cut text into words, with the marks on their letters, and single signs."""
    word = ""
    for sign in text:
        marked = bool(word) and unicodedata.category(sign).startswith("M")
        if sign.isalnum() or sign == "_" or marked:
            word += sign
            continue
        if word:
            yield word
            word = ""
        yield sign
    if word:
        yield word


def _is_word(word: str) -> bool:
    return word[0].isalpha() or word[0] == "_"


@contextmanager
def quoting_hints(formula: str, columns: Sequence[str] | pd.Index) -> Iterator[None]:
    """Add to errors how the columns are written that the formula probably means."""
    try:
        yield
    except FormulaError as error:
        plain = _STRING.sub("", formula)
        words = set(_words(plain))
        meant = [
            name
            for name in map(str, columns)
            if not is_plain(name) and (name in words or not name.isalnum())
            if name in plain
        ]
        if not meant:
            raise
        name = max(meant, key=len)
        said = _BESIDE.split(str(error))[0].removesuffix(".")
        raise FormulaError(
            f"{said}. The column {name!r} is written {in_quotes(name)} in a formula."
        ) from error


_BESIDE = re.compile("; did you mean| The columns are| A column whose name")
"""What else messages say, about names that were not meant."""


def respelled(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Give columns the names that are asked for, where only the spelling differs."""
    lacking = [name for name in names if name not in frame.columns]
    if not lacking:
        return frame
    alike = _by_form(frame.columns)
    found = {alike[form]: name for name in lacking if (form := _form(name)) in alike}
    return frame.rename(columns=found) if found else frame
