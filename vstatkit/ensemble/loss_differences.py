"""Out-of-bag losses with a predictor and with copies of it, and their difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.out_of_bag_by_learner import OutOfBagPredictor

# Most predictions held at a time: learners x rows x tables x outputs.
CHUNK_VALUES = 8_000_000


def target_values(y: Floats, n_classes: int | None) -> Floats:
    """Return the values that predictions estimate, shape (n, c)."""
    if n_classes is None or n_classes == 2:
        return np.asarray(y[:, None])
    return np.asarray(np.arange(n_classes) == y[:, None], dtype=np.float64)


@dataclass(frozen=True)
class LossDifferences:
    """Differences in out-of-bag loss, with copies of a predictor minus without."""

    base: Floats  # (r,): loss of the fit; NaN if every learner has seen the row
    # (r,): mean loss with copies of the predictor minus `base`; or its orthogonal form
    saved: Floats
    # (L, r): first-order contribution of each learner to `saved`; zero where it has
    # seen the row. The contributions of all learners sum to zero.
    parts: Floats

    def weighted(self, weights: Floats) -> "LossDifferences":
        """Weight the rows; weights have any mean."""
        shares = weights / weights[np.isfinite(self.saved)].mean()
        return replace(self, saved=self.saved * shares, parts=self.parts * shares)


def compare_losses(
    full: OutOfBagPredictor,
    copies: Sequence[Floats],
    y: Floats,
    rows: Ints,
    n_classes: int | None,
    *,
    expected: Floats | None = None,
) -> LossDifferences:
    r"""Compare out-of-bag losses of a fit with those with copies of a predictor.

    The response `y` has class codes if there are classes. The fit, `full`, predicts
    from one table, and from `copies` of it, with copies of the predictor. The
    orthogonal form is computed if there are `expected` values: predictions of the
    response from the other predictors, shape (n, c), by fits that have not seen the
    row.

    Notes
    -----
    Let f be the out-of-bag prediction of a row and :math:`\tilde f` that with a copy.
    The loss difference is :math:`(y - \tilde f)^2 - (y - f)^2`. If copies are drawn
    from the distribution of the predictor given the others, z, then any function of z
    times :math:`f - \tilde f` has mean zero, and f and :math:`\tilde f` have the same
    variance given z. Without these terms the mean is that of

    .. math:: 2 \, (y - g(z)) \, (f - \tilde f), \qquad g(z) = \operatorname{E}[y|z] ,

    for whatever g. This is the orthogonal form. Errors of g and errors of the copies
    change its mean by their product only, so that both may be estimated, and its
    deviations from the mean are the influences of the rows, f being given.

    With the out-of-bag prediction :math:`\hat f_i = \sum_b w_{bi} h_b(x_i) /
    \sum_b w_{bi}`, the squared error of row i changes by :math:`-2 (y_i - \hat f_i)
    w_{bi} (h_b(x_i) - \hat f_i) / \sum_b w_{bi}` per unit of weight that learner b
    gains. The learner's contribution is this with copies minus this without. In the
    orthogonal form it is :math:`2 (y_i - g_i)` times the learner's contribution to
    :math:`f - \tilde f`.

    References
    ----------
    Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey and Robins (2018), The
    Econometrics Journal 21. doi:10.1111/ectj.12097

    Williamson, Gilbert, Simon and Carone (2023), A general framework for inference on
    algorithm-agnostic variable importance, JASA 118.
    doi:10.1080/01621459.2021.2003200

    Lundborg, Kim, Shah and Samworth (2024), The projected covariance measure for
    assumption-lean variable significance testing, Annals of Statistics 52.
    doi:10.1214/24-AOS2447
    """
    n_outputs = full.task.kernel.n_outputs  # type: ignore[union-attr]
    predictor = replace(full, tables=(*full.tables, *copies))
    L = len(full.learners)
    step = max(1, CHUNK_VALUES // (L * len(predictor.tables) * n_outputs))
    base, saved = np.empty(len(rows)), np.empty(len(rows))
    parts = np.empty((L, len(rows)))
    for first in range(0, len(rows), step):
        place = slice(first, first + step)
        values, weights = predictor.outside(rows[place])
        target = target_values(y[rows[place]], n_classes)[:, None]
        losses, part = _losses(values, weights, target)
        base[place] = losses[:, 0]
        if expected is not None:
            away = target[:, 0] - expected[rows[place]]
            saved[place], parts[:, place] = _orthogonal(values, weights, away)
            continue
        # Differences first, so that copies without an effect give exactly zero.
        saved[place] = (losses[:, 1:] - losses[:, :1]).mean(axis=1)
        parts[:, place] = (part[:, :, 1:] - part[:, :, :1]).mean(axis=2)
    return LossDifferences(base, saved, parts)


def _losses(values: Floats, weights: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Compute losses, (r, tables), and learners' contributions, (L, r, tables)."""
    times = weights.sum(axis=0)
    often = np.where(times > 0, times, np.nan)[:, None, None]
    mean = values.sum(axis=0) / often
    away = target - mean
    away_known = np.where(np.isfinite(away), away, 0.0)
    slope = -2 * away_known / np.where(times > 0, times, 1.0)[:, None, None]
    centre = np.where(np.isfinite(mean), mean, 0.0)
    parts = np.einsum("brtc,rtc->brt", values, slope)
    parts -= np.einsum("br,rtc,rtc->brt", weights, centre, slope)
    return np.asarray((away**2).sum(axis=2)), np.asarray(parts)


def _orthogonal(values: Floats, weights: Floats, away: Floats) -> tuple[Floats, Floats]:
    """Compute the orthogonal form, (r,), and learners' contributions, (L, r)."""
    times = weights.sum(axis=0)
    often = np.where(times > 0, times, np.nan)[:, None]
    apart = (values[:, :, :1] - values[:, :, 1:]).mean(axis=2)
    change = apart.sum(axis=0) / often
    saved = 2 * (away * change).sum(axis=1)
    slope = 2 * away / np.where(times > 0, times, 1.0)[:, None]
    known = np.where(np.isfinite(change), change, 0.0)
    parts = np.einsum("brc,rc->br", apart, slope)
    parts -= weights * (known * slope).sum(axis=1)
    return np.asarray(saved), np.asarray(parts)
