"""Estimators that see which observations were drawn at all."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.components import VarianceComponents
from vstatkit.variance.cumulants import influence_skew
from vstatkit.variance.estimator import Source, SumEstimator
from vstatkit.variance.formulas import jackknife_after_bootstrap
from vstatkit.variance.influence import influence_ceiling, influence_concentration
from vstatkit.variance.moments import (
    PresenceMoments,
    presence_moments,
    presence_of,
)
from vstatkit.variance.noise import noise_variance
from vstatkit.variance.orders import HigherOrders
from vstatkit.variance.sums import EnsembleSums


@dataclass(frozen=True)
class PresenceEstimator(SumEstimator):
    """The jackknife after bootstrap, as it is or beyond the first order."""

    source: ClassVar[Source] = "presence"

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self._from_presence(design, presence_of(design, values), orders)

    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums that were taken with indicators."""
        presence = presence_moments(sums, design.chance_absent)
        return self._from_presence(design, presence, orders)

    def _from_presence(
        self,
        design: SubsampleDesign,
        presence: PresenceMoments,
        orders: HigherOrders | None,
    ) -> VarianceComponents:
        n, k = design.n, design.k
        B, odds = presence.n_learners, presence.odds
        sampling, monte_carlo = _parts(presence, design.complete, orders)
        zeta_k = presence.squares / (B - 1)
        # What the learners without an observation differ by is one influence.
        one = odds * monte_carlo
        noise = one if orders is None else orders.factor * one
        ceiling = influence_ceiling(noise, B, n, complete=design.complete)
        if not design.complete:  # nor does a mean vary more than what it is a mean of
            ceiling = np.minimum(ceiling, zeta_k - monte_carlo)
        parts = VarianceComponents(
            method=self.name,
            zeta_1=n / k**2 * sampling,
            zeta_k=zeta_k,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=sampling + monte_carlo,
            mc_se=np.sqrt(noise_variance(sampling, noise, n)),
            noise=noise,
            n=n,
            ceiling=ceiling,
            concentration=influence_concentration(
                presence.left_out, presence.quartic, one, n
            ),
            skew=influence_skew(
                *(presence.left_out, presence.cubic, presence.quartic), one, n
            ),
            orders=orders,
        )
        if orders is None:
            return parts
        common = orders.relative_mc_error * np.maximum(sampling, 0.0)
        return replace(parts, mc_se=np.hypot(parts.mc_se, common))

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        sums = self.sums(design, values, joint=True)
        presence = presence_moments(sums, design.chance_absent)
        return _parts(presence, design.complete, orders)


def _parts(
    presence: PresenceMoments, complete: bool, orders: HigherOrders | None
) -> tuple[Floats, Floats]:
    """Split variances, or covariances, into sampling and Monte Carlo part."""
    B = presence.n_learners
    factor = 1.0 if orders is None else orders.factor
    sampling = factor * jackknife_after_bootstrap(presence, complete=complete)
    zeta_k = presence.squares / (B - 1)
    return sampling, zeta_k * 0.0 if complete else zeta_k / B


JACKKNIFE = PresenceEstimator("jackknife", "J-U")

HOEFFDING = PresenceEstimator("hoeffding", "Hoeffding", beyond=True)
