"""Report of Table 1: printed, measured, difference; the paper's two observations."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vstatkit.studies.experiment import Record
from vstatkit.studies.palette import COLOURS, clean
from vstatkit.studies.report import Report, decimals, markdown_table
from vstatkit.studies.table1 import (
    FRACTIONS,
    STATISTICS,
    WITHIN,
    best_fractions,
    compare,
    discrepancies,
    larger_is_better,
)


def report(records: Mapping[str, Record], missing: Mapping[str, str]) -> Report:
    """Write up the experiment.

    Parameters
    ----------
    records : mapping of str to dict of ndarray
        Results by data set.
    missing : mapping of str to str
        Why a data set was left out.
    """
    table = pd.concat([compare(name, one) for name, one in records.items()])
    best = pd.concat([best_fractions(name, one) for name, one in records.items()])
    spread = pd.DataFrame([discrepancies(name, one) for name, one in records.items()])
    splits, _, forests = next(iter(records.values()))["U"].shape
    pieces = [
        f"{splits} random splits, {forests} forests on each. `split sd` is the "
        "standard deviation over splits of a split's mean score; `forest sd` that "
        "over forests on one split, which is what print shows in parentheses "
        "(`printed sd`).",
        *(f"Left out: {reason}" for reason in missing.values()),
        _within_sentence(table),
        markdown_table(_shown(table)),
        "**First observation: there is a best fraction.** " + _best_sentence(best),
        markdown_table(_shown_best(best)),
        "**Second observation: U varies more with the fraction than V.** "
        + _spread_sentence(spread),
        markdown_table(_shown_spread(spread)),
        "![Scores by fraction, printed and measured](table1.png)",
    ]
    tables = {"table1": table, "table1-best": best, "table1-discrepancy": spread}
    return Report("table1", "\n\n".join(pieces), tables, {"table1": draw(table)})


def _within_sentence(table: pd.DataFrame) -> str:
    outside = table[~table["within"]]
    named = ", ".join(
        f"{row.dataset} {row.statistic} {row.fraction}" for row in outside.itertuples()
    )
    return (
        f"The printed score lies within {WITHIN:.0f} split-to-split standard "
        f"deviations of the measured mean in {int(table['within'].sum())} of "
        f"{len(table)} cells" + (f"; not in {named}." if named else ".")
    )


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    shown = table[["dataset", "statistic", "fraction"]].copy()
    columns = {
        "printed": "printed",
        "measured": "measured",
        "difference": "difference",
        "split_sd": "split sd",
        "printed_sd": "printed sd",
        "forest_sd": "forest sd",
    }
    for column, name in columns.items():
        shown[name] = [decimals(value, 4) for value in table[column]]
    shown["deviations"] = [
        decimals(value, 2) + ("" if within else "*")
        for value, within in zip(table["deviations"], table["within"], strict=True)
    ]
    return shown


def _best_sentence(best: pd.DataFrame) -> str:
    same = int((best["best"] == best["best_printed"]).sum())
    clear = int((best["beats"] == len(FRACTIONS) - 1).sum())
    edge = int(best["best"].isin([FRACTIONS[0], FRACTIONS[-1]]).sum())
    declines = int(best["declines"].sum())
    count = len(best)
    return (
        f"Of {count} rows, scores decline away from the best fraction in {declines} "
        f"(no step away gains more than twice its paired standard error over splits); "
        f"the best fraction beats all others beyond that error in {clear}, is an end "
        f"of the range (0.2 or 1.0) in {edge}, and is the printed one in {same}."
    )


def _shown_best(best: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "dataset": best["dataset"],
            "statistic": best["statistic"],
            "best printed": best["best_printed"],
            "best measured": best["best"],
            "others it beats": [f"{count} of 4" for count in best["beats"]],
            "declines away": np.where(best["declines"], "yes", "no"),
        }
    )


def _spread_sentence(spread: pd.DataFrame) -> str:
    larger = int((spread["U"] > spread["V"]).sum())
    printed = int((spread["U_printed"] > spread["V_printed"]).sum())
    clear = ", ".join(spread[spread["gain"] > 2]["dataset"]) or "none"
    against = ", ".join(spread[spread["gain"] < -2]["dataset"]) or "none"
    return (
        "Largest less smallest mean score over fractions: U's exceeds V's in "
        f"{larger} of {len(spread)} data sets (print: {printed}). Taken within each "
        "split, where noise widens both, U's is larger by more than twice its paired "
        f"standard error over splits on {clear}; smaller on {against}."
    )


def _shown_spread(spread: pd.DataFrame) -> pd.DataFrame:
    columns = {
        "U_printed": "U printed",
        "U": "U measured",
        "V_printed": "V printed",
        "V": "V measured",
    }
    shown = spread[["dataset"]].copy()
    for column, name in columns.items():
        shown[name] = [decimals(value, 4) for value in spread[column]]
    shown["U − V by split, in standard errors"] = [
        decimals(value, 1) for value in spread["gain"]
    ]
    return shown


def draw(table: pd.DataFrame) -> Figure:
    """Draw scores by fraction: crosses printed, marks measured, bars split sd."""
    names = list(dict.fromkeys(table["dataset"]))
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    styles = {"U": ("o", "orange", -0.012), "V": ("s", "blue", 0.012)}
    for ax, name in zip(axes, names, strict=False):
        for letter in STATISTICS:
            chosen = (table["dataset"] == name) & (table["statistic"] == letter)
            rows = table[chosen]
            marker, colour, shift = styles[letter]
            ax.errorbar(
                rows["fraction"] + shift,
                rows["measured"],
                yerr=rows["split_sd"],
                fmt=marker,
                color=COLOURS[colour],
                markersize=4.5,
                linewidth=1,
                label=f"{letter}, measured ± split sd",
            )
            ax.plot(
                rows["fraction"] + 3 * shift,
                rows["printed"],
                "x" if letter == "U" else "+",
                color=COLOURS["black"],
                markersize=6.5,
                label=f"{letter}, printed",
            )
        ax.set_title(name, fontsize=10)
        ax.set_ylabel("Accuracy" if larger_is_better(name) else "RMSE", fontsize=9)
        ax.set_xticks(FRACTIONS)
        clean(ax)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    axes[-1].legend(handles, labels, loc="center", frameon=False)
    figure.supxlabel("Subsample size, as a fraction of the training data", fontsize=10)
    return figure
