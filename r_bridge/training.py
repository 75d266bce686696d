"""Checks that training data are those of a forest in R."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.adopt import ReadTrees
from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.oob_scores import Scores, score
from vstatkit.formula.column_checks import is_number

# Training rows at which the forest's out-of-bag predictions are computed again
CHECKED_ROWS = 20

# Training rows if only the class with most votes is known, which says less
CHECKED_VOTES = 1000

# Relative to the spread of the predictions, which R keeps in double precision
SAME_PREDICTION = 1e-6


def check_training(
    x: pd.DataFrame,
    counts: Ints,
    read: ReadTrees,
    oob: Any,
    *,
    shifted: bool = False,
) -> None:
    """Raise an error if the data do not give the model's out-of-bag predictions.

    Rows in another order, or categories whose levels are not in R's order, would
    otherwise give wrong numbers without a word: ranger does not keep the levels.
    Predictions that are `shifted` may all differ by one number: randomForest
    corrects their bias by another constant than that of new data.
    """
    known = np.asarray(oob, dtype=np.float64).reshape(len(x), -1)
    rows = _some_rows(np.isfinite(known), counts, CHECKED_ROWS)
    if rows.size == 0:
        return
    ours = _out_of_bag(x, counts, read, rows)
    finite = known[np.isfinite(known)]
    spread = max(float(np.ptp(finite)), float(np.abs(finite).max()))
    gap = ours - known[rows]
    if shifted:
        gap = gap - np.median(gap)
    far = np.abs(gap).max(axis=1) > SAME_PREDICTION * spread
    _refuse_other_data(rows[far])


def check_votes(x: pd.DataFrame, counts: Ints, read: ReadTrees, elected: Bools) -> None:
    """Raise an error if the data do not give the model's out-of-bag classes.

    `elected`, shape (n, classes), is the class with most out-of-bag votes; ranger
    breaks ties at random, so any of the classes that share most votes is right.
    """
    rows = _some_rows(elected.any(axis=1, keepdims=True), counts, CHECKED_VOTES)
    if rows.size == 0:
        return
    shares = _out_of_bag(x, counts, read, rows)
    most = shares.max(axis=1, keepdims=True)
    _refuse_other_data(rows[((shares < most - SAME_PREDICTION) & elected[rows]).any(1)])


def _some_rows(known: Any, counts: Ints, most: int) -> Ints:
    """Choose rows with known out-of-bag predictions, evenly over the data."""
    sure: Ints = np.flatnonzero(known.all(axis=1) & (counts == 0).any(axis=0))
    if sure.size <= most:
        return sure
    chosen: Ints = sure[np.linspace(0, sure.size - 1, most).astype(int)]
    return chosen


def _out_of_bag(x: pd.DataFrame, counts: Ints, read: ReadTrees, rows: Ints) -> Floats:
    """Average the trees that have not seen a row, shape (rows, outputs)."""
    values = read(x.iloc[rows]).reshape(len(counts), rows.size, -1)
    outside = (counts[:, rows] == 0)[:, :, None]
    return np.asarray((values * outside).sum(axis=0) / outside.sum(axis=0))


def _refuse_other_data(wrong: Ints) -> None:
    if wrong.size:
        raise ValueError(
            "`data` are not what this forest was fitted to: out-of-bag predictions "
            f"computed from them differ from the model's own, first in row {wrong[0]}. "
            "Give the rows in the order of the fit, and categories with the levels "
            "that R had, in R's order."
        )


def check_rows(frame: pd.DataFrame, n: int) -> None:
    """Raise an error if training data cannot be those of the model."""
    if len(frame) != n:
        raise ValueError(
            f"`data` must be the model's training data, {n} rows; got {len(frame)}. "
            "R leaves out rows with missing values before it fits."
        )


def stratified_by(counts: Ints, others: pd.DataFrame, classes: Sequence[str]) -> bool:
    """Return whether trees drew by a column with the classes of the response.

    The call of a forest does not always name its response.
    """
    named = (others[name] for name in others.columns)
    alike = (one for one in named if set(_texts_of_r(one)) == set(classes))
    return any(is_stratified(counts, one) for one in alike)


def is_stratified(counts: Ints, y: pd.Series) -> bool:
    """Return whether every tree drew the same number of rows from each class.

    Drawn from all rows alike, the numbers would differ from tree to tree.
    """
    if (counts == counts[0]).all():
        return False
    codes, levels = pd.factorize(y)
    drawn = counts @ (codes[:, None] == np.arange(len(levels)))
    return len(levels) > 1 and bool((drawn == drawn[0]).all())


def oob_scores(y: Any, oob: Any, classes: tuple[str, ...] | None) -> Scores | None:
    """Score R's out-of-bag predictions, if the responses are known."""
    if y is None or oob is None or np.asarray(oob).dtype == object:
        return None
    predicted = np.asarray(oob, dtype=np.float64).reshape(len(y), -1)
    if classes is None:
        return score(np.asarray(y, dtype=np.float64), predicted, None)
    if predicted.shape[1] != len(classes):
        return None
    codes = pd.Categorical(_texts_of_r(y), list(classes)).codes.astype(np.float64)
    if (codes < 0).any():
        return None
    if len(classes) == 2:
        predicted = predicted[:, 1:]
    return score(codes, predicted, len(classes))


def _texts_of_r(y: pd.Series) -> list[str]:
    """Write classes in R's style: TRUE and FALSE, integers without a decimal point."""
    if pd.api.types.is_bool_dtype(y.dtype):
        return [str(one).upper() for one in y]
    if is_number(y):
        return [f"{one:.15g}" for one in y]
    return [str(one) for one in y]
