"""Notes below the table of effects: what was moved, what was not, and why."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vstatkit.formula.input_checks import first_names
from vstatkit.results.contrasts import effect_names
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.tables import setting_text


def effects_note(results: EnsembleResults) -> str | None:
    """Say what an effect is."""
    if results.effect_values is None:
        return None
    return (
        "Effects: change of the mean prediction when one predictor moves from its 10% "
        "to its 90% quantile (a factor: from its reference level), all others being as "
        "in the typical row."
    )


def effect_notes(results: EnsembleResults, alpha: float) -> list[str | None]:
    """Say which effects are missing, or to be read with care.

    Parameters
    ----------
    results : EnsembleResults
        What is shown.
    alpha : float
        One minus the coverage of the intervals.
    """
    return [
        constant_note(constant_predictors(results)),
        _unmoved_note(results),
        _beyond_note(results),
        _effects_test_note(results, alpha),
        _effects_margin_note(results, alpha),
    ]


def _effects_test_note(results: EnsembleResults, alpha: float) -> str | None:
    frame = results.effects_frame(alpha)
    return None if frame is None else untested_note(frame, effect_names(frame))


def untested_note(frame: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Explain missing tests.

    Parameters
    ----------
    frame : DataFrame
        Column `std_error`.
    names : sequence of str
        What the rows are called.
    """
    places = np.flatnonzero(frame["std_error"] == 0)
    if not places.size:
        return None
    listed = first_names([names[place] for place in places.tolist()])
    return (
        f"No test of {listed} (nan): all learners agree, so that the std err is zero, "
        "which says nothing about other data."
    )


def _effects_margin_note(results: EnsembleResults, alpha: float) -> str | None:
    frame = results.effects_frame(alpha)
    if frame is None or results.support is None:
        return None
    return margin_note(frame, effect_names(frame), alpha)


def margin_note(frame: pd.DataFrame, names: Sequence[str], alpha: float) -> str | None:
    """Say where the test and the interval of a change of probabilities disagree.

    Parameters
    ----------
    frame : DataFrame
        Columns `p_value`, `ci_lower` and `ci_upper`, of a level of `1 - alpha`.
    names : sequence of str
        What the rows are called.
    alpha : float
        Level of the test.
    """
    inside = (frame["ci_lower"] <= 0) & (frame["ci_upper"] >= 0)
    tested = frame["p_value"].notna()
    apart = np.flatnonzero(tested & ((frame["p_value"] < alpha) == inside))
    if not apart.size:
        return None
    listed = first_names([names[place] for place in apart.tolist()])
    return (
        f"The test and the interval of {listed} disagree at {alpha:g}: the test "
        "is Student's t, the interval Agresti and Coull's. Neither is sure so near the "
        "margin; more observations or learners would tell."
    )


def constant_predictors(results: EnsembleResults) -> list[str]:
    """List predictors with the same value in every row, and this value."""
    info, effects = results.info, results.effect_values
    if info.typical is None or info.coefficients:
        return []
    constant = {name for name, (low, high) in info.ranges.items() if low == high}
    if effects is not None and not effects.n_beyond:  # factors have no ranges
        moved = set(effects.frame.index.get_level_values("predictor"))
        constant = set(info.typical.columns) - moved - set(effects.left_out)
    row = info.typical.iloc[0]
    names = [name for name in info.typical.columns if name in constant]
    return [f"{name} ({setting_text(row[name])})" for name in names]


def constant_note(constant: Sequence[str]) -> str | None:
    """Say that constant predictors have no effect."""
    if not constant:
        return None
    return f"No effect of {', '.join(constant)}: the same value in every row."


def _unmoved_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.left_out:
        return None
    return (
        f"No effect of {', '.join(effects.left_out)}: the formula is not finite when "
        "it moves with the others at typical values."
    )


def _beyond_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.n_beyond:
        return None
    return (
        f"The last {effects.n_beyond:,} predictors were not moved: with so many "
        "columns their rows would fill the memory. get_prediction at two rows "
        "compares any."
    )
