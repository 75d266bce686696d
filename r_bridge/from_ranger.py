"""Results of forests fitted by ranger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.adopt import ReadTrees
from r_bridge.battery import ranger_sections
from r_bridge.convert import trees_first
from r_bridge.drawn import drawn_sections
from r_bridge.forests import Fitted, RForest
from r_bridge.ranger import TREES
from r_bridge.recorders import record_ranger
from r_bridge.training import check_votes, stratified_by
from vstatkit import EnsembleResults
from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.oob_scores import Scores

# Columns of probabilities have the order of the levels; without levels, as for
# TRUE and FALSE, that in which the classes occur in the training data.
_ABOUT = """
function(forest) {
  oob <- if (length(forest$predictions)) forest$predictions
  codes <- forest$forest$class.values
  levels <- forest$forest$levels
  places <- if (!is.null(codes)) order(codes)
  classes <- if (!is.null(levels)) levels[codes]
    else if (is.matrix(oob)) colnames(oob)
    else if (!is.null(codes)) as.character(codes)
  if (is.null(levels) && is.matrix(oob)) oob <- oob[, places, drop = FALSE]
  given <- forest$call$sample.fraction
  list(
    treetype = forest$treetype, replace = forest$replace,
    counts = if (!is.null(forest$inbag.counts)) simplify2array(forest$inbag.counts),
    grown = !is.null(forest$forest),
    columns = forest$forest$independent.variable.names,
    codes = codes[places], classes = classes[places],
    places = if (is.null(levels)) places else seq_along(codes),
    unlike = if (!is.null(forest$call$case.weights)) "by `case.weights`",
    stratified = is.call(given) && identical(given[[1]], as.name("c")),
    oob = if (is.factor(oob)) as.integer(oob) else oob
  )
}
"""


@dataclass(frozen=True)
class Ranger(RForest):
    """Forests of ranger; trees predict numbers, class shares, or votes."""

    def check(self, said: Mapping[str, Any]) -> None:
        """Raise an error for forests that do not predict."""
        if said["treetype"][0] == "Survival":
            raise ValueError(
                "survival forests have no single prediction; fit a regression, "
                "probability or classification forest."
            )

    def read_values(self, found: Any, fitted: Fitted, n_points: int) -> Floats:
        """Convert votes, or class shares in ranger's order, to values."""
        if not _votes(fitted):
            values = super().read_values(found, fitted, n_points)
            places = fitted.said["places"]
            return values if fitted.classes is None else values[:, :, places - 1]
        values = trees_first(found).reshape(-1, n_points)
        return np.asarray(values[:, :, None] == fitted.said["codes"], dtype=np.float64)

    def check_training(self, x: pd.DataFrame, fitted: Fitted, read: ReadTrees) -> None:
        """Compare out-of-bag predictions, or the classes with most votes."""
        oob = fitted.said["oob"]
        if oob is None or not _votes(fitted):
            super().check_training(x, fitted, read)
            return
        elected = np.asarray(oob)[:, None] == fitted.said["codes"]
        check_votes(x, fitted.counts, read, elected)

    def unlike(self, fitted: Fitted, frame: pd.DataFrame) -> list[str]:
        """Detect case weights and sampling by class."""
        others, classes = frame.drop(columns=fitted.columns), fitted.classes
        stratified = fitted.said["stratified"][0] or (
            classes and stratified_by(fitted.counts, others, classes)
        )
        by_class = ["from every class by itself"] if stratified else []
        return super().unlike(fitted, frame) + by_class

    def scores(self, fitted: Fitted, frame: pd.DataFrame) -> Scores | None:
        """Score out-of-bag predictions; voting forests only have the winning class."""
        return None if _votes(fitted) else super().scores(fitted, frame)


def _votes(fitted: Fitted) -> bool:
    return bool(fitted.said["treetype"][0] == "Classification")


RANGER: Ranger = Ranger(
    package="ranger",
    r_class="ranger",
    maker="ranger::ranger",
    install="apt-get install r-cran-ranger, or in R: install.packages('ranger')",
    about=_ABOUT,
    trees=TREES,
    keep_inbag="ranger(..., keep.inbag = TRUE)",
    keep_trees="write.forest = TRUE",
    compare=lambda seeds, found: ranger_sections(seeds) | drawn_sections(RANGER, seeds),
    record=record_ranger,
)


def from_ranger(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
    threads: int = 1,
) -> EnsembleResults:
    """Compute standard errors for a forest fitted by R's ranger.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        rpy2 object. It must have been fitted with `keep.inbag = TRUE`.
    data, newdata : DataFrame or dict of columns
        Its training data, row by row, and the query points.
    variance : str
        Variance estimator, as in `vstatkit.fit`.
    threads : int
        Threads that R uses.

    Returns
    -------
    EnsembleResults
        Summary, components, covariance and tests; regression, probability and
        classification forests (whose trees vote).
    """
    return RANGER.adopt(model, data, newdata, variance=variance, threads=threads)
