"""Results objects: labelled views of an ensemble's estimates."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints, Labels, Restrictions
from vstatkit.ensemble.growth import MAX_B, grow
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.scores import Scores
from vstatkit.formula.constraints import linear_constraint
from vstatkit.inference.estimates import (
    CHUNK_ENTRIES,
    Covariance,
    Estimates,
    WaldTest,
    band_critical_values,
    covariance,
    ensemble_mean,
    estimate,
    held,
    join_estimates,
    value_units,
    wald_test,
)
from vstatkit.inference.intervals import Support
from vstatkit.inference.normality import normality_tests
from vstatkit.inference.precision import Tolerance, tolerance_of
from vstatkit.kernels.protocol import prediction_support
from vstatkit.results.continuation import (
    Recipe,
    more_learners,
    present_learners,
    rebuilt,
    recipe_of,
)
from vstatkit.results.info import (
    EffectValues,
    Growth,
    ModelInfo,
    estimates_frame,
    label_texts,
    mean_frame,
)
from vstatkit.sampling.designs import SubsampleDesign
from vstatkit.variance.components import ESTIMATORS, VarianceComponents, resolve_method
from vstatkit.variance.moments import influence_values, sum_ensemble
from vstatkit.variance.orders import (
    HigherOrders,
    KernelKind,
    measure_orders,
    spread_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.comparison import VarianceComparison


@dataclass(frozen=True)
class EnsembleResults:
    """An ensemble's estimates with their uncertainty.

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
        What the summary's header says.
    units : Index of length n
        Labels of the observations (or clusters) that were resampled.
    effect_values : EffectValues or None
        Kernel differences behind the effects table.
    predictor : Predictor or None
        Predicts new data, where the kernel can.
    scores : Scores or None
        Out-of-bag scores.
    null : ndarray of shape (m,) or None
        Values that the tests hold the estimates against; None for zero.
    limit : float, ndarray of shape (m,) or None
        Largest standard deviation that an estimate can have; None where unknown.
    support : Support or None
        Range of estimates that are probabilities, or made of them; their intervals
        do not leave it.
    kind : KernelKind
        How the kernel depends on its observations.
    reference : ndarray of shape (r, p), DataFrame or None
        Rows, as the predictor takes them, on which learners are compared beyond
        the first order; None to compare the values themselves.
    orders : HigherOrders or None
        What was found there; None where the variance estimator does not ask.
    recipe : Recipe or None
        How to grow more learners; None where the training data are not at hand.
    """

    design: SubsampleDesign
    values: Floats
    labels: Labels
    variance: str
    info: ModelInfo
    units: Labels
    effect_values: EffectValues | None = None
    predictor: Predictor | None = None
    scores: Scores | None = None
    null: Floats | None = None
    limit: Floats | float | None = None
    support: Support | None = None
    kind: KernelKind = KernelKind.UNKNOWN
    reference: Any = None
    orders: HigherOrders | None = None
    recipe: Recipe | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the recipe out of pickles: it holds the data, and any function."""
        return {**self.__dict__, "recipe": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "EnsembleResults":
        """Copy the recipe too: in this process the data are at hand."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays, with stabilised variances."""
        found = estimate(
            self.design, self.values, self.variance, self.limit, self.orders
        )
        null = 0.0 if self.null is None else self.null
        return replace(found, null=null, support=self.support)

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

    @property
    def typical(self) -> pd.DataFrame | None:
        """The typical row: medians, and the most frequent levels."""
        return self.info.typical

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
        """Estimates over standard errors."""
        return self._series(self.estimates.zvalues, "zvalues")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values of zero, by Student's t with `df` degrees."""
        return self._series(self.estimates.pvalues, "pvalues")

    @property
    def df(self) -> pd.Series:
        """Degrees of freedom of the variance estimates."""
        return self._series(self.estimates.df, "df")

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals for the mean of the size-k learner.

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        simultaneous : bool
            Whether all intervals are to hold at once.

        Returns
        -------
        DataFrame
            Columns `lower` and `upper`. Those of probabilities lie inside [0, 1].
        """
        critical = self._critical_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    def _critical_values(self, alpha: float) -> Floats:
        """Quantiles that make all intervals hold at once."""
        correlation = self._covariance.correlation
        return band_critical_values(correlation, alpha, self.estimates.df, self.seed)

    @cached_property
    def _covariance(self) -> Covariance:
        return covariance(self.design, self.values, self.estimates)

    def cov_params(self) -> pd.DataFrame:
        """Covariance matrix of the estimates, positive semi-definite."""
        return pd.DataFrame(self._covariance.matrix, self.labels, self.labels)

    def influence(self) -> pd.DataFrame:
        """Influence of every observation (or cluster) on every estimate.

        Returns
        -------
        DataFrame of shape (n, m)
            `cov_b(N[b, i], h_b)`; the sum of squares of a column is the
            infinitesimal jackknife variance.
        """
        blocks = list(self._influence_blocks())
        return pd.DataFrame(np.concatenate(blocks, axis=1), self.units, self.labels)

    def _influence_blocks(self) -> Iterator[Floats]:
        """Influence on some estimates after others, to bound memory."""
        step = max(1, CHUNK_ENTRIES // self.design.n)
        for first in range(0, self.values.shape[1], step):
            values = self.values[:, first : first + step]
            unit = value_units(values)
            yield influence_values(sum_ensemble(self.design, values / unit)) * unit

    @cached_property
    def normality(self) -> pd.DataFrame:
        """Normality tests of the influence values, one row an estimate."""
        tables = [normality_tests(block) for block in self._influence_blocks()]
        return pd.concat(tables).set_axis(self.labels)

    def _normality_at(self, places: Ints) -> pd.DataFrame:
        """Test the influence on some of the estimates, given by their places."""
        chosen = replace(
            self, values=self.values[:, places], labels=self.labels[places]
        )
        return chosen.normality

    @property
    def effects(self) -> pd.DataFrame | None:
        """Change of the estimate when a predictor moves, others typical.

        Numeric predictors move from their 10 % to their 90 % quantile,
        categories from the first level to each other one. None for kernels that
        do not predict.
        """
        return self.effects_frame()

    def effects_frame(self, alpha: float = 0.05) -> pd.DataFrame | None:
        """Tabulate the `effects` with intervals of coverage 1 - alpha."""
        moved = self._effect_estimates
        if self.effect_values is None or moved is None:
            return None
        frame = self.effect_values.frame
        return pd.concat([frame, estimates_frame(moved, frame.index, alpha)], axis=1)

    @cached_property
    def _effect_estimates(self) -> Estimates | None:
        """Estimates behind the effects; an effect is the difference of two values."""
        if self.effect_values is None:
            return None
        limit = None if self.limit is None else 2 * np.max(self.limit)
        support = None if self.support is None else self.support.of_differences
        values = self.effect_values.values
        moved = estimate(self.design, values, self.variance, limit, self.orders)
        return replace(moved, support=support)

    @property
    def tolerance(self) -> Tolerance:
        """When the standard errors count as known; see `fit`."""
        growth = self.info.growth
        return tolerance_of(growth.tol, growth.atol, self.limit)

    @property
    def diagnostics(self) -> pd.DataFrame:
        """Whether the numbers can be relied on, one row an estimate.

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
        est, parts = self.estimates, self.estimates.scaled
        zeta_k = np.where(parts.zeta_k > 0, parts.zeta_k, 1)
        return pd.DataFrame(
            {
                "df": est.df,
                "monte_carlo_share": est.monte_carlo_share,
                "relative_mc_error": est.relative_mc_error,
                "learners_needed": np.ceil(self.tolerance.needed(est)),
                "linear_share": self.k * parts.zeta_1 / zeta_k,
                "negative": parts.sampling < 0,
                "bounded": est.bounded,
            },
            self.labels,
        )

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the estimates: `mean mean_se mean_ci_lower mean_ci_upper mc_se`.

        `mc_se` is the Monte Carlo standard error of the raw total variance, as in
        `components`.
        """
        return mean_frame(self.estimates, self.labels, alpha)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """One flat row an estimate, with the columns of R's broom."""
        est, bounds = self.estimates, self.conf_int(alpha)
        return pd.DataFrame(
            {
                "term": label_texts(self.labels),
                "estimate": est.estimate,
                "std_error": est.bse,
                "statistic": est.zvalues,
                "p_value": est.pvalues,
                "conf_low": bounds["lower"].to_numpy(),
                "conf_high": bounds["upper"].to_numpy(),
                "df": est.df,
            }
        )

    def glance(self) -> pd.DataFrame:
        """One flat row for the whole ensemble."""
        scores = {} if self.scores is None else self.scores.table
        row: dict[str, Any] = {
            "response": self.info.response,
            "kernel": self.info.kernel,
            "nobs": self.nobs,
            "k": self.k,
            "B": self.B,
            "replace": self.replace,
            "design": self.design.name,
            "variance": self.variance,
            "n_dropped": self.info.n_dropped,
            "max_relative_mc_error": float(self.estimates.relative_mc_error.max()),
            "seed": self.seed,
        }
        for name, value in scores.items():
            row[name.lower().replace(" ", "_").replace("-", "_")] = value
        return pd.DataFrame([row])

    def with_variance(self, name: str) -> "EnsembleResults":
        """Switch the variance estimator; nothing is fitted again."""
        method = resolved(name, self.design, self.kind)
        orders = self.orders
        if ESTIMATORS[method].beyond and orders is None:
            orders = measure_orders(
                self.design, self.B, self._reference_values, self.kind
            )
        return replace(self, variance=method, orders=orders)

    def _reference_values(self, L: int) -> Floats:
        """Values on which the first L learners are compared, shape (L, r)."""
        if self.predictor is None or self.reference is None:
            return self.values[:L, spread_columns(self.values.shape[1])]
        return self.predictor.first(L).values(self.reference)[:L]

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variance by every estimator that applies to this design.

        Returns
        -------
        VarianceComparison
            Prints as a table; `frame` holds its numbers (`sampling`, `se`,
            `mc_se`, `df` and the interval, one row an estimate and estimator),
            `left_out` says why the other estimators do not apply, and `plot()`
            draws the intervals. Nothing is fitted again.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=400, rng=1, variance="corrected_v")
        >>> sorted(res.compare_variance().left_out)
        ['corrected_u', 'im', 'little_bags', 'matched']
        """
        from vstatkit.results.comparison import compare  # noqa: PLC0415 imports this file

        return compare(self, alpha)

    def more(
        self,
        B: int | str,
        *,
        tol: float | None = None,
        atol: float | None = None,
        max_B: int = MAX_B,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> "EnsembleResults":
        """Continue the fit to `B` learners in total; none is grown twice.

        Parameters
        ----------
        B : int or "auto"
            Learners in total, more than there are; "auto" grows until the
            standard errors are known well enough, as in `fit`.
        tol, atol, max_B
            See `fit`; `tol` and `atol` are those of the fit by default.
        n_jobs, progress
            See `fit`; those of the fit by default.

        Returns
        -------
        EnsembleResults
            The learners are those that `fit` with this `B` and the same seed
            would grow (sums of out-of-bag predictions may differ in their last
            digits). A balanced ensemble continues after whole blocks; a complete
            one cannot, nor results that were loaded, or made of learners fitted
            elsewhere: there are no training data to grow from. A statistic is
            evaluated on the data that were given, as they are now.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> few = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> few.more(300).B
        300
        """
        size, recipe = more_learners(self, B, max_B), recipe_of(self)
        growth = self.info.growth
        tol = self.tolerance.tol if tol is None else tol
        atol = growth.atol if atol is None else atol
        design, evaluation = grow(
            recipe.task,
            size,
            method=self.variance,
            n_query=len(self.labels),
            tol=tol,
            atol=atol,
            max_B=max_B,
            start=present_learners(self),
            n_jobs=recipe.n_jobs if n_jobs is None else n_jobs,
            progress=recipe.progress if progress is None else progress,
        )
        grown = Growth(tol, max_B, atol) if size == "auto" else Growth()
        return rebuilt(self, design, evaluation, grown)

    def t_test(self, R: Restrictions) -> "EnsembleResults":
        """Test linear combinations of the estimates, one by one.

        Parameters
        ----------
        R : str or array-like of shape (r, m)
            "a = b, c = 0" with the names of the estimates, or a matrix.

        Returns
        -------
        EnsembleResults
            Its estimates are `R @ params`; `zvalues` and `pvalues` hold them
            against the hypothesised values. A linear combination of kernels is a
            kernel, so standard errors come from the same learners.
        """
        coefs, constants, names = self._restrictions(R)
        info = replace(
            self.info, title="Linear combinations of estimates", coefficients=True
        )
        limit = None if self.limit is None else np.abs(coefs) @ self._limits
        support = None if self.support is None else self.support.combined(coefs)
        return replace(
            self,
            values=self._combined(coefs),
            limit=limit,
            support=support,
            labels=pd.Index(names),
            null=constants,
            info=info,
            effect_values=None,
            predictor=None,
            scores=None,
            recipe=None,
        )

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions jointly, by Wald's F."""
        contrast = self.t_test(R)
        null = R if isinstance(R, str) else "R @ params = 0"
        found = contrast.estimates
        # In standard errors: squares of the estimates may leave floating point.
        scale = np.where(found.bse > 0, found.bse, 1.0)
        z = (found.estimate - found.null) / scale
        df = float(found.df.min())
        return wald_test(z, contrast._covariance.correlation, df, str(null))

    def _combined(self, coefs: Floats) -> Floats:
        """Values of linear combinations, taken about the first learner's."""
        first: Floats = self.values[0]
        return np.asarray((self.values - first) @ coefs.T + first @ coefs.T)

    @property
    def _limits(self) -> Floats:
        limit = np.inf if self.limit is None else self.limit
        return np.broadcast_to(np.asarray(limit, dtype=np.float64), len(self.labels))

    def _restrictions(self, R: Restrictions) -> tuple[Floats, Floats, list[str]]:
        return linear_constraint(R, label_texts(self.labels))

    def predict(self, data: DataLike) -> pd.Series | pd.DataFrame:
        """Predict new data.

        Returns
        -------
        Series, or DataFrame with a column for each of more than two classes
        """
        predictor = self._predictor()
        X, index = predictor.rows(data)
        chunks = predictor.chunks(X, 0)
        mean = np.concatenate([ensemble_mean(self.design, h) for h in chunks])
        if predictor.classes is not None and len(predictor.classes) > 2:
            table = mean.reshape(-1, len(predictor.classes))
            return pd.DataFrame(table, index, list(predictor.classes))
        return pd.Series(mean, index, name=self.info.response)

    def get_prediction(self, data: DataLike) -> "PredictionResults":
        """Predict new data, with standard errors and intervals."""
        predictor = self._predictor()
        X, index = predictor.rows(data)
        chunks = predictor.chunks(X, self.design.n)
        labels = predictor.labels(index)
        design = held(self.design, len(self.values), len(labels))
        limit = None if self.limit is None else float(np.max(self.limit))
        parts = [estimate(design, h, self.variance, limit, self.orders) for h in chunks]
        support = prediction_support(predictor.kernel, self.nobs)
        found = replace(join_estimates(parts), support=support)
        return PredictionResults(self, X, labels, found)

    def _predictor(self) -> Predictor:
        if self.predictor is None:
            raise ValueError(
                f"these results hold no learners that predict: {self.info.kernel!r} is "
                "a statistic, or they were saved without learners. The estimates are "
                "in `params` and `summary()`."
            )
        return self.predictor

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Summarise in statsmodels' tables: text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise  # noqa: PLC0415 slow import

        return summarise(self, alpha)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the effects, or the estimates where there are no effects."""
        from vstatkit import plots  # noqa: PLC0415 matplotlib loads on demand

        draw = plots.plot_estimates if self.effects is None else plots.plot_effects
        return draw(self, ax=ax)

    def save(self, path: str | PathLike[str]) -> None:
        """Save as arrays and JSON; `vstatkit.load` reads it back."""
        from vstatkit.storage.saving import save_results  # noqa: PLC0415 rarely needed

        save_results(self, path)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return (
            f"<EnsembleResults: {self.info.kernel}, {len(self.labels)} estimates, "
            f"n={self.design.n}, k={self.k}, B={self.B}>"
        )

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


@dataclass(frozen=True)
class PredictionResults:
    """Predictions with their uncertainty.

    Attributes
    ----------
    results : EnsembleResults
        The ensemble that predicts.
    X : ndarray of shape (q, p)
        Coded query points.
    labels : Index of length m
        Row, or row and class, of every prediction.
    estimates : Estimates
        Estimates as arrays, with stabilised variances.
    """

    results: EnsembleResults
    X: Floats
    labels: Labels
    estimates: Estimates

    @property
    def predicted_mean(self) -> pd.Series:
        """Ensemble means."""
        return pd.Series(self.estimates.estimate, self.labels, name="mean")

    @property
    def se_mean(self) -> pd.Series:
        """Standard errors of the means."""
        return pd.Series(self.estimates.bse, self.labels, name="mean_se")

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the predictions.

        Returns
        -------
        DataFrame
            `mean`, `mean_se`, `mean_ci_lower`, `mean_ci_upper`; for a numeric
            response `obs_ci_lower`, `obs_ci_upper`, the bounds of a new
            observation from out-of-bag residuals (left out where there are too
            few of them for the level); and `mc_se`, the Monte Carlo standard
            error of the raw total variance.
        """
        frame = mean_frame(self.estimates, self.labels, alpha)
        scores = self.results.scores
        offsets = None if scores is None else scores.interval_offsets(alpha)
        if offsets is not None:
            frame.insert(4, "obs_ci_lower", frame["mean"] + offsets[0])
            frame.insert(5, "obs_ci_upper", frame["mean"] + offsets[1])
        return frame

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals of the means, one by one or all at once."""
        if simultaneous:
            return self._joint.conf_int(alpha, simultaneous=True)
        frame = self.summary_frame(alpha)[["mean_ci_lower", "mean_ci_upper"]]
        return frame.set_axis(["lower", "upper"], axis=1)

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the predictions, positive semi-definite."""
        return self._joint.cov_params()

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variances by every estimator that applies to the design."""
        return self._joint.compare_variance(alpha)

    def influence(self) -> pd.DataFrame:
        """Influence of every observation on every prediction, shape (n, m)."""
        return self._joint.influence()

    @cached_property
    def _joint(self) -> EnsembleResults:
        values = self.results._predictor().values(self.X)
        return replace(
            self.results,
            values=values,
            labels=self.labels,
            effect_values=None,
            support=self.estimates.support,
        )


def resolved(
    name: str, design: SubsampleDesign, kind: KernelKind = KernelKind.UNKNOWN
) -> str:
    """Name the variance estimator meant for a design and a kind of kernel."""
    return resolve_method(
        name,
        replace=design.replace,
        design=design.name,
        k=design.k,
        n=design.n,
        complete=design.complete,
        grouped=design.grouped,
        n_absent=design.n_absent,
        kind=kind,
    )
