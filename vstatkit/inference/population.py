"""Standard errors for the population that the averaged rows were drawn from."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.inference.estimates import Estimates, Estimation, stabilise
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.formulas import noise_variance
from vstatkit.variance.influence_summaries import (
    influence_concentration,
    influence_skew,
)
from vstatkit.variance.moments import influence_values, sum_ensemble, value_units
from vstatkit.variance.registry import ESTIMATORS, estimate_covariance

COLUMNS = 200  # columns whose covariances are estimated at a time


@dataclass(frozen=True)
class RowNoise:
    """A covariance of averages, as squares that are added and subtracted.

    The roots are linear in the averages, so combinations and changes of unit need no
    squares of large numbers.
    """

    roots: Floats  # (r, m): roots of the squares
    # (r,): minus one for squares that are subtracted, because estimated covariances may
    # be indefinite; otherwise one
    signs: Floats

    @property
    def covariance(self) -> Floats:
        """The covariance, shape (m, m)."""
        return np.asarray((self.roots.T * self.signs) @ self.roots)


def row_noise(
    estimation: Estimation, errors: Floats, codes: Ints, n_levels: int
) -> RowNoise:
    r"""Estimate the bias of the squared influences of rows from prediction errors.

    `errors` are the influences of p rows by every learner, on v averages of c outputs
    each, shape (B, p, v, c), and `codes` the levels whose averages the rows are in. The
    result is the noise of the v * n_levels * c averages, in this order.

    Up to a factor, the influence of a row is
    :math:`g_j = w_j (\hat f(x_j) - \sum_i w_i \hat f(x_i))`, a mean over learners, so
    its variance is estimated like that of a prediction. The noise is

    .. math:: \sum_j \operatorname{Cov}(g_j, g_j') ,

    not made positive, so that its mean over rows is unbiased. Averages of different
    levels have no rows in common.
    """
    B, _, v, c = errors.shape
    roots, signs = [], []
    for level in range(n_levels):
        level_errors = errors[:, codes == level].reshape(B, -1, v * c)
        unit = value_units(level_errors.reshape(-1, v * c))
        covariance = _summed_covariance(estimation, level_errors / unit)
        values, vectors = np.linalg.eigh(covariance)
        placed = np.zeros((v * c, v, n_levels, c))
        scaled = np.sqrt(np.abs(values))[:, None] * vectors.T * unit
        placed[:, :, level] = scaled.reshape(-1, v, c)
        roots.append(placed.reshape(v * c, -1))
        signs.append(np.sign(values))
    return RowNoise(np.concatenate(roots), np.concatenate(signs))


def _summed_covariance(estimation: Estimation, values: Floats) -> Floats:
    """Sum the covariances (m, m) of the contributions (B, p, m) of p rows."""
    B, p, m = values.shape
    step = max(1, COLUMNS // m)
    total = np.zeros((m, m))
    for first in range(0, p, step):
        block = values[:, first : first + step]
        method, design, orders = estimation.method, estimation.design, estimation.orders
        sampling, monte_carlo = estimate_covariance(
            method, design, block.reshape(B, -1), orders
        )
        blocks = (sampling + monte_carlo).reshape(2 * block.shape[1:])
        total += np.einsum("pipj->ij", blocks)
    return total


@dataclass(frozen=True)
class RowInfluence:
    """Influence on averages of the rows averaged over, as a sample."""

    # (u, m): influence of each unit's rows on every average, for fixed learners
    values: Floats
    # Whether the units are those that the learners were drawn from; otherwise they are
    # independent of these
    shared: bool
    # Bias of the squared influences from prediction errors; None if units are shared
    noise: RowNoise | None = None

    def combine(self, coefs: Floats) -> "RowInfluence":
        """Compute the influence on linear combinations (r, m) of the averages."""
        return self._transform(lambda values: values @ coefs.T)

    def rescale(self, unit: Floats) -> "RowInfluence":
        """Compute the influence on the averages in other units, shape (m,)."""
        return self._transform(lambda values: values / unit)

    def _transform(self, linear: Callable[[Floats], Floats]) -> "RowInfluence":
        """Apply a linear function of averages to the influences and to their noise."""
        noise = self.noise
        if noise is not None:
            noise = replace(noise, roots=linear(noise.roots))
        return replace(self, values=linear(self.values), noise=noise)


def row_influence(
    predicted: Floats,
    shares: Floats,
    unit_of_row: Ints | None,
    n_units: int,
    without: Floats | None = None,
) -> Floats:
    r"""Compute the influence of units on a weighted mean of predictions for their rows.

    `predicted` has shape (rows, c), the `shares` of the rows add up to one, and the
    result has shape (n_units, c). `without` are the means by the learners that did not
    see each unit, if these predicted its rows.

    .. math::

        g_u = \sqrt{\frac{G}{G - 1}} \sum_{i \in u} w_i \, (p_i - t_u), \qquad
        t_u = \bar p = \sum_i w_i p_i \ \text{by default} ,

    where G units have rows with a weight. The squares of n rows of equal weight add up
    to :math:`\sum_i (p_i - \bar p)^2 / (n (n - 1))`, the variance of a mean.
    """
    places = np.arange(len(shares)) if unit_of_row is None else unit_of_row
    centre = shares @ predicted if without is None else without[places]
    centred = shares[:, None] * (predicted - centre)
    influence = np.zeros((n_units, predicted.shape[1]))
    np.add.at(influence, places, centred)
    G = np.unique(places[shares != 0]).size
    if G < 2:
        raise ValueError(
            "a standard error for the population needs rows of at least two units "
            "(observations, or clusters) in every average; an average has rows of only "
            "one. Join levels of `by`, or use se='sample'."
        )
    return np.asarray(influence * np.sqrt(G / (G - 1)))


@dataclass(frozen=True)
class JointInfluence:
    """Influences of units through the learners, and through the rows averaged over."""

    learners: Floats  # (n, m): through the learners; noisy, without bias
    points: RowInfluence  # through the rows; of the same units if they are shared

    def added_variance(self, *, joint: bool = False) -> Floats:
        """Compute what rows add to the sampling variance (m,), or covariance (m, m)."""
        covariance = self._row_covariance()
        if self.points.shared:
            cross = self.learners.T @ self.points.values
            covariance = covariance + cross + cross.T
        return covariance if joint else np.diag(covariance).copy()

    def _row_covariance(self) -> Floats:
        """Compute the covariance (m, m) through the rows; zero if it is all noise."""
        rows, noise = self.points.values, self.points.noise
        squares = rows.T @ rows
        if noise is None:
            return squares
        excess = squares - noise.covariance
        live = np.diag(excess) > 0
        return np.asarray(excess * np.outer(live, live))

    def powers(self) -> tuple[Floats, Floats, Floats]:
        """Add up the second, third and fourth powers of the influences, each (m,)."""
        rows, learners = self.points.values, self.learners
        excess, whole = np.diag(self._row_covariance()), (rows**2).sum(axis=0)
        share = np.divide(excess, whole, out=np.ones_like(whole), where=whole > 0)
        rows = np.sqrt(share) * rows
        parts = [learners + rows] if self.points.shared else [learners, rows]
        squares, cubes, fourths = (
            np.sum([(influence**power).sum(axis=0) for influence in parts], axis=0)
            for power in (2, 3, 4)
        )
        return squares, cubes, fourths


def joint_influence(
    design: SubsampleDesign, values: Floats, method: str, points: RowInfluence
) -> JointInfluence:
    """Compute the influences through the learners, and join those through the rows.

    The former are those of deleting a unit, for variance estimators by presence, or
    covariances with the counts.
    """
    source = ESTIMATORS[method].source
    if source == "groups":
        if points.shared:
            raise ValueError(
                f"the variance estimator {method!r} compares groups of learners and "
                "has no influences of single observations, so it gives no standard "
                "errors for the population of the training rows. Use se='sample', "
                "or give other rows as `data`."
            )
        learners = np.zeros((1, values.shape[1]))
    elif source == "moments":
        sums = sum_ensemble(design, values)
        inflation = 1.0 if design.replace else design.n / (design.n - design.k)
        learners = inflation * influence_values(sums)
    else:
        left_out, n = deletions(design, values)
        learners = np.sqrt((n - 1) / n) * left_out
    return JointInfluence(learners, points)


def deletions(design: SubsampleDesign, values: Floats) -> tuple[Floats, int]:
    r"""Compute the change if a unit is deleted, :math:`\bar h - t_u`, of learners only.

    The changes, shape (n, m), are the mean of all learners minus that of those without
    the unit; zero for units that every learner saw. The other result is the number of
    units that some learner left out.
    """
    sums = sum_ensemble(design, values, presence=True)
    without = sums.n_learners - sums.appearances
    seen = without > 0.5
    zero = np.zeros_like(without)
    inverse = np.divide(sums.n_learners, without, out=zero, where=seen)
    return influence_values(sums) * inverse[:, None], int(seen.sum())


def population_estimates(
    estimates: Estimates,
    design: SubsampleDesign,
    values: Floats,
    points: RowInfluence,
    limit: Floats | float | None,
) -> Estimates:
    r"""Add the sampling of the rows averaged over to standard errors.

    Parameters
    ----------
    estimates : Estimates
        Estimates for the rows as a fixed sample.
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Averages by every learner.
    points : RowInfluence
        Influences through the rows.
    limit : ndarray of shape (m,), float or None
        Largest standard deviation that an estimate can have.

    Notes
    -----
    The average over the training rows changes for two reasons when observation i is
    left out: the learners without it average to :math:`t_i` over all rows instead of
    :math:`\bar h`, and its own row is missing from the average. Exactly,

    .. math::

        \hat\theta - \hat\theta_{-i} = (\bar h - t_i)
        + \frac{w_i}{1 - w_i} \, (\hat f_{-i}(x_i) - t_i) ,

    where :math:`w_i` is the row's weight and :math:`\hat f_{-i}(x_i)` is the out-of-bag
    prediction. With the influences :math:`c_i` of the learners and :math:`g_i` of the
    rows, which are these two parts, the variance is

    .. math:: V + \sum_i g_i^2 + 2 \sum_i c_i g_i ,

    with V as for a fixed sample of rows; products of :math:`c_i` and :math:`g_i` are of
    the first order only. The Monte Carlo noise does not bias the products: over the
    learners without i, the mean over i of the covariance of :math:`\hat f(x_i)` and the
    average is the variance of the average. For estimators by counts,
    :math:`\hat f(x_i)` is the prediction by all learners.

    Rows of another sample are drawn independently of the learners, so that

    .. math::

        \operatorname{Var}(\hat\theta) = \operatorname{E} V
        + \operatorname{Var}\Bigl(\sum_j w_j f(x_j)\Bigr) ,
        \qquad f = \operatorname{E} \hat f .

    :math:`\sum_j g_j^2` is larger than the second part by the prediction errors, which
    are part of V. So the variance is

    .. math:: V + \sum_j g_j^2 - \sum_j \operatorname{Var}(g_j) ,

    with the variance of :math:`g_j` as `row_noise` estimates it. For m rows of equal
    weight, whose predictions have the variances :math:`V_j`, what is subtracted is
    :math:`(\bar V - V) / (m - 1)`. The difference of the sums is a variance of
    expectations, so it is set to zero if noise makes it negative.

    References
    ----------
    Efron (1992), Jackknife-after-bootstrap standard errors and influence functions,
    Journal of the Royal Statistical Society B 54.
    doi:10.1111/j.2517-6161.1992.tb01866.x
    """
    parts, unit = estimates.scaled, estimates.unit
    scaled, rows = values / unit, points.rescale(unit)
    influence = joint_influence(design, scaled, parts.method, rows)
    sampling = parts.sampling + influence.added_variance()
    changed = replace(
        parts,
        sampling=sampling,
        total=sampling + parts.monte_carlo,
        ceiling=np.full_like(sampling, np.inf),
    )
    if parts.noise is not None:
        raw = parts.noise if parts.orders is None else parts.noise / parts.orders.factor
        mc = noise_variance(sampling, parts.noise, parts.n)
        if parts.df is None:
            squares, cubes, fourths = influence.powers()
            share = influence_concentration(squares, fourths, raw, parts.n)
            skew = influence_skew(squares, cubes, fourths, raw, parts.n)
            changed = replace(changed, concentration=share, skew=skew)
        changed = replace(changed, mc_se=np.sqrt(mc))
    most = np.inf if limit is None else limit
    mean, B = estimates.estimate, estimates.n_learners
    widened = stabilise(mean, changed, B, unit=unit, limit=most)
    null, support, tails = estimates.null, estimates.support, estimates.tails
    return replace(widened, null=null, support=support, tails=tails)
