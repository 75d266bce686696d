"""What results carry besides numbers, and how estimates are tabulated."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.inference.estimates import Estimates


@dataclass(frozen=True)
class Growth:
    """How the number of learners came about.

    Attributes
    ----------
    tol : float or None
        Tolerance of `B="auto"`; None when B was given.
    max_B : int or None
        Where growth had to stop.
    atol : float or None
        Absolute tolerance that was asked for; None for the default.
    """

    tol: float | None = None
    max_B: int | None = None
    atol: float | None = None


@dataclass(frozen=True)
class ModelInfo:
    """What the header of a summary says.

    Attributes
    ----------
    title : str
        Title of the summary.
    response : str
        Dependent variable, or name of the statistic.
    formula : str or None
        As written.
    kernel : str
        Name of the kernel.
    nobs : int
        Observations used.
    n_dropped : int
        Rows dropped for missing values.
    units : str
        What was resampled: "observations" or "clusters".
    coefficients : bool
        Whether the estimates are coefficients, like an OLS table's.
    growth : Growth
        How B came about.
    typical : DataFrame or None
        The typical row.
    ranges : dict
        Smallest and largest value of every numeric predictor.
    unused_levels : tuple of str
        Levels of the response that no observation has.
    """

    title: str
    response: str
    kernel: str
    nobs: int
    formula: str | None = None
    n_dropped: int = 0
    units: str = "observations"
    coefficients: bool = False
    growth: Growth = field(default_factory=Growth)
    typical: pd.DataFrame | None = None
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    unused_levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class EffectValues:
    """Kernel differences between two settings of one predictor.

    Attributes
    ----------
    values : ndarray of shape (B, e)
        Differences, learner by learner.
    frame : DataFrame of shape (e, 2)
        The settings: columns `from` and `to`, indexed by predictor (and class).
    left_out : tuple of str
        Predictors whose move is not finite with the others typical.
    n_beyond : int
        Predictors, the last ones, that the table has no room for.
    """

    values: Floats
    frame: pd.DataFrame
    left_out: tuple[str, ...] = ()
    n_beyond: int = 0


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


def estimates_frame(estimates: Estimates, index: Labels, alpha: float) -> pd.DataFrame:
    """Tabulate estimates with tests and intervals."""
    lower, upper = estimates.interval(alpha)
    return pd.DataFrame(
        {
            "estimate": estimates.estimate,
            "std_error": estimates.bse,
            "z": estimates.zvalues,
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
    return pd.DataFrame(
        {
            "mean": estimates.estimate,
            "mean_se": estimates.bse,
            "mean_ci_lower": lower,
            "mean_ci_upper": upper,
            "mc_se": estimates.components.mc_se,
        },
        index,
    )
