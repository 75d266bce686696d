"""Query points of `--at`: rows that lack a value are left empty, not predicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.exceptions import DataError
from vstatkit.formula.input_checks import first_non_number, is_number
from vstatkit.formula.names import read_names
from vstatkit.formula.terms import variables
from vstatkit.shell.numerals import PLAIN, Marks, reads_by
from vstatkit.shell.tables import Format, Table, Tell, open_table
from vstatkit.sources.find import find_source, read_few


@dataclass(frozen=True)
class Points:
    """Rows to predict.

    Attributes
    ----------
    frame : DataFrame
        Those that have all that the formula reads.
    labels : Index
        Labels of all rows.
    left_out : str
        Says which rows lack a value; empty where none does.
    marks : Marks
        How its numbers are written.
    """

    frame: pd.DataFrame
    labels: pd.Index
    left_out: str = ""
    marks: Marks = PLAIN

    def spread(self, predictions: pd.DataFrame) -> pd.DataFrame:
        """Put predictions among all rows; where there is none, they are missing."""
        if not self.left_out:
            return predictions
        index = predictions.index
        if index.nlevels == 1:
            return predictions.reindex(self.labels.rename(index.name))
        classes = index.unique(level=1)
        whole = pd.MultiIndex.from_product([self.labels, classes], names=index.names)
        return predictions.reindex(whole)


def predictors(
    formula: str, data: DataLike, not_in_dot: Sequence[str | None]
) -> list[str]:
    """Columns of the data that the right-hand side of a formula reads."""
    source = find_source(data)
    held = data.columns if isinstance(data, pd.DataFrame) else ()
    columns = pd.Index(held if source is None else source.columns)
    beside = tuple(name for name in not_in_dot if name is not None)
    named = read_names(formula, columns, None, beside)
    return variables(named.model(columns).right, columns)


def read_points(
    path: str, written: Format, used: Sequence[str], keep_gaps: bool, tell: Tell
) -> Points:
    """Read query points, which are few.

    Parameters
    ----------
    path : str
        A table as `open_table` reads it.
    written : Format
        How it is written.
    used : sequence of str
        Columns that the formula reads.
    keep_gaps : bool
        Whether missing values may stay, since the kernel takes them.
    tell : callable
        Is told what was found out about the file.
    """
    table = open_table(path, written, tell)
    frame = _held(path, table.data)
    frame = frame if frame.index.is_unique else frame.reset_index(drop=True)
    needed = [name for name in used if name in frame.columns]
    gaps = frame[needed].isna()
    lacking = gaps.any(axis=1).to_numpy()
    marks = table.marks or PLAIN
    if keep_gaps or not lacking.any():
        return Points(frame, frame.index, marks=marks)
    first = int(lacking.argmax())
    column = needed[int(gaps.iloc[first].to_numpy().argmax())]
    said = f"{table.place(first)} of {path} has no value in {column!r}"
    if lacking.all():
        raise DataError(f"no row of {path} can be predicted: {said}. Fill it in.")
    more = int(lacking.sum()) - 1
    others = f", and {more} more rows lack one" if more else ""
    left_out = f"{said}{others}: not predicted"
    return Points(frame[~lacking], frame.index, left_out, marks)


def _held(path: str, data: DataLike) -> pd.DataFrame:
    if isinstance(data, pd.DataFrame):
        return data
    source = find_source(data)
    if source is None:
        raise DataError(f"{path} holds no query points.")
    return read_few(source, None, "--at takes fewer query points.")


def check_alike(points: Points, path: str, table: Table, used: Sequence[str]) -> None:
    """Refuse text in a column that has numbers in the data, as the file writes them."""
    data, marks = table.data, (PLAIN, points.marks, table.marks or PLAIN)
    if not isinstance(data, pd.DataFrame):
        return
    for name in used:
        if name not in points.frame or not is_number(data[name]):
            continue
        column = points.frame[name]
        if not is_number(column):
            wrong = first_non_number(column, partial(reads_by, marks))
            raise DataError(
                f"column {name!r} has numbers in the data, and values such as "
                f"{str(wrong)!r} in {path}. Write both files alike: "
                "--decimal, --thousands and --na hold for both."
            )
