"""Tables of a report."""

import platform
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Labels
from vstatkit.inference.normality import (
    MIN_OBSERVATIONS,
    influence_labels,
    influence_normality,
)
from vstatkit.report.html_page import Table
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.labels import label_texts, setting_text
from vstatkit.results.summary import shown_rows
from vstatkit.results.summary_notes import MAX_ROWS, number_text
from vstatkit.variance.registry import ESTIMATORS

# Packages that the numbers and figures depend on.
PACKAGES = (
    "vstatkit",
    "numpy",
    "scipy",
    "pandas",
    "patsy",
    "scikit-learn",
    "statsmodels",
    "matplotlib",
)
# Options of trees that are listed if they are set, and their descriptions.
TREE_OPTIONS = {
    "max_features": "Columns tried at a split (max_features)",
    "min_samples_split": "Fewest rows that are split (min_samples_split)",
    "min_samples_leaf": "Fewest rows of a leaf (min_samples_leaf)",
    "max_depth": "Largest depth (max_depth)",
    "honest": "Honest trees (honest)",
}

Column = tuple[str, Iterable[Any], Callable[[Any], str]]


def level_text(alpha: float) -> str:
    """Write the level of intervals.

    Examples
    --------
    >>> level_text(0.05)
    '95%'
    """
    return f"{100 * (1 - alpha):.4g}%"


def p_value_text(value: float) -> str:
    """Write a p-value.

    Examples
    --------
    >>> p_value_text(0.00004)
    '< 0.001'
    """
    if np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def _df_text(value: float) -> str:
    return f"{value:.1f}"


def _share_text(value: float) -> str:
    return f"{value:.1%}"


def _t_text(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _count_text(value: float) -> str:
    return f"{value:,.0f}"


def _tabulate(
    caption: str, corner: str, labels: Labels, columns: Sequence[Column]
) -> Table:
    """Make a table of columns, each with a function that formats its values."""
    shown = shown_rows(labels)
    names = label_texts(labels[shown])
    texts = [
        [write(value) for value in pd.Series(list(values)).iloc[shown]]
        for _, values, write in columns
    ]
    rows = [list(cells) for cells in zip(names, *texts, strict=True)]
    if len(shown) < len(labels):
        rows.insert(MAX_ROWS // 2, ["..." for _ in rows[0]])
        caption = f"{caption} (first and last {MAX_ROWS // 2} of {len(labels):,})"
    return Table(caption, [corner, *(name for name, _, _ in columns)], rows)


def _interval_columns(low: Any, high: Any, alpha: float) -> list[Column]:
    level = level_text(alpha)
    return [
        (f"Lower ({level})", low, number_text),
        (f"Upper ({level})", high, number_text),
    ]


def effects_table(frame: pd.DataFrame, alpha: float) -> Table:
    """Tabulate the effects."""
    columns: list[Column] = [
        ("From", frame["from"], setting_text),
        ("To", frame["to"], setting_text),
        ("Change", frame["estimate"], number_text),
        ("Std. error", frame["std_error"], number_text),
        ("t", frame["t"], _t_text),
        ("df", frame["df"], _df_text),
        ("p", frame["p_value"], p_value_text),
        *_interval_columns(frame["ci_lower"], frame["ci_upper"], alpha),
    ]
    return _tabulate("Effects", "Predictor", frame.index, columns)


def estimates_table(results: EnsembleResults, alpha: float) -> Table:
    """Tabulate the estimates, with tests unless they are predictions."""
    bounds = results.conf_int(alpha)
    tests: list[Column] = [
        ("t", results.zvalues, _t_text),
        ("p", results.pvalues, p_value_text),
    ]
    columns: list[Column] = [
        ("Estimate", results.params, number_text),
        ("Std. error", results.bse, number_text),
        ("df", results.df, _df_text),
        *(tests if results.tests_zero else []),
        *_interval_columns(bounds["lower"], bounds["upper"], alpha),
    ]
    return _tabulate("Estimates", "Name", results.labels, columns)


def typical_table(results: EnsembleResults) -> Table | None:
    """Tabulate the typical row, if estimates or effects refer to it."""
    typical = results.typical
    if typical is None or results.info.coefficients:
        return None
    column: Column = ("Value", list(typical.iloc[0]), setting_text)
    return _tabulate("The typical row", "Predictor", typical.columns, [column])


def precision_table(results: EnsembleResults) -> Table:
    """Tabulate the parts of the variance and their Monte Carlo error."""
    parts, diagnostics = results.components, results.diagnostics
    columns: list[Column] = [
        ("Sampling variance", parts.sampling, number_text),
        ("Monte Carlo variance", parts.monte_carlo, number_text),
        ("Total", parts.total, number_text),
        ("Monte Carlo share", diagnostics["monte_carlo_share"], _share_text),
        ("MC error of std. error", diagnostics["relative_mc_error"], _share_text),
        ("Learners needed", diagnostics["learners_needed"], _count_text),
    ]
    return _tabulate("Parts of the variance", "Name", results.labels, columns)


def normality_table(results: EnsembleResults) -> Table | None:
    """Tabulate tests of normality, if there are enough units for them."""
    if len(influence_labels(results.design, results.units)) < MIN_OBSERVATIONS:
        return None
    shown = results.labels[shown_rows(results.labels)]
    values = results.values[:, shown_rows(results.labels)]
    frame = influence_normality(results.design, values)
    columns: list[Column] = [
        ("Skewness", frame["skew"], _t_text),
        ("Kurtosis", frame["kurtosis"], _t_text),
        ("Omnibus p-value", frame["omnibus_p"], p_value_text),
        ("Jarque-Bera p-value", frame["jarque_bera_p"], p_value_text),
    ]
    return _tabulate("Influence of single units", "Name", shown, columns)


def settings_table(results: EnsembleResults) -> Table:
    """List all settings that the numbers depend on."""
    info, design, growth = results.info, results.design, results.info.growth
    estimator = ESTIMATORS[results.variance]
    rows = {
        "Formula": info.formula,
        "Response": info.response,
        "Kernel": info.kernel,
        **_tree_options(results),
        "Observations used": f"{info.nobs:,}",
        "Rows dropped for missing values": f"{info.n_dropped:,}",
        "Clusters": f"{design.n:,}" if info.units == "clusters" else None,
        "Groups": info.groups,
        "Weights": info.weights,
        "Subsamples": "with replacement (V)"
        if results.replace
        else "without replacement (U)",
        "Design": design.name,
        "Subsample size k": f"{results.k:,}",
        "Learners B": f"{results.B:,}",
        "Tolerance tol": growth.tol and f"{growth.tol:g}",
        "Absolute tolerance atol": growth.atol and f"{growth.atol:g}",
        "Most learners max_B": growth.max_B and f"{growth.max_B:,}",
        "Variance estimator": f"{estimator.label} ({results.variance})",
        "Seed (rng)": None if design.name == "given" else str(results.seed),
    }
    known = [(name, value) for name, value in rows.items() if value]
    return Table("Settings", ["Setting", "Value"], known)


def _tree_options(results: EnsembleResults) -> dict[str, str]:
    """Name the options of trees; results from a file do not have them."""
    kernel = None if results.predictor is None else results.predictor.kernel
    options = getattr(kernel, "options", None)
    if not isinstance(options, dict):
        return {}
    return {
        text: f"{options[name]}"
        for name, text in TREE_OPTIONS.items()
        if options.get(name)
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # run from its folder
        return "not installed as a package"


def versions_table() -> Table:
    """List the versions of Python and of the packages."""
    rows = [("Python", platform.python_version())]
    rows += [(name, _version(name)) for name in PACKAGES]
    rows.append(("System", f"{platform.system()} {platform.machine()}"))
    return Table("Versions", ["Software", "Version"], rows)
