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
from vstatkit.inference.estimates import Estimates, ensemble_mean, estimate, ratio
from vstatkit.inference.intervals import Support, Tails, band_critical_values
from vstatkit.inference.linear_tests import (
    Covariance,
    Directions,
    WaldTest,
    check_replicates,
    covariance,
    directions,
    equivariant_covariance,
    joint_df,
    wald_test,
)
from vstatkit.inference.normality import influence_normality
from vstatkit.inference.population import RowInfluence, population_estimates
from vstatkit.inference.stopping import Tolerance, tolerance_of
from vstatkit.kernels.base import KernelKind
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.labels import label_texts
from vstatkit.results.model_description import (
    LEARNERS,
    NUMBERS,
    OBSERVATIONS,
    Column,
    ModelInfo,
    TabularModel,
)
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.text import shown_estimates
from vstatkit.validation import with_advice
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.higher_orders import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.influence_summaries import (
    influence_blocks,
    influence_labels,
    most_influential,
)
from vstatkit.variance.leaf_influence import LeafInfluence
from vstatkit.variance.pooled_variance import PooledVariance
from vstatkit.variance.registry import ESTIMATORS, resolve_for_design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.delta_method import Function, Transformed
    from vstatkit.results.reliability_checks import NormalityCheck, VarianceComparison


MOST_SHOWN = 200  # most estimates that `repr` computes
# Description of the column `se_mc_error`.
SE_MC_ERROR = "Monte Carlo error of the standard error, in its unit"


def estimates_frame(estimates: Estimates, index: Labels, alpha: float) -> pd.DataFrame:
    """Tabulate estimates with tests and intervals of coverage 1 - alpha."""
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


@pickled_plainly
@dataclass(frozen=True)
class EstimateTable(TabularModel):
    """Labelled estimates with their uncertainty.

    Every estimate is the mean of a kernel over the base learners of an ensemble, so
    standard errors, covariances and tests come from the learners. Predictions, linear
    combinations, averages and curves are such tables. `EnsembleResults` also has the
    learners.

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
        Largest standard deviation that an estimate can have, if known.
    support : Support or None
        Range of estimates that are probabilities, or combinations of them.
    tails : Tails or None
        Bounds and skewness of other predictions, for skewed intervals.
    kind : KernelKind
        How the kernel depends on its observations.
    orders : HigherOrders or None
        Correction beyond the first order, if the variance estimator uses it.
    points : RowInfluence or None
        Influence of the averaged rows, for standard errors of population averages.
    pooled : PooledVariance or None
        What the variances of a forest's predictions have in common, if it is used.
    leaf_influence : LeafInfluence or None
        Influence of the units on the estimates if the splits of the trees were fixed;
        needed to use `pooled`.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> effects = vs.fit("y ~ x1 + x4", data, B=1000, rng=1).avg_effects()
    >>> isinstance(effects, vs.EstimateTable), effects.pvalues.index.to_list()
    (True, ['x1', 'x4'])
    >>> effects.conf_int(simultaneous=True).shape
    (2, 2)
    >>> test = effects.t_test("x4 = 0, x1 = 0")
    >>> test.effect.shape, bool(test.pvalues["x4 = 0"] < 0.01)
    ((2,), True)
    >>> effects.wald_test("x1 = 0, x4 = 0").pvalue < 0.05
    True
    >>> effects.transform(lambda p: {"ratio": p["x1"] / p["x4"]}).params.index.to_list()
    ['ratio']
    >>> effects.normality_check().frame["verdict"].to_list()
    ['not known', 'not known']
    >>> sorted(effects.compare_variance().left_out)
    ['corrected_u', 'im', 'little_bags', 'matched', 'shards']
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
    pooled: PooledVariance | None = None
    leaf_influence: LeafInfluence | None = field(default=None, repr=False)

    def _estimate(self) -> Estimates:
        """Estimate means and variances."""
        estimates = estimate(
            *(self.design, self.values, self.variance, self.limit, self.orders),
            pooled=self.pooled,
            influence=self.leaf_influence,
        )
        estimates = replace(
            estimates, null=self.null, support=self.support, tails=self.tails
        )
        points, limit = self.points, self.limit
        if points is None:
            return estimates
        return population_estimates(estimates, self.design, self.values, points, limit)

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays, with stabilised variances."""
        return self._estimate()

    @property
    def _named_table(self) -> "EstimateTable":
        """The same estimates under unique names."""
        return self

    def _restriction_table(self, R: Restrictions) -> "EstimateTable":
        """Return the estimates under the names that restrictions can use."""
        return self._named_table

    @property
    def tests_zero(self) -> bool:
        """Whether summaries test the estimates against zero.

        They do so for coefficients, slopes and contrasts, but not for predictions and
        average probabilities, which are hardly ever zero.
        """
        support = self.support
        probabilities = support is not None and bool(np.all(support.low >= 0))
        return self.info.coefficients and not probabilities

    @property
    def _largest_limit(self) -> float | None:
        """The largest standard deviation that any of the estimates can have."""
        return None if self.limit is None else float(np.max(self.limit))

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
        """The same as `zvalues`."""
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
        """Compute confidence intervals for the expectation of this ensemble.

        The expectation is over data sets of this size; it is not E[y|x]. Intervals of
        probabilities lie inside [0, 1], as do those of trees if all responses are 0 or
        1. Intervals of trees do not extend below zero if no response is negative.
        Intervals of skewed estimates are longer on one side; see "Skewed estimates" in
        the theory.

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        simultaneous : bool
            Whether the intervals cover jointly, with probability 1 - alpha.
        """
        critical = self.band_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    def band_values(self, alpha: float = 0.05) -> Floats:
        """Compute the multiples of standard errors for simultaneous intervals."""
        correlation, df = self.covariances.correlation, self.estimates.df
        return band_critical_values(correlation, alpha, df, self.seed)

    @cached_property
    def covariances(self) -> Covariance:
        """Covariances of the estimates, as arrays."""
        check_memory({COVARIANCES: covariance_bytes(len(self.labels))})
        return covariance(
            self.design, self.values, self.estimates, self.points, self._joint_pooling
        )

    @property
    def _joint_pooling(self) -> tuple[PooledVariance, LeafInfluence] | None:
        """What expected covariances are computed from, if they are used."""
        if self.estimates.expected is None:
            return None
        assert self.pooled is not None
        assert self.leaf_influence is not None
        return self.pooled, self.leaf_influence

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the estimates, positive semi-definite.

        `attrs["repaired"]` is the share of the correlation matrix's eigenvalues that
        was negative and was set to zero.
        """
        frame = pd.DataFrame(self.covariances.matrix, self.labels, self.labels)
        frame.attrs["repaired"] = self.covariances.repaired
        return frame

    def influence(self) -> pd.DataFrame:
        """Compute the influence of every observation (or cluster) on every estimate.

        The entries of the (n, m) table are `cov_b(N[b, i], h_b)`; the sum of squares of
        a column is the infinitesimal jackknife variance. With shards there is one row
        per shard, and the sum of squares is the reported variance.
        """
        entries = self.design.n * len(self.labels)
        check_memory({"the influences": 2 * FLOAT * entries})
        blocks = list(influence_blocks(self.design, self.values))
        index = influence_labels(self.design, self.units)
        return pd.DataFrame(np.concatenate(blocks, axis=1), index, self.labels)

    @cached_property
    def most_influential(self) -> pd.DataFrame | None:
        """The observation (or cluster) with the largest influence on each estimate.

        The label of the observation is in the column `unit`. Its `share` of the
        sampling variance is corrected for the Monte Carlo error of the influences. If
        variances are pooled, influences are those through the leaves of the trees. None
        for designs that draw learners in dependent groups.
        """
        if self.estimates.expected is not None and self.leaf_influence is not None:
            influence = self.leaf_influence.divide(self.estimates.unit)
            places, squares = influence.largest_squares()
            shares = np.minimum(ratio(squares, self.estimates.positive), 1.0)
            table = {"unit": self.units[places], "share": shares}
            return pd.DataFrame(table, self.labels)
        frame = most_influential(self.design, self.values, self.units)
        return None if frame is None else frame.set_axis(self.labels)

    @cached_property
    def normality(self) -> pd.DataFrame:
        """Normality tests of the influence values, one row per estimate."""
        return influence_normality(self.design, self.values).set_axis(self.labels)

    @property
    def tolerance(self) -> Tolerance:
        """Tolerance for the Monte Carlo error of the standard errors; see `fit`."""
        growth, share = self.info.growth, self.info.scale_share
        shards = isinstance(self.design, ShardsDesign)
        return tolerance_of(
            growth.tol, growth.atol, self.limit, share=share, replicates=shards
        )

    @property
    def diagnostics(self) -> pd.DataFrame:
        """Diagnostics of the reliability of the estimates, one row for each.

        The columns are `df`; `monte_carlo_share` of the variance; `relative_mc_error`
        of the standard error, and the `learners_needed` to reduce it to 0.1 (or the
        `tol` of the fit), or to the absolute tolerance `atol`; `pooled_share`, the
        share of the sampling variance that comes from what all predictions of the
        forest have in common, not from the jackknife of this one; `linear_share`, `k
        zeta_1 / zeta_k`, the share of a learner's variance that single observations
        explain; `negative`, whether the raw sampling variance is below zero; `bounded`,
        whether the ensemble is so small that the standard error is the largest one that
        the spread of single learners allows.
        """
        estimates, parts = self.estimates, self.estimates.scaled
        zeta_k = np.where(parts.zeta_k > 0, parts.zeta_k, 1)
        return pd.DataFrame(
            {
                "df": estimates.df,
                "monte_carlo_share": estimates.monte_carlo_share,
                "relative_mc_error": estimates.relative_mc_error,
                "learners_needed": np.ceil(self.tolerance.learners_needed(estimates)),
                "pooled_share": np.broadcast_to(estimates.pooled_share, zeta_k.shape),
                "linear_share": self.k * parts.zeta_1 / zeta_k,
                "negative": parts.sampling < 0,
                "bounded": estimates.bounded,
            },
            self.labels,
        )

    cov = cov_params

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, with 95 % intervals: `summary_frame()`."""
        return self.summary_frame()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate estimates, tests and intervals of coverage 1 - alpha."""
        return estimates_frame(self.estimates, self.labels, alpha)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the estimates without an index, with the columns of R's broom."""
        frame = estimates_frame(self.estimates, self.labels, alpha)
        frame = frame.drop(columns="relative_mc_error").reset_index(drop=True)
        frame.insert(0, "term", label_texts(self.labels))
        names = {"t": "statistic", "ci_lower": "conf_low", "ci_upper": "conf_high"}
        return frame.rename(columns=names)

    def with_variance(self, name: str) -> Self:
        """Switch to another variance estimator without refitting."""
        method = resolve_for_design(name, self.design, self.kind)
        points, old, orders = self.points, self.variance, self.orders
        if points is not None and method != old:
            # Estimators by presence predict training rows out of bag, others by all
            # learners. For other rows the noise of predictions is estimated.
            sources = {ESTIMATORS[name].source == "presence" for name in (old, method)}
            if points.noise is not None or (points.shared and len(sources) > 1):
                raise ValueError(
                    "standard errors for the population must use the variance "
                    f"estimator of the averages, {old!r}; got {method!r}. Switch "
                    f"before averaging: res.with_variance({method!r})"
                    ".avg_predictions(..., se='population')."
                )
        if ESTIMATORS[method].beyond and orders is None:
            orders = self._measure_orders()
        return replace(self, variance=method, orders=orders)

    def _measure_orders(self) -> HigherOrders:
        """Measure the correction on the values of this table."""
        columns = spread_columns(self.values.shape[1])
        return measure_orders(
            self.design, self.B, lambda L: self.values[:L, columns], self.kind
        )

    def t_test(self, R: Restrictions) -> "ContrastResults":
        """Test linear combinations of the estimates or effects, one by one.

        The estimates of the result are `R @ params`; `tvalues` and `pvalues` compare
        them with the hypothesised values. A linear combination of kernels is a kernel,
        so standard errors come from the same learners.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            Restrictions such as "a = b, c = 0", with the names of estimates or effects,
            or a matrix with a column for each estimate. Effects have the names of the
            predictors; `g[b]` is the effect of level b of a factor with several
            levels, and "g = 0" restricts all of them.
        """
        return _combine(*_read(self, join_restrictions(R)))

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions, given as in `t_test`, jointly by Wald's F.

        Equivalent restrictions give the same statistic, degrees of freedom and p-value;
        a test of a factor does not depend on its reference level. Restrictions that
        follow from others are not counted, and the printed result reports them.

        F is the mean of the squared t statistics of r uncorrelated combinations of the
        restrictions. Its denominator has 2 degrees of freedom plus the harmonic mean of
        the combinations' degrees of freedom beyond 2, so imprecise standard errors
        count most. With one restriction, F is the square of t and has the same degrees
        of freedom. See "Joint tests" in the theory.
        """
        return joint_test(self, R)

    f_test = wald_test

    def transform(self, f: "Function") -> "Transformed":
        """Estimate functions of the estimates, by the delta method.

        The function f takes the estimates, as an array that can also be indexed by
        name, and returns a number, an array, a dict or a Series.
        """
        from vstatkit.results.delta_method import transform_estimates  # noqa: PLC0415 takes tables

        return transform_estimates(self._named_table, f)

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variance by every estimator that applies, without refitting.

        The result prints as a table. Its `frame` has `sampling`, `se`, `se_mc_error`,
        `df` and the interval, one row per estimate and estimator; `left_out` has the
        reasons why the other estimators do not apply; `plot()` draws the intervals.
        """
        from vstatkit.results.reliability_checks import compare_estimators  # noqa: PLC0415 takes tables

        return compare_estimators(self, alpha)

    def normality_check(self, alpha: float = 0.05) -> "NormalityCheck":
        """Check whether normal intervals are reliable, from these learners alone.

        Returns
        -------
        NormalityCheck
            Prints as a table with a verdict for every estimate: "safe", "lopsided"
            (reliable as a two-sided interval only), "not safe", or "not known" if there
            are too few learners for a verdict. `frame` has the numbers, and `plot()`
            draws them.

        Notes
        -----
        An estimate is nearly a sum of the influences of single observations, so its
        skewness and kurtosis follow from theirs, after a correction for Monte Carlo
        noise. Edgeworth's expansion of a studentised sum (Hall 1992, The Bootstrap and
        Edgeworth Expansion, section 2.6) gives the probabilities that an interval
        misses on either side. The part of the estimate that is due to interactions of
        observations is assumed to be normal.
        """
        from vstatkit.results.reliability_checks import check_normality  # noqa: PLC0415 takes tables

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
            Whether to add tables of the variance components and the normality tests,
            with notes on how they are computed. Otherwise each of them has one line.
        title : str, optional
            Title of the table; by default the kind of results and the response.
        """
        from vstatkit.results.summary import summarise  # noqa: PLC0415 slow import

        return summarise(self, alpha, full=full, title=title)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the estimates with their intervals."""
        from vstatkit.plots.estimates import plot_estimates  # noqa: PLC0415 loads on demand

        return plot_estimates(self, alpha=alpha, ax=ax)

    def save(self, path: str | PathLike[str]) -> None:
        """Save to a file of arrays and JSON, which `vstatkit.load` reads."""
        from vstatkit.storage.results_file import save_results  # noqa: PLC0415 rarely needed

        save_results(self, path)

    def _column(self, alpha: float = 0.05) -> Column:
        frame = estimates_frame(self.estimates, self.labels, alpha)
        return self._make_column(frame, label_texts(self.labels), self.info.kernel)

    def _make_column(
        self, frame: pd.DataFrame, names: list[str], kind: str, note: str = ""
    ) -> Column:
        """Make a column of a table of models, with a name for each row of `frame`."""
        numbers = frame.set_axis(names)[NUMBERS].astype(float)
        return Column(self.info.response, kind, numbers, self._column_stats(), note)

    def _column_stats(self) -> dict[str, Any]:
        """Return the statistics at the foot of a column."""
        return {OBSERVATIONS: self.nobs, LEARNERS: self.B}

    def _shown_columns(self) -> dict[str, Any]:
        """Return the columns that `repr` shows."""
        return {"": self.estimates.estimate, "std err": self.estimates.bse}

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    def __repr__(self) -> str:
        drawn = f"{self.info.kernel}, n={self.design.n}, k={self.k}, B={self.B}"
        shown = f"{len(self.labels):,} estimates"
        if len(self.labels) <= MOST_SHOWN:
            shown = shown_estimates(label_texts(self.labels), self._shown_columns())
        return f"<{type(self).__name__}: {drawn}; {shown}>"


Table = TypeVar("Table", bound=EstimateTable)

# Names of the fields that all tables of estimates have.
SHARED_FIELDS = tuple(item.name for item in fields(EstimateTable))


def derive_table(table: EstimateTable, kind: type[Table], **changes: Any) -> Table:
    """Make a table of another class; it shares the fields of `EstimateTable`.

    The influence through leaves belongs to the values, and changes with them.
    """
    if "values" in changes:
        changes = {"leaf_influence": None, **changes}
    shared = [name for name in SHARED_FIELDS if name not in changes]
    return kind(**{name: getattr(table, name) for name in shared}, **changes)


@dataclass(frozen=True, repr=False)
class ContrastResults(EstimateTable):
    """Tests of linear combinations of estimates, under statsmodels' names.

    Arrays have statsmodels' shapes: a single test has `sd` and `tvalue` of shape
    (1, 1), and a `pvalue` of shape ().
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

    statistic = tvalue

    @property
    def pvalue(self) -> Floats:
        """Two-sided p-values, as `pvalues`."""
        return self.estimates.pvalues.squeeze()

    @property
    def df_denom(self) -> Floats:
        """Degrees of freedom of each test, as `df`."""
        return self.estimates.df.squeeze()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the tests with statsmodels' columns."""
        names = ["coef", "std err", "t", "P>|t|", "Conf. Int. Low", "Conf. Int. Upp."]
        return super().summary_frame(alpha)[NUMBERS].set_axis(names, axis=1)


def difference_table(
    results: EstimateTable,
    values: Floats,
    labels: Labels,
    title: str,
    leaf_influence: LeafInfluence | None = None,
) -> ContrastResults:
    """Make a table of differences of predictions, with values of shape (L, m)."""
    limit, support, tails = results.limit, results.support, results.tails
    return derive_table(
        results,
        ContrastResults,
        values=values,
        labels=labels,
        limit=None if limit is None else 2 * float(np.max(limit)),
        support=None if support is None else support.of_differences,
        tails=None if tails is None else tails.of_differences,
        null=np.zeros(values.shape[1]),
        info=results.info.derive(title),
        points=None,
        leaf_influence=leaf_influence,
    )


def _as_matrix(values: Floats) -> Floats:
    """Give a single value two dimensions, as statsmodels does."""
    return values.reshape(1, 1) if values.size == 1 else values


def _read(
    results: EstimateTable, R: Restrictions
) -> tuple[EstimateTable, Floats, Floats, list[str]]:
    """Read restrictions: the table they refer to, coefficients, values and names."""
    results = results._restriction_table(R)
    typical = results.info.typical
    predictors = [] if typical is None else [str(name) for name in typical.columns]
    texts = label_texts(results.labels)
    return results, *linear_constraint(R, texts, predictors)


def _combine(
    results: EstimateTable, coefs: Floats, constants: Floats, names: "Sequence[Any]"
) -> ContrastResults:
    """Make the table of linear combinations, with coefficients of shape (r, m)."""
    limit, support, tails = results.limit, results.support, results.tails
    influence = results.leaf_influence
    if limit is not None:
        limits = np.broadcast_to(np.asarray(limit, dtype=np.float64), coefs.shape[1])
        limit = np.abs(coefs) @ limits
    return derive_table(
        results,
        ContrastResults,
        points=None if results.points is None else results.points.combine(coefs),
        values=_combine_values(results.values, coefs),
        limit=limit,
        support=None if support is None else support.combine(coefs),
        tails=None if tails is None else tails.combine(coefs),
        labels=pd.Index(names),
        null=constants,
        info=results.info.derive("Linear combinations of estimates"),
        leaf_influence=None if influence is None else influence.combine(coefs),
    )


def _combine_values(values: Floats, coefs: Floats) -> Floats:
    """Combine values about those of the first learner, for accuracy."""
    first = values[0]
    return np.asarray((values - first) @ coefs.T + first @ coefs.T)


def joint_test(results: EstimateTable, R: Restrictions) -> WaldTest:
    r"""Test restrictions jointly, by Wald's F.

    Notes
    -----
    The test depends only on the space of the restrictions, not on how they are
    written. Its directions are the eigenvectors of the restrictions' estimated
    covariance, in the metric of the covariance of their values over learners; an
    invertible transformation of the restrictions does not change them. In each
    direction the variance is estimated, made positive and given degrees of freedom as
    for any single combination (`inference.estimates.stabilise`). The directions are
    uncorrelated, so that

    .. math:: F = \frac{\nu}{\nu + r - 1} \cdot \frac{1}{r} \sum_j t_j^2 ,

    with the degrees of freedom :math:`\nu` of `inference.linear_tests.joint_df`. If the
    covariance has no negative eigenvalue and no noise, the sum is
    :math:`d' C^{-1} d` with the differences d and their covariance C. The first factor
    accounts for the estimation of C (see `inference.linear_tests.wald_test`).
    """
    R = join_restrictions(R)
    null = str(R) if isinstance(R, str) else "R @ params = 0"
    results, coefs, constants, _ = _read(results, R)
    check_consistent(coefs, constants)
    values = _combine_values(results.values, coefs)
    space = directions(values, results.design.weights(0, len(values)))
    rank = len(space.varying)
    # Restrictions that follow from others are not counted.
    size = np.abs(coefs).max(axis=1, keepdims=True)
    n_independent = int(np.linalg.matrix_rank(coefs / np.where(size > 0, size, 1.0)))
    if n_independent > rank >= len(values) - 1:
        raise ValueError(
            f"a joint test of {n_independent} restrictions needs more than "
            f"{n_independent} base learners; there are {len(values)}. Test fewer at "
            "once, or increase B."
        )
    difference = ensemble_mean(results.design, values) - constants
    fixed = space.fixed_differences(difference)
    if rank == 0:
        tests = _combine_directions(results, coefs, constants, space.fixed)
        df = float(tests.estimates.df.min())
        return wald_test(fixed, np.zeros((len(fixed), len(fixed))), df, null)
    turn = _uncorrelated_directions(results, coefs, space)
    own = _combine_directions(results, coefs, constants, turn).estimates
    live = own.bse > 0
    z = (own.estimate - own.null) / np.where(live, own.bse, 1.0)
    z = np.concatenate([z, fixed])
    varies = np.diag(np.concatenate([live, np.zeros(len(fixed))]))
    replicates = own.scaled.df is not None
    test = wald_test(z, varies, joint_df(own.df), null, replicates=replicates)
    most = n_independent if np.isnan(test.statistic) else test.df_num
    return replace(test, df_num=min(test.df_num, most), n_restrictions=len(coefs))


def _combine_directions(
    results: EstimateTable, coefs: Floats, constants: Floats, turn: Floats
) -> ContrastResults:
    """Combine restrictions, by coefficients of shape (q, r)."""
    return _combine(results, turn @ coefs, turn @ constants, range(len(turn)))


def _uncorrelated_directions(
    results: EstimateTable, coefs: Floats, space: Directions
) -> Floats:
    """Find the directions, (rank, r), in which estimates are uncorrelated."""
    tests = _combine_directions(results, coefs, np.zeros(len(coefs)), space.varying)
    rank, own = len(space.varying), tests.estimates
    check_memory({COVARIANCES: covariance_bytes(rank)})
    if own.scaled.df is not None:
        check_replicates(rank, own.scaled.df)
    matrix = equivariant_covariance(
        tests.design, tests.values, own, tests.points, tests._joint_pooling
    )
    vectors = np.linalg.eigh(matrix * np.outer(own.unit, own.unit))[1]
    return np.asarray(vectors.T @ space.varying)
