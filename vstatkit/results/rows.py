"""Which rows averages are taken over, and what their standard errors rest on."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.ensemble.marginal_averages import Averager, Sample, training_places
from vstatkit.ensemble.prediction import Predictor
from vstatkit.formula.coding import variables_of
from vstatkit.formula.input_checks import as_frame
from vstatkit.formula.parse import observation_weights
from vstatkit.inference.estimates import Estimation
from vstatkit.inference.intervals import Support, prediction_support
from vstatkit.inference.population import RowInfluence
from vstatkit.results.file_predictions import held_data
from vstatkit.results.learners import averaging_predictor
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.variance.hoeffding import HigherOrders
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults

Kind = Literal["sample", "population"]

MOST_ROWS = 20_000
"""Most rows that averages are taken over; more are drawn from by the seed."""


def training_frame(results: "EnsembleResults") -> pd.DataFrame | None:
    """Return the training rows, as the predictor takes them, where they are held."""
    predictor = results.predictor
    if results.recipe is not None:
        return results.recipe.data
    rows = getattr(predictor, "training", None)  # of a forest that R has grown
    if rows is not None:
        return pd.DataFrame(rows)
    X = getattr(getattr(predictor, "kernel", None), "X", None)
    if predictor is None or predictor.coding is not None or X is None or not len(X):
        return None
    index = results.units if len(results.units) == len(X) else None
    return pd.DataFrame(np.asarray(X), index, column_names(predictor))


@dataclass(frozen=True)
class Observed:
    """Observed values of the predictors: ends of moves, levels and grids.

    Attributes
    ----------
    frame : DataFrame
        The predictors in the training rows; in the rows given if results do not have
        the training rows.
    moves : DataFrame or None
        Columns `from` and `to` of the effects table if `frame` has the rows given;
        None otherwise.
    trained : bool
        Whether `frame` has the training rows.
    """

    frame: pd.DataFrame
    moves: pd.DataFrame | None = None
    trained: bool = True

    def stored_moves(self, name: Any) -> list[tuple[Any, Any]]:
        """List the moves of a predictor in the effects table, if they are needed."""
        if self.moves is None:
            return []
        own = self.moves[self.moves.index.get_level_values(0) == name]
        return list(dict.fromkeys(zip(own["from"], own["to"], strict=True)))

    def levels(self, name: Any) -> list[Any]:
        """List the levels of a factor in their order."""
        stored = self.stored_moves(name)
        if not stored:
            return variables_of(self.frame).levels(name)
        return [stored[0][0], *(end for _, end in stored)]

    def note(self, what: str) -> str | None:
        """Say that defaults were taken from the rows given; None otherwise."""
        if self.trained:
            return None
        return f"The training data are not available: {what} those of the rows given."


def observed_of(results: "EnsembleResults", rows: pd.DataFrame) -> Observed:
    """Return the training values of the predictors; those of `rows` without them.

    Files and pickles have the columns that the formula reads, so that defaults are the
    same before and after. Fits to data on disk have only the effects table.
    """
    training = training_frame(results)
    if training is None:
        training = stored_predictors(results)
    if training is not None:
        return Observed(training)
    effects = results.effect_values
    return Observed(rows, None if effects is None else effects.frame, trained=False)


def stored_predictors(results: "EnsembleResults") -> pd.DataFrame | None:
    """Return the predictors in the training rows as files and pickles have them."""
    predictor, info = results.predictor, results.info
    if predictor is None or predictor.coding is None:
        return None
    return predictor.coding.recipe.predictors(info.nobs, info.n_dropped)


def training_rows(results: "EnsembleResults") -> pd.DataFrame:
    """Return the training rows, or say why there are none."""
    averaging_predictor(results)  # says what does not predict
    training = training_frame(results)
    if training is None:
        raise ValueError(
            "these results hold no training data (they were loaded from a file or a "
            "pickle, or fitted to data on disk). Give rows as `data`."
        )
    return training


def predictor_names(predictor: Predictor) -> tuple[str, ...]:
    """List what can be moved: the variables of the formula, or all columns."""
    if predictor.coding is not None:
        return predictor.coding.variables
    return tuple(column_names(predictor))


def column_names(predictor: Predictor) -> list[str]:
    """Name the columns of learners without a formula: x0, x1, ... without names."""
    if predictor.columns is not None:
        return list(predictor.columns)
    return [f"x{j}" for j in range(predictor.kernel.n_features)]


def training_weights(results: "EnsembleResults") -> Floats | None:
    """Return the weights of the training rows; None without them, or not held."""
    weights = getattr(averaging_predictor(results).kernel, "weights", None)
    return weights if isinstance(weights, np.ndarray) else None


def _weighted(results: "EnsembleResults", sample: Sample) -> Sample:
    """Weight rows as the fit was; rows without weight do not count.

    Training rows have their own weights. Other rows have those of the column that the
    weights of the fit were, if they have it; otherwise they count equally. Weights
    that were given as an array have no column.
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
            f"all {len(sample):,} rows have the weight 0, so there is nothing to "
            "average. Give rows with positive weights as `data`."
        )
    of = f" by {name!r}" if in_column else ""
    weighted = replace(sample, weights=weights, weighting=f", weighted{of}")
    return weighted if weights.all() else weighted.only(np.flatnonzero(weights))


def sample_of(
    results: "EnsembleResults", data: DataLike | None, most: int | None = MOST_ROWS
) -> Sample:
    """Take the training rows, or those given; at most so many, drawn by the seed.

    Rows have the sampling weights of the fit, if there were any.
    """
    predictor, training = averaging_predictor(results), training_frame(results)
    _check_rows(data, training)
    places: Ints | None
    if data is None:
        frame = training_rows(results)
        places = np.arange(len(frame))
    else:
        held = held_data(results, data)
        if predictor.coding is None and predictor.columns is None:
            X, index = predictor.rows(held)
            held = pd.DataFrame(X, index, column_names(predictor))
        frame = as_frame(held)
        places = training_places(training, frame)
    predictor.rows(frame.iloc[:1])  # says what is missing
    sample = Sample(frame, places, len(frame), predictor_names(predictor))
    sample = _weighted(results, sample)
    if most is None or len(sample) <= most:
        return sample
    rng = stream(results.seed, 0, Purpose.AVERAGES)
    rows = np.sort(rng.choice(len(sample), most, replace=False, shuffle=False))
    return sample.only(rows)


def _check_rows(data: DataLike | None, training: pd.DataFrame | None) -> None:
    """Refuse the name of a column in the place of rows."""
    if training is not None and isinstance(data, str) and data in training.columns:
        raise ValueError(
            f"`data` must be rows to average over; got the column {data!r}. Give it by "
            f"its keyword: by={data!r} averages by its levels."
        )


def averager_of(results: "EnsembleResults", sample: Sample, se: str) -> Averager:
    """Get ready to average over a sample, for one kind of standard error."""
    if se not in ("sample", "population"):
        raise ValueError(
            "`se` must be 'sample' (for these rows as they are) or 'population' (for "
            f"the population that they were drawn from); got {se!r}."
        )
    units = None if sample.places is None else _units(results, sample.places)
    presence = ESTIMATORS[results.variance].source == "presence"
    return Averager(
        predictor=averaging_predictor(results),
        estimation=Estimation(results.design, results.variance, orders=results.orders),
        sample=sample,
        units=units,
        population=se == "population",
        out_of_bag=presence and units is not None,
    )


def _units(results: "EnsembleResults", places: Ints) -> Ints:
    """Find the unit of every training row: itself, or its cluster."""
    recipe = results.recipe
    members = None if recipe is None else recipe.task.rows
    return places if members is None else np.asarray(members)[places]


def average_orders(orders: HigherOrders) -> HigherOrders:
    """Say what is known of averages beyond the first order: half of predictions' rho.

    Pairs of learners do not tell the rho of a single average, there being no points to
    pool. Averages of predictions have a smaller one than predictions, averages of
    effects have the same (measured in docs/averages.md); one rule for both keeps
    contrasts of averages consistent with averages of contrasts.
    """
    return replace(
        orders,
        rho=orders.rho / 2,
        error=float(np.hypot(orders.error / 2, orders.rho / 4)),
        mc_error=orders.mc_error / 2,
        share=np.nan,  # averages have a larger one
    )


def averaged_results(
    results: "EnsembleResults",
    values: Floats,
    labels: Labels,
    title: str,
    *,
    points: RowInfluence | None,
    differences: Floats | float | None = None,
) -> "EnsembleResults":
    """Make results of averages: labelled, with joint covariances and tests.

    Parameters
    ----------
    results : EnsembleResults
        What was averaged.
    values : ndarray of shape (B, m)
        Averages by every learner.
    labels : Index of length m
        Their names.
    title : str
        Title of a summary.
    points : RowInfluence or None
        Influence of the rows, for the population.
    differences : ndarray of shape (m,), float or None
        What differences of predictions were divided by; None for predictions.
    """
    predictor = averaging_predictor(results)
    limit = None if results.limit is None else float(np.max(results.limit))
    nobs = results.design.n if results.support is None else results.support.nobs
    support = prediction_support(predictor.kernel, nobs, average=True)
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
    return replace(
        results,
        orders=None if results.orders is None else average_orders(results.orders),
        values=values,
        labels=labels,
        info=replace(results.info.derived(title), growth=results.info.growth.relative),
        limit=bound,
        support=support,
        tails=tails,
        points=points,
        effect_values=None,
        predictor=None,
        scores=None,
        recipe=None,
        reference=None,
        null=None,
    )
