"""Query points of a fit, and the rows on which its learners are compared."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.prediction import output_labels
from vstatkit.ensemble.typical_row_effects import EffectSettings, effect_settings
from vstatkit.exceptions import FormulaError
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.parse import ParsedFormula
from vstatkit.kernels.base import AnyKernel, PredictiveModel
from vstatkit.variance.higher_orders import reference_rows


@dataclass(frozen=True)
class Query:
    """Where the kernel is evaluated."""

    labels: pd.Index  # names of the values at the query points
    # Query points, then settings of the effects; None if values are no predictions
    rows: Floats | None
    settings: EffectSettings | None  # settings of the effects


def build_query(kernel: AnyKernel, parsed: ParsedFormula, at: DataLike | None) -> Query:
    """Code the query points, and the settings of the effects after them."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        if at is not None:
            raise ValueError(
                "`at` is for kernels that predict; the estimates of this kernel are "
                "coefficients or statistics. Use get_prediction(at) on the results."
            )
        return Query(pd.Index(parsed.names), None, None)
    if at is None:
        points = parsed.typical_row
        rows = parsed.coding.raw_matrix(points)
        if not parsed.coding.usable_rows(rows).all():
            raise FormulaError(
                "the formula is not finite at the typical row (medians, most frequent "
                f"levels): {points.iloc[0].to_dict()}. Give query points as `at`."
            )
    else:
        points = as_frame(at)
        rows = parsed.coding.matrix(points)
    labels = output_labels(points.index, parsed.classes)
    settings = effect_settings(parsed.coding, parsed.frame, parsed.typical_row)
    if settings is not None:
        rows = np.concatenate([rows, settings.start, settings.end])
    return Query(labels, rows, settings)


def build_reference(
    kernel: AnyKernel, parsed: ParsedFormula, seed: int
) -> Floats | None:
    """Draw the rows on which the Hoeffding correction compares learners."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return reference_rows(parsed.X, seed, kernel.n_outputs)
