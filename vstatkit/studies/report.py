"""Reports of studies: CSV tables, Markdown pages, and figures in PNG files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vstatkit.storage.atomic_files import write_text_whole, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which all readers can tell apart.
COLOURS = {
    "black": "#000000",
    "grey": "#7F7F7F",
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "orange": "#E69F00",
    "yellow": "#F0E442",
    "red": "#D55E00",
    "purple": "#CC79A7",
}

DPI = 150
WIDTH = 10.0  # width of a figure in inches

_LINK = re.compile(r"\[(?P<text>(?:\\.|[^\]\\])*)\]\((?P<page>[\w-]+\.md)\)")


@dataclass(frozen=True)
class Report:
    """The text, tables and figures of a study.

    Attributes
    ----------
    name : str
        Name of the Markdown file.
    markdown : str
        Text and tables, with links to the figures.
    tables : mapping of str to DataFrame
        Tables by the name of their CSV file.
    pictures : mapping of str to Figure
        Figures by the name of their PNG file.
    """

    name: str
    markdown: str
    tables: Mapping[str, pd.DataFrame]
    pictures: Mapping[str, "Figure"] = field(default_factory=dict)

    def write(self, out: Path) -> list[Path]:
        """Write all files, and return their paths."""
        out.mkdir(parents=True, exist_ok=True)
        texts = {f"{self.name}.md": resolve_links(self.markdown, out) + "\n"}
        for name, frame in self.tables.items():
            # Fifteen digits: the last bit may differ between machines.
            texts[f"{name}.csv"] = frame.to_csv(index=False, float_format="%.15g")
        for name, text in texts.items():
            write_text_whole(out / name, text)
        # Without matplotlib's version the same figure gives the same file.
        options: Any = {"format": "png", "dpi": DPI, "metadata": {"Software": None}}
        for name, figure in self.pictures.items():
            write_whole(out / f"{name}.png", partial(figure.savefig, **options))
        return [out / name for name in (*texts, *(f"{n}.png" for n in self.pictures))]


def resolve_links(markdown: str, out: Path) -> str:
    """Keep links to pages that exist in `out`; replace other links by the page title.

    Examples
    --------
    >>> resolve_links("See [the other page](nowhere.md).", Path("."))
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
        cells = [str(name), *map(str, frame[name])]
        width = max(3, *map(len, cells))
        rule = "-" * (width + 1)
        padded = [cell.rjust(width) if right else cell.ljust(width) for cell in cells]
        header, *rows = (f" {cell} " for cell in padded)
        columns.append([header, f"{rule}:" if right else f":{rule}", *rows])
    return "\n".join(f"|{'|'.join(row)}|" for row in zip(*columns, strict=True))


def format_number(value: float, digits: int) -> str:
    """Format a number with fixed decimals, and NaN as a dash."""
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def format_numbers(values: pd.Series, digits: int) -> pd.Series:
    """Format numbers with fixed decimals, and NaN as a dash."""
    return values.map(partial(format_number, digits=digits))


def format_count(flags: pd.Series) -> str:
    """Format how many of some flags are true."""
    return f"{int(flags.sum())} of {len(flags)}"


def read_printed(name: str) -> pd.DataFrame:
    """Read a table as printed in the paper."""
    path = resources.files("vstatkit.studies") / "printed" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file)


def make_panels(rows: int, columns: int, *, height: float) -> tuple["Figure", Any]:
    """Create a figure and its `axes[row][column]` without pyplot's global state."""
    from matplotlib.figure import Figure  # noqa: PLC0415 only figures need it

    figure = Figure(figsize=(WIDTH, height * rows + 0.7), layout="constrained")
    return figure, figure.subplots(rows, columns, sharey="row", squeeze=False)


def add_legend(figure: "Figure", ax: "Axes", columns: int) -> None:
    """Add the legend of a panel below the figure."""
    figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )


def clean_axes(ax: "Axes") -> None:
    """Remove the top and right spines and draw a light horizontal grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
