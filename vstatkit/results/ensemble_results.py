"""Results of a fit: estimates, learners, scores and training data."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Labels, Restrictions, Seed
from vstatkit.ensemble.growth import MAX_B
from vstatkit.ensemble.marginal_averages import By
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.prediction_intervals import OutOfBagErrors
from vstatkit.ensemble.typical_row_effects import EffectValues
from vstatkit.formula.data_warnings import warn_of_new_rows
from vstatkit.inference.estimates import Estimates
from vstatkit.kernels.base import OutOfBag
from vstatkit.pandas_pickling import plain_state, take_state
from vstatkit.results.bootstrap import Bootstrap, bootstrap_fit
from vstatkit.results.continuation import Continuation, continue_fit
from vstatkit.results.estimate_table import (
    EstimateTable,
    derive_table,
    difference_table,
    estimates_frame,
    mean_frame,
)
from vstatkit.results.labels import add_classes, add_moves, effect_names, label_texts
from vstatkit.results.marginal_effects import (
    Averages,
    Variables,
    average_moves,
    average_predictions,
    name_tuple,
    training_rows,
)
from vstatkit.results.model_description import Column, FittedModel, Growth, ModelData
from vstatkit.results.pooled_variance import with_pooled_variance
from vstatkit.results.prediction_results import (
    PredictionResults,
    collect_residuals,
    predict_means,
    predict_with_errors,
    read_into_memory,
    with_residuals,
    with_typical,
    write_predictions,
)
from vstatkit.validation import with_advice
from vstatkit.variance.higher_orders import HigherOrders, measure_orders
from vstatkit.variance.leaf_influence import LeafInfluence, RowResiduals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.ensemble.conditional_copies import How
    from vstatkit.results.dependence_curves import Curve
    from vstatkit.results.importance import Importance, PredictorSets
    from vstatkit.results.predictor_tests import InteractionTest


R_SQUARED = "OOB R-squared"  # name of the score in summaries


@dataclass(frozen=True, repr=False)
class EnsembleResults(EstimateTable):
    """A fitted ensemble: its estimates, learners, scores and training data.

    Estimates, standard errors, intervals and tests are those of `EstimateTable`. This
    class adds the methods that need the learners or the training data.

    Attributes
    ----------
    effect_values : EffectValues or None
        Kernel differences behind the effects table.
    predictor : Predictor or None
        Predicts new data, if the kernel can.
    scores : Scores or None
        Out-of-bag scores.
    reference : ndarray of shape (r, p), DataFrame or None
        Rows on which the variance beyond the first order is measured; None to use the
        values themselves.
    errors : OutOfBagErrors or None
        Out-of-bag residuals of single observations, and their local scale.
    recipe : Continuation or None
        How to grow more learners; None if the training data are not available.
    row_residuals : RowResiduals or None
        Out-of-bag residuals of the training rows, if variances are pooled.

    Examples
    --------
    >>> import tempfile
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
    >>> res.more(300).B
    300
    >>> bool(((res.fittedvalues + res.resid - data["y"]).abs() < 1e-9).all())
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     res.report(f"{folder}/fit.html")

    Averages over rows, and curves of them:

    >>> res.avg_predictions(se="population").frame.index.to_list()
    ['average']
    >>> res.avg_effects({"x4": (0.2, 0.8)}).frame[["from", "to"]].iloc[0].to_list()
    [0.2, 0.8]
    >>> res.avg_slopes("x4", step=0.5).frame["step"].to_list()
    [0.5]
    >>> curve = res.partial_dependence("x4", points=5)
    >>> curve.frame.shape[0], curve.conf_int(simultaneous=True).shape
    (5, (5, 2))
    >>> len(res.accumulated_effects("x4", points=5).frame)
    6

    Tests of predictors:

    >>> res.importance().frame["importance"].idxmax()
    'x4'
    >>> res.importance([("x1", "x2")]).frame.index.item()
    'x1, x2'
    >>> len(res.interaction_test("x1", "x2").table())
    4
    >>> len(res.additivity_test().table())
    12
    """

    effect_values: EffectValues | None = None
    predictor: Predictor | None = None
    scores: Scores | None = None
    reference: Any = None
    errors: OutOfBagErrors | None = field(default=None, repr=False, compare=False)
    recipe: Continuation | None = field(default=None, repr=False, compare=False)
    row_residuals: RowResiduals | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Omit the recipe, which has the training data and maybe functions."""
        state = {**self.__dict__, "errors": self.out_of_bag_errors, "recipe": None}
        return plain_state(state)

    __setstate__ = take_state

    def __deepcopy__(self, memo: dict[int, Any]) -> "EnsembleResults":
        """Copy the recipe too, unlike pickles."""
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    @cached_property
    def out_of_bag_errors(self) -> OutOfBagErrors | None:
        """Out-of-bag residuals of single observations, and their local scale."""
        return collect_residuals(self)

    @property
    def typical(self) -> pd.DataFrame | None:
        """The typical row: medians, and the most frequent levels."""
        return self.info.typical

    @property
    def effects(self) -> pd.DataFrame | None:
        """Change of the estimate when one predictor moves, the others being typical.

        Numeric predictors move from their 10 % to their 90 % quantile, factors from
        the reference level to each other level. None for kernels that do not predict.
        """
        return self.effects_frame()

    def effects_frame(self, alpha: float = 0.05) -> pd.DataFrame | None:
        """Tabulate the `effects` with intervals of coverage 1 - alpha."""
        moves, estimates = self.effect_values, self.effect_estimates
        if moves is None or estimates is None:
            return None
        table = estimates_frame(estimates, moves.frame.index, alpha)
        return pd.concat([moves.frame, table], axis=1)

    @cached_property
    def effect_estimates(self) -> Estimates | None:
        """Estimates of the effects, each the difference of two values."""
        moves = self.effect_values
        if moves is None:
            return None
        index, influence = moves.frame.index, moves.leaf_influence
        table = difference_table(self, moves.values, index, "Effects", influence)
        return table.estimates

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the estimates: `mean mean_se mean_ci_lower mean_ci_upper`.

        The last column, `se_mc_error`, is the Monte Carlo error of `mean_se`: how much
        another seed would change the standard error.
        """
        return mean_frame(self.estimates, self.labels, alpha)

    def glance(self) -> pd.DataFrame:
        """Describe the whole ensemble in one row, as R's broom does."""
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
        given = {"weights": self.info.weights, "groups": self.info.groups}
        row |= {name: text for name, text in given.items() if text is not None}
        scores = {} if self.scores is None else self.scores.table
        for name, value in scores.items():
            row[name.lower().replace(" ", "_").replace("-", "_")] = value
        return pd.DataFrame([row])

    def with_variance(self, name: str) -> "EnsembleResults":
        """Switch to another variance estimator without refitting."""
        return with_typical(with_pooled_variance(super().with_variance(name)))

    def _measure_orders(self) -> HigherOrders:
        """Measure the correction at the reference rows, if there are any."""
        predictor, rows = self.predictor, self.reference
        if predictor is None or rows is None:
            return super()._measure_orders()

        return measure_orders(
            self.design,
            self.B,
            lambda L: predictor.first(L).values(rows)[:L],
            self.kind,
        )

    def _restriction_table(self, R: Restrictions) -> EstimateTable:
        """Add the effects, for restrictions that name them."""
        moves = self.effect_values
        if moves is None or not isinstance(R, str):
            return self
        texts, names = label_texts(self.labels), effect_names(moves.frame)
        new = [place for place, name in enumerate(names) if name not in texts]
        for name in names:
            if name in texts and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", R):
                raise ValueError(
                    f"{name!r} is the name of an effect and of an estimate. Rename the "
                    "predictor, change the labels of `at`, or give a matrix with a "
                    "column for each estimate."
                )
        m, e = len(texts), len(new)
        limit, support = self.limit, self.support
        influence, of_moves = self.leaf_influence, moves.leaf_influence
        if influence is not None and of_moves is not None:
            influence = LeafInfluence.join([influence, of_moves.take(new)])
        if limit is not None:
            own = np.broadcast_to(np.asarray(limit, dtype=np.float64), m)
            limit = np.concatenate([own, np.full(e, 2 * own.max())])
        if support is not None:
            support = support.join(support.of_differences, m, e)
        return derive_table(
            self,
            EstimateTable,
            values=np.concatenate([self.values, moves.values[:, new]], axis=1),
            labels=pd.Index([*texts, *(names[place] for place in new)]),
            limit=limit,
            support=support,
            tails=None if self.tails is None else self.tails.join(m, e),
            leaf_influence=influence,
        )

    def _column_stats(self) -> dict[str, Any]:
        scores = {} if self.scores is None else self.scores.table
        return {**super()._column_stats(), **scores}

    def _column(self, alpha: float = 0.05) -> Column:
        effects = self.effects_frame(alpha)
        if effects is None:
            return super()._column(alpha)
        index = effects.index
        names = add_moves(effects, [str(name) for name in index.get_level_values(0)])
        if isinstance(index, pd.MultiIndex):
            names = add_classes(names, index)
        note = "change of the mean prediction, the others at the typical row"
        return self._make_column(effects, names, self.info.kernel, note)

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
            Total number of learners, more than the present one; "auto" grows until
            the standard errors are precise enough, as in `fit`.
        tol, atol, max_B, n_jobs, progress
            See `fit`; by default those of the fit, except `max_B`.

        Returns
        -------
        EnsembleResults
            The learners are those that `fit` with this `B` and the same seed grows;
            sums of out-of-bag predictions may differ in their last digits. A balanced
            ensemble continues after whole blocks. A complete ensemble cannot grow, nor
            can loaded results, or learners that were fitted elsewhere. A statistic is
            evaluated on the current contents of the data given to `statistic`.
        """
        tol = self.tolerance.tol if tol is None else tol
        atol = self.info.growth.atol if atol is None else atol
        growth = Growth(tol, max_B, atol)
        larger = continue_fit(self, B, growth, n_jobs=n_jobs, progress=progress)
        return with_residuals(larger)

    def summary2(self, alpha: float = 0.05, title: str | None = None) -> "Summary":
        """Summarise with all tables; the same as `summary(full=True)`."""
        return self.summary(alpha, full=True, title=title)

    def plot(
        self, ax: "Axes | None" = None, *, kind: str | None = None, **options: Any
    ) -> "Axes":
        """Draw the effects, or the estimates if there are no effects.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on.
        kind : str, optional
            Another plot: "estimates", "effects", "average effects", "profile",
            "partial dependence", "importance", "influence", "convergence", "bias" (see
            `bias_left`), or one added by `vstatkit.register_plot`.
        **options
            Options of the plot; see `vstatkit.plots`.
        """
        from vstatkit.plots.registry import draw  # noqa: PLC0415 takes results

        return draw(self, kind, ax, options)

    def report(
        self,
        path: str | PathLike[str],
        *,
        alpha: float = 0.05,
        title: str | None = None,
    ) -> None:
        """Write a self-contained HTML page: tables, plots, notes, settings and seed.

        The page loads nothing from the network, has no scripts, and can be printed. The
        same results give the same page.

        Parameters
        ----------
        path : str or path
            File to write, which ends with .html. An existing file is replaced.
        alpha, title
            See `summary`; the title is the heading of the page.
        """
        from vstatkit.report.contents import write_report  # noqa: PLC0415 rarely needed

        write_report(self, path, alpha, title)

    @overload
    def predict(
        self, data: DataLike | None = None, *, out: None = None
    ) -> pd.Series | pd.DataFrame: ...

    @overload
    def predict(
        self, data: DataLike | None = None, *, out: str | PathLike[str]
    ) -> Path: ...

    @with_advice
    def predict(
        self, data: DataLike | None = None, *, out: str | PathLike[str] | None = None
    ) -> pd.Series | pd.DataFrame | Path:
        """Predict new data.

        Parameters
        ----------
        data : DataFrame, path to a Parquet or CSV file, ..., optional
            New data, of any kind that `fit` takes. By default the training rows,
            predicted by all learners; `fittedvalues` has out-of-bag predictions.
        out : str or path, optional
            Parquet or CSV file to which predictions are written in batches, for data
            that do not fit into memory.

        Returns
        -------
        Series, or DataFrame with a column for each of more than two classes
            With `out`, the path of the file, which has one row per row of the data.
        """
        predict_rows = partial(predict_means, self)
        means: pd.Series | pd.DataFrame | Path = _predict(self, data, out, predict_rows)
        return means

    @overload
    def get_prediction(
        self,
        data: DataLike | None = None,
        *,
        out: None = None,
        alpha: float = 0.05,
        obs_method: str | None = None,
    ) -> PredictionResults: ...

    @overload
    def get_prediction(
        self,
        data: DataLike | None = None,
        *,
        out: str | PathLike[str],
        alpha: float = 0.05,
        obs_method: str | None = None,
    ) -> Path: ...

    @with_advice
    def get_prediction(
        self,
        data: DataLike | None = None,
        *,
        out: str | PathLike[str] | None = None,
        alpha: float = 0.05,
        obs_method: str | None = None,
    ) -> PredictionResults | Path:
        """Predict new data, with standard errors and intervals.

        Parameters
        ----------
        data, out
            See `predict`; the file has the `summary_frame`.
        alpha : float
            One minus the coverage of the intervals in the file.
        obs_method : {"local", "residuals", "jackknife+"}, optional
            Method for the limits of a new observation, which come from out-of-bag
            residuals. "local", the default, scales the residuals by their expected
            size, which a small forest predicts, so limits are narrow where residuals
            are small. "residuals" gives limits of the same width everywhere.
            "jackknife+" is the jackknife+ after bootstrap, which covers with
            probability at least `1 - 2 alpha`, and usually `1 - alpha`. Results for
            which "local" is not available (fitted in R, or saved by an earlier
            version) use "residuals" by default.

        Returns
        -------
        PredictionResults
            With `out`, the path of the file, which has one row per row of the data, or
            per row and class.
        """

        def predict_rows(rows: DataLike) -> PredictionResults | pd.DataFrame:
            prediction = predict_with_errors(self, rows, obs_method)
            return prediction if out is None else prediction.summary_frame(alpha)

        prediction: PredictionResults | Path = _predict(self, data, out, predict_rows)
        return prediction

    def avg_predictions(
        self, data: DataLike | None = None, by: By = None, se: str = "sample"
    ) -> Averages:
        """Average the predictions over rows, with standard errors.

        The average of a learner's predictions is a kernel, so its standard error comes
        from the learners as that of a prediction does.

        Parameters
        ----------
        data : DataFrame, optional
            Rows to average over; the training rows by default (at most 20,000, drawn
            by the seed). If the fit has `weights`, averages are weighted: training
            rows have their own weights, other rows those in the column of that name.
        by : str or list of str, optional
            Column, or columns, for whose levels (combinations of levels) averages are
            computed separately.
        se : {"sample", "population"}
            Standard errors conditional on the rows, or for the population that the
            rows were drawn from, which includes the sampling of the rows; see
            `vstatkit.inference.population.population_estimates`. Rows of `data` with
            the labels and values of training rows are recognised as training rows;
            other rows are taken to be independent of them. At most 100 evenly spaced
            ones of each average (fewer if there are many averages) are used to estimate
            how much of the spread of the predictions is their error.
        """
        return average_predictions(self, data, by, se)

    def avg_effects(
        self,
        variables: Variables | None = None,
        data: DataLike | None = None,
        by: By = None,
        se: str = "sample",
    ) -> Averages:
        """Average over rows the change of the prediction when one predictor moves.

        All other predictors have their observed values, row by row.

        Parameters
        ----------
        variables : str, list of str or dict, optional
            Predictors that move, one at a time; all by default. Numeric predictors
            move from their 10 % to their 90 % quantile, factors from the reference
            level (the first one unless the formula names another) to each other level,
            as in `effects`. Quantiles and levels are those of the training data. A
            dict gives both ends of each move.
        data, by, se
            See `avg_predictions`.
        """
        return average_moves(self, variables, data, by, se)

    def avg_slopes(
        self,
        variables: Variables | None = None,
        data: DataLike | None = None,
        by: By = None,
        step: float | Mapping[str, float] | None = None,
        se: str = "sample",
    ) -> Averages:
        r"""Average over rows the slope of the predictions along one predictor.

        Parameters
        ----------
        variables : str or list of str, optional
            Predictors; all by default. Factors, which have no slope, appear as
            contrasts with their reference level, as in `avg_effects`.
        data, by, se
            See `avg_predictions`. Rows in which the predictor is missing are left out
            of its average; the table shows the number of `rows`.
        step : float or dict, optional
            Least distance between the two values of a numeric predictor that are
            compared; one standard deviation by default. Trees are step functions: a
            short step crosses few splits, and its slope is mostly noise. A predictor
            with two values, such as 0 and 1, moves from one to the other in every row.

        Notes
        -----
        The slope of learner b is the mean of secants between observed values of the
        predictor,

        .. math::

            s_b = \sum_i w_i \,
            \frac{f_b(x_i^+, z_i) - f_b(x_i^-, z_i)}{x_i^+ - x_i^-} ,
            \qquad x_i^+ - x_i^- \ge h ,

        where :math:`z_i` are the other predictors of row i, and :math:`w_i` are the
        weights of the rows, equal unless the fit was weighted. The values
        :math:`x_i^-` and :math:`x_i^+` are the nearest observed values outside a window
        of width h about :math:`x_i`. A window that leaves the range of the training
        data is shifted into it, because forests are constant beyond; if the range is
        shorter than h, its ends are compared. A secant therefore crosses all splits
        between two observed values, wherever between them the splits are: the slope of
        a 0/1 predictor is the one-unit change, for any `step`, and the slope of a
        linear function is its coefficient. The slope is linear in the values of the
        learners, so its standard error comes from them as that of a prediction does.
        """
        return average_moves(self, variables, data, by, se, slopes=True, step=step)

    @with_advice
    def partial_dependence(
        self,
        *variables: str | Sequence[str],
        data: DataLike | None = None,
        points: int | None = None,
        grid: Any = None,
        se: str = "sample",
    ) -> "Curve":
        """Average the predictions over rows, with one or two predictors fixed.

        Parameters
        ----------
        *variables : str
            One or two predictors, also as a list.
        data : DataFrame, optional
            Rows to average over; by default at most 2,000 training rows (500 with two
            predictors), drawn by the seed.
        points : int, optional
            Number of grid points of a numeric predictor, quantiles from 5 % to 95 %;
            30 by default, 10 with two predictors. Factors have all their levels.
        grid : array-like or dict, optional
            The grid itself; for two predictors a dict of grids by name.
        se : {"sample", "population"}
            See `avg_predictions`.

        References
        ----------
        Friedman (2001), Greedy function approximation. doi:10.1214/aos/1013203451
        """
        from vstatkit.results.dependence_curves import dependence  # noqa: PLC0415 takes results

        return dependence(
            self, name_tuple(variables), data, points=points, grid=grid, se=se
        )

    def accumulated_effects(
        self,
        *variables: str | Sequence[str],
        data: DataLike | None = None,
        points: int | None = None,
    ) -> "Curve":
        """Accumulate local effects of one or two numeric predictors.

        The mean of the curve over the rows is zero. Standard errors are conditional on
        these rows and this grid.

        Parameters
        ----------
        *variables : str
            One numeric predictor, or two for their interaction beyond the effects of
            each, also as a list.
        data : DataFrame, optional
            Rows; by default the training rows, at most 20,000 drawn by the seed.
        points : int, optional
            Intervals of the grid, between quantiles; 20 by default, 8 with two
            predictors.

        References
        ----------
        Apley and Zhu (2020), Visualizing the effects of predictor variables in black
        box supervised learning models. doi:10.1111/rssb.12377
        """
        from vstatkit.results.dependence_curves import accumulate_effects  # noqa: PLC0415 takes results

        return accumulate_effects(self, name_tuple(variables), data, points)

    @property
    def feature_test(self) -> NoReturn:
        """Raise an error; `importance` replaces it."""
        raise AttributeError(
            "feature_test was removed: its p-values depended on the seed, and it had "
            "less power than importance(), which tests the same null hypothesis. Use "
            "res.importance(['x1']).frame['p_value']."
        )

    @property
    def permutation_test(self) -> NoReturn:
        """Raise an error; `importance` replaces it."""
        raise AttributeError(
            "permutation_test was removed: it rejected irrelevant proxies of relevant "
            "predictors too often. Use res.importance(['x1']).frame['p_value'], or "
            "res.importance([('x1', 'x2')]) for several predictors together."
        )

    def importance(
        self,
        variables: "PredictorSets" = None,
        *,
        how: "How" = "conditional",
        copies: int = 20,
        learners: int | None = None,
    ) -> "Importance":
        r"""Estimate each predictor's reduction in out-of-bag loss, and test it.

        The loss is the squared error; for classes, the summed squared error of the
        probabilities.

        Parameters
        ----------
        variables : str or sequence, optional
            Predictors, as columns of the data; all by default, one by one. A tuple of
            names is a set of predictors that are tested together.
        how : {"conditional", "permute"}
            Values that replace the predictor in out-of-bag predictions. "conditional":
            copies that depend on the other predictors as the original does, but on the
            response only through them. The null hypothesis is that the response does
            not depend on the predictor, given the others. "permute": its values in
            other rows. Irrelevant proxies of relevant predictors then appear
            important, so there are neither p-values nor intervals.
        copies : int
            Number of copies that losses are averaged over.
        learners : int, optional
            Number of learners to use: by default 500 trees, which are grown if the fit
            has fewer; other kernels use at most those of the fit. Designs other than
            "iid" use all learners of the fit. With `target="truth"` they are the
            learners behind the standard errors, not the stacked ensemble.

        Notes
        -----
        With f the out-of-bag prediction of a row, :math:`\tilde f` its mean with copies
        and g a prediction of the response from the other predictors, the importance is
        the mean of :math:`2 (y - g)(f - \tilde f)`. With ideal copies this has the
        expectation of the reduction in loss, :math:`(y - \tilde f)^2 - (y - f)^2`, but
        errors of the copies matter only if g has errors too; see `saved_losses`.

        The standard error is over data sets: it includes the influence of every
        observation through its own row and through the learners that saw it. The
        interval covers the expected importance of an ensemble of this size. The p-value
        is one-sided and uses a standard error that is derived under the null (see
        `mean_saved`); rows with few neighbours are downweighted by
        :math:`(1 - h)^2`, where h is the leverage of the row in the prediction g.
        `holm` controls the family-wise error rate, `bh` the false discovery rate.

        A copy is a prediction of the predictor from the others (see `explain`) plus
        the residual of another row; it has the values of the predictor in another
        order. Levels are drawn from out-of-bag shares. Copies of several predictors
        come from the same row. The mean is weighted if the fit has sampling weights;
        copies and g are unweighted.

        References
        ----------
        Watson and Wright (2021), Testing conditional independence in supervised
        learning algorithms. doi:10.1007/s10994-021-06030-6

        Williamson, Gilbert, Simon and Carone (2023), A general framework for inference
        on algorithm-agnostic variable importance. doi:10.1080/01621459.2021.2003200

        Candès, Fan, Janson and Lv (2018), Panning for gold. doi:10.1111/rssb.12265
        """
        from vstatkit.results.importance import importance  # noqa: PLC0415

        return importance(self, variables, how=how, copies=copies, learners=learners)

    def interaction_test(
        self,
        first: str,
        second: str,
        *,
        grid: int = 3,
        rows: int = 50,
        learners: int | None = None,
    ) -> "InteractionTest":
        """Test whether two predictors are additive in the expectation of the ensemble.

        The result prints as one row of a table; `table()` has the contrasts.

        Parameters
        ----------
        first, second : str
            Predictors, as columns of the data.
        grid : int
            Number of values of each predictor: quantiles of a numeric predictor (all
            values if there are no more), the most frequent levels of a factor.
        rows : int
            Number of rows of the data, drawn by the seed, that contrasts are averaged
            over; they supply the other predictors.
        learners : int, optional
            Number of learners to use, see `importance`; 1000 by default.

        Notes
        -----
        With values u of the first and v of the second predictor, additivity implies
        that all contrasts `f(u_i, v_j) - f(u_i, v_0) - f(u_0, v_j) + f(u_0, v_0)` are
        zero. f is the expectation of the ensemble, not E[y|x]: trees are not quite
        additive even if E[y|x] is, so a small p-value is evidence of an interaction in
        the *fit*, not in the data-generating process.

        References
        ----------
        Mentch and Hooker (2017), Formal hypothesis tests for additive structure in
        random forests. doi:10.1080/10618600.2016.1256817
        """
        from vstatkit.results.predictor_tests import interaction_test  # noqa: PLC0415

        return interaction_test(
            self, first, second, grid=grid, rows=rows, learners=learners
        )

    def additivity_test(
        self,
        variables: Sequence[str] | None = None,
        *,
        grid: int = 3,
        rows: int = 50,
        learners: int | None = None,
    ) -> "InteractionTest":
        """Test whether all pairs of predictors are additive in the ensemble.

        The result has the contrasts of all pairs of the `variables`, which are all
        predictors by default. See `interaction_test`, and its notes on trees.
        """
        from vstatkit.results.predictor_tests import additivity_test  # noqa: PLC0415

        return additivity_test(self, variables, grid=grid, rows=rows, learners=learners)

    def bias_left(self, data: DataLike | None = None) -> pd.DataFrame:
        """Estimate the bias of predictions as estimates of E[y|x], out of bag.

        The columns are `bias` of the predictions at the rows of `data`, by default the
        query points; its `std_error`; and `share`, the bias divided by the standard
        error of the prediction. If the share is well above 0.5, intervals cover E[y|x]
        less often than their nominal level.

        The estimate is out-of-bag predictions minus responses, smoothed by a forest.
        Smoothing flattens it, so the true bias tends to be larger.
        `res.plot(kind="bias")` draws it, with `data=` for new data.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> at = {name: [0.9] for name in ["x1", "x2", "x3", "x4", "x5"]}
        >>> for trend in (None, "linear"):
        ...     res = vs.fit("y ~ .", data, at=at, B=500, rng=1, trend=trend)
        ...     print(res.bias_left().round(1).to_string(index=False))
         bias  std_error  share
         -2.2        0.5   -2.0
         bias  std_error  share
          0.2        0.5    0.2
        """
        from vstatkit.results.bias import estimate_bias  # noqa: PLC0415 takes results

        return estimate_bias(self, data)

    def bootstrap(
        self,
        R: int = 200,
        *,
        B: int | None = None,
        rng: Seed = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Bootstrap:
        """Repeat the whole fit on resampled data (Efron and Tibshirani, 1993).

        The n observations (or clusters) are resampled with replacement, and an ensemble
        of the same size is fitted to them. Formula, query points and the choices of
        `target="truth"` are not repeated: the learners behind the standard errors are
        refitted, and their estimates are shifted as those of the fit were.

        Parameters
        ----------
        R : int
            Number of resampled data sets.
        B : int, optional
            Learners of each ensemble; by default those of the fit. Fewer learners are
            faster, but add Monte Carlo variance.
        rng : int, Generator or None
            Seed of the resampling; by default derived from that of the fit.
        n_jobs, progress
            See `fit`; by default those of the fit.
        checkpoint : str or path, optional
            Directory in which repetitions are saved as they are computed. If an
            interrupted bootstrap of the same fit is called again, it resumes from there
            with the same numbers, also with a larger `R`. Other data, fits or seeds
            raise an error, and so does a second process at the same time.

        Returns
        -------
        Bootstrap
            Standard errors and percentile intervals beside those of the fit, and
            normality tests of the R estimates; `plot()` draws their quantiles.
        """
        return bootstrap_fit(
            self,
            R,
            B=B,
            rng=rng,
            n_jobs=n_jobs,
            progress=progress,
            checkpoint=checkpoint,
        )

    @property
    def formula(self) -> str | None:
        """The formula as written; None if there was none."""
        return self.info.formula

    @property
    def model(self) -> FittedModel:
        """The fitted model, under statsmodels' names."""
        info, names = self.info, label_texts(self.labels)
        coding = None if self.predictor is None else self.predictor.coding
        columns = names if coding is None else coding.names
        data = ModelData(names, info.response)
        return FittedModel(info.formula, info.response, columns, info.kernel, data)

    @property
    def fittedvalues(self) -> pd.Series | pd.DataFrame:
        """Out-of-bag predictions of the training rows.

        Each row is predicted by the learners that have not seen it; `predict()` without
        data uses all learners. Rows that every learner has seen have a missing value.
        For a categorical response these are probabilities: of the second of two
        classes, or of each of more classes in a column of its own.
        """
        recipe, oob = _out_of_bag(self)
        return _label_rows(self, oob.mean, recipe, oob)

    @property
    def resid(self) -> pd.Series | pd.DataFrame:
        """Out-of-bag residuals: response minus `fittedvalues`.

        For more than two classes, the response is an indicator of each class.
        """
        recipe, oob = _out_of_bag(self)
        y, outputs = oob.of(np.asarray(recipe.y)), oob.total.shape[1]
        codes = np.asarray(np.equal.outer(y, np.arange(outputs)), dtype=float)
        observed = y[:, None] if outputs == 1 else codes
        return _label_rows(self, observed - oob.mean, recipe, oob)

    @property
    def rsquared(self) -> float:
        """Out-of-bag R-squared of a numeric response."""
        scores = self.scores
        if scores is None or R_SQUARED not in scores.table:
            raise AttributeError(
                "`rsquared` requires a numeric response that varies, and out-of-bag "
                "predictions; `glance()` has the available scores."
            )
        return scores.table[R_SQUARED]


def _predict(
    results: EnsembleResults,
    data: DataLike | None,
    out: str | PathLike[str] | None,
    predict_rows: Callable[[Any], Any],
) -> Any:
    """Predict rows at once, or in batches that are written to a file.

    Warn once of rows far outside the training data.
    """
    data = training_rows(results) if data is None else data
    predictor, warned = results.predictor, False

    def predict_and_warn(rows: Any) -> Any:
        nonlocal warned
        prediction = predict_rows(rows)
        if not warned and predictor is not None and predictor.coding is not None:
            named, ranges = predictor.named(rows), results.info.ranges
            warned = bool(warn_of_new_rows(named, predictor.coding, ranges))
        return prediction

    if out is None:
        return predict_and_warn(read_into_memory(results, data))
    return write_predictions(results, data, out, predict_and_warn)


def _out_of_bag(results: EnsembleResults) -> tuple[Continuation, OutOfBag]:
    """Return the out-of-bag sums and their recipe, or raise an error."""
    recipe = results.recipe
    if recipe is not None and recipe.oob is not None and recipe.y is not None:
        return recipe, recipe.oob
    reason = (
        "they were loaded from a file or a pickle, or their learners were fitted "
        "elsewhere"
        if recipe is None
        else "nothing was predicted out of bag (a statistic, or oob=False)"
    )
    raise ValueError(
        f"these results have no out-of-bag predictions of the training rows: {reason}."
    )


def _label_rows(
    results: EnsembleResults, values: Floats, recipe: Continuation, oob: OutOfBag
) -> pd.Series | pd.DataFrame:
    """Label values of the training rows that were predicted out of bag."""
    data = recipe.data
    labels: Labels = pd.RangeIndex(results.nobs) if data is None else data.index
    labels = labels if oob.rows is None else labels[oob.rows]
    if values.shape[1] == 1:
        return pd.Series(values[:, 0], labels, name=results.info.response)
    predictor = results.predictor
    classes: Any = None if predictor is None else list(predictor.classes or ())
    return pd.DataFrame(values, labels, classes)
