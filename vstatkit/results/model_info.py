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
    truth: bool = False  # whether the learner was chosen for intervals of E[y|x]
    errors: dict[str, float] = field(default_factory=dict)  # of the candidates, OOB
    # Out-of-bag estimate of the remaining bias at the query points, and standard error
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
    """Description of a model, for the header of the summary."""

    title: str  # of the summary
    response: str  # dependent variable, or name of the statistic
    kernel: str  # name of the kernel
    nobs: int  # observations used
    formula: str | None = None  # as written
    n_dropped: int = 0  # rows dropped for missing values
    units: str = "observations"  # resampled units: "observations" or "clusters"
    coefficients: bool = False  # whether the estimates are coefficients, as of OLS
    growth: Growth = field(default_factory=Growth)  # how B was chosen
    typical: pd.DataFrame | None = None  # the typical row
    # Smallest and largest value of every numeric predictor
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    unused_levels: tuple[str, ...] = ()  # levels of the response without observations
    aim: Aim | None = None  # target of the intervals of trees in stages
    weights: str | None = None  # name of the column; "given" if it has none
    groups: str | None = None  # the same
    data_notes: tuple[str, ...] = ()  # sentences on probable problems of the data
    # Whether `weights` is a column, which other rows may have too, not an array
    weights_in_column: bool = True
    # Robust scale of the response over half its range, at most one; see `robust_share`
    scale_share: float = 1.0

    __repr__ = short_repr

    def derive(self, title: str) -> "ModelInfo":
        """Describe estimates that are computed from others, without their bias.

        The bias of a combination would need covariances of biases, which are unknown.
        """
        aim = None if self.aim is None else self.aim.without_bias
        return replace(self, title=title, coefficients=True, aim=aim)
