"""Estimators based on counts of observations, and on their presence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.estimator import Source, SumEstimator, VarianceComponents
from vstatkit.variance.formulas import (
    jackknife_after_bootstrap,
    noise_variance,
    zeta_1_bm,
    zeta_1_corrected_u,
    zeta_1_corrected_v,
    zeta_1_corrected_v_simple,
    zeta_1_ij,
    zeta_1_ij_u,
)
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.influences import (
    influence_ceiling,
    influence_concentration,
    influence_skew,
)
from vstatkit.variance.moments import (
    EnsembleMoments,
    EnsembleSums,
    PresenceMoments,
    moments_from_sums,
    moments_of,
    presence_moments,
    presence_of,
    sum_ensemble,
)


@dataclass(frozen=True, kw_only=True)
class MomentEstimator(SumEstimator):
    """An estimator of `zeta_1` that is linear in the moments of the counts.

    Attributes
    ----------
    zeta_1 : callable
        `(moments, replace) -> zeta_1`, for variances and covariances alike.
    """

    zeta_1: Callable[[EnsembleMoments, bool], Floats]

    source: ClassVar[Source] = "moments"

    def sampling(self, moments: EnsembleMoments, *, replace: bool) -> Floats:
        """Estimate the sampling variance (m,), or covariance of joint moments."""
        return moments.size**2 / moments.n * self.zeta_1(moments, replace)

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self.from_moments(moments_of(design, values), replace=design.replace)

    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums over learners."""
        moments = moments_from_sums(sums, complete=design.complete)
        return self.from_moments(moments, replace=design.replace)

    def from_moments(
        self, moments: EnsembleMoments, *, replace: bool
    ) -> VarianceComponents:
        """Estimate the components from moments."""
        n, k, B = moments.n, moments.size, moments.n_learners
        concentration, skew = _shape(moments)
        sampling = self.sampling(moments, replace=replace)
        inflation = (n / (n - k)) ** 2 if self.inflated and not replace else 1.0
        noise = inflation * moments.count_variance * moments.monte_carlo
        return VarianceComponents(
            method=self.name,
            zeta_1=n / k**2 * sampling,
            zeta_k=moments.zeta_k,
            sampling=sampling,
            monte_carlo=moments.monte_carlo,
            total=sampling + moments.monte_carlo,
            mc_se=np.sqrt(noise_variance(sampling, noise, n)),
            noise=noise,
            n=n,
            ceiling=influence_ceiling(noise, B, n, complete=moments.complete),
            concentration=concentration,
            skew=skew,
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        sums = sum_ensemble(design, values, joint=True)
        moments = moments_from_sums(sums, complete=design.complete)
        return self.sampling(moments, replace=design.replace), moments.monte_carlo


def _shape(moments: EnsembleMoments) -> tuple[Floats | None, Floats | None]:
    """Compute concentration and skewness of the covariances with the counts."""
    if moments.cubic is None or moments.quartic is None:
        return None, None
    n, noise = moments.n, moments.count_variance * moments.monte_carlo
    squares = moments.size**2 / n * zeta_1_ij(moments)
    powers = (moments.jackknife, moments.cubic, moments.quartic)
    concentration = influence_concentration(squares, moments.quartic, noise, n)
    return concentration, influence_skew(*powers, noise, n)


@dataclass(frozen=True)
class PresenceEstimator(SumEstimator):
    """The jackknife after bootstrap, with or without a correction."""

    source: ClassVar[Source] = "presence"

    def components(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components of values of shape (B, m)."""
        return self._from_presence(design, presence_of(design, values), orders)

    def from_sums(
        self, design: SubsampleDesign, sums: EnsembleSums, orders: HigherOrders | None
    ) -> VarianceComponents:
        """Estimate the components from sums with indicators in place of counts."""
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
        influence_noise = odds * monte_carlo
        noise = influence_noise if orders is None else orders.factor * influence_noise
        mc_se = np.sqrt(noise_variance(sampling, noise, n))
        if orders is not None:
            common = orders.relative_mc_error * np.maximum(sampling, 0.0)
            mc_se = np.hypot(mc_se, common)
        ceiling = influence_ceiling(noise, B, n, complete=design.complete)
        if not design.complete:  # a mean varies at most as much as one learner
            ceiling = np.minimum(ceiling, zeta_k - monte_carlo)
        powers = (presence.left_out, presence.cubic, presence.quartic)
        return VarianceComponents(
            method=self.name,
            zeta_1=n / k**2 * sampling,
            zeta_k=zeta_k,
            sampling=sampling,
            monte_carlo=monte_carlo,
            total=sampling + monte_carlo,
            mc_se=mc_se,
            noise=noise,
            n=n,
            ceiling=ceiling,
            concentration=influence_concentration(
                presence.left_out, presence.quartic, influence_noise, n
            ),
            skew=influence_skew(*powers, influence_noise, n),
            orders=orders,
        )

    def covariance(
        self, design: SubsampleDesign, values: Floats, orders: HigherOrders | None
    ) -> tuple[Floats, Floats]:
        """Estimate the sampling and the Monte Carlo covariance, each (m, m)."""
        sums = sum_ensemble(design, values, joint=True, presence=True)
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


COUNT_ESTIMATORS = (
    MomentEstimator("bm", "BM", nonnegative=True, zeta_1=lambda mo, _: zeta_1_bm(mo)),
    MomentEstimator("ij", "IJ", nonnegative=True, zeta_1=lambda mo, _: zeta_1_ij(mo)),
    MomentEstimator(
        "ij_u",
        "IJ-U",
        inflated=True,
        zeta_1=lambda mo, replace: zeta_1_ij_u(mo, replace=replace),
    ),
    PresenceEstimator("jackknife", "J-U"),
    PresenceEstimator("hoeffding", "Hoeffding", beyond=True),
    MomentEstimator(
        "corrected_v",
        "corrected-V",
        replace=True,
        zeta_1=lambda mo, _: zeta_1_corrected_v(mo),
    ),
    MomentEstimator(
        "corrected_v_simple",
        "corrected-V (simple)",
        replace=True,
        zeta_1=lambda mo, _: zeta_1_corrected_v_simple(mo),
    ),
    MomentEstimator(
        "corrected_u",
        "corrected-U",
        replace=False,
        inflated=True,
        zeta_1=lambda mo, _: zeta_1_corrected_u(mo),
    ),
)
