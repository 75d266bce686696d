"""Notes below a summary: what a reader has to know about the numbers."""

import numpy as np

from vstatkit.ensemble.auto_design import jackknife_learners
from vstatkit.ensemble.evaluation import OOB_ROWS
from vstatkit.inference.estimates import MIN_DF
from vstatkit.inference.normality import MIN_OBSERVATIONS, influential
from vstatkit.inference.stopping import TOL, Shrinkage, about
from vstatkit.kernels.base import KernelKind
from vstatkit.results.aim_notes import bias_note, choice_note, target_note
from vstatkit.results.effect_notes import effect_notes, effects_note
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.sections import MAX_ROWS, is_tested, number_text
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.variance.registry import ESTIMATORS, large_k_warning, least_absent

SOME_HUNDREDS = 300
"""Above this B, recommend a multiple instead of some hundreds."""

RELIABLE_UNITS = 20
"""Least number of observations or clusters for intervals to hold their level."""

MEASURED_UNITS = 5
"""Fewest units whose intervals have been measured."""


def summary_notes(
    results: EnsembleResults, alpha: float, *, full: bool = False
) -> list[str]:
    """Say what the numbers mean and what was reached.

    Parameters
    ----------
    results : EnsembleResults
        What is shown.
    alpha : float
        One minus the coverage of the intervals.
    full : bool
        Whether to say how the variance was estimated, for the tables that show it.
    """
    candidates = [
        effects_note(results),
        target_note(results, alpha),
        choice_note(results),
        bias_note(results),
        _probability_note(results),
        _skew_note(results, alpha),
        _test_note(results),
        _exact_note(results),
        _learners_note(results),
        _effects_error_note(results),
        *effect_notes(results, alpha),
        *results.info.data_notes,
        _unused_note(results),
        _few_units_note(results),
        _shards_note(results),
        _negative_note(results),
        _bounded_note(results),
        _range_note(results),
        _large_k_note(results),
        _dropped_note(results),
        _weights_note(results),
        _unscored_note(results),
        _kept_note(results),
        _cut_note(results),
    ]
    if full:
        candidates += [
            _variance_note(results),
            _orders_note(results),
            _influence_note(results),
        ]
    return [note for note in candidates if note is not None]


def _weights_note(results: EnsembleResults) -> str | None:
    if results.info.weights is None:
        return None
    return (
        "Weights are sampling weights: they multiply the loss of their row in every "
        "learner, and averages over rows and OOB scores are weighted. Standard errors "
        "count rows; the typical row and the quantiles of moves do so too."
    )


def _test_note(results: EnsembleResults) -> str:
    floor = results.estimates.df.min() == MIN_DF < results.design.n - 1
    bound = f" ({MIN_DF:g} at least)" if floor else ""
    return (
        f"Tests and intervals use Student's t; the degrees of freedom{bound} are low "
        "if the std err is imprecise."
    )


def _variance_note(results: EnsembleResults) -> str | None:
    if ESTIMATORS[results.variance].nonnegative or results.design.complete:
        return None
    return (
        "The Variance table is raw. std err squares to its monte carlo part plus the "
        "sampling part made positive (a posterior mean); MC share is a share of that."
    )


def _learners_note(results: EnsembleResults) -> str | None:
    if results.design.complete:
        return "Every subsample was evaluated: there is no Monte Carlo error."
    estimates, tolerance = results.estimates, results.tolerance
    growth = results.info.growth
    if isinstance(tolerance, Shrinkage):
        return _shrinkage_note(results, tolerance)
    reached = estimates.relative_mc_error.max()
    aim = f"{100 * tolerance.tol:g}%{_absolute_text(results)}"
    of_tests = results.null is not None  # B was chosen for what they combine
    if tolerance.excess(estimates) <= 1:
        if growth.tol is None or of_tests:
            return None
        return (
            "B was grown until the Monte Carlo error of the Estimates' std err was "
            f"below {aim}; {reached:.1%} was reached."
        )
    whose = "The std err" if of_tests else "The Estimates' std err"
    if estimates.bounded.any():  # too few learners to tell how many
        return f"{whose} has a Monte Carlo error of {reached:.0%}."
    needed = float(tolerance.needed(estimates).max())
    return (
        f"{whose} has a Monte Carlo error of {reached:.1%}; about {about(needed)} "
        f"learners would bring it to {aim}.{_stopped_text(results)}"
    )


def _effects_error_note(results: EnsembleResults) -> str | None:
    """Say how well the effects' standard errors are known, where more are needed."""
    effects, tolerance = results.effect_estimates, results.tolerance
    if effects is None or results.design.complete or isinstance(tolerance, Shrinkage):
        return None
    needed = float(tolerance.needed(effects).max())
    if needed <= max(results.B, float(tolerance.needed(results.estimates).max())):
        return None
    if effects.bounded.any() or results.estimates.bounded.any():
        return None  # too few learners to tell how many
    return (
        "The Effects' std err has a Monte Carlo error of up to "
        f"{effects.relative_mc_error.max():.1%}; about {about(needed)} learners would "
        f"bring it to {100 * tolerance.tol:g}%."
    )


def _stopped_text(results: EnsembleResults) -> str:
    """Say that growth has come to its end, if it has."""
    most = results.info.growth.max_B
    if most is None or results.design.rounded(most, at_most=most) > results.B:
        return ""
    return f" B stopped at max_B = {most:,}."


def _shrinkage_note(results: EnsembleResults, tolerance: Shrinkage) -> str | None:
    """Say how much smaller the standard errors of shards could be."""
    growth = results.info.growth
    if tolerance.excess(results.estimates) <= 1:
        if growth.tol is None or results.null is not None:
            return None
        return (
            "B was grown until infinitely many learners would make the Estimates' std "
            f"err at most {100 * tolerance.tol:g}%{_least(tolerance)} smaller."
        )
    needed = float(tolerance.needed(results.estimates).max())
    return (
        "The std err holds as it is, but more learners would make it smaller; about "
        f"{about(needed)} would bring it to within {100 * tolerance.tol:g}%"
        f"{_least(tolerance)} of what is left with infinitely many."
        f"{_stopped_text(results)}"
    )


def _least(tolerance: Shrinkage) -> str:
    """Name the absolute tolerance where there is one."""
    least = float(np.mean(tolerance.atol))
    return f", or {number_text(least)}," if least > 0 else ""


def _absolute_text(results: EnsembleResults) -> str:
    """Name the absolute tolerance where it is what counts."""
    tolerance = results.tolerance
    counts = tolerance.allowed(results.estimates) > tolerance.tol
    if not counts.any():
        return ""
    atol = np.broadcast_to(tolerance.atol, counts.shape)[counts]
    return f", or {number_text(float(atol.min()))} in absolute terms if that is more"


def _exact_note(results: EnsembleResults) -> str | None:
    count = int((results.estimates.bse == 0).sum())
    if count == 0:
        return None
    bounds = (
        ""
        if results.support is None
        else f" Their bounds are those of a share among {results.support.nobs:.0f} "
        "observations."
    )
    untested = ", and there is no test (nan)" if is_tested(results) else ""
    return (
        f"All learners agree for {count} of {len(results.labels)} estimates: their std "
        f"err is zero, which says nothing about other data{untested}.{bounds}"
    )


def _unused_note(results: EnsembleResults) -> str | None:
    levels = results.info.unused_levels
    if not levels:
        return None
    return f"Levels of the response that no row has: {', '.join(levels)}."


def _few_units_note(results: EnsembleResults) -> str | None:
    """Warn of intervals that are known, from simulations, to miss their level."""
    smooth = results.kind == KernelKind.SMOOTH
    if smooth or results.design.n >= RELIABLE_UNITS:
        return None
    said = (
        f"The intervals cannot be relied on with fewer than {RELIABLE_UNITS} "
        f"{results.info.units}"
    )
    if results.design.n < MEASURED_UNITS:
        return f"{said}, least of all with {results.design.n}."
    if _first_order(results):  # what was measured is the jackknife's
        return f"{said}."
    return (
        f"{said}: even with the jackknife's variance, forests' 95% intervals have been "
        "measured to cover 92% in places."
    )


def _first_order(results: EnsembleResults) -> bool:
    return ESTIMATORS[results.variance].source == "moments"


def _shards_note(results: EnsembleResults) -> str | None:
    design = results.design
    if not isinstance(design, ShardsDesign):
        return None
    G, low, high = design.n_shards, design.n // design.n_shards, design.sizes().max()
    each = f"{low:,}" if low == high else f"{low:,} or {high:,}"
    return (
        f"The std err is the spread of the ensembles of {G} disjoint shards of {each} "
        f"{results.info.units}. With {G - 1} degrees of freedom it is itself known to "
        f"{np.sqrt(0.5 / (G - 1)):.0%}, whatever B; its monte carlo part falls as B "
        f"grows.{_jackknife_text(results)}"
    )


def _jackknife_text(results: EnsembleResults) -> str:
    """Say what the jackknife would need, as far as these learners tell."""
    parts = results.components
    linear = results.k * float(parts.zeta_1.mean())
    if not linear > 0:
        return ""
    ratio = max(1.0, float(parts.zeta_k.mean()) / linear)
    needed = about(jackknife_learners(results.design.n, ratio))
    return f" Of independent subsamples, about {needed} would tell it to {TOL:.0%}."


def more_note(results: EnsembleResults) -> str:
    """Say what a full summary has besides."""
    enough = len(influential(results.design, results.units)) >= MIN_OBSERVATIONS
    tests = " and normality tests" if enough else ""
    return f"summary(full=True) adds variance components{tests}."


def _influence_note(results: EnsembleResults) -> str:
    if isinstance(results.design, ShardsDesign):
        G = results.design.n_shards
        if G < MIN_OBSERVATIONS:
            return "Too few shards for normality tests of their means."
        return f"Influence: normality tests of the means of the {G} shards."
    if results.design.n < MIN_OBSERVATIONS:
        return f"Too few {results.info.units} for normality tests of their influence."
    return (
        f"Influence: normality tests of the influence values of the {_units(results)}."
    )


def _units(results: EnsembleResults) -> str:
    return f"{results.design.n:,} {results.info.units}"


def _negative_note(results: EnsembleResults) -> str | None:
    count = int((results.components.sampling < 0).sum())
    if count == 0 or results.components.df is not None:
        return None
    return (
        f"The raw sampling variance is negative for {count} of {len(results.labels)} "
        "estimates and shown as it is; the std err uses its posterior mean given that "
        "it is positive. Grow more learners."
    )


def _bounded_note(results: EnsembleResults) -> str | None:
    count = int(results.estimates.bounded.sum())
    if count == 0:
        return None
    largest = "the largest that the spread of single learners allows"
    whose = f"the std err of {count} of {len(results.labels)} estimates is"
    if results.tolerance.excess(results.estimates) <= 1:  # not for want of learners
        return f"{whose.capitalize()} {largest}."
    return (
        f"B = {results.B:,} is too small: {whose} only {largest}. Grow "
        f"{many_more(results.B)}; the summary then says how many are needed."
    )


def many_more(B: int) -> str:
    """Advise how many learners to grow if there are too few for a forecast."""
    return "some hundreds of learners" if B < SOME_HUNDREDS else "several times as many"


def _range_note(results: EnsembleResults) -> str | None:
    """Say that squares of huge or tiny responses do not fit into the table."""
    shown, scaled = results.components.total, results.estimates.scaled.total
    if (np.isfinite(shown) & ((shown != 0) | (scaled == 0))).all():
        return None
    return (
        "Variances are squares beyond the range of floating point, shown as inf or 0; "
        "all other numbers are as they should be."
    )


def _orders_note(results: EnsembleResults) -> str | None:
    orders = results.estimates.scaled.orders
    if orders is None:
        return None
    return (
        f"The sampling variance is the jackknife's over 1 + rho, rho = "
        f"{orders.rho:.2f} (standard error {orders.error:.2f}): the jackknife counts "
        f"twice and more what pairs and larger sets of {results.info.units} explain."
    )


def _large_k_note(results: EnsembleResults) -> str | None:
    n, smooth = results.design.n, results.kind == KernelKind.SMOOTH
    large = results.k > n / 2 and n >= MEASURED_UNITS and not results.design.complete
    if not large or not _first_order(results) or smooth:
        return None
    warning = large_k_warning(results.variance, results.design, results.kind)
    if warning:
        return f"{warning[0].upper()}{warning[1:]}"
    absent, least = results.design.n_absent, least_absent(n)
    needs = (
        ""
        if absent >= least
        else f", but needs subsamples that leave out {least:.0f} of them or more; "
        f"these leave out {absent:.1f} on average"
    )
    if results.replace:
        measured = "10 to 50% low for trees"
    elif ESTIMATORS[results.variance].inflated:
        measured = "1.2 to 2.2 times the true variance for trees"
    else:
        measured = "67 to 95% low for trees"
    return (
        f"k = {results.k:,} exceeds half of the {_units(results)}: there this "
        "estimator of the variance, which sees the first order only, has been measured "
        f"to be {measured}. variance='hoeffding' goes beyond it{needs}."
    )


def _probability_note(results: EnsembleResults) -> str | None:
    if results.support is None:
        return None
    return (
        "Intervals of probabilities and of their differences stay within their range "
        "(Agresti and Coull's, on an effective number of observations)."
    )


def _skew_note(results: EnsembleResults, alpha: float) -> str | None:
    """Say that intervals are not symmetric, and why."""
    found = results.estimates
    if results.support is not None:
        return None
    tables = {"estimates": found, "effects": results.effect_estimates}
    skewed = [
        f"{int((one.skew != 0).sum())} of {one.skew.size} {what}"
        for what, one in tables.items()
        if one is not None and (one.skew != 0).any()
    ]
    notes = []
    if skewed:
        notes.append(
            f"The intervals and p-values of {' and '.join(skewed)} allow for skewness: "
            "these intervals are longer on the side of the long tail, and not estimate "
            "+/- t std err."
        )
    if found.tails is not None:
        ends = found.interval(alpha)
        low, high = found.tails.low, found.tails.high
        pairs = zip(ends, (low, high), strict=True)
        reached = any((end == bound).any() for end, bound in pairs)
        if reached and np.isfinite(high - low).all():
            notes.append("All responses are 0 or 1, which limits the intervals.")
        elif reached:
            notes.append(
                "No interval of an estimate extends beyond zero, as no response does."
            )
    return " ".join(notes) or None


def _dropped_note(results: EnsembleResults) -> str | None:
    if results.info.n_dropped == 0:
        return None
    count = results.info.n_dropped
    rows = "row" if count == 1 else "rows"
    return f"{count:,} {rows} with missing values dropped."


def _unscored_note(results: EnsembleResults) -> str | None:
    scores = results.scores
    if scores is None or scores.n_scored == results.nobs:
        return None
    why = "were not scored" if results.nobs > OOB_ROWS else "were in every subsample"
    if not scores.n_scored:
        return (
            f"There are no out-of-bag scores: all {results.nobs:,} observations {why}."
        )
    return (
        f"Out-of-bag scores rest on {scores.n_scored:,} of {results.nobs:,} "
        f"observations; the others {why}."
    )


def _kept_note(results: EnsembleResults) -> str | None:
    predictor = results.predictor
    if predictor is None or predictor.n_kept == results.B:
        return None
    return (
        "The learners were not kept, so get_prediction is not available, and averages "
        "over rows fit them again; keep_learners=True keeps them."
    )


def _cut_note(results: EnsembleResults) -> str | None:
    counts = {"estimates": len(results.labels)}
    if results.effect_values is not None:
        counts["effects"] = len(results.effect_values.frame)
    cut = [f"{n:,} {what}" for what, n in counts.items() if n > MAX_ROWS]
    if not cut:
        return None
    half = MAX_ROWS // 2
    return (
        f"Of {' and '.join(cut)} the first {half} and the last {half} are shown; "
        "`summary_frame()`, `effects`, `components`, `normality` and "
        "`diagnostics` hold all."
    )
