"""Out-of-bag scores: how well the ensemble predicts what it has not seen."""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.kernels.protocol import AnyKernel, Predictive
from vstatkit.showing import short_repr


@dataclass(frozen=True)
class Scores:
    """Out-of-bag predictions and their scores.

    Attributes
    ----------
    table : dict of str to float
        R-squared and RMSE, or accuracy and log-loss; empty when no observation
        was ever out of bag.
    residuals : ndarray
        Out-of-bag residuals of a numeric response, observations never out of
        bag left out; empty for classes.
    n_scored : int
        Observations that were predicted, and out of bag at least once.
    rows : ndarray of shape (n_scored,) or None
        These observations; None where it is not known.
    codes : ndarray of shape (n_scored,) or None
        Their classes, as codes.
    shares : ndarray of shape (n_scored,) or None
        Out-of-bag probabilities of these classes.
    """

    table: dict[str, float]
    residuals: Floats
    n_scored: int
    rows: Ints | None = None
    codes: Ints | None = None
    shares: Floats | None = None

    __repr__ = short_repr

    def interval_offsets(self, alpha: float) -> tuple[float, float] | None:
        """Residual quantiles that enclose a new observation.

        Notes
        -----
        Order statistics at `(n + 1) alpha / 2`, as in split conformal
        prediction; None where there are too few residuals for the level.

        References
        ----------
        Zhang, Zimmerman, Nettleton and Nordman (2020), The American
        Statistician 74.
        """
        n = self.residuals.size
        low = int(np.floor((n + 1) * alpha / 2))
        if low < 1:
            return None
        ordered = np.sort(self.residuals)
        return float(ordered[low - 1]), float(ordered[n - low])


def score(y: Floats, predicted: Floats, n_classes: int | None) -> Scores:
    """Score out-of-bag predictions.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Response, or class codes.
    predicted : ndarray of shape (n, c)
        Out-of-bag means; NaN where an observation was never out of bag.
    n_classes : int or None
        None for regression.
    """
    known = np.isfinite(predicted[:, 0])
    if not known.any():
        return Scores({}, np.empty(0), 0)
    y, predicted = y[known], predicted[known]
    rows, count = np.flatnonzero(known), int(known.sum())
    if n_classes is None:
        residuals = y - predicted[:, 0]
        return Scores(_regression(y, residuals), residuals, count, rows)
    if n_classes == 2:
        predicted = np.column_stack([1 - predicted, predicted])
    codes = y.astype(np.int64)
    own = predicted[np.arange(codes.size), codes]
    return Scores(_classes(codes, predicted), np.empty(0), count, rows, codes, own)


def _regression(y: Floats, residuals: Floats) -> dict[str, float]:
    centred = y - y.mean()
    largest = max(np.abs(centred).max(), np.abs(residuals).max())
    # Squares of huge and tiny numbers would leave the range of floating point.
    exponent = int(np.frexp(largest)[1])
    errors = np.sum(np.ldexp(residuals, -exponent) ** 2)
    spread = np.sum(np.ldexp(centred, -exponent) ** 2)
    root = np.ldexp(np.sqrt(errors / y.size), exponent)
    table = {"OOB RMSE": float(root)}
    if spread > 0:
        table = {"OOB R-squared": float(1 - errors / spread), **table}
    return table


def _classes(codes: Ints, shares: Floats) -> dict[str, float]:
    own = shares[np.arange(codes.size), codes]
    floor = np.finfo(np.float64).eps  # as scikit-learn's log_loss bounds it
    return {
        "OOB accuracy": float(np.mean(shares.argmax(axis=1) == codes)),
        "OOB log-loss": float(-np.mean(np.log(np.maximum(own, floor)))),
    }


def out_of_bag_scores(
    kernel: AnyKernel, evaluation: Evaluation, parsed: ParsedFormula
) -> Scores | None:
    """Score the out-of-bag predictions, where the kernel predicts."""
    if not isinstance(kernel, Predictive) or evaluation.oob is None:
        return None
    return score_rows(parsed.y, evaluation.oob, kernel.n_classes)


def score_rows(y: Floats, oob: OutOfBag, n_classes: int | None) -> Scores:
    """Score the observations that out-of-bag predictions were made for."""
    scores = score(oob.of(y), oob.mean, n_classes)
    if oob.rows is None or scores.rows is None:
        return scores
    return replace(scores, rows=oob.rows[scores.rows])
