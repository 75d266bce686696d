"""Show results in statsmodels' tables; nothing is computed here."""

import copy
import html
import textwrap
from collections.abc import Callable, Iterable, Sequence

import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit.results.bootstrap import Bootstrap, repetitions_needed
from vstatkit.results.compact import Lines, compact_lines
from vstatkit.results.comparison import VarianceComparison
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.normality_check import NormalityCheck
from vstatkit.results.notes import more_note, summary_notes
from vstatkit.results.sections import (
    Section,
    bias_section,
    components_section,
    effects_section,
    estimates_section,
    interval_headers,
    normality_section,
    number_text,
    percent_text,
    shown_rows,
)
from vstatkit.variance.registry import ESTIMATORS

WIDTH = 78
"""Least width of a table, as in statsmodels."""


class EnsembleSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """statsmodels' Summary, safe for any name of a column or level.

    Names are escaped in HTML and LaTeX, and every table is a tabular of its own
    in LaTeX, since they differ in columns.

    Attributes
    ----------
    notes : list of str
        The numbered notes, not wrapped.
    width : int
        Of the tables, in signs.
    """

    notes: list[str]
    width: int

    def put_notes(self, notes: Iterable[str]) -> None:
        """Put numbered notes below the tables, wrapped, in place of any others."""
        self.notes = [f"[{j}] {note}" for j, note in enumerate(notes, start=1)]
        lines = [
            line
            for note in self.notes
            for line in textwrap.wrap(note, self.width, subsequent_indent="    ")
        ]
        self.add_extra_txt(["Notes:", *lines])

    def reword(self, said: Callable[[str], str]) -> None:
        """Say every note in other words."""
        plain = [note.partition("] ")[2] for note in self.notes]
        self.put_notes(map(said, plain))

    def as_html(self) -> str:
        """Return the tables and notes as HTML."""
        tables = [_escaped(table, html.escape).as_html() for table in self.tables]
        notes = "<br/>".join(html.escape(note) for note in ["Notes:", *self.notes])
        return "\n".join([*tables, f"<br/><br/>{notes}"])

    def as_latex(self) -> str:
        """Return the tables and notes as LaTeX; it needs the booktabs package."""
        tables = [
            _escaped(table, _latex).as_latex_tabular(replacements={})
            for table in self.tables
        ]
        notes = [f"\\par {_latex(note)}" for note in ["Notes:", *self.notes]]
        return "\n\n".join([*tables, "\n".join(notes)])


_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "#$%&_{}"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def _latex(text: str) -> str:
    return text.translate(_LATEX)


def _escaped(table: SimpleTable, escape: Callable[[str], str]) -> SimpleTable:
    """Copy a table with the text of every cell escaped."""
    copied = copy.deepcopy(table)
    for row in copied:
        for cell in row:
            cell.data = escape(str(cell.data))
    return copied


def summarise(
    results: EnsembleResults, alpha: float, *, full: bool, title: str | None
) -> Summary:
    """Compose the summary of an ensemble.

    Parameters
    ----------
    results : EnsembleResults
        What to show.
    alpha : float
        One minus the coverage of the intervals.
    full : bool
        Whether variance components and normality tests are tables of their own,
        rather than a line each.
    title : str or None
        Another title.
    """
    sections: list[Section | Lines | None] = [
        effects_section(results, alpha),
        estimates_section(results, alpha),
        compact_lines(results, full=full),
        bias_section(results),
    ]
    notes = summary_notes(results, alpha, full=full)
    if full:
        sections += [components_section(results), normality_section(results)]
    else:
        notes.append(more_note(results))
    return composed(
        [section for section in sections if section is not None],
        results.info.title if title is None else title,
        notes,
        _header(results),
    )


def composed(
    sections: "Sequence[Section | Lines]",
    title: str,
    notes: Sequence[str],
    header: tuple[list[tuple[str, str]], ...] | None = None,
) -> EnsembleSummary:
    """Combine tables of one width with numbered notes."""
    head = 0 if header is None else _header_width(header)
    width = max(WIDTH, head, *(section.width for section in sections))
    summary = EnsembleSummary()
    summary.width = width
    if header is not None:
        summary.tables.append(_header_table(header, title, width))
    summary.tables.extend(section.table(width) for section in sections)
    if header is None:
        summary.tables[0].title = title
    summary.put_notes(notes)
    return summary


def compared(comparison: VarianceComparison) -> Summary:
    """Compose the tables of a comparison of variance estimators."""
    tables = comparison.shown_tables()
    sections = [
        _comparison_section(*table, comparison.chosen, comparison.alpha)
        for table in tables
    ]
    notes = _comparison_notes(comparison, len(comparison.labels) - len(tables))
    return composed(sections, "Variance estimators", notes)


def _comparison_section(
    label: str, frame: pd.DataFrame, chosen: str, alpha: float
) -> "Section":
    names = [f"{name} *" if name == chosen else name for name in frame.index]
    shown = ["sampling", "se", "se_mc_error", "df", "ci_lower", "ci_upper"]
    cells = frame[shown].map(number_text)
    cells["df"] = frame["df"].map("{:.1f}".format)
    headers = ["sampling", "std err", "MC error", "df", *interval_headers(alpha)]
    return Section(label, headers, cells.set_axis(names))


def _comparison_notes(comparison: VarianceComparison, n_hidden: int) -> list[str]:
    notes = [
        "* is in use; `with_variance(name)` switches without fitting again.",
        "sampling is raw, negative or not; std err rests on the sampling part made "
        "positive, plus the Monte Carlo part, and MC error is its Monte Carlo error.",
    ]
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        notes.append(f"Not for this ensemble: {names}; `left_out` says why.")
    if n_hidden:
        notes.append(f"{n_hidden:,} estimates are not shown; `frame` holds all.")
    return notes


def checked(check: NormalityCheck) -> Summary:
    """Compose the table of a check of normality."""
    frame = check.frame.iloc[shown_rows(check.frame.index)]
    cells = frame[["skew", "kurtosis", "largest_share", "zeta_ratio"]].map(number_text)
    for name in ("miss_above", "miss_below", "coverage"):
        cells[name] = frame[name].map("{:.1%}".format)
    cells["verdict"] = frame["verdict"]
    headers = ["skew", "kurtosis", "largest", "zeta_k/(n zeta_1)"]
    headers += ["above", "below", "coverage", "verdict"]
    cut = len(frame) < len(check.frame)
    section = Section("", headers, cells, cut=cut)
    notes = [
        f"above, below: how often a {1 - check.alpha:.0%} interval lies above or below "
        f"the truth, by Edgeworth's expansion; {check.alpha / 2:.1%} each if the "
        "estimate is normal.",
        "largest: the largest share of the variance that one unit has.",
        *(f"{verdict}: {meaning}" for verdict, meaning in check.verdicts.items()),
    ]
    return composed([section], "Normality of the estimates", notes)


def resampled(found: Bootstrap, alpha: float) -> Summary:
    """Compose the table of a bootstrap."""
    whole = found.summary_frame(alpha)
    frame = whole.iloc[shown_rows(whole.index)]
    names = ["estimate", "se", "bootstrap_se", "ci_lower", "ci_upper"]
    names += ["bootstrap_ci_lower", "bootstrap_ci_upper"]
    cells = frame[names].map(number_text)
    for name in ("omnibus_p", "jarque_bera_p", "shapiro_p"):
        cells[name] = frame[name].map("{:.3f}".format)
    ends = interval_headers(alpha)
    headers = ["estimate", "std err", "bootstrap", *ends, *ends]
    headers += ["omnibus", "JB", "Shapiro"]
    section = Section("", headers, cells, cut=len(frame) < len(whole))
    error = (frame["bootstrap_se_error"] / frame["bootstrap_se"]).max()
    notes = [
        f"bootstrap: the standard error over {found.R:,} resampled data sets, known to "
        f"{percent_text(float(error))}. The second interval has its percentiles.",
        "omnibus, JB (Jarque-Bera), Shapiro: p-values of tests that the estimates on "
        "resampled data are normal.",
    ]
    recipe = found.results.recipe
    if recipe is not None and recipe.centre is not None:
        notes.append(
            "Fitted again were the learners that standard errors come from; their "
            "estimates were moved as far as those of the fit."
        )
    needed = repetitions_needed(alpha)
    if needed > found.R:
        notes.append(
            f"Percentiles at {1 - alpha:g} need {needed:,} resampled data sets."
        )
    return composed([section], "Bootstrap", notes)


def _header(results: EnsembleResults) -> tuple[list[tuple[str, str]], ...]:
    info, design = results.info, results.design
    kind = "V (with replacement)" if results.replace else "U (without replacement)"
    learners = f"{results.B:,} (all)" if design.complete else f"{results.B:,}"
    left = [
        ("Dep. Variable:", info.response),
        ("Kernel:", info.kernel),
        ("Sampling:", kind),
        ("Design:", design.name),
        ("No. Observations:", f"{info.nobs:,}"),
        ("Rows dropped:", f"{info.n_dropped:,}"),
    ]
    if info.units == "clusters":
        left.append(("No. Clusters:", f"{design.n:,}"))
    named = (("Groups:", info.groups), ("Weights:", info.weights))
    left.extend((name, text) for name, text in named if text is not None)
    right = [
        ("Subsample size k:", f"{design.k:,}"),
        ("Base learners B:", learners),
        ("Variance:", ESTIMATORS[results.variance].label),
        (
            "MC error of std err:",
            percent_text(results.estimates.relative_mc_error.max()),
        ),
    ]
    scores = {} if results.scores is None else results.scores.table
    right.extend((f"{name}:", number_text(value)) for name, value in scores.items())
    if design.name != "given" and not design.complete:
        right.append(("Seed:", str(design.seed)))
    rows = max(len(left), len(right))
    left.extend([("", "")] * (rows - len(left)))
    right.extend([("", "")] * (rows - len(right)))
    return left, right


def _header_width(header: tuple[list[tuple[str, str]], ...]) -> int:
    columns = [
        [max(map(len, cells)) for cells in zip(*side, strict=True)] for side in header
    ]
    return sum(map(sum, columns)) + len(" ") + len("   ") + len(" ")


def _header_table(
    header: tuple[list[tuple[str, str]], ...], title: str, width: int
) -> SimpleTable:
    left, right = header
    stub, value, label, second = (
        max(map(len, cells)) for side in header for cells in zip(*side, strict=True)
    )
    surplus = width - _header_width(header)
    value += surplus // 2
    second += surplus - surplus // 2
    data = [
        [text.rjust(value), "  " + name.ljust(label), other.rjust(second)]
        for (_, text), (name, other) in zip(left, right, strict=True)
    ]
    style = copy.deepcopy(fmt_base)
    style["colwidths"] = None
    style["data_fmts"] = ["%s"] * 3
    names = [name.ljust(stub) for name, _ in left]
    return SimpleTable(data, None, names, title=title, txt_fmt=style)
