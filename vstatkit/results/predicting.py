"""Methods of results that predict new data."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.options import with_advice
from vstatkit.results.file_predictions import held_data, write_predictions
from vstatkit.results.prediction_results import (
    PredictionResults,
    predicted,
    predicted_means,
)
from vstatkit.results.rows import training_rows

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def _results(predicting: "Predicting") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", predicting)


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
        if out is None:
            return predicted_means(results, held_data(results, data))
        return write_predictions(
            results, data, out, lambda one: pd.DataFrame(predicted_means(results, one))
        )

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
        if out is None:
            return predicted(results, held_data(results, data), obs_method)
        return write_predictions(
            results,
            data,
            out,
            lambda one: predicted(results, one, obs_method).summary_frame(alpha),
        )
