"""Out-of-bag losses with a predictor and with copies of it, and their difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.out_of_bag_predictor import OutOfBagPredictor
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.moments import invert

# Most predictions held at a time: learners x rows x tables x outputs.
CHUNK_VALUES = 8_000_000
MOST_PAIRED = 1000  # most units whose pairs are all compared
PAIRING_SEED = 20  # seed that draws them from more units
LEAST_SKEW = 0.05  # skewness below which Student's t needs no correction
# Skewness of a chi-squared variable with one degree of freedom: no quadratic form has
# more.
MOST_SKEW = float(np.sqrt(8))


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


@dataclass(frozen=True)
class MeanLossDifference:
    """The mean loss difference, with its standard error."""

    mean: float  # mean over rows
    error: float  # its standard error
    df: int  # units minus one
    skew: float = 0.0  # skewness of the mean under the null hypothesis

    @property
    def pvalue(self) -> float:
        r"""One-sided p-value of a zero mean.

        Notes
        -----
        Student's t gives the quantile of a normal variable, and this becomes that of
        :math:`(\chi^2_\nu - \nu) / \sqrt{2 \nu}` with the same skewness,
        :math:`\nu = 8 / \text{skew}^2`: a quadratic form has the first three moments
        of this variable (Buckley and Eagleson 1988).

        References
        ----------
        Buckley and Eagleson (1988), An approximation to the distribution of quadratic
        forms in normal random variables, Australian Journal of Statistics 30A.
        doi:10.1111/j.1467-842X.1988.tb00471.x
        """
        if not self.error > 0:
            return 0.0 if self.mean > 0 else 1.0
        pvalue = float(stats.t.sf(self.mean / self.error, self.df))
        if self.skew < LEAST_SKEW:
            return pvalue
        nu = 8 / self.skew**2
        z = stats.norm.isf(pvalue)
        return float(stats.chi2.sf(nu + z * np.sqrt(2 * nu), nu))


def average_differences(
    differences: LossDifferences,
    design: SubsampleDesign,
    units: Ints,
    *,
    through: bool = True,
    freedom: float = 0.0,
    skewness: bool = True,
) -> MeanLossDifference:
    r"""Average loss differences over rows, with a standard error over units.

    The influence of units through the learners that saw them, which the `design` has
    drawn, is included if `through` is true. `freedom` are the degrees of freedom of the
    regressions on the other predictors, divided by the number of rows. The `skewness`
    is for tests.

    Notes
    -----
    Let :math:`r_j = \sum_{i \in j} (d_i - \bar d) / r` be what the rows of unit j do to
    the mean, :math:`p_{bj}` the part of it that is by learner b, :math:`g_b = \sum_j
    p_{bj}`, and C what pairs of units have in common, see `Pairs`. Then

    .. math::

        \operatorname{var} = \frac{n}{n - 1} \sum_j \Bigl( r_j^2 - \sum_b p_{bj}^2
        \Bigr) + C + \frac{L}{L - 1} \sum_b g_b^2 .

    The first term is the variance that the rows have if the learners are given. Under
    the null :math:`d_i` is nearly a sum over the rows j that learners of row i saw, of
    products of the errors of i and j. The same product is in :math:`d_j`: that is C.
    The last term is what other learners would change. That chance is in the first
    term too, row by row, where it is no part of the variance of the mean: the second
    term takes it out. The variance is never below that of the rows by themselves, the
    first two terms, or, where it is not known what units do through learners, the
    first alone.

    Errors of the regressions, of the response and of the predictor on the others, are
    shared by rows that are near each other. With the hat matrix S of a projection and
    errors e and u, the sum of the products of residuals that leave rows out is
    :math:`e' (I - S) u / (1 - h)^2`, where h is the mean leverage, `freedom`. Its
    variance is :math:`1 / (1 - h)` times what the squared products say.

    Such a sum of products of two errors is skewed to the right. Its third cumulant is
    in what triples of units have in common, see `Pairs`.
    """
    known = np.isfinite(differences.saved)
    saved, r = differences.saved[known], int(known.sum())
    known_units, place = np.unique(units[known], return_inverse=True)
    mean, n_known = float(saved.mean()), len(known_units)
    rows = np.bincount(place, saved - mean) / r
    factor = n_known / max(n_known - 1, 1) / (1 - freedom)
    row_variance = factor * float(rows @ rows)
    if not through:
        return MeanLossDifference(mean, float(np.sqrt(row_variance)), n_known - 1)
    L = len(differences.parts)
    of_unit = sparse.csr_array((np.ones(r), (place, np.arange(r))), (n_known, r))
    by_unit = np.asarray(of_unit @ differences.parts[:, known].T) / r
    g = by_unit.sum(axis=0)
    alone = row_variance - factor * float(np.vdot(by_unit, by_unit))
    chance = L / (L - 1) * float(g @ g)
    pairs = Pairs.of(by_unit, design, known_units)
    common = pairs.common() / (1 - freedom)
    variance = max(alone + common, alone, 0.0) + chance
    skew = 0.0
    if skewness and variance > 0:
        skew = pairs.third_cumulant() / variance**1.5
    error, skew = float(np.sqrt(variance)), float(np.clip(skew, 0.0, MOST_SKEW))
    return MeanLossDifference(mean, error, n_known - 1, skew)


@dataclass(frozen=True)
class Pairs:
    r"""Influences of units on the rows of other units, through the learners.

    The influence of unit j on the rows of unit i is estimated from the :math:`a_j`
    learners that did not see it:
    :math:`c_{ij} = -(L / a_j) \sum_{b \not\ni j} p_{bi}`. Of more than `MOST_PAIRED`
    units, a random sample of that size is used.
    """

    # (u, L): contribution of each learner to the rows of a unit, :math:`p_{bi}`
    parts: Floats
    absent: Floats  # (L, u): one where a learner did not see a unit
    units: int  # units that these were drawn from

    @classmethod
    def of(cls, by_unit: Floats, design: SubsampleDesign, known: Ints) -> "Pairs":
        """Select the units whose pairs are compared."""
        units = len(known)
        some = np.arange(units)
        if units > MOST_PAIRED:
            some = np.random.default_rng(PAIRING_SEED).choice(units, MOST_PAIRED, False)
        present = design.sparse_counts(0, by_unit.shape[1])[:, known[some]]
        absent = np.asarray((present > 0).toarray() == 0, dtype=np.float64)
        return cls(by_unit[some], absent, units)

    def _scale(self, together: int) -> float:
        """Divide the number of pairs, or triples, of all units by that of these."""
        steps = np.arange(together)
        drawn = float(np.prod(len(self.parts) - steps))
        return float(np.prod(self.units - steps)) / drawn if drawn > 0 else 0.0

    def common(self) -> float:
        r"""Sum :math:`c_{ij} c_{ji}` over all pairs of units, without noise.

        Notes
        -----
        What the chance of the :math:`a_{ij}` learners without both does to the sum is

        .. math::

            \frac{L^2}{a_i a_j} \Bigl(1 - \frac{a_{ij}}{a_i}\Bigr)
            \Bigl(1 - \frac{a_{ij}}{a_j}\Bigr) \sum_b p_{bi} p_{bj} ,

        since :math:`p_{bi}` add up to zero over the learners without i. The sum of
        :math:`r_j \sum_i c_{ij}` over j is quicker, but has products of three units in
        it too. These are large when the mean is, and a test by their error is too
        careful.
        """
        p, absent, L = self.parts, self.absent, self.parts.shape[1]
        inverse = invert(absent.sum(axis=0))
        effect = (p @ absent) * inverse
        # Of the learners without j, those with i.
        saw = 1 - (absent.T @ absent) * inverse
        noise = (p @ p.T) * np.outer(inverse, inverse) * saw * saw.T
        # A unit by itself is in neither sum: no learner without it saw it.
        return float(self._scale(2) * L**2 * (effect * effect.T - noise).sum())

    def third_cumulant(self) -> float:
        r"""Estimate the third cumulant of the sum of all :math:`c_{ij}`.

        Notes
        -----
        The third cumulant of a quadratic form :math:`e' M e` in normal errors is
        :math:`8 \operatorname{tr} M^3` in units of their variance. With
        :math:`C = M \circ e e'` the trace is the sum of :math:`C_{ij} C_{jk} C_{ki}`
        over distinct units. The three factors come from three parts of the learners,
        so that their noise does not add up.
        """
        L = self.parts.shape[1]
        order = np.random.default_rng(PAIRING_SEED).permutation(L)
        first, second, third = map(self._by_learners, np.array_split(order, 3))
        total = float(np.sum((first @ second) * third))
        return self._scale(3) * 8 * total

    def _by_learners(self, some: Ints) -> Floats:
        """Estimate C, symmetric, by some of the learners."""
        absent = self.absent[some]
        inverse = invert(absent.sum(axis=0))
        part = self.parts[:, some]
        centre = (part * absent.T).sum(axis=1) * inverse
        part = (part - centre[:, None]) * absent.T
        effect = -self.parts.shape[1] * (part @ absent) * inverse
        effect = (effect + effect.T) / 2
        np.fill_diagonal(effect, 0.0)
        return np.asarray(effect)
