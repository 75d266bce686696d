"""Covariances of the estimates."""

from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.population import RowInfluence, joint_influence
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.registry import estimate_covariance


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix, made positive semi-definite.

    Attributes
    ----------
    correlation : ndarray of shape (m, m)
        Rows and columns of estimates without error are zero.
    bse : ndarray of shape (m,)
        Standard errors.
    repaired : float
        Share of the correlation matrix's eigenvalues, in absolute value, that
        was negative and set to zero.
    """

    correlation: Floats
    bse: Floats
    repaired: float

    @property
    def matrix(self) -> Floats:
        """The covariance; its diagonal is the squared standard errors."""
        with np.errstate(over="ignore", under="ignore"):
            # Row by row: a zero correlation stays zero where the product overflows.
            return (self.correlation * self.bse) * self.bse[:, None]


def covariance(
    design: SubsampleDesign,
    values: Floats,
    estimates: Estimates,
    points: RowInfluence | None = None,
) -> Covariance:
    """Estimate the joint covariance of an ensemble's estimates.

    The repair is made on the correlation scale, so that it does not depend on
    the units of the estimates. `points` adds the sampling of the rows averaged over.
    """
    matrix = scaled_covariance(design, values, estimates, points)
    deviation = np.sqrt(estimates.scaled_variance)
    scale = np.where(deviation > 0, deviation, 1.0)
    roots, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = np.maximum(roots, 0.0)
    total = np.abs(roots).sum()
    repaired = (vectors * kept) @ vectors.T
    diagonal = np.sqrt(np.diag(repaired))
    unit = np.where(diagonal > 0, diagonal, 1.0)
    repaired = repaired / np.outer(unit, unit)
    np.fill_diagonal(repaired, 1.0)
    live = deviation > 0
    return Covariance(
        correlation=repaired * np.outer(live, live),
        bse=estimates.bse,
        repaired=float(-roots[roots < 0].sum() / total) if total > 0 else 0.0,
    )


def scaled_covariance(
    design: SubsampleDesign,
    values: Floats,
    estimates: Estimates,
    points: RowInfluence | None = None,
) -> Floats:
    """Estimate the joint covariance without any repair, in units of the estimates.

    It is symmetric, a linear function of outer products of the values, and may be
    indefinite in small ensembles. See `covariance`.
    """
    parts = estimates.scaled
    scaled = values / estimates.unit
    sampling, monte_carlo = estimate_covariance(
        parts.method, design, scaled, parts.orders
    )
    if points is not None:
        rows = points.divided(estimates.unit)
        joined = joint_influence(design, scaled, parts.method, rows)
        sampling = sampling + joined.added(joint=True)
    matrix = sampling + monte_carlo
    return np.asarray((matrix + matrix.T) / 2)
