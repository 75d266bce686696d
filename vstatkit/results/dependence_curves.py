"""Partial dependence, accumulated effects and profiles."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.marginal_averages import (
    Averager,
    Intervals,
    accumulate_line,
    accumulate_map,
    average_grid,
    quantile_grid,
)
from vstatkit.ensemble.prediction import Predictor
from vstatkit.formula.column_summaries import as_variables
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import ContrastResults, EstimateTable, derive_table
from vstatkit.results.labels import add_classes, setting_text
from vstatkit.results.marginal_effects import (
    MOST_ROWS,
    ObservedPredictors,
    averaged_table,
    averager_of,
    averaging_predictor,
    check_variable,
    label_outputs,
    list_predictors,
    observed_predictors,
    predictor_names,
    sample_of,
    training_frame,
)
from vstatkit.results.model_description import Column
from vstatkit.text import suggest_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.prediction_results import PredictionResults


# Most rows that a partial dependence averages over, for one and two predictors.
CURVE_ROWS = {1: 2000, 2: 500}
CURVE_POINTS = {1: 30, 2: 10}  # grid points of every numeric predictor
CURVE_INTERVALS = {1: 20, 2: 8}  # intervals of every predictor of accumulated effects


@pickled_plainly
@dataclass(frozen=True, repr=False)
class Curve(EstimateTable):
    """Averages along one predictor, or over the plane of two, with their uncertainty.

    Attributes
    ----------
    grid : DataFrame
        The predictors at every point, indexed as the estimates.
    variables : tuple of str
        The predictors, one or two.
    factors : tuple of bool
        Which of them are factors.
    title, rows : str
        Kind of curve, and description of the rows.
    se : str
        Kind of standard error, "sample" or "population".
    rug : tuple of ndarray
        Values of every predictor in the rows, for the plot.
    notes : tuple of str
        Further notes below the table.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> curve = res.partial_dependence("x4", grid=[0.1, 0.5, 0.9])
    >>> curve.contrast(0.9, 0.1).params.index.to_list()
    ['x4: 0.1 → 0.9']
    """

    grid: pd.DataFrame = field(default_factory=pd.DataFrame)
    variables: tuple[str, ...] = ()
    factors: tuple[bool, ...] = ()
    title: str = ""
    rows: str = ""
    se: str = "sample"
    rug: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def results(self) -> EstimateTable:
        """The points as a plain table of estimates."""
        return derive_table(self, EstimateTable)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the points with tests and intervals of coverage 1 - alpha."""
        return pd.concat([self.grid, super().summary_frame(alpha)], axis=1)

    def contrast(self, to: Any = None, start: Any = None) -> ContrastResults:
        """Compare points of the curve with each other, or with its mean.

        The differences have standard errors from the same learners; there is one for
        each class if there are several.

        Parameters
        ----------
        to : value of the predictor, optional
            Point of the curve, a pair for two predictors; all points by default.
            Numbers stand for the nearest grid point, and may lie beyond the ends of
            the grid by half a step.
        start : value of the predictor, optional
            Point to compare with; by default the mean over the grid points.
        """
        n = self.n_points
        outputs, points = len(self.labels) // n, np.eye(n)
        places = list(range(n)) if to is None else [self._place(to)]
        base, origin = np.full(n, 1 / n), "mean"
        if start is not None:
            place = self._place(start)
            base, origin = points[place], self._text(place)
        differences = self.t_test(np.kron(points[places] - base, np.eye(outputs)))
        name = ", ".join(map(str, self.variables))
        texts = [f"{name}: {origin} → {self._text(place)}" for place in places]
        if outputs > 1:
            classes = self.labels[:outputs].get_level_values(-1)
            texts = [f"{text} [{level}]" for text in texts for level in classes]
        return replace(differences, labels=pd.Index(texts))

    @property
    def n_points(self) -> int:
        """Number of grid points, which several classes share."""
        return len(self._points)

    @property
    def _points(self) -> pd.DataFrame:
        return self.grid.drop_duplicates().reset_index(drop=True)

    def texts(self, *, named: bool = False) -> list[str]:
        """Write the point and class of each row, such as "0.5", or "x4 = 0.5"."""
        names = [f"{name} = " if named else "" for name in self.variables]
        texts = []
        for values in self.grid.to_numpy(object):
            pairs = zip(names, map(setting_text, values), strict=True)
            texts.append(", ".join(name + text for name, text in pairs))
        return add_classes(texts, self.labels) if len(texts) > self.n_points else texts

    def _text(self, place: int) -> str:
        return ", ".join(map(setting_text, self._points.iloc[place]))

    def _place(self, value: Any) -> int:
        """Find the grid point nearest to a value, or equal to a level."""
        wanted = value if isinstance(value, tuple) else (value,)
        if len(wanted) != len(self.variables):
            raise ValueError(
                f"a point must have values of {', '.join(self.variables)}; got "
                f"{value!r}."
            )
        points, distance = self._points, np.zeros(self.n_points)
        axes = zip(self.variables, self.factors, wanted, strict=True)
        for name, factor, coordinate in axes:
            if factor:
                gap = np.where(points[name] == coordinate, 0.0, np.inf)
            else:
                column = points[name].to_numpy(dtype=np.float64)
                gap = _gaps(column, float(coordinate), name)
            distance = distance + gap
        place = int(np.argmin(distance))
        if not np.isfinite(distance[place]):
            raise ValueError(f"{value!r} is not a point of the curve.")
        return place

    def summary(self, alpha: float = 0.05) -> "Summary":  # type: ignore[override]
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_curve  # noqa: PLC0415 slow

        return summarise_curve(self, alpha)

    def plot(self, ax: Any = None, *, alpha: float = 0.05) -> "Axes | Any":
        """Draw the curve with its intervals (dark) and band (light), and a rug.

        For two predictors, draw a map of the estimate and one of its standard error on
        the two axes `ax`, or on new ones, and return both axes.
        """
        from vstatkit.plots import marginal  # noqa: PLC0415 loads on demand

        if len(self.variables) == 2:
            return marginal.plot_map(self, axes=ax)
        return marginal.plot_curve(self, alpha=alpha, ax=ax)

    def _column(self, alpha: float = 0.05) -> Column:
        names = self.texts(named=True)
        frame = self.summary_frame(alpha)
        return self._make_column(frame, names, self.title.lower(), self.rows)

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.variables))
        text = f"{self.title} on {names}, {self.n_points} points, se={self.se!r}"
        return textwrap.shorten(f"<Curve: {text}", 90) + ">"


def _gaps(points: Floats, value: float, name: str) -> Floats:
    """Compute distances of a value from grid points, as shares of their range.

    Values more than half a step beyond the ends raise an error.
    """
    ends = np.unique(points)
    unit = float(ends[-1] - ends[0]) or 1.0
    first, last = np.diff(ends)[[0, -1]] if ends.size > 1 else (0.0, 0.0)
    if not ends[0] - first / 2 <= value <= ends[-1] + last / 2:
        raise ValueError(
            f"a point must be on the curve, from {name} = {ends[0]:.4g} to "
            f"{ends[-1]:.4g}; got {value:.4g}. Compute a curve with a larger `grid`."
        )
    return np.asarray(np.abs(points - value) / unit)


def _check_variables(variables: Sequence[str], predictor: Predictor) -> None:
    if not 1 <= len(variables) <= 2 or len(set(variables)) < len(variables):
        raise ValueError(
            f"`variables` must be one predictor, or two different ones; got "
            f"{list(variables)}, and {list_predictors(predictor_names(predictor))}"
        )
    for name in variables:
        check_variable(name, predictor_names(predictor))


def _grid_of(
    name: str,
    predictor: Predictor,
    observed: ObservedPredictors,
    points: int,
    grid: Any,
) -> list[Any]:
    """List the grid points of one predictor: given, levels or quantiles."""
    factor = predictor.is_category(name)
    if grid is not None:
        values = list(grid) if factor else [float(point) for point in np.unique(grid)]
    elif factor:
        values = observed.levels(name)
    else:
        column = observed.frame[name].to_numpy(dtype=np.float64)
        values = [float(point) for point in quantile_grid(column, points)]
    if not values:
        raise ValueError(f"the grid of {name!r} must have at least one point.")
    return values


def dependence(
    results: "EnsembleResults",
    variables: Sequence[str],
    data: DataLike | None,
    *,
    points: int | None,
    grid: Any,
    se: str,
) -> Curve:
    """Compute `EnsembleResults.partial_dependence`."""
    predictor, d = averaging_predictor(results), len(variables)
    everything = sample_of(results, data, None)
    _check_variables(variables, predictor)
    if d == 2 and grid is not None and not isinstance(grid, Mapping):
        raise ValueError("`grid` must be a dict of points by name for two predictors.")
    sample = sample_of(results, data, CURVE_ROWS[d])
    observed = observed_predictors(results, everything.frame)
    n_points = CURVE_POINTS[d] if points is None else points
    if n_points < 2:
        raise ValueError(f"`points` must be at least 2; got {n_points}.")
    given = grid if isinstance(grid, Mapping) else dict.fromkeys(variables, grid)
    axes = {
        name: _grid_of(name, predictor, observed, n_points, given.get(name))
        for name in variables
    }
    averager = averager_of(results, sample, se)
    values, influence = average_grid(averager, axes)
    new = [
        name
        for name in variables
        if given.get(name) is None
        and not (predictor.is_category(name) and observed.stored_moves(name))
    ]
    return _curve(
        results,
        averager,
        values,
        axes,
        title="Partial dependence",
        points=influence,
        notes=observed.notes(f"the points of {', '.join(new)} are") if new else (),
    )


def _curve(
    results: "EnsembleResults",
    averager: Averager,
    values: Floats,
    axes: Mapping[str, Sequence[Any]],
    *,
    title: str,
    **fields: Any,
) -> Curve:
    """Make the curve of values of shape (B, m), with a label for every output."""
    sample, predictor = averager.sample, averager.predictor
    table = pd.DataFrame(list(itertools.product(*axes.values())), columns=[*axes])
    if len(axes) == 1:
        index = pd.Index(table.iloc[:, 0])
    else:
        index = pd.MultiIndex.from_frame(table)
    grid = label_outputs(table.set_axis(index), predictor.classes)
    return averaged_table(
        results,
        averager,
        Curve,
        values,
        grid.index,
        heading=title,
        grid=grid,
        variables=tuple(axes),
        factors=tuple(predictor.is_category(name) for name in axes),
        title=title,
        rows=f"Averages over {sample}",
        rug=tuple(sample.frame[name].to_numpy() for name in axes),
        **fields,
    )


def accumulate_effects(
    results: "EnsembleResults",
    variables: Sequence[str],
    data: DataLike | None,
    points: int | None,
) -> Curve:
    """Compute `EnsembleResults.accumulated_effects`."""
    predictor, d = averaging_predictor(results), len(variables)
    sample = sample_of(results, data, MOST_ROWS)
    _check_variables(variables, predictor)
    for name in variables:
        if predictor.is_category(name):
            raise ValueError(
                "accumulated effects require numeric predictors; "
                f"{name!r} is a factor. Use partial_dependence."
            )
    n = CURVE_INTERVALS[d] if points is None else points
    if n < 1:
        raise ValueError(f"`points` must be at least 1; got {n}.")
    averager = averager_of(results, sample, "sample")
    columns = [sample.frame[name].to_numpy(dtype=np.float64) for name in variables]
    cuts = [
        Intervals.of(name, column, n, sample.weights)
        for name, column in zip(variables, columns, strict=True)
    ]
    if d == 1:
        values = accumulate_line(averager, cuts[0])
    else:
        values, _ = accumulate_map(averager, *cuts)
    return _curve(
        results,
        averager,
        values.reshape(len(values), -1),
        {cut.name: cut.edges.tolist() for cut in cuts},
        title="Accumulated local effects",
        differences=1.0,
        points=None,
        # The limits of single differences do not apply to sums of them.
        limit=None,
        support=None,
    )


@dataclass(frozen=True)
class Profile:
    """Predictions along one predictor."""

    x: Any  # values in the observed range of the predictor, or levels of a factor
    factor: bool  # whether the predictor is a factor
    prediction: "PredictionResults"  # predictions at these values
    observed: pd.Series | None  # the predictor in the training data, if available


def profile_of(results: "EnsembleResults", variable: str, n_points: int) -> Profile:
    """Predict along one predictor."""
    typical, predictor = _profile_inputs(results)
    if variable not in typical.columns:
        raise ValueError(
            f"`variable` must be a predictor; got {variable!r}"
            f"{suggest_name(str(variable), typical.columns)} The predictors are "
            f"{', '.join(map(str, typical.columns))}."
        )
    frame = training_frame(results)
    observed = None if frame is None else frame[variable]
    factor, moves = predictor.is_category(variable), results.effect_values
    x: Any
    if not factor:
        if n_points < 2:
            raise ValueError(f"`n_points` must be at least 2; got {n_points}.")
        numbers = np.empty(0) if observed is None else observed.dropna().to_numpy(float)
        x = np.unique(numbers)
        if not 1 < x.size <= n_points:  # observed values are shown if they are few
            x = np.linspace(*results.info.ranges[variable], n_points)
    elif observed is not None:
        x = list(as_variables(observed.to_frame()).levels(variable))
    elif moves is None or variable not in moves.frame.index.get_level_values(0):
        raise ValueError(f"these results do not have the levels of {variable!r}.")
    else:
        own_moves = moves.frame.loc[[variable]]
        x = list(dict.fromkeys([*own_moves["from"], *own_moves["to"]]))
    rows = pd.concat([typical] * len(x), ignore_index=True)
    column = pd.Series(x)
    if isinstance(typical[variable].dtype, pd.CategoricalDtype):
        column = column.astype(typical[variable].dtype)
    prediction = results.get_prediction(rows.assign(**{variable: column}))
    return Profile(x, factor, prediction, observed)


def profile_variables(
    results: "EnsembleResults", given: str | Sequence[str] | None
) -> list[str]:
    """List the predictors of profiles; all by default."""
    typical, _ = _profile_inputs(results)
    if typical.columns.empty:
        raise ValueError(f"there is no profile to draw: {list_predictors([])}")
    if given is None:
        return [str(name) for name in typical.columns]
    return [given] if isinstance(given, str) else list(given)


def _profile_inputs(results: "EnsembleResults") -> "tuple[pd.DataFrame, Predictor]":
    typical, predictor = results.typical, results.predictor
    if typical is None or predictor is None:
        raise ValueError("a profile requires results of `fit` that predict.")
    return typical, predictor
