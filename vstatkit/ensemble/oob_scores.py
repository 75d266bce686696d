"""Out-of-bag scores: R-squared and RMSE, or accuracy and log-loss."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import OutOfBag
from vstatkit.text import short_repr


@dataclass(frozen=True)
class Scores:
    """Out-of-bag predictions and their scores."""

    # R-squared and RMSE, or accuracy and log-loss, weighted by the sampling weights of
    # the fit; empty when no observation was ever out of bag
    table: dict[str, float]
    # Out-of-bag residuals of a numeric response, observations never out of bag left
    # out; empty for classes
    residuals: Floats
    n_scored: int  # observations that were predicted, and out of bag at least once
    rows: Ints | None = None  # (n_scored,): these observations; None if unknown
    codes: Ints | None = None  # (n_scored,): their classes, as codes
    shares: Floats | None = None  # out-of-bag probabilities of these classes

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


def score(
    y: Floats, predicted: Floats, n_classes: int | None, weights: Floats | None = None
) -> Scores:
    """Score out-of-bag predictions, shape (n, c), NaN where a row has none."""
    known = np.isfinite(predicted[:, 0])
    if not known.any():
        return Scores({}, np.empty(0), 0)
    y, predicted = y[known], predicted[known]
    rows, count = np.flatnonzero(known), int(known.sum())
    shares = _shares(weights, rows)
    if n_classes is None:
        residuals = y - predicted[:, 0]
        return Scores(_regression(y, residuals, shares), residuals, count, rows)
    if n_classes == 2:
        predicted = np.column_stack([1 - predicted, predicted])
    codes = y.astype(np.int64)
    class_shares = predicted[np.arange(codes.size), codes]
    right = (predicted.argmax(axis=1) == codes).astype(np.float64)
    table = {}
    if shares.any():
        floor = np.finfo(np.float64).eps  # as scikit-learn's log_loss bounds it
        log_loss = -_mean(np.log(np.maximum(class_shares, floor)), shares)
        table = {"OOB accuracy": _mean(right, shares), "OOB log-loss": log_loss}
    return Scores(table, np.empty(0), count, rows, codes, class_shares)


def _shares(weights: Floats | None, rows: Ints) -> Floats:
    """Return the weights of scored rows in a mean; they sum to one, or are all 0."""
    counted = np.ones(rows.size) if weights is None else weights[rows]
    # Sums of huge and tiny weights would leave the range of floating point.
    counted = counted / max(float(counted.max()), np.finfo(np.float64).tiny)
    return np.asarray(counted / max(float(counted.sum()), 1.0))


def _regression(y: Floats, residuals: Floats, shares: Floats) -> dict[str, float]:
    counted = shares > 0
    if not counted.any():
        return {}
    y, residuals, shares = y[counted], residuals[counted], shares[counted]
    centred = y - _mean(y, shares)
    largest = max(np.abs(centred).max(), np.abs(residuals).max())
    # Squares of huge and tiny numbers would leave the range of floating point.
    exponent = int(np.frexp(largest)[1])
    errors = _mean(np.ldexp(residuals, -exponent) ** 2, shares)
    spread = _mean(np.ldexp(centred, -exponent) ** 2, shares)
    root = np.ldexp(np.sqrt(errors), exponent)
    r_squared = {"OOB R-squared": float(1 - errors / spread)} if spread > 0 else {}
    return {**r_squared, "OOB RMSE": float(root)}


def _mean(values: Floats, shares: Floats) -> float:
    """Average values; a plain mean if all rows count equally, which rounds less."""
    if (shares == shares[0]).all():
        return float(values.mean())
    return float(shares @ values)


def score_rows(y: Floats, oob: OutOfBag | None, kernel: Any) -> Scores | None:
    """Score the observations that out-of-bag predictions were made for, if any were."""
    if oob is None:
        return None
    row_weights = getattr(kernel, "weights", None)
    weights = oob.of(row_weights) if isinstance(row_weights, np.ndarray) else None
    scores = score(oob.of(y), oob.mean, kernel.n_classes, weights)
    if oob.rows is None or scores.rows is None:
        return scores
    return replace(scores, rows=oob.rows[scores.rows])
