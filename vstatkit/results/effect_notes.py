"""Notes below the table of effects: what was moved, what was not, and why."""

from collections.abc import Sequence

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.sections import setting_text


def effects_note(results: EnsembleResults) -> str | None:
    """Say what an effect is."""
    if results.effect_values is None:
        return None
    return (
        "Effects: change of the mean prediction when one predictor moves from its 10% "
        "to its 90% quantile (a factor: from its first level), all others being as in "
        "the typical row."
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
    ]


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
