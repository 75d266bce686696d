"""Standard errors for the population that the averaged rows were drawn from."""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.stabilise import stabilise
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.influence import influence_concentration
from vstatkit.variance.moments import influence_values
from vstatkit.variance.noise import noise_variance
from vstatkit.variance.registry import ESTIMATORS
from vstatkit.variance.sums import sum_ensemble


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
    out_of_bag : bool
        Whether rows were predicted by the learners that did not see them.
    """

    values: Floats
    shared: bool
    out_of_bag: bool

    def combined(self, coefs: Floats) -> "RowInfluence":
        """Influence on linear combinations, shape (r, m), of the averages."""
        return replace(self, values=self.values @ coefs.T)


def row_influence(
    predicted: Floats, shares: Floats, units: Ints | None, n_units: int
) -> Floats:
    r"""Influence of units on a weighted mean of what was predicted for their rows.

    Parameters
    ----------
    predicted : ndarray of shape (rows, c)
        One prediction for every row and output.
    shares : ndarray of shape (rows,)
        Weights of the rows, which add up to one.
    units : ndarray of shape (rows,) or None
        Unit of every row; None where every row is its own.
    n_units : int
        Number of units in all.

    Returns
    -------
    ndarray of shape (n_units, c)

    Notes
    -----
    .. math::

        g_u = \sqrt{\frac{G}{G - 1}} \sum_{i \in u} w_i \, (p_i - \bar p), \qquad
        \bar p = \sum_i w_i p_i ,

    where G units have rows with a weight. The squares of n rows of equal weight add
    up to :math:`\sum_i (p_i - \bar p)^2 / (n (n - 1))`, the variance of a mean.

    Examples
    --------
    >>> g = row_influence(np.array([[1.0], [2.0], [6.0]]), np.full(3, 1 / 3), None, 3)
    >>> float((g**2).sum()), float(np.var([1, 2, 6], ddof=1) / 3)
    (2.333333333333333, 2.3333333333333335)
    """
    centred = shares[:, None] * (predicted - shares @ predicted)
    places = np.arange(len(shares)) if units is None else units
    found = np.zeros((n_units, predicted.shape[1]))
    np.add.at(found, places, centred)
    G = np.unique(places[shares != 0]).size
    if G < 2:
        raise ValueError(
            "a standard error for the population needs rows of at least two units "
            "(observations, or clusters) in every average; an average has rows of one "
            "only. Join levels of `by`, or ask for se='sample'."
        )
    return np.asarray(found * np.sqrt(G / (G - 1)))


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
    noise : ndarray of shape (m, m)
        What common noise of both takes from the sum of their products.
    """

    learners: Floats
    rows: Floats
    shared: bool
    noise: Floats

    def added(self, *, joint: bool = False) -> Floats:
        """Add to the sampling variance (m,), or covariance (m, m), of the learners."""
        own = self.rows.T @ self.rows
        if self.shared:
            cross = self.learners.T @ self.rows
            own = own + cross + cross.T + 2 * self.noise
        return own if joint else np.diag(own).copy()

    def powers(self) -> tuple[Floats, Floats]:
        """Add up the second and fourth powers of the influences, each (m,)."""
        both = [self.learners, self.rows]
        if self.shared:
            both = [self.learners + self.rows]
        squares = sum((one**2).sum(axis=0) for one in both)
        fourths = sum((one**4).sum(axis=0) for one in both)
        return np.asarray(squares), np.asarray(fourths)


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
    B, m = values.shape
    none = np.zeros((m, m))
    if source == "groups":
        if points.shared:
            raise ValueError(
                f"the variance estimator {method!r} compares groups of learners and "
                "knows no influence of single observations, so it gives no standard "
                "errors for the population of the training rows. Ask for se='sample', "
                "or give other rows as `data`."
            )
        return JointInfluence(np.zeros((1, m)), points.values, False, none)
    sums = sum_ensemble(design, values, presence=source == "presence")
    total = sums.n_learners
    if source == "moments":
        inflation = 1.0 if design.replace else design.n / (design.n - design.k)
        learners = inflation * influence_values(sums)
        return JointInfluence(learners, points.values, points.shared, none)
    without = total - sums.appearances
    seen = without > 0.5
    inverse = np.divide(total, without, out=np.zeros_like(without), where=seen)
    n = int(seen.sum())
    learners = np.sqrt((n - 1) / n) * influence_values(sums) * inverse[:, None]
    if points.out_of_bag and not design.complete:
        q = float(without[seen].mean() / total)
        none = (1 - q) / q * np.atleast_2d(np.cov(values.T)) / B
    return JointInfluence(learners, points.values, points.shared, none)


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

        \hat\theta - \hat\theta_{-i} = \frac{(\bar h - t_i)
        + w_i \, (\hat f_{-i}(x_i) - \hat\theta)}{1 - w_i} ,

    where :math:`w_i` is the row's weight and :math:`\hat f_{-i}(x_i)` is the out-of-bag
    prediction. With the influences :math:`c_i` of the learners and :math:`g_i` of the
    rows the variance is

    .. math:: V + \sum_i g_i^2 + 2 \sum_i c_i g_i ,

    with V as for the rows as they are, beyond the first order too: products of
    :math:`c_i` and :math:`g_i` see the first order alone. The learners without i enter
    both, and their noise takes :math:`2 \frac{1 - q}{q} \frac{\zeta_k}{B}` from the sum
    on average, which is added back (q is the share of learners without i). Estimators
    by counts differentiate: there :math:`\hat f(x_i)` is the prediction by all
    learners. Rows of another sample add :math:`\sum_j g_j^2`.

    References
    ----------
    Efron (1992), Jackknife-after-bootstrap standard errors and influence functions,
    Journal of the Royal Statistical Society B 54.
    doi:10.1111/j.2517-6161.1992.tb01866.x
    """
    parts = found.scaled
    scaled = replace(points, values=points.values / found.unit)
    joined = joint_influence(design, values / found.unit, parts.method, scaled)
    sampling = parts.sampling + joined.added()
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
            share = influence_concentration(*joined.powers(), raw, parts.n)
            changed = replace(changed, concentration=share)
        changed = replace(changed, mc_se=np.sqrt(mc))
    made = stabilise(
        found.estimate,
        changed,
        found.n_learners,
        unit=found.unit,
        limit=np.inf if limit is None else limit,
    )
    return replace(made, null=found.null, support=found.support)
