"""Description of a model: header of the summary, growth and target."""

from dataclasses import dataclass, field, replace

import pandas as pd

from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.text import short_repr


@dataclass(frozen=True)
class Growth:
    """How the number of learners was chosen."""

    tol: float | None = None  # tolerance of `B="auto"`; None if B was given
    max_B: int | None = None  # largest B
    atol: float | None = None  # absolute tolerance; None for the default

    @property
    def without_atol(self) -> "Growth":
        """Growth for derived estimates, to which the absolute tolerance does not apply.

        Slopes, averages and functions of estimates have other units, or smaller
        standard errors, than the estimates that B was chosen for.
        """
        return replace(self, atol=0.0)


@dataclass(frozen=True)
class Aim:
    """Target of the intervals of trees in stages."""

    learner: str  # description of a learner
    # Whether the learner was chosen so that intervals target E[y|x]
    truth: bool = False
    # Out-of-bag errors of the candidates
    errors: dict[str, float] = field(default_factory=dict)
    # bias, bias_error: Out-of-bag estimate of the remaining bias at the query points,
    # and its standard error
    bias: tuple[float, ...] = ()
    bias_error: tuple[float, ...] = ()
    # Description of the stacked ensemble that estimates come from, if any
    mix: str | None = None

    @property
    def without_bias(self) -> "Aim":
        """The target of other estimates than those whose bias was estimated."""
        return replace(self, bias=(), bias_error=())


@pickled_plainly
@dataclass(frozen=True)
class ModelInfo:
    """Description of a model, for the header of the summary.

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
        Resampled units: "observations" or "clusters".
    coefficients : bool
        Whether the estimates are coefficients, as in a table of OLS.
    growth : Growth
        How B was chosen.
    typical : DataFrame or None
        The typical row.
    ranges : dict
        Smallest and largest value of every numeric predictor.
    unused_levels : tuple of str
        Levels of the response that no observation has.
    aim : Aim or None
        Target of the intervals of trees in stages.
    weights, groups : str or None
        Name of the column, "given" if it has no name; None without them.
    weights_in_column : bool
        Whether `weights` is a column, which other rows may have too, not an array.
    data_notes : tuple of str
        Sentences on probable problems of the data.
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
        """Describe estimates that are computed from others, without their bias.

        The bias of a combination would need covariances of biases, which are unknown.
        """
        aim = None if self.aim is None else self.aim.without_bias
        return replace(self, title=title, coefficients=True, aim=aim)
