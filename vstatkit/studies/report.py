"""Tables and pictures of a study, as CSV, Markdown and PNG."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pandas as pd

from vstatkit.storage.archive import write_text_whole, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150

_LINK = re.compile(r"\[(?P<text>(?:\\.|[^\]\\])*)\]\((?P<page>[\w-]+\.md)\)")


@dataclass(frozen=True)
class Report:
    """What a study has to say.

    Attributes
    ----------
    name : str
        Name of the Markdown file.
    markdown : str
        Tables and sentences, with links to the pictures.
    tables : mapping of str to DataFrame
        Numbers by the name of their CSV file.
    pictures : mapping of str to Figure
        Pictures by the name of their PNG file.
    """

    name: str
    markdown: str
    tables: Mapping[str, pd.DataFrame]
    pictures: Mapping[str, "Figure"] = field(default_factory=dict)

    def write(self, out: Path) -> list[Path]:
        """Write all files, and return their paths."""
        out.mkdir(parents=True, exist_ok=True)
        text = out / f"{self.name}.md"
        write_text_whole(text, linked(self.markdown, out) + "\n")
        written = [text]
        for name, frame in self.tables.items():
            written.append(out / f"{name}.csv")
            # Fifteen digits, so that another machine's last bit makes no new file.
            table = frame.to_csv(index=False, float_format="%.15g")
            write_text_whole(written[-1], table)
        for name, figure in self.pictures.items():
            written.append(out / f"{name}.png")
            write_whole(written[-1], partial(_draw, figure))
        return written


def _draw(figure: "Figure", file: BinaryIO) -> None:
    # Without the writer's version the same picture is the same file.
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})


def linked(markdown: str, out: Path) -> str:
    """Keep links to pages that are there; of others, name the page.

    Parameters
    ----------
    markdown : str
        With links to other pages of the same folder.
    out : Path
        Where it will be.

    Examples
    --------
    >>> linked("See [the other page](nowhere.md).", Path("."))
    'See "the other page" in the documentation.'
    """
    return _LINK.sub(
        lambda link: (
            link[0]
            if (out / link["page"]).is_file()
            else f'"{link["text"]}" in the documentation'
        ),
        markdown,
    )


def markdown_table(frame: pd.DataFrame) -> str:
    """Lay out a frame of strings and numbers as an aligned Markdown table.

    Examples
    --------
    >>> print(markdown_table(pd.DataFrame({"k": [100, 5], "what": ["a", "long"]})))
    |   k | what |
    |----:|:-----|
    | 100 | a    |
    |   5 | long |
    """
    columns = []
    for name in frame.columns:
        right = pd.api.types.is_numeric_dtype(frame[name])
        cells = [str(value) for value in frame[name]]
        width = max(3, len(str(name)), *map(len, cells)) if cells else len(str(name))
        rule = "-" * (width + 1)
        column = [str(name), *cells]
        padded = [cell.rjust(width) if right else cell.ljust(width) for cell in column]
        columns.append([padded[0], f"{rule}:" if right else f":{rule}", *padded[1:]])
    rows = zip(*columns, strict=True)
    return "\n".join(
        "|" + "|".join(row if rule else (f" {cell} " for cell in row)) + "|"
        for row, rule in ((row, row[0].strip(":-") == "") for row in rows)
    )


def decimals(value: float, digits: int) -> str:
    """Print a number, or a dash where there is none."""
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def read_printed(name: str) -> pd.DataFrame:
    """Read a table as the paper prints it; it comes with the package."""
    path = resources.files("vstatkit.studies") / "printed" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file)
