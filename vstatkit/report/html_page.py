"""HTML of a report: tables, figures and paragraphs; every text is escaped here."""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

# Characters that a page cannot hold, or that change the order of others.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)


def show_unseen(text: str) -> str:
    r"""Escape invisible characters as Python does.

    Examples
    --------
    >>> show_unseen("a\x00b")
    'a\\x00b'
    """
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], text)


def escape(text: str) -> str:
    """Make a text safe anywhere in a page."""
    return html.escape(show_unseen(text), quote=True)


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    caption: str
    headers: Sequence[str]  # the first is that of the names
    rows: Sequence[Sequence[str]]  # each begins with its name

    def markup(self) -> str:
        """Return the table in a frame of its own, where wide ones scroll."""
        heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.headers)
        rows = []
        for name, *cells in self.rows:
            data = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows.append(f'<tr><th scope="row">{escape(name)}</th>{data}</tr>')
        body = "\n".join(rows)
        caption = escape(self.caption)
        kind = ' class="pairs"' if len(self.headers) == 2 else ""
        return (
            f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
            f"<table{kind}>\n<caption>{caption}</caption>\n"
            f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
            "</table>\n</div>"
        )


@dataclass(frozen=True)
class Figure:
    """A figure within the page."""

    data: bytes  # a PNG file
    description: str  # description for readers who cannot see it
    caption: str  # the line below it

    def markup(self) -> str:
        """Return the figure with its caption."""
        code = base64.b64encode(self.data).decode("ascii")
        return (
            f'<figure>\n<img src="data:image/png;base64,{code}" '
            f'alt="{escape(self.description)}">\n'
            f"<figcaption>{escape(self.caption)}</figcaption>\n</figure>"
        )


@dataclass(frozen=True)
class Text:
    """A paragraph, or a list of short ones."""

    lines: tuple[str, ...]  # one is a paragraph, several are a list
    numbered: bool = False  # whether they are a numbered list

    def markup(self) -> str:
        """Return the paragraph or the list."""
        if len(self.lines) == 1 and not self.numbered:
            return f"<p>{escape(self.lines[0])}</p>"
        tag = "ol" if self.numbered else "ul"
        items = "\n".join(f"<li>{escape(line)}</li>" for line in self.lines)
        return f"<{tag}>\n{items}\n</{tag}>"


Part = Table | Figure | Text


@dataclass(frozen=True)
class Chapter:
    """A heading and the parts below it."""

    heading: str
    parts: tuple[Part, ...]

    def markup(self, number: int) -> str:
        """Return the chapter, labelled by its heading."""
        inner = "\n".join(part.markup() for part in self.parts)
        name = f"chapter-{number}"
        return (
            f'<section aria-labelledby="{name}">\n'
            f'<h2 id="{name}">{escape(self.heading)}</h2>\n{inner}\n</section>'
        )


# Rights of the page in a browser: it loads nothing and runs nothing.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def compose_page(
    title: str, lead: str, chapters: Iterable[Chapter], footer: str
) -> str:
    """Compose the page."""
    body = "\n".join(part.markup(j) for j, part in enumerate(chapters, start=1))
    style = (resources.files("vstatkit.report") / "page.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{escape(lead)}</p>
</header>
<main>
{body}
</main>
<footer>
<p>{escape(footer)}</p>
</footer>
</body>
</html>
"""
