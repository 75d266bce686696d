"""Notes of a summary about what its intervals aim at."""

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import Aim
from vstatkit.results.sections import has_bias, number_text


def target_note(results: EnsembleResults, alpha: float) -> str:
    """Say what intervals cover."""
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
    if results.null is not None:
        return f"{note}."
    if info.coefficients:
        single = (
            "; one fit to all of them has another."
            if results.k < results.design.n
            else "."
        )
        return note + single
    return f"{note}. They do not cover E[y|x]{_truth_text(results)}."


def _truth_text(results: EnsembleResults) -> str:
    """Name the option that targets E[y|x], if there is one for the kernel."""
    available = results.info.kernel in ("forest", "tree") and results.support is None
    return "; use target='truth' for that" if available else ""


def _aim_note(results: EnsembleResults, aim: Aim, alpha: float) -> str:
    on = f"{aim.learner}, fitted to k = {results.k:,} {results.info.units}"
    if not aim.truth:
        return (
            f"The intervals cover, at {1 - alpha:.4g}, the expectation of this "
            f"ensemble, each learner {on}, over data sets of this size. The bias is "
            "reduced, but the intervals do not cover E[y|x]."
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
        "error is within two standard errors, and 25%, of the best."
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
