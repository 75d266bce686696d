"""HTML of a report: tables, figures and paragraphs; every text is escaped here."""

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

Parts = Sequence[str | None]  # markup of the parts of a chapter

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


def table_markup(
    caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """Lay out a table of texts in a frame of its own, where wide ones scroll.

    The first header is that of the names, with which the rows begin.
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in headers)
    lines = []
    for name, *cells in rows:
        data = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{data}</tr>')
    body = "\n".join(lines)
    caption = escape(caption)
    kind = ' class="pairs"' if len(headers) == 2 else ""
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
        f"<table{kind}>\n<caption>{caption}</caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "</table>\n</div>"
    )


def figure_markup(png: bytes, description: str, caption: str) -> str:
    """Show a PNG file, with a description for readers who cannot see it."""
    code = base64.b64encode(png).decode("ascii")
    return (
        f'<figure>\n<img src="data:image/png;base64,{code}" '
        f'alt="{escape(description)}">\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )


def text_markup(*lines: str, numbered: bool = False) -> str:
    """Lay out one line as a paragraph, several or numbered ones as a list."""
    if len(lines) == 1 and not numbered:
        return f"<p>{escape(lines[0])}</p>"
    tag = "ol" if numbered else "ul"
    items = "\n".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<{tag}>\n{items}\n</{tag}>"


def _chapter_markup(number: int, heading: str, parts: Iterable[str]) -> str:
    """Lay out a chapter, labelled by its heading."""
    inner = "\n".join(parts)
    name = f"chapter-{number}"
    return (
        f'<section aria-labelledby="{name}">\n'
        f'<h2 id="{name}">{escape(heading)}</h2>\n{inner}\n</section>'
    )


# Rights of the page in a browser: it loads nothing and runs nothing.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def compose_page(
    title: str, lead: str, chapters: Mapping[str, Parts], footer: str
) -> str:
    """Compose the page; parts that are None and chapters without parts are omitted."""
    filled = {
        heading: [part for part in parts if part is not None]
        for heading, parts in chapters.items()
    }
    known = [(heading, parts) for heading, parts in filled.items() if parts]
    body = "\n".join(_chapter_markup(j, *each) for j, each in enumerate(known, start=1))
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
