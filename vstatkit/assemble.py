"""Assemble the stages of a fit from arguments."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import DataLike, Floats, Ints, KernelLike
from vstatkit._validation import (
    check_ensemble,
    check_options,
    check_units,
    collapse_clusters,
    subsample_size,
)
from vstatkit.classical import classical_kernel
from vstatkit.ensemble.effects import Settings, effect_frame, effect_settings
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.prediction import Predictor, output_labels
from vstatkit.ensemble.scores import Scores, score
from vstatkit.exceptions import (
    ConstantResponseWarning,
    FormulaError,
    VstatkitWarning,
)
from vstatkit.formula.frames import as_frame
from vstatkit.formula.parse import Design
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.protocol import (
    AnyKernel,
    ArrayKernel,
    FunctionKernel,
    Predictive,
    estimator_kernel,
    linear_kernel,
    n_positional,
    name_values,
)
from vstatkit.kernels.tree_options import TREE_OPTIONS
from vstatkit.kernels.trees import tree_kernel
from vstatkit.results.info import EffectValues
from vstatkit.sampling.designs import (
    DESIGN_OPTIONS,
    CompleteDesign,
    GivenDesign,
    SubsampleDesign,
    TwoLevelDesign,
    make_design,
)
from vstatkit.variance.components import ESTIMATORS
from vstatkit.variance.orders import reference_rows

ALL_DESIGN_OPTIONS = tuple(name for names in DESIGN_OPTIONS.values() for name in names)

TITLES = {
    "forest": "Forest Results",
    "tree": "Bagged Tree Results",
    "ols": "Bagged OLS Results",
    "logit": "Bagged Logit Results",
}


@dataclass(frozen=True)
class Query:
    """Where the kernel is evaluated.

    Attributes
    ----------
    labels : Index
        Names of the values at the query points.
    rows : ndarray or None
        Query points, then the settings of the effects; None for kernels whose
        value is not a prediction.
    settings : Settings or None
        Settings of the effects.
    """

    labels: pd.Index
    rows: Floats | None
    settings: Settings | None


def is_function(kernel: KernelLike) -> bool:
    """Tell a user's function from a name or an estimator."""
    return not isinstance(kernel, str | BaseEstimator) and callable(kernel)


def warn_of_single_rows(k: Any) -> None:
    """Warn when k is the number one, which is easily meant as the fraction."""
    if isinstance(k, int | np.integer) and not isinstance(k, bool) and k == 1:
        warnings.warn(
            "k=1 is one observation a subsample; k=1.0, the fraction, is all of them.",
            VstatkitWarning,
            stacklevel=3,
        )


def keeps_intercept(kernel: KernelLike) -> bool:
    """Tell whether the kernel wants patsy's intercept column."""
    return is_function(kernel) or str(kernel) in ("ols", "logit")


def kernel_name(kernel: KernelLike) -> str:
    """Name the kernel for printed tables."""
    if isinstance(kernel, str):
        return kernel
    return getattr(kernel, "__name__", type(kernel).__name__)


def warn_if_constant(parsed: Design) -> None:
    """Warn when there is nothing to explain."""
    check_units(len(parsed.y))
    if np.all(parsed.y == parsed.y[0]):
        warnings.warn(
            f"the response {parsed.response!r} is constant, so every estimate is exact "
            "and every standard error zero.",
            ConstantResponseWarning,
            stacklevel=3,
        )


def build_kernel(
    kernel: KernelLike,
    parsed: Design,
    weights: Floats | None,
    options: dict[str, Any],
) -> AnyKernel:
    """Build the kernel that `kernel=` asks for, after checking its options."""
    X, y = parsed.X, parsed.y
    n_classes = None if parsed.classes is None else len(parsed.classes)
    known = TREE_OPTIONS if kernel in ("forest", "tree") else ()
    check_options(options, known, f"kernel {kernel_name(kernel)!r}")
    if not isinstance(kernel, str) and np.isnan(X).any() and is_function(kernel):
        raise ValueError("`missing='pass'` is not for functions as kernels.")
    if isinstance(kernel, str):
        if kernel in ("forest", "tree"):
            return tree_kernel(
                kernel, X, y, n_classes=n_classes, weights=weights, options=options
            )
        if kernel in ("ols", "logit"):
            if np.isnan(X).any():
                raise ValueError(
                    f"kernel={kernel!r} does not take missing values; use "
                    "missing='drop'."
                )
            return linear_kernel(kernel, X, y, classes=parsed.classes, weights=weights)
        raise ValueError(
            "`kernel` must be 'forest', 'tree', 'ols', 'logit', a scikit-learn "
            f"estimator or a function; got {kernel!r}."
        )
    if isinstance(kernel, type):
        raise TypeError(
            f"`kernel` must be an estimator, not its class; write {kernel.__name__}()."
        )
    if isinstance(kernel, BaseEstimator):
        return estimator_kernel(kernel, X, y, n_classes=n_classes, weights=weights)
    if not callable(kernel):
        raise TypeError(
            "`kernel` must be a name, a scikit-learn estimator or a function; got "
            f"{type(kernel).__name__}."
        )
    if weights is not None:
        raise ValueError("`weights` are not for functions as kernels.")
    if n_positional(kernel) == 1:
        return FunctionKernel(kernel, (parsed.data,))
    response = (
        y if parsed.classes is None else np.asarray(parsed.classes)[y.astype(int)]
    )
    return FunctionKernel(kernel, (response, pd.DataFrame(X, columns=parsed.names)))


def unit_codes(
    clusters: pd.Series | None, index: pd.Index
) -> tuple[Ints | None, pd.Index]:
    """Code clusters; without them every observation is its own unit."""
    if clusters is None:
        return None, index
    codes, levels = pd.factorize(clusters, sort=True)
    check_units(len(levels), "clusters")
    return codes.astype(np.int64), pd.Index(levels)


def build_design(
    name: str,
    n: int,
    k: int | float | None,
    B: int | Literal["auto", "complete"],
    *,
    replace: bool,
    seed: int,
    options: dict[str, Any],
) -> tuple[SubsampleDesign, int | Literal["auto", "complete"]]:
    """Build the design, and settle B where the design's options imply it."""
    check_options(options, DESIGN_OPTIONS.get(name, ()), f"design {name!r}")
    for option, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"`{option}` must be a whole number; got {value!r}.")
    halves = name == "matched" or (name == "little-bags" and not replace)
    size = subsample_size(k, n, at_most=n // 2 if halves else None)
    if B == "complete":
        if name != "iid":
            raise ValueError(
                f"`B='complete'` takes every subsample, so design={name!r} does not "
                "apply. Leave `design` out."
            )
        return CompleteDesign(n, size, replace, seed), B
    options = {option: int(value) for option, value in options.items()}
    n_out = options.pop("n_out", None)
    design = make_design(name, n, size, replace=replace, seed=seed, **options)
    if n_out is not None and isinstance(design, TwoLevelDesign):
        implied = n_out * design.n_in
        if isinstance(B, int) and implied != B:
            raise ValueError(
                f"`B` must be n_out * n_in = {implied}; got {B}. Leave `B` out."
            )
        B = implied
    if isinstance(B, int):
        design.sized(B)
    return design, B


def build_query(kernel: AnyKernel, parsed: Design, at: DataLike | None) -> Query:
    """Code the query points, and the settings of the effects after them."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        if at is not None:
            raise ValueError(
                "`at` is for kernels that predict; the estimates of this kernel are "
                "coefficients or statistics. Use get_prediction(at) on the results."
            )
        return Query(pd.Index(parsed.names), None, None)
    points = parsed.coding.typical(parsed.frame) if at is None else as_frame(at)
    if at is None and not parsed.coding.usable(parsed.coding.raw_matrix(points)):
        raise FormulaError(
            "the formula is not finite at the typical row (medians, most frequent "
            f"levels): {points.iloc[0].to_dict()}. Give query points as `at`."
        )
    rows = parsed.coding.matrix(points)
    labels = output_labels(points.index, parsed.classes)
    settings = effect_settings(parsed.coding, parsed.frame)
    if settings is not None:
        rows = np.concatenate([rows, settings.start, settings.end])
    return Query(labels, rows, settings)


def build_reference(kernel: AnyKernel, parsed: Design, seed: int) -> Floats | None:
    """Draw the rows on which learners are compared beyond the first order."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return reference_rows(parsed.X, seed, kernel.n_outputs)


def probe(task: Task, kernel: FunctionKernel) -> tuple[Task, Query]:
    """Call the function once, to learn the names and number of its values."""
    first = evaluate(changed(task, kernel=kernel, keep=True), 0, 1, progress=False)
    names, _ = name_values(first.learners[0])
    known = changed(kernel, names=tuple(names))
    return changed(task, kernel=known), Query(pd.Index(names), None, None)


def statistic_task(
    h: str | Callable[..., Any],
    table: Any,
    design: SubsampleDesign,
    members: Ints | None,
) -> tuple[Task, pd.Index]:
    """Build the task of a statistic, and the labels of its values."""
    if isinstance(h, str):
        named = ArrayKernel(*classical_kernel(h, table, design.k))
        return Task(named, design, None, members, keep=False), pd.Index([h])
    if not callable(h):
        raise TypeError(
            f"`h` must be a function or the name of a kernel; got {type(h).__name__}."
        )
    kernel = FunctionKernel(h, (table,))
    task, query = probe(Task(kernel, design, None, members, keep=False), kernel)
    if list(query.labels) == ["statistic"]:
        return task, pd.Index([kernel_name(h)])
    return task, query.labels


def effect_values(
    query: Query, evaluation: Evaluation, classes: tuple[Any, ...] | None
) -> EffectValues | None:
    """Take the differences behind the effects out of the values."""
    if query.settings is None:
        return None
    moves = evaluation.values[:, len(query.labels) :]
    frame = effect_frame(query.settings, classes)
    settings = query.settings
    return EffectValues(moves, frame, settings.left_out, settings.n_beyond)


def build_predictor(
    kernel: AnyKernel, evaluation: Evaluation, parsed: Design, n_jobs: int | None
) -> Predictor | None:
    """Keep what predicts new data, where the kernel can."""
    if not isinstance(kernel, Predictive):
        return None
    return Predictor(kernel, evaluation.learners, parsed.coding, parsed.classes, n_jobs)


def out_of_bag_scores(
    kernel: AnyKernel, evaluation: Evaluation, parsed: Design
) -> Scores | None:
    """Score the out-of-bag predictions, where the kernel predicts."""
    if not isinstance(kernel, Predictive) or evaluation.oob is None:
        return None
    return score(parsed.y, evaluation.oob.mean, kernel.n_classes)


def response_name(parsed: Design) -> str:
    """Name what is estimated: the response, or the probability of its class."""
    if parsed.classes is None or len(parsed.classes) != 2:
        return parsed.response
    return f"P({parsed.response} = {parsed.classes[1]})"


def read_observations(data: Any) -> Any:
    """Read the data of a statistic: a frame, a Series, or an array of rows."""
    if isinstance(data, pd.DataFrame | pd.Series):
        table: Any = data
    elif isinstance(data, Mapping) or hasattr(data, "get_columns"):
        table = as_frame(data)
    else:
        table = np.asarray(data)
        if table.ndim not in (1, 2):
            raise ValueError(
                "`data` must have observations in rows: one or two dimensions; got "
                f"{table.ndim}."
            )
    frame = isinstance(table, pd.DataFrame)
    array = np.asarray(table.select_dtypes("number") if frame else table)
    if np.issubdtype(array.dtype, np.number) and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(
            f"`data` must be finite; row {row} is missing or infinite. Drop such rows."
        )
    return table


def given_ensemble(
    counts: Any, values: Any, method: str, replace: bool, groups: Any
) -> tuple[GivenDesign, Floats]:
    """Check an ensemble made elsewhere; `groups` are of learners or of rows."""
    table, h, k = check_ensemble(counts, values)
    labels = None
    if groups is not None:
        compares_groups = method in ESTIMATORS and ESTIMATORS[method].source == "groups"
        if compares_groups or len(groups) == len(h) != table.shape[1]:
            labels = np.asarray(pd.factorize(np.asarray(groups))[0])
        else:
            table, h, k = check_ensemble(collapse_clusters(table, groups), h)
    if labels is not None and labels.size != len(h):
        raise ValueError(
            f"`groups` must have one value for each of the {len(h)} learners; "
            f"got {labels.size}."
        )
    if not replace and table.max() > 1:
        raise ValueError(
            "`counts` above one mean sampling with replacement. Pass `replace=True`."
        )
    n = table.shape[1]
    design = GivenDesign(n=n, k=k, replace=replace, seed=0, table=table, labels=labels)
    return design, h


def sized_index(names: Any, length: int, argument: str) -> pd.Index:
    """Turn names into an index of the length they must have."""
    index = names if isinstance(names, pd.Index) else pd.Index(list(names))
    if len(index) != length:
        raise ValueError(f"`{argument}` must have {length} names; got {len(index)}.")
    return index
