"""Notes below a summary."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vstatkit.ensemble.evaluation import OOB_ROWS
from vstatkit.ensemble.sampling_plan import jackknife_learners
from vstatkit.formula.input_checks import list_names
from vstatkit.inference.estimates import MIN_DF, Estimates
from vstatkit.inference.normality import (
    MIN_OBSERVATIONS,
    influence_labels,
)
from vstatkit.inference.stopping import TOL, Shrinkage, round_up
from vstatkit.kernels.base import KernelKind
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.labels import effect_names, setting_text
from vstatkit.results.model_info import Aim
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.variance.registry import ESTIMATORS, large_k_warning, least_absent

MAX_ROWS = 40  # most rows of a table that are printed


def number_text(value: float) -> str:
    """Write a number with four significant digits, without exponent if possible."""
    if value == 0:
        return "0"
    if not np.isfinite(value):
        return str(value)
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.3e}"
    decimals = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{min(decimals, 4)}f}"


def has_bias(results: EnsembleResults) -> bool:
    """Whether the remaining bias of these estimates is known."""
    aim = results.info.aim
    return aim is not None and bool(aim.bias)


SOME_HUNDREDS = 300  # above this B, recommend a multiple instead of some hundreds
# Fewest observations or clusters with which intervals have their nominal coverage.
RELIABLE_UNITS = 20
MEASURED_UNITS = 5  # fewest units for which coverage has been simulated


def summary_notes(
    results: EstimateTable, alpha: float, *, full: bool = False
) -> list[str]:
    """Explain the numbers of a summary and how precise they are.

    With `full`, also explain how the variance was estimated.
    """
    fit = results if isinstance(results, EnsembleResults) else None
    candidates = [
        None if fit is None else effects_note(fit),
        target_note(results, alpha),
        choice_note(results),
        None if fit is None else bias_note(fit),
        _probability_note(results),
        _skew_note(results, alpha),
        _test_note(results),
        _exact_note(results),
        _learners_note(results),
        *([] if fit is None else effect_notes(fit, alpha)),
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
        None if fit is None else _unscored_note(fit),
        None if fit is None else _kept_note(fit),
        _cut_note(results),
    ]
    if full:
        candidates += [
            _variance_note(results),
            _orders_note(results),
            _influence_note(results),
        ]
    return [note for note in candidates if note is not None]


def _weights_note(results: EstimateTable) -> str | None:
    if results.info.weights is None:
        return None
    return (
        "Weights are sampling weights: they multiply the loss of their row in every "
        "learner, and averages over rows and OOB scores are weighted. Standard errors "
        "count rows, not weights; the typical row and the quantiles of effects are "
        "unweighted."
    )


def _test_note(results: EstimateTable) -> str:
    floor = results.estimates.df.min() == MIN_DF < results.design.n - 1
    bound = f" ({MIN_DF:g} at least)" if floor else ""
    return (
        f"Tests and intervals use Student's t; the degrees of freedom{bound} are low "
        "if the std err is imprecise."
    )


def _variance_note(results: EstimateTable) -> str | None:
    if ESTIMATORS[results.variance].nonnegative or results.design.complete:
        return None
    return (
        "The Variance table is raw. The square of std err is the monte carlo part plus "
        "a positive version of the sampling part (its posterior mean); MC share is the "
        "monte carlo share of it."
    )


def _learners_note(results: EstimateTable) -> str | None:
    if results.design.complete:
        return "Every subsample was evaluated: there is no Monte Carlo error."
    estimates, tolerance = results.estimates, results.tolerance
    growth = results.info.growth
    if isinstance(tolerance, Shrinkage):
        return _shrinkage_note(results, tolerance)
    reached = estimates.relative_mc_error.max()
    aim = f"{100 * tolerance.tol:g}%{_absolute_text(results)}"
    derived = not isinstance(results, EnsembleResults)  # B was chosen for the fit
    if tolerance.excess(estimates) <= 1:
        if growth.tol is None or derived:
            return None
        return (
            "B was grown until the Monte Carlo error of the Estimates' std err was "
            f"below {aim}; {reached:.1%} was reached."
        )
    whose = "The std err" if derived else "The Estimates' std err"
    if estimates.bounded.any():  # too few learners for a forecast
        return f"{whose} has a Monte Carlo error of {reached:.0%}."
    needed = float(tolerance.learners_needed(estimates).max())
    return (
        f"{whose} has a Monte Carlo error of {reached:.1%}; about {round_up(needed)} "
        f"learners would bring it to {aim}.{_stopped_text(results)}"
    )


def _effects_error_note(results: EnsembleResults) -> str | None:
    """Report the Monte Carlo error of the effects if they need more learners."""
    effects, tolerance = results.effect_estimates, results.tolerance
    if effects is None or results.design.complete or isinstance(tolerance, Shrinkage):
        return None
    needed = float(tolerance.learners_needed(effects).max())
    if needed <= max(
        results.B, float(tolerance.learners_needed(results.estimates).max())
    ):
        return None
    if effects.bounded.any() or results.estimates.bounded.any():
        return None  # too few learners for a forecast
    return (
        "The Effects' std err has a Monte Carlo error of up to "
        f"{effects.relative_mc_error.max():.1%}; about {round_up(needed)} learners "
        f"would bring it to {100 * tolerance.tol:g}%."
    )


def _stopped_text(results: EstimateTable) -> str:
    """Report that growth stopped at `max_B`, if it did."""
    most = results.info.growth.max_B
    if most is None or results.design.round_size(most, at_most=most) > results.B:
        return ""
    return f" B stopped at max_B = {most:,}."


def _shrinkage_note(results: EstimateTable, tolerance: Shrinkage) -> str | None:
    """Report how much smaller the standard errors of shards could be."""
    growth = results.info.growth
    if tolerance.excess(results.estimates) <= 1:
        if growth.tol is None or not isinstance(results, EnsembleResults):
            return None
        return (
            "B was grown until infinitely many learners would make the Estimates' std "
            f"err at most {100 * tolerance.tol:g}%{_least(tolerance)} smaller."
        )
    needed = float(tolerance.learners_needed(results.estimates).max())
    return (
        "The std err is valid, but more learners would make it smaller; about "
        f"{round_up(needed)} would bring it to within {100 * tolerance.tol:g}%"
        f"{_least(tolerance)} of its limit for infinitely many."
        f"{_stopped_text(results)}"
    )


def _least(tolerance: Shrinkage) -> str:
    """Write the absolute tolerance, if there is one."""
    least = float(np.mean(tolerance.atol))
    return f", or {number_text(least)}," if least > 0 else ""


def _absolute_text(results: EstimateTable) -> str:
    """Write the absolute tolerance, if it is larger than the relative one."""
    tolerance = results.tolerance
    counts = tolerance.allowed_error(results.estimates) > tolerance.tol
    if not counts.any():
        return ""
    atol = np.broadcast_to(tolerance.atol, counts.shape)[counts]
    return f", or {number_text(float(atol.min()))} in absolute terms if that is more"


def _exact_note(results: EstimateTable) -> str | None:
    count = int((results.estimates.bse == 0).sum())
    if count == 0:
        return None
    bounds = ""
    if results.support is not None:
        nobs = f"{results.support.nobs:.0f}"
        bounds = f" Their bounds are those of a proportion among {nobs} observations."
    untested = ", and there is no test (nan)" if results.tests_zero else ""
    return (
        f"All learners agree for {count} of {len(results.labels)} estimates: their std "
        f"err is zero, which is not evidence of precision{untested}.{bounds}"
    )


def _unused_note(results: EstimateTable) -> str | None:
    levels = results.info.unused_levels
    if not levels:
        return None
    return f"Levels of the response that no row has: {', '.join(levels)}."


def _few_units_note(results: EstimateTable) -> str | None:
    """Warn of intervals that miss their nominal coverage in simulations."""
    smooth = results.kind == KernelKind.SMOOTH
    if smooth or results.design.n >= RELIABLE_UNITS:
        return None
    warning = (
        f"The intervals are not reliable with fewer than {RELIABLE_UNITS} "
        f"{results.info.units}"
    )
    if results.design.n < MEASURED_UNITS:
        return f"{warning}, least of all with {results.design.n}."
    if _first_order(results):  # coverage was simulated with the jackknife
        return f"{warning}."
    return (
        f"{warning}: in simulations with the jackknife's variance, 95% intervals of "
        "forests cover as little as 92%."
    )


def _first_order(results: EstimateTable) -> bool:
    return ESTIMATORS[results.variance].source == "moments"


def _shards_note(results: EstimateTable) -> str | None:
    design = results.design
    if not isinstance(design, ShardsDesign):
        return None
    G, low, high = design.n_shards, design.n // design.n_shards, design.sizes().max()
    each = f"{low:,}" if low == high else f"{low:,} or {high:,}"
    return (
        f"The std err is the spread of the ensembles of {G} disjoint shards of {each} "
        f"{results.info.units}. It has {G - 1} degrees of freedom, so its relative "
        f"error is {np.sqrt(0.5 / (G - 1)):.0%} for any B; its monte carlo part falls "
        f"as B grows.{_jackknife_text(results)}"
    )


def _jackknife_text(results: EstimateTable) -> str:
    """Estimate the number of learners that the jackknife would need."""
    parts = results.components
    linear = results.k * float(parts.zeta_1.mean())
    if not linear > 0:
        return ""
    ratio = max(1.0, float(parts.zeta_k.mean()) / linear)
    needed = round_up(jackknife_learners(results.design.n, ratio))
    return (
        f" With independent subsamples, about {needed} learners would estimate it "
        f"within {TOL:.0%}."
    )


def more_note(results: EstimateTable) -> str:
    """Describe what a full summary adds."""
    enough = len(influence_labels(results.design, results.units)) >= MIN_OBSERVATIONS
    tests = " and normality tests" if enough else ""
    return f"summary(full=True) adds variance components{tests}."


def _influence_note(results: EstimateTable) -> str:
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


def _units(results: EstimateTable) -> str:
    return f"{results.design.n:,} {results.info.units}"


def _negative_note(results: EstimateTable) -> str | None:
    count = int((results.components.sampling < 0).sum())
    if count == 0 or results.components.df is not None:
        return None
    return (
        f"The raw sampling variance is negative for {count} of {len(results.labels)} "
        "estimates; the std err uses its posterior mean given that it is positive. "
        "Grow more learners."
    )


def _bounded_note(results: EstimateTable) -> str | None:
    count = int(results.estimates.bounded.sum())
    if count == 0:
        return None
    largest = "the largest that the spread of single learners allows"
    whose = f"the std err of {count} of {len(results.labels)} estimates is"
    if results.tolerance.excess(results.estimates) <= 1:  # B is large enough
        return f"{whose.capitalize()} {largest}."
    return (
        f"B = {results.B:,} is too small: {whose} only {largest}. Grow "
        f"{many_more(results.B)}; the summary then has a recommended number."
    )


def many_more(B: int) -> str:
    """Recommend a number of learners if there are too few for a forecast."""
    return "some hundreds of learners" if B < SOME_HUNDREDS else "several times as many"


def _range_note(results: EstimateTable) -> str | None:
    """Report variances of huge or tiny responses that overflow."""
    shown, scaled = results.components.total, results.estimates.scaled.total
    if (np.isfinite(shown) & ((shown != 0) | (scaled == 0))).all():
        return None
    return (
        "Some variances are beyond the range of floating point, and are shown as inf "
        "or 0; all other numbers are correct."
    )


def _orders_note(results: EstimateTable) -> str | None:
    orders = results.estimates.scaled.orders
    if orders is None:
        return None
    return (
        f"The sampling variance is the jackknife's over 1 + rho, rho = "
        f"{orders.rho:.2f} (standard error {orders.error:.2f}), because the jackknife "
        "counts variance that is due to pairs and larger sets of "
        f"{results.info.units} at least twice."
    )


def _large_k_note(results: EstimateTable) -> str | None:
    n, smooth = results.design.n, results.kind == KernelKind.SMOOTH
    large = results.k > n / 2 and n >= MEASURED_UNITS and not results.design.complete
    if not large or not _first_order(results) or smooth:
        return None
    warning = large_k_warning(results.variance, results.design, results.kind)
    if warning:
        return f"{warning[0].upper()}{warning[1:]}"
    absent, least = results.design.n_absent, least_absent(n)
    needs = ""
    if absent < least:
        needs = (
            f", but needs subsamples that leave out at least {least:.0f} of them; "
            f"these leave out {absent:.1f} on average"
        )
    if results.replace:
        measured = "10 to 50% too low"
    elif ESTIMATORS[results.variance].inflated:
        measured = "1.2 to 2.2 times the true variance"
    else:
        measured = "67 to 95% too low"
    return (
        f"k = {results.k:,} exceeds half of the {_units(results)}: in simulations with "
        "trees, this variance estimator, which includes the first order only, was "
        f"{measured}. variance='hoeffding' includes higher orders{needs}."
    )


def _probability_note(results: EstimateTable) -> str | None:
    if results.support is None:
        return None
    return (
        "Intervals of probabilities and of their differences stay within their range "
        "(Agresti and Coull, with an effective number of observations)."
    )


def _skew_note(results: EstimateTable, alpha: float) -> str | None:
    """Report intervals that are not symmetric."""
    estimates = results.estimates
    if results.support is not None:
        return None
    tables: dict[str, Estimates | None] = {"estimates": estimates}
    if isinstance(results, EnsembleResults):
        tables["effects"] = results.effect_estimates
    skewed = [
        f"{int((table.skew != 0).sum())} of {table.skew.size} {what}"
        for what, table in tables.items()
        if table is not None and (table.skew != 0).any()
    ]
    notes = []
    if skewed:
        notes.append(
            f"The intervals and p-values of {' and '.join(skewed)} allow for skewness: "
            "these intervals are longer on the side of the long tail, and not estimate "
            "+/- t std err."
        )
    if estimates.tails is not None:
        ends = estimates.interval(alpha)
        low, high = estimates.tails.low, estimates.tails.high
        pairs = zip(ends, (low, high), strict=True)
        reached = any((end == bound).any() for end, bound in pairs)
        if reached and np.isfinite(high - low).all():
            notes.append("All responses are 0 or 1, which limits the intervals.")
        elif reached:
            notes.append(
                "No interval of an estimate extends beyond zero, as no response does."
            )
    return " ".join(notes) or None


def _dropped_note(results: EstimateTable) -> str | None:
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
        "over rows refit them; keep_learners=True keeps them."
    )


def _cut_note(results: EstimateTable) -> str | None:
    counts = {"estimates": len(results.labels)}
    if isinstance(results, EnsembleResults) and results.effect_values is not None:
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


def effects_note(results: EnsembleResults) -> str | None:
    """Explain the effects."""
    if results.effect_values is None:
        return None
    return (
        "Effects: change of the mean prediction when one predictor moves from its 10% "
        "to its 90% quantile (a factor: from its reference level), all others at the "
        "typical row."
    )


def effect_notes(results: EnsembleResults, alpha: float) -> list[str | None]:
    """List notes on effects that are missing, imprecise or not tested."""
    frame, tests = results.effects_frame(alpha), list[str | None]()
    if frame is not None:
        tests.append(untested_note(frame, effect_names(frame)))
    if frame is not None and results.support is not None:
        tests.append(margin_note(frame, effect_names(frame), alpha))
    return [
        _effects_error_note(results),
        constant_note(constant_predictors(results)),
        _unmoved_note(results),
        _beyond_note(results),
        *tests,
    ]


def untested_note(frame: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Explain missing tests of the rows of a frame, which have these names."""
    places = np.flatnonzero(frame["std_error"] == 0)
    if not places.size:
        return None
    listed = list_names([names[place] for place in places.tolist()])
    return (
        f"No test of {listed} (nan): all learners agree, so the std err is zero, which "
        "is not evidence of precision."
    )


def margin_note(frame: pd.DataFrame, names: Sequence[str], alpha: float) -> str | None:
    """Report changes of probabilities whose test and interval disagree."""
    inside = (frame["ci_lower"] <= 0) & (frame["ci_upper"] >= 0)
    tested = frame["p_value"].notna()
    apart = np.flatnonzero(tested & ((frame["p_value"] < alpha) == inside))
    if not apart.size:
        return None
    listed = list_names([names[place] for place in apart.tolist()])
    return (
        f"The test and the interval of {listed} disagree at {alpha:g}: the test "
        "is Student's t, the interval Agresti and Coull's. The result is borderline; "
        "more observations or learners would decide it."
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
    """Report predictors without effect because they are constant."""
    if not constant:
        return None
    return f"No effect of {', '.join(constant)}: the same value in every row."


def _unmoved_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.left_out:
        return None
    return (
        f"No effect of {', '.join(effects.left_out)}: the formula is not finite when "
        "it moves and the others are at typical values."
    )


def _beyond_note(results: EnsembleResults) -> str | None:
    effects = results.effect_values
    if effects is None or not effects.n_beyond:
        return None
    return (
        f"The last {effects.n_beyond:,} predictors have no effects: with so many "
        "columns, their rows would need too much memory. Use get_prediction at two "
        "rows to compare any values."
    )


def target_note(results: EstimateTable, alpha: float) -> str:
    """Describe what the intervals cover."""
    info = results.info
    if info.aim is not None:
        return _aim_note(results, info.aim, alpha)
    level = f"{1 - alpha:.4g}"
    sizes = f"n = {results.design.n:,} {info.units}, k = {results.k:,}"
    predicts = info.formula is not None or info.typical is not None
    if not predicts:
        if results.design.replace:
            return (
                f"The intervals cover, at {level}, the expectation of this statistic "
                f"over data sets of this size ({sizes})."
            )
        return (
            f"The intervals cover, at {level}, the expected value of the kernel on k = "
            f"{results.k:,} {info.units}."
        )
    note = (
        f"The intervals cover, at {level}, the expectation of this ensemble over data "
        f"sets of this size ({sizes})"
    )
    if info.coefficients and not isinstance(results, EnsembleResults):
        return f"{note}."
    if info.coefficients:
        single = f"; a single fit to all {info.units} has another expectation"
        return f"{note}{single if results.k < results.design.n else ''}."
    return f"{note}. They do not cover E[y|x]{_truth_text(results)}."


def _truth_text(results: EstimateTable) -> str:
    """Name the option that targets E[y|x], if the kernel has one."""
    available = results.info.kernel in ("forest", "tree") and results.support is None
    return "; use target='truth' for that" if available else ""


def _aim_note(results: EstimateTable, aim: Aim, alpha: float) -> str:
    on = f"{aim.learner}, fitted to k = {results.k:,} {results.info.units}"
    if not aim.truth:
        return (
            f"The intervals cover, at {1 - alpha:.4g}, the expectation of this "
            f"ensemble, each learner {on}, over data sets of this size. The bias is "
            "reduced, but the intervals do not cover E[y|x]."
        )
    if aim.mix is not None:
        return (
            f"The intervals target E[y|x], at {1 - alpha:.4g}. The estimates are means "
            f"of a stacked ensemble: {aim.mix}. The standard errors are those of "
            f"learners with less bias, each {on}: this allows for a small remaining "
            "bias only."
        )
    return (
        f"The intervals target E[y|x], at {1 - alpha:.4g}. They allow for the sampling "
        f"and Monte Carlo error of a mean of learners, each {on}, but not for the bias "
        "of such a learner."
    )


def choice_note(results: EstimateTable) -> str | None:
    """Explain how learners were chosen, if they were."""
    aim = results.info.aim
    if aim is None or not aim.truth:
        return None
    errors = ", ".join(f"{name} {number_text(e)}" for name, e in aim.errors.items())
    purpose = ""
    if aim.mix is not None:
        purpose = " for the standard errors; the stack has a small error and is smooth"
    return (
        f"Learners were chosen by out-of-bag errors of pilot ensembles: {errors} (the "
        "smallest of each kind of stages). The least biased learner whose error is "
        f"within two standard errors, and 25%, of the best was chosen{purpose}."
    )


def bias_note(results: EnsembleResults) -> str | None:
    """Explain the table of biases, if there is one."""
    if not has_bias(results):
        return None
    return (
        "Remaining bias: out-of-bag predictions minus responses, smoothed; it tends to "
        "be too small. If share, bias over std err, is well above 0.5, the intervals "
        "cover E[y|x] less often than their nominal level."
    )
