"""Comparisons of averages over rows with formulas written in R."""

from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.compare import TOLERANCE, Quantity
from r_bridge.restated import ALPHA, COLUMNS, Formulas, quantities, table_quantities
from vstatkit import EnsembleResults
from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import Predictor
from vstatkit.results.marginal_effects import Averages

LIMITS = {"lower": "lower", "upper": "upper"}  # columns of `conf_int()`

WHY_PLACES = "quantiles, standard deviations and observed values are R's."

# Between which two values of a numeric predictor the rows move
PLACES = """
function(x, slope) {
  n <- length(x)
  if (!slope) {
    ends <- stats::quantile(x, c(0.1, 0.9), names = FALSE)
    return(list(start = rep(ends[1], n), end = rep(ends[2], n), step = NaN))
  }
  # A window of one standard deviation about each row, shifted into the range, whose
  # ends move outwards to observed values.
  h <- stats::sd(x)
  left <- pmax(pmin(pmax(x - h / 2, min(x)), max(x) - h), min(x))
  slack <- 1e-9 * diff(range(x))
  list(start = sapply(left, function(l) max(x[x <= l + slack])),
       end = sapply(left, function(l) min(x[x >= l + h - slack])), step = h)
}
"""

# The average of one learner is the mean over the rows of its own predictions
AVERAGE = """
function(start, end, widths) {
  # start, end: predictions of every tree for every row, (trees, rows)
  secants <- sweep(end - start, 2, widths, "/")
  list(values = rowMeans(secants), width = 1 / mean(1 / widths))
}
"""


def averages(
    results: EnsembleResults, data: pd.DataFrame, formulas: Formulas
) -> list[Quantity]:
    """Compare the tables of averages over the training rows.

    Trees predict every row, with predictors moved to values that R chooses; R averages
    over the rows, tree by tree, and applies the formulas to the averages.
    """
    predictor = results.predictor
    if predictor is None:
        return []
    plain = results.avg_predictions()
    as_they_are = predictor.values(predictor.rows(data)[0])
    value = session.call(
        AVERAGE, np.zeros_like(as_they_are), as_they_are, np.ones(len(data))
    )["values"]
    theirs = formulas.of(np.asarray(value)[:, None], average=True)
    found = _compared(plain, "avg_predictions", theirs)
    for name, slope in (("avg_effects", False), ("avg_slopes", True)):
        made: Averages = getattr(results, name)()
        values, widths = _moved(predictor, data, made.settings, slope=slope)
        theirs = formulas.of(values, difference="effect", average=True, widths=widths)
        found += _compared(made, name, theirs)
        found += place_quantities(made.settings, data, name, slope=slope)
    return found


def _compared(made: Averages, name: str, theirs: dict[str, Floats]) -> list[Quantity]:
    """Compare every column of a table of averages, its intervals and their rho."""
    orders = made.results.orders
    rho = np.nan if orders is None else orders.rho
    limits = made.conf_int(ALPHA)
    return [
        *table_quantities(made.summary_frame(ALPHA), COLUMNS, name, theirs),
        *table_quantities(limits, LIMITS, f"{name} conf_int", theirs),
        *quantities({f"{name} rho": ([rho], "rho")}, theirs),
    ]


def _moved(
    predictor: Predictor, data: pd.DataFrame, settings: pd.DataFrame, *, slope: bool
) -> tuple[Floats, Floats]:
    """Move rows by R's values, and average in R: values (B, m), widths (m,)."""
    values, widths = [], []
    for name, start, end in zip(
        settings.index, settings["from"], settings["to"], strict=True
    ):
        ends, width = (start, end), np.ones(len(data))
        if _is_numeric(data, name):
            places = _places(data, name, slope=slope)
            ends = places["start"], places["end"]
            width = ends[1] - ends[0] if slope else width
        both = [_predicted(predictor, data, name, one) for one in ends]
        answer = session.call(AVERAGE, *both, width)
        values.append(np.asarray(answer["values"]))
        widths.append(np.ravel(answer["width"])[0])
    return np.column_stack(values), np.array(widths)


def _is_numeric(data: pd.DataFrame, name: Any) -> bool:
    return not isinstance(data[name].dtype, pd.CategoricalDtype)


def _places(data: pd.DataFrame, name: Any, *, slope: bool) -> dict[str, Floats]:
    """Choose in R the values that rows move between, and the step of a slope."""
    chosen = session.call(PLACES, data[name].to_numpy(dtype=np.float64), slope)
    return {key: np.ravel(np.asarray(one)) for key, one in chosen.items()}


def _predicted(
    predictor: Predictor, data: pd.DataFrame, name: Any, value: Any
) -> Floats:
    """Predict the rows with one predictor set, shape (B, rows)."""
    column = pd.Series(value, data.index, dtype=data[name].dtype)
    frame = data.assign(**{str(name): column})
    return np.asfortranarray(predictor.values(predictor.rows(frame)[0]))


def place_quantities(
    settings: pd.DataFrame, data: pd.DataFrame, name: str, *, slope: bool = False
) -> list[Quantity]:
    """Compare the values that numeric predictors move between, or the steps."""
    columns = {"step": "step"} if slope else {"from": "start", "to": "end"}
    table = settings[[_is_numeric(data, one) for one in settings.index]]
    theirs = [_places(data, one, slope=slope) for one in table.index]
    return [
        Quantity(
            f"{name} {column}",
            table[column].to_numpy(dtype=np.float64),
            np.array([one[key][0] for one in theirs]),
            TOLERANCE,
            WHY_PLACES,
        )
        for column, key in columns.items()
    ]
