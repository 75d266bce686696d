"""Short lines below the first tables of a summary."""

import copy
import textwrap

import pandas as pd
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit.inference.normality import MIN_OBSERVATIONS, influential, most_influential
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.sections import (
    number_text,
    percent_text,
    shown_rows,
)
from vstatkit.results.tables import label_texts, setting_text
from vstatkit.sampling.shards import ShardsDesign

MAX_SETTINGS = 12
"""Predictors of the typical row that are written out."""


class Lines:
    """Named lines of text, before the common width is known."""

    def __init__(self, lines: dict[str, str]) -> None:
        self.lines = lines

    @property
    def _stub_width(self) -> int:
        return max(map(len, self.lines))

    @property
    def width(self) -> int:
        """Least width; the text is wrapped to what there is."""
        return self._stub_width

    def table(self, width: int) -> SimpleTable:
        """Lay the lines out over the common width."""
        room = width - self._stub_width - 2
        rows = [
            (name if first else "", part)
            for name, text in self.lines.items()
            for first, part in _wrapped(text, room)
        ]
        style = copy.deepcopy(fmt_base)
        style["colwidths"] = None
        style["data_fmts"] = ["%s"]
        style["table_dec_above"] = "-"  # they belong to the table above
        texts = [[part.ljust(room + 1)] for _, part in rows]
        stubs = [name.ljust(self._stub_width) for name, _ in rows]
        return SimpleTable(texts, None, stubs, txt_fmt=style)


def _wrapped(text: str, width: int) -> list[tuple[bool, str]]:
    return [(j == 0, part) for j, part in enumerate(textwrap.wrap(text, width))]


def compact_lines(results: EnsembleResults, *, full: bool) -> Lines | None:
    """Say in a line each where the estimates are, and how far they can be relied on.

    Parameters
    ----------
    results : EnsembleResults
        What is shown.
    full : bool
        Whether variances and influences have tables of their own.
    """
    lines = {"Typical row:": _typical(results)}
    if not full:
        lines["Variance:"] = _variance(results)
        lines["Influence:"] = _influence(results)
    shown = {name: text for name, text in lines.items() if text is not None}
    return Lines(shown) if shown else None


def _typical(results: EnsembleResults) -> str | None:
    row = results.typical
    if row is None or results.info.coefficients:
        return None
    return settings_text(row)


def settings_text(row: pd.DataFrame, most: int = MAX_SETTINGS) -> str:
    """Write the first row of a frame: "bmi 25.7, bp 93, ..."."""
    shown = [f"{name} {setting_text(row[name].iloc[0])}" for name in row.columns[:most]]
    left = row.shape[1] - len(shown)
    tail = f", and {left:,} more in `typical`" if left else ""
    return ", ".join(shown) + tail


def _variance(results: EnsembleResults) -> str:
    share = results.diagnostics["monte_carlo_share"]
    text = f"sampling {_range(1 - share)}, Monte Carlo {_range(share)}"
    if len(results.labels) > 1:
        return text
    parts = results.components
    zetas = (number_text(float(zeta[0])) for zeta in (parts.zeta_1, parts.zeta_k))
    return text + " (zeta_1 {}, zeta_k {})".format(*zetas)


def _range(shares: pd.Series) -> str:
    """Write shares as percentages, from the least to the greatest."""
    ends = [percent_text(float(one)) for one in (shares.min(), shares.max())]
    return " to ".join(dict.fromkeys(ends))


def _influence(results: EnsembleResults) -> str | None:
    """Name the observation that the answer depends on most."""
    if len(influential(results.design, results.units)) < MIN_OBSERVATIONS:
        return None
    shown = shown_rows(results.labels)
    whole = len(shown) == len(results.labels)
    if whole:
        frame = results.most_influential
    else:
        frame = most_influential(
            results.design, results.values[:, shown], results.units
        )
    if frame is None or not frame["share"].max() > 0:
        return None
    place = int(frame["share"].to_numpy().argmax())
    unit, share = frame["unit"].iloc[place], frame["share"].iloc[place]
    label = label_texts(results.labels[[shown[place]]])[0]
    whose = "" if len(results.labels) == 1 else f" of '{label}'"
    return (
        f"at most {share:.0%} of the variance{whose} is due to one "
        f"{unit_noun(results)} ({unit})"
    )


def unit_noun(results: EnsembleResults) -> str:
    """Name one unit: an observation, a cluster or a shard."""
    if isinstance(results.design, ShardsDesign):
        return "shard"
    return results.info.units.removesuffix("s")
