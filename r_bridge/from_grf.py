"""Results of regression forests fitted by grf."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.adopt import AdoptedForest, check_columns
from r_bridge.battery import grf_sections
from r_bridge.check_grf import extract
from r_bridge.columns import as_query, matrix
from r_bridge.exceptions import RError
from r_bridge.forests import RForest
from r_bridge.grf import GrfForest
from r_bridge.recorders import record_grf
from r_bridge.training import check_rows
from vstatkit import EnsembleResults
from vstatkit._typing import DataLike, Floats
from vstatkit.formula.data_frames import as_frame

_COLUMNS = "function(forest) colnames(forest[['X.orig']])"

_SAME_ROWS = """
function(forest, X) isTRUE(all.equal(as.matrix(forest[["X.orig"]]), X,
                                     check.attributes = FALSE))
"""


@dataclass(frozen=True)
class Grf(RForest):
    """Forests of grf; samples and leaves are read from the trees."""

    def adopt(
        self,
        model: Any,
        data: DataLike,
        newdata: DataLike,
        *,
        variance: str = "auto",
        threads: int = 1,
    ) -> EnsembleResults:
        """Convert a fitted model to results; see `from_grf`."""
        forest = self.find(model)
        frame, points = as_frame(data), as_query(newdata)
        named = session.call(_COLUMNS, forest)
        columns = [str(name) for name in (points.columns if named is None else named)]
        check_columns(points, columns)
        here = extract(forest, matrix(points[columns]), threads=threads, name="grf")
        check_rows(frame, len(here.Y))
        check_columns(frame, columns)
        if not session.call(_SAME_ROWS, forest, matrix(frame[columns]))[0]:
            raise ValueError(
                "`data` are not what this forest was fitted to: the columns "
                f"{', '.join(columns)} differ from those that grf has kept. Give the "
                "rows in the order of the fit."
            )
        adopted = AdoptedForest(
            package="grf",
            counts=here.counts,
            read=lambda new: _full_values(replace(here, newdata=matrix(new))),
            columns=tuple(columns),
            kinds={},
            replace=False,
            response="Y",
        )
        units = frame.index if here.clusters is None else pd.Index(here.units[1])
        if here.group_size > 1:
            results = adopted.results(points, frame, units, "little_bags", here.groups)
            return results if variance == "auto" else results.with_variance(variance)
        if variance == "little_bags":
            raise ValueError(
                "little bags need trees that share half-samples; this forest was grown "
                "with ci.group.size = 1. Use variance='ij_u' or 'corrected', or refit "
                "with ci.group.size = 2."
            )
        return adopted.results(points, frame, units, variance)


def _full_values(forest: GrfForest) -> Floats:
    """Return the values of all trees; raise an error at points without a variance."""
    values = forest.full_values
    empty = ~np.isfinite(values).all(axis=0)
    if empty.any():
        raise RError(
            f"at {empty.sum()} points of `newdata`, the first in row "
            f"{np.flatnonzero(empty)[0]}, every group of trees has one with an empty "
            "leaf, which predicts nothing. Refit with more trees, or with "
            "honesty.prune.leaves = TRUE, grf's default."
        )
    return values


GRF = Grf(
    package="grf",
    r_class="regression_forest",
    maker="grf::regression_forest",
    install="in R: install.packages('grf')",
    compare=lambda seeds, found: grf_sections(found),
    record=record_grf,
)


def from_grf(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
    threads: int = 1,
) -> EnsembleResults:
    """Compute standard errors for a regression forest fitted by R's grf.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        rpy2 object.
    data, newdata : DataFrame or dict of columns
        Its training data, row by row, and the query points.
    variance : str
        "auto" is "little_bags", what grf computes, and "hoeffding" for forests
        with `ci.group.size = 1`, for which grf has no standard error and any
        estimator for draws without replacement may be named. Trees in groups
        depend on each other, and those estimators are refused for them.
    threads : int
        Threads that R uses.

    Returns
    -------
    EnsembleResults
        With weights, a tree's value is the forest's prediction plus the tree's
        deviation from it, so that the mean is grf's prediction. Trees whose leaf
        is empty at a point have values that leave mean and variance as grf has
        them.
    """
    return GRF.adopt(model, data, newdata, variance=variance, threads=threads)
