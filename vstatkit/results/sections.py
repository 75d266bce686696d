"""Sections of a summary: tables of text, ready to be set."""

import copy
from collections.abc import Sequence

import numpy as np
import pandas as pd
from statsmodels.iolib.table import Cell, SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit._typing import Ints, Labels
from vstatkit.inference.normality import (
    MIN_OBSERVATIONS,
    influence_normality,
    influential,
)
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.tables import estimates_frame, label_texts, setting_text
from vstatkit.variance.estimator import COMPONENTS

MAX_ROWS = 40
"""Rows of a table that are printed, the first and the last; the notes say so."""


class Section:
    """Formatted cells of one table, before the common width is known."""

    def __init__(
        self,
        name: str,
        headers: Sequence[str],
        frame: pd.DataFrame,
        *,
        cut: bool = False,
    ) -> None:
        self.name = name
        self.headers = list(headers)
        self.stubs = label_texts(frame.index)
        self.cells = frame.to_numpy(dtype=object).tolist()
        if cut:
            self.stubs.insert(MAX_ROWS // 2, "...")
            self.cells.insert(MAX_ROWS // 2, ["..." for _ in headers])

    @property
    def _widths(self) -> list[int]:
        columns = [
            list(column) for column in zip(self.headers, *self.cells, strict=True)
        ]
        return [max(7, *(len(cell) for cell in column)) for column in columns]

    @property
    def _stub_width(self) -> int:
        return max(len(text) for text in [self.name, *self.stubs])

    @property
    def width(self) -> int:
        """Least width that holds all cells."""
        return self._stub_width + sum(width + 1 for width in self._widths)

    def table(self, width: int) -> SimpleTable:
        """Lay the cells out over the common width."""
        surplus = width - self.width
        each, rest = divmod(surplus, len(self.headers))
        padded = [
            [cell.rjust(w + each) for cell, w in zip(row, self._widths, strict=True)]
            for row in [self.headers, *self.cells]
        ]
        style = copy.deepcopy(fmt_base)
        style["colwidths"] = None
        style["data_fmts"] = ["%s"] * len(self.headers)
        stubs = [text.ljust(self._stub_width + rest) for text in self.stubs]
        table = SimpleTable(padded[1:], padded[0], stubs, txt_fmt=style)
        corner = self.name.ljust(self._stub_width + rest)
        table[0][0] = Cell(corner, datatype="stub", row=table[0])
        return table


def number_text(value: float) -> str:
    """Write a number with four significant digits, plainly where it is readable."""
    if value == 0:
        return "0"
    if not np.isfinite(value):
        return str(value)
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.3e}"
    decimals = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{min(decimals, 4)}f}"


def interval_headers(alpha: float) -> list[str]:
    """Write the headers of interval columns, as statsmodels does."""
    return [f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]"]


def _test_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Format estimates, standard errors, df, tests and the intervals' bounds."""
    return pd.DataFrame(
        {
            "estimate": frame["estimate"].map(number_text),
            "std_error": frame["std_error"].map(number_text),
            "df": frame["df"].map("{:.1f}".format),
            "t": frame["t"].map("{:.3f}".format),
            "p_value": frame["p_value"].map("{:.3f}".format),
            "ci_lower": frame["ci_lower"].map(number_text),
            "ci_upper": frame["ci_upper"].map(number_text),
        }
    )


def is_tested(results: EnsembleResults) -> bool:
    """Whether zero is a value to test against.

    Predictions and averages of probabilities are hardly ever zero. Differences of
    probabilities, slopes and contrasts may be.
    """
    support = results.support
    probabilities = support is not None and bool(np.all(np.asarray(support.low) >= 0))
    return results.info.coefficients and (results.null is not None or not probabilities)


def estimates_section(results: EnsembleResults, alpha: float) -> Section:
    """Tabulate the estimates with intervals, and with tests where these make sense."""
    shown = shown_rows(results.labels)
    frame = estimates_frame(results.estimates, results.labels, alpha).iloc[shown]
    cells = _test_cells(frame)
    coefficients = results.info.coefficients
    headers = ["coef" if coefficients else "mean", "std err", "df"]
    if is_tested(results):
        headers += ["t", "P>|t|"]
    else:
        cells = cells.drop(columns=["t", "p_value"])
    name = "" if coefficients else "Estimates"
    headers = [*headers, *interval_headers(alpha)]
    return Section(name, headers, cells, cut=_is_cut(results.labels))


def shown_rows(labels: Labels) -> Ints:
    """Places of the rows that are printed: all, or the first and the last."""
    places = np.arange(len(labels))
    if not _is_cut(labels):
        return places
    half = MAX_ROWS // 2
    return np.concatenate([places[:half], places[-half:]])


def _is_cut(labels: Labels) -> bool:
    return len(labels) > MAX_ROWS


def effects_section(results: EnsembleResults, alpha: float) -> Section | None:
    """Tabulate the effects, where there are any."""
    frame = results.effects_frame(alpha)
    if frame is None:
        return None
    labels = frame.index
    frame = frame.iloc[shown_rows(labels)]
    cells = _test_cells(frame)
    cells.insert(0, "from", frame["from"].map(setting_text))
    cells.insert(1, "to", frame["to"].map(setting_text))
    headers = ["from", "to", "change", "std err", "df", "t", "P>|t|"]
    headers = [*headers, *interval_headers(alpha)]
    return Section("Effects", headers, cells, cut=_is_cut(labels))


def averages_section(
    name: str, frame: pd.DataFrame, alpha: float, *, tested: bool = True
) -> Section:
    """Tabulate averages: settings first, then estimates, tests and intervals."""
    labels = frame.index
    frame = frame.iloc[shown_rows(labels)]
    cells = _test_cells(frame)
    settings = list(frame.columns[: list(frame.columns).index("estimate")])
    texts = {column: frame[column].map(setting_text) for column in settings}
    shown = [column for column in settings if texts[column].any()]
    for place, column in enumerate(shown):
        cells.insert(place, column, texts[column])
    headers = [*shown, "estimate", "std err", "df"]
    if tested:
        headers += ["t", "P>|t|"]
    else:
        cells = cells.drop(columns=["t", "p_value"])
    headers = [*headers, *interval_headers(alpha)]
    return Section(name, headers, cells, cut=_is_cut(labels))


def has_bias(results: EnsembleResults) -> bool:
    """Whether the bias that is left was estimated for these very estimates."""
    aim = results.info.aim
    return aim is not None and bool(aim.bias)


def bias_section(results: EnsembleResults) -> Section | None:
    """Tabulate what bias is left, where intervals aim at E[y|x]."""
    if not has_bias(results):
        return None
    cells = results.bias_left().iloc[shown_rows(results.labels)].map(number_text)
    headers = ["bias", "std err", "share"]
    return Section("Bias left", headers, cells, cut=_is_cut(results.labels))


def components_section(results: EnsembleResults) -> Section:
    """Tabulate the variance components."""
    shown = shown_rows(results.labels)
    frame = results.components.to_frame(results.labels)[list(COMPONENTS)].iloc[shown]
    share = results.diagnostics["monte_carlo_share"].iloc[shown]
    cells = frame.map(number_text)
    cells["share"] = share.map("{:.1%}".format)
    headers = ["zeta_1", "zeta_k", "sampling", "monte carlo", "total", "mc_se"]
    headers = [*headers, "MC share"]
    return Section("Variance", headers, cells, cut=_is_cut(results.labels))


def normality_frame(results: EnsembleResults, shown: Ints) -> pd.DataFrame | None:
    """Test influences on some estimates, where there are enough units for that."""
    if len(influential(results.design, results.units)) < MIN_OBSERVATIONS:
        return None
    found = influence_normality(results.design, results.values[:, shown])
    return found.set_axis(results.labels[shown])


def normality_section(results: EnsembleResults) -> Section | None:
    """Tabulate the normality tests, where there are enough units for them."""
    frame = normality_frame(results, shown_rows(results.labels))
    if frame is None:
        return None
    cells = frame.map("{:.3f}".format)
    headers = ["skew", "kurtosis", "omnibus", "Prob", "Jarque-Bera", "Prob"]
    return Section("Influence", headers, cells, cut=_is_cut(results.labels))


def percent_text(share: float) -> str:
    """Write a share as a percentage."""
    return f"{share:.1%}"
