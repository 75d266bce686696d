"""Standard errors for the population that the averaged rows were drawn from."""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.inference.estimates import Estimates, Estimation, stabilise, value_units
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.influence import influence_concentration, influence_skew
from vstatkit.variance.moments import influence_values, sum_ensemble
from vstatkit.variance.noise import noise_variance
from vstatkit.variance.registry import ESTIMATORS, estimate_covariance

COLUMNS = 200
"""Errors whose covariances are estimated at a time."""


@dataclass(frozen=True)
class RowNoise:
    """A covariance of averages, as squares that are added and subtracted.

    Its roots are linear in the averages, as influences are, so that combinations and
    other units need no squares of large numbers.

    Attributes
    ----------
    roots : ndarray of shape (r, m)
        What is squared.
    signs : ndarray of shape (r,)
        One for squares that are added, minus one for those that are subtracted:
        estimated covariances may be indefinite.
    """

    roots: Floats
    signs: Floats

    def combine(self, coefs: Floats) -> "RowNoise":
        """Noise of linear combinations, shape (r, m), of the averages."""
        return replace(self, roots=self.roots @ coefs.T)

    def rescale(self, unit: Floats) -> "RowNoise":
        """Noise of the averages in other units."""
        return replace(self, roots=self.roots / unit)

    @property
    def covariance(self) -> Floats:
        """The covariance, shape (m, m)."""
        return np.asarray((self.roots.T * self.signs) @ self.roots)


def row_noise(
    estimation: Estimation, errors: Floats, codes: Ints, n_levels: int
) -> RowNoise:
    r"""Estimate what the errors of predictions add to the squared influences of rows.

    Parameters
    ----------
    estimation : Estimation
        How variances of predictions are estimated.
    errors : ndarray of shape (B, p, v, c)
        Influences of p rows by every learner, on v averages of c outputs each.
    codes : ndarray of shape (p,)
        Level whose averages each row is in.
    n_levels : int
        Number of levels.

    Returns
    -------
    RowNoise
        Of the v * n_levels * c averages, in this order.

    Notes
    -----
    The influence of a row, :math:`g_j = w_j (\hat f(x_j) - \sum_i w_i \hat f(x_i))` but
    for a factor, is the mean of the same by every learner, so it has a variance as a
    prediction does, from the data and from the number of learners. The noise is

    .. math:: \sum_j \operatorname{Cov}(g_j, g_j') ,

    raw and not made positive: its mean over rows is without bias. Averages of different
    levels have no rows in common.
    """
    B, _, v, c = errors.shape
    roots, signs = [], []
    for level in range(n_levels):
        level_errors = errors[:, codes == level].reshape(B, -1, v * c)
        unit = value_units(level_errors.reshape(-1, v * c))
        values, vectors = np.linalg.eigh(
            summed_covariance(estimation, level_errors / unit)
        )
        placed = np.zeros((v * c, v, n_levels, c))
        scaled = np.sqrt(np.abs(values))[:, None] * vectors.T * unit
        placed[:, :, level] = scaled.reshape(-1, v, c)
        roots.append(placed.reshape(v * c, -1))
        signs.append(np.sign(values))
    return RowNoise(np.concatenate(roots), np.concatenate(signs))


def summed_covariance(estimation: Estimation, values: Floats) -> Floats:
    """Add up, over rows, the covariance of what every row contributes.

    Parameters
    ----------
    estimation : Estimation
        How variances are estimated.
    values : ndarray of shape (B, p, m)
        Contributions of p rows to m averages, by every learner.

    Returns
    -------
    ndarray of shape (m, m)
        Sampling and Monte Carlo part together.
    """
    B, p, m = values.shape
    step = max(1, COLUMNS // m)
    total = np.zeros((m, m))
    for first in range(0, p, step):
        some = values[:, first : first + step]
        sampling, monte_carlo = estimate_covariance(
            estimation.method,
            estimation.design,
            some.reshape(B, -1),
            estimation.orders,
        )
        blocks = (sampling + monte_carlo).reshape(2 * some.shape[1:])
        total += np.einsum("pipj->ij", blocks)
    return total


@dataclass(frozen=True)
class RowInfluence:
    """What the rows that were averaged over contribute to averages, as a sample.

    Attributes
    ----------
    values : ndarray of shape (u, m)
        Influence of each unit's rows on every average, the learners being as they are.
    shared : bool
        Whether the units are those that the learners were drawn from; otherwise they
        are independent of these.
    noise : RowNoise or None
        What errors of the predictions add to the squares of the influences; None where
        units are shared.
    """

    values: Floats
    shared: bool
    noise: RowNoise | None = None

    def combine(self, coefs: Floats) -> "RowInfluence":
        """Influence on linear combinations, shape (r, m), of the averages."""
        noise = None if self.noise is None else self.noise.combine(coefs)
        return replace(self, values=self.values @ coefs.T, noise=noise)

    def rescale(self, unit: Floats) -> "RowInfluence":
        """Influence on the averages in other units, shape (m,)."""
        noise = None if self.noise is None else self.noise.rescale(unit)
        return replace(self, values=self.values / unit, noise=noise)


def row_influence(
    predicted: Floats,
    shares: Floats,
    unit_of_row: Ints | None,
    n_units: int,
    without: Floats | None = None,
) -> Floats:
    r"""Influence of units on a weighted mean of what was predicted for their rows.

    Parameters
    ----------
    predicted : ndarray of shape (rows, c)
        One prediction for every row and output.
    shares : ndarray of shape (rows,)
        Weights of the rows, which add up to one.
    unit_of_row : ndarray of shape (rows,) or None
        Unit of every row; None where every row is its own.
    n_units : int
        Number of units in all.
    without : ndarray of shape (n_units, c), optional
        The mean by the learners that did not see each unit, where these predicted its
        rows; by default all rows are compared with the mean prediction.

    Returns
    -------
    ndarray of shape (n_units, c)

    Notes
    -----
    .. math::

        g_u = \sqrt{\frac{G}{G - 1}} \sum_{i \in u} w_i \, (p_i - t_u), \qquad
        t_u = \bar p = \sum_i w_i p_i \ \text{by default} ,

    where G units have rows with a weight. The squares of n rows of equal weight add
    up to :math:`\sum_i (p_i - \bar p)^2 / (n (n - 1))`, the variance of a mean.

    Examples
    --------
    >>> g = row_influence(np.array([[1.0], [2.0], [6.0]]), np.full(3, 1 / 3), None, 3)
    >>> float((g**2).sum()), float(np.var([1, 2, 6], ddof=1) / 3)
    (2.333333333333333, 2.3333333333333335)
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
            "(observations, or clusters) in every average; an average has rows of one "
            "only. Join levels of `by`, or use se='sample'."
        )
    return np.asarray(influence * np.sqrt(G / (G - 1)))


@dataclass(frozen=True)
class JointInfluence:
    """Influences of units through the learners, and through the rows averaged over.

    Attributes
    ----------
    learners : ndarray of shape (n, m)
        Through the learners; noisy, without bias.
    rows : ndarray of shape (u, m)
        Through the rows; the same units if `shared`.
    shared : bool
        Whether units are the same.
    noise : RowNoise or None
        What errors of the predictions add to the squares of `rows`.
    """

    learners: Floats
    rows: Floats
    shared: bool
    noise: RowNoise | None = None

    def added_variance(self, *, joint: bool = False) -> Floats:
        """Add to the sampling variance (m,), or covariance (m, m), of the learners."""
        covariance = self._of_rows()
        if self.shared:
            cross = self.learners.T @ self.rows
            covariance = covariance + cross + cross.T
        return covariance if joint else np.diag(covariance).copy()

    def _of_rows(self) -> Floats:
        """Covariance (m, m) through the rows; none where all of it is noise."""
        squares = self.rows.T @ self.rows
        if self.noise is None:
            return squares
        left = squares - self.noise.covariance
        live = np.diag(left) > 0
        return np.asarray(left * np.outer(live, live))

    def powers(self) -> tuple[Floats, Floats, Floats]:
        """Add up the second, third and fourth powers of the influences, each (m,)."""
        left, whole = np.diag(self._of_rows()), (self.rows**2).sum(axis=0)
        share = np.divide(left, whole, out=np.ones_like(whole), where=whole > 0)
        rows = np.sqrt(share) * self.rows
        both = [self.learners, rows]
        if self.shared:
            both = [self.learners + rows]
        squares, cubes, fourths = (
            np.sum([(influence**power).sum(axis=0) for influence in both], axis=0)
            for power in (2, 3, 4)
        )
        return squares, cubes, fourths


def joint_influence(
    design: SubsampleDesign, values: Floats, method: str, points: RowInfluence
) -> JointInfluence:
    """Put the influences through learners and rows side by side.

    Parameters
    ----------
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Averages by every learner.
    method : str
        Variance estimator: by presence, deleting a unit; or by counts.
    points : RowInfluence
        Influences through the rows.
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
        none = np.zeros((1, values.shape[1]))
        return JointInfluence(none, points.values, False, points.noise)
    if source == "moments":
        sums = sum_ensemble(design, values)
        inflation = 1.0 if design.replace else design.n / (design.n - design.k)
        learners = inflation * influence_values(sums)
    else:
        left_out, n = deletions(design, values)
        learners = np.sqrt((n - 1) / n) * left_out
    return JointInfluence(learners, points.values, points.shared, points.noise)


def deletions(design: SubsampleDesign, values: Floats) -> tuple[Floats, int]:
    r"""Compute the change if a unit is deleted, :math:`\bar h - t_u`, of learners only.

    Parameters
    ----------
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Averages by every learner.

    Returns
    -------
    changes : ndarray of shape (n, m)
        The mean of all learners minus that of those without the unit; zero for units
        that every learner saw.
    n_left_out : int
        Units that some learner left out.
    """
    sums = sum_ensemble(design, values, presence=True)
    without = sums.n_learners - sums.appearances
    seen = without > 0.5
    whole = np.full_like(without, sums.n_learners)
    inverse = np.divide(whole, without, out=np.zeros_like(without), where=seen)
    return influence_values(sums) * inverse[:, None], int(seen.sum())


def population_estimates(
    found: Estimates,
    design: SubsampleDesign,
    values: Floats,
    points: RowInfluence,
    limit: Floats | float | None,
) -> Estimates:
    r"""Add the sampling of the rows averaged over to standard errors.

    Parameters
    ----------
    found : Estimates
        Estimates for the rows as they are.
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

    with V as for the rows as they are, beyond the first order too: products of
    :math:`c_i` and :math:`g_i` see the first order alone. The noise of finitely many
    learners has no part in the products on average: over the learners without i, the
    mean over i of what :math:`\hat f(x_i)` and the average have in common is what the
    average has in common with itself. Estimators by counts differentiate: there
    :math:`\hat f(x_i)` is the prediction by all learners, minus their average.

    Rows of another sample are drawn independently of the learners, so that

    .. math::

        \operatorname{Var}(\hat\theta) = \operatorname{E} V
        + \operatorname{Var}\Bigl(\sum_j w_j f(x_j)\Bigr) ,
        \qquad f = \operatorname{E} \hat f .

    The spread of the predictions themselves, :math:`\sum_j g_j^2`, is larger than the
    second part by their errors, of which V has its share already. So it is

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
    parts = found.scaled
    scaled = values / found.unit
    joined = joint_influence(design, scaled, parts.method, points.rescale(found.unit))
    sampling = parts.sampling + joined.added_variance()
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
            squares, cubes, fourths = joined.powers()
            share = influence_concentration(squares, fourths, raw, parts.n)
            skew = influence_skew(squares, cubes, fourths, raw, parts.n)
            changed = replace(changed, concentration=share, skew=skew)
        changed = replace(changed, mc_se=np.sqrt(mc))
    widened = stabilise(
        found.estimate,
        changed,
        found.n_learners,
        unit=found.unit,
        limit=np.inf if limit is None else limit,
    )
    return replace(widened, null=found.null, support=found.support, tails=found.tails)
