"""The Monte Carlo error of the validity study: one data set, many seeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit.studies.experiment import Record
from vstatkit.studies.validity import (
    ESTIMATORS,
    QUICK_LEARNERS,
    LawExperiment,
    draw_data,
    grow,
)

SEEDS = 50
MC_LAWS = ("friedman10", "noise", "binary")
MC_SIZES: tuple[int | str, ...] = (500, 2000, "auto")


@dataclass(frozen=True)
class Seeds(LawExperiment):
    """One data set, with ensembles of many seeds.

    Attributes
    ----------
    B : int or "auto"
        Learners.
    """

    B: int | str

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""
        return f"validity-seeds-{self.B}-{self.law.name}"

    def choices(self) -> dict[str, Any]:
        """State the size of its ensembles."""
        return {"B": self.B}

    def run(self, seed: int, iteration: int) -> Record:
        """Grow an ensemble with a seed of its own."""
        B = QUICK_LEARNERS if self.quick else self.B
        rng = self.ensemble_seed(seed, iteration)
        results = grow(self.law, draw_data(self.law, seed, 0), rng, B=B)
        parts = [results.with_variance(n).components for n in ESTIMATORS.values()]
        return {
            "B": np.array(float(results.B)),
            "total": np.stack([one.total for one in parts]),
            "mc_se": np.stack([one.mc_se for one in parts]),
        }
