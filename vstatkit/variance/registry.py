"""The variance estimators by name, and which of them applies."""

from vstatkit.kernels.kind import KernelKind
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.by_groups import IM, LITTLE_BAGS, MATCHED
from vstatkit.variance.by_moments import (
    BM,
    CORRECTED_U,
    CORRECTED_V,
    CORRECTED_V_SIMPLE,
    IJ,
    IJ_U,
)
from vstatkit.variance.by_presence import HOEFFDING, JACKKNIFE
from vstatkit.variance.by_shards import SHARDS
from vstatkit.variance.estimator import VarianceEstimator

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
    if method == "auto":
        beyond = n_absent >= least_absent(n) and kind != KernelKind.SMOOTH
        alone = not complete and not grouped and design not in GROUPED_DESIGNS
        method = "hoeffding" if beyond and alone else "corrected"
    if method == "corrected":
        plain = "corrected_v" if replace else "corrected_u"
        method = GROUPED_DESIGNS.get(design, plain)
    if method not in ESTIMATORS:
        names = ", ".join(map(repr, ["auto", "corrected", *ESTIMATORS]))
        raise ValueError(f"`variance` must be one of {names}; got {method!r}.")
    estimator = ESTIMATORS[method]
    if estimator.replace is not None and estimator.replace != replace:
        fitting = "corrected_v" if replace else "corrected_u"
        way = "with" if estimator.replace else "without"
        raise ValueError(
            f"`variance={method!r}` assumes sampling {way} replacement; this design "
            f"has `replace={replace}`. Use {fitting!r}."
        )
    if estimator.design is not None and design not in (estimator.design, "given"):
        raise ValueError(
            f"`variance={method!r}` needs `design={estimator.design!r}`; "
            f"this design is {design!r}. Refit with that design, or use 'corrected'."
        )
    if grouped and estimator.source != "groups":
        raise ValueError(_not_for_groups(method, design))
    if estimator.inflated and not replace and k >= n:
        raise ValueError(
            f"`variance={method!r}` needs k < n without replacement, where subsamples "
            f"differ; got k = n = {n}. Use a smaller `k`, or `replace=True`."
        )
    if complete and estimator.source == "groups":
        raise ValueError(f"`variance={method!r}` does not apply to `B='complete'`.")
    return method


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
        grouped=design.grouped,
        n_absent=design.n_absent,
        kind=kind,
    )
