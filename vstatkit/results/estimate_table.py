"""Tables of estimates: standard errors, intervals, covariances and tests."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels, Restrictions
from vstatkit.ensemble.memory import COVARIANCES, FLOAT, check_memory, covariance_bytes
from vstatkit.formula.linear_constraints import (
    check_consistent,
    join_restrictions,
    linear_constraint,
)
from vstatkit.inference.estimates import Estimates, ensemble_mean, estimate
from vstatkit.inference.intervals import Support, Tails, band_critical_values
from vstatkit.inference.linear_tests import (
    Covariance,
    Directions,
    WaldTest,
    check_replicates,
    covariance,
    directions,
    joint_df,
    scaled_covariance,
    wald_test,
)
from vstatkit.inference.normality import (
    influence_blocks,
    influence_labels,
    influence_normality,
    most_influential,
)
from vstatkit.inference.population import RowInfluence, population_estimates
from vstatkit.inference.stopping import Tolerance, tolerance_of
from vstatkit.kernels.base import KernelKind
from vstatkit.pickling import pickled_plainly
from vstatkit.results.labels import label_texts
from vstatkit.results.model_column import (
    LEARNERS,
    OBSERVATIONS,
    Column,
    TabularModel,
    numbers_of,
)
from vstatkit.results.model_info import ModelInfo
from vstatkit.results.normality_check import NormalityCheck
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.text import shown_estimates
from vstatkit.validation import with_advice
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.hoeffding import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.registry import ESTIMATORS, resolve_for_design

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.delta_method import Function, Transformed
    from vstatkit.results.variance_comparison import VarianceComparison


SE_MC_ERROR = "Monte Carlo error of the standard error, in its unit"
"""What the column `se_mc_error` beside a standard error is."""


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


def diagnostics_frame(
    estimates: Estimates, labels: Labels, tolerance: Tolerance, k: int
) -> pd.DataFrame:
    """Tabulate diagnostics of the reliability of the estimates."""
    parts = estimates.scaled
    zeta_k = np.where(parts.zeta_k > 0, parts.zeta_k, 1)
    return pd.DataFrame(
        {
            "df": estimates.df,
            "monte_carlo_share": estimates.monte_carlo_share,
            "relative_mc_error": estimates.relative_mc_error,
            "learners_needed": np.ceil(tolerance.learners_needed(estimates)),
            "linear_share": k * parts.zeta_1 / zeta_k,
            "negative": parts.sampling < 0,
            "bounded": estimates.bounded,
        },
        labels,
    )


MOST_SHOWN = 200
"""Most estimates that are computed for `repr`."""


@pickled_plainly
@dataclass(frozen=True)
class EstimateTable(TabularModel):
    """Labelled estimates with their uncertainty.

    Every estimate is the mean of one kernel over the base learners of an ensemble, so
    that standard errors, covariances and tests come from the learners. Predictions,
    linear combinations, averages and curves are such tables; `EnsembleResults` is one
    that also has the learners.

    Attributes
    ----------
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Kernel values, learners first.
    labels : Index of length m
        Names of the estimates.
    variance : str
        Name of the variance estimator in use.
    info : ModelInfo
        Description of the model, for the header of the summary.
    units : Index of length n
        Labels of the observations (or clusters) that were resampled.
    null : ndarray of shape (m,) or float
        Hypothesised values of the tests.
    limit : float, ndarray of shape (m,) or None
        Largest standard deviation that an estimate can have; None if unknown.
    support : Support or None
        Range of estimates that are probabilities, or combinations of them; their
        intervals stay within it.
    tails : Tails or None
        Bounds and skewness of other predictions, for intervals that allow for
        skewness.
    kind : KernelKind
        How the kernel depends on its observations.
    orders : HigherOrders or None
        Correction beyond the first order; None if the variance estimator does not
        use it.
    points : RowInfluence or None
        Influence of the rows that were averaged over, for standard errors of averages
        that are about the population of these rows.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> effects = res.avg_effects()
    >>> isinstance(effects, vs.EstimateTable), effects.pvalues.index.to_list()
    (True, ['x1', 'x4'])
    >>> effects.conf_int(simultaneous=True).shape
    (2, 2)
    """

    design: SubsampleDesign
    values: Floats
    labels: Labels
    variance: str
    info: ModelInfo
    units: Labels
    null: Floats | float = 0.0
    limit: Floats | float | None = None
    support: Support | None = None
    tails: Tails | None = None
    kind: KernelKind = KernelKind.UNKNOWN
    orders: HigherOrders | None = None
    points: RowInfluence | None = field(default=None, repr=False)

    def _estimate(self) -> Estimates:
        """Estimate means and variances from the values."""
        estimates = estimate(
            self.design, self.values, self.variance, self.limit, self.orders
        )
        estimates = replace(
            estimates, null=self.null, support=self.support, tails=self.tails
        )
        if self.points is None:
            return estimates
        return population_estimates(
            estimates, self.design, self.values, self.points, self.limit
        )

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays, with stabilised variances."""
        return self._estimate()

    @property
    def _named_table(self) -> "EstimateTable":
        """The estimates under names that do not repeat, for functions of them."""
        return self

    def _restriction_table(self, R: Restrictions) -> "EstimateTable":
        """Return the estimates under the names that restrictions use."""
        return self._named_table

    @property
    def tests_zero(self) -> bool:
        """Whether summaries test the estimates against zero.

        Predictions and averages of probabilities are hardly ever zero. Differences of
        probabilities, slopes and contrasts may be.
        """
        support = self.support
        probabilities = support is not None and bool(np.all(support.low >= 0))
        return self.info.coefficients and not probabilities

    @property
    def nobs(self) -> int:
        """Observations used."""
        return self.info.nobs

    @property
    def k(self) -> int:
        """Subsample size."""
        return self.design.k

    @property
    def B(self) -> int:  # noqa: N802
        """Number of base learners."""
        return len(self.values)

    @property
    def replace(self) -> bool:
        """Whether subsamples were drawn with replacement."""
        return self.design.replace

    @property
    def seed(self) -> int:
        """Seed that repeats the ensemble, given as `rng`."""
        return self.design.seed

    def _series(self, values: Floats, name: str) -> pd.Series:
        return pd.Series(values, self.labels, name=name)

    @property
    def params(self) -> pd.Series:
        """Estimates."""
        return self._series(self.estimates.estimate, "params")

    @property
    def bse(self) -> pd.Series:
        """Standard errors, from the stabilised variance."""
        return self._series(self.estimates.bse, "bse")

    @property
    def zvalues(self) -> pd.Series:
        """Estimates minus their hypothesised values, over standard errors."""
        return self._series(self.estimates.zvalues, "zvalues")

    @property
    def tvalues(self) -> pd.Series:
        """The same as `zvalues`, by the name that goes with Student's t."""
        return self.zvalues.rename("tvalues")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values for the hypothesised values `null`, by Student's t."""
        return self._series(self.estimates.pvalues, "pvalues")

    @property
    def df(self) -> pd.Series:
        """Degrees of freedom of the variance estimates."""
        return self._series(self.estimates.df, "df")

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    @with_advice
    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals for the expectation of this ensemble.

        They cover its expectation over data sets of this size, not E[y|x].

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        simultaneous : bool
            Whether all intervals must cover at once.

        Returns
        -------
        DataFrame
            Columns `lower` and `upper`. Intervals of probabilities lie inside [0, 1],
            and so do those of trees if all responses are 0 or 1. Intervals of trees are
            not below zero if no response is negative. Intervals of skewed estimates are
            longer on one side; see "Skewed estimates" in the theory.
        """
        critical = self.band_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    def band_values(self, alpha: float = 0.05) -> Floats:
        """Multiples of the standard errors that make all intervals hold at once."""
        correlation, df = self.covariances.correlation, self.estimates.df
        return band_critical_values(correlation, alpha, df, self.seed)

    @cached_property
    def covariances(self) -> Covariance:
        """Covariances of the estimates, as arrays."""
        check_memory({COVARIANCES: covariance_bytes(len(self.labels))})
        return covariance(self.design, self.values, self.estimates, self.points)

    def cov_params(self) -> pd.DataFrame:
        """Covariance matrix of the estimates, positive semi-definite.

        Its `attrs["repaired"]` says how much had to be changed for that: the share
        of the correlation matrix's eigenvalues that was negative.
        """
        frame = pd.DataFrame(self.covariances.matrix, self.labels, self.labels)
        frame.attrs["repaired"] = self.covariances.repaired
        return frame

    def influence(self) -> pd.DataFrame:
        """Influence of every observation (or cluster) on every estimate.

        Returns
        -------
        DataFrame of shape (n, m)
            `cov_b(N[b, i], h_b)`; the sum of squares of a column is the
            infinitesimal jackknife variance. With shards there is a row for each of
            them, and the sum of squares is the variance that is reported.
        """
        entries = self.design.n * len(self.labels)
        check_memory({"the influences": 2 * FLOAT * entries})
        blocks = list(influence_blocks(self.design, self.values))
        index = influence_labels(self.design, self.units)
        return pd.DataFrame(np.concatenate(blocks, axis=1), index, self.labels)

    @cached_property
    def most_influential(self) -> pd.DataFrame | None:
        """The observation (or cluster) with the largest influence on each estimate.

        Returns
        -------
        DataFrame or None
            One row per estimate: `unit`, the label of the observation, and `share`,
            the share of the sampling variance that is due to it, corrected for the
            Monte Carlo error of the influences. None for designs whose learners come
            in dependent groups.
        """
        frame = most_influential(self.design, self.values, self.units)
        return None if frame is None else frame.set_axis(self.labels)

    @cached_property
    def normality(self) -> pd.DataFrame:
        """Normality tests of the influence values, one row per estimate."""
        return influence_normality(self.design, self.values).set_axis(self.labels)

    @property
    def tolerance(self) -> Tolerance:
        """When the standard errors are known well enough; see `fit`."""
        growth = self.info.growth
        shards = isinstance(self.design, ShardsDesign)
        return tolerance_of(
            growth.tol,
            growth.atol,
            self.limit,
            share=self.info.scale_share,
            replicates=shards,
        )

    @property
    def diagnostics(self) -> pd.DataFrame:
        """Diagnostics of the reliability of the estimates, one row for each.

        Returns
        -------
        DataFrame
            `df`; `monte_carlo_share` of the variance; `relative_mc_error` of the
            standard error, and the `learners_needed` to bring it to 0.1 (or to the
            `tol` of the fit), or below what never matters (its `atol`);
            `linear_share`, `k zeta_1 / zeta_k`, the share of a learner's variance
            that single observations explain; `negative`, whether the raw
            sampling variance is below zero; `bounded`, whether the standard
            error is the largest that single learners allow, since the ensemble
            is too small to tell more.
        """
        return diagnostics_frame(self.estimates, self.labels, self.tolerance, self.k)

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the estimates; the same as `cov_params`."""
        return self.cov_params()

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, with 95 % intervals: `summary_frame()`."""
        return self.summary_frame()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate estimates, tests and intervals of coverage 1 - alpha."""
        return estimates_frame(self.estimates, self.labels, alpha)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """One flat row per estimate, with the columns of R's broom."""
        return tidy_frame(self.estimates, self.labels, alpha)

    def with_variance(self, name: str) -> Self:
        """Switch the variance estimator; nothing is fitted again."""
        method = resolve_for_design(name, self.design, self.kind)
        orders = self.orders
        if ESTIMATORS[method].beyond and orders is None:
            orders = self._measure_orders()
        return replace(self, variance=method, orders=orders)

    def _measure_orders(self) -> HigherOrders:
        """Compare the learners on the values of this table."""
        columns = spread_columns(self.values.shape[1])
        return measure_orders(
            self.design, self.B, lambda L: self.values[:L, columns], self.kind
        )

    def t_test(self, R: Restrictions) -> "ContrastResults":
        """Test linear combinations of the estimates or effects, one by one.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            "a = b, c = 0", or a list of such texts, with the names of estimates or of
            effects (predictors; `g[b]` where the factor g moves to several levels, all
            of which "g = 0" stands for), or a matrix with a column for each estimate.

        Returns
        -------
        ContrastResults
            Its estimates are `R @ params`; `tvalues` and `pvalues` compare them
            with the hypothesised values. A linear combination of kernels is a
            kernel, so standard errors come from the same learners. It has the names
            of statsmodels' tests too: `effect`, `sd`, `tvalue`, `pvalue`.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=1000, rng=1)
        >>> bool(res.t_test("x4 = 0").pvalues.item() < 0.01)
        True
        """
        return linear_combinations(self, R)

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions jointly, by Wald's F.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            As in `t_test`.

        Returns
        -------
        WaldTest
            It does not depend on how the restrictions are written: equivalent ones
            give the same statistic, degrees of freedom and p-value, and a test of a
            factor does not depend on its reference level. Restrictions that follow
            from others are not counted, and printing the result reports them.

        Notes
        -----
        F is the mean of the squared t statistics of r combinations of the restrictions
        that are uncorrelated. Its denominator has 2 degrees of freedom plus the
        harmonic mean of those that the combinations have beyond 2: they count most
        whose standard error is imprecise. With one restriction, F is the square of t
        and has its degrees of freedom. See "Joint tests" in the theory.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=1000, rng=1)
        >>> res.wald_test("x1 = 0, x4 = 0").pvalue < 0.05
        True
        """
        return joint_test(self, R)

    def f_test(self, R: Restrictions) -> WaldTest:
        """Test jointly, as `wald_test` does: statsmodels' other name."""
        return self.wald_test(R)

    def transform(self, f: "Function") -> "Transformed":
        """Estimate a function of the estimates, by the delta method.

        Parameters
        ----------
        f : callable
            Takes the estimates, an array that also knows their names, and returns a
            number, an array, a dict or a Series.

        Returns
        -------
        Transformed

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1, kernel="ols")
        >>> ratio = res.transform(lambda p: {"ratio": p["x1"] / p["x4"]})
        >>> ratio.params.index.to_list()
        ['ratio']
        """
        from vstatkit.results.delta_method import (  # noqa: PLC0415 takes tables
            transform_estimates,
        )

        return transform_estimates(self._named_table, f)

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variance by every estimator that applies to this design.

        Returns
        -------
        VarianceComparison
            Prints as a table; `frame` holds its numbers (`sampling`, `se`,
            `se_mc_error`, `df` and the interval, one row per estimate and estimator),
            `left_out` says why the other estimators do not apply, and `plot()`
            draws the intervals. Nothing is fitted again.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=400, rng=1, variance="corrected_v")
        >>> sorted(res.compare_variance().left_out)
        ['corrected_u', 'im', 'little_bags', 'matched', 'shards']
        """
        from vstatkit.results.variance_comparison import (  # noqa: PLC0415 takes tables
            compare_estimators,
        )

        return compare_estimators(self, alpha)

    def normality_check(self, alpha: float = 0.05) -> "NormalityCheck":
        """Check whether normal intervals are reliable, from these learners alone.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.

        Returns
        -------
        NormalityCheck
            Prints as a table with a verdict for every estimate: "safe", "lopsided"
            (fine as a two-sided interval only), "not safe", or "not known" where
            there are too few learners to tell. `frame` holds the numbers, and
            `plot()` draws them.

        Notes
        -----
        Skewness and kurtosis of an estimate follow from the influences of single
        observations, since it is nearly a sum of them; their Monte Carlo noise is
        taken out. Edgeworth's expansion of a studentised sum turns them into the
        probabilities that an interval misses on either side. What comes from
        interactions of observations is taken to be normal.

        References
        ----------
        Hall (1992), The Bootstrap and Edgeworth Expansion, section 2.6.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, kernel="ols", B=2000, rng=1)
        >>> res.normality_check().frame["verdict"].to_list()
        ['safe', 'safe', 'safe']
        """
        from vstatkit.results.normality_check import check_normality  # noqa: PLC0415 takes tables

        return check_normality(self, alpha)

    @with_advice
    def summary(
        self, alpha: float = 0.05, *, full: bool = False, title: str | None = None
    ) -> "Summary":
        """Summarise in statsmodels' tables: text, HTML, LaTeX or CSV.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.
        full : bool
            Whether to add the variance components and the normality tests as tables,
            with notes on how they are computed.
        title : str, optional
            Title of the table.
        """
        from vstatkit.results.summary import summarise_estimates  # noqa: PLC0415 slow import

        return summarise_estimates(self, alpha, full=full, title=title)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the estimates with their intervals."""
        from vstatkit.plots.predictions import (  # noqa: PLC0415 loads on demand
            plot_estimates,
        )

        return plot_estimates(self, alpha=alpha, ax=ax)

    def save(self, path: str | PathLike[str]) -> None:
        """Save as arrays and JSON; `vstatkit.load` reads it back."""
        from vstatkit.storage.results_file import (  # noqa: PLC0415 rarely needed
            save_results,
        )

        save_results(self, path)

    def _column(self, alpha: float = 0.05) -> Column:
        frame = estimates_frame(self.estimates, self.labels, alpha)
        return Column(
            self.info.response,
            self.info.kernel,
            numbers_of(frame.set_axis(label_texts(self.labels))),
            self._column_stats(),
        )

    def _column_stats(self) -> dict[str, Any]:
        """Describe the whole ensemble at the foot of a column."""
        return {OBSERVATIONS: self.nobs, LEARNERS: self.B}

    def _shown_columns(self) -> dict[str, Any]:
        """Choose the numbers that `repr` shows for the first estimates."""
        return {"": self.estimates.estimate, "std err": self.estimates.bse}

    def _shown_estimates(self) -> str:
        """Write the first estimates with their standard errors."""
        if len(self.labels) > MOST_SHOWN:
            return f"{len(self.labels):,} estimates"
        return shown_estimates(label_texts(self.labels), self._shown_columns())

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    def __repr__(self) -> str:
        drawn = f"{self.info.kernel}, n={self.design.n}, k={self.k}, B={self.B}"
        return f"<{type(self).__name__}: {drawn}; {self._shown_estimates()}>"


Table = TypeVar("Table", bound=EstimateTable)

SHARED_FIELDS = tuple(item.name for item in fields(EstimateTable))
"""Names of the fields that all tables of estimates have."""


def derive_table(table: EstimateTable, kind: type[Table], **changes: Any) -> Table:
    """Make a table of another kind from the design and learners of this one.

    Parameters
    ----------
    table : EstimateTable
        Supplies every field of `EstimateTable` that is not changed, and no others.
    kind : type
        Class of the new table.
    **changes
        Fields of the new table.
    """
    shared = {name: getattr(table, name) for name in SHARED_FIELDS}
    return kind(**{**shared, **changes})


@dataclass(frozen=True, repr=False)
class ContrastResults(EstimateTable):
    """Linear combinations of estimates with their tests, under statsmodels' names.

    The arrays have statsmodels' shapes too: a single test has `sd` and `tvalue` of
    shape (1, 1), and a `pvalue` of shape ().

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> test = vs.fit("y ~ x1 + x4", data, B=300, rng=1).t_test("x4 = 0, x1 = 0")
    >>> test.effect.shape, test.sd.shape, test.conf_int().shape
    ((2,), (2,), (2, 2))
    >>> bool(test.pvalue[0] == test.pvalues["x4 = 0"])
    True
    """

    @property
    def tests_zero(self) -> bool:
        """Whether summaries show tests: always."""
        return True

    def _shown_columns(self) -> dict[str, Any]:
        return {**super()._shown_columns(), "p": self.estimates.pvalues}

    @property
    def effect(self) -> Floats:
        """Estimates, as `params`."""
        return self.estimates.estimate

    @property
    def sd(self) -> Floats:
        """Standard errors, as `bse`."""
        return _as_matrix(self.estimates.bse)

    @property
    def tvalue(self) -> Floats:
        """Estimates minus their hypothesised values, over `sd`, as `tvalues`."""
        return _as_matrix(self.estimates.zvalues)

    @property
    def statistic(self) -> Floats:
        """The same as `tvalue`."""
        return self.tvalue

    @property
    def pvalue(self) -> Floats:
        """Two-sided p-values, as `pvalues`."""
        return self.estimates.pvalues.squeeze()

    @property
    def df_denom(self) -> Floats:
        """Degrees of freedom, as `df`: each test has its own."""
        return self.estimates.df.squeeze()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the tests with statsmodels' columns."""
        lower, upper = self.estimates.interval(alpha)
        return pd.DataFrame(
            {
                "coef": self.estimates.estimate,
                "std err": self.estimates.bse,
                "t": self.estimates.zvalues,
                "P>|t|": self.estimates.pvalues,
                "Conf. Int. Low": lower,
                "Conf. Int. Upp.": upper,
            },
            self.labels,
        )


def _as_matrix(values: Floats) -> Floats:
    """Give a single value two dimensions, as statsmodels does."""
    return values.reshape(1, 1) if values.size == 1 else values


def linear_combinations(results: "EstimateTable", R: Restrictions) -> "ContrastResults":
    """Combine estimates: a linear combination of kernels is a kernel.

    Restrictions in words may name effects too.
    """
    return _combine(*_read(results, join_restrictions(R)))


def _read(
    results: "EstimateTable", R: Restrictions
) -> tuple["EstimateTable", Floats, Floats, list[str]]:
    """Read restrictions: results with what they name, coefficients, values, names."""
    results = results._restriction_table(R)
    typical = results.info.typical
    predictors = [] if typical is None else [str(name) for name in typical.columns]
    texts = label_texts(results.labels)
    return results, *linear_constraint(R, texts, predictors)


def _combine(
    results: "EstimateTable", coefs: Floats, constants: Floats, names: list[str]
) -> "ContrastResults":
    """Make the results of linear combinations, shape (r, m), of the estimates."""
    info = results.info.derive("Linear combinations of estimates")
    support = None if results.support is None else results.support.combine(coefs)
    tails = None if results.tails is None else results.tails.combine(coefs)
    points = None if results.points is None else results.points.combine(coefs)
    return derive_table(
        results,
        ContrastResults,
        points=points,
        values=_combine_values(results.values, coefs),
        limit=_combine_limit(results, coefs),
        support=support,
        tails=tails,
        labels=pd.Index(names),
        null=constants,
        info=info,
    )


def _combine_values(values: Floats, coefs: Floats) -> Floats:
    """Values of linear combinations, taken about the first learner's."""
    first = values[0]
    return np.asarray((values - first) @ coefs.T + first @ coefs.T)


def _combine_limit(results: "EstimateTable", coefs: Floats) -> Floats | None:
    if results.limit is None:
        return None
    limit = np.asarray(results.limit, dtype=np.float64)
    combined: Floats = np.abs(coefs) @ np.broadcast_to(limit, len(results.labels))
    return combined


def joint_test(results: "EstimateTable", R: Restrictions) -> WaldTest:
    r"""Test restrictions jointly, by Wald's F.

    Notes
    -----
    The test depends on the space of the restrictions only, not on how they are
    written. The learners give every restriction a value; in the metric of the
    covariance of these values over learners we take the eigenvectors of the
    restrictions' estimated covariance. An invertible transformation of the
    restrictions gives the same directions. In each of them the variance is estimated,
    made positive and given degrees of freedom as that of any single combination
    (`inference.estimates.stabilise`). The directions are uncorrelated, so that

    .. math:: F = \frac{\nu}{\nu + r - 1} \cdot \frac{1}{r} \sum_j t_j^2 ,

    with the degrees of freedom :math:`\nu` of `inference.linear_tests.joint_df`. If the
    covariance has no negative eigenvalue and no noise, the sum is
    :math:`d' C^{-1} d` with the differences d and their covariance C. The first factor
    accounts for the estimation of C (see `inference.linear_tests.wald_test`). With one
    restriction F is the square of t.
    """
    R = join_restrictions(R)
    null = str(R) if isinstance(R, str) else "R @ params = 0"
    results, coefs, constants, _ = _read(results, R)
    check_consistent(coefs, constants)
    values = _combine_values(results.values, coefs)
    space = directions(values, results.design.weights(0, len(values)))
    rank = len(space.varying)
    n_independent = _count_independent(coefs)
    if n_independent > rank >= len(values) - 1:
        raise ValueError(
            f"a joint test of {n_independent} restrictions needs more than "
            f"{n_independent} base learners; there are {len(values)}. Test fewer at "
            "once, or increase B."
        )
    difference = ensemble_mean(results.design, values) - constants
    fixed = space.fixed_differences(difference)
    if rank == 0:
        df = float(
            _combine_restrictions(
                results, coefs, constants, space.fixed
            ).estimates.df.min()
        )
        return wald_test(fixed, np.zeros((len(fixed), len(fixed))), df, null)
    tests = _combine_restrictions(
        results, coefs, constants, _uncorrelated_directions(results, coefs, space)
    )
    own = tests.estimates
    live = own.bse > 0
    z = (own.estimate - own.null) / np.where(live, own.bse, 1.0)
    z = np.concatenate([z, fixed])
    varies = np.concatenate([live, np.zeros(len(fixed))])
    replicates = own.scaled.df is not None
    df = joint_df(own.df)
    test = wald_test(z, np.diag(varies), df, null, replicates=replicates)
    df_num = (
        min(test.df_num, n_independent) if np.isnan(test.statistic) else test.df_num
    )
    return replace(test, df_num=df_num, n_restrictions=len(coefs))


def _combine_restrictions(
    results: "EstimateTable", coefs: Floats, constants: Floats, turn: Floats
) -> "ContrastResults":
    """Combine restrictions, by coefficients of shape (q, r)."""
    names = [f"direction {j}" for j in range(len(turn))]
    return _combine(results, turn @ coefs, turn @ constants, names)


def _uncorrelated_directions(
    results: "EstimateTable", coefs: Floats, space: Directions
) -> Floats:
    """Find the directions, (rank, r), in which estimates are uncorrelated."""
    contrasts = _combine_restrictions(
        results, coefs, np.zeros(len(coefs)), space.varying
    )
    rank = len(space.varying)
    check_memory({COVARIANCES: covariance_bytes(rank)})
    own = contrasts.estimates
    if own.scaled.df is not None:
        check_replicates(rank, own.scaled.df)
    matrix = scaled_covariance(
        contrasts.design, contrasts.values, own, contrasts.points
    )
    vectors = np.linalg.eigh(matrix * np.outer(own.unit, own.unit))[1]
    return np.asarray(vectors.T @ space.varying)


def _count_independent(coefs: Floats) -> int:
    """Count the restrictions that do not follow from others."""
    size = np.abs(coefs).max(axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(coefs / np.where(size > 0, size, 1.0)))
