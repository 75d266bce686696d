"""Summaries in statsmodels' tables; the numbers are computed elsewhere."""

import copy
import html
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import Cell, SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit._typing import Ints, Labels
from vstatkit.inference import stopping
from vstatkit.inference.normality import influence_normality
from vstatkit.results.bootstrap import Bootstrap, repetitions_needed
from vstatkit.results.delta_method import BENT, Transformed
from vstatkit.results.dependence_curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable, estimates_frame
from vstatkit.results.labels import label_texts, number_text, setting_text
from vstatkit.results.marginal_effects import Averages
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.results.reliability_checks import NormalityCheck, VarianceComparison
from vstatkit.results.summary_notes import (
    MAX_ROWS,
    constant_note,
    enough_units,
    has_bias,
    many_more,
    margin_note,
    orders_text,
    summary_notes,
    target_note,
    untested_note,
)
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.variance.estimators import COMPONENTS
from vstatkit.variance.influence_summaries import most_influential
from vstatkit.variance.registry import ESTIMATORS

# A column of a printed table: header, column of the frame, and format of a value.
Column = tuple[str, str, Callable[[Any], str]]
ONE_DECIMAL, THREE_DECIMALS = "{:.1f}".format, "{:.3f}".format
PERCENT = "{:.1%}".format


def _columns(
    names: dict[str, str], write: Callable[[Any], str] = number_text
) -> list[Column]:
    """Describe columns with a common format by the headers of their names."""
    return [(header, name, write) for name, header in names.items()]


def _text_table(
    cells: list[list[str]], headers: list[str] | None, stubs: list[str], **style: Any
) -> SimpleTable:
    """Make a table of padded texts."""
    formats = {"colwidths": None, "data_fmts": ["%s"] * len(cells[0])}
    return SimpleTable(cells, headers, stubs, txt_fmt=fmt_base | formats | style)


@dataclass(frozen=True)
class Section:
    """Formatted cells of one table, before the common width is known."""

    name: str
    headers: list[str]
    stubs: list[str]
    cells: list[list[str]]

    @property
    def _widths(self) -> list[int]:
        """Widths of the stubs and of the columns."""
        columns = zip(self.headers, *self.cells, strict=True)
        widths = [max(7, *map(len, column)) for column in columns]
        return [max(map(len, [self.name, *self.stubs])), *widths]

    @property
    def width(self) -> int:
        """Least width that holds all cells."""
        return sum(self._widths) + len(self.headers)

    def table(self, width: int) -> SimpleTable:
        """Lay the cells out over the common width."""
        each, rest = divmod(width - self.width, len(self.headers))
        stub_width, *widths = self._widths
        headers, *cells = (
            [cell.rjust(w + each) for cell, w in zip(row, widths, strict=True)]
            for row in [self.headers, *self.cells]
        )
        corner, *stubs = (
            text.ljust(stub_width + rest) for text in [self.name, *self.stubs]
        )
        table = _text_table(cells, headers, stubs)
        table[0][0] = Cell(corner, datatype="stub", row=table[0])
        return table


def tabulate(
    name: str, frame: pd.DataFrame, columns: Sequence[Column], *, cut: bool = False
) -> Section:
    """Write the printed rows of a frame; `cut` if it has no other rows."""
    shown = frame.iloc[shown_rows(frame.index)]
    stubs = label_texts(shown.index)
    texts = [[write(value) for value in shown[column]] for _, column, write in columns]
    cells = [list(row) for row in zip(*texts, strict=True)]
    if cut or len(shown) < len(frame):
        stubs.insert(MAX_ROWS // 2, "...")
        cells.insert(MAX_ROWS // 2, ["..." for _ in columns])
    return Section(name, [header for header, _, _ in columns], stubs, cells)


def shown_rows(labels: Labels) -> Ints:
    """Return the places of the printed rows: all, or the first and the last."""
    places = np.arange(len(labels))
    half = MAX_ROWS // 2
    if len(labels) <= MAX_ROWS:
        return places
    return np.concatenate([places[:half], places[-half:]])


def _interval_columns(alpha: float, kind: str = "", label: str = "") -> list[Column]:
    """Describe the columns of bounds, with headers like statsmodels'."""
    low, high = f"{label}[{alpha / 2:.4g}", f"{label}{1 - alpha / 2:.4g}]"
    return _columns({f"{kind}ci_lower": low, f"{kind}ci_upper": high})


def _estimate_columns(header: str, alpha: float, *, tested: bool) -> list[Column]:
    """Describe the columns of estimates, tests and intervals."""
    return [
        *_columns({"estimate": header, "std_error": "std err"}),
        ("df", "df", ONE_DECIMAL),
        *(_columns({"t": "t", "p_value": "P>|t|"}, THREE_DECIMALS) if tested else []),
        *_interval_columns(alpha),
    ]


def estimates_section(table: EstimateTable, alpha: float) -> Section:
    """Tabulate the estimates with intervals, and with tests if these make sense."""
    frame = estimates_frame(table.estimates, table.labels, alpha)
    name, header = ("", "coef") if table.info.coefficients else ("Estimates", "mean")
    columns = _estimate_columns(header, alpha, tested=table.tests_zero)
    return tabulate(name, frame, columns)


def effects_section(results: EnsembleResults, alpha: float) -> Section | None:
    """Tabulate the effects, if there are any."""
    frame = results.effects_frame(alpha)
    if frame is None:
        return None
    moves = _columns({"from": "from", "to": "to"}, setting_text)
    tests = _estimate_columns("change", alpha, tested=True)
    return tabulate("Effects", frame, [*moves, *tests])


def averages_section(
    name: str, frame: pd.DataFrame, alpha: float, *, tested: bool = True
) -> Section:
    """Tabulate averages: settings first, then estimates, tests and intervals."""
    shown = frame.iloc[shown_rows(frame.index)]
    settings = list(frame.columns[: list(frame.columns).index("estimate")])
    known = {name: name for name in settings if any(map(setting_text, shown[name]))}
    tests = _estimate_columns("estimate", alpha, tested=tested)
    return tabulate(name, frame, [*_columns(known, setting_text), *tests])


def bias_section(results: EnsembleResults) -> Section | None:
    """Tabulate the remaining bias, if intervals target E[y|x]."""
    if not has_bias(results):
        return None
    columns = _columns({"bias": "bias", "std_error": "std err", "share": "share"})
    return tabulate("Remaining bias", results.bias_left(), columns)


def components_section(table: EstimateTable) -> Section:
    """Tabulate the variance components."""
    frame = table.components.to_frame(table.labels)
    frame["share"] = table.diagnostics["monte_carlo_share"]
    names = {name: name for name in COMPONENTS}
    columns = _columns({**names, "monte_carlo": "monte carlo"})
    return tabulate("Variance", frame, [*columns, ("MC share", "share", PERCENT)])


def influence_tests(table: EstimateTable) -> pd.DataFrame | None:
    """Test the influences on the printed estimates, if there are enough units."""
    if not enough_units(table):
        return None
    shown = shown_rows(table.labels)
    tests = influence_normality(table.design, table.values[:, shown])
    return tests.set_axis(table.labels[shown])


def normality_section(table: EstimateTable) -> Section | None:
    """Tabulate the normality tests, if there are enough units."""
    frame = influence_tests(table)
    if frame is None:
        return None
    headers = ["skew", "kurtosis", "omnibus", "Prob", "Jarque-Bera", "Prob"]
    columns = _columns(dict(zip(map(str, frame), headers, strict=True)), THREE_DECIMALS)
    return tabulate("Influence", frame, columns, cut=len(frame) < len(table.labels))


MAX_SETTINGS = 12  # most predictors of the typical row that are printed


class Lines:
    """Named lines of text, which are wrapped to the common width."""

    def __init__(self, lines: dict[str, str]) -> None:
        self.lines = lines
        self.width = max(map(len, lines))

    def table(self, width: int) -> SimpleTable:
        """Lay the lines out over the common width."""
        room = width - self.width - 2
        rows = [
            ("" if j else name, part)
            for name, text in self.lines.items()
            for j, part in enumerate(textwrap.wrap(text, room))
        ]
        texts = [[part.ljust(room + 1)] for _, part in rows]
        stubs = [name.ljust(self.width) for name, _ in rows]
        # A weak rule, because the lines belong to the table above.
        return _text_table(texts, None, stubs, table_dec_above="-")


class Header:
    """Names and values in two columns above the tables; None is left out."""

    def __init__(self, left: dict[str, Any], right: dict[str, Any]) -> None:
        sides = [
            [(name, text) for name, text in side.items() if text is not None]
            for side in (left, right)
        ]
        pairs = zip_longest(*sides, fillvalue=("", ""))
        self.rows = [(*first, *second) for first, second in pairs]
        self.widths = [max(map(len, cells)) for cells in zip(*self.rows, strict=True)]
        self.width = sum(self.widths) + 5  # with the spaces between the columns

    def table(self, width: int) -> SimpleTable:
        """Lay the header out over the common width."""
        stub, value, label, second = self.widths
        surplus = width - self.width
        value += surplus // 2
        second += surplus - surplus // 2
        cells = [
            [text.rjust(value), "  " + name.ljust(label), other.rjust(second)]
            for _, text, name, other in self.rows
        ]
        return _text_table(cells, None, [name.ljust(stub) for name, *_ in self.rows])


def _header(results: EstimateTable, scores: dict[str, float]) -> Header:
    info, design = results.info, results.design
    unseeded = design.name == "given" or design.complete
    return Header(
        {
            "Dep. Variable:": info.response,
            "Kernel:": info.kernel,
            "Sampling:": "V (with replacement)"
            if results.replace
            else "U (without replacement)",
            "Design:": design.name,
            "No. Observations:": f"{info.nobs:,}",
            "Rows dropped:": f"{info.n_dropped:,}",
            "No. Clusters:": f"{design.n:,}" if info.units == "clusters" else None,
            "Groups:": info.groups,
            "Weights:": info.weights,
        },
        {
            "Subsample size k:": f"{design.k:,}",
            "Base learners B:": f"{results.B:,}{' (all)' if design.complete else ''}",
            "Variance:": ESTIMATORS[results.variance].label,
            "MC error of std err:": f"{results.estimates.relative_mc_error.max():.1%}",
            **{f"{name}:": number_text(value) for name, value in scores.items()},
            "Seed:": None if unseeded else str(design.seed),
        },
    )


def compact_lines(table: EstimateTable, *, full: bool) -> Lines | None:
    """Describe the typical row, and the variance and influences unless `full`."""
    lines = {
        "Typical row:": _typical_text(table),
        "Variance:": None if full else _variance(table),
        "Influence:": None if full else _influence(table),
    }
    shown = {name: text for name, text in lines.items() if text is not None}
    return Lines(shown) if shown else None


def _typical_text(table: EstimateTable) -> str | None:
    """Write the typical row, "bmi 25.7, bp 93, ..."; None for coefficients."""
    row = table.typical if isinstance(table, EnsembleResults) else None
    if row is None or table.info.coefficients:
        return None
    names = row.columns[:MAX_SETTINGS]
    shown = [f"{name} {setting_text(row[name].iloc[0])}" for name in names]
    left = row.shape[1] - len(shown)
    tail = f", and {left:,} more in `typical`" if left else ""
    return ", ".join(shown) + tail


def _variance(table: EstimateTable) -> str:
    share, parts = table.diagnostics["monte_carlo_share"], table.components
    text = f"sampling {_range(1 - share)}, Monte Carlo {_range(share)}"
    if len(table.labels) > 1:
        return text
    zeta_1, zeta_k = number_text(parts.zeta_1[0]), number_text(parts.zeta_k[0])
    return f"{text} (zeta_1 {zeta_1}, zeta_k {zeta_k})"


def _range(shares: pd.Series) -> str:
    """Write shares as percentages, from the least to the greatest."""
    ends = [f"{share:.1%}" for share in (shares.min(), shares.max())]
    return " to ".join(dict.fromkeys(ends))


def _influence(table: EstimateTable) -> str | None:
    """Name the most influential observation, cluster or shard."""
    if not enough_units(table):
        return None
    shown = shown_rows(table.labels)
    pooled = table.estimates.expected is not None
    if len(shown) == len(table.labels) or pooled:
        frame = table.most_influential
        frame = None if frame is None else frame.iloc[shown]
    else:
        frame = most_influential(table.design, table.values[:, shown], table.units)
    if frame is None or not frame["share"].max() > 0:
        return None
    place = int(frame["share"].to_numpy().argmax())
    unit, share = frame["unit"].iloc[place], frame["share"].iloc[place]
    label = label_texts(table.labels[[shown[place]]])[0]
    whose = "" if len(table.labels) == 1 else f" of '{label}'"
    shards = isinstance(table.design, ShardsDesign)
    noun = "shard" if shards else table.info.units.removesuffix("s")
    return f"at most {share:.0%} of the variance{whose} is due to one {noun} ({unit})"


WIDTH = 78  # least width of a table, as in statsmodels


class EnsembleSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """statsmodels' Summary, safe for any name of a column or level.

    Names are escaped in HTML and LaTeX. In LaTeX every table is a separate tabular,
    because the tables have different columns. `notes` has the numbered notes, which are
    wrapped to the width of the tables when printed.
    """

    def __init__(
        self, tables: list[SimpleTable], notes: Iterable[str], width: int
    ) -> None:
        super().__init__()
        self.tables = tables
        self.notes = [f"[{j}] {note}" for j, note in enumerate(notes, start=1)]
        lines = [
            line
            for note in self.notes
            for line in textwrap.wrap(note, width, subsequent_indent="    ")
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
        tests = " and normality tests" if enough_units(table) else ""
        notes.append(f"summary(full=True) adds variance components{tests}.")
    scores = {} if fit is None or fit.scores is None else fit.scores.table
    title = table.info.title if title is None else title
    return compose([_header(table, scores), *sections], title, notes)


def compose(
    sections: Sequence[Header | Section | Lines | None],
    title: str,
    notes: Sequence[str | None],
) -> EnsembleSummary:
    """Compose a summary of tables of the same width and numbered notes."""
    shown = [section for section in sections if section is not None]
    width = max(WIDTH, *(section.width for section in shown))
    tables = [section.table(width) for section in shown]
    tables[0].title = title
    return EnsembleSummary(tables, [note for note in notes if note is not None], width)


def summarise_predictions(prediction: PredictionResults, alpha: float) -> Summary:
    """Compose the table of predictions, with the bounds of new observations."""
    frame = prediction.summary_frame(alpha)
    columns = _columns({"mean": "mean", "mean_se": "std err"})
    columns += _interval_columns(alpha, "mean_")
    notes = [target_note(prediction, alpha)]
    if "obs_ci_lower" in frame:
        columns += _interval_columns(alpha, "obs_", "obs ")
        method = frame.attrs.get("obs_method")
        bounds = "" if method is None else f" (obs_method={method!r})"
        notes.append(f"obs: {1 - alpha:.4g} bounds of a new observation{bounds}.")
    notes += _learner_notes(prediction)
    return compose([tabulate("", frame, columns)], "Predictions", notes)


def summarise_comparison(comparison: VarianceComparison) -> Summary:
    """Compose the tables of a comparison of variance estimators."""
    tables = comparison.shown_tables()
    numbers = {"sampling": "sampling", "se": "std err", "se_mc_error": "MC error"}
    columns = [*_columns(numbers), ("df", "df", ONE_DECIMAL)]
    columns += _interval_columns(comparison.alpha)
    in_use = {comparison.chosen: f"{comparison.chosen} *"}
    sections = [
        tabulate(label, frame.rename(in_use), columns) for label, frame in tables
    ]
    notes = [
        "* is in use; `with_variance(name)` switches without refitting.",
        "sampling is the raw sampling variance, which may be negative; std err uses "
        "its positive version plus the Monte Carlo part; MC error is the Monte Carlo "
        "error of std err.",
    ]
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        notes.append(f"Not applicable: {names}; `left_out` has the reasons.")
    n_hidden = len(comparison.labels) - len(tables)
    if n_hidden:
        notes.append(f"{n_hidden:,} estimates are not shown; `frame` has all.")
    return compose(sections, "Variance estimators", notes)


def summarise_normality(check: NormalityCheck) -> Summary:
    """Compose the table of a check of normality."""
    numbers = {"skew": "skew", "kurtosis": "kurtosis", "largest_share": "largest"}
    shares = {"miss_above": "above", "miss_below": "below", "coverage": "coverage"}
    columns = _columns({**numbers, "zeta_ratio": "zeta_k/(n zeta_1)"})
    columns += [*_columns(shares, PERCENT), ("verdict", "verdict", str)]
    notes = [
        "above, below: probabilities that a "
        f"{1 - check.alpha:.0%} interval lies above or below the true value, by "
        f"Edgeworth's expansion; {check.alpha / 2:.1%} each if the estimate is normal.",
        "largest: the largest share of the variance that is due to one unit.",
        *(f"{verdict}: {meaning}" for verdict, meaning in check.verdicts.items()),
    ]
    section = tabulate("", check.frame, columns)
    return compose([section], "Normality of the estimates", notes)


def summarise_bootstrap(bootstrap: Bootstrap, alpha: float) -> Summary:
    """Compose the table of a bootstrap."""
    frame = bootstrap.summary_frame(alpha)
    numbers = {"estimate": "estimate", "se": "std err", "bootstrap_se": "bootstrap"}
    tests = {"omnibus_p": "omnibus", "jarque_bera_p": "JB", "shapiro_p": "Shapiro"}
    columns = [*_columns(numbers), *_interval_columns(alpha)]
    columns += _interval_columns(alpha, "bootstrap_")
    columns += _columns(tests, THREE_DECIMALS)
    shown = frame.iloc[shown_rows(frame.index)]
    error = (shown["bootstrap_se_error"] / shown["bootstrap_se"]).max()
    notes = [
        f"bootstrap: the standard error over {bootstrap.R:,} resampled data sets, with "
        f"a relative error of {error:.1%}. The second interval is the percentile "
        "interval.",
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
    return compose([tabulate("", frame, columns)], "Bootstrap", notes)


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
    frame, texts = averages.summary_frame(alpha), averages.texts
    tested = averages.tests_zero
    notes = [
        f"Averages over {averages.rows}; standard errors {KINDS[averages.se]} "
        f"(se={averages.se!r}).",
        *_learner_notes(averages, HALF),
        *(_slope_notes(frame) if "step" in frame else []),
        constant_note(averages.constant),
        untested_note(frame, texts) if tested else None,
    ]
    if averages.support is not None and "to" in frame:
        notes.append(margin_note(frame, texts, alpha))
    section = averages_section("", frame.set_axis(texts), alpha, tested=tested)
    return compose([section], averages.what.capitalize(), [*notes, *averages.notes])


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
    frame = curve.summary_frame(alpha).drop(columns=list(curve.variables))
    texts = curve.texts()
    name = ", ".join(map(str, curve.variables))
    tested = curve.tests_zero
    notes = [
        f"{curve.rows}; standard errors {KINDS[curve.se]} (se={curve.se!r}).",
        *_learner_notes(curve, HALF),
        untested_note(frame, texts) if tested else None,
        *curve.notes,
    ]
    section = averages_section(name, frame.set_axis(texts), alpha, tested=tested)
    return compose([section], curve.title, notes)


def summarise_transformed(transformed: Transformed, alpha: float) -> Summary:
    """Compose the table of functions of estimates."""
    frame = transformed.summary_frame(alpha)
    notes = ["Standard errors by the delta method.", *_learner_notes(transformed)]
    bent = transformed.bend[transformed.bend > BENT]
    if bent.size:
        notes.append(
            f"Within one standard error, {bent.size} function(s) depart from a line by "
            f"up to {bent.max():.1%} of its change: the delta method may be inaccurate "
            "for them."
        )
    untested = untested_note(frame, label_texts(frame.index))
    section = averages_section("", frame, alpha)
    return compose([section], "Functions of estimates", [*notes, untested])


def _learner_notes(results: EstimateTable, about: str = ".") -> list[str]:
    """Describe the learners, the variance estimator and the Monte Carlo error."""
    estimates, estimator = results.estimates, ESTIMATORS[results.variance]
    worst = float(estimates.relative_mc_error.max())
    notes = [
        f"{results.B:,} learners of {results.k:,} {results.info.units}; variance: "
        f"{estimator.label}; Monte Carlo error of the standard errors: {worst:.1%} at "
        "most."
    ]
    if worst > VAGUE and estimates.scaled.df is None:
        if estimates.bounded.any():  # too few learners for a forecast
            advice = (
                f"Grow {many_more(results.B)}; the table then has a recommended number."
            )
        else:
            needed = float(results.tolerance.learners_needed(estimates).max())
            advice = (
                f"About {stopping.round_up(needed)} learners are needed to reduce the "
                f"Monte Carlo error to {results.tolerance.tol:.0%}."
            )
        notes.append(
            f"Standard errors this imprecise are too large on average. {advice}"
        )
    orders = results.orders
    if orders is not None and estimator.beyond:
        notes.append(f"{orders_text(orders)}{about}")
    if len(results.labels) > MAX_ROWS:
        hidden = len(results.labels) - MAX_ROWS
        notes.append(f"{hidden:,} rows are not shown; `frame` has all.")
    return notes
