"""What R's side of the bridge, `vstatkit.R`, asks of Python."""

from importlib import resources
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from vstatkit.frames import is_number
from vstatkit.info import label_texts


class FrameColumns(TypedDict):
    """A data frame in parts that reticulate converts whatever its version."""

    names: list[str]
    values: list[list[Any]]
    rows: list[str] | None


class SeriesValues(TypedDict):
    """A series in parts that reticulate converts whatever its version."""

    values: list[Any]
    names: list[str] | None


def r_file() -> str:
    """Path of the R file that lets formulas and tables cross through reticulate.

    Returns
    -------
    str
        For R: `source(import("r_bridge")$r_file())`.
    """
    return str(resources.files("r_bridge").joinpath("vstatkit.R"))


def frame_columns(frame: pd.DataFrame) -> FrameColumns:
    """Take a data frame apart into lists: numbers, truth values, the rest as text.

    Row names are those of the index, or None where they only count or repeat.
    """
    rows = label_texts(frame.index)
    counted = frame.index.equals(pd.RangeIndex(len(frame)))
    return FrameColumns(
        names=label_texts(frame.columns),
        values=[_values(frame.iloc[:, j]) for j in range(frame.shape[1])],
        rows=None if counted or len(set(rows)) < len(rows) else rows,
    )


def series_values(series: pd.Series) -> SeriesValues:
    """Take a series apart into its values and, where R can name them, its labels."""
    parts = frame_columns(series.to_frame("values"))
    return SeriesValues(values=parts["values"][0], names=parts["rows"])


def _values(column: pd.Series) -> list[Any]:
    if is_number(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).tolist()
    if column.dtype == bool:
        return column.tolist()
    return [None if pd.isna(one) else str(one) for one in column]
