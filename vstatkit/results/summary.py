"""Show results in statsmodels' tables; nothing is computed here."""

import copy
import html
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import Cell, SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from vstatkit._typing import Ints, Labels
from vstatkit.inference.estimates import MIN_DF
from vstatkit.inference.normality import MIN_OBSERVATIONS
from vstatkit.inference.precision import about
from vstatkit.results.comparison import VarianceComparison
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.info import label_texts
from vstatkit.variance.components import COMPONENTS, ESTIMATORS
from vstatkit.variance.orders import KernelKind

WIDTH = 78
"""Least width of a table, as in statsmodels."""

RELIABLE_UNITS = 20
"""Observations or clusters from which on intervals hold their level."""


MAX_ROWS = 40
"""Rows of a table that are printed, the first and the last; the notes say so."""


class EnsembleSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """statsmodels' Summary, safe for any name of a column or level.

    Names are escaped in HTML and LaTeX, and every table is a tabular of its own
    in LaTeX, since they differ in columns.

    Attributes
    ----------
    notes : list of str
        The numbered notes, not wrapped.
    """

    notes: list[str]

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


def summarise(results: EnsembleResults, alpha: float) -> Summary:
    """Compose the summary of an ensemble.

    Parameters
    ----------
    results : EnsembleResults
        What to show.
    alpha : float
        One minus the coverage of the intervals.
    """
    sections = [
        _estimates_section(results, alpha),
        _effects_section(results, alpha),
        _components_section(results),
        _normality_section(results),
    ]
    shown = [section for section in sections if section is not None]
    header = _header(results)
    return _composed(shown, results.info.title, _notes(results, alpha), header)


def _composed(
    sections: "Sequence[_Section]",
    title: str,
    notes: Sequence[str],
    header: tuple[list[tuple[str, str]], ...] | None = None,
) -> EnsembleSummary:
    """Put tables of one width and numbered notes together."""
    head = 0 if header is None else _header_width(header)
    width = max(WIDTH, head, *(section.width for section in sections))
    summary = EnsembleSummary()
    if header is not None:
        summary.tables.append(_header_table(header, title, width))
    summary.tables.extend(section.table(width) for section in sections)
    if header is None:
        summary.tables[0].title = title
    summary.notes = [f"[{j}] {note}" for j, note in enumerate(notes, start=1)]
    lines = [
        line
        for note in summary.notes
        for line in textwrap.wrap(note, width, subsequent_indent="    ")
    ]
    summary.add_extra_txt(["Notes:", *lines])
    return summary


def compared(comparison: VarianceComparison) -> Summary:
    """Compose the tables of a comparison of variance estimators."""
    tables = comparison.shown_tables()
    sections = [
        _comparison_section(*table, comparison.chosen, comparison.alpha)
        for table in tables
    ]
    notes = _comparison_notes(comparison, len(comparison.labels) - len(tables))
    return _composed(sections, "Variance estimators", notes)


def _comparison_section(
    label: str, frame: pd.DataFrame, chosen: str, alpha: float
) -> "_Section":
    names = [f"{name} *" if name == chosen else name for name in frame.index]
    cells = frame[["sampling", "se", "mc_se", "df", "ci_lower", "ci_upper"]].map(
        _number
    )
    cells["df"] = frame["df"].map("{:.1f}".format)
    headers = ["sampling", "std err", "mc_se", "df", *_interval_headers(alpha)]
    return _Section(label, headers, cells.set_axis(names))


def _comparison_notes(comparison: VarianceComparison, n_hidden: int) -> list[str]:
    notes = [
        "* is in use; `with_variance(name)` switches without fitting again.",
        "sampling is raw, negative or not, and mc_se the Monte Carlo standard error of "
        "the raw total variance; std err rests on the sampling part made positive, "
        "plus the Monte Carlo part.",
    ]
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        notes.append(f"Not for this ensemble: {names}; `left_out` says why.")
    if n_hidden:
        notes.append(f"{n_hidden:,} estimates are not shown; `frame` holds all.")
    return notes


class _Section:
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
        return [max(8, *(len(cell) for cell in column)) for column in columns]

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


def _number(value: float) -> str:
    """Write a number with four significant digits, plainly where it is readable."""
    if value == 0:
        return "0"
    if not np.isfinite(value):
        return str(value)
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.3e}"
    decimals = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{min(decimals, 4)}f}"


def _setting(value: Any) -> str:
    return _number(float(value)) if isinstance(value, float) else str(value)


def _pvalue(value: float) -> str:
    return f"{value:.3f}"


def _interval_headers(alpha: float) -> list[str]:
    return [f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]"]


def _test_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Format estimate, standard error, z, p-value and the interval's bounds."""
    return pd.DataFrame(
        {
            "estimate": frame["estimate"].map(_number),
            "std_error": frame["std_error"].map(_number),
            "z": frame["z"].map("{:.3f}".format),
            "p_value": frame["p_value"].map(_pvalue),
            "ci_lower": frame["ci_lower"].map(_number),
            "ci_upper": frame["ci_upper"].map(_number),
        }
    )


def _estimates_section(results: EnsembleResults, alpha: float) -> _Section:
    bounds = results.conf_int(alpha)
    frame = pd.DataFrame(
        {
            "estimate": results.params,
            "std_error": results.bse,
            "z": results.zvalues,
            "p_value": results.pvalues,
            "ci_lower": bounds["lower"],
            "ci_upper": bounds["upper"],
        }
    ).iloc[_shown(results.labels)]
    cells = _test_cells(frame)
    cells.insert(2, "df", results.df.iloc[_shown(results.labels)].map("{:.1f}".format))
    coefficients = results.info.coefficients
    headers = ["coef" if coefficients else "mean", "std err", "df", "z", "P>|z|"]
    name = "" if coefficients else "Estimates"
    headers = [*headers, *_interval_headers(alpha)]
    return _Section(name, headers, cells, cut=_is_cut(results.labels))


def _shown(labels: Labels) -> Ints:
    """Places of the rows that are printed: all, or the first and the last."""
    places = np.arange(len(labels))
    if not _is_cut(labels):
        return places
    half = MAX_ROWS // 2
    return np.concatenate([places[:half], places[-half:]])


def _is_cut(labels: Labels) -> bool:
    return len(labels) > MAX_ROWS


def _effects_section(results: EnsembleResults, alpha: float) -> _Section | None:
    frame = results.effects_frame(alpha)
    if frame is None:
        return None
    labels = frame.index
    frame = frame.iloc[_shown(labels)]
    cells = _test_cells(frame)
    cells.insert(0, "from", frame["from"].map(_setting))
    cells.insert(1, "to", frame["to"].map(_setting))
    headers = ["from", "to", "change", "std err", "z", "P>|z|"]
    headers = [*headers, *_interval_headers(alpha)]
    return _Section("Effects", headers, cells, cut=_is_cut(labels))


def _components_section(results: EnsembleResults) -> _Section:
    shown = _shown(results.labels)
    frame = results.components.to_frame(results.labels)[list(COMPONENTS)].iloc[shown]
    share = results.diagnostics["monte_carlo_share"].iloc[shown]
    cells = frame.map(_number)
    cells["share"] = share.map("{:.1%}".format)
    headers = ["zeta_1", "zeta_k", "sampling", "monte carlo", "total", "mc_se"]
    headers = [*headers, "MC share"]
    return _Section("Variance", headers, cells, cut=_is_cut(results.labels))


def _normality_section(results: EnsembleResults) -> _Section | None:
    if results.design.n < MIN_OBSERVATIONS:
        return None
    frame = results._normality_at(_shown(results.labels))
    cells = frame.map("{:.3f}".format)
    headers = ["skew", "kurtosis", "omnibus", "Prob", "Jarque-Bera", "Prob"]
    return _Section("Influence", headers, cells, cut=_is_cut(results.labels))


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
    right = [
        ("Subsample size k:", f"{design.k:,}"),
        ("Base learners B:", learners),
        ("Variance:", ESTIMATORS[results.variance].label),
        ("MC error of std err:", _percent(results.estimates.relative_mc_error.max())),
    ]
    scores = {} if results.scores is None else results.scores.table
    right.extend((f"{name}:", _number(value)) for name, value in scores.items())
    if design.name != "given" and not design.complete:
        right.append(("Seed:", str(design.seed)))
    rows = max(len(left), len(right))
    left.extend([("", "")] * (rows - len(left)))
    right.extend([("", "")] * (rows - len(right)))
    return left, right


def _percent(share: float) -> str:
    return f"{share:.1%}"


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


def _notes(results: EnsembleResults, alpha: float) -> list[str]:
    """Say what the numbers mean and what was reached."""
    candidates = [
        _target_note(results, alpha),
        _probability_note(results),
        _test_note(results),
        _variance_note(results),
        _exact_note(results),
        _learners_note(results),
        _effects_note(results),
        _unmoved_note(results),
        _beyond_note(results),
        _unused_note(results),
        _few_units_note(results),
        _influence_note(results),
        _negative_note(results),
        _bounded_note(results),
        _range_note(results),
        _orders_note(results),
        _large_k_note(results),
        _dropped_note(results),
        _unscored_note(results),
        _cut_note(results),
    ]
    return [note for note in candidates if note is not None]


def _target_note(results: EnsembleResults, alpha: float) -> str:
    info = results.info
    if info.formula is None:
        target = "the expected value of the kernel on"
        tail = "."
    else:
        target = "the mean of a base learner fitted to"
        centre = "the full-sample estimate" if info.coefficients else "E[y|x]"
        tail = f"; they are not centred at {centre}."
    if info.formula is not None and info.coefficients and results.k >= results.design.n:
        tail = "."
    return (
        f"The intervals cover, at {1 - alpha:.4g}, {target} k = {results.k:,} "
        f"{info.units}{tail}"
    )


def _test_note(results: EnsembleResults) -> str:
    effects = results.effects
    tail = ""
    if effects is not None:
        low, high = effects["df"].min(), effects["df"].max()
        tail = f" (Effects: {low:.1f} to {high:.1f})"
    floor = results.estimates.df.min() <= MIN_DF < results.design.n - 1
    bound = f"; it is bounded below by {MIN_DF:g}" if floor else ""
    return f"P>|z| and the intervals use Student's t with the df shown{tail}{bound}."


def _variance_note(results: EnsembleResults) -> str | None:
    if ESTIMATORS[results.variance].nonnegative or results.design.complete:
        return None
    return (
        "The Variance table is raw. std err squares to its monte carlo part plus the "
        "sampling part made positive (a posterior mean); MC share is a share of that."
    )


def _learners_note(results: EnsembleResults) -> str | None:
    if results.design.complete:
        return "Every subsample was evaluated: there is no Monte Carlo error."
    estimates, tolerance = results.estimates, results.tolerance
    growth = results.info.growth
    reached = estimates.relative_mc_error.max()
    aim = f"{100 * tolerance.tol:g}%{_absolute_text(results)}"
    if tolerance.excess(estimates) <= 1:
        if growth.tol is None:
            return None
        return (
            "B was grown until the Monte Carlo error of the Estimates' std err was "
            f"below {aim}; {reached:.1%} was reached."
        )
    if estimates.bounded.any():  # too few learners to tell how many
        return f"The Estimates' std err has a Monte Carlo error of {reached:.0%}."
    needed = float(tolerance.needed(estimates).max())
    tail = "" if growth.max_B is None else f" B stopped at max_B = {growth.max_B:,}."
    return (
        f"The Estimates' std err has a Monte Carlo error of {reached:.1%}; about "
        f"{about(needed)} learners would bring it to {aim}.{tail}"
    )


def _absolute_text(results: EnsembleResults) -> str:
    """Name the absolute tolerance where it is what counts."""
    tolerance = results.tolerance
    counts = tolerance.allowed(results.estimates) > tolerance.tol
    if not counts.any():
        return ""
    atol = np.broadcast_to(tolerance.atol, counts.shape)[counts]
    return f", or {_number(float(atol.min()))}"


def _exact_note(results: EnsembleResults) -> str | None:
    count = int((results.components.zeta_k == 0).sum())
    if count == 0:
        return None
    bounds = (
        ""
        if results.support is None
        else f" Their bounds are those of a share among {results.nobs:,} observations."
    )
    return (
        f"All learners agree for {count} of {len(results.labels)} estimates: their std "
        f"err is zero, which says nothing about other data.{bounds}"
    )


def _effects_note(results: EnsembleResults) -> str | None:
    if results.effect_values is None:
        return None
    return (
        "Effects: change of the estimate when one predictor moves (10% to 90% "
        "quantile, or between levels), the others at typical values."
    )


def _unmoved_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.left_out:
        return None
    return (
        f"No effect of {', '.join(effects.left_out)}: the formula is not finite when "
        "it moves with the others at typical values."
    )


def _beyond_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.n_beyond:
        return None
    return (
        f"The last {effects.n_beyond:,} predictors were not moved: with so many "
        "columns their rows would fill the memory. get_prediction at two rows "
        "compares any."
    )


def _unused_note(results: EnsembleResults) -> str | None:
    levels = results.info.unused_levels
    if not levels:
        return None
    return f"Levels of the response that no row has: {', '.join(levels)}."


def _few_units_note(results: EnsembleResults) -> str | None:
    """Warn of intervals that were measured to miss their level."""
    smooth = results.kind == KernelKind.SMOOTH
    if smooth or results.design.n >= RELIABLE_UNITS:
        return None
    return (
        f"The intervals cannot be relied on with fewer than {RELIABLE_UNITS} "
        f"{results.info.units}: forests' 95% intervals have been measured to cover 92 "
        "to 96%, with the jackknife's variance."
    )


def _influence_note(results: EnsembleResults) -> str:
    if results.design.n < MIN_OBSERVATIONS:
        return f"Too few {results.info.units} for normality tests of their influence."
    return (
        f"Influence: normality tests of the influence values of the {_units(results)}."
    )


def _units(results: EnsembleResults) -> str:
    return f"{results.design.n:,} {results.info.units}"


def _negative_note(results: EnsembleResults) -> str | None:
    count = int((results.components.sampling < 0).sum())
    if count == 0:
        return None
    return (
        f"The raw sampling variance is negative for {count} of {len(results.labels)} "
        "estimates and shown as it is; the std err uses its posterior mean given that "
        "it is positive. Grow more learners."
    )


def _bounded_note(results: EnsembleResults) -> str | None:
    count = int(results.estimates.bounded.sum())
    if count == 0:
        return None
    return (
        f"B = {results.B:,} is too small: the std err of {count} of "
        f"{len(results.labels)} estimates is only the largest that the spread of "
        "single learners allows. Grow some hundreds of learners; the summary then says "
        "how many are needed."
    )


def _range_note(results: EnsembleResults) -> str | None:
    """Say that squares of huge or tiny responses have no place in the table."""
    shown, scaled = results.components.total, results.estimates.scaled.total
    if (np.isfinite(shown) & ((shown != 0) | (scaled == 0))).all():
        return None
    return (
        "The Variance table holds squares beyond the range of floating point, shown as "
        "inf or 0; all other numbers are as they should be."
    )


def _orders_note(results: EnsembleResults) -> str | None:
    orders = results.estimates.scaled.orders
    if orders is None:
        return None
    return (
        f"The sampling variance is the jackknife's over 1 + rho, rho = "
        f"{orders.rho:.2f} (standard error {orders.error:.2f}): the jackknife counts "
        f"twice and more what pairs and larger sets of {results.info.units} explain."
    )


def _large_k_note(results: EnsembleResults) -> str | None:
    large = results.k > results.design.n / 2 and not results.design.complete
    first_order = ESTIMATORS[results.variance].source == "moments"
    if not large or not first_order or results.kind == KernelKind.SMOOTH:
        return None
    return (
        f"k = {results.k:,} exceeds half of the {_units(results)}: there this "
        "estimator of the variance, which sees the first order only, has been measured "
        "to be 10 to 50% low for trees. variance='hoeffding' goes beyond it."
    )


def _probability_note(results: EnsembleResults) -> str | None:
    if results.support is None:
        return None
    return (
        "Intervals of probabilities and of their differences stay within their range "
        "(Agresti and Coull's, on an effective number of observations)."
    )


def _dropped_note(results: EnsembleResults) -> str | None:
    if results.info.n_dropped == 0:
        return None
    count = results.info.n_dropped
    rows = "row" if count == 1 else "rows"
    return f"{count:,} {rows} with missing values dropped."


def _unscored_note(results: EnsembleResults) -> str | None:
    scores = results.scores
    if scores is None or scores.n_scored == results.nobs:
        return None
    return (
        f"Out-of-bag scores rest on {scores.n_scored:,} of {results.nobs:,} "
        "observations; the others were in every subsample."
    )


def _cut_note(results: EnsembleResults) -> str | None:
    counts = {"estimates": len(results.labels)}
    if results.effect_values is not None:
        counts["effects"] = len(results.effect_values.frame)
    cut = [f"{n:,} {what}" for what, n in counts.items() if n > MAX_ROWS]
    if not cut:
        return None
    half = MAX_ROWS // 2
    return (
        f"Of {' and '.join(cut)} the first {half} and the last {half} are shown; "
        "`summary_frame()`, `effects`, `components`, `normality` and "
        "`diagnostics` hold all."
    )
