"""Report of the validity study: goals met and missed, tables and a picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vstatkit.studies.dgps import LAWS
from vstatkit.studies.palette import COLOURS, clean, panels
from vstatkit.studies.report import Report, decimals, markdown_table
from vstatkit.studies.validity import ESTIMATORS, OURS, SETTINGS
from vstatkit.studies.validity_metrics import (
    CELLS_GOAL,
    COVERAGE_GOAL,
    DEAD_GOAL,
    MC_GOAL,
    RATIO_GOAL,
    chance_outside,
    within,
)

DEFAULTS = ("fit", "estimators")
"""Settings that the goals are for."""

HELD = "†"

TRUTH = (
    "The tables above ask whether an interval covers the expectation of the ensemble "
    "over data sets of this size. "
    'Whether it covers E[y|x] is another question: for `target="truth"`, plain '
    "forests, grf's regression and local linear forests, and EconML's regression "
    "forest, `benchmarks/truth.py` asks it on the regression laws and eight more. "
    "[Intervals that aim at E\\[y|x\\]](truth.md) has coverage and error, law by law."
)
"""Where the other question is answered; it is asked of other fits, and apart."""


@dataclass(frozen=True)
class Findings:
    """All that the study measured.

    Attributes
    ----------
    points : DataFrame
        Of every setting, law, estimator and query point.
    laws : DataFrame
        Of every setting, law and estimator.
    seeds : DataFrame or None
        Monte Carlo errors, stated and realised.
    peers : DataFrame or None
        Of every peer, law and query point.
    absent : sequence of str
        Peers that are not installed.
    """

    points: pd.DataFrame
    laws: pd.DataFrame
    seeds: pd.DataFrame | None = None
    peers: pd.DataFrame | None = None
    absent: Sequence[str] = ()

    def ours(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep the rows of our estimator."""
        return frame[frame["estimator"] == OURS]

    @property
    def data_sets(self) -> "pd.Series[int]":
        """Data sets of every law, by setting."""
        return self.laws.groupby("setting", sort=False)["data_sets"].min()


def report(found: Findings) -> Report:
    """Write up the study."""
    pieces = [
        "# Do the intervals hold?",
        _introduction(found),
        "## Goals",
        "\n".join(f"* {line}" for line in goals(found)),
        "## Our intervals, law by law",
        "Mean estimated over true variance (median over the points) · coverage of "
        "95 % intervals in percent, median over the points, and the lowest.",
        markdown_table(_interval_table(found)),
        *_test_pieces(found),
        "## The estimators beside each other",
        "On the same trees. Width is the median, over data sets and then cells, of "
        "the interval's width over the ideal one's, 2 x 1.96 true standard deviations.",
        markdown_table(_estimator_table(found)),
        "![Coverage by law, setting and estimator](validity.png)",
        "Every mark is a query point; the band is the goal, 93 to 97.5 %.",
        *_seed_pieces(found),
        *_peer_pieces(found),
        "## E[y|x]",
        TRUTH,
        "## The laws",
        markdown_table(_law_table(found)),
    ]
    tables = {"validity-points": found.points, "validity-laws": found.laws}
    extras = {"validity-seeds": found.seeds, "validity-peers": found.peers}
    tables |= {name: one for name, one in extras.items() if one is not None}
    text = "\n\n".join(piece for piece in pieces if piece)
    return Report("validity", text, tables, {"validity": draw(found.points)})


def _introduction(found: Findings) -> str:
    typical = float(found.ours(found.points)["ratio_se"].median())
    counts = found.data_sets
    alike = bool((counts == counts.iloc[0]).all())
    if alike:
        counts = counts.iloc[:1]

    def each(text: Callable[[int], str]) -> str:
        """Write something for every number of data sets, with its settings."""
        said = [text(int(count)) for count in counts]
        if alike:
            return said[0]
        pairs = zip(said, counts.index, strict=True)
        return ", ".join(f"{one} ({setting})" for one, setting in pairs)

    named = ", ".join(f"`{name}` ({label})" for label, name in ESTIMATORS.items())
    return (
        f"Written by `vstatkit reproduce validity`, {each(str)} data sets a law. A run "
        "that was stopped goes on; `--laws` and `--settings` choose parts, and runs "
        "of different laws may share a directory at the same time. What is covered "
        "is the mean of the estimates over all data sets, the target of an ensemble's "
        "interval; the true variance is theirs too. The estimators are "
        f"{named}; ours is {OURS}. Laws marked {HELD} stayed aside while estimators "
        "were made. Monte Carlo errors of the study: one standard error of a coverage "
        f"of 95 % is {each(lambda n: f'{100 * np.sqrt(0.05 * 0.95 / n):.1f} %')}, of a "
        f"variance ratio {typical:.2f} (median); all others are in the CSV files "
        "beside this page. An exact interval misses the goal by chance in "
        f"{each(lambda n: f'{100 * chance_outside(n):.0f} %')} of cells."
    )


def goals(found: Findings) -> list[str]:
    """Say which goals were met and which were missed, counted."""
    lines = []
    for setting in DEFAULTS:
        points, laws = (
            frame[frame["setting"] == setting]
            for frame in (found.ours(found.points), found.ours(found.laws))
        )
        if len(points):
            lines += [f"**{setting}**, {line}" for line in _goals_of(points, laws)]
    if found.seeds is not None:
        lines.append(_seed_goal(found.seeds))
    return lines or ["Neither default was studied."]


def _goals_of(points: pd.DataFrame, laws: pd.DataFrame) -> list[str]:
    share = float(within(points["coverage"], COVERAGE_GOAL).mean())
    median = float(points["ratio"].median())
    lines = [
        f"coverage in {_percents(COVERAGE_GOAL)}: {_counted(points)} cells (goal "
        f"{CELLS_GOAL:.0%}): {_verdict(share >= CELLS_GOAL)}. Of laws held aside "
        f"{_counted(points[points['held']])}.{_missed_points(points)}",
        f"median variance ratio {median:.2f} (goal {RATIO_GOAL[0]} to "
        f"{RATIO_GOAL[1]}): {_verdict(RATIO_GOAL[0] <= median <= RATIO_GOAL[1])}.",
    ]
    for column, goal, what in (
        ("dead", DEAD_GOAL, "idle predictors rejected"),
        ("band", COVERAGE_GOAL, "bands of 20 points hold"),
    ):
        measured = laws.dropna(subset=column)
        if len(measured):
            lines.append(
                f"{what} in {_percents(goal)}: {_by_law(measured, column, goal)}"
            )
    return lines


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _percents(goal: tuple[float, float]) -> str:
    return f"[{100 * goal[0]:g}, {100 * goal[1]:g}] %"


def _counted(points: pd.DataFrame) -> str:
    met = within(points["coverage"], COVERAGE_GOAL)
    return f"{int(met.sum())} of {len(points)}"


def _missed_points(points: pd.DataFrame) -> str:
    listed = []
    for law, cells in points.groupby("law", sort=False):
        out = 100 * cells["coverage"][~within(cells["coverage"], COVERAGE_GOAL)]
        if len(out):
            figures = f"{out.min():.1f}"
            figures += f" to {out.max():.1f}" if len(out) > 1 else ""
            listed.append(f"{law} {len(out)} of {len(cells)} ({figures})")
    return f" Outside: {'; '.join(listed)}." if listed else ""


def _by_law(laws: pd.DataFrame, column: str, goal: tuple[float, float]) -> str:
    met = within(laws[column], goal)
    out = laws[~met]
    listed = ", ".join(
        f"{law} {100 * value:.1f}"
        for law, value in zip(out["law"], out[column], strict=True)
    )
    tail = f". Outside: {listed}." if listed else "."
    verdict = _verdict(bool(met.all()))
    return f"{int(met.sum())} of {len(laws)} laws: {verdict}{tail}"


def _seed_goal(seeds: pd.DataFrame) -> str:
    met = within(seeds["ratio"], (1 / MC_GOAL, MC_GOAL))
    return (
        f"**Monte Carlo error**, realised within a factor {MC_GOAL} of the stated one "
        f"over {int(seeds['seeds'].max())} seeds: {int(met.sum())} of {len(seeds)} "
        f"cells (one standard error of a cell is {float(seeds['se'].max()):.0%}): "
        f"{_verdict(bool(met.all()))}."
    )


def _marked(law: str) -> str:
    return f"{law} {HELD}" if LAWS[law].held else law


def _studied(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """List the settings and laws that occur, in the order of the study."""
    settings, laws = set(frame["setting"]), set(frame["law"])
    return [s for s in SETTINGS if s in settings], [one for one in LAWS if one in laws]


def _grid(frame: pd.DataFrame, cell: str, settings: Sequence[str]) -> pd.DataFrame:
    """Lay out the cells of a column, laws down and settings across."""
    texts = frame.set_index(["law", "setting"])[cell]
    laws = _studied(frame)[1]
    columns = {s: [str(texts.get((law, s), "–")) for law in laws] for s in settings}
    return pd.DataFrame({"law": [_marked(law) for law in laws], **columns})


def _interval_table(found: Findings) -> pd.DataFrame:
    grouped = found.ours(found.points).groupby(["setting", "law"], sort=False)
    cells = grouped.agg(
        ratio=("ratio", "median"),
        middle=("coverage", "median"),
        lowest=("coverage", "min"),
    ).reset_index()
    cells["text"] = [
        f"{decimals(ratio, 2)} · {100 * middle:.1f} ({100 * lowest:.1f})"
        for ratio, middle, lowest in zip(
            cells["ratio"], cells["middle"], cells["lowest"], strict=True
        )
    ]
    return _grid(cells, "text", _studied(cells)[0])


def _test_pieces(found: Findings) -> list[str]:
    cells = found.ours(found.laws)
    settings = [s for s in _studied(cells)[0] if SETTINGS[s].by_fit]
    if not settings:
        return []
    texts = [
        f"{decimals(100 * dead, 1)} · {decimals(100 * band, 1)}"
        for dead, band in zip(cells["dead"], cells["band"], strict=True)
    ]
    return [
        "Predictors that do nothing, rejected in percent of tests at the 5 % level · "
        "bands of 20 points that hold at all of them, in percent. `ForestRegressor` "
        "and `ForestClassifier` have neither.",
        markdown_table(_grid(cells.assign(text=texts), "text", settings)),
        _shadow_sentence(found),
    ]


def _shadow_sentence(found: Findings) -> str:
    rows = found.ours(found.laws).dropna(subset="shadows")
    if rows.empty:
        return ""
    listed = ", ".join(
        f"{100 * value:.1f} % ({setting})"
        for setting, value in zip(rows["setting"], rows["shadows"], strict=True)
    )
    return (
        "Predictors that do nothing but go along with some that do move a forest's "
        "own mean, so zero is not their null. Intervals of their effects miss that "
        f"mean in {listed}."
    )


def _estimator_table(found: Findings) -> pd.DataFrame:
    rows = []
    for setting in _studied(found.points)[0]:
        for label in ESTIMATORS:
            points, laws = (
                frame[(frame["setting"] == setting) & (frame["estimator"] == label)]
                for frame in (found.points, found.laws)
            )
            rows.append(
                {
                    "setting": setting,
                    "estimator": label,
                    "trees": f"{laws['B'].median():,.0f}",
                    **_compared(points),
                    "idle rejected, %": decimals(100 * laws["dead"].mean(), 1),
                    "bands, %": decimals(100 * laws["band"].median(), 1),
                }
            )
    return pd.DataFrame(rows)


def _compared(points: pd.DataFrame) -> dict[str, str]:
    """Summarise cells: the columns that ours and peers share."""
    ratio = points["ratio"].quantile([0.1, 0.5, 0.9])
    coverage = 100 * points["coverage"]
    return {
        "ratio (10 to 90 % of cells)": f"{ratio[0.5]:.2f} "
        f"({ratio[0.1]:.2f} to {ratio[0.9]:.2f})",
        "coverage, % (lowest)": f"{coverage.median():.1f} ({coverage.min():.1f})",
        "cells in goal": _counted(points),
        "width": decimals(points["median_width"].median(), 2),
    }


def _seed_pieces(found: Findings) -> list[str]:
    if found.seeds is None:
        return []
    rows = []
    for (B, label), cells in found.seeds.groupby(["B", "estimator"], sort=False):
        met = within(cells["ratio"], (1 / MC_GOAL, MC_GOAL))
        rows.append(
            {
                "B": B,
                "estimator": label,
                "trees": f"{cells['learners'].median():,.0f}",
                "realised / stated": decimals(cells["ratio"].median(), 2),
                "lowest": decimals(cells["ratio"].min(), 2),
                "highest": decimals(cells["ratio"].max(), 2),
                f"within {MC_GOAL}": f"{int(met.sum())} of {len(cells)}",
            }
        )
    laws = ", ".join(dict.fromkeys(found.seeds["law"]))
    return [
        "## The Monte Carlo error of the variance",
        f"One data set each of {laws}; standard deviation of the estimated variance "
        "over seeds, over what `components.mc_se` states.",
        markdown_table(pd.DataFrame(rows)),
    ]


def _peer_pieces(found: Findings) -> list[str]:
    absent = f"Not installed: {', '.join(found.absent)}." if found.absent else ""
    if found.peers is None:
        return ["## Peers", absent] if absent else []
    laws = list(dict.fromkeys(found.peers["law"]))
    ours = found.ours(found.points)
    rows = [
        {"who": str(peer), **_compared(cells)}
        for peer, cells in found.peers.groupby("peer", sort=False)
    ]
    rows += [
        {"who": f"vstatkit, {setting} (own terms)", **_compared(ours[chosen])}
        for setting in _studied(ours)[0]
        if (chosen := (ours["setting"] == setting) & ours["law"].isin(laws)).any()
    ]
    return [
        "## Peers",
        f"On the first {found.peers['data_sets'].max()} data sets of the regression "
        "laws (ranger and EconML know neither "
        "clusters nor missing values), and on the same terms: 2000 trees (EconML: its "
        "default), the package's own standard error, normal quantiles. A variance that "
        "is not a number covers nothing. Each is compared with its own mean. The last "
        "rows are our defaults: more trees, Student's t with estimated degrees of "
        f"freedom, intervals that allow for skewness. {absent}".strip(),
        markdown_table(pd.DataFrame(rows)),
    ]


def _law_table(found: Findings) -> pd.DataFrame:
    laws = [LAWS[name] for name in _studied(found.points)[1]]
    return pd.DataFrame(
        {
            "law": [_marked(law.name) for law in laws],
            "n": [law.n for law in laws],
            "what it is": [law.description for law in laws],
            "idle": [", ".join(law.dead + law.shadows) or "–" for law in laws],
        }
    )


MARKS = ("o", "s", "^", "D", "v", "P")
HUES = ("grey", "orange", "blue", "green", "purple", "red")


def draw(points: pd.DataFrame) -> Figure:
    """Draw the coverage of every cell, a panel for each setting."""
    settings, laws = _studied(points)
    figure, axes = panels(len(settings), 1, height=2.1)
    for row, setting in enumerate(settings):
        ax = axes[row][0]
        _marks(ax, points[points["setting"] == setting], laws)
        title = f"{setting}: {SETTINGS[setting].description}".replace("`", "")
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_ylabel("Coverage, %")
        last = row == len(settings) - 1
        ax.set_xticks(
            range(len(laws)),
            [_marked(law) for law in laws] if last else [""] * len(laws),
            rotation=35,
            ha="right",
            rotation_mode="anchor",
        )
        ax.tick_params(axis="x", length=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False
    )
    return figure


def _marks(ax: Axes, points: pd.DataFrame, laws: list[str]) -> None:
    low, high = (100 * bound for bound in COVERAGE_GOAL)
    ax.axhspan(low, high, color=COLOURS["sky"], alpha=0.25, linewidth=0)
    ax.axhline(95, color=COLOURS["black"], linewidth=0.8)
    step = 0.8 / len(ESTIMATORS)
    for e, label in enumerate(ESTIMATORS):
        cells = points[points["estimator"] == label]
        x = cells["law"].map(laws.index).to_numpy(dtype=float)
        ax.plot(
            x + step * (e - (len(ESTIMATORS) - 1) / 2),
            100 * cells["coverage"],
            MARKS[e],
            color=COLOURS[HUES[e]],
            markersize=3.5,
            alpha=0.8,
            label=f"{label}, ours" if label == OURS else label,
        )
    for edge in range(1, len(laws)):
        ax.axvline(edge - 0.5, color="0.9", linewidth=0.8, zorder=0)
    ax.set_xlim(-0.5, len(laws) - 0.5)
    clean(ax)
