"""Notes of a summary about what its intervals aim at."""

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import Aim
from vstatkit.results.sections import has_bias, number_text


def target_note(results: EnsembleResults, alpha: float) -> str:
    """Say what intervals cover."""
    info = results.info
    if info.aim is not None:
        return _aim_note(results, info.aim, alpha)
    learners = info.formula is not None or info.typical is not None
    if not learners:
        target = "the expected value of the kernel on"
        tail = "."
    else:
        target = "the mean of a base learner fitted to"
        tail = (
            "; they are not centred at the full-sample estimate."
            if info.coefficients
            else ", which is what an ensemble estimates; they are not centred at "
            f"E[y|x]{_truth_text(results)}."
        )
    whole = info.coefficients and results.k >= results.design.n
    if results.null is not None or (learners and whole):
        tail = "."
    return (
        f"The intervals cover, at {1 - alpha:.4g}, {target} k = {results.k:,} "
        f"{info.units}{tail}"
    )


def _truth_text(results: EnsembleResults) -> str:
    """Name what aims at E[y|x], where there is such a learner."""
    aimable = results.info.kernel in ("forest", "tree") and results.support is None
    return ", at which target='truth' aims" if aimable else ""


def _aim_note(results: EnsembleResults, aim: Aim, alpha: float) -> str:
    on = f"{aim.learner}, fitted to k = {results.k:,} {results.info.units}"
    if not aim.truth:
        return (
            f"The intervals cover, at {1 - alpha:.4g}, the mean of a base learner, {on}"
            "; its bias is reduced, but they are not centred at E[y|x]."
        )
    if aim.mix is not None:
        return (
            f"The intervals aim at E[y|x], at {1 - alpha:.4g}. The estimates are means "
            f"of a mix of learners: {aim.mix}. The standard errors are those of "
            f"learners with less bias, each {on}: that leaves room for a bias of the "
            "estimates, but not for a large one."
        )
    return (
        f"The intervals aim at E[y|x], at {1 - alpha:.4g}. They hold the sampling and "
        f"Monte Carlo error of a mean of learners, each {on}. What they leave out is "
        "the bias of such a learner."
    )


def choice_note(results: EnsembleResults) -> str | None:
    """Say how learners were chosen, if they were."""
    aim = results.info.aim
    if aim is None or not aim.truth:
        return None
    errors = ", ".join(f"{name} {number_text(e)}" for name, e in aim.errors.items())
    taken = "Taken was"
    if aim.mix is not None:
        taken = "The mix has a small error and is smooth; standard errors come from"
    return (
        f"Learners were chosen by out-of-bag errors of pilot ensembles: {errors} "
        f"(of stages, the least of each kind). {taken} the least biased learner whose "
        "error is within two standard errors of the best."
    )


def bias_note(results: EnsembleResults) -> str | None:
    """Explain the table of biases, if there is one."""
    if not has_bias(results):
        return None
    return (
        "Bias left: out-of-bag predictions less responses, smoothed; rather too small. "
        "Where share, bias over std err, is well above 0.5 the intervals cover E[y|x] "
        "less often than they say."
    )
