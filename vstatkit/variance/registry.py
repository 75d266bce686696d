"""The variance estimators by name: choose one, and apply it."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from vstatkit._typing import Floats
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.estimators import (
    BUILT_IN,
    MomentEstimator,
    PresenceEstimator,
    VarianceComponents,
    VarianceEstimator,
)
from vstatkit.variance.higher_orders import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.learner_pairs import LearnerPairs

LEAST_ABSENT = 4
# Least number, and share, of absent units for estimators that use presence.
LEAST_ABSENT_SHARE = 0.1
ESTIMATORS: dict[str, VarianceEstimator] = {}  # estimators by name
# The default estimator of every design with groups.
GROUPED_DESIGNS: dict[str, str] = {}


def register_variance(estimator: VarianceEstimator) -> None:
    """Register a variance estimator under its name.

    Parameters
    ----------
    estimator : VarianceEstimator
        `variance=estimator.name` then selects it. An estimator with a `design` becomes
        the default of that design, unless it has one.
    """
    if not isinstance(estimator, VarianceEstimator):
        raise TypeError(
            "`estimator` must be a VarianceEstimator of vstatkit.variance.estimators; "
            f"got {type(estimator).__name__}."
        )
    if estimator.name in (*ESTIMATORS, "auto", "corrected"):
        raise ValueError(
            f"there is a variance estimator {estimator.name!r} already; choose "
            "another name."
        )
    ESTIMATORS[estimator.name] = estimator
    if estimator.design is not None:
        GROUPED_DESIGNS.setdefault(estimator.design, estimator.name)


for _estimator in BUILT_IN:
    register_variance(_estimator)


# Covariances of regressions, by statsmodels' and R's names.
ROBUST = re.compile(r"HC[0-4]|HAC|cluster|robust|sandwich|nonrobust", re.IGNORECASE)


def suggest_estimator(method: str, known: Sequence[str]) -> str:
    """Suggest an estimator for an unknown name, as the end of a message."""
    close = get_close_matches(method.lower(), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if ROBUST.fullmatch(method):
        return (
            ". Every estimator here allows for unequal variances; for clusters, or "
            "blocks of time, use `groups`."
        )
    return ". 'auto' chooses one."


def compares_groups(method: str) -> bool:
    """Return whether a name, possibly unknown, is an estimator for groups."""
    return method in ESTIMATORS and ESTIMATORS[method].source == "groups"


def least_absent(n: int) -> float:
    """Return how many units subsamples must leave out, on average, to use presence."""
    return max(LEAST_ABSENT, LEAST_ABSENT_SHARE * n)


def largest_k(n: int, *, replace: bool = True) -> int:
    """Return the size of the largest subsamples that leave out enough units.

    It is at least n with replacement. Without replacement the absent share is the same,
    and at least one unit.
    """
    if not replace:
        return max(1, n - max(1, int(np.ceil(LEAST_ABSENT_SHARE * n))))
    if n < 2:
        return n
    return max(n, int(np.log(LEAST_ABSENT_SHARE) / np.log1p(-1 / n)))


def large_k_problem(method: str, k: int, n: int, *, replace: bool) -> str:
    """Explain why subsamples that hold nearly every unit have no standard errors.

    Empty if they have, with fewer draws or by estimators that do not use presence.
    Subsamples of all units without replacement are not covered: they are identical.
    """
    estimator = ESTIMATORS.get(method)
    presence = estimator is not None and estimator.source == "presence"
    identical = not replace and k >= n
    if not (presence or method == "auto") or identical:
        return ""
    if k <= largest_k(n, replace=replace):
        return ""
    way, corrected = ("with", "v") if replace else ("without", "u")
    return (
        f"there are no reliable standard errors for k = {k:,} draws {way} replacement "
        f"from {n:,} units: nearly every subsample holds nearly every unit, so nothing "
        "shows what an estimate would be without one. Use a smaller `k` "
        f"(`max_samples`), of at most {largest_k(n, replace=replace):,}. "
        f"variance='corrected_{corrected}' does compute a number, but for trees it has "
        f"been measured to be {_MEASURED[replace]}."
    )


# Accuracy of the corrected estimators, which compute a number for any k, by `replace`.
_MEASURED = {
    True: "70 to 77% too low at k = 4 n",
    False: "1.7 to 2.6 times the true variance at k = 0.95 n",
}


def large_k_warning(method: str, design: SubsampleDesign, kind: KernelKind) -> str:
    """Warn of estimators by counts for large k; empty if there is no problem."""
    counts = ESTIMATORS[method].source == "moments" and kind != KernelKind.SMOOTH
    if not counts or design.complete or (not design.replace and design.k >= design.n):
        return ""
    most = largest_k(design.n, replace=design.replace)
    if design.k <= most:
        return ""
    wrong, measured = "low", _MEASURED[design.replace]
    if design.replace:
        measured += ", where intervals at 95% covered 60 to 66%"
    elif ESTIMATORS[method].inflated:
        wrong = "high"
    else:
        measured = "93 to 95% too low at k = 0.85 n"
    return (
        f"variance={method!r} is too {wrong} for k = {design.k:,} draws from "
        f"{design.n:,} units: for trees it has been measured to be {measured}. Use `k` "
        f"(`max_samples`) of at most {most:,} and variance='auto'."
    )


def resolve_for_design(
    method: str, design: SubsampleDesign, kind: KernelKind = KernelKind.UNKNOWN
) -> str:
    """Return the name of the estimator to use, or raise an error if it is not valid.

    `method` is a key of `ESTIMATORS`; "auto": the choice for the kernel, the design and
    k; or "corrected": the paper's estimator that fits the sampling, or the one for a
    design with groups. A design that is "given" may have any groups.
    """
    n, replace = design.n, design.replace
    alone = not (design.complete or design.has_groups or design.name in GROUPED_DESIGNS)
    if kind != KernelKind.SMOOTH and alone:
        problem = large_k_problem(method, design.k, n, replace=replace)
        if problem:
            raise ValueError(problem)
    if method == "auto":
        beyond = design.n_absent >= least_absent(n) and kind != KernelKind.SMOOTH
        method = "hoeffding" if beyond and alone else "corrected"
    if method == "corrected":
        default = "corrected_v" if replace else "corrected_u"
        method = GROUPED_DESIGNS.get(design.name, default)
    if method not in ESTIMATORS:
        names = ["auto", "corrected", *ESTIMATORS]
        raise ValueError(
            f"`variance` must be one of {', '.join(map(repr, names))}; got "
            f"{method!r}{suggest_estimator(str(method), names)}"
        )
    problem = _find_problem(ESTIMATORS[method], design)
    if problem:
        raise ValueError(problem)
    return method


def _find_problem(estimator: VarianceEstimator, design: SubsampleDesign) -> str:
    """Explain why an estimator does not apply to a design; empty if it does."""
    method, replace = estimator.name, design.replace
    if estimator.replace is not None and estimator.replace != replace:
        alternative = "corrected_v" if replace else "corrected_u"
        way = "with" if estimator.replace else "without"
        return (
            f"`variance={method!r}` assumes sampling {way} replacement; this design "
            f"has `replace={replace}`. Use {alternative!r}."
        )
    if estimator.design is not None and design.name not in (estimator.design, "given"):
        return (
            f"`variance={method!r}` needs `design={estimator.design!r}`; this design "
            f"is {design.name!r}. Refit with that design, or use 'corrected'."
        )
    if design.has_groups and estimator.source != "groups":
        return _explain_groups(method, design.name)
    if estimator.inflated and not replace and design.k >= design.n:
        return (
            f"`variance={method!r}` needs k < n without replacement, where subsamples "
            f"differ; got k = n = {design.n}. Use a smaller `k`, or `replace=True`."
        )
    if design.complete and estimator.source == "groups":
        return f"`variance={method!r}` does not apply to `B='complete'`."
    return ""


def _explain_groups(method: str, design: str) -> str:
    """Name the estimators for learners that were drawn in groups."""
    assumes = (
        f"`variance={method!r}` assumes learners drawn independently of each other; "
        "here they come in groups, which would bias it."
    )
    if design in GROUPED_DESIGNS:
        return f"{assumes} Use {GROUPED_DESIGNS[design]!r}, or refit with design='iid'."
    names = ", ".join(map(repr, GROUPED_DESIGNS.values()))
    return (
        f"{assumes} Use the one of {names} that the groups were drawn for, or give "
        "one learner of each group, without `groups`."
    )


def estimate_components(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
    pairs: LearnerPairs | None = None,
) -> VarianceComponents:
    """Estimate the components from values of shape (B, m); see `known_orders`.

    With the weights of `pairs` this is faster, but concentration and skewness are None.
    """
    orders, estimator = known_orders(method, design, values, orders), ESTIMATORS[method]
    if pairs is not None and isinstance(estimator, PresenceEstimator):
        return estimator.from_pairs(design, pairs, values, orders)
    return estimator.components(design, values, orders)


def estimate_covariance(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> tuple[Floats, Floats]:
    """Estimate sampling and Monte Carlo covariance; the first may be indefinite."""
    orders = known_orders(method, design, values, orders)
    return ESTIMATORS[method].covariance(design, values, orders)


def known_orders(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None,
) -> HigherOrders | None:
    """Return the correction that an estimator uses, if any: given, or measured."""
    if not ESTIMATORS[method].beyond:
        return None
    if orders is not None:
        return orders
    columns, kind = spread_columns(values.shape[1]), KernelKind.UNKNOWN
    return measure_orders(design, len(values), lambda L: values[:L, columns], kind)


def moment_estimator(method: str) -> MomentEstimator:
    """Return the estimator of a name, which must be computed from moments."""
    estimator = ESTIMATORS[method]
    if isinstance(estimator, MomentEstimator):
        return estimator
    raise ValueError(f"{method!r} is not computed from moments.")
