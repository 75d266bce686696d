"""Averages over rows: predictions, effects and slopes."""

import reprlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.ensemble.evaluation import TransientLearner
from vstatkit.ensemble.marginal_averages import (
    Averager,
    By,
    Division,
    LearnerAverages,
    RowMove,
    Sample,
    training_places,
)
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.typical_row_effects import QUANTILES, list_moves
from vstatkit.formula.column_summaries import as_variables
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.weights_and_groups import observation_weights
from vstatkit.inference.estimates import Estimation
from vstatkit.inference.intervals import Support, prediction_support
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import EstimateTable, Table, derive_table
from vstatkit.results.labels import (
    add_classes,
    add_moves,
    effect_names,
    setting_text,
    slope_names,
)
from vstatkit.results.model_description import Column
from vstatkit.results.prediction_results import predictor_of, read_into_memory
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.text import list_names, suggest_name
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults


MOST_ROWS = 20_000  # most rows that averages are taken over; they are drawn by the seed


def averaging_predictor(results: "EnsembleResults") -> Predictor:
    """Return a predictor for averages over rows.

    Learners that were not kept are refitted in each pass; averages need one pass.
    """
    predictor, recipe = results.predictor, results.recipe
    if predictor is None or recipe is None or recipe.centre is not None:
        return predictor_of(results)
    missing = range(len(predictor.learners), results.B)
    if not missing:
        return predictor
    learners = [TransientLearner(recipe.task, number) for number in missing]
    return replace(
        predictor, learners=predictor.learners + learners, progress=recipe.progress
    )


def training_frame(results: "EnsembleResults") -> pd.DataFrame | None:
    """Return the training rows, as the predictor takes them, if available."""
    predictor = results.predictor
    if results.recipe is not None:
        return results.recipe.data
    rows = getattr(predictor, "training", None)  # of a forest grown in R
    if rows is not None:
        return pd.DataFrame(rows)
    X = getattr(getattr(predictor, "kernel", None), "X", None)
    if predictor is None or predictor.coding is not None or X is None or not len(X):
        return None
    index = results.units if len(results.units) == len(X) else None
    return pd.DataFrame(np.asarray(X), index, column_names(predictor))


@dataclass(frozen=True)
class ObservedPredictors:
    """Observed values of the predictors, for ends of moves, levels and grids."""

    # Predictors in the training rows; in the rows given if these are not available
    frame: pd.DataFrame
    # Columns `from` and `to` of the effects table if `frame` has the rows given
    moves: pd.DataFrame | None = None
    trained: bool = True  # whether `frame` has the training rows

    def stored_moves(self, name: Any) -> list[tuple[Any, Any]]:
        """List the moves of a predictor in the effects table."""
        if self.moves is None:
            return []
        own = self.moves[self.moves.index.get_level_values(0) == name]
        return list(dict.fromkeys(zip(own["from"], own["to"], strict=True)))

    def levels(self, name: Any) -> list[Any]:
        """List the levels of a factor in their order."""
        stored = self.stored_moves(name)
        if not stored:
            return as_variables(self.frame).levels(name)
        return [stored[0][0], *(end for _, end in stored)]

    def notes(self, what: str) -> tuple[str, ...]:
        """Report defaults that come from the rows given."""
        note = f"The training data are not available: {what} those of the rows given."
        return () if self.trained else (note,)


def observed_predictors(
    results: "EnsembleResults", rows: pd.DataFrame
) -> ObservedPredictors:
    """Return the training values of the predictors, or those of `rows`.

    Files and pickles have the columns of the formula, so that defaults are the same
    after loading. Fits to data on disk have only the effects table.
    """
    predictor, info = results.predictor, results.info
    training = training_frame(results)
    if training is None and predictor is not None and predictor.coding is not None:
        training = predictor.coding.recipe.predictors(info.nobs, info.n_dropped)
    if training is not None:
        return ObservedPredictors(training)
    moves = None if results.effect_values is None else results.effect_values.frame
    return ObservedPredictors(rows, moves, trained=False)


def training_rows(results: "EnsembleResults") -> pd.DataFrame:
    """Return the training rows, or raise an error if there are none."""
    averaging_predictor(results)  # raises an error if the kernel does not predict
    training = training_frame(results)
    if training is None:
        raise ValueError(
            "these results have no training data (they were loaded from a file or a "
            "pickle, or fitted to data on disk). Give rows as `data`."
        )
    return training


def predictor_names(predictor: Predictor) -> tuple[str, ...]:
    """List the predictors: the variables of the formula, or all columns."""
    if predictor.coding is not None:
        return predictor.coding.variables
    return tuple(column_names(predictor))


def column_names(predictor: Predictor) -> list[str]:
    """List the columns of learners without a formula; x0, x1, ... by default."""
    if predictor.columns is not None:
        return list(predictor.columns)
    return [f"x{j}" for j in range(predictor.kernel.n_features)]


def training_weights(results: "EnsembleResults") -> Floats | None:
    """Return the weights of the training rows, if available."""
    weights = getattr(averaging_predictor(results).kernel, "weights", None)
    return weights if isinstance(weights, np.ndarray) else None


def _weight_rows(results: "EnsembleResults", sample: Sample) -> Sample:
    """Weight rows as the fit was weighted, and drop rows with weight zero.

    Training rows have their own weights. Other rows have the weights in the column of
    that name; without this column, or if the fit had an array of weights, they count
    equally.
    """
    name, in_column = results.info.weights, results.info.weights_in_column
    if name is None:
        return sample
    weights = training_weights(results) if sample.places is not None else None
    if weights is not None:
        weights = weights[sample.places]
    elif in_column and name in sample.frame.columns:
        weights = observation_weights(sample.frame[name])
    if weights is None:
        array = ": the weights of the fit were given as an array"
        why = f" (no column {name!r})" if in_column else array
        return replace(sample, weighting=f", not weighted{why}")
    if not weights.any():
        raise ValueError(
            f"`data` must have rows with positive weights; all {len(sample):,} rows "
            "have weight 0."
        )
    of = f" by {name!r}" if in_column else ""
    weighted = replace(sample, weights=weights, weighting=f", weighted{of}")
    return weighted if weights.all() else weighted.select(np.flatnonzero(weights))


def sample_of(
    results: "EnsembleResults", data: DataLike | None, most: int | None = MOST_ROWS
) -> Sample:
    """Take the training rows, or those given, at most `most`, with their weights."""
    predictor, training = averaging_predictor(results), training_frame(results)
    if training is not None and isinstance(data, str) and data in training.columns:
        raise ValueError(
            f"`data` must be rows to average over; got the column {data!r}. Use "
            f"by={data!r} to average by its levels."
        )
    places: Ints | None
    if data is None:
        frame = training_rows(results)
        places = np.arange(len(frame))
    else:
        rows_given = read_into_memory(results, data)
        if predictor.coding is None and predictor.columns is None:
            X, index = predictor.rows(rows_given)
            rows_given = pd.DataFrame(X, index, column_names(predictor))
        frame = as_frame(rows_given)
        places = training_places(training, frame)
    predictor.rows(frame.iloc[:1])  # raises an error if columns are missing
    names = predictor_names(predictor)
    sample = _weight_rows(results, Sample(frame, places, len(frame), names))
    if most is None or len(sample) <= most:
        return sample
    rng = stream(results.seed, 0, Purpose.AVERAGES)
    rows = np.sort(rng.choice(len(sample), most, replace=False, shuffle=False))
    return sample.select(rows)


def averager_of(results: "EnsembleResults", sample: Sample, se: str) -> Averager:
    """Make the averager of a sample, for one kind of standard error."""
    if se not in ("sample", "population"):
        raise ValueError(
            "`se` must be 'sample' (conditional on the rows) or 'population' (for the "
            f"population that they were drawn from); got {se!r}."
        )
    unit_of_row, recipe = sample.places, results.recipe
    if unit_of_row is not None and recipe is not None:
        clusters = recipe.task.unit_of_row
        unit_of_row = unit_of_row if clusters is None else clusters[unit_of_row]
    presence = ESTIMATORS[results.variance].source == "presence"
    return Averager(
        predictor=averaging_predictor(results),
        estimation=Estimation(results.design, results.variance, orders=results.orders),
        sample=sample,
        units=unit_of_row,
        population=se == "population",
        out_of_bag=presence and unit_of_row is not None,
    )


def average_orders(orders: HigherOrders) -> HigherOrders:
    """Return the correction for averages: half the rho of predictions.

    The rho of a single average cannot be estimated from pairs of learners, because
    there are no points to pool. Average predictions have a smaller rho than
    predictions, average effects have the same (docs/averages.md). One rule for both
    keeps contrasts of averages consistent with averages of contrasts.
    """
    return replace(
        orders,
        rho=orders.rho / 2,
        error=float(np.hypot(orders.error / 2, orders.rho / 4)),
        mc_error=orders.mc_error / 2,
        share=np.nan,  # averages have a larger one
    )


def averaged_table(
    results: "EnsembleResults",
    averager: Averager,
    kind: type[Table],
    values: Floats,
    labels: Labels,
    *,
    heading: str,
    differences: Floats | float | None = None,
    **fields: Any,
) -> Table:
    """Make a table of averages, with values of shape (B, m) and other `fields`.

    `differences` are the divisors of differences of predictions; None for predictions.
    """
    limit, orders = results._largest_limit, results.orders
    nobs = results.design.n if results.support is None else results.support.nobs
    support = prediction_support(averager.predictor.kernel, nobs, average=True)
    tails = None if results.tails is None else results.tails.of_averages
    bound: Any = limit
    if differences is not None:
        steps = np.broadcast_to(np.asarray(differences, dtype=np.float64), len(labels))
        bound = None if limit is None else 2 * limit / steps
        if results.tails is not None:
            ends = results.tails.of_differences
            tails = replace(ends, low=ends.low / steps, high=ends.high / steps)
        if support is not None:
            support = Support(-1 / steps, 1 / steps, nobs)
    changes = {
        "orders": None if orders is None else average_orders(orders),
        "values": values,
        "labels": labels,
        "info": results.info.derive(heading, other_units=True),
        "limit": bound,
        "support": support,
        "tails": tails,
        "null": 0.0,
        "se": "population" if averager.population else "sample",
    }
    return derive_table(results, kind, **{**changes, **fields})


# Predictors that move; a mapping has both ends of each move.
Variables = str | Sequence[str] | Mapping[str, tuple[Any, Any]]
ROUNDING = 1e-9  # tolerance for rounding of the ends of a step, as a share of the range


class Move(NamedTuple):
    """A predictor that moves, and the values that are compared."""

    name: Any
    # start, end: Both values if they are the same for all rows; None otherwise
    start: Any
    end: Any
    rows: RowMove  # how rows move
    # Least distance between the two values of a slope; NaN for effects
    step: float = np.nan


def _move_all(name: Any, start: Any, end: Any, n_rows: int) -> Move:
    """Move all rows between the same two values."""
    return Move(name, start, end, RowMove({name: start}, {name: end}, np.ones(n_rows)))


def list_predictors(names: Sequence[Any]) -> str:
    """List the predictors."""
    if not names:
        return "the model has no predictors."
    return f"the predictors are {list_names(names)}."


def check_variable(name: Any, names: Sequence[Any]) -> None:
    """Raise an error if a name is not a predictor."""
    if name not in names:
        raise ValueError(
            "`variables` must be predictors of the model, some of "
            f"{', '.join(map(str, names))}; got {name!r}"
            f"{suggest_name(str(name), names)}"
        )


def select_variables(variables: Variables | None, predictor: Predictor) -> list[Any]:
    """List the given predictors; all by default."""
    names = predictor_names(predictor)
    if variables is None:
        return list(names)
    selected = [variables] if isinstance(variables, str | int) else list(variables)
    for name in selected:
        check_variable(name, names)
    if not selected:
        raise ValueError("`variables` must name at least one predictor; got none.")
    return selected


def sort_arguments(
    method: str, variables: Any, data: DataLike | None
) -> tuple[Any, DataLike | None]:
    """Take rows that were given as `variables` as `data`."""
    if not _are_rows(variables):
        return variables, data
    if data is not None:
        raise ValueError(
            f"{method}() takes predictors as `variables` and rows as `data`; got rows "
            f"as both. Use {method}(data=...) for the rows to average over."
        )
    return None, variables


def _are_rows(variables: Any) -> bool:
    """Whether an argument is a table of rows, and not names of predictors."""
    table = hasattr(variables, "to_pydict") or hasattr(variables, "get_columns")
    array = isinstance(variables, np.ndarray) and variables.ndim == 2
    return table or array or isinstance(variables, pd.DataFrame)


def name_tuple(variables: Sequence[Any]) -> tuple[Any, ...]:
    """List names that were given one by one, or as one list."""
    if any(map(_are_rows, variables)):
        raise ValueError(
            "predictors must be given by name; got rows. Give rows as data=..."
        )
    if len(variables) == 1 and isinstance(variables[0], list | tuple):
        return tuple(variables[0])
    return tuple(variables)


def effect_moves(
    variables: Variables | None,
    predictor: Predictor,
    observed: ObservedPredictors,
    n_rows: int,
) -> list[Move]:
    """List moves as in the effects table: between quantiles, or from the reference."""
    selected, moves = select_variables(variables, predictor), []
    for name in selected:
        if not isinstance(variables, Mapping):
            moves_of_name = default_moves(name, predictor, observed)
        else:
            ends: Any = variables[name]
            if not isinstance(ends, list | tuple | np.ndarray) or len(ends) != 2:
                raise ValueError(
                    "a dict of `variables` must have both ends of each move, such as "
                    f"{{{name!r}: (0, 1)}}; got {reprlib.repr(ends)}. Give rows to "
                    "average over as data=..."
                )
            moves_of_name = [(ends[0], ends[1])]
        moves += [_move_all(name, *pair, n_rows) for pair in moves_of_name]
    _check_moves(moves, selected)
    return moves


def default_moves(
    name: Any, predictor: Predictor, observed: ObservedPredictors
) -> list[tuple[Any, Any]]:
    """List the moves of one predictor in the effects table."""
    stored = observed.stored_moves(name)
    if stored:
        return stored
    known, coding = as_variables(observed.frame), predictor.coding
    numeric = not predictor.is_category(name)
    ends = known.quantiles([name], QUANTILES)[name] if numeric else None
    reference = None if coding is None else coding.reference(name)
    return list_moves(known, name, ends, reference)


def _ends_note(
    variables: Variables | None, moves: Sequence[Move], observed: ObservedPredictors
) -> tuple[str, ...]:
    """Report ends of effects that come from the rows given."""
    names = dict.fromkeys(move.name for move in moves)
    new = [name for name in names if not observed.stored_moves(name)]
    if isinstance(variables, Mapping) or not new:
        return ()
    return observed.notes(f"the ends of {list_names(new)} are")


def _check_moves(moves: Sequence[Move], selected: Sequence[Any]) -> None:
    """Raise an error if no predictor can be moved."""
    reason = list_predictors(selected)
    if selected:
        names = ", ".join(map(str, selected))
        reason = (
            f"{names} has the same value in every row. Choose a predictor that varies."
        )
    if not moves:
        raise ValueError(f"there is nothing to move: {reason}")


def slope_width(name: Any, frame: pd.DataFrame, step: Any) -> float:
    """Choose the least distance of a slope; one standard deviation by default."""
    given = step.get(name) if isinstance(step, Mapping) else step
    width = float(frame[name].std()) if given is None else float(given)
    if np.isfinite(width) and width > 0:
        return width
    if given is None:
        raise ValueError(
            f"{name!r} has the same value in every row, so it has no slope. Leave it "
            "out, or give `step`."
        )
    raise ValueError(f"the step of {name!r} must be a positive number; got {given!r}.")


def slope_move(
    name: Any, rows: pd.DataFrame, width: float, observed: Floats
) -> RowMove:
    r"""Move every row between two observed values at least a width apart.

    `observed` are the distinct values of the predictor in the training data, ascending.

    Notes
    -----
    With the window of `EnsembleResults.avg_slopes`, of width h, in the range
    :math:`[a, b]` of the observed values v, the ends are

    .. math::

        x^- = \max\{v : v \le l\}, \quad x^+ = \min\{v : v \ge l + h\}, \qquad
        l = \min\{\max(x - h/2, a), b - h\} .

    If h exceeds the range, both ends are those of the range. With a single observed
    value, rows move by half a width to each side. Rows without a value do not count.

    Examples
    --------
    >>> data = pd.DataFrame({"x": [0.0, 3.0, 5.0, 10.0]})
    >>> move = slope_move("x", data, 4.0, np.array([0.0, 3.0, 5.0, 10.0]))
    >>> move.start["x"].tolist(), move.end["x"].tolist(), move.widths.tolist()
    ([0.0, 0.0, 3.0, 5.0], [5.0, 5.0, 10.0, 10.0], [5.0, 5.0, 7.0, 5.0])
    """
    x = rows[name].to_numpy(dtype=np.float64)
    if observed.size < 2:
        start, end = x - width / 2, x + width / 2
    else:
        low, high = observed[0], observed[-1]
        left = np.maximum(np.minimum(np.maximum(x - width / 2, low), high - width), low)
        slack = min(ROUNDING * (high - low), width / 4)
        below = np.searchsorted(observed, left + slack, side="right") - 1
        above = np.searchsorted(observed, left + width - slack, side="left")
        start, end = (
            observed[np.clip(places, 0, observed.size - 1)] for places in (below, above)
        )
    known = ~np.isnan(x)
    widths = np.where(known, end - start, width)
    return RowMove({name: start}, {name: end}, widths, None if known.all() else known)


def slope_moves(
    variables: Variables | None,
    predictor: Predictor,
    observed: ObservedPredictors,
    rows: pd.DataFrame,
    step: Any,
) -> list[Move]:
    """List slopes along numeric predictors, and contrasts of factors, in their order.

    By default these are all predictors except constant numeric ones.
    """
    selected, known = select_variables(variables, predictor), observed.frame
    moves: list[Move] = []
    for name in selected:
        if predictor.is_category(name):
            ends = default_moves(name, predictor, observed)
            moves += [_move_all(name, *pair, len(rows)) for pair in ends]
            continue
        varies = known[name].min() < known[name].max()
        if variables is None and step is None and not varies:
            continue
        width = slope_width(name, known, step)
        column = known[name].to_numpy(dtype=np.float64)
        values, start, end = np.unique(column[np.isfinite(column)]), None, None
        if values.size == 2:
            start, end = values.tolist()
            width = end - start
        row_move = slope_move(name, rows, width, values)
        moves.append(Move(name, start, end, row_move, width))
    _check_moves(moves, selected)
    return moves


def label_outputs(table: pd.DataFrame, classes: tuple[Any, ...] | None) -> pd.DataFrame:
    """Repeat the rows of a table for every class if there are more than two."""
    if classes is None or len(classes) == 2:
        return table
    tuples = [
        (*(label if isinstance(label, tuple) else (label,)), level)
        for label in table.index
        for level in classes
    ]
    index = pd.MultiIndex.from_tuples(tuples, names=[*table.index.names, "class"])
    return table.iloc[np.repeat(np.arange(len(table)), len(classes))].set_axis(index)


@pickled_plainly
@dataclass(frozen=True, repr=False)
class Averages(EstimateTable):
    """Averages over rows, with their uncertainty.

    Attributes
    ----------
    settings : DataFrame
        One row per estimate: `from`, `to` and `step` of a predictor that moves, and
        the number of `rows`.
    what, rows : str
        Kind of averages, such as "average effects", and description of the rows.
    se : str
        Kind of standard error, "sample" or "population".
    constant : tuple of str
        Predictors without effect because they have the same value in every row.
    by : tuple of str
        Columns whose levels have separate averages.
    notes : tuple of str
        Further notes below the table.
    """

    settings: pd.DataFrame = field(default_factory=pd.DataFrame)
    what: str = "averages"
    rows: str = ""
    se: str = "sample"
    constant: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def results(self) -> EstimateTable:
        """The same estimates under unique labels, such as `region[w]`."""
        if self.labels.is_unique:
            return derive_table(self, EstimateTable)
        return self._named_table

    @property
    def texts(self) -> list[str]:
        """Names of the rows, such as "x4, married=1"."""
        return self._add_classes(self._add_levels(self._predictors))

    @property
    def _predictors(self) -> list[str]:
        """The predictor of each row, or the first level of the labels."""
        return [str(name) for name in self.settings.index.get_level_values(0)]

    def _add_levels(self, names: list[str]) -> list[str]:
        """Add the levels of `by` to the names of predictors, if there are any."""
        labels, moves = self.settings.index, "to" in self.settings
        levels = [
            [f"{name}={setting_text(level)}" for level in labels.get_level_values(j)]
            for j, name in enumerate(self.by, start=int(moves))
        ]
        if moves or not levels:
            levels = [names, *levels]
        return [", ".join(parts) for parts in zip(*levels, strict=True)]

    def _add_classes(self, texts: list[str]) -> list[str]:
        """Add the classes of the response, if there are more than two."""
        labels, n_others = self.settings.index, len(self.by) + ("to" in self.settings)
        several = labels.nlevels > max(1, n_others)
        return add_classes(texts, labels) if several else texts

    @property
    def _named_table(self) -> EstimateTable:
        """The averages under the names of effects, such as `region[w]`."""
        names = self._predictors
        if "to" in self.settings:
            names = effect_names(self.settings[["to"]].set_axis(names))
        texts = self._add_classes(self._add_levels(names))
        return derive_table(self, EstimateTable, labels=pd.Index(texts))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate settings, estimates, tests and intervals of coverage 1 - alpha."""
        return pd.concat([self.settings, super().summary_frame(alpha)], axis=1)

    def summary(self, alpha: float = 0.05) -> "Summary":  # type: ignore[override]
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_averages  # noqa: PLC0415 slow

        return summarise_averages(self, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the averages with their intervals."""
        from vstatkit.plots.marginal import plot_averages  # noqa: PLC0415 on demand

        return plot_averages(self, alpha=alpha, ax=ax)

    def _column(self, alpha: float = 0.05) -> Column:
        frame, names = self.summary_frame(alpha), self.texts
        if "step" in frame:
            names = slope_names(frame, names)
        elif "from" in frame:
            moves = add_moves(frame, self._add_levels(self._predictors))
            names = self._add_classes(moves)
        note = f"{self.what} over {self.rows}, se={self.se!r}"
        return self._make_column(frame, names, self.what, note)

    def __repr__(self) -> str:
        text = f"{len(self.settings)} {self.what} over {self.rows}, se={self.se!r}"
        return textwrap.shorten(f"<Averages: {text}", 90) + ">"


def average_predictions(
    results: "EnsembleResults", data: DataLike | None, by: By, se: str
) -> Averages:
    """Compute `EnsembleResults.avg_predictions`."""
    sample = sample_of(results, data)
    averager, division = averager_of(results, sample, se), Division(sample, by)
    weights = averager.weights(division.shares, 1)
    averages = averager.averages([{}], [weights])
    return _label_averages(
        results,
        averager,
        averages,
        pd.DataFrame({"rows": division.counts}, _level_index(None, division)),
        "average predictions",
        points=averager.influence(averages, [weights]),
        by=division.columns,
    )


def average_moves(
    results: "EnsembleResults",
    variables: Variables | None,
    data: DataLike | None,
    by: By,
    se: str,
    *,
    slopes: bool = False,
    step: float | Mapping[str, float] | None = None,
) -> Averages:
    """Compute `EnsembleResults.avg_effects`, or `avg_slopes`.

    These are averages of differences between two settings of the rows, divided by
    their widths.
    """
    method = "avg_slopes" if slopes else "avg_effects"
    variables, data = sort_arguments(method, variables, data)
    sample, predictor = sample_of(results, data), averaging_predictor(results)
    observed = observed_predictors(results, sample.frame)
    if slopes:
        moves = slope_moves(variables, predictor, observed, sample.frame, step)
        numeric = any(np.isfinite(move.step) for move in moves)
        notes = observed.notes("the steps and ends of slopes are") if numeric else ()
    else:
        moves = effect_moves(variables, predictor, observed, len(sample))
        notes = _ends_note(variables, moves, observed)
    averager, division = averager_of(results, sample, se), Division(sample, by)
    row_moves = [move.rows for move in moves]
    shares = [move.shares_of(division.shares) for move in row_moves]
    weights = [averager.weights(own, len(moves)) for own in shares]
    averages = averager.slopes(row_moves, weights)
    pairs = zip(row_moves, shares, strict=True)
    table = pd.DataFrame(
        {
            "from": pd.Series([move.start for move in moves], dtype=object),
            "to": pd.Series([move.end for move in moves], dtype=object),
        }
    )
    if slopes:
        table["step"] = [move.step for move in moves]
    names = [move.name for move in moves]
    places = np.repeat(np.arange(len(moves)), len(division.counts))
    table = table.iloc[places].set_axis(_level_index(names, division))
    table = table.assign(rows=np.concatenate([(own > 0).sum(axis=1) for own in shares]))
    selected = select_variables(variables, predictor)
    return _label_averages(
        results,
        averager,
        averages,
        table,
        "average slopes" if slopes else "average effects",
        points=averager.influence(averages, weights),
        differences=np.concatenate([move.divisors(own) for move, own in pairs]),
        by=division.columns,
        constant=tuple(str(name) for name in selected if name not in names),
        notes=notes,
    )


def _level_index(names: Sequence[Any] | None, division: Division) -> pd.Index:
    """Label every level of a division, for each of several predictors, if any."""
    by = division.columns
    index: pd.Index
    if not by:
        average = pd.Index(["average"])
        index = average if names is None else pd.Index(names, name="predictor")
    elif names is None and len(by) == 1:
        index = pd.Index(division.levels, name=by[0])
    else:
        levels = [level if len(by) > 1 else (level,) for level in division.levels]
        starts = [()] if names is None else [(name,) for name in names]
        tuples = [(*start, *level) for start in starts for level in levels]
        columns = by if names is None else ("predictor", *by)
        index = pd.MultiIndex.from_tuples(tuples, names=columns)
    return index


def _label_averages(
    results: "EnsembleResults",
    averager: Averager,
    averages: Sequence[LearnerAverages],
    table: pd.DataFrame,
    what: str,
    *,
    differences: Floats | None = None,
    **fields: Any,
) -> Averages:
    """Make the table of averages, with a label for every output."""
    settings = label_outputs(table, averager.predictor.classes)
    if differences is not None:
        differences = np.repeat(differences, len(settings) // len(table))
    return averaged_table(
        results,
        averager,
        Averages,
        np.concatenate([average.values for average in averages], axis=1),
        settings.index,
        heading=what.capitalize(),
        differences=differences,
        settings=settings,
        what=what,
        rows=str(averager.sample),
        **fields,
    )
