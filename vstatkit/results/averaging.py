"""Methods of results that average over rows, and what they compute."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.marginal_averages import Averager, By, Division, RowMove, Sample
from vstatkit.inference.population import RowInfluence
from vstatkit.results.learners import averaging_predictor
from vstatkit.results.moves import (
    Variables,
    effect_moves,
    ends_note,
    listed,
    output_index,
    slopes_of,
    sort_arguments,
    unmoved,
)
from vstatkit.results.rows import (
    averaged_results,
    averager_of,
    observed_of,
    sample_of,
)
from vstatkit.validation import with_advice

if TYPE_CHECKING:
    from vstatkit.results.averages import Averages
    from vstatkit.results.curves import Curve
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.transforming import Function, Transformed


def _results(averaging: "Averaging") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", averaging)


class Averaging:
    """Methods of results that average over rows."""

    def avg_predictions(
        self, data: DataLike | None = None, by: By = None, se: str = "sample"
    ) -> "Averages":
        """Average the predictions over rows, with standard errors.

        Parameters
        ----------
        data : DataFrame, optional
            Rows to average over; the training rows by default (of more than 20,000
            rows so many, drawn by the seed). Rows of a fit with `weights` count by
            their weights: training rows by their own, other rows by the column of
            that name.
        by : str or list of str, optional
            A column: one average for each of its levels. Several columns: one for
            each combination of levels that occurs.
        se : {"sample", "population"}
            Standard errors for these rows as they are, or for the population that
            they were drawn from, which includes the sampling of the rows. Rows of
            `data` that are training rows (the same labels and values) are known as
            such; others are taken as independent of the training data.

        Returns
        -------
        Averages

        Notes
        -----
        The average of a learner's predictions is a kernel, so that its standard error
        comes from the learners as that of a prediction does; see
        `vstatkit.inference.population.population_estimates` for the population. Of
        rows that are no training rows at most 100 in each average, evenly spaced (and
        fewer, if averages are many), tell how much of the spread of the predictions
        is their error: a mean over them is enough, and it is divided by the number of
        all rows.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> res.avg_predictions(se="population").frame.index.to_list()
        ['average']
        """
        results = _results(self)
        sample = sample_of(results, data)
        averager, division = averager_of(results, sample, se), Division(sample, by)
        weights = averager.weights(division.shares, 1)
        averages_by_learner = averager.averages([{}], [weights])
        points = averager.influence(averages_by_learner, [weights])
        labels = pd.Index(["average"])
        if division.columns:
            labels = _level_index([()], division)
        table = pd.DataFrame({"rows": division.counts}, labels)
        averages = _made(
            results,
            averager,
            [averages_by_learner[0].values],
            table,
            ("average predictions", se),
            points=points,
        )
        return replace(averages, by=division.columns)

    def avg_effects(
        self,
        variables: Variables | None = None,
        data: DataLike | None = None,
        by: By = None,
        se: str = "sample",
    ) -> "Averages":
        """Average over rows what changes when one predictor moves.

        Parameters
        ----------
        variables : str, list of str or dict, optional
            Predictors that move, one at a time; all by default. Numbers move from
            their 10 % to their 90 % quantile, categories from the reference level
            (the first one unless the formula names another) to each other one, as in
            `effects`. Quantiles and levels are those of the training data. A dict
            gives both ends.
        data, by, se
            See `avg_predictions`.

        Returns
        -------
        Averages
            All other predictors stay as they were observed, row by row.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> table = res.avg_effects({"x4": (0.2, 0.8)}).frame
        >>> table[["from", "to"]].iloc[0].to_list()
        [0.2, 0.8]
        """
        results = _results(self)
        variables, data = sort_arguments("avg_effects", variables, data)
        sample, predictor = sample_of(results, data), averaging_predictor(results)
        observed = observed_of(results, sample.frame)
        moves = effect_moves(variables, predictor, observed)
        whole = np.ones(len(sample))
        settings = [
            RowMove({move.name: move.start}, {move.name: move.end}, whole)
            for move in moves
        ]
        table = pd.DataFrame(
            [[move.start, move.end] for move in moves],
            index=pd.Index([move.name for move in moves], name="predictor"),
            columns=["from", "to"],
            dtype=object,
        )
        found = _moved(
            results, sample, settings, table, by=by, words=("average effects", se)
        )
        return replace(
            found,
            constant=unmoved(variables, predictor, list(table.index)),
            notes=ends_note(variables, moves, observed),
        )

    def avg_slopes(
        self,
        variables: Variables | None = None,
        data: DataLike | None = None,
        by: By = None,
        step: float | Mapping[str, float] | None = None,
        se: str = "sample",
    ) -> "Averages":
        r"""Average over rows the slope of the predictions along one predictor.

        Parameters
        ----------
        variables : str or list of str, optional
            Predictors; all by default. Factors, which have no slope, appear as
            contrasts with their reference level, as in `avg_effects`.
        data, by, se
            See `avg_predictions`.
        step : float or dict, optional
            Least distance between the two values of a numeric predictor that are
            compared; one standard deviation by default. Trees are step functions: a
            short step crosses few of their splits, and its slope is mostly noise.

        Returns
        -------
        Averages
            A predictor with two values, such as 0 and 1, is moved from one to the
            other in every row, and the change is divided by their distance; the
            table shows both. For other numbers it shows the `step`.

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
        :math:`x_i^-` and :math:`x_i^+` are the observed values nearest to the ends of
        a window of width h about :math:`x_i`, on the outside; a window that leaves the
        range of the training data is shifted into it, because forests are flat
        beyond. If the range is shorter than h, both ends of it are compared. So a
        secant always crosses the splits between two observed values, and it does not
        matter where between them the splits are: the slope of a 0/1 predictor is the
        one-unit change, for any `step`; a linear function has its coefficient as
        slope. The slope is linear in the values of the learners, so that its standard
        error comes from them as that of a prediction does.

        Rows in which the predictor is missing have no slope, and are left out of its
        average; the table shows the number of `rows`.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> res.avg_slopes("x4", step=0.5).frame["step"].to_list()
        [0.5]
        """
        results = _results(self)
        variables, data = sort_arguments("avg_slopes", variables, data)
        sample, predictor = sample_of(results, data), averaging_predictor(results)
        observed = observed_of(results, sample.frame)
        slopes = slopes_of(variables, predictor, sample.frame, observed, step)
        table = pd.DataFrame(
            {
                "from": pd.Series([slope.start for slope in slopes], dtype=object),
                "to": pd.Series([slope.end for slope in slopes], dtype=object),
                "step": [slope.step for slope in slopes],
            }
        ).set_axis(pd.Index([slope.name for slope in slopes], name="predictor"))
        moves = [slope.move for slope in slopes]
        averages = _moved(
            results, sample, moves, table, by=by, words=("average slopes", se)
        )
        constant = unmoved(variables, predictor, list(table.index))
        numeric = any(np.isfinite(slope.step) for slope in slopes)
        note = observed.note("the steps and ends of slopes are") if numeric else None
        notes = () if note is None else (note,)
        return replace(averages, constant=constant, notes=notes)

    @with_advice
    def partial_dependence(
        self,
        *variables: str | Sequence[str],
        data: DataLike | None = None,
        points: int | None = None,
        grid: Any = None,
        se: str = "sample",
    ) -> "Curve":
        """Average the predictions over rows, with one or two predictors set.

        Parameters
        ----------
        *variables : str
            One predictor, or two; a list of them is taken too.
        data : DataFrame, optional
            Rows to average over; by default the training rows: at most 2,000 (500
            with two predictors), drawn by the seed.
        points : int, optional
            Points on the grid of a numeric predictor: quantiles from 5 % to 95 %; 30
            by default, 10 with two predictors. Factors have all their levels.
        grid : array-like or dict, optional
            The points themselves; a dict of them by name for two predictors.
        se : {"sample", "population"}
            See `avg_predictions`.

        Returns
        -------
        Curve

        References
        ----------
        Friedman (2001), Greedy function approximation: a gradient boosting machine,
        Annals of Statistics 29. doi:10.1214/aos/1013203451

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> curve = res.partial_dependence("x4", points=5)
        >>> curve.frame.shape[0], curve.conf_int(simultaneous=True).shape
        (5, (5, 2))
        """
        from vstatkit.results.curves import dependence  # noqa: PLC0415 takes results

        return dependence(
            _results(self), listed(variables), data, points=points, grid=grid, se=se
        )

    def accumulated_effects(
        self,
        *variables: str | Sequence[str],
        data: DataLike | None = None,
        points: int | None = None,
    ) -> "Curve":
        """Accumulate local effects of one numeric predictor, or of two together.

        Parameters
        ----------
        *variables : str
            One numeric predictor, or two: then what they do together, beyond what
            each does by itself. A list of them is taken too.
        data : DataFrame, optional
            Rows; by default the training rows, at most 20,000 drawn by the seed.
        points : int, optional
            Intervals of the grid, between quantiles; 20 by default, 8 with two
            predictors.

        Returns
        -------
        Curve
            It has a mean of zero over the rows. Standard errors are for these rows and
            this grid as they are.

        References
        ----------
        Apley and Zhu (2020), Visualizing the effects of predictor variables in black
        box supervised learning models, Journal of the Royal Statistical Society B 82.
        doi:10.1111/rssb.12377

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> len(res.accumulated_effects("x4", points=5).frame)
        6
        """
        from vstatkit.results.curves import accumulated  # noqa: PLC0415 takes results

        return accumulated(_results(self), listed(variables), data, points)

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
        from vstatkit.results.transforming import transformed  # noqa: PLC0415

        return transformed(_results(self), f)


def _moved(
    results: "EnsembleResults",
    sample: Sample,
    moves: Sequence[RowMove],
    table: pd.DataFrame,
    *,
    by: By,
    words: tuple[str, str],
) -> "Averages":
    """Average differences between two settings of the rows, over their widths."""
    averager, division = averager_of(results, sample, words[1]), Division(sample, by)
    shares = [move.shares_of(division.shares) for move in moves]
    weights = [averager.weights(own, len(moves)) for own in shares]
    found = averager.slopes(moves, weights)
    points = averager.influence(found, weights)
    g = len(division.counts)
    places = np.repeat(np.arange(len(table)), g)
    index = table.index
    if division.columns:
        index = _level_index([(name,) for name in index], division)
    table = table.iloc[places].set_axis(index)
    table = table.assign(rows=np.concatenate([(own > 0).sum(axis=1) for own in shares]))
    pairs = zip(moves, shares, strict=True)
    divisors = np.concatenate([move.divisors(own) for move, own in pairs])
    values = [one.values for one in found]
    averages = _made(
        results, averager, values, table, words, points=points, divisors=divisors
    )
    return replace(averages, by=division.columns).distinct


def _level_index(names: Sequence[tuple[Any, ...]], division: Division) -> pd.Index:
    """Label every level of a division, once for each of several names before it."""
    single = len(division.columns) == 1
    levels = [(level,) if single else level for level in division.levels]
    tuples = [(*name, *level) for name in names for level in levels]
    columns = [*(["predictor"] if names[0] else []), *division.columns]
    index: pd.Index
    if len(columns) == 1:
        index = pd.Index(division.levels, name=columns[0])
    else:
        index = pd.MultiIndex.from_tuples(tuples, names=columns)
    return index


def _made(
    results: "EnsembleResults",
    averager: Averager,
    values: Sequence[Floats],
    table: pd.DataFrame,
    words: tuple[str, str],
    *,
    points: RowInfluence | None,
    divisors: Floats | None = None,
) -> "Averages":
    """Label averages, every output of each, and put the table together."""
    from vstatkit.results.averages import Averages  # noqa: PLC0415 takes results

    predictor = averager.predictor
    what, se = words
    index = output_index(table.index, predictor.classes)
    repeats = len(index) // len(table)
    settings = table.iloc[np.repeat(np.arange(len(table)), repeats)].set_axis(index)
    made = averaged_results(
        results,
        np.concatenate(values, axis=1),
        index,
        what.capitalize(),
        points=points,
        differences=None if divisors is None else np.repeat(divisors, repeats),
    )
    return Averages(made, settings, what, str(averager.sample), se)
