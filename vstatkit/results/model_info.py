"""Description of a model: header of the summary, growth and target."""

from dataclasses import dataclass, field, replace

import pandas as pd

from vstatkit.pickling import pickled_plainly
from vstatkit.text import short_repr


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

    @property
    def without_atol(self) -> "Growth":
        """For other estimates than were asked for: no absolute error is small there.

        The absolute tolerance is in the unit of what B was chosen for. Slopes, averages
        and functions of estimates have other units, or smaller standard errors.
        """
        return replace(self, atol=0.0)


@dataclass(frozen=True)
class Aim:
    """What the intervals of trees in stages aim at.

    Attributes
    ----------
    learner : str
        What a learner is, in words.
    truth : bool
        Whether its stages were chosen, so that intervals aim at E[y|x].
    errors : dict of str to float
        Out-of-bag errors of what it was chosen from.
    bias, bias_error : tuple of float
        Out-of-bag estimate of the bias that is left at the query points, and its
        standard error.
    mix : str or None
        What learners are that estimates come from, if not the same.
    """

    learner: str
    truth: bool = False
    errors: dict[str, float] = field(default_factory=dict)
    bias: tuple[float, ...] = ()
    bias_error: tuple[float, ...] = ()
    mix: str | None = None

    @property
    def without_bias(self) -> "Aim":
        """For other estimates than those whose bias was estimated."""
        return replace(self, bias=(), bias_error=())


@pickled_plainly
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
        Whether the estimates are coefficients, as in a table of OLS.
    growth : Growth
        How B came about.
    typical : DataFrame or None
        The typical row.
    ranges : dict
        Smallest and largest value of every numeric predictor.
    unused_levels : tuple of str
        Levels of the response that no observation has.
    aim : Aim or None
        What intervals of trees in stages aim at.
    weights, groups : str or None
        The column that they were, "given" if it has no name; None without them.
    weights_in_column : bool
        Whether `weights` names a column, by which other rows can be weighted; false
        for weights that were given as an array.
    data_notes : tuple of str
        What is probably wrong with the data, one sentence each.
    scale_share : float
        Robust scale of the response over half its range, at most one; see
        `robust_share`.
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
    aim: Aim | None = None
    weights: str | None = None
    groups: str | None = None
    data_notes: tuple[str, ...] = ()
    weights_in_column: bool = True
    scale_share: float = 1.0

    __repr__ = short_repr

    def derive(self, title: str) -> "ModelInfo":
        """Describe estimates that are computed from others: averages, contrasts.

        The bias that was estimated belongs to the query points, and is left out: the
        covariances of these biases, which a combination would need, are not known.
        """
        aim = None if self.aim is None else self.aim.without_bias
        return replace(self, title=title, coefficients=True, aim=aim)
