"""Code batch after batch, and write the rows that are kept to disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.formula.batches import NewLevels, Sides
from vstatkit.formula.engine import Matrix
from vstatkit.formula.frames import check_finite
from vstatkit.formula.response import Response, response_values, settle_response
from vstatkit.formula.stored import ColumnWriter, StoredFrame
from vstatkit.formula.summary import HEAD
from vstatkit.formula.survey import Survey
from vstatkit.formula.whole import with_whole_factors
from vstatkit.sources.store import GrowingArray


@dataclass(frozen=True)
class Plan:
    """What is known before rows are written.

    Attributes
    ----------
    seen : Survey
        The data.
    sides : Sides
        Codes a batch.
    used : list of str
        Columns that the formula reads.
    kept : ndarray
        Columns of the design matrix that are used.
    names : tuple of str
        Their names.
    whole_factors : bool
        Whether unordered factors are kept in one column each.
    """

    seen: Survey
    sides: Sides
    used: list[str]
    kept: Ints
    names: tuple[str, ...]
    whole_factors: bool

    def matrix(self, right: Matrix) -> Floats:
        """Take the columns of the design matrix that are used."""
        if self.whole_factors:
            right = with_whole_factors(right, self.seen.frame)
        return right.values[:, self.kept]


@dataclass(frozen=True)
class Written:
    """Rows on disk.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Design matrix.
    response : Response
        Response; its numbers too are mapped from a file.
    rows : ndarray of shape (n,)
        Places in the data of the rows kept.
    data : StoredFrame
        Columns that the formula reads.
    beside : StoredFrame
        Columns beside the formula.
    examples : DataFrame
        Some rows, in which every level that the engine learnt occurs, and which are
        enough to code the same way again.
    """

    X: Floats
    response: Response
    rows: Ints
    data: StoredFrame
    beside: StoredFrame
    examples: pd.DataFrame


def write_rows(plan: Plan, beside: Sequence[str]) -> Written:
    """Read the data once more, and write the rows that are kept.

    Parameters
    ----------
    plan : Plan
        How they are coded.
    beside : sequence of str
        Columns to keep beside the formula.
    """
    writer = _Writer(plan, beside)
    for batch in plan.seen.batches():
        writer.add(batch)
    return writer.written()


@dataclass
class _Response:
    """Values of the response, batch after batch."""

    values: list[Floats] = field(default_factory=list)
    levels: tuple[Any, ...] | None = None
    _seen: set[float] = field(default_factory=set)

    def add(self, left: Matrix, first: int) -> Bools:
        """Take a batch; tell rows with a level that no earlier row had."""
        values, self.levels = response_values(left, first)
        self.values.append(values)
        new = np.zeros(len(values), dtype=bool)
        if self.levels is not None:
            found, firsts = np.unique(values, return_index=True)
            fresh = [one not in self._seen for one in found.tolist()]
            new[firsts[fresh]] = True
            self._seen.update(found.tolist())
        return new

    def settled(self) -> Response:
        """Code the levels that occur; the numbers are mapped from a file."""
        found = settle_response(np.concatenate(self.values), self.levels)
        self.values.clear()
        y = GrowingArray(np.float64)
        y.append(found.y)
        return Response(y.mapped(), found.classes, found.unused_levels)


class _Writer:
    def __init__(self, plan: Plan, beside: Sequence[str]) -> None:
        kinds = plan.seen.kinds
        self._plan = plan
        self._X = GrowingArray(np.float64, plan.kept.size)
        self._response = _Response()
        self._rows: list[Ints] = []
        self._n_kept = 0
        self._columns = {name: ColumnWriter(kinds[name]) for name in plan.used}
        self._beside = {name: ColumnWriter(kinds[name]) for name in beside}
        self._levels = NewLevels(plan.sides.left, plan.sides.right)
        self._examples = [plan.seen.frame]

    def add(self, batch: pd.DataFrame) -> None:
        """Code a batch, and write its rows."""
        plan = self._plan
        plain = plan.seen.plain(batch)
        left, right = plan.sides.coded(plain)
        X = plan.matrix(right)
        passes = plan.sides.missing == "pass"
        check_finite(X, plan.names, allow_missing=passes, first=self._n_kept)
        new = self._response.add(left, self._n_kept)
        new |= np.arange(len(X)) < HEAD - self._n_kept
        whole = len(right.rows) == len(batch)
        kept = batch if whole else batch.loc[right.rows]
        self._examples.append(kept[new])
        if self._levels.wanted:
            learnt = plan.sides.learnt(plain)
            with_levels = learnt.index[self._levels.rows(learnt)]
            self._examples.append(batch.loc[with_levels])
        self._X.append(X)
        for name, column in [*self._columns.items(), *self._beside.items()]:
            column.append(kept[name])
        self._rows.append(right.rows)
        self._n_kept += len(X)

    def written(self) -> Written:
        """End the writing."""
        rows = np.concatenate(self._rows)
        n_rows = self._plan.seen.n_rows
        index = pd.RangeIndex(n_rows) if rows.size == n_rows else pd.Index(rows)
        examples = pd.concat(self._examples)
        return Written(
            X=self._X.mapped(),
            response=self._response.settled(),
            rows=rows,
            data=_frame(self._columns, index),
            beside=_frame(self._beside, index),
            examples=examples[~examples.index.duplicated()].sort_index(),
        )


def _frame(columns: dict[str, ColumnWriter], index: pd.Index) -> StoredFrame:
    stored = {name: column.stored() for name, column in columns.items()}
    return StoredFrame(stored, index)
