"""The certificate: every comparison of the battery, and one verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

import vstatkit as vs
from r_bridge.availability import require
from r_bridge.compare import Comparison, Quantity, notes, table, table_cells, wrapped
from r_bridge.forests import FORESTS, Sections
from r_bridge.reported import reported_sections
from vstatkit.storage.atomic_files import write_text_whole

MARKDOWN_HEAD = (
    "| quantity | numbers | missing | zero | largest relative difference "
    "| tolerance | verdict |"
)


@dataclass(frozen=True)
class Certificate:
    """All comparisons between vstatkit and R, with one verdict.

    Attributes
    ----------
    versions : dict
        Versions of vstatkit, R and R's packages.
    ranger, grf : dict of str to list of Comparison
        Comparisons by setting.
    others : dict of str to dict
        Comparisons of other packages, by package and setting, and those of the tables
        of our own forests with formulas written in R.
    """

    versions: dict[str, str]
    ranger: Sections
    grf: Sections
    others: Mapping[str, Sections] = field(default_factory=dict)

    @property
    def packages(self) -> dict[str, Sections]:
        """Comparisons by package and setting."""
        return {"ranger": self.ranger, "grf": self.grf, **self.others}

    @property
    def comparisons(self) -> list[Comparison]:
        """All comparisons."""
        return [one for _, _, section in self._sections() for one in section]

    def _sections(self) -> Iterator[tuple[str, str, Sequence[Comparison]]]:
        """Iterate over packages and their settings."""
        for package, sections in self.packages.items():
            for title, section in sections.items():
                yield package, title, section

    @property
    def ok(self) -> bool:
        """Whether all required comparisons agree."""
        return all(comparison.ok for comparison in self.comparisons)

    @property
    def difference(self) -> float:
        """Largest relative difference of the required comparisons."""
        return max(comparison.difference for comparison in self.comparisons)

    def conclusion(self) -> list[str]:
        """Summarise the comparisons and their result in a few lines."""
        lines = [
            f"{len(self.comparisons)} forests compared",
            *(_count(package, found) for package, found in self.packages.items()),
            ", ".join(f"{name} {number}" for name, number in self.versions.items()),
        ]
        if self.ok:
            return [*lines, "PASSED: everything that must agree does."]
        return [*lines, *self._missed(), "FAILED: vstatkit and R differ."]

    def _missed(self) -> Iterator[str]:
        """List every number that differs, with its forest."""
        for _, title, section in self._sections():
            for place, comparison in enumerate(section, start=1):
                which = f", forest {place} of {len(section)}" * (len(section) > 1)
                for one in comparison.quantities:
                    if one.verdict == "DIFFERENT":
                        gap = f"{one.name} differs by {one.difference:.1e}"
                        yield f"MISSED: {title}{which}: {gap}"

    def _pooled(self) -> Iterator[Quantity]:
        for _, _, section in self._sections():
            yield from pool(section)

    def __str__(self) -> str:
        parts = []
        for package, title, section in self._sections():
            heading = _heading(package, title, section)
            parts.append(f"{heading}\n{table(pool(section))}\n")
        reasons = notes(list(self._pooled()))
        return "\n".join([*parts, *wrapped(reasons), "", *self.conclusion()])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Write the certificate as a page of Markdown."""
        lines = ["# Certificate of equivalence with R", ""]
        lines += [f"* {line}" for line in self.conclusion()]
        for package, title, section in self._sections():
            heading = _heading(package, title, section)
            lines += ["", f"## {heading}", "", MARKDOWN_HEAD]
            lines += ["|---|---|---|---|---|---|---|"]
            lines += [markdown_row(quantity) for quantity in pool(section)]
        reasons = notes(list(self._pooled()))
        lines += ["", "## Remarks", "", *(f"* {reason}" for reason in reasons)]
        return "\n".join(lines) + "\n"


def check(*, seeds: int = 10, out: str | PathLike[str] | None = None) -> Certificate:
    """Compare vstatkit with R over the whole battery.

    Parameters
    ----------
    seeds : int
        Data sets for each setting.
    out : str or path, optional
        Where the certificate is written as Markdown.

    Returns
    -------
    Certificate
        Printed, all tables; `ok` tells whether everything agrees.
    """
    check_arguments(seeds, out)
    found = require("R", "rpy2", "ranger")
    sections: dict[str, dict[str, Sequence[Comparison]]] = {}
    for forest in FORESTS.values():
        if forest.compare is not None:
            made_here = sections.setdefault(forest.package, {})
            made_here.update(forest.compare(range(seeds), found))
    names = ("R", *sections)
    own = {"vstatkit": reported_sections(range(seeds))}
    installed = {name: str(found[name]) for name in names if found[name] is not None}
    made = Certificate(
        versions={"vstatkit": vs.__version__, **installed},
        ranger=sections.pop("ranger"),
        grf=sections.pop("grf"),
        others={**sections, **own},
    )
    if out is not None:
        write_text_whole(out, made.to_markdown())
    return made


def check_arguments(seeds: int, out: str | PathLike[str] | None) -> None:
    """Check the arguments and the output path before the comparisons run."""
    if seeds < 1:
        raise ValueError(f"`seeds` must be at least 1; got {seeds}.")
    if out is None:
        return
    if not Path(out).parent.is_dir():
        raise FileNotFoundError(
            f"`out` must be in an existing folder; {Path(out).parent} does not exist."
        )
    if Path(out).is_dir():
        raise IsADirectoryError(f"`out` must be a file; {out} is a folder.")


def pool(section: Sequence[Comparison]) -> list[Quantity]:
    """Pool the numbers of several forests, quantity by quantity.

    Numbers with another tolerance have a row of their own.
    """
    groups: dict[tuple[str, float | None], list[Quantity]] = {}
    for comparison in section:
        for quantity in comparison.quantities:
            key = quantity.name, quantity.tolerance
            groups.setdefault(key, []).append(quantity)
    return [
        Quantity(
            name,
            np.concatenate([np.ravel(part.ours) for part in parts]),
            np.concatenate([np.ravel(part.theirs) for part in parts]),
            tolerance,
            next((part.reason for part in parts if part.reason), ""),
        )
        for (name, tolerance), parts in groups.items()
    ]


def markdown_row(quantity: Quantity) -> str:
    """Format a quantity as a row of a Markdown table."""
    name, *cells = table_cells(quantity)
    name = name.replace("|", r"\|")
    return f"| {' | '.join([name, *cells])} |"


def _heading(package: str, title: str, section: Sequence[Comparison]) -> str:
    many = f"{len(section)} forests" if len(section) > 1 else "1 forest"
    return f"{package}: {title} ({many})"


def _count(package: str, sections: Sections) -> str:
    comparisons = [one for section in sections.values() for one in section]
    worst = max((one.difference for one in comparisons), default=0.0)
    recorded = sum("recorded" in one.versions for one in comparisons)
    live = len(comparisons) - recorded
    return (
        f"{len(comparisons)} {package} forests in {len(sections)} settings: "
        f"largest relative difference {worst:.1e}"
        + (f" ({recorded} recorded, {live} live)" if recorded else "")
    )
