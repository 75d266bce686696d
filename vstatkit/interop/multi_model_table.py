"""Several models in one table, of this and other packages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary

from vstatkit.results.labels import number_text
from vstatkit.results.model_description import (
    NUMBERS,
    OBSERVATIONS,
    R_SQUARED,
    Column,
    TabularModel,
)
from vstatkit.results.summary import Section, compose
from vstatkit.validation import check_alpha


def table(
    models: Any,
    *more: Any,
    names: Sequence[str] | None = None,
    alpha: float | None = None,
    stars: bool = False,
    title: str = "Models side by side",
) -> "Summary":
    """Put several models into one table: text, HTML, LaTeX or CSV.

    Parameters
    ----------
    models : results, a sequence of them, or a dict of them by their headings
        Results of `fit` and `statistic` (shown by their effects, if they have any),
        tables of estimates (`avg_slopes()`, `avg_effects()`, curves, functions of
        estimates), `importance()`, and results of statsmodels or other packages with
        `params`, `bse`, `pvalues` and `conf_int`.
    *more : results
        Further models, one by one.
    names : sequence of str, optional
        Headings, one for each model.
    alpha : float, optional
        Show intervals of this level instead of standard errors.
    stars : bool
        Whether p-values below 0.1, 0.05 and 0.01 are marked.
    title : str
        Title of the table.

    Returns
    -------
    Summary
        Prints; `as_html()`, `as_latex()` and `as_csv()` give other formats.

    Notes
    -----
    Terms with the same name share a row. The name of an effect has both ends of the
    move, `bmi: 21 → 32.3`, because it is not a slope; the slopes of `avg_slopes()` can
    be compared with the coefficients of a linear regression.

    Examples
    --------
    >>> import statsmodels.formula.api as smf
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> line = smf.ols("y ~ x1 + x4", data).fit()
    >>> forest = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> text = str(vs.table([line, forest.avg_slopes()]))
    >>> [word in text for word in ("Intercept", "x4", "OLS", "average slopes")]
    [True, True, True, True]
    """
    if isinstance(models, Mapping) and not more:
        names = list(models) if names is None else names
        models = list(models.values())
    many = [*models] if isinstance(models, Sequence) else [models]
    many += more
    if not many:
        raise ValueError("`models` must have at least one model; got none.")
    level = 0.05 if alpha is None else alpha
    check_alpha(level)
    columns = [column_of(model, level) for model in many]
    if names is None:
        names = [f"({j}) {column.kind}" for j, column in enumerate(columns, start=1)]
    elif isinstance(names, str) or len(names) != len(columns):
        raise ValueError(
            f"`names` must be a list with a name for each of the {len(columns)} "
            f"models; got {names!r}."
        )
    headings = [str(name) for name in names]
    responses = [column.response for column in columns]
    stats = list(dict.fromkeys(name for column in columns for name in column.stats))
    cells = [[_stat(column.stats.get(name)) for column in columns] for name in stats]
    sections = _align_columns(
        Section("", headings, *_terms(columns, alpha, stars=stars)),
        Section("", responses, stats, cells),
    )
    below = "standard errors" if alpha is None else f"{1 - alpha:.4g} intervals"
    notes = [f"In brackets: {below}. OOB scores are out of bag."]
    notes += [
        f"{heading}: {column.note}."
        for heading, column in zip(headings, columns, strict=True)
        if column.note
    ]
    if stars:
        marks = ", ".join(f"{text} p<{p:g}" for p, text in reversed(STARS))
        notes.append(f"{marks}.")
    return compose(sections, title, notes)


def column_of(model: Any, alpha: float = 0.05) -> Column:
    """Make a column of a model of this package, or of one like statsmodels'."""
    if isinstance(model, TabularModel):
        return model._column(alpha)
    needed = ("params", "bse", "pvalues")
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        raise TypeError(
            "models must be results of vstatkit, or have the attributes "
            f"{', '.join(needed)} of statsmodels' results; {type(model).__name__} has "
            f"no {', '.join(missing)}."
        )
    params = pd.Series(model.params)
    bse = np.asarray(model.bse, dtype=float)
    bounds = np.asarray(model.conf_int(alpha), dtype=float)
    tested = np.where(bse == 0, np.nan, bse)
    numbers = [params, bse, params / tested, model.pvalues, *bounds.T]
    frame = pd.DataFrame(
        dict(zip(NUMBERS, map(np.asarray, numbers), strict=True)),
        [str(name) for name in params.index],
    )
    stats: dict[str, Any] = {}
    if hasattr(model, "nobs"):
        stats[OBSERVATIONS] = int(model.nobs)
    if np.isfinite(getattr(model, "rsquared", np.nan)):
        stats[R_SQUARED] = float(model.rsquared)
    inner = getattr(model, "model", None)
    response = str(getattr(inner, "endog_names", "y"))
    kind = type(model if inner is None else inner).__name__
    return Column(response, kind, frame, stats)


# Marks of p-values, as in statsmodels' `summary_col`.
STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))


def _align_columns(*sections: Section) -> list[Section]:
    """Pad the columns of all parts of a table to the same widths."""
    stub = max(len(text) for section in sections for text in section.stubs)
    rows = [row for section in sections for row in [section.headers, *section.cells]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        replace(
            section,
            headers=[
                text.rjust(width)
                for text, width in zip(section.headers, widths, strict=True)
            ],
            stubs=[text.ljust(stub) for text in section.stubs],
        )
        for section in sections
        if section.stubs
    ]


def _terms(
    columns: list[Column], alpha: float | None, *, stars: bool
) -> tuple[list[str], list[list[str]]]:
    """Make two rows for every term: the estimate, and its uncertainty below."""
    stubs: list[str] = []
    cells: list[list[str]] = []
    for term in dict.fromkeys(
        term for column in columns for term in column.frame.index
    ):
        pairs = [_cells(column, term, alpha, stars=stars) for column in columns]
        stubs += [term, ""]
        cells += map(list, zip(*pairs, strict=True))
    return stubs, cells


def _cells(
    column: Column, term: str, alpha: float | None, *, stars: bool
) -> tuple[str, str]:
    if term not in column.frame.index:
        return "", ""
    row = dict(zip(NUMBERS, column.frame.loc[term].to_numpy(), strict=True))
    mark = next((text for p, text in STARS if row["p_value"] < p), "") if stars else ""
    below = ""
    if alpha is not None and not np.isnan(row["std_error"]):
        below = f"[{number_text(row['ci_lower'])}, {number_text(row['ci_upper'])}]"
    elif not np.isnan(row["std_error"]):
        below = f"({number_text(row['std_error'])})"
    if column.own_test:
        chance = row["p_value"]
        below += " p<0.001" if chance < 0.001 else f" p={chance:.3f}"
    return number_text(row["estimate"]) + mark, below


def _stat(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else number_text(float(value))
