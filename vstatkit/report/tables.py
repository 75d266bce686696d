"""Tables of a report."""

import platform
from collections.abc import Sequence
from importlib import metadata

import numpy as np
import pandas as pd

from vstatkit.report.html_page import table_markup
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import estimates_frame
from vstatkit.results.labels import number_text, setting_text
from vstatkit.results.summary import (
    ONE_DECIMAL,
    PERCENT,
    Column,
    influence_tests,
    tabulate,
)
from vstatkit.results.summary_notes import MAX_ROWS
from vstatkit.variance.registry import ESTIMATORS

# Packages that the numbers and figures depend on.
PACKAGES = (
    *("vstatkit", "numpy", "scipy", "pandas", "patsy"),
    *("scikit-learn", "statsmodels", "matplotlib"),
)
# Options of trees that are listed if they are set, and their descriptions.
TREE_OPTIONS = {
    "max_features": "Columns tried at a split (max_features)",
    "min_samples_split": "Fewest rows that are split (min_samples_split)",
    "min_samples_leaf": "Fewest rows of a leaf (min_samples_leaf)",
    "max_depth": "Largest depth (max_depth)",
    "honest": "Honest trees (honest)",
}


def level_text(alpha: float) -> str:
    """Write the level of intervals, such as "95%"."""
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


def _t_text(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _tabulate(
    caption: str, corner: str, frame: pd.DataFrame, columns: Sequence[Column]
) -> str:
    """Make a table of some columns of a frame."""
    section = tabulate(corner, frame, columns)
    if len(frame) > MAX_ROWS:
        caption = f"{caption} (first and last {MAX_ROWS // 2} of {len(frame):,})"
    pairs = zip(section.stubs, section.cells, strict=True)
    rows = [[stub, *cells] for stub, cells in pairs]
    return table_markup(caption, [corner, *section.headers], rows)


def _interval_columns(alpha: float) -> list[Column]:
    level = level_text(alpha)
    return [
        (f"Lower ({level})", "ci_lower", number_text),
        (f"Upper ({level})", "ci_upper", number_text),
    ]


def effects_table(frame: pd.DataFrame, alpha: float) -> str:
    """Tabulate the effects."""
    columns: list[Column] = [
        ("From", "from", setting_text),
        ("To", "to", setting_text),
        ("Change", "estimate", number_text),
        ("Std. error", "std_error", number_text),
        ("t", "t", _t_text),
        ("df", "df", ONE_DECIMAL),
        ("p", "p_value", p_value_text),
        *_interval_columns(alpha),
    ]
    return _tabulate("Effects", "Predictor", frame, columns)


def estimates_table(results: EnsembleResults, alpha: float) -> str:
    """Tabulate the estimates, with tests unless they are predictions."""
    frame = estimates_frame(results.estimates, results.labels, alpha)
    tests: list[Column] = [("t", "t", _t_text), ("p", "p_value", p_value_text)]
    columns: list[Column] = [
        ("Estimate", "estimate", number_text),
        ("Std. error", "std_error", number_text),
        ("df", "df", ONE_DECIMAL),
        *(tests if results.tests_zero else []),
        *_interval_columns(alpha),
    ]
    return _tabulate("Estimates", "Name", frame, columns)


def typical_table(results: EnsembleResults) -> str | None:
    """Tabulate the typical row, if estimates or effects refer to it."""
    typical = results.typical
    if typical is None or results.info.coefficients:
        return None
    frame = pd.DataFrame({"value": list(typical.iloc[0])}, typical.columns)
    columns: list[Column] = [("Value", "value", setting_text)]
    return _tabulate("The typical row", "Predictor", frame, columns)


def precision_table(results: EnsembleResults) -> str:
    """Tabulate the parts of the variance and their Monte Carlo error."""
    components = results.components.to_frame(results.labels)
    columns: list[Column] = [
        ("Sampling variance", "sampling", number_text),
        ("Monte Carlo variance", "monte_carlo", number_text),
        ("Total", "total", number_text),
        ("Monte Carlo share", "monte_carlo_share", PERCENT),
        ("MC error of std. error", "relative_mc_error", PERCENT),
        ("Learners needed", "learners_needed", "{:,.0f}".format),
    ]
    frame = pd.concat([components, results.diagnostics], axis=1)
    return _tabulate("Parts of the variance", "Name", frame, columns)


def normality_table(results: EnsembleResults) -> str | None:
    """Tabulate tests of normality, if there are enough units for them."""
    frame = influence_tests(results)
    if frame is None:
        return None
    columns: list[Column] = [
        ("Skewness", "skew", _t_text),
        ("Kurtosis", "kurtosis", _t_text),
        ("Omnibus p-value", "omnibus_p", p_value_text),
        ("Jarque-Bera p-value", "jarque_bera_p", p_value_text),
    ]
    return _tabulate("Influence of single units", "Name", frame, columns)


def settings_table(results: EnsembleResults) -> str:
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
    return table_markup("Settings", ["Setting", "Value"], known)


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


def versions_table() -> str:
    """List the versions of Python and of the packages."""
    rows = [("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:  # run from its folder
            rows.append((name, "not installed as a package"))
    rows.append(("System", f"{platform.system()} {platform.machine()}"))
    return table_markup("Versions", ["Software", "Version"], rows)
