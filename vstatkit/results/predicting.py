"""Methods of results that predict new data."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.formula.data_checks import warn_of_new_rows
from vstatkit.results.file_predictions import held_data, write_predictions
from vstatkit.results.prediction_results import (
    PredictionResults,
    predicted,
    predicted_means,
)
from vstatkit.results.rows import training_rows
from vstatkit.validation import with_advice

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def _results(predicting: "Predicting") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", predicting)


def _new_rows_check(results: "EnsembleResults") -> Callable[[Any], None]:
    """Make a function that warns of rows far outside the training data, once."""
    warned = False

    def check(data: Any) -> None:
        nonlocal warned
        predictor = results.predictor
        if warned or predictor is None or predictor.coding is None:
            return
        rows, ranges = predictor.named(data), results.info.ranges
        warned = bool(warn_of_new_rows(rows, predictor.coding, ranges))

    return check


class Predicting:
    """Methods of results that predict."""

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
            New data, of any kind that `fit` takes. By default the training rows, by
            all learners; `fittedvalues` has their out-of-bag predictions.
        out : str or path, optional
            Parquet or CSV file to which predictions are written batch after batch,
            for data that do not fit into memory.

        Returns
        -------
        Series, or DataFrame with a column for each of more than two classes
            With `out` the path of the file, which has a row for each of the data's.
        """
        results = _results(self)
        data = training_rows(results) if data is None else data
        check = _new_rows_check(results)
        if out is None:
            held = held_data(results, data)
            means = predicted_means(results, held)
            check(held)
            return means

        def tabulate(batch: pd.DataFrame) -> pd.DataFrame:
            means = pd.DataFrame(predicted_means(results, batch))
            check(batch)
            return means

        return write_predictions(results, data, out, tabulate)

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
        data : DataFrame, path to a Parquet or CSV file, ..., optional
            New data, of any kind that `fit` takes; by default the training rows.
        out : str or path, optional
            Parquet or CSV file to which the `summary_frame` is written batch after
            batch, for data that do not fit into memory.
        alpha : float
            One minus the coverage of the intervals that are written.
        obs_method : {"local", "residuals", "jackknife+"}, optional
            How a new observation is bounded, from out-of-bag residuals. "local", the
            default, scales them by what a small forest has learnt about their size:
            limits are narrow where residuals are small. "residuals" gives all points
            the same width. "jackknife+" is the jackknife+ after bootstrap, which
            covers with probability `1 - 2 alpha` at least, and `1 - alpha` as a rule.
            Results for which "local" is not available (fitted in R, or saved by an
            earlier version) use "residuals" by default.

        Returns
        -------
        PredictionResults
            With `out` the path of the file, which has a row for each of the data's,
            or one for each of them and class.
        """
        results = _results(self)
        data = training_rows(results) if data is None else data
        check = _new_rows_check(results)
        if out is None:
            held = held_data(results, data)
            prediction = predicted(results, held, obs_method)
            check(held)
            return prediction

        def tabulate(batch: pd.DataFrame) -> pd.DataFrame:
            table = predicted(results, batch, obs_method).summary_frame(alpha)
            check(batch)
            return table

        return write_predictions(results, data, out, tabulate)
