"""Report of Table 2: printed, measured, difference, bound; a picture of p1."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vstatkit.studies.experiment import Record
from vstatkit.studies.palette import COLOURS, clean, panels
from vstatkit.studies.report import Report, decimals, markdown_table
from vstatkit.studies.simulation import Simulation
from vstatkit.studies.table2 import (
    DISTINCT,
    FORMULA,
    IJ,
    SIZES,
    SUBSAMPLES,
    VSTATKIT,
    candidates_frame,
    compare,
    rank_candidates,
)

KEYS = ["k", "B", "point"]
DIGITS = {"normality": 2, "ratio": 2, "coverage": 1}
WITHIN = 0.25
"""Largest relative deviation of the IJ ratios at p1."""


def report(record: Record, study: Simulation) -> Report:
    """Write up the experiment."""
    table = compare(record, study)
    candidates = candidates_frame(record, study)
    iterations = len(next(iter(record.values())))
    pieces = [
        f"{iterations} data sets (print: 500). Bounds (±) are for the difference of "
        "the two studies, at the level 0.99; `*` marks what lies beyond.",
        _jackknife_sentence(table),
        _beyond_sentence(table),
        "**Mean estimated variance over true variance**",
        markdown_table(_ratio_table(table)),
        "**Coverage of 95 % intervals, in percent**",
        markdown_table(_coverage_table(table)),
        "**Normality statistic** (bound: chi-square with two degrees of freedom)",
        markdown_table(_normality_table(table)),
        '**What was printed as "corrected"?** The mean corrected variance over the '
        "mean IJ variance at p1, twelve cells, against print's own quotient:",
        markdown_table(_candidate_table(candidates)),
        "The picture shows p1; bars are the bounds of the difference from print.",
        "![Variance ratio and coverage at p1, printed and measured](table2.png)",
    ]
    return Report(
        "table2",
        "\n\n".join(pieces),
        {"table2": table, "table2-candidates": candidates},
        {"table2": draw(table)},
    )


def _rows(table: pd.DataFrame, quantity: str, method: str) -> pd.DataFrame:
    chosen = (table["quantity"] == quantity) & (table["method"] == method)
    return table[chosen].reset_index(drop=True)


def _jackknife_sentence(table: pd.DataFrame) -> str:
    rows = _rows(table, "ratio", IJ.label)
    rows = rows[rows["point"] == "p1"]
    relative = (rows["measured"] / rows["printed"] - 1).abs()
    worst = rows.iloc[int(relative.to_numpy().argmax())]
    return (
        f"IJ's variance ratios at p1 are within {WITHIN:.0%} of the printed ones in "
        f"{int((relative <= WITHIN).sum())} of {len(rows)} cells; the largest "
        f"deviation is {relative.max():.1%} (k = {worst['k']}, B = {worst['B']})."
    )


def _beyond_sentence(table: pd.DataFrame) -> str:
    held = table[table["method"] != VSTATKIT.label]
    parts = []
    for (quantity, method), rows in held.groupby(["quantity", "method"], sort=False):
        beyond = rows[rows["beyond"]]
        listed = ", ".join(
            f"{point}: {count}"
            for point, count in beyond.groupby("point").size().items()
        )
        where = f" ({listed})" if listed else ""
        name = quantity if method == "omnibus" else f"{quantity} of {method}"
        parts.append(f"{name} {len(beyond)} of {len(rows)}{where}")
    return f"Beyond their bounds: {'; '.join(parts)}."


def _measured(rows: pd.DataFrame, digits: int) -> list[str]:
    """Print measured numbers with their bounds and flags."""
    return [
        decimals(value, digits)
        + ("" if pd.isna(bound) else f" ± {bound:.{digits}f}")
        + ("*" if beyond else "")
        for value, bound, beyond in zip(
            rows["measured"], rows["bound"], rows["beyond"], strict=True
        )
    ]


def _beside(table: pd.DataFrame, quantity: str, methods: list[str]) -> pd.DataFrame:
    """Lay methods out side by side: printed, then measured and difference."""
    digits = DIGITS[quantity]
    first = _rows(table, quantity, methods[0])
    shown = first[KEYS].copy()
    shown["printed"] = [decimals(value, digits) for value in first["printed"]]
    for method in methods:
        rows = _rows(table, quantity, method)
        name = "measured" if method in ("omnibus", IJ.label) else method
        shown[name] = _measured(rows, digits)
        shown[f"{name} − printed"] = [
            decimals(value, digits) for value in rows["difference"]
        ]
    return shown


def _two_columns(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Show the paper's two columns, "original" and "corrected", and ours."""
    left = _beside(table, quantity, [IJ.label])
    right = _beside(table, quantity, [FORMULA.label, DISTINCT.label])
    left.columns = [*KEYS, *(f"IJ {name}" for name in left.columns[3:])]
    right = right.drop(columns=KEYS).rename(columns={"printed": "corrected printed"})
    shown = pd.concat([left, right], axis=1)
    ours = _rows(table, quantity, VSTATKIT.label)
    digits = DIGITS[quantity]
    shown["vstatkit"] = [decimals(value, digits) for value in ours["measured"]]
    return shown


def _ratio_table(table: pd.DataFrame) -> pd.DataFrame:
    return _two_columns(table, "ratio")


def _coverage_table(table: pd.DataFrame) -> pd.DataFrame:
    return _two_columns(table, "coverage")


def _normality_table(table: pd.DataFrame) -> pd.DataFrame:
    return _beside(table, "normality", ["omnibus"])


def _candidate_table(candidates: pd.DataFrame) -> pd.DataFrame:
    ranked = rank_candidates(candidates)
    return pd.DataFrame(
        {
            "candidate": ranked["candidate"],
            "rms deviation": [f"{value:.1%}" for value in ranked["rms"]],
            "largest": [f"{value:.1%}" for value in ranked["largest"]],
            "cells beyond the bound": [
                f"{beyond} of {cells}"
                for beyond, cells in zip(ranked["beyond"], ranked["cells"], strict=True)
            ],
        }
    )


MARKS = {
    IJ.label: ("o", "grey", "IJ"),
    FORMULA.label: ("s", "blue", "corrected-V, the formula"),
    DISTINCT.label: ("^", "orange", "corrected, distinct members"),
    VSTATKIT.label: ("D", "green", "vstatkit"),
}
SHIFT = {IJ.label: 1.0, FORMULA.label: 0.94, DISTINCT.label: 1.06, VSTATKIT.label: 1.12}


def draw(table: pd.DataFrame) -> Figure:
    """Draw ratio and coverage at p1: crosses printed, marks measured."""
    at_p1 = table[table["point"] == "p1"]
    figure, axes = panels(2, 3, height=3.1)
    for column, k in enumerate(SUBSAMPLES):
        here = at_p1[at_p1["k"] == k]
        ratio, coverage = axes[0][column], axes[1][column]
        _marks(ratio, here, "ratio")
        ratio.axhline(1, color=COLOURS["black"], linewidth=0.8)
        ratio.set_yscale("log")
        ratio.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        ratio.minorticks_off()
        ratio.set_title(f"k = {k}")
        _marks(coverage, here, "coverage")
        coverage.axhline(95, color=COLOURS["black"], linewidth=0.8)
        coverage.set_xlabel("Trees B")
    coverages = at_p1[at_p1["quantity"] == "coverage"]
    lowest = (coverages["measured"] - coverages["bound"].fillna(0)).min()
    axes[1][0].set_ylim(lowest - 1, 101)
    axes[0][0].set_ylabel("Estimated / true variance")
    axes[1][0].set_ylabel("Coverage, %")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _marks(ax: Axes, rows: pd.DataFrame, quantity: str) -> None:
    for method, (marker, colour, label) in MARKS.items():
        one = _rows(rows, quantity, method)
        x = one["B"].to_numpy() * SHIFT[method]
        bound = np.where(one["bound"].isna(), 0.0, one["bound"])
        # A bar to zero has no end on a logarithmic axis; no share is above 100 %.
        below = np.clip(bound, 0, 0.95 * np.maximum(one["measured"], 0))
        room = 100 - one["measured"] if quantity == "coverage" else np.inf
        ax.errorbar(
            x,
            one["measured"],
            yerr=[below, np.minimum(bound, room)],
            fmt=marker,
            color=COLOURS[colour],
            markersize=4.5,
            linewidth=1,
            label=label,
        )
    for method, name in ((IJ.label, "IJ"), (FORMULA.label, "corrected")):
        one = _rows(rows, quantity, method)
        ax.plot(
            one["B"],
            one["printed"],
            "x" if method == IJ.label else "+",
            color=COLOURS["black"],
            markersize=8,
            label=f"printed, {name}",
        )
    ax.set_xscale("log")
    ax.set_xticks(SIZES, [str(B) for B in SIZES])
    ax.minorticks_off()
    clean(ax)
