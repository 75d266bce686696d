"""Results of forests fitted by randomForest."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.adopt import ReadTrees
from r_bridge.convert import trees_first
from r_bridge.forests import Fitted, RForest
from r_bridge.training import check_training, is_stratified
from vstatkit import EnsembleResults
from vstatkit._typing import DataLike, Floats

_ABOUT = """
function(forest) list(
  counts = forest$inbag,
  stratified = !is.null(forest$call$strata) && !is.null(forest$call$sampsize) &&
    !is.numeric(forest$call$sampsize),
  grown = !is.null(forest$forest), classes = forest$classes,
  columns = rownames(forest$importance),
  comparable = is.null(forest$votes) || max(forest$votes, na.rm = TRUE) <= 1,
  line = forest$coefs,
  y = if (is.factor(forest$y)) as.character(forest$y) else as.numeric(forest$y),
  oob = if (is.null(forest$votes)) as.numeric(forest$predicted) else forest$votes
)
"""

# randomForest keeps the levels of factors, but takes text and ordered factors for
# the numbers of their levels: such columns count one category.
_TREES = """
function(forest, x, threads) {
  categories <- stats::setNames(forest$forest$ncat, rownames(forest$importance))
  for (name in names(x)) {
    levels <- forest$forest$xlevels[[name]]
    if (is.character(levels)) x[[name]] <- factor(as.character(x[[name]]), levels)
    if (is.factor(x[[name]]) && categories[[name]] == 1) {
      x[[name]] <- as.integer(x[[name]])
    }
  }
  predict(forest, x, predict.all = TRUE)$individual
}
"""


@dataclass(frozen=True)
class RandomForest(RForest):
    """Forests of randomForest; trees predict numbers, or vote for classes."""

    def check_points(self, points: pd.DataFrame) -> None:
        """Raise an error for missing values, naming the first."""
        missing = points.isna().to_numpy()
        if missing.any():
            row, column = np.argwhere(missing)[0]
            raise ValueError(
                f"column {points.columns[column]!r} of the data is missing in row "
                f"{row}. randomForest takes no missing values; leave "
                "such rows out, or fill them in."
            )

    def read_values(self, found: Any, fitted: Fitted, n_points: int) -> Floats:
        """Convert class names to votes; apply the bias correction to numbers."""
        found = np.atleast_2d(found)
        if fitted.classes is not None:
            votes = [(found == label).T for label in fitted.classes]
            return np.stack(votes, axis=-1).astype(np.float64)
        # With `corr.bias = TRUE`, the linear correction is applied to every tree: the
        # mean is R's, and the variance that of the corrected mean, given the line.
        values, line = trees_first(found), fitted.said["line"]
        return values if line is None else line[0] + line[1] * values

    def check_training(self, x: pd.DataFrame, fitted: Fitted, read: ReadTrees) -> None:
        """Compare out-of-bag predictions, unless votes were counted or normalised."""
        if fitted.said["comparable"][0]:
            line, oob = fitted.said["line"], fitted.said["oob"]
            check_training(x, fitted.counts, read, oob, shifted=line is not None)

    def unlike(self, fitted: Fitted, frame: pd.DataFrame) -> list[str]:
        """Detect stratified sampling."""
        y = pd.Series(list(fitted.said["y"]))
        alone = fitted.said["stratified"][0] or (
            fitted.classes and is_stratified(fitted.counts, y)
        )
        return ["from every stratum by itself"] if alone else []


RANDOMFOREST = RandomForest(
    package="randomForest",
    r_class="randomForest",
    maker="randomForest::randomForest",
    install=(
        "apt-get install r-cran-randomforest, or in R: install.packages('randomForest')"
    ),
    about=_ABOUT,
    trees=_TREES,
    keep_inbag="randomForest(..., keep.inbag = TRUE)",
    keep_trees="keep.forest = TRUE",
)


def from_randomforest(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
) -> EnsembleResults:
    """Compute standard errors for a forest fitted by R's randomForest.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        rpy2 object. It must have been fitted with `keep.inbag = TRUE`.
    data, newdata : DataFrame or dict of columns
        Its training data, row by row, and the query points.
    variance : str
        Variance estimator, as in `vstatkit.fit`.

    Returns
    -------
    EnsembleResults
        Trees of a classification forest vote: their values are 0 or 1.
    """
    return RANDOMFOREST.adopt(model, data, newdata, variance=variance)
