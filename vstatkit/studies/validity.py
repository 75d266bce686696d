"""The validity study: standard errors and intervals on simulation designs."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.exceptions import VstatkitWarning
from vstatkit.studies import validity_experiments as experiments
from vstatkit.studies.coverage import normal_quantile, true_variance, variance_ratio
from vstatkit.studies.dgps import DGP, DGPS, select_dgps
from vstatkit.studies.experiment import Record
from vstatkit.studies.registry import Plan, Study
from vstatkit.studies.report import (
    COLOURS,
    Report,
    add_legend,
    clean_axes,
    format_count,
    format_number,
    make_panels,
    markdown_table,
)
from vstatkit.studies.validity_experiments import ALPHA, ESTIMATORS, OURS, SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ITERATIONS = 500
# Further parts of the study: the Monte Carlo error, and other packages.
EXTRAS = ("seeds", "peers")
DEFAULTS = ("fit", "estimators")  # settings that the goals are for
COVERAGE_GOAL = (0.93, 0.975)
RATIO_GOAL = (0.95, 1.15)
NULL_GOAL = (0.035, 0.065)
MC_GOAL = 1.3  # factor between the stated and the realised Monte Carlo error
# Share of the cells (design, point) that must meet the goal for coverage.
CELLS_GOAL = 0.9
HELD_OUT = "†"
QUICK_NOTE = (
    "*Quick: a few trees where there should be thousands. This checks the machinery, "
    "not the intervals.*"
)

TRUTH = (
    "The tables above show whether an interval covers the expectation of the ensemble "
    "over data sets of this size. "
    'Coverage of E[y|x] is a different question. For `target="truth"`, plain '
    "forests, grf's regression and local linear forests, and EconML's regression "
    "forest, `benchmarks/truth.py` measures it on the regression designs and eight "
    "others. [Intervals that aim at E\\[y|x\\]](truth.md) lists coverage and error by "
    "design."
)

# Records by setting, number of learners or package; and by design.
Records = dict[tuple[str, str], Record]


@dataclass(frozen=True)
class Findings:
    """Tables of the study."""

    points: pd.DataFrame  # every setting, design, estimator and query point
    designs: pd.DataFrame  # every setting, design and estimator
    seeds: pd.DataFrame | None = None  # Monte Carlo errors, stated and realised
    peers: pd.DataFrame | None = None  # every package, design and query point
    absent: Sequence[str] = ()  # packages that are not installed


def run(plan: Plan) -> Findings:
    """Run the settings, the Monte Carlo error and other packages, as far as wanted."""
    extras = EXTRAS[:1] if plan.quick else EXTRAS
    wanted = plan.options.get("settings", [*SETTINGS, *extras])
    check_settings(wanted)
    dgps = select_dgps(plan.options.get("designs"))
    with warnings.catch_warnings():
        # Ensembles that are too small are part of the study.
        warnings.simplefilter("ignore", VstatkitWarning)
        records = _run_settings(plan, wanted, dgps)
        seeds = _run_seeds(plan, dgps) if "seeds" in wanted else {}
    installed, absent = experiments.find_peers() if "peers" in wanted else ([], [])
    peers = _run_peers(plan, installed, dgps)
    return Findings(
        point_frame(records),
        design_frame(records),
        seeds_frame(seeds) if seeds else None,
        peer_frame(peers) if peers else None,
        absent,
    )


def check_settings(names: Sequence[str]) -> None:
    """Raise an error unless all names are known and one of them is a setting."""
    known = [*SETTINGS, *EXTRAS]
    for name in names:
        if name not in known:
            raise ValueError(
                f"settings must be some of {', '.join(known)}; got {name!r}."
            )
    if not set(names) & set(SETTINGS):
        raise ValueError(
            f"settings must name one of {', '.join(SETTINGS)} at least; got "
            f"{', '.join(names) or 'none'}."
        )


def _run_settings(plan: Plan, wanted: Sequence[str], dgps: Sequence[DGP]) -> Records:
    """Run every design in one setting after the other, the defaults first."""
    records = {}
    for setting, dgp in product(SETTINGS.values(), dgps):
        if setting.name in wanted and setting.applies(dgp):
            experiment = experiments.SettingExperiment(dgp, setting, quick=plan.quick)
            records[setting.name, dgp.name] = plan.run(experiment, ITERATIONS)
    return records


def _run_seeds(plan: Plan, dgps: Sequence[DGP]) -> Records:
    """Measure the Monte Carlo error on those of its designs that are wanted."""
    capped, names = replace(plan, capped=True), [dgp.name for dgp in dgps]
    records = {}
    for B, name in product(experiments.SEED_SIZES, experiments.SEED_DGPS):
        if name in names:
            experiment = experiments.SeedExperiment(DGPS[name], B, quick=plan.quick)
            records[str(B), name] = capped.run(experiment, experiments.SEEDS)
    return records


def _run_peers(plan: Plan, peers: Sequence[str], dgps: Sequence[DGP]) -> Records:
    """Run other packages, on a block of data sets at a time."""
    size = {"trees": 100, "block": 2} if plan.quick else {}
    most = experiments.PEER_ITERATIONS
    data_sets = min(plan.iterations or most, most)
    records = {}
    for peer, dgp in product(peers, dgps):
        if experiments.peer_applies(peer, dgp):
            experiment = experiments.PeerExperiment(peer, dgp, **size)
            blocks = max(2, -(-data_sets // experiment.block))
            record = replace(plan, iterations=blocks).run(experiment, blocks)
            # The blocks, and the data sets of each, become one axis.
            flat = {name: a.reshape(-1, *a.shape[2:]) for name, a in record.items()}
            records[peer, dgp.name] = flat
    return records


def distance_to_centre(mean: Floats) -> Floats:
    """Estimate the distance of each estimate from the true centre.

    The mean of all estimates is closer to each of them than the true centre: with R
    estimates the distance is enlarged by `sqrt(R / (R - 1))`.
    """
    count = len(mean)
    return np.asarray((mean.mean(axis=0) - mean) * np.sqrt(count / (count - 1)))


def covers_centre(mean: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return 1 where an interval covers the centre; NaN never covers.

    Estimates are (iterations, m), bounds (iterations, estimators, m).
    """
    centre = (mean + distance_to_centre(mean))[:, None, :]
    return np.asarray((lower <= centre) & (centre <= upper), dtype=np.float64)


def standard_error(shares: Floats) -> Floats:
    """Compute the standard error of a mean over iterations, the first axis."""
    return np.asarray(shares.std(axis=0, ddof=1) / np.sqrt(len(shares)))


def point_frame(records: Records) -> pd.DataFrame:
    """Tabulate every setting, design, estimator and query point."""
    frames = []
    for (setting, name), record in records.items():
        first = {"setting": setting, "law": name, "held": DGPS[name].held_out}
        frames.append(_tabulate_points(record, "estimator", list(ESTIMATORS), first))
    return pd.concat(frames, ignore_index=True)


def peer_frame(records: Records) -> pd.DataFrame:
    """Tabulate every package, design and query point."""
    frames = []
    for (peer, name), record in records.items():
        first = {"law": name, "held": DGPS[name].held_out}
        frame = _tabulate_points(record, "peer", [peer], first)
        frames.append(frame.assign(data_sets=len(record["mean"])))
    return pd.concat(frames, ignore_index=True)


def _tabulate_points(
    record: Record, column: str, labels: list[str], first: dict[str, Any]
) -> pd.DataFrame:
    """Tabulate every label and query point; `first` are constant columns."""
    mean, lower, upper = record["mean"], record["lower"], record["upper"]
    inside = covers_centre(mean, lower, upper)
    wide = np.broadcast_to(mean[:, None, :], lower.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # the variance may be zero
        ratio, spread = variance_ratio(wide, record["variance"])
        ideal = 2 * normal_quantile(1 - ALPHA) * np.sqrt(true_variance(mean))
        width = (upper - lower) / ideal
    columns = {
        "ratio": ratio,
        "ratio_se": spread / np.sqrt(len(mean)),
        "coverage": inside.mean(axis=0),
        "coverage_se": standard_error(inside),
        "mean_width": width.mean(axis=0),
        "median_width": np.median(width, axis=0),
    }
    n_estimators, m = lower.shape[1:]
    frame = pd.DataFrame(
        first
        | {
            column: np.repeat(labels, m),
            "point": np.tile(np.arange(m), n_estimators),
            "true_sd": np.tile(np.sqrt(true_variance(mean)), n_estimators),
        }
        | {name: values.ravel() for name, values in columns.items()}
    )
    return frame.replace([np.inf, -np.inf], np.nan)


def design_frame(records: Records) -> pd.DataFrame:
    """Tabulate tests of null predictors and bands of every setting and design.

    `dead` is the share of null predictors that are rejected, `shadows` the share of
    intervals that miss the forest's own mean effect of a proxy, and `band` the share
    of bands that cover at all of their points.
    """
    rows = []
    for (setting, name), record in records.items():
        shares = _shares(record)
        for e, label in enumerate(ESTIMATORS):
            row: dict[str, Any] = {
                "setting": setting,
                "law": name,
                "held": DGPS[name].held_out,
                "estimator": label,
                "data_sets": len(record["mean"]),
                "B": float(np.median(record["B"])),
            }
            for column, share in shares.items():
                row[column] = float(share[:, e].mean())
                row[f"{column}_se"] = float(standard_error(share[:, e]))
            rows.append(row)
    return pd.DataFrame(rows)


def _shares(record: Record) -> dict[str, Floats]:
    """Compute shares by (iteration, estimator); NaN if something was not recorded."""
    p, proxies = record.get("dead_p"), record.get("shadow_mean")
    nothing = np.full(record["lower"].shape[:2], np.nan)
    shares = {"dead": nothing, "shadows": nothing, "band": nothing}
    if p is not None and p.shape[2]:
        shares["dead"] = (p < ALPHA).mean(axis=2)
    if proxies is not None and proxies.shape[1]:
        inside = covers_centre(proxies, record["shadow_lower"], record["shadow_upper"])
        shares["shadows"] = 1 - inside.mean(axis=2)
    if "band_mean" in record:
        bounds = record["band_lower"], record["band_upper"]
        shares["band"] = covers_centre(record["band_mean"], *bounds).min(axis=2)
    return shares


def seeds_frame(records: Records) -> pd.DataFrame:
    """Compare the stated Monte Carlo error of the variance with the realised one."""
    frames = []
    for (B, name), record in records.items():
        realised = record["total"].std(axis=0, ddof=1)
        stated = np.sqrt((record["mc_se"] ** 2).mean(axis=0))
        n_estimators, m = realised.shape
        frame = pd.DataFrame(
            {
                "B": B,
                "law": name,
                "estimator": np.repeat(list(ESTIMATORS), m),
                "point": np.tile(np.arange(m), n_estimators),
                "seeds": len(record["total"]),
                "learners": float(np.median(record["B"])),
                "realised": realised.ravel(),
                "stated": stated.ravel(),
            }
        )
        # Relative standard error of the standard deviation of normal numbers.
        relative = 1 / np.sqrt(2 * (frame["seeds"] - 1))
        ratio = frame["realised"] / frame["stated"]
        frames.append(frame.assign(ratio=ratio, se=relative))
    return pd.concat(frames, ignore_index=True)


def chance_outside(data_sets: int) -> float:
    """Compute the chance that the coverage of an exact interval misses the goal."""
    low, high = COVERAGE_GOAL
    least = np.ceil(low * data_sets - 1e-9)
    most = np.floor(high * data_sets + 1e-9)
    covered = stats.binom(data_sets, 1 - ALPHA)
    return float(1 - (covered.cdf(most) - covered.cdf(least - 1)))


def report(findings: Findings) -> Report:
    """Report the findings: goals, tables, and a figure of the coverage."""
    pieces = [
        "# Do the intervals hold?",
        _introduction(findings),
        "## Goals",
        "\n".join(f"* {line}" for line in goals(findings)),
        "## Our intervals by design",
        "Mean estimated over true variance (median over the points) · coverage of "
        "95 % intervals in percent, median over the points, and the lowest.",
        _interval_table(findings),
        *_test_pieces(findings),
        "## Comparison of the estimators",
        "All estimators use the same trees. Width is the median, over data sets and "
        "then cells, of the interval's width divided by the ideal width, 2 x 1.96 true "
        "standard deviations.",
        markdown_table(_estimator_table(findings)),
        "![Coverage by design, setting and estimator](validity.png)",
        "Every mark is a query point; the band is the goal, 93 to 97.5 %.",
        *_seed_pieces(findings),
        *_peer_pieces(findings),
        "## E[y|x]",
        TRUTH,
        "## The designs",
        markdown_table(_design_table(findings)),
    ]
    tables = {"validity-points": findings.points, "validity-laws": findings.designs}
    extras = {"validity-seeds": findings.seeds, "validity-peers": findings.peers}
    tables |= {name: frame for name, frame in extras.items() if frame is not None}
    text = "\n\n".join(piece for piece in pieces if piece)
    return Report("validity", text, tables, {"validity": draw(findings.points)})


def _introduction(findings: Findings) -> str:
    typical = float(_select_ours(findings.points)["ratio_se"].median())
    counts = findings.designs.groupby("setting", sort=False)["data_sets"].min()

    def each(text: Callable[[int], str]) -> str:
        """Format every number of data sets, with its setting if they differ."""
        if len(set(counts)) == 1:
            return text(int(counts.iloc[0]))
        return ", ".join(f"{text(int(n))} ({name})" for name, n in counts.items())

    estimators = ", ".join(f"`{name}` ({label})" for label, name in ESTIMATORS.items())
    return (
        f"Written by `vstatkit reproduce validity`, {each(str)} data sets per "
        "simulation design. An interrupted run resumes; `--designs` and `--settings` "
        "select parts, and runs of different designs can share a directory at the same "
        "time. Coverage is that of the mean of the estimates over all data sets, the "
        "target of an ensemble's interval; the true variance is the variance of these "
        f"estimates. The estimators are {estimators}; ours is {OURS}. Designs marked "
        f"{HELD_OUT} were set aside while estimators were developed. Monte Carlo "
        "errors of the study: one standard error of a coverage "
        f"of 95 % is {each(lambda n: f'{100 * np.sqrt(0.05 * 0.95 / n):.1f} %')}, of a "
        f"variance ratio {typical:.2f} (median); all others are in the CSV files "
        "beside this page. An exact interval misses the goal by chance in "
        f"{each(lambda n: f'{100 * chance_outside(n):.0f} %')} of cells."
    )


def goals(findings: Findings) -> list[str]:
    """List the goals, met or missed, with counts."""
    lines = []
    for setting in DEFAULTS:
        points = _select_cells(findings.points, setting, OURS)
        designs = _select_cells(findings.designs, setting, OURS)
        if len(points):
            lines += [f"**{setting}**, {line}" for line in _goals_of(points, designs)]
    if findings.seeds is not None:
        met = findings.seeds["ratio"].between(1 / MC_GOAL, MC_GOAL)
        lines.append(
            f"**Monte Carlo error**, realised within a factor {MC_GOAL} of the "
            f"stated one over {findings.seeds['seeds'].max()} seeds: "
            f"{format_count(met)} cells (one standard error of a cell is "
            f"{findings.seeds['se'].max():.0%}): {_verdict(met.all())}."
        )
    return lines or ["Neither default was studied."]


def _goals_of(points: pd.DataFrame, designs: pd.DataFrame) -> list[str]:
    met = points["coverage"].between(*COVERAGE_GOAL)
    median = points["ratio"].median()
    missed = []
    for name, cells in points.groupby("law", sort=False):
        out = 100 * cells["coverage"][~met[cells.index]]
        if len(out):
            span = f"{out.min():.1f}" + (f" to {out.max():.1f}" if len(out) > 1 else "")
            missed.append(f"{name} {len(out)} of {len(cells)} ({span})")
    outside = f" Outside: {'; '.join(missed)}." if missed else ""
    lines = [
        f"coverage in {_percents(COVERAGE_GOAL)}: {format_count(met)} cells (goal "
        f"{CELLS_GOAL:.0%}): {_verdict(met.mean() >= CELLS_GOAL)}. "
        f"Held-out designs: {format_count(met[points['held']])}.{outside}",
        f"median variance ratio {median:.2f} (goal {RATIO_GOAL[0]} to "
        f"{RATIO_GOAL[1]}): {_verdict(RATIO_GOAL[0] <= median <= RATIO_GOAL[1])}.",
    ]
    for column, goal, what in (
        ("dead", NULL_GOAL, "null predictors rejected"),
        ("band", COVERAGE_GOAL, "bands of 20 points that cover"),
    ):
        shares = designs.set_index("law")[column].dropna()
        if len(shares):
            met = shares.between(*goal)
            outside = ", ".join(
                f"{name} {100 * share:.1f}" for name, share in shares[~met].items()
            )
            lines.append(
                f"{what} in {_percents(goal)}: {format_count(met)} designs: "
                f"{_verdict(met.all())}"
                + (f". Outside: {outside}." if outside else ".")
            )
    return lines


def _select_ours(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["estimator"] == OURS]


def _select_cells(frame: pd.DataFrame, setting: str, label: str) -> pd.DataFrame:
    return frame[(frame["setting"] == setting) & (frame["estimator"] == label)]


def _verdict(met: bool | np.bool_) -> str:
    return "met" if met else "missed"


def _percents(goal: tuple[float, float]) -> str:
    return f"[{100 * goal[0]:g}, {100 * goal[1]:g}] %"


def _design_label(name: str) -> str:
    return f"{name} {HELD_OUT}" if DGPS[name].held_out else name


def _list_settings(frame: pd.DataFrame) -> list[str]:
    return [name for name in SETTINGS if name in set(frame["setting"])]


def _list_designs(frame: pd.DataFrame) -> list[str]:
    return [name for name in DGPS if name in set(frame["law"])]


def _grid(texts: Mapping[Any, str], settings: Sequence[str]) -> str:
    """Lay out texts by design and setting, with designs in rows."""
    laws = {law for law, _ in texts}
    rows = [
        [_design_label(name), *(texts.get((name, s), "–") for s in settings)]
        for name in DGPS
        if name in laws
    ]
    return markdown_table(pd.DataFrame(rows, columns=["design", *settings]))


def _interval_table(findings: Findings) -> str:
    texts, ours = {}, _select_ours(findings.points)
    for key, cells in ours.groupby(["law", "setting"], sort=False):
        coverage = 100 * cells["coverage"]
        ratio = format_number(cells["ratio"].median(), 2)
        texts[key] = f"{ratio} · {coverage.median():.1f} ({coverage.min():.1f})"
    return _grid(texts, _list_settings(ours))


def _test_pieces(findings: Findings) -> list[str]:
    cells = _select_ours(findings.designs)
    settings = [name for name in _list_settings(cells) if SETTINGS[name].by_fit]
    if not settings:
        return []
    shares = cells[["dead", "band"]].mul(100).map(partial(format_number, digits=1))
    texts = (shares["dead"] + " · " + shares["band"]).set_axis(
        pd.MultiIndex.from_frame(cells[["law", "setting"]])
    )
    proxies = cells.dropna(subset="shadows").set_index("setting")["shadows"]
    missed = ", ".join(
        f"{100 * share:.1f} % ({setting})" for setting, share in proxies.items()
    )
    return [
        "Null predictors rejected in percent of tests at the 5 % level · bands of 20 "
        "points that cover at all of them, in percent. `ForestRegressor` and "
        "`ForestClassifier` have neither.",
        _grid(texts.to_dict(), settings),
        "The expectation of a forest depends on null predictors that are correlated "
        "with relevant ones, so their expected effect is not zero. Intervals miss this "
        f"expected effect in {missed}."
        if missed
        else "",
    ]


def _estimator_table(findings: Findings) -> pd.DataFrame:
    rows = []
    for setting in _list_settings(findings.points):
        for label in ESTIMATORS:
            points = _select_cells(findings.points, setting, label)
            designs = _select_cells(findings.designs, setting, label)
            rows.append(
                {
                    "setting": setting,
                    "estimator": label,
                    "trees": f"{designs['B'].median():,.0f}",
                    **_summarise_cells(points),
                    "null rejected, %": format_number(100 * designs["dead"].mean(), 1),
                    "bands, %": format_number(100 * designs["band"].median(), 1),
                }
            )
    return pd.DataFrame(rows)


def _summarise_cells(points: pd.DataFrame) -> dict[str, str]:
    """Summarise cells in columns that are shared by all packages."""
    ratio = points["ratio"].quantile([0.1, 0.5, 0.9])
    coverage = 100 * points["coverage"]
    return {
        "ratio (10 to 90 % of cells)": f"{ratio[0.5]:.2f} "
        f"({ratio[0.1]:.2f} to {ratio[0.9]:.2f})",
        "coverage, % (lowest)": f"{coverage.median():.1f} ({coverage.min():.1f})",
        "cells in goal": format_count(points["coverage"].between(*COVERAGE_GOAL)),
        "width": format_number(points["median_width"].median(), 2),
    }


def _seed_pieces(findings: Findings) -> list[str]:
    if findings.seeds is None:
        return []
    rows = []
    for (B, label), cells in findings.seeds.groupby(["B", "estimator"], sort=False):
        met = cells["ratio"].between(1 / MC_GOAL, MC_GOAL)
        rows.append(
            {
                "B": B,
                "estimator": label,
                "trees": f"{cells['learners'].median():,.0f}",
                "realised / stated": format_number(cells["ratio"].median(), 2),
                "lowest": format_number(cells["ratio"].min(), 2),
                "highest": format_number(cells["ratio"].max(), 2),
                f"within {MC_GOAL}": format_count(met),
            }
        )
    names = ", ".join(dict.fromkeys(findings.seeds["law"]))
    return [
        "## The Monte Carlo error of the variance",
        f"One data set each of {names}: standard deviation of the estimated variance "
        "over seeds, divided by the error stated by `components.mc_se`.",
        markdown_table(pd.DataFrame(rows)),
    ]


def _peer_pieces(findings: Findings) -> list[str]:
    absent = f"Not installed: {', '.join(findings.absent)}." if findings.absent else ""
    if findings.peers is None:
        return ["## Other packages", absent] if absent else []
    ours = _select_ours(findings.points)
    ours = ours[ours["law"].isin(set(findings.peers["law"]))]
    rows = [
        {"package": str(peer), **_summarise_cells(cells)}
        for peer, cells in findings.peers.groupby("peer", sort=False)
    ]
    rows += [
        {
            "package": f"vstatkit, {setting} (defaults)",
            **_summarise_cells(ours[ours["setting"] == setting]),
        }
        for setting in _list_settings(ours)
    ]
    return [
        "## Other packages",
        f"The first {findings.peers['data_sets'].max()} data sets of the regression "
        "designs (ranger and EconML support neither clusters nor missing values). All "
        "packages use 2000 trees (EconML: its default), their own standard error and "
        "normal quantiles. An interval whose variance is NaN does not cover. Each "
        "package is compared with the mean of its own estimates. The last rows are our "
        "defaults: more trees, Student's t with estimated degrees of freedom, and "
        f"intervals that allow for skewness. {absent}".strip(),
        markdown_table(pd.DataFrame(rows)),
    ]


def _design_table(findings: Findings) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "design": _design_label(name),
            "n": DGPS[name].n,
            "description": DGPS[name].description,
            "null predictors": ", ".join(DGPS[name].null + DGPS[name].proxies) or "–",
        }
        for name in _list_designs(findings.points)
    )


MARKS = ("o", "s", "^", "D", "v", "P")  # of the estimators, like the colours
HUES = ("grey", "orange", "blue", "green", "purple", "red")


def draw(points: pd.DataFrame) -> "Figure":
    """Plot the coverage of every cell, with a panel for each setting."""
    settings, names = _list_settings(points), _list_designs(points)
    figure, axes = make_panels(len(settings), 1, height=2.1)
    for setting, ax in zip(settings, axes[:, 0], strict=True):
        _draw_marks(ax, points[points["setting"] == setting], names)
        title = f"{setting}: {SETTINGS[setting].description}".replace("`", "")
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_ylabel("Coverage, %")
        last = setting == settings[-1]
        labels = [_design_label(name) if last else "" for name in names]
        options = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(names)), labels, **options)
        ax.tick_params(axis="x", length=0)
    add_legend(figure, axes[0][0], len(ESTIMATORS))
    return figure


def _draw_marks(ax: "Axes", points: pd.DataFrame, names: list[str]) -> None:
    low, high = (100 * bound for bound in COVERAGE_GOAL)
    ax.axhspan(low, high, color=COLOURS["sky"], alpha=0.25, linewidth=0)
    ax.axhline(95, color=COLOURS["black"], linewidth=0.8)
    step = 0.8 / len(ESTIMATORS)
    for e, label in enumerate(ESTIMATORS):
        cells = points[points["estimator"] == label]
        x = cells["law"].map(names.index).to_numpy(dtype=float)
        ax.plot(
            x + step * (e - (len(ESTIMATORS) - 1) / 2),
            100 * cells["coverage"],
            MARKS[e],
            color=COLOURS[HUES[e]],
            markersize=3.5,
            alpha=0.8,
            label=f"{label}, ours" if label == OURS else label,
        )
    for edge in range(1, len(names)):
        ax.axvline(edge - 0.5, color="0.9", linewidth=0.8, zorder=0)
    ax.set_xlim(-0.5, len(names) - 0.5)
    clean_axes(ax)


STUDY = Study(
    "validity",
    "standard errors and intervals on 17 simulation designs",
    ITERATIONS,
    run,
    report,
    quick_note=QUICK_NOTE,
    options={
        "designs": "simulation designs, separated by commas",
        "settings": f"some of {','.join([*SETTINGS, *EXTRAS])}",
    },
    aliases={"laws": "designs"},
)
