"""The paper's figures: grouped boxes of estimates, and the variance's two parts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator

from vstatkit._typing import Floats
from vstatkit.studies import bias, transition
from vstatkit.studies.bias import LABELS, NOBS, SIZES, SUBSAMPLES, Cell
from vstatkit.studies.claims import check_claims
from vstatkit.studies.experiment import Record
from vstatkit.studies.palette import COLOURS, clean, panels
from vstatkit.studies.report import Report, decimals, markdown_table
from vstatkit.studies.simulation import Simulation

FILL = {
    "im": COLOURS["purple"],
    "bm": COLOURS["sky"],
    "ij": COLOURS["yellow"],
    "corrected_v": COLOURS["blue"],
    "corrected_ij": COLOURS["blue"],
    "corrected_u": COLOURS["blue"],
}
SAMPLING = {
    "V": "with replacement (V-statistics)",
    "U": "without replacement (U-statistics)",
}
VARIANCE = "Estimated variance"
PANELS = {
    "corrected-v": ("V", "corrected_v", "Corrected-V on V-statistics"),
    "wager-athey": ("U", "corrected_ij", "Wager and Athey's factor on U-statistics"),
    "corrected-v-on-u": ("U", "corrected_v", "Corrected-V on U-statistics"),
    "corrected-u": ("U", "corrected_u", "Corrected-U on U-statistics"),
}
"""Pictures of one correction next to BM and IJ: sampling, method, caption."""


def bias_report(record: Record, study: Simulation) -> Report:
    """Write up the figures of sections 5.1 and 5.2 and of the appendices."""
    found = bias.cells(record, study)
    table = bias.summary(found)
    checked = check_claims(table)
    pictures: dict[str, Figure] = {}
    captions: dict[str, str] = {}
    for k in SUBSAMPLES:
        pictures[f"bias-k{k}"] = draw_samplings(found, k, "variance")
        captions[f"bias-k{k}"] = f"IM, BM and IJ, k = {k}"
    for name, (letter, method, caption) in PANELS.items():
        pictures[name] = draw_sizes(found, letter, method)
        captions[name] = caption
    for field, symbol in (("zeta_1", "zeta-1"), ("zeta_k", "zeta-k")):
        pictures[symbol] = draw_samplings(found, SUBSAMPLES[0], field)
        captions[symbol] = f"{field} by IM, BM and IJ, k = {SUBSAMPLES[0]}"
    pieces = [
        f"{len(found[0].mean)} data sets (print: 100) of n = {NOBS}. Shown in the "
        "pictures are the estimates of the variance of an ensemble of "
        f"{SIZES[bias.REFERENCE]} trees, from B trees; the line is the true variance. "
        "The axis is logarithmic: boxes of estimates below zero run off its end, "
        "where their share is written, and there is none if their median is negative.",
        "**Mean estimated variance over true variance**, with 95 % bounds of its "
        "sampling error; in parentheses the share of negative estimates, if any:",
        markdown_table(_ratio_table(table)),
        "**What the paper reads from its figures**, and the cells in which it holds "
        "here (a ratio is one, or above or below it, by its bound):",
        markdown_table(_claim_table(checked)),
        *(f"![{caption}]({name}.png)" for name, caption in captions.items()),
    ]
    tables = {"figures": table, "figures-claims": checked}
    return Report("figures", "\n\n".join(pieces), tables, pictures)


def _claim_table(checked: pd.DataFrame) -> pd.DataFrame:
    cells = zip(checked["holds"], checked["cells"], strict=True)
    return pd.DataFrame(
        {
            "claim": checked["claim"],
            "holds in": [f"{holds} of {count}" for holds, count in cells],
        }
    )


def _ratio_table(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (letter, k, method), group in table.groupby(
        ["statistic", "k", "method"], sort=False
    ):
        row: dict[str, object] = {"statistic": letter, "k": k, "method": method}
        for cell in group.to_dict("records"):
            share = cell["negative"]
            negative = f" ({share:.0%} < 0)" if share else ""
            value = f"{cell['ratio']:.2f} ± {cell['ratio_bound']:.2f}"
            row[f"B = {cell['B']}"] = value + negative
        rows.append(row)
    return pd.DataFrame(rows)


def draw_samplings(found: Sequence[Cell], k: int, field: str) -> Figure:
    """Draw IM, BM and IJ for both samplings."""
    figure, axes = panels(1, 2, height=3.6)
    methods = ("im", "bm", "ij")
    chosen = [cell for cell in found if cell.k == k and cell.method in methods]
    floor = _floor(chosen, field) / 2
    for ax, letter in zip(axes[0], SAMPLING, strict=True):
        here = [cell for cell in chosen if cell.statistic == letter]
        _boxes(ax, here, methods, field, floor=floor)
        ax.set_title(f"Subsamples {SAMPLING[letter]}, k = {k}", fontsize=11)
        if field == "zeta_k":
            _plain_ticks(ax)
    axes[0][0].set_ylim(bottom=floor)
    what = {"variance": VARIANCE, "zeta_1": r"$\hat\zeta_{1,k}$"}
    axes[0][0].set_ylabel(what.get(field, r"$\hat\zeta_{k,k}$"))
    _legend(figure, methods, truth=field == "variance")
    return figure


def draw_sizes(found: Sequence[Cell], letter: str, method: str) -> Figure:
    """Draw a correction next to BM and IJ, for the three subsample sizes."""
    figure, axes = panels(1, len(SUBSAMPLES), height=3.6)
    methods = (method, "bm", "ij")
    chosen = [
        cell for cell in found if cell.statistic == letter and cell.method in methods
    ]
    # Room below the boxes for the shares of negative estimates.
    floor = _floor(chosen, "variance") / 12
    for ax, k in zip(axes[0], SUBSAMPLES, strict=True):
        here = [cell for cell in chosen if cell.k == k]
        _boxes(ax, here, methods, "variance", floor=floor)
        ax.set_title(f"k = {k}", fontsize=11)
    axes[0][0].set_ylim(bottom=floor)
    axes[0][0].set_ylabel(f"{VARIANCE}, subsamples\n{SAMPLING[letter]}")
    _legend(figure, methods, truth=True)
    return figure


def _floor(cells: Sequence[Cell], field: str) -> float:
    """Find the lowest end of a whisker or box that a logarithmic axis can show."""
    ends = [
        end
        for cell in cells
        for end in _quantiles(np.asarray(getattr(cell, field)))
        if end > 0
    ]
    return min(ends)


def _quantiles(values: Floats) -> tuple[float, ...]:
    found = boxplot_stats(values)[0]
    return found["whislo"], found["q1"], found["med"]


def _boxes(
    ax: Axes, cells: Sequence[Cell], methods: Sequence[str], field: str, *, floor: float
) -> None:
    """Draw a box for every method and B; below it the share of negative estimates."""
    width = 0.26
    for cell in cells:
        values = np.asarray(getattr(cell, field))
        place = SIZES.index(cell.B) + width * (methods.index(cell.method) - 1)
        found = boxplot_stats(values)[0]
        if found["med"] > 0:
            # What lies below zero ends below the axis.
            for name in ("whislo", "q1"):
                found[name] = max(found[name], floor / 10)
            boxes = ax.bxp(
                [found],
                positions=[place],
                widths=0.8 * width,
                patch_artist=True,
                manage_ticks=False,
                medianprops={"color": "black"},
                flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "0.4"},
            )
            boxes["boxes"][0].set_facecolor(FILL[cell.method])
        hidden = np.mean(values <= 0)
        if hidden > 0:
            ax.text(
                place,
                0.015,
                f"{hidden:.0%}\n< 0",
                transform=ax.get_xaxis_transform(),
                ha="center",
                fontsize=7.5,
                color=FILL[cell.method],
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=5,
            )
    if field == "variance":
        ax.axhline(cells[0].truth, color=COLOURS["red"], linewidth=1.6)
    ax.set_yscale("log")
    ax.set_xlim(-0.5, len(SIZES) - 0.5)
    ax.set_xticks(range(len(SIZES)), [f"{B}" for B in SIZES])
    ax.set_xlabel("Trees B")
    clean(ax)


def _plain_ticks(ax: Axes) -> None:
    """Label 0.2, 0.5, 1, 2 on an axis that spans little more than a decade."""
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    ax.yaxis.set_major_formatter(plain)
    ax.yaxis.set_minor_formatter(plain)


def _legend(figure: Figure, methods: Sequence[str], *, truth: bool) -> None:
    handles: list[Artist] = [
        Patch(facecolor=FILL[method], edgecolor="black", label=LABELS[method])
        for method in methods
    ]
    if truth:
        handles.append(Line2D([], [], color=COLOURS["red"], label="true variance"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def transition_report(record: Record, study: Simulation) -> Report:
    """Write up the figure of appendix F."""
    table = transition.parts(record, study)
    shown = table.set_index("B").map(lambda value: decimals(value, 4)).reset_index()
    pieces = [
        f"{len(record['V/mean'])} data sets (print: ten times 100), "
        f"n = {transition.NOBS}, k = {transition.SUBSAMPLE}. "
        "The components are corrected-V's and the learners' variance from B = 1000, "
        "averaged over data sets.",
        markdown_table(shown),
        "![Variance components against B](variance-components.png)",
    ]
    return Report(
        "variance-components",
        "\n\n".join(pieces),
        {"variance-components": table},
        {"variance-components": draw_parts(table)},
    )


def draw_parts(table: pd.DataFrame) -> Figure:
    """Draw the empirical variance, the two parts, and their sum against B."""
    figure, axes = panels(1, 1, height=4.2)
    ax = axes[0][0]
    lines = {
        "empirical": ("Empirical variance, ± 1.96 standard errors", "black", "-", "o"),
        "total": ("Estimated: sum of both parts", "black", ":", "s"),
        "sampling": (r"Estimated: $k^2/n\;\zeta_{1,k}$", "blue", "-", "^"),
        "monte_carlo": (r"Estimated: $\zeta_{k,k}/B$", "orange", "-", "D"),
    }
    for column, (label, colour, style, marker) in lines.items():
        ax.plot(
            table["B"],
            table[column],
            linestyle=style,
            marker=marker,
            color=COLOURS[colour],
            label=label,
        )
    error = 1.96 * table["error"]
    ax.fill_between(
        table["B"],
        table["empirical"] - error,
        table["empirical"] + error,
        color="0.8",
        linewidth=0,
    )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("Trees B")
    ax.set_ylabel("Variance of the ensemble at x = 10")
    ax.legend(frameon=False)
    clean(ax)
    return figure
