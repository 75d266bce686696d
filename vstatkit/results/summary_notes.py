"""Notes below a summary."""

from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np
import pandas as pd

from vstatkit.ensemble.evaluation import OOB_ROWS
from vstatkit.ensemble.sampling_plan import jackknife_learners
from vstatkit.inference.estimates import MIN_DF, Estimates
from vstatkit.inference.normality import MIN_OBSERVATIONS
from vstatkit.inference.stopping import TOL, Shrinkage, round_up
from vstatkit.kernels.base import KernelKind
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.labels import effect_names, number_text, setting_text
from vstatkit.results.model_description import Aim
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.text import list_names
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.influence_summaries import influence_labels
from vstatkit.variance.registry import ESTIMATORS, large_k_warning, least_absent

MAX_ROWS = 40  # most rows of a table that are printed


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
    """Explain the numbers of a summary; with `full`, also the variance estimates."""
    fit = results if isinstance(results, EnsembleResults) else None
    notes = [
        *([] if fit is None or fit.effect_values is None else [EFFECTS]),
        target_note(results, alpha),
        *_target_details(results),
        *_interval_notes(results, alpha),
        *_learners_notes(results),
        *([] if fit is None else _effect_notes(fit, alpha)),
        *_data_notes(results),
        _shards_note(results),
        *_variance_problems(results),
        _large_k_note(results),
        *_row_notes(results),
        _cut_note(results),
        *(_full_notes(results) if full else []),
    ]
    return [note for note in notes if note is not None]


EFFECTS = (
    "Effects: change of the mean prediction when one predictor moves from its 10% to "
    "its 90% quantile (a factor: from its reference level), all others at the typical "
    "row."
)


def target_note(results: EstimateTable, alpha: float) -> str:
    """Describe what the intervals cover."""
    info = results.info
    if info.aim is not None:
        return _aim_note(results, info.aim, alpha)
    level = f"{1 - alpha:.4g}"
    sizes = f"n = {results.design.n:,} {info.units}, k = {results.k:,}"
    if info.formula is None and info.typical is None:
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
    if not info.coefficients:
        trees = info.kernel in ("forest", "tree") and results.support is None
        truth = "; use target='truth' for that" if trees else ""
        return f"{note}. They do not cover E[y|x]{truth}."
    if isinstance(results, EnsembleResults) and results.k < results.design.n:
        note += f"; a single fit to all {info.units} has another expectation"
    return f"{note}."


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


def _target_details(results: EstimateTable) -> Iterator[str]:
    """Explain the choice of learners, the table of biases and the limits."""
    aim = results.info.aim
    if aim is not None and aim.truth:
        errors = ", ".join(f"{name} {number_text(e)}" for name, e in aim.errors.items())
        purpose = (
            " for the standard errors; the stack has a small error and is smooth"
            if aim.mix is not None
            else ""
        )
        yield (
            f"Learners were chosen by out-of-bag errors of pilot ensembles: {errors} "
            "(the smallest of each kind of stages). The least biased learner whose "
            "error is within two standard errors, and 25%, of the best was "
            f"chosen{purpose}."
        )
    if isinstance(results, EnsembleResults) and has_bias(results):
        yield (
            "Remaining bias: out-of-bag predictions minus responses, smoothed; it "
            "tends to be too small. If share, bias over std err, is well above 0.5, "
            "the intervals cover E[y|x] less often than their nominal level."
        )
    if results.support is not None:
        yield (
            "Intervals of probabilities and of their differences stay within their "
            "range (Agresti and Coull, with an effective number of observations)."
        )


def _interval_notes(results: EstimateTable, alpha: float) -> Iterator[str | None]:
    """Explain intervals and tests, and standard errors of zero."""
    if results.support is None:
        yield _skew_note(results, alpha)
    floor = results.estimates.df.min() == MIN_DF < results.design.n - 1
    bound = f" ({MIN_DF:g} at least)" if floor else ""
    yield (
        f"Tests and intervals use Student's t; the degrees of freedom{bound} are low "
        "if the std err is imprecise."
    )
    count = int((results.estimates.bse == 0).sum())
    if count:
        bounds = ""
        if results.support is not None:
            bounds = (
                " Their bounds are those of a proportion among "
                f"{results.support.nobs:.0f} observations."
            )
        untested = ", and there is no test (nan)" if results.tests_zero else ""
        yield (
            f"All learners agree for {count} of {len(results.labels)} estimates: their "
            f"std err is zero, which is not evidence of precision{untested}.{bounds}"
        )


def _skew_note(results: EstimateTable, alpha: float) -> str | None:
    """Report intervals that are not symmetric."""
    estimates = results.estimates
    tables = {"estimates": estimates}
    if isinstance(results, EnsembleResults) and results.effect_estimates is not None:
        tables["effects"] = results.effect_estimates
    skewed = [
        f"{int((table.skew != 0).sum())} of {table.skew.size} {what}"
        for what, table in tables.items()
        if (table.skew != 0).any()
    ]
    notes = []
    if skewed:
        notes.append(
            f"The intervals and p-values of {' and '.join(skewed)} allow for skewness: "
            "these intervals are longer on the side of the long tail, and not estimate "
            "+/- t std err."
        )
    if estimates.tails is not None:
        limits = (estimates.tails.low, estimates.tails.high)
        pairs = zip(estimates.interval(alpha), limits, strict=True)
        reached = any((end == limit).any() for end, limit in pairs)
        if reached and np.isfinite(limits[1] - limits[0]).all():
            notes.append("All responses are 0 or 1, which limits the intervals.")
        elif reached:
            notes.append(
                "No interval of an estimate extends beyond zero, as no response does."
            )
    return " ".join(notes) or None


def _learners_notes(results: EstimateTable) -> Iterator[str]:
    """Report the Monte Carlo error, and how many learners would reduce it."""
    if results.design.complete:
        yield "Every subsample was evaluated: there is no Monte Carlo error."
        return
    estimates, tolerance = results.estimates, results.tolerance
    growth, shards = results.info.growth, isinstance(tolerance, Shrinkage)
    derived = not isinstance(results, EnsembleResults)  # B was chosen for the fit
    precise = tolerance.excess(estimates) <= 1
    if precise and (growth.tol is None or derived):
        return
    whose = "The std err" if derived else "The Estimates' std err"
    reached = estimates.relative_mc_error.max()
    aim = f"{100 * tolerance.tol:g}%{_absolute_text(results)}"
    if precise and shards:
        yield (
            "B was grown until infinitely many learners would make the Estimates' std "
            f"err at most {aim} smaller."
        )
    elif precise:
        yield (
            "B was grown until the Monte Carlo error of the Estimates' std err was "
            f"below {aim}; {reached:.1%} was reached."
        )
    elif (estimates.bounded.any() or estimates.expected is not None) and not shards:
        # There are too few learners for a forecast, or more would not help much.
        yield f"{whose} has a Monte Carlo error of {reached:.0%}."
    else:
        needed = round_up(float(tolerance.learners_needed(estimates).max()))
        note = (
            f"{whose} has a Monte Carlo error of {reached:.1%}; about {needed} "
            f"learners would bring it to {aim}."
        )
        if shards:
            note = (
                "The std err is valid, but more learners would make it smaller; about "
                f"{needed} would bring it to within {aim} of its limit for infinitely "
                "many."
            )
        most = growth.max_B
        if most is None or results.design.round_size(most, at_most=most) > results.B:
            yield note
        else:
            yield f"{note} B stopped at max_B = {most:,}."


def _absolute_text(results: EstimateTable) -> str:
    """Write the absolute tolerance, if it is larger than the relative one."""
    tolerance = results.tolerance
    if isinstance(tolerance, Shrinkage):
        mean = float(np.mean(tolerance.atol))
        return f", or {number_text(mean)}," if mean > 0 else ""
    counts = tolerance.allowed_error(results.estimates) > tolerance.tol
    if not counts.any():
        return ""
    atol = np.broadcast_to(tolerance.atol, counts.shape)[counts]
    return f", or {number_text(float(atol.min()))} in absolute terms if that is more"


def _effect_notes(results: EnsembleResults, alpha: float) -> Iterator[str | None]:
    """List notes on effects that are missing, imprecise or not tested."""
    yield _effects_error_note(results)
    yield constant_note(_constant_predictors(results))
    effects, frame = results.effect_values, results.effects_frame(alpha)
    if effects is None or frame is None:
        return
    if effects.left_out:
        yield (
            f"No effect of {', '.join(effects.left_out)}: the formula is not finite "
            "when it moves and the others are at typical values."
        )
    if effects.n_beyond:
        yield (
            f"The last {effects.n_beyond:,} predictors have no effects: with so many "
            "columns, their rows would need too much memory. Use get_prediction at two "
            "rows to compare any values."
        )
    names = effect_names(frame)
    yield untested_note(frame, names)
    if results.support is not None:
        yield margin_note(frame, names, alpha)


def _effects_error_note(results: EnsembleResults) -> str | None:
    """Report the Monte Carlo error of the effects if they need more learners."""
    effects, estimates = results.effect_estimates, results.estimates
    tolerance = results.tolerance
    if effects is None or results.design.complete or isinstance(tolerance, Shrinkage):
        return None
    needed = float(tolerance.learners_needed(effects).max())
    if needed <= max(results.B, float(tolerance.learners_needed(estimates).max())):
        return None
    if effects.bounded.any() or estimates.bounded.any():
        return None  # too few learners for a forecast
    return (
        "The Effects' std err has a Monte Carlo error of up to "
        f"{effects.relative_mc_error.max():.1%}; about {round_up(needed)} learners "
        f"would bring it to {100 * tolerance.tol:g}%."
    )


def _constant_predictors(results: EnsembleResults) -> list[str]:
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


def untested_note(frame: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Explain missing tests of the rows of a frame, which have these names."""
    untested = list(compress(names, frame["std_error"] == 0))
    if not untested:
        return None
    return (
        f"No test of {list_names(untested)} (nan): all learners agree, so the std err "
        "is zero, which is not evidence of precision."
    )


def margin_note(frame: pd.DataFrame, names: Sequence[str], alpha: float) -> str | None:
    """Report changes of probabilities whose test and interval disagree."""
    inside = (frame["ci_lower"] <= 0) & (frame["ci_upper"] >= 0)
    tested = frame["p_value"].notna()
    contrary = tested & ((frame["p_value"] < alpha) == inside)
    disagreeing = list(compress(names, contrary))
    if not disagreeing:
        return None
    return (
        f"The test and the interval of {list_names(disagreeing)} disagree at "
        f"{alpha:g}: the test is Student's t, the interval Agresti and Coull's. The "
        "result is borderline; more observations or learners would decide it."
    )


def _data_notes(results: EstimateTable) -> Iterator[str]:
    """Report problems of the data: missing levels, and too few units."""
    info, n = results.info, results.design.n
    yield from info.data_notes
    if info.unused_levels:
        levels = ", ".join(info.unused_levels)
        yield f"Levels of the response that no row has: {levels}."
    if results.kind == KernelKind.SMOOTH or n >= RELIABLE_UNITS:
        return
    warning = (
        f"The intervals are not reliable with fewer than {RELIABLE_UNITS} {info.units}"
    )
    if n < MEASURED_UNITS:
        yield f"{warning}, least of all with {n}."
    elif _first_order(results):  # coverage was simulated with the jackknife
        yield f"{warning}."
    else:
        yield (
            f"{warning}: in simulations with the jackknife's variance, 95% intervals "
            "of forests cover as little as 92%."
        )


def _first_order(results: EstimateTable) -> bool:
    return ESTIMATORS[results.variance].source == "moments"


def _shards_note(results: EstimateTable) -> str | None:
    design = results.design
    if not isinstance(design, ShardsDesign):
        return None
    parts = results.components
    G, low, high = design.n_shards, design.n // design.n_shards, design.sizes().max()
    each = f"{low:,}" if low == high else f"{low:,} or {high:,}"
    independent, linear = "", results.k * float(parts.zeta_1.mean())
    if linear > 0:
        ratio = max(1.0, float(parts.zeta_k.mean()) / linear)
        needed = round_up(jackknife_learners(design.n, ratio))
        independent = (
            f" With independent subsamples, about {needed} learners would estimate it "
            f"within {TOL:.0%}."
        )
    return (
        f"The std err is the spread of the ensembles of {G} disjoint shards of {each} "
        f"{results.info.units}. It has {G - 1} degrees of freedom, so its relative "
        f"error is {np.sqrt(0.5 / (G - 1)):.0%} for any B; its monte carlo part falls "
        f"as B grows.{independent}"
    )


def _pooled_note(estimates: Estimates) -> str:
    """Report which part of the sampling variance is pooled."""
    ends = (np.min(estimates.pooled_share), np.max(estimates.pooled_share))
    share = " to ".join(dict.fromkeys(f"{end:.0%}" for end in ends))
    return (
        f"So few trees say little about a single prediction: {share} of the sampling "
        "variance is pooled, that is, derived from what all predictions of the forest "
        "have in common, and the rest is the jackknife of the prediction itself. More "
        "trees reduce this share."
    )


def _variance_problems(results: EstimateTable) -> Iterator[str]:
    """Report variances that are negative, bounded or out of range."""
    parts, estimates, m = results.components, results.estimates, len(results.labels)
    negative = int((parts.sampling < 0).sum())
    if estimates.expected is not None:
        yield _pooled_note(estimates)
    elif negative and parts.df is None:
        yield (
            f"The raw sampling variance is negative for {negative} of {m} estimates; "
            "the std err uses its posterior mean given that it is positive. Grow more "
            "learners."
        )
    bounded = int(estimates.bounded.sum())
    largest = "the largest that the spread of single learners allows"
    whose = f"the std err of {bounded} of {m} estimates is"
    if bounded and results.tolerance.excess(estimates) <= 1:  # B is large enough
        yield f"{whose.capitalize()} {largest}."
    elif bounded:
        yield (
            f"B = {results.B:,} is too small: {whose} only {largest}. Grow "
            f"{many_more(results.B)}; the summary then has a recommended number."
        )
    exact = (parts.total != 0) | (estimates.scaled.total == 0)
    if not (np.isfinite(parts.total) & exact).all():
        yield (
            "Some variances are beyond the range of floating point, and are shown as "
            "inf or 0; all other numbers are correct."
        )


def many_more(B: int) -> str:
    """Recommend a number of learners if there are too few for a forecast."""
    return "some hundreds of learners" if B < SOME_HUNDREDS else "several times as many"


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
        f"k = {results.k:,} exceeds half of the {n:,} {results.info.units}: in "
        "simulations with trees, this variance estimator, which includes the first "
        f"order only, was {measured}. variance='hoeffding' includes higher "
        f"orders{needs}."
    )


def _row_notes(results: EstimateTable) -> Iterator[str]:
    """Report rows that were dropped, weighted, not scored or not predicted."""
    count = results.info.n_dropped
    if count:
        rows = "row" if count == 1 else "rows"
        yield f"{count:,} {rows} with missing values dropped."
    if results.info.weights is not None:
        yield (
            "Weights are sampling weights: they multiply the loss of their row in "
            "every learner, and averages over rows and OOB scores are weighted. "
            "Standard errors count rows, not weights; the typical row and the "
            "quantiles of effects are unweighted."
        )
    if not isinstance(results, EnsembleResults):
        return
    scores, predictor, nobs = results.scores, results.predictor, results.nobs
    if scores is not None and scores.n_scored != nobs:
        why = "were not scored" if nobs > OOB_ROWS else "were in every subsample"
        yield (
            f"Out-of-bag scores rest on {scores.n_scored:,} of {nobs:,} observations; "
            f"the others {why}."
            if scores.n_scored
            else f"There are no out-of-bag scores: all {nobs:,} observations {why}."
        )
    if predictor is not None and predictor.n_kept != results.B:
        yield (
            "The learners were not kept, so get_prediction is not available, and "
            "averages over rows refit them; keep_learners=True keeps them."
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


def _full_notes(results: EstimateTable) -> Iterator[str]:
    """Explain how the variance was estimated, and the tests of influences."""
    design, units = results.design, results.info.units
    if not ESTIMATORS[results.variance].nonnegative and not design.complete:
        yield (
            "The Variance table is raw. The square of std err is the monte carlo part "
            "plus a positive version of the sampling part (its posterior mean); MC "
            "share is the monte carlo share of it."
        )
    orders = results.estimates.scaled.orders
    if orders is not None:
        yield (
            f"{orders_text(orders)}, because the jackknife counts variance that is due "
            f"to pairs and larger sets of {units} at least twice."
        )
    count, what = f"{design.n:,} {units}", "influence"
    if isinstance(design, ShardsDesign):
        units, count, what = "shards", f"{design.n_shards} shards", "means"
    if enough_units(results):
        values = "means" if what == "means" else "influence values"
        yield f"Influence: normality tests of the {values} of the {count}."
    else:
        yield f"Too few {units} for normality tests of their {what}."


def orders_text(orders: HigherOrders) -> str:
    """Describe the correction for variance beyond the first order."""
    return (
        "The sampling variance is the jackknife's over 1 + rho, rho = "
        f"{orders.rho:.2f} (standard error {orders.error:.2f})"
    )


def enough_units(results: EstimateTable) -> bool:
    """Whether there are enough units for tests of their influence."""
    return len(influence_labels(results.design, results.units)) >= MIN_OBSERVATIONS
