"""Forests of R's ranger: fit on a given design, and read the results."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from r_bridge import session
from r_bridge.columns import ForestData
from r_bridge.convert import counts_to_inbag, to_r_frame, trees_first
from r_bridge.objects import RObject
from vstatkit._typing import Floats, Ints

# Query points above which ranger's `predict(type = "se")` calibrates
CALIBRATED_ABOVE = 20

_GROW = """
function(x, y, inbag, options) {
  given <- list(x = x, y = y, num.trees = length(inbag), inbag = inbag,
                probability = is.factor(y), keep.inbag = TRUE, verbose = FALSE)
  do.call(ranger::ranger, c(given, options), quote = TRUE)
}
"""

# A seed keeps `predict` from drawing from the generator of the running R.
TREES = """
function(forest, x, threads) {
  predict(forest, data = x, predict.all = TRUE, num.threads = threads,
          seed = 1)$predictions
}
"""

_MEAN = """
function(forest, x, threads) {
  predict(forest, data = x, num.threads = threads, seed = 1)$predictions
}
"""

# ranger warns of every NaN, and that it does not calibrate few points; here both
# are part of what is compared. Calibration draws from R's generator, whose state
# is put back.
_SE = """
function(forest, x, method, threads) {
  state <- get0(".Random.seed", envir = globalenv(), inherits = FALSE)
  on.exit(if (is.null(state)) rm(".Random.seed", envir = globalenv())
          else assign(".Random.seed", state, envir = globalenv()))
  set.seed(1)
  suppressWarnings(
    predict(forest, data = x, type = "se", se.method = method,
            num.threads = threads, seed = 1)$se
  )
}
"""

_INBAG = "function(forest) simplify2array(forest$inbag.counts)"


class RangerNumbers(Protocol):
    """Results of ranger for one forest at query points."""

    def counts(self) -> Ints:
        """Count how often each observation is in each tree's subsample, (B, n)."""

    def tree_values(self) -> Floats:
        """Predict with every tree, (B, m) or (B, m x classes)."""

    def mean(self) -> Floats:
        """Predict with the forest, (m,) or (m x classes)."""

    def squared_se(self, method: str) -> Floats:
        """Square of `predict(type = "se")`; NaN if that is NaN."""

    def uncalibrated(self) -> Floats:
        """Compute the infinitesimal jackknife before calibration, all rows, (m,)."""


@dataclass(frozen=True)
class RangerForest:
    """A forest fitted by ranger, at query points."""

    forest: RObject  # the fitted model, in R
    points: RObject  # query points as an R data frame
    threads: int = 1  # threads that R uses

    def counts(self) -> Ints:
        """Count how often each observation is in each tree's subsample, (B, n)."""
        return trees_first(session.call(_INBAG, self.forest)).astype(np.int64)

    def tree_values(self) -> Floats:
        """Predict with every tree, (B, m) or (B, m x classes)."""
        values = trees_first(
            session.call(TREES, self.forest, self.points, self.threads)
        )
        return values.reshape(len(values), -1)

    def mean(self) -> Floats:
        """Predict with the forest, (m,) or (m x classes)."""
        found = session.call(_MEAN, self.forest, self.points, self.threads)
        return np.asarray(found, dtype=np.float64).ravel()

    def squared_se(self, method: str) -> Floats:
        """Square of `predict(type = "se")`; NaN if that is NaN."""
        found = session.call(_SE, self.forest, self.points, method, self.threads)
        return np.asarray(found, dtype=np.float64).ravel() ** 2

    def uncalibrated(self) -> Floats:
        """Compute the infinitesimal jackknife before calibration, all rows, (m,)."""
        found = session.call(
            "ranger:::rInfJack",
            np.asfortranarray(self.tree_values().T),
            np.asfortranarray(self.counts().T, dtype=np.float64),
            calibrate=False,
        )
        return np.asarray(found["var.hat"], dtype=np.float64)


def grow(
    data: ForestData, counts: Ints, *, seed: int, threads: int, options: dict[str, Any]
) -> RangerForest:
    """Grow a ranger forest on the subsamples given as counts (B, n).

    A factor as response makes it a probability forest.
    """
    given = {"seed": seed, "num.threads": threads, **options}
    answers = to_r_frame(data.response.to_frame("y"))
    response = session.keep("function(frame) frame$y", answers)
    forest = session.keep(
        _GROW, to_r_frame(data.x), response, counts_to_inbag(counts), given
    )
    return RangerForest(forest, to_r_frame(data.new), threads)
