"""Stack learners with nonnegative weights and a penalty on roughness."""

import numpy as np
from scipy import optimize

from vstatkit._typing import Floats, Ints

PENALTY = 15.0  # penalty of the least smooth learners, in residual variances over units
LEAST_SHARE = 0.02  # smallest share of a learner in the stack
# Weight of the constraint that weights add up to one, relative to the errors.
CONSTRAINT_WEIGHT = 1e3


def stacking_weights(first: Floats, second: Floats, n_units: int) -> Floats:
    r"""Weigh candidates by their out-of-bag residuals in two pilot ensembles.

    The residuals, shape (c, rows), are ordered from the least smooth candidate to the
    smoothest; `n_units` is the number of units (rows, or clusters) that the rows belong
    to. Weights add up to one; none is below `LEAST_SHARE` unless it is zero.

    Notes
    -----
    With :math:`G_{cd} = \overline{r_c s_d}`, symmetrised, the weights minimise

    .. math::

        w^\top G \, w + \lambda \frac{s^2}{n} \sum_c w_c \frac{C - c}{C - 1} , \qquad
        w \ge 0, \ \sum_c w_c = 1 ,

    where :math:`s^2 = \min_c G_{cc}`, or zero if that is negative, and
    :math:`\lambda` is `PENALTY`. The residuals r and s of the two ensembles have
    independent Monte Carlo errors, so that their products estimate the error of
    infinitely many learners. The penalty prefers smooth learners if errors are equal;
    its influence vanishes as n grows.

    References
    ----------
    Breiman (1996), Stacked regressions, Machine Learning 24,
    doi:10.1007/BF00117832.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=500)
    >>> bias = np.where(np.arange(500) < 250, 1.0, -1.0)
    >>> residuals = np.stack([noise, noise + bias])
    >>> stacking_weights(residuals, residuals, 500).round(2)
    array([0.92, 0.08])
    """
    errors = first @ second.T / first.shape[1]
    errors = (errors + errors.T) / 2
    smooth = np.linspace(1.0, 0.0, len(errors)) if len(errors) > 1 else np.zeros(1)
    penalty = PENALTY * max(0.0, np.diag(errors).min()) / n_units * smooth
    weights = _minimise(errors + (penalty[:, None] + penalty) / 2)
    weights = np.where(weights < LEAST_SHARE, 0.0, weights)
    return np.asarray(weights / weights.sum())


def _minimise(matrix: Floats) -> Floats:
    """Minimise a quadratic form, or its positive part, over weights that sum to one."""
    values, vectors = np.linalg.eigh(matrix)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    firm = CONSTRAINT_WEIGHT * (float(np.abs(root).max()) or 1.0)
    sides = np.vstack([root, np.full(len(matrix), firm)])
    goal = np.append(np.zeros(len(matrix)), firm)
    weights, _ = optimize.nnls(sides, goal, maxiter=100 * len(matrix))
    return np.asarray(weights / weights.sum())


def allocate_learners(weights: Floats, B: int) -> Ints:
    """Divide B learners by weights, with the largest remainders rounded up.

    Examples
    --------
    >>> allocate_learners(np.array([0.5, 0.25, 0.25]), 7)
    array([3, 2, 2])
    """
    wanted = B * weights
    counts = np.floor(wanted).astype(np.int64)
    order = np.argsort(counts - wanted, kind="stable")
    counts[order[: B - counts.sum()]] += 1
    return counts
