"""Linear combinations of estimates, and tests of them."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Restrictions
from vstatkit.formula.constraints import linear_constraint
from vstatkit.inference.wald import WaldTest, wald_test
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def contrasts(results: "EnsembleResults", R: Restrictions) -> "EnsembleResults":
    """Combine estimates: a linear combination of kernels is a kernel."""
    coefs, constants, names = linear_constraint(R, label_texts(results.labels))
    info = replace(
        results.info, title="Linear combinations of estimates", coefficients=True
    )
    support = None if results.support is None else results.support.combined(coefs)
    points = None if results.points is None else results.points.combined(coefs)
    return replace(
        results,
        points=points,
        values=_combined(results.values, coefs),
        limit=_combined_limit(results, coefs),
        support=support,
        labels=pd.Index(names),
        null=constants,
        info=info,
        effect_values=None,
        predictor=None,
        scores=None,
        errors=None,
        recipe=None,
    )


def _combined(values: Floats, coefs: Floats) -> Floats:
    """Values of linear combinations, taken about the first learner's."""
    first = values[0]
    return np.asarray((values - first) @ coefs.T + first @ coefs.T)


def _combined_limit(results: "EnsembleResults", coefs: Floats) -> Floats | None:
    if results.limit is None:
        return None
    limit = np.asarray(results.limit, dtype=np.float64)
    combined: Floats = np.abs(coefs) @ np.broadcast_to(limit, len(results.labels))
    return combined


def joint_test(results: "EnsembleResults", R: Restrictions) -> WaldTest:
    """Test restrictions jointly, by Wald's F."""
    contrast = contrasts(results, R)
    null = R if isinstance(R, str) else "R @ params = 0"
    found = contrast.estimates
    # In standard errors: squares of the estimates may leave floating point.
    scale = np.where(found.bse > 0, found.bse, 1.0)
    z = (found.estimate - found.null) / scale
    df = float(found.df.min())
    replicates = found.scaled.df is not None
    matrix = contrast.covariances.correlation
    return wald_test(z, matrix, df, str(null), replicates=replicates)
