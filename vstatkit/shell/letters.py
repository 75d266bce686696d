"""Encodings of text files."""

import codecs
from dataclasses import dataclass

from vstatkit.exceptions import DataError
from vstatkit.shell.input_bytes import Content

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Marks that programs, such as Excel, write before text; UTF-32's before UTF-16's."""

_CANDIDATES = ("cp1252", "gb18030", "shift_jis", "cp1251", "latin-1")
"""Encodings that are tried for a suggestion, the commonest first."""


@dataclass(frozen=True)
class Letters:
    """Text, and the encoding that gave it.

    Attributes
    ----------
    text : str
        All of it.
    encoding : str
        As Python names it.
    """

    text: str
    encoding: str


def check_encoding(encoding: str | None) -> None:
    """Refuse encodings that Python does not know."""
    if encoding is None:
        return
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(
            f"--encoding must be one that Python knows, such as utf-8, cp1252, "
            f"latin-1 or utf-16; got {encoding!r}."
        ) from None


def decode(content: Content, encoding: str | None) -> Letters:
    """Read bytes as text: by the encoding given, else by a mark, else as UTF-8."""
    marked = [name for mark, name in _MARKS if content.data.startswith(mark)]
    used = encoding or next(iter(marked), "utf-8")
    try:
        text = content.data.decode(used)
    except (UnicodeDecodeError, UnicodeError) as error:
        raise DataError(_not_so(content, used, error)) from None
    if "\0" in text[:10_000]:
        raise DataError(_with_zeros(content))
    text = text.removeprefix("\ufeff")
    return Letters(text if "\n" in text else text.replace("\r", "\n"), used)


def _not_so(content: Content, used: str, error: UnicodeError) -> str:
    where = ""
    if isinstance(error, UnicodeDecodeError):
        line = content.data.count(b"\n", 0, error.start) + 1
        where = f" (byte 0x{content.data[error.start]:02x} in line {line})"
    said = f"{content.name} is not {used.upper()}{where}."
    if b"\0" in content.data[:10_000]:
        return f"{said} {_with_zeros(content)}"
    for name in ("utf-8", *_CANDIDATES):
        shown = _sample(content, name, error)
        if shown is not None:
            return f"{said} Try --encoding {name}: it would read {shown!r} there."
    return said


def _sample(content: Content, encoding: str, error: UnicodeError) -> str | None:
    """Decode everything, and show the word about the place in question."""
    try:
        content.data.decode(encoding)
    except UnicodeDecodeError:
        return None
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    first = max(content.data.rfind(sign, 0, start) for sign in (b"\n", b",", b";"))
    word = content.data[max(first + 1, start - 30) : start + 30]
    lines = word.decode(encoding, errors="replace").splitlines()
    return lines[0].strip() if lines else ""


def _with_zeros(content: Content) -> str:
    """Tell UTF-16 without a mark from what is no text."""
    head = content.data[:1000]
    for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = head[start::2].count(0)
        if zeros > 0.4 * len(head) / 2 and head[1 - start :: 2].count(0) == 0:
            return f"{content.name} is probably UTF-16: try --encoding {name}."
    return f"{content.name} is no text; it has to be a table in CSV or Parquet."
