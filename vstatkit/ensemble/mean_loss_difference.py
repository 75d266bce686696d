"""The mean of out-of-bag loss differences, with its standard error and p-value."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.loss_differences import LossDifferences
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.moments import invert

MOST_PAIRED = 1000  # most units whose pairs are all compared
PAIRING_SEED = 20  # seed that draws them from more units
LEAST_SKEW = 0.05  # skewness below which Student's t needs no correction
# Skewness of a chi-squared variable with one degree of freedom: no quadratic form has
# more.
MOST_SKEW = float(np.sqrt(8))


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
