"""How estimates are tabulated."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Labels
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.stopping import Tolerance

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


SE_MC_ERROR = "Monte Carlo error of the standard error, in its unit"
"""What the column `se_mc_error` beside a standard error is."""


def label_texts(labels: Labels) -> list[str]:
    """Write the labels of estimates on one line each; classes in brackets."""
    if not isinstance(labels, pd.MultiIndex):
        return [_join(label) for label in labels]
    if labels.names[-1] != "class":
        return [_join(label) for label in labels]
    return [f"{_join(label[:-1])} [{label[-1]}]" for label in labels]


def _join(label: Any) -> str:
    """Write the levels of an index one after the other."""
    if isinstance(label, tuple):
        return ", ".join(_join(part) for part in label)
    return str(label)


def setting_text(value: Any) -> str:
    """Write a setting of a predictor: a number, or a level; nothing where it has none.

    Examples
    --------
    >>> setting_text(0.25), setting_text("high"), setting_text(None)
    ('0.25', 'high', '')
    """
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def estimates_frame(estimates: Estimates, index: Labels, alpha: float) -> pd.DataFrame:
    """Tabulate estimates with tests and intervals."""
    lower, upper = estimates.interval(alpha)
    return pd.DataFrame(
        {
            "estimate": estimates.estimate,
            "std_error": estimates.bse,
            "t": estimates.zvalues,
            "p_value": estimates.pvalues,
            "ci_lower": lower,
            "ci_upper": upper,
            "df": estimates.df,
            "relative_mc_error": estimates.relative_mc_error,
        },
        index,
    )


def mean_frame(
    estimates: Estimates, index: Labels | None, alpha: float
) -> pd.DataFrame:
    """Tabulate estimates under statsmodels' names for predictions."""
    lower, upper = estimates.interval(alpha)
    frame = pd.DataFrame(
        {
            "mean": estimates.estimate,
            "mean_se": estimates.bse,
            "mean_ci_lower": lower,
            "mean_ci_upper": upper,
            "se_mc_error": estimates.bse_mc_error,
        },
        index,
    )
    frame.attrs["se_mc_error"] = SE_MC_ERROR
    return frame


def tidy_frame(estimates: Estimates, labels: Labels, alpha: float) -> pd.DataFrame:
    """Tabulate estimates flat, with the columns of R's broom."""
    lower, upper = estimates.interval(alpha)
    return pd.DataFrame(
        {
            "term": label_texts(labels),
            "estimate": estimates.estimate,
            "std_error": estimates.bse,
            "statistic": estimates.zvalues,
            "p_value": estimates.pvalues,
            "conf_low": lower,
            "conf_high": upper,
            "df": estimates.df,
        }
    )


def glance_frame(results: "EnsembleResults") -> pd.DataFrame:
    """Tabulate what there is to say about the whole ensemble, in one row."""
    scores = {} if results.scores is None else results.scores.table
    row: dict[str, Any] = {
        "response": results.info.response,
        "kernel": results.info.kernel,
        "nobs": results.nobs,
        "k": results.k,
        "B": results.B,
        "replace": results.replace,
        "design": results.design.name,
        "variance": results.variance,
        "n_dropped": results.info.n_dropped,
        "max_relative_mc_error": float(results.estimates.relative_mc_error.max()),
        "seed": results.seed,
    }
    given = {"weights": results.info.weights, "groups": results.info.groups}
    row.update({name: text for name, text in given.items() if text is not None})
    for name, value in scores.items():
        row[name.lower().replace(" ", "_").replace("-", "_")] = value
    return pd.DataFrame([row])


def diagnostics_frame(
    estimates: Estimates, labels: Labels, tolerance: Tolerance, k: int
) -> pd.DataFrame:
    """Tabulate what tells whether the numbers can be relied on."""
    parts = estimates.scaled
    zeta_k = np.where(parts.zeta_k > 0, parts.zeta_k, 1)
    return pd.DataFrame(
        {
            "df": estimates.df,
            "monte_carlo_share": estimates.monte_carlo_share,
            "relative_mc_error": estimates.relative_mc_error,
            "learners_needed": np.ceil(tolerance.needed(estimates)),
            "linear_share": k * parts.zeta_1 / zeta_k,
            "negative": parts.sampling < 0,
            "bounded": estimates.bounded,
        },
        labels,
    )
