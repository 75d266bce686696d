"""Short lines below the first tables of a summary: the typical row, two diagnoses."""

import copy
import textwrap

import pandas as pd
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.sections import (
    normality_frame,
    number_text,
    percent_text,
    setting_text,
    shown_rows,
)

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
        Whether variances and normality tests have tables of their own.
    """
    lines = {"Typical row:": _typical(results)}
    if not full:
        lines["Variance:"] = _variance(results)
        lines["Normality:"] = _normality(results)
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


def _normality(results: EnsembleResults) -> str | None:
    frame = normality_frame(results, shown_rows(results.labels))
    if frame is None:
        return None
    least = frame[["jarque_bera_p", "omnibus_p"]].min()
    which = "" if len(frame) == 1 else f" (least of {len(frame)})"
    return (
        f"of influence values, Jarque-Bera p {least.iloc[0]:.3f}, omnibus p "
        f"{least.iloc[1]:.3f}{which}"
    )
