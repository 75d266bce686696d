"""The first B learners of a larger ensemble; nothing is grown or summed twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.hoeffding import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.moments import (
    EnsembleMoments,
    EnsembleSums,
    moments_from_sums,
    sum_ensemble,
)


@dataclass(frozen=True)
class Prefix:
    """The first B learners of an ensemble.

    Attributes
    ----------
    design : SubsampleDesign
        The design by which the learners were drawn.
    values : ndarray of shape (B, m)
        Their values.
    origin : ndarray of shape (m,)
        What sums are taken relative to; the same for all prefixes.
    shorter : Prefix or None
        The next shorter prefix, whose sums are extended.
    reference : ndarray of shape (at least B, r) or None
        Values on which learners are compared beyond the first order; None for the
        values themselves.
    kind : KernelKind
        How the kernel depends on its observations.
    """

    design: SubsampleDesign
    values: Floats
    origin: Floats
    shorter: "Prefix | None"
    reference: Floats | None = None
    kind: KernelKind = KernelKind.UNKNOWN

    @property
    def n_learners(self) -> int:
        """Number B of learners."""
        return len(self.values)

    @property
    def mean(self) -> Floats:
        """The ensemble's estimates, `hbar`."""
        return ensemble_mean(self.design, self.values)

    @property
    def _start(self) -> int:
        return 0 if self.shorter is None else self.shorter.n_learners

    @cached_property
    def sums(self) -> EnsembleSums:
        """Sums with the counts of each observation."""
        part = sum_ensemble(
            self.design,
            self.values[self._start :],
            start=self._start,
            origin=self.origin,
        )
        return part if self.shorter is None else self.shorter.sums + part

    @cached_property
    def presence(self) -> EnsembleSums:
        """Sums of values and their squares, an observation counted once per learner.

        Values are relative to `origin`; `weighted` has 2 m columns.
        """
        h = self.values[self._start :] - self.origin
        part = sum_ensemble(
            self.design,
            np.concatenate([h, h**2], axis=1),
            start=self._start,
            origin=np.zeros(2 * self.origin.size),
            presence=True,
        )
        return part if self.shorter is None else self.shorter.presence + part

    @cached_property
    def orders(self) -> HigherOrders:
        """What is known beyond the first order, as `fit` finds it."""
        compared = self.values if self.reference is None else self.reference
        chosen = compared[:, spread_columns(compared.shape[1])]
        B = self.n_learners
        return measure_orders(self.design, B, lambda L: chosen[:L], self.kind)

    @cached_property
    def moments(self) -> EnsembleMoments:
        """What the moment-based estimators see."""
        return moments_from_sums(self.sums)


def prefixes(
    design: SubsampleDesign,
    values: Floats,
    sizes: Sequence[int],
    *,
    reference: Floats | None = None,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> list[Prefix]:
    """List the prefixes of an ensemble, from the shortest to the longest.

    Parameters
    ----------
    design : SubsampleDesign
        The design by which the learners were drawn.
    values : ndarray of shape (B, m)
        Values of all learners.
    sizes : sequence of int
        Numbers of learners, increasing.
    reference, kind
        See `Prefix`.
    """
    if not sizes or any(a >= b for a, b in pairwise([0, *sizes])):
        raise ValueError(f"`sizes` must be increasing and positive; got {sizes!r}.")
    origin = values[: sizes[0]].mean(axis=0)
    made: list[Prefix] = []
    for size in sizes:
        shorter = made[-1] if made else None
        made.append(Prefix(design, values[:size], origin, shorter, reference, kind))
    return made
