"""Summaries in statsmodels' tables; the numbers are computed elsewhere."""

import copy
import html
import textwrap
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import Cell, SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit._typing import Ints, Labels
from vstatkit.inference import stopping
from vstatkit.inference.normality import (
    MIN_OBSERVATIONS,
    influence_labels,
    influence_normality,
    most_influential,
)
from vstatkit.results.bootstrap import Bootstrap, repetitions_needed
from vstatkit.results.delta_method import BENT, Transformed
from vstatkit.results.dependence_curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable, estimates_frame
from vstatkit.results.labels import label_texts, setting_text
from vstatkit.results.marginal_effects import Averages
from vstatkit.results.normality_check import NormalityCheck
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.results.summary_notes import (
    MAX_ROWS,
    constant_note,
    has_bias,
    many_more,
    margin_note,
    more_note,
    number_text,
    summary_notes,
    target_note,
    untested_note,
)
from vstatkit.results.variance_comparison import VarianceComparison
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.variance.estimator import COMPONENTS
from vstatkit.variance.registry import ESTIMATORS


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


def estimates_section(table: EstimateTable, alpha: float) -> Section:
    """Tabulate the estimates with intervals, and with tests if these make sense."""
    shown = shown_rows(table.labels)
    frame = estimates_frame(table.estimates, table.labels, alpha).iloc[shown]
    cells = _test_cells(frame)
    coefficients = table.info.coefficients
    headers = ["coef" if coefficients else "mean", "std err", "df"]
    if table.tests_zero:
        headers += ["t", "P>|t|"]
    else:
        cells = cells.drop(columns=["t", "p_value"])
    name = "" if coefficients else "Estimates"
    headers = [*headers, *interval_headers(alpha)]
    return Section(name, headers, cells, cut=_is_cut(table.labels))


def shown_rows(labels: Labels) -> Ints:
    """Return the places of the printed rows: all, or the first and the last."""
    places = np.arange(len(labels))
    if not _is_cut(labels):
        return places
    half = MAX_ROWS // 2
    return np.concatenate([places[:half], places[-half:]])


def _is_cut(labels: Labels) -> bool:
    return len(labels) > MAX_ROWS


def effects_section(results: EnsembleResults, alpha: float) -> Section | None:
    """Tabulate the effects, if there are any."""
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


def bias_section(results: EnsembleResults) -> Section | None:
    """Tabulate the remaining bias, if intervals target E[y|x]."""
    if not has_bias(results):
        return None
    cells = results.bias_left().iloc[shown_rows(results.labels)].map(number_text)
    headers = ["bias", "std err", "share"]
    return Section("Remaining bias", headers, cells, cut=_is_cut(results.labels))


def components_section(table: EstimateTable) -> Section:
    """Tabulate the variance components."""
    shown = shown_rows(table.labels)
    frame = table.components.to_frame(table.labels)[list(COMPONENTS)].iloc[shown]
    share = table.diagnostics["monte_carlo_share"].iloc[shown]
    cells = frame.map(number_text)
    cells["share"] = share.map("{:.1%}".format)
    headers = ["zeta_1", "zeta_k", "sampling", "monte carlo", "total", "mc_se"]
    headers = [*headers, "MC share"]
    return Section("Variance", headers, cells, cut=_is_cut(table.labels))


def normality_frame(table: EstimateTable, shown: Ints) -> pd.DataFrame | None:
    """Test the influences on some estimates, if there are enough units."""
    if len(influence_labels(table.design, table.units)) < MIN_OBSERVATIONS:
        return None
    tests = influence_normality(table.design, table.values[:, shown])
    return tests.set_axis(table.labels[shown])


def normality_section(table: EstimateTable) -> Section | None:
    """Tabulate the normality tests, if there are enough units."""
    frame = normality_frame(table, shown_rows(table.labels))
    if frame is None:
        return None
    cells = frame.map("{:.3f}".format)
    headers = ["skew", "kurtosis", "omnibus", "Prob", "Jarque-Bera", "Prob"]
    return Section("Influence", headers, cells, cut=_is_cut(table.labels))


def percent_text(share: float) -> str:
    """Write a share as a percentage."""
    return f"{share:.1%}"


MAX_SETTINGS = 12  # most predictors of the typical row that are printed


class Lines:
    """Named lines of text, before the common width is known."""

    def __init__(self, lines: dict[str, str]) -> None:
        self.lines = lines

    @property
    def _stub_width(self) -> int:
        return max(map(len, self.lines))

    @property
    def width(self) -> int:
        """Least width; the text is wrapped to the common width."""
        return self._stub_width

    def table(self, width: int) -> SimpleTable:
        """Lay the lines out over the common width."""
        room = width - self._stub_width - 2
        rows = [
            ("" if j else name, part)
            for name, text in self.lines.items()
            for j, part in enumerate(textwrap.wrap(text, room))
        ]
        style = copy.deepcopy(fmt_base)
        style["colwidths"] = None
        style["data_fmts"] = ["%s"]
        style["table_dec_above"] = "-"  # they belong to the table above
        texts = [[part.ljust(room + 1)] for _, part in rows]
        stubs = [name.ljust(self._stub_width) for name, _ in rows]
        return SimpleTable(texts, None, stubs, txt_fmt=style)


def compact_lines(table: EstimateTable, *, full: bool) -> Lines | None:
    """Describe the typical row, and the variance and influences unless `full`."""
    lines: dict[str, str | None] = {}
    if isinstance(table, EnsembleResults):
        lines["Typical row:"] = typical_text(table)
    if not full:
        lines["Variance:"] = _variance(table)
        lines["Influence:"] = _influence(table)
    shown = {name: text for name, text in lines.items() if text is not None}
    return Lines(shown) if shown else None


def typical_text(results: EnsembleResults) -> str | None:
    """Write the typical row, "bmi 25.7, bp 93, ..."; None for coefficients."""
    row = results.typical
    if row is None or results.info.coefficients:
        return None
    names = row.columns[:MAX_SETTINGS]
    shown = [f"{name} {setting_text(row[name].iloc[0])}" for name in names]
    left = row.shape[1] - len(shown)
    tail = f", and {left:,} more in `typical`" if left else ""
    return ", ".join(shown) + tail


def _variance(table: EstimateTable) -> str:
    share = table.diagnostics["monte_carlo_share"]
    text = f"sampling {_range(1 - share)}, Monte Carlo {_range(share)}"
    if len(table.labels) > 1:
        return text
    parts = table.components
    zetas = (number_text(float(zeta[0])) for zeta in (parts.zeta_1, parts.zeta_k))
    return text + " (zeta_1 {}, zeta_k {})".format(*zetas)


def _range(shares: pd.Series) -> str:
    """Write shares as percentages, from the least to the greatest."""
    ends = [percent_text(float(share)) for share in (shares.min(), shares.max())]
    return " to ".join(dict.fromkeys(ends))


def _influence(table: EstimateTable) -> str | None:
    """Name the most influential observation."""
    if len(influence_labels(table.design, table.units)) < MIN_OBSERVATIONS:
        return None
    shown = shown_rows(table.labels)
    whole = len(shown) == len(table.labels)
    if whole:
        frame = table.most_influential
    else:
        frame = most_influential(table.design, table.values[:, shown], table.units)
    if frame is None or not frame["share"].max() > 0:
        return None
    place = int(frame["share"].to_numpy().argmax())
    unit, share = frame["unit"].iloc[place], frame["share"].iloc[place]
    label = label_texts(table.labels[[shown[place]]])[0]
    whose = "" if len(table.labels) == 1 else f" of '{label}'"
    return (
        f"at most {share:.0%} of the variance{whose} is due to one "
        f"{unit_noun(table)} ({unit})"
    )


def unit_noun(table: EstimateTable) -> str:
    """Name one unit: an observation, a cluster or a shard."""
    if isinstance(table.design, ShardsDesign):
        return "shard"
    return table.info.units.removesuffix("s")


WIDTH = 78  # least width of a table, as in statsmodels


class EnsembleSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """statsmodels' Summary, safe for any name of a column or level.

    Names are escaped in HTML and LaTeX. In LaTeX every table is a separate tabular,
    because the tables have different columns.

    Attributes
    ----------
    notes : list of str
        The numbered notes, not wrapped.
    width : int
        Width of the tables, in characters.
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

    def as_html(self) -> str:
        """Return the tables and notes as HTML."""
        tables = [_escape_cells(table, html.escape).as_html() for table in self.tables]
        notes = "<br/>".join(html.escape(note) for note in ["Notes:", *self.notes])
        return "\n".join([*tables, f"<br/><br/>{notes}"])

    def as_latex(self) -> str:
        """Return the tables and notes as LaTeX; it needs the booktabs package."""
        tables = [
            _escape_cells(table, _latex).as_latex_tabular(replacements={})
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


def _escape_cells(table: SimpleTable, escape: Callable[[str], str]) -> SimpleTable:
    """Copy a table with the text of every cell escaped."""
    copied = copy.deepcopy(table)
    for row in copied:
        for cell in row:
            cell.data = escape(str(cell.data))
    return copied


def summarise(
    table: EstimateTable, alpha: float, *, full: bool, title: str | None
) -> Summary:
    """Compose the summary of estimates; a fit has its effects first."""
    fit = table if isinstance(table, EnsembleResults) else None
    sections = [
        None if fit is None else effects_section(fit, alpha),
        estimates_section(table, alpha),
        compact_lines(table, full=full),
        None if fit is None else bias_section(fit),
    ]
    notes = summary_notes(table, alpha, full=full)
    if full:
        sections += [components_section(table), normality_section(table)]
    else:
        notes.append(more_note(table))
    shown = [section for section in sections if section is not None]
    scores = {} if fit is None or fit.scores is None else fit.scores.table
    title = table.info.title if title is None else title
    return compose(shown, title, notes, _header(table, scores))


def summarise_predictions(prediction: PredictionResults, alpha: float) -> Summary:
    """Compose the table of predictions, with the bounds of new observations."""
    whole = prediction.summary_frame(alpha)
    frame = whole.iloc[shown_rows(whole.index)]
    ends = interval_headers(alpha)
    headers = ["mean", "std err", *ends]
    names = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    notes = [target_note(prediction, alpha)]
    if "obs_ci_lower" in frame:
        names += ["obs_ci_lower", "obs_ci_upper"]
        headers += [f"obs {ends[0]}", f"obs {ends[1]}"]
        method = whole.attrs.get("obs_method")
        bounds = "" if method is None else f" (obs_method={method!r})"
        notes.append(f"obs: {1 - alpha:.4g} bounds of a new observation{bounds}.")
    section = Section(
        "", headers, frame[names].map(number_text), cut=len(frame) < len(whole)
    )
    notes += _learner_notes(prediction)
    return compose([section], "Predictions", notes)


def compose(
    sections: "Sequence[Section | Lines]",
    title: str,
    notes: Sequence[str],
    header: tuple[list[tuple[str, str]], ...] | None = None,
) -> EnsembleSummary:
    """Compose a summary of tables of the same width and numbered notes."""
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


def summarise_comparison(comparison: VarianceComparison) -> Summary:
    """Compose the tables of a comparison of variance estimators."""
    tables = comparison.shown_tables()
    sections = [
        _comparison_section(*table, comparison.chosen, comparison.alpha)
        for table in tables
    ]
    notes = _comparison_notes(comparison, len(comparison.labels) - len(tables))
    return compose(sections, "Variance estimators", notes)


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
        "* is in use; `with_variance(name)` switches without refitting.",
        "sampling is the raw sampling variance, which may be negative; std err uses "
        "its positive version plus the Monte Carlo part; MC error is the Monte Carlo "
        "error of std err.",
    ]
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        notes.append(f"Not applicable: {names}; `left_out` has the reasons.")
    if n_hidden:
        notes.append(f"{n_hidden:,} estimates are not shown; `frame` has all.")
    return notes


def summarise_normality(check: NormalityCheck) -> Summary:
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
        "above, below: probabilities that a "
        f"{1 - check.alpha:.0%} interval lies above or below the true value, by "
        f"Edgeworth's expansion; {check.alpha / 2:.1%} each if the estimate is normal.",
        "largest: the largest share of the variance that is due to one unit.",
        *(f"{verdict}: {meaning}" for verdict, meaning in check.verdicts.items()),
    ]
    return compose([section], "Normality of the estimates", notes)


def summarise_bootstrap(bootstrap: Bootstrap, alpha: float) -> Summary:
    """Compose the table of a bootstrap."""
    whole = bootstrap.summary_frame(alpha)
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
        f"bootstrap: the standard error over {bootstrap.R:,} resampled data sets, with "
        f"a relative error of {percent_text(float(error))}. The second interval is the "
        "percentile interval.",
        "omnibus, JB (Jarque-Bera), Shapiro: p-values of tests that the estimates on "
        "resampled data are normal.",
    ]
    recipe = bootstrap.results.recipe
    if recipe is not None and recipe.centre is not None:
        notes.append(
            "The learners behind the standard errors were refitted, and their "
            "estimates were shifted as those of the fit were."
        )
    needed = repetitions_needed(alpha)
    if needed > bootstrap.R:
        notes.append(
            f"Percentile intervals at {1 - alpha:g} need at least {needed:,} resampled "
            "data sets."
        )
    return compose([section], "Bootstrap", notes)


def _header(
    results: EstimateTable, scores: dict[str, float]
) -> tuple[list[tuple[str, str]], ...]:
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


# Descriptions of the kinds of standard errors.
KINDS = {
    "sample": "conditional on these rows",
    "population": "for the population that these rows were drawn from",
}
# Monte Carlo error above which standard errors are too large on average, because
# negative estimates of the variance are replaced by positive ones.
VAGUE = 0.25

HALF = ": for averages half of its value for predictions."


def summarise_averages(averages: Averages, alpha: float) -> Summary:
    """Compose the table of averages."""
    frame = averages.summary_frame(alpha)
    notes = [
        f"Averages over {averages.rows}; standard errors {KINDS[averages.se]} "
        f"(se={averages.se!r}).",
        *_learner_notes(averages, HALF),
    ]
    if "step" in frame:
        notes += _slope_notes(frame)
    tested = averages.tests_zero
    others = [constant_note(averages.constant)]
    if tested:
        others.append(untested_note(frame, averages.texts))
    if averages.support is not None and "to" in frame:
        others.append(margin_note(frame, averages.texts, alpha))
    notes += [note for note in others if note is not None]
    notes += averages.notes
    texts = averages.texts
    section = averages_section("", frame.set_axis(texts), alpha, tested=tested)
    return compose([section], averages.what.capitalize(), notes)


def _slope_notes(frame: pd.DataFrame) -> list[str]:
    """Explain slopes, and the rows of their table that are not slopes."""
    notes = []
    if frame["to"].isna().any():
        notes.append(
            "Slopes: differences between predictions at two observed values of the "
            "predictor, at least the step apart, divided by their distance."
        )
    if (frame["to"].notna() & frame["step"].notna()).any():
        notes.append(
            "A predictor with two values moves from one to the other, and the change "
            "is divided by their distance."
        )
    if frame["step"].isna().any():
        notes.append("Factors have contrasts between two levels instead of slopes.")
    return notes


def summarise_curve(curve: Curve, alpha: float) -> Summary:
    """Compose the table of a curve."""
    notes = [
        f"{curve.rows}; standard errors {KINDS[curve.se]} (se={curve.se!r}).",
        *_learner_notes(curve, HALF),
    ]
    frame = curve.summary_frame(alpha).drop(columns=list(curve.variables))
    texts = [", ".join(map(setting_text, row)) for row in curve.grid.to_numpy(object)]
    outputs = len(texts) // curve.n_points
    if outputs > 1:
        classes = frame.index.get_level_values("class")
        texts = [
            f"{text} [{level}]" for text, level in zip(texts, classes, strict=True)
        ]
    name = ", ".join(map(str, curve.variables))
    tested = curve.tests_zero
    untested = untested_note(frame, texts) if tested else None
    notes += [] if untested is None else [untested]
    notes += curve.notes
    section = averages_section(name, frame.set_axis(texts), alpha, tested=tested)
    return compose([section], curve.title, notes)


def summarise_transformed(transformed: Transformed, alpha: float) -> Summary:
    """Compose the table of functions of estimates."""
    notes = ["Standard errors by the delta method.", *_learner_notes(transformed)]
    bent = transformed.bend[transformed.bend > BENT]
    if bent.size:
        notes.append(
            f"Within one standard error, {bent.size} function(s) depart from a line by "
            f"up to {percent_text(float(bent.max()))} of its change: the delta method "
            "may be inaccurate for them."
        )
    frame = transformed.summary_frame(alpha)
    untested = untested_note(frame, label_texts(frame.index))
    notes += [] if untested is None else [untested]
    title = "Functions of estimates"
    return compose([averages_section("", frame, alpha)], title, notes)


def _advice(results: EstimateTable) -> str:
    """Recommend a number of learners, if there are enough to forecast one."""
    if results.estimates.bounded.any():
        return f"Grow {many_more(results.B)}; the table then has a recommended number."
    needed = float(results.tolerance.learners_needed(results.estimates).max())
    return (
        f"About {stopping.round_up(needed)} learners are needed to reduce the Monte "
        f"Carlo error to {results.tolerance.tol:.0%}."
    )


def _learner_notes(results: EstimateTable, about: str = ".") -> list[str]:
    """Describe the learners, the variance estimator and the Monte Carlo error."""
    worst = float(results.estimates.relative_mc_error.max())
    error = percent_text(worst)
    label = ESTIMATORS[results.variance].label
    notes = [
        f"{results.B:,} learners of {results.k:,} {results.info.units}; variance: "
        f"{label}; Monte Carlo error of the standard errors: {error} at most."
    ]
    if worst > VAGUE and results.estimates.scaled.df is None:
        notes.append(
            "Standard errors this imprecise are too large on average. "
            f"{_advice(results)}"
        )
    orders = results.orders
    if orders is not None and ESTIMATORS[results.variance].beyond:
        notes.append(
            f"The sampling variance is the jackknife's over 1 + rho, rho = "
            f"{orders.rho:.2f} (standard error {orders.error:.2f}){about}"
        )
    if len(results.labels) > MAX_ROWS:
        hidden = len(results.labels) - MAX_ROWS
        notes.append(f"{hidden:,} rows are not shown; `frame` has all.")
    return notes
