"""Spellings of columns in a formula: quoted, in another Unicode form, mistyped."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd

from vstatkit.exceptions import FormulaError
from vstatkit.formula.formula_text import (
    is_plain,
    q_call,
)

_STRING = re.compile(r"""(?P<quoted>\bQ\(\s*)?(["'])(?P<text>(?:\\.|(?!\2).)*)\2""")

# Words that mean something in an expression.
_OPERATORS = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "for", "lambda"}
    | {"None", "True", "False"}
)


def settle_names(formula: str, columns: Sequence[str] | pd.Index) -> str:
    """Quote or respell names that would not be read as the columns they mean."""
    if formula.isascii() and all(is_plain(str(name)) for name in columns):
        return formula
    known, by_form = set(columns), _columns_by_form(columns)
    parts, end = [], 0
    for match in _STRING.finditer(formula):
        parts.append(_settle_words(formula[end : match.start()], known, by_form))
        meant = by_form.get(_form(match["text"]))
        if match["quoted"] and match["text"] not in known and meant:
            parts.append(f"{match['quoted']}{q_call(meant)[2:-1]}")
        else:
            parts.append(match[0])
        end = match.end()
    return "".join([*parts, _settle_words(formula[end:], known, by_form)])


def _form(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


def _columns_by_form(columns: Sequence[str] | pd.Index) -> dict[str, str]:
    """List columns by the form that all their spellings have; None may share one."""
    forms = [_form(str(name)) for name in columns]
    times = Counter(forms)
    pairs = zip(forms, map(str, columns), strict=True)
    return {form: name for form, name in pairs if times[form] == 1}


def _settle_words(text: str, known: set[str], by_form: dict[str, str]) -> str:
    written = []
    for word in _words(text):
        meant = word if word in known else by_form.get(_form(word))
        if meant is not None and (word[0].isalpha() or word[0] == "_"):
            odd = not is_plain(meant) and meant not in _OPERATORS
            word = q_call(meant) if odd else meant  # noqa: PLW2901
        written.append(word)
    return "".join(written)


def _words(text: str) -> list[str]:
    """Cut text into words, with the marks on their letters, and single signs."""
    words: list[str] = []
    within = False
    for sign in text:
        marked = within and unicodedata.category(sign).startswith("M")
        part = sign.isalnum() or sign == "_" or marked
        if part and within:
            words[-1] += sign
        else:
            words.append(sign)
        within = part
    return words


@contextmanager
def add_quoting_hints(
    formula: str, columns: Sequence[str] | pd.Index
) -> Iterator[None]:
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
            f"{said}. The column {name!r} is written {q_call(name)} in a formula."
        ) from error


# What else messages say, about names that were not meant.
_BESIDE = re.compile("; did you mean| The columns are| A column whose name")


def respell_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Give columns the names that are asked for, where only the spelling differs."""
    lacking = [name for name in names if name not in frame.columns]
    by_form = _columns_by_form(frame.columns) if lacking else {}
    new_names = {
        by_form[form]: name for name in lacking if (form := _form(name)) in by_form
    }
    return frame.rename(columns=new_names) if new_names else frame
