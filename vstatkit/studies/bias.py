"""Figures: the bias of IM, BM and IJ, before and after the corrections."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies.dgps import Line
from vstatkit.studies.experiment import Record
from vstatkit.studies.measures import Components
from vstatkit.studies.metrics import true_variance, variance_ratio
from vstatkit.studies.simulation import Arm, Scale, Simulation

ITERATIONS = 300
"""Data sets; with the paper's 100, the true variance is known to 14 % only."""

NOBS = 500
SUBSAMPLES = (100, 250, 400)
SIZES = (100, 1000, 10000)
PINNED = {100: 10, 1000: 25, 10000: 100}
"""Subsamples per pin of IM, by B; the paper does not say how it split B."""

REFERENCE = SIZES.index(1000)
"""The B whose Monte Carlo variance is added to every estimate, as in the paper."""

STATISTICS = {"V": True, "U": False}
METHODS = {
    "V": ("bm", "ij", "corrected_v"),
    "U": ("bm", "ij", "corrected_ij", "corrected_v", "corrected_u"),
}
LABELS = {
    "im": "IM",
    "bm": "BM",
    "ij": "IJ",
    "corrected_v": "corrected-V",
    "corrected_ij": "corrected-IJ",
    "corrected_u": "corrected-U",
}


def simulation(scale: Scale | None = None) -> Simulation:
    """Declare the experiment: trees that split on `x`, evaluated at x = 10."""
    scale = scale or Scale()
    arms: list[Arm] = []
    sizes = tuple(B // scale.learners for B in SIZES)
    for letter, replace in STATISTICS.items():
        for k in SUBSAMPLES:
            size, name = k // scale.units, _name(letter, k)
            measure = Components(METHODS[letter])
            arms.append(Arm(name, size, sizes, measure, replace))
            arms += [
                Arm(
                    f"{name}/IM/{B}",
                    size,
                    (small,),
                    Components(("im",)),
                    replace,
                    "two-level",
                    {"n_in": max(2, PINNED[B] // scale.learners)},
                )
                for B, small in zip(SIZES, sizes, strict=True)
            ]
    return Simulation(
        name="bias" if scale == Scale() else "bias-quick",
        generator=Line(NOBS // scale.units),
        formula="y ~ x",
        at=pd.DataFrame({"x": [10.0]}),
        kernel="tree",
        arms=tuple(arms),
    )


def _name(letter: str, k: int) -> str:
    return f"{letter}/k={k}"


@dataclass(frozen=True)
class Cell:
    """Estimates of one method for one sampling, k and B.

    Attributes
    ----------
    statistic, method : str
        "V" or "U"; name of the estimator.
    k, B : int
        As in the paper.
    variance, zeta_1, zeta_k : ndarray of shape (iterations,)
        Estimated variance of an ensemble of 1000 learners, and its components.
    mean : ndarray of shape (iterations,)
        Estimates of an ensemble of 1000 learners.
    """

    statistic: str
    method: str
    k: int
    B: int
    variance: Floats
    zeta_1: Floats
    zeta_k: Floats
    mean: Floats

    @property
    def truth(self) -> float:
        """Variance of the estimates over data sets."""
        return float(true_variance(self.mean))


def cells(record: Record, study: Simulation) -> list[Cell]:
    """Take the record apart; its arrays are iterations, sizes, methods, points."""
    learners = study.arms[0].sizes[REFERENCE]
    found: list[Cell] = []
    for letter in STATISTICS:
        for k in SUBSAMPLES:
            name = _name(letter, k)
            mean = record[f"{name}/mean"][:, REFERENCE, 0]
            for i, B in enumerate(SIZES):
                places = [("im", f"{name}/IM/{B}", 0, 0)]
                places += [
                    (method, name, i, j) for j, method in enumerate(METHODS[letter])
                ]
                for method, arm, size, place in places:
                    zeta_k = record[f"{arm}/zeta_k"][:, size, 0]
                    sampling = record[f"{arm}/sampling"][:, size, place, 0]
                    zeta_1 = record[f"{arm}/zeta_1"][:, size, place, 0]
                    variance = sampling + zeta_k / learners
                    found.append(
                        Cell(letter, method, k, B, variance, zeta_1, zeta_k, mean)
                    )
    return found


def summary(found: list[Cell]) -> pd.DataFrame:
    """Tabulate the cells: quartiles, ratio to the truth, share of negatives."""
    rows = []
    for cell in found:
        ratio = variance_ratio(cell.mean, cell.variance)
        quartiles = np.quantile(cell.variance, [0.25, 0.5, 0.75])
        rows.append(
            {
                "statistic": cell.statistic,
                "k": cell.k,
                "B": cell.B,
                "method": LABELS[cell.method],
                "true_variance": cell.truth,
                "mean": cell.variance.mean(),
                "lower_quartile": quartiles[0],
                "median": quartiles[1],
                "upper_quartile": quartiles[2],
                "negative": float(np.mean(cell.variance < 0)),
                "zeta_1": cell.zeta_1.mean(),
                "zeta_k": cell.zeta_k.mean(),
                "ratio": float(ratio.value),
                "ratio_bound": float(ratio.half_width(0.95)),
            }
        )
    return pd.DataFrame(rows)
