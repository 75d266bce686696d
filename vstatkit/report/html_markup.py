"""HTML of tables, pictures and paragraphs; every text is escaped here."""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)
"""Letters that a page cannot hold, or that change the order of others unseen."""


def visible(text: str) -> str:
    r"""Write unseen letters as Python does.

    Examples
    --------
    >>> visible("a\x00b")
    'a\\x00b'
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped(text: str) -> str:
    """Make a text safe anywhere in a page.

    Examples
    --------
    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(visible(text), quote=True)


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    caption : str
        What it shows.
    headers : sequence of str
        One for each column, the first for that of the names.
    rows : sequence of sequences of str
        Each begins with its name.
    """

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markup(self) -> str:
        """Return the table in a frame of its own, where wide ones scroll."""
        heads = "".join(f'<th scope="col">{escaped(one)}</th>' for one in self.headers)
        body = "\n".join(_row(cells) for cells in self.rows)
        caption = escaped(self.caption)
        kind = ' class="pairs"' if len(self.headers) == 2 else ""
        return (
            f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
            f"<table{kind}>\n<caption>{caption}</caption>\n"
            f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
            "</table>\n</div>"
        )


def _row(cells: Sequence[str]) -> str:
    name, *others = map(escaped, cells)
    rest = "".join(f"<td>{one}</td>" for one in others)
    return f'<tr><th scope="row">{name}</th>{rest}</tr>'


@dataclass(frozen=True)
class Picture:
    """A picture that the page holds.

    Attributes
    ----------
    data : bytes
        A PNG file.
    shows : str
        What it shows, for those who do not see it.
    caption : str
        The line below it.
    """

    data: bytes
    shows: str
    caption: str

    def markup(self) -> str:
        """Return the picture with its caption."""
        code = base64.b64encode(self.data).decode("ascii")
        return (
            f'<figure>\n<img src="data:image/png;base64,{code}" '
            f'alt="{escaped(self.shows)}">\n'
            f"<figcaption>{escaped(self.caption)}</figcaption>\n</figure>"
        )


@dataclass(frozen=True)
class Words:
    """A paragraph, or a list of short ones.

    Attributes
    ----------
    lines : tuple of str
        One is a paragraph, several are a list.
    numbered : bool
        Whether a list is numbered.
    """

    lines: tuple[str, ...]
    numbered: bool = False

    def markup(self) -> str:
        """Return the paragraph or the list."""
        if len(self.lines) == 1 and not self.numbered:
            return f"<p>{escaped(self.lines[0])}</p>"
        tag = "ol" if self.numbered else "ul"
        items = "\n".join(f"<li>{escaped(line)}</li>" for line in self.lines)
        return f"<{tag}>\n{items}\n</{tag}>"


Part = Table | Picture | Words


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands below it."""

    heading: str
    parts: tuple[Part, ...]

    def markup(self, number: int) -> str:
        """Return the chapter, labelled by its heading."""
        inner = "\n".join(part.markup() for part in self.parts)
        name = f"chapter-{number}"
        return (
            f'<section aria-labelledby="{name}">\n'
            f'<h2 id="{name}">{escaped(self.heading)}</h2>\n{inner}\n</section>'
        )


POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser may do with the page: show it; load nothing, run nothing."""


def page(
    title: str, lead: str, chapters: Iterable[Chapter], last: str, style: str
) -> str:
    """Put a page together."""
    body = "\n".join(one.markup(j) for j, one in enumerate(chapters, start=1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>{escaped(title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escaped(title)}</h1>
<p>{escaped(lead)}</p>
</header>
<main>
{body}
</main>
<footer>
<p>{escaped(last)}</p>
</footer>
</body>
</html>
"""
