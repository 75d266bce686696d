"""Figure: the two parts of the variance as the number of learners grows."""

import numpy as np
import pandas as pd

from vstatkit.studies.dgps import Line
from vstatkit.studies.experiment import Record
from vstatkit.studies.measures import Components
from vstatkit.studies.simulation import Arm, Scale, Simulation

GROUP = 100
"""Data sets behind one empirical variance, as in the paper."""

ITERATIONS = 10 * GROUP
NOBS = 1000
SUBSAMPLE = 10
SIZES = tuple(range(100, 1001, 100))
METHOD = "corrected_v"


def simulation(scale: Scale | None = None) -> Simulation:
    """Declare the experiment: trees on ten rows each, evaluated at x = 10."""
    scale = scale or Scale()
    k = SUBSAMPLE if scale == Scale() else max(2, SUBSAMPLE // scale.units)
    sizes = tuple(B // scale.learners for B in SIZES)
    return Simulation(
        name="transition" if scale == Scale() else "transition-quick",
        generator=Line(NOBS // scale.units),
        formula="y ~ x",
        at=pd.DataFrame({"x": [10.0]}),
        kernel="tree",
        arms=(Arm("V", k, sizes, Components((METHOD,))),),
    )


def parts(record: Record, study: Simulation) -> pd.DataFrame:
    """Tabulate the empirical variance and its estimated parts for every B.

    The components are estimated from the largest ensemble, as in the paper, and
    averaged over data sets. The empirical variance is an average over groups of
    100 data sets; `error` is its standard error over groups.
    """
    arm = study.arms[0]
    mean = record["V/mean"][:, :, 0]  # data sets, sizes
    groups = np.array_split(mean, max(1, len(mean) // GROUP))
    empirical = np.stack([group.var(axis=0, ddof=1) for group in groups])
    single = len(groups) == 1
    sampling = float(record["V/sampling"][:, -1, 0, 0].mean())
    zeta_k = float(record["V/zeta_k"][:, -1, 0].mean())
    learners = np.array(arm.sizes)
    return pd.DataFrame(
        {
            "B": SIZES,
            "empirical": empirical.mean(axis=0),
            "error": np.nan
            if single
            else empirical.std(axis=0, ddof=1) / np.sqrt(len(groups)),
            "sampling": sampling,
            "monte_carlo": zeta_k / learners,
            "total": sampling + zeta_k / learners,
        }
    )
