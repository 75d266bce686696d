"""Table 2: normality, variance ratio and coverage on the MARS function."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.normality import normality_tests
from vstatkit.studies.coverage import interval_frame, normal_quantile, ratio_bound
from vstatkit.studies.dgps import Mars
from vstatkit.studies.experiment import Draw, Record, iteration_stream
from vstatkit.studies.methods import Intervals, Method
from vstatkit.studies.registry import Plan
from vstatkit.studies.report import (
    COLOURS,
    Report,
    add_legend,
    clean_axes,
    format_count,
    format_numbers,
    make_panels,
    markdown_table,
    read_printed,
)
from vstatkit.studies.simulation import FULL, QUICK, Arm, Findings, Scale, Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ITERATIONS = 500
NOBS = 500
SIZES = (500, 1000, 2500, 5000)
SUBSAMPLES = (100, 250, 500)
POINTS = pd.Index(["p1", "p2", "p3"])
KEYS = ["k", "B", "point"]
DIGITS = {"normality": 2, "ratio": 2, "coverage": 1}
# Largest relative deviation of the IJ ratios at p1 that counts as agreement.
WITHIN = 0.25
LEVEL = 0.99  # level of the bounds for differences from the printed numbers
PRINTED_ITERATIONS = 500  # iterations behind each number in the paper's Table 2
# Fewest iterations for which the normality statistic is computed.
NORMALITY_ITERATIONS = 20

IJ = Method("IJ", "ij", monte_carlo=False)
FORMULA = Method("corrected-V", "corrected_v")
DISTINCT = Method("distinct", "distinct_within", monte_carlo=False)
VSTATKIT = Method("vstatkit", "hoeffding", interval="t")

# Interpretations of the printed column "corrected".
CANDIDATES = (
    FORMULA,
    Method("corrected-V without zeta_k/B", "corrected_v", monte_carlo=False),
    DISTINCT,
    Method("distinct with zeta_k/B", "distinct_within"),
    Method("distinct from IJ", "distinct_from_ij", monte_carlo=False),
    Method("distinct from IJ with zeta_k/B", "distinct_from_ij"),
    Method("distinct, own size", "distinct_within_own_size", monte_carlo=False),
    Method("distinct throughout", "distinct_throughout", monte_carlo=False),
)

METHODS = (IJ, VSTATKIT, *CANDIDATES)

# The printed column that a method is compared with; ours has none.
PRINTED_COLUMN = {
    IJ.label: "original",
    FORMULA.label: "corrected",
    DISTINCT.label: "corrected",
    VSTATKIT.label: "none",
}


def simulation(seed: int, scale: Scale = FULL) -> Simulation:
    """Build the simulation.

    The points p2 and p3, which the paper does not print, are drawn from the seed.
    """
    drawn = iteration_stream(seed, "table2", 0, Draw.POINTS).uniform(size=(2, 5))
    points = np.concatenate([np.full((1, 5), 0.5), drawn])
    return Simulation(
        name=f"table2{scale.suffix}",
        generator=Mars(NOBS // scale.units),
        formula="y ~ .",
        at=pd.DataFrame(points, POINTS, [f"x{j}" for j in range(1, 6)]),
        kernel="tree",  # all features are tried at each split, as in print
        arms=tuple(
            Arm(f"k={k}", k // scale.units, scale.sizes(SIZES), Intervals(METHODS))
            for k in SUBSAMPLES
        ),
    )


def run(plan: Plan) -> Findings:
    """Run the simulation."""
    study = simulation(plan.seed, QUICK if plan.quick else FULL)
    return plan.run(study, ITERATIONS), study


def proportion_bound(p1: Floats, n1: int, p2: Floats, n2: int) -> Floats:
    """Bound the difference of two proportions of the same events."""
    pooled = (p1 * n1 + p2 * n2) / (n1 + n2)
    variance = pooled * (1 - pooled) * (1 / n1 + 1 / n2)
    return normal_quantile(LEVEL) * np.sqrt(variance)


def normality_bound() -> float:
    """Bound the difference of two normality statistics of normal data.

    Each is chi-square with two degrees of freedom; the absolute difference of two
    independent ones has the same distribution.
    """
    return float(stats.chi2.isf(1 - LEVEL, 2))


def normality_statistic(mean: Floats) -> Floats:
    """D'Agostino and Pearson's statistic of every column, shape (m,).

    NaN for fewer than `NORMALITY_ITERATIONS` iterations.
    """
    if len(mean) < NORMALITY_ITERATIONS:
        return np.full(mean.shape[1], np.nan)
    return normality_tests(mean)["omnibus"].to_numpy(dtype=np.float64)


def measured_frame(record: Record, study: Simulation) -> pd.DataFrame:
    """Tabulate all methods by the paper's k and B."""
    frames = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        frame = interval_frame(record, arm, POINTS)
        frame["B"] = frame["B"].map(dict(zip(arm.sizes, SIZES, strict=True)))
        frames.append(frame.assign(k=k))
    return pd.concat(frames, ignore_index=True)


def normality_frame(record: Record, study: Simulation) -> pd.DataFrame:
    """Compute the normality statistic of every cell."""
    frames = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        for i, B in enumerate(SIZES):
            measured = normality_statistic(record[f"{arm.label}/mean"][:, i, :])
            columns = {"k": k, "B": B, "point": POINTS, "measured": measured}
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def compare(record: Record, study: Simulation) -> pd.DataFrame:
    """Compare every measured number with the printed one.

    `bound` is that of the difference of two studies of the same quantity, at the level
    0.99; `beyond` is true if the difference exceeds it.
    """
    printed = read_printed("table2").assign(ratio_none=np.nan, coverage_none=np.nan)
    columns = ["quantity", "method", *KEYS, "printed", "measured", "bound"]
    cells = normality_frame(record, study).merge(printed, on=KEYS)
    normality = cells.assign(
        quantity="normality",
        method="omnibus",
        printed=cells["normality_statistic"],
        bound=normality_bound(),
    )
    parts = [normality[columns]]
    measured = measured_frame(record, study)
    for method, column in PRINTED_COLUMN.items():
        cells = measured[measured["method"] == method].merge(printed, on=KEYS)
        iterations = int(cells["iterations"].iloc[0])
        spread = cells["ratio_spread"].to_numpy(dtype=np.float64)
        of_ratios = ratio_bound(spread, LEVEL, iterations, PRINTED_ITERATIONS)
        of_shares = proportion_bound(
            cells["coverage"].to_numpy(dtype=np.float64),
            iterations,
            (cells[f"coverage_{column}"] / 100).to_numpy(dtype=np.float64),
            PRINTED_ITERATIONS,
        )
        bounds = {"ratio": (1, of_ratios), "coverage": (100, of_shares)}
        for quantity, (unit, bound) in bounds.items():
            part = cells.assign(
                quantity=quantity,
                printed=cells[f"{quantity}_{column}"],
                measured=unit * cells[quantity],
                bound=unit * bound,
            )
            parts.append(part[columns])
    table = _add_difference(pd.concat(parts, ignore_index=True))
    return table[[*columns[:-1], "difference", "bound", "beyond"]]


def _add_difference(table: pd.DataFrame) -> pd.DataFrame:
    """Add the difference from print, and whether it is beyond its bound."""
    difference = table["measured"] - table["printed"]
    beyond = difference.abs() > table["bound"]
    return table.assign(difference=difference, beyond=beyond)


def candidates_frame(
    record: Record, study: Simulation, sizes: tuple[int, ...] = SIZES
) -> pd.DataFrame:
    """Compare the candidates for the column "corrected" with print, at p1.

    The quotient of the mean corrected variance and the mean IJ variance is compared:
    it does not depend on the true variance, so its sampling error is far smaller than
    that of a variance ratio. `sizes` are the paper's B for the sizes of the arms.
    """
    printed = read_printed("table2")
    printed = printed[printed["point"] == "p1"].set_index(["k", "B"])
    target = printed["ratio_corrected"] / printed["ratio_original"]
    rows = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        variance = record[f"{arm.label}/variance"][..., 0]  # iterations, sizes, methods
        share = 1 / len(variance) + 1 / PRINTED_ITERATIONS
        for (i, B), method in product(enumerate(sizes), CANDIDATES):
            raw = variance[:, i, METHODS.index(IJ)]
            corrected = variance[:, i, METHODS.index(method)]
            quotient = float(corrected.mean() / raw.mean())
            # The spread of an iteration's share in the quotient of the means
            spread = float(np.std(corrected - quotient * raw, ddof=1) / raw.mean())
            rows.append(
                {
                    "candidate": method.label,
                    "k": k,
                    "B": B,
                    "printed": float(target[(k, B)]),
                    "measured": quotient,
                    "bound": normal_quantile(LEVEL) * spread * np.sqrt(share),
                }
            )
    return _add_difference(pd.DataFrame(rows))


def report(findings: Findings) -> Report:
    """Report printed and measured numbers, differences, bounds, and a figure of p1."""
    record, study = findings
    table, candidates = compare(record, study), candidates_frame(record, study)
    iterations = len(next(iter(record.values())))
    pieces = [
        f"{iterations} data sets (print: 500). Bounds (±) are for the difference of "
        "the two studies, at the level 0.99; `*` marks what lies beyond.",
        _jackknife_sentence(table),
        _beyond_sentence(table),
        "**Mean estimated variance over true variance**",
        markdown_table(_two_columns(table, "ratio")),
        "**Coverage of 95 % intervals, in percent**",
        markdown_table(_two_columns(table, "coverage")),
        "**Normality statistic** (bound: chi-square with two degrees of freedom)",
        markdown_table(_side_by_side(table, "normality", ["omnibus"])),
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
    rows = (table["quantity"] == quantity) & (table["method"] == method)
    return table[rows].reset_index(drop=True)


def _jackknife_sentence(table: pd.DataFrame) -> str:
    rows = _rows(table, "ratio", IJ.label)
    rows = rows[rows["point"] == "p1"]
    relative = (rows["measured"] / rows["printed"] - 1).abs()
    worst = rows.iloc[int(relative.to_numpy().argmax())]
    return (
        f"IJ's variance ratios at p1 are within {WITHIN:.0%} of the printed ones in "
        f"{format_count(relative <= WITHIN)} cells; the largest deviation "
        f"is {relative.max():.1%} (k = {worst['k']}, B = {worst['B']})."
    )


def _beyond_sentence(table: pd.DataFrame) -> str:
    printed = table[table["method"] != VSTATKIT.label]
    parts = []
    for (quantity, method), rows in printed.groupby(["quantity", "method"], sort=False):
        counts = rows[rows["beyond"]].groupby("point").size().items()
        points = ", ".join(f"{point}: {count}" for point, count in counts)
        where = f" ({points})" if points else ""
        name = quantity if method == "omnibus" else f"{quantity} of {method}"
        parts.append(f"{name} {format_count(rows['beyond'])}{where}")
    return f"Beyond their bounds: {'; '.join(parts)}."


def _side_by_side(
    table: pd.DataFrame, quantity: str, methods: list[str]
) -> pd.DataFrame:
    """Show methods side by side: printed, then measured and difference."""
    digits = DIGITS[quantity]
    first = _rows(table, quantity, methods[0])
    shown = first[KEYS].assign(printed=format_numbers(first["printed"], digits))
    for method in methods:
        rows = _rows(table, quantity, method)
        name = "measured" if method in ("omnibus", IJ.label) else method
        bounds = (
            rows["bound"]
            .map(f" ± {{:.{digits}f}}".format)
            .where(rows["bound"].notna(), "")
        )
        marks = np.where(rows["beyond"], "*", "")
        shown[name] = format_numbers(rows["measured"], digits) + bounds + marks
        shown[f"{name} − printed"] = format_numbers(rows["difference"], digits)
    return shown


def _two_columns(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Show the paper's two columns, "original" and "corrected", and ours."""
    left = _side_by_side(table, quantity, [IJ.label])
    right = _side_by_side(table, quantity, [FORMULA.label, DISTINCT.label])
    left.columns = [*KEYS, *(f"IJ {name}" for name in left.columns[3:])]
    right = right.drop(columns=KEYS).rename(columns={"printed": "corrected printed"})
    shown = pd.concat([left, right], axis=1)
    ours = _rows(table, quantity, VSTATKIT.label)["measured"]
    return shown.assign(vstatkit=format_numbers(ours, DIGITS[quantity]))


def _candidate_table(candidates: pd.DataFrame) -> pd.DataFrame:
    """Sort the candidates by their root mean square deviation from print."""
    relative = candidates["difference"] / candidates["printed"]
    columns = {"relative": relative, "square": relative**2}
    groups = candidates.assign(**columns).groupby("candidate", sort=False)
    ranked = pd.DataFrame(
        {
            "rms deviation": np.sqrt(groups["square"].mean()),
            "largest": groups["relative"].agg(lambda x: x.abs().max()),
            "cells beyond the bound": groups["beyond"].agg(format_count),
        }
    ).sort_values("rms deviation")
    percent = "{:.1%}".format
    texts = {name: ranked[name].map(percent) for name in ("rms deviation", "largest")}
    return ranked.assign(**texts).reset_index()


# Marker, colour, label and shift of the methods in the figure.
MARKS = {
    IJ.label: ("o", "grey", "IJ", 1.0),
    FORMULA.label: ("s", "blue", "corrected-V, the formula", 0.94),
    DISTINCT.label: ("^", "orange", "corrected, distinct members", 1.06),
    VSTATKIT.label: ("D", "green", "vstatkit", 1.12),
}


def draw(table: pd.DataFrame) -> "Figure":
    """Plot printed and measured ratio and coverage at p1."""
    at_p1 = table[table["point"] == "p1"]
    figure, axes = make_panels(2, 3, height=3.1)
    for k, ratio, coverage in zip(SUBSAMPLES, *axes, strict=True):
        here = at_p1[at_p1["k"] == k]
        _draw_marks(ratio, here, "ratio")
        ratio.axhline(1, color=COLOURS["black"], linewidth=0.8)
        ratio.set(yscale="log", title=f"k = {k}")
        ratio.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        ratio.minorticks_off()
        _draw_marks(coverage, here, "coverage")
        coverage.axhline(95, color=COLOURS["black"], linewidth=0.8)
        coverage.set_xlabel("Trees B")
    coverages = at_p1[at_p1["quantity"] == "coverage"]
    lowest = (coverages["measured"] - coverages["bound"].fillna(0)).min()
    axes[1][0].set_ylim(lowest - 1, 101)
    axes[0][0].set_ylabel("Estimated / true variance")
    axes[1][0].set_ylabel("Coverage, %")
    add_legend(figure, axes[0][0], 3)
    return figure


def _draw_marks(ax: "Axes", rows: pd.DataFrame, quantity: str) -> None:
    for method, (marker, colour, label, shift) in MARKS.items():
        cells = _rows(rows, quantity, method)
        bound = np.where(cells["bound"].isna(), 0.0, cells["bound"])
        # A bar to zero has no end on a logarithmic axis; no share is above 100 %.
        below = np.clip(bound, 0, 0.95 * np.maximum(cells["measured"], 0))
        room = 100 - cells["measured"] if quantity == "coverage" else np.inf
        ax.errorbar(
            cells["B"].to_numpy() * shift,
            cells["measured"],
            yerr=[below, np.minimum(bound, room)],
            fmt=marker,
            color=COLOURS[colour],
            markersize=4.5,
            linewidth=1,
            label=label,
        )
    for printed, name, marker in ((IJ, "IJ", "x"), (FORMULA, "corrected", "+")):
        cells = _rows(rows, quantity, printed.label)
        ax.plot(
            cells["B"],
            cells["printed"],
            marker,
            color=COLOURS["black"],
            markersize=8,
            label=f"printed, {name}",
        )
    ax.set_xscale("log")
    ax.set_xticks(SIZES, [str(B) for B in SIZES])
    ax.minorticks_off()
    clean_axes(ax)
