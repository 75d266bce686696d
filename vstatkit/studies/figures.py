"""Figures of the paper: bias of the variance estimators, and components against B."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats
from vstatkit.studies.coverage import ratio_bound, true_variance, variance_ratio
from vstatkit.studies.dgps import Line
from vstatkit.studies.experiment import Record
from vstatkit.studies.methods import Components
from vstatkit.studies.registry import Plan
from vstatkit.studies.report import (
    COLOURS,
    Report,
    clean_axes,
    format_number,
    make_panels,
    markdown_table,
)
from vstatkit.studies.simulation import FULL, QUICK, Arm, Findings, Scale, Simulation

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Bias of IM, BM and IJ, before and after the corrections.

# Data sets; with the paper's 100, the true variance is known to 14 % only.
BIAS_ITERATIONS = 300
NOBS = 500
SUBSAMPLES = (100, 250, 400)
SIZES = (100, 1000, 10000)
# Subsamples per fixed observation of IM, by B; the paper does not state them.
N_IN = {100: 10, 1000: 25, 10000: 100}
# The B whose Monte Carlo variance is added to every estimate, as in the paper.
REFERENCE = SIZES.index(1000)

STATISTICS = {"V": True, "U": False}
METHODS = {
    "V": ("bm", "ij", "corrected_v"),
    "U": ("bm", "ij", "corrected_ij", "corrected_v", "corrected_u"),
}
RAW = ("im", "bm", "ij")  # methods without a correction
# Label and colour of the methods.
STYLES = {
    "im": ("IM", COLOURS["purple"]),
    "bm": ("BM", COLOURS["sky"]),
    "ij": ("IJ", COLOURS["yellow"]),
    "corrected_v": ("corrected-V", COLOURS["blue"]),
    "corrected_ij": ("corrected-IJ", COLOURS["blue"]),
    "corrected_u": ("corrected-U", COLOURS["blue"]),
}
SAMPLING = {
    "V": "with replacement (V-statistics)",
    "U": "without replacement (U-statistics)",
}
# Labels of the axis, by what is drawn.
AXES = {
    "variance": "Estimated variance",
    "zeta_1": r"$\hat\zeta_{1,k}$",
    "zeta_k": r"$\hat\zeta_{k,k}$",
}
# Figures of one correction next to BM and IJ: sampling, method, caption.
PANELS = {
    "corrected-v": ("V", "corrected_v", "Corrected-V on V-statistics"),
    "wager-athey": ("U", "corrected_ij", "Wager and Athey's factor on U-statistics"),
    "corrected-v-on-u": ("U", "corrected_v", "Corrected-V on U-statistics"),
    "corrected-u": ("U", "corrected_u", "Corrected-U on U-statistics"),
}


def _line_simulation(
    name: str, n: int, scale: Scale, arms: Sequence[Arm]
) -> Simulation:
    return Simulation(
        name=f"{name}{scale.suffix}",
        generator=Line(n // scale.units),
        formula="y ~ x",
        at=pd.DataFrame({"x": [10.0]}),
        kernel="tree",
        arms=tuple(arms),
    )


def bias_simulation(scale: Scale = FULL) -> Simulation:
    """Build the simulation: trees that split on `x`, evaluated at x = 10."""
    arms: list[Arm] = []
    sizes = scale.sizes(SIZES)
    for (letter, replace), k in product(STATISTICS.items(), SUBSAMPLES):
        size, label = k // scale.units, f"{letter}/k={k}"
        arms.append(Arm(label, size, sizes, Components(METHODS[letter]), replace))
        for B, learners in zip(SIZES, sizes, strict=True):
            options = {"n_in": max(2, N_IN[B] // scale.learners)}
            measure, im = Components(("im",)), f"{label}/IM/{B}"
            arm = Arm(im, size, (learners,), measure, replace, "two-level", options)
            arms.append(arm)
    return _line_simulation("bias", NOBS, scale, arms)


def run_bias(plan: Plan) -> Findings:
    """Run the simulation of the box plots."""
    study = bias_simulation(QUICK if plan.quick else FULL)
    return plan.run(study, BIAS_ITERATIONS), study


@dataclass(frozen=True)
class Cell:
    """Estimates of one method for one sampling, k and B, for every data set."""

    statistic: str
    method: str
    k: int
    B: int
    variance: Floats  # estimated variance of an ensemble of 1000 learners
    zeta_1: Floats
    zeta_k: Floats
    mean: Floats  # estimates of the ensemble


def split_cells(record: Record, study: Simulation) -> list[Cell]:
    """Split the record, arrays of iterations, sizes, methods and points, into cells."""
    learners = study.arms[0].sizes[REFERENCE]
    cells: list[Cell] = []
    for letter, k, (i, B) in product(STATISTICS, SUBSAMPLES, enumerate(SIZES)):
        label = f"{letter}/k={k}"
        mean = record[f"{label}/mean"][:, REFERENCE, 0]
        places = [("im", f"{label}/IM/{B}", 0, 0)]
        places += [(method, label, i, j) for j, method in enumerate(METHODS[letter])]
        for method, arm, size, place in places:
            zeta_k = record[f"{arm}/zeta_k"][:, size, 0]
            zeta_1 = record[f"{arm}/zeta_1"][:, size, place, 0]
            variance = record[f"{arm}/sampling"][:, size, place, 0] + zeta_k / learners
            cells.append(Cell(letter, method, k, B, variance, zeta_1, zeta_k, mean))
    return cells


def summarise_cells(cells: Sequence[Cell]) -> pd.DataFrame:
    """Tabulate quartiles, ratio to the true variance and share of negatives."""
    rows = []
    for cell in cells:
        ratio, spread = variance_ratio(cell.mean, cell.variance)
        quartiles = np.quantile(cell.variance, [0.25, 0.5, 0.75])
        rows.append(
            {
                "statistic": cell.statistic,
                "k": cell.k,
                "B": cell.B,
                "method": STYLES[cell.method][0],
                "true_variance": float(true_variance(cell.mean)),
                "mean": cell.variance.mean(),
                "lower_quartile": quartiles[0],
                "median": quartiles[1],
                "upper_quartile": quartiles[2],
                "negative": float(np.mean(cell.variance < 0)),
                "zeta_1": cell.zeta_1.mean(),
                "zeta_k": cell.zeta_k.mean(),
                "ratio": float(ratio),
                "ratio_bound": float(ratio_bound(spread, 0.95, len(cell.mean))),
            }
        )
    return pd.DataFrame(rows)


AGREE = 0.05  # relative difference up to which BM and IJ agree
# Claims of the paper: sampling, method, where the ratio lies, and their k and B.
CLAIMS = {
    "IJ overestimates at B = 100, V": ("V", "IJ", "above", SUBSAMPLES, (100,)),
    "IJ underestimates at B = 10000, U, k = 250 and 400": (
        *("U", "IJ", "below", (250, 400), (10000,)),
    ),
    "corrected-V is accurate, V": ("V", "corrected-V", "one", SUBSAMPLES, SIZES),
    "corrected-IJ overestimates at B = 100, U": (
        *("U", "corrected-IJ", "above", SUBSAMPLES, (100,)),
    ),
    "corrected-V over-corrects, U": ("U", "corrected-V", "below", SUBSAMPLES, SIZES),
    "corrected-U is accurate, U": ("U", "corrected-U", "one", SUBSAMPLES, SIZES),
}


def check_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Count the cells of `summarise_cells` in which each claim of the paper holds."""
    im, bm, ij = (
        table[table["method"] == method]
        .pivot_table(index=["statistic", "k"], columns="B", values="ratio")
        .to_numpy(dtype=np.float64)
        for method in ("IM", "BM", "IJ")
    )
    tests: dict[str, Bools] = {
        "IM exceeds BM": im > bm,
        f"BM and IJ agree within {AGREE:.0%}, B = 1000 and 10000": (
            np.abs(bm / ij - 1)[:, 1:] <= AGREE
        ),
        "IJ falls as B grows": np.diff(ij, axis=1) < 0,
    }
    distance, bound = table["ratio"] - 1, table["ratio_bound"]
    verdicts = {
        "above": distance > bound,
        "below": distance < -bound,
        "one": distance.abs() <= bound,
    }
    for claim, (letter, method, verdict, subsamples, sizes) in CLAIMS.items():
        rows = (table["statistic"] == letter) & (table["method"] == method)
        rows &= table["k"].isin(subsamples) & table["B"].isin(sizes)
        tests[claim] = verdicts[verdict][rows].to_numpy()
    return pd.DataFrame(
        [
            {"claim": claim, "holds": int(holds.sum()), "cells": holds.size}
            for claim, holds in tests.items()
        ]
    )


def report_bias(findings: Findings) -> Report:
    """Report the figures of sections 5.1 and 5.2 and of the appendices."""
    cells = split_cells(*findings)
    table = summarise_cells(cells)
    claims = check_claims(table)
    k = SUBSAMPLES[0]
    drawings = {
        f"bias-k{k}": (f"IM, BM and IJ, k = {k}", draw_samplings(cells, k, "variance"))
        for k in SUBSAMPLES
    }
    for name, (letter, method, caption) in PANELS.items():
        drawings[name] = (caption, draw_sizes(cells, letter, method))
    for field in ("zeta_1", "zeta_k"):
        caption = f"{field} by IM, BM and IJ, k = {k}"
        drawings[field.replace("_", "-")] = (caption, draw_samplings(cells, k, field))
    counts = [f"{row.holds} of {row.cells}" for row in claims.itertuples()]
    claim_table = pd.DataFrame({"claim": claims["claim"], "holds in": counts})
    pieces = [
        f"{len(cells[0].mean)} data sets (print: 100) of n = {NOBS}. Shown in the "
        "pictures are the estimates of the variance of an ensemble of "
        f"{SIZES[REFERENCE]} trees, from B trees; the line is the true variance. "
        "The axis is logarithmic: boxes of estimates below zero run off its end, "
        "where their share is written, and there is none if their median is negative.",
        "**Mean estimated variance over true variance**, with 95 % bounds of its "
        "sampling error; in parentheses the share of negative estimates, if any:",
        markdown_table(_ratio_table(table)),
        "**What the paper reads from its figures**, and the cells in which it holds "
        "here (a ratio is one, or above or below it, by its bound):",
        markdown_table(claim_table),
        *(f"![{caption}]({name}.png)" for name, (caption, _) in drawings.items()),
    ]
    tables = {"figures": table, "figures-claims": claims}
    pictures = {name: figure for name, (_, figure) in drawings.items()}
    return Report("figures", "\n\n".join(pieces), tables, pictures)


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


def draw_samplings(cells: Sequence[Cell], k: int, field: str) -> "Figure":
    """Plot IM, BM and IJ for both samplings."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 only figures need it

    panels = {
        f"Subsamples {text}, k = {k}": (letter, k) for letter, text in SAMPLING.items()
    }
    figure, axes = _draw_panels(cells, panels, RAW, field, room=2)
    # Axes of zeta_k span little more than a decade: label 0.2, 0.5, 1, 2.
    for ax in axes if field == "zeta_k" else ():
        ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
    return figure


def draw_sizes(cells: Sequence[Cell], letter: str, method: str) -> "Figure":
    """Plot a correction next to BM and IJ, for the three subsample sizes."""
    methods = (method, "bm", "ij")
    panels = {f"k = {k}": (letter, k) for k in SUBSAMPLES}
    # Room below the boxes for the shares of negative estimates.
    figure, axes = _draw_panels(cells, panels, methods, "variance", room=12)
    axes[0].set_ylabel(f"{AXES['variance']}, subsamples\n{SAMPLING[letter]}")
    return figure


def _draw_panels(
    cells: Sequence[Cell],
    panels: dict[str, tuple[str, int]],
    methods: Sequence[str],
    field: str,
    *,
    room: float,
) -> tuple["Figure", Sequence["Axes"]]:
    """Plot the cells of some methods; panels have a title, a sampling and a k.

    The axis begins at the lowest end of a box or whisker that a logarithmic axis can
    show, divided by `room`.
    """
    from matplotlib.cbook import boxplot_stats  # noqa: PLC0415 only figures need it
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    figure, axes = make_panels(1, len(panels), height=3.6)
    boxes = [
        (cell, boxplot_stats(getattr(cell, field))[0])
        for cell in cells
        if (cell.statistic, cell.k) in panels.values() and cell.method in methods
    ]
    ends = [box[name] for _, box in boxes for name in ("whislo", "q1", "med")]
    floor = min(float(end) for end in ends if end > 0) / room
    for ax, (title, place) in zip(axes[0], panels.items(), strict=True):
        here = [(cell, box) for cell, box in boxes if (cell.statistic, cell.k) == place]
        _draw_boxes(ax, here, methods, field, floor=floor)
        ax.set_title(title, fontsize=11)
    axes[0][0].set_ylim(bottom=floor)
    axes[0][0].set_ylabel(AXES[field])
    handles: list[Artist] = [
        Patch(facecolor=colour, edgecolor="black", label=label)
        for label, colour in (STYLES[method] for method in methods)
    ]
    if field == "variance":
        handles.append(Line2D([], [], color=COLOURS["red"], label="true variance"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure, axes[0]


def _draw_boxes(
    ax: "Axes",
    boxes: Sequence[tuple[Cell, dict[str, Any]]],
    methods: Sequence[str],
    field: str,
    *,
    floor: float,
) -> None:
    """Draw a box for every method and B; below it the share of negative estimates."""
    width = 0.26
    for cell, box in boxes:
        values, colour = getattr(cell, field), STYLES[cell.method][1]
        place = SIZES.index(cell.B) + width * (methods.index(cell.method) - 1)
        if box["med"] > 0:
            # Negative ends are moved to below the axis.
            for name in ("whislo", "q1"):
                box[name] = max(box[name], floor / 10)
            drawn = ax.bxp(
                [box],
                positions=[place],
                widths=0.8 * width,
                patch_artist=True,
                manage_ticks=False,
                medianprops={"color": "black"},
                flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "0.4"},
            )
            drawn["boxes"][0].set_facecolor(colour)
        negative = np.mean(values <= 0)
        if negative > 0:
            ax.text(
                place,
                0.015,
                f"{negative:.0%}\n< 0",
                transform=ax.get_xaxis_transform(),
                ha="center",
                fontsize=7.5,
                color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=5,
            )
    if field == "variance":
        ax.axhline(
            float(true_variance(boxes[0][0].mean)), color=COLOURS["red"], linewidth=1.6
        )
    ax.set(yscale="log", xlim=(-0.5, len(SIZES) - 0.5), xlabel="Trees B")
    ax.set_xticks(range(len(SIZES)), [f"{B}" for B in SIZES])
    clean_axes(ax)


# Variance components as the number of learners grows.

GROUP = 100  # data sets behind one empirical variance, as in the paper

TRANSITION_ITERATIONS = 10 * GROUP
TRANSITION_NOBS = 1000
TRANSITION_SUBSAMPLE = 10
TRANSITION_SIZES = tuple(range(100, 1001, 100))


def transition_simulation(scale: Scale = FULL) -> Simulation:
    """Build the simulation: trees on ten rows each, evaluated at x = 10."""
    k = max(2, TRANSITION_SUBSAMPLE // scale.units)
    arm = Arm("V", k, scale.sizes(TRANSITION_SIZES), Components(("corrected_v",)))
    return _line_simulation("transition", TRANSITION_NOBS, scale, [arm])


def run_transition(plan: Plan) -> Findings:
    """Run the simulation of the variance components."""
    study = transition_simulation(QUICK if plan.quick else FULL)
    return plan.run(study, TRANSITION_ITERATIONS), study


def tabulate_components(record: Record, study: Simulation) -> pd.DataFrame:
    """Tabulate the empirical variance and its estimated components for every B.

    The components are estimated from the largest ensemble, as in the paper, and
    averaged over data sets. The empirical variance is an average over groups of
    100 data sets; `error` is its standard error over groups.
    """
    mean = record["V/mean"][:, :, 0]  # data sets, sizes
    groups = np.array_split(mean, max(1, len(mean) // GROUP))
    empirical = np.stack([group.var(axis=0, ddof=1) for group in groups])
    several = len(groups) > 1
    error = empirical.std(axis=0, ddof=1) / np.sqrt(len(groups)) if several else np.nan
    sampling = float(record["V/sampling"][:, -1, 0, 0].mean())
    zeta_k = float(record["V/zeta_k"][:, -1, 0].mean())
    learners = np.array(study.arms[0].sizes)
    return pd.DataFrame(
        {
            "B": TRANSITION_SIZES,
            "empirical": empirical.mean(axis=0),
            "error": error,
            "sampling": sampling,
            "monte_carlo": zeta_k / learners,
            "total": sampling + zeta_k / learners,
        }
    )


def report_transition(findings: Findings) -> Report:
    """Report the figure of appendix F."""
    table = tabulate_components(*findings)
    formatted = table.set_index("B").map(lambda value: format_number(value, 4))
    pieces = [
        f"{len(findings[0]['V/mean'])} data sets (print: ten times 100), "
        f"n = {TRANSITION_NOBS}, k = {TRANSITION_SUBSAMPLE}. "
        "The components are corrected-V's and the learners' variance from B = 1000, "
        "averaged over data sets.",
        markdown_table(formatted.reset_index()),
        "![Variance components against B](variance-components.png)",
    ]
    return Report(
        "variance-components",
        "\n\n".join(pieces),
        {"variance-components": table},
        {"variance-components": draw_components(table)},
    )


def draw_components(table: pd.DataFrame) -> "Figure":
    """Plot the empirical variance, the two components and their sum against B."""
    figure, axes = make_panels(1, 1, height=4.2)
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
    low, high = table["empirical"] - error, table["empirical"] + error
    ax.fill_between(table["B"], low, high, color="0.8", linewidth=0)
    ax.set_ylim(bottom=0)
    ax.set(xlabel="Trees B", ylabel="Variance of the ensemble at x = 10")
    ax.legend(frameon=False)
    clean_axes(ax)
    return figure
