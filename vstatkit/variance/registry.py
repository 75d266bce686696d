"""The variance estimators by name: choose one, and apply it."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.estimator import (
    SumEstimator,
    VarianceComponents,
    VarianceEstimator,
)
from vstatkit.variance.group_estimators import (
    IM,
    LITTLE_BAGS,
    MATCHED,
    SHARDS,
    GroupEstimator,
    Groups,
)
from vstatkit.variance.hoeffding import HigherOrders, measure_orders, spread_columns
from vstatkit.variance.moment_estimators import (
    BM,
    CORRECTED_U,
    CORRECTED_V,
    CORRECTED_V_SIMPLE,
    HOEFFDING,
    IJ,
    IJ_U,
    JACKKNIFE,
    MomentEstimator,
)
from vstatkit.variance.moments import EnsembleMoments, EnsembleSums

LEAST_ABSENT = 4
LEAST_ABSENT_SHARE = 0.1
"""Least number, and share, of units left out for presence to say enough."""

ESTIMATORS: dict[str, VarianceEstimator] = {}
"""Estimators by name."""

GROUPED_DESIGNS: dict[str, str] = {}
"""The estimator made for a design with groups."""


def register_variance(estimator: VarianceEstimator) -> None:
    """Make a variance estimator known by its name.

    Parameters
    ----------
    estimator : VarianceEstimator
        From then on `variance=estimator.name` means it, everywhere. One that names
        a `design` becomes the default of that design, unless it has one.
    """
    if not isinstance(estimator, VarianceEstimator):
        raise TypeError(
            "`estimator` must be a VarianceEstimator of vstatkit.variance.estimator; "
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


for _estimator in (
    *(IM, BM, IJ, IJ_U, JACKKNIFE, HOEFFDING),
    *(CORRECTED_V, CORRECTED_V_SIMPLE, CORRECTED_U, LITTLE_BAGS, MATCHED, SHARDS),
):
    register_variance(_estimator)


ROBUST = re.compile(r"HC[0-4]|HAC|cluster|robust|sandwich|nonrobust", re.IGNORECASE)
"""Covariances of regressions, by statsmodels' and R's names."""


def meant_estimator(method: str, known: Sequence[str]) -> str:
    """Suggest the estimator that was probably meant, or say what is not needed.

    Examples
    --------
    >>> meant_estimator("jacknife", ["jackknife", "ij"])
    "; did you mean 'jackknife'?"
    """
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
    """Tell whether a name, possibly unknown, means an estimator of groups."""
    return method in ESTIMATORS and ESTIMATORS[method].source == "groups"


def least_absent(n: int) -> float:
    """Units that a subsample must leave out, on average, for presence to say enough.

    Examples
    --------
    >>> least_absent(10), least_absent(100)
    (4, 10.0)
    """
    return max(LEAST_ABSENT, LEAST_ABSENT_SHARE * n)


def largest_k(n: int, *, replace: bool = True) -> int:
    """Largest subsample that leaves out enough units.

    With replacement it is n at least. Without it the share that is left out is the
    same, and at least one unit.

    Examples
    --------
    >>> largest_k(100), largest_k(1000), largest_k(1000, replace=False)
    (229, 2301, 900)
    """
    if not replace:
        return max(1, n - max(1, int(np.ceil(LEAST_ABSENT_SHARE * n))))
    if n < 2:
        return n
    return max(n, int(np.log(LEAST_ABSENT_SHARE) / np.log1p(-1 / n)))


def large_k_problem(method: str, k: int, n: int, *, replace: bool) -> str:
    """Say why subsamples that hold nearly every unit have no standard errors.

    Empty where they have: with fewer draws, or by estimators that do not see presence.
    Subsamples of all units without replacement are another matter: they are all alike.
    """
    known = ESTIMATORS.get(method)
    presence = method == "auto" or (known is not None and known.source == "presence")
    alike = not replace and k >= n
    if not presence or alike or k <= largest_k(n, replace=replace):
        return ""
    way = "with" if replace else "without"
    problem = (
        f"there are no reliable standard errors for k = {k:,} draws {way} replacement "
        f"from {n:,} units: nearly every subsample holds nearly every unit, so nothing "
        "shows what an estimate would be without one. Use a smaller `k` "
        f"(`max_samples`), of at most {largest_k(n, replace=replace):,}."
    )
    return f"{problem} {_COMPUTED[replace]}"


_COMPUTED = {
    True: "variance='corrected_v' does compute a number, but for trees it has been "
    "measured to be 70 to 77% too low at k = 4 n.",
    False: "variance='corrected_u' does compute a number, but for trees it has been "
    "measured to be 1.7 to 2.6 times the true variance at k = 0.95 n.",
}
"""What the estimators do that compute a number for any k, by `replace`."""


def large_k_warning(method: str, design: SubsampleDesign, kind: KernelKind) -> str:
    """Say what is wrong with estimators by counts of large k; empty if nothing is."""
    counts = ESTIMATORS[method].source == "moments" and kind != KernelKind.SMOOTH
    if not counts or design.complete or (not design.replace and design.k >= design.n):
        return ""
    most = largest_k(design.n, replace=design.replace)
    if design.k <= most:
        return ""
    if design.replace:
        wrong, measured = (
            "low",
            ("70 to 77% too low at k = 4 n, where intervals at 95% covered 60 to 66%"),
        )
    elif ESTIMATORS[method].inflated:
        wrong, measured = "high", "1.7 to 2.6 times the true variance at k = 0.95 n"
    else:
        wrong, measured = "low", "93 to 95% too low at k = 0.85 n"
    return (
        f"variance={method!r} is too {wrong} for k = {design.k:,} draws from "
        f"{design.n:,} units: for trees it has been measured to be {measured}. Use `k` "
        f"(`max_samples`) of at most {most:,} and variance='auto'."
    )


def resolve_method(
    method: str,
    *,
    replace: bool,
    design: str,
    k: int,
    n: int,
    complete: bool = False,
    grouped: bool = False,
    n_absent: float = 0.0,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> str:
    """Name the estimator meant, or say why it does not apply.

    Parameters
    ----------
    method : str
        A key of `ESTIMATORS`; "auto": what holds for the kernel, the design and k;
        or "corrected": the paper's estimator that fits the sampling, or the one
        made for a design with groups.
    replace : bool
        Sampling with replacement.
    design : str
        Name of the subsample design; "given" may carry any groups.
    k, n : int
        Subsample size and number of units.
    complete : bool
        Whether all subsamples were evaluated.
    grouped : bool
        Whether learners were drawn in groups, so that they depend on each other.
    n_absent : float
        Units that a subsample leaves out, on average.
    kind : KernelKind
        How the kernel depends on its observations.
    """
    alone = not complete and not grouped and design not in GROUPED_DESIGNS
    if kind != KernelKind.SMOOTH and alone:
        problem = large_k_problem(method, k, n, replace=replace)
        if problem:
            raise ValueError(problem)
    if method == "auto":
        beyond = n_absent >= least_absent(n) and kind != KernelKind.SMOOTH
        method = "hoeffding" if beyond and alone else "corrected"
    if method == "corrected":
        plain = "corrected_v" if replace else "corrected_u"
        method = GROUPED_DESIGNS.get(design, plain)
    if method not in ESTIMATORS:
        known = ["auto", "corrected", *ESTIMATORS]
        raise ValueError(
            f"`variance` must be one of {', '.join(map(repr, known))}; got "
            f"{method!r}{meant_estimator(str(method), known)}"
        )
    reason = _inapplicable(
        ESTIMATORS[method],
        replace=replace,
        design=design,
        k=k,
        n=n,
        complete=complete,
        grouped=grouped,
    )
    if reason is not None:
        raise ValueError(reason)
    return method


def _inapplicable(
    estimator: VarianceEstimator,
    *,
    replace: bool,
    design: str,
    k: int,
    n: int,
    complete: bool,
    grouped: bool,
) -> str | None:
    """Explain why an estimator does not apply to a design; None if it does."""
    method = estimator.name
    if estimator.replace is not None and estimator.replace != replace:
        fitting = "corrected_v" if replace else "corrected_u"
        way = "with" if estimator.replace else "without"
        return (
            f"`variance={method!r}` assumes sampling {way} replacement; this design "
            f"has `replace={replace}`. Use {fitting!r}."
        )
    if estimator.design is not None and design not in (estimator.design, "given"):
        return (
            f"`variance={method!r}` needs `design={estimator.design!r}`; "
            f"this design is {design!r}. Refit with that design, or use 'corrected'."
        )
    if grouped and estimator.source != "groups":
        return _not_for_groups(method, design)
    if estimator.inflated and not replace and k >= n:
        return (
            f"`variance={method!r}` needs k < n without replacement, where subsamples "
            f"differ; got k = n = {n}. Use a smaller `k`, or `replace=True`."
        )
    if complete and estimator.source == "groups":
        return f"`variance={method!r}` does not apply to `B='complete'`."
    return None


def _not_for_groups(method: str, design: str) -> str:
    """Say which estimator fits learners that were drawn in groups."""
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


def resolved(
    name: str, design: SubsampleDesign, kind: KernelKind = KernelKind.UNKNOWN
) -> str:
    """Name the variance estimator meant for a design and a kind of kernel."""
    return resolve_method(
        name,
        replace=design.replace,
        design=design.name,
        k=design.k,
        n=design.n,
        complete=design.complete,
        grouped=design.has_groups,
        n_absent=design.n_absent,
        kind=kind,
    )


def estimate_components(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> VarianceComponents:
    """Estimate the components of an ensemble.

    Parameters
    ----------
    method : str
        Name of the estimator.
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Kernel values.
    orders : HigherOrders, optional
        Beyond the first order, for the estimators that use it; by default measured
        on the values.
    """
    orders = known_orders(method, design, values, orders)
    return ESTIMATORS[method].components(design, values, orders)


def estimate_covariance(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None = None,
) -> tuple[Floats, Floats]:
    """Estimate the sampling and the Monte Carlo covariance, each (m, m).

    Nothing is repaired: with few learners the sampling part may be indefinite.
    """
    orders = known_orders(method, design, values, orders)
    return ESTIMATORS[method].covariance(design, values, orders)


def known_orders(
    method: str,
    design: SubsampleDesign,
    values: Floats,
    orders: HigherOrders | None,
    kind: KernelKind = KernelKind.UNKNOWN,
) -> HigherOrders | None:
    """Find what an estimator has to know beyond the first order.

    Measured on the values themselves where it is not given; None for estimators
    that do not use it.
    """
    if not ESTIMATORS[method].beyond:
        return None
    if orders is not None:
        return orders
    columns = spread_columns(values.shape[1])
    return measure_orders(design, len(values), lambda L: values[:L, columns], kind)


def components_from_sums(
    method: str,
    design: SubsampleDesign,
    sums: EnsembleSums,
    orders: HigherOrders | None,
) -> VarianceComponents:
    """Estimate the components from sums over learners.

    `sums` are taken with indicators for the estimators that see presence.
    """
    estimator = ESTIMATORS[method]
    if isinstance(estimator, SumEstimator):
        return estimator.from_sums(design, sums, orders)
    raise ValueError(f"{method!r} is not computed from sums over learners.")


def moment_components(
    method: str, moments: EnsembleMoments, *, replace: bool
) -> VarianceComponents:
    """Estimate the components from moments, by a moment-based estimator."""
    return _by_moments(method).from_moments(moments, replace=replace)


def moment_sampling(method: str, moments: EnsembleMoments, *, replace: bool) -> Floats:
    """Estimate the sampling variance (m,), or covariance of joint moments."""
    return _by_moments(method).sampling(moments, replace=replace)


def _by_moments(method: str) -> MomentEstimator:
    estimator = ESTIMATORS[method]
    if isinstance(estimator, MomentEstimator):
        return estimator
    raise ValueError(f"{method!r} is not computed from moments.")


def group_components(
    method: str, values: Floats, groups: Ints, *, k: int, n: int
) -> VarianceComponents:
    """Estimate the components from groups of learners of unknown origin."""
    return _by_groups(method).from_groups(Groups(values, groups, k, n))


def learner_groups(method: str, design: SubsampleDesign, B: int) -> Ints:
    """Return the groups of the learners, checked for the estimator."""
    return _by_groups(method).labels(design, B)


def _by_groups(method: str) -> GroupEstimator:
    estimator = ESTIMATORS[method]
    if isinstance(estimator, GroupEstimator):
        return estimator
    raise ValueError(f"{method!r} does not compare groups of learners.")
