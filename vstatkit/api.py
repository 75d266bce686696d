"""The public functions: check arguments, wire the stages; no arithmetic."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import Counts, DataLike, Floats, Ints, Seed
from vstatkit._validation import (
    check_ensemble,
    check_options,
    check_units,
    collapse_clusters,
    ensemble_size,
    observation_weights,
    split_options,
    subsample_size,
    take_column,
)
from vstatkit.adopt import adopt
from vstatkit.classical import classical_kernel
from vstatkit.effects import Settings, effect_frame, effect_settings
from vstatkit.ensemble import Evaluation, Task, evaluate
from vstatkit.exceptions import ConstantResponseWarning
from vstatkit.formula import Design, Missing, as_frame, caller_environment, parse
from vstatkit.growth import grow
from vstatkit.kernels import (
    TREE_OPTIONS,
    FunctionKernel,
    Kernel,
    Predictive,
    estimator_kernel,
    linear_kernel,
    n_positional,
    name_values,
    tree_kernel,
)
from vstatkit.moments import gram_is_cheaper, moments_by_gram
from vstatkit.prediction import Predictor, output_labels
from vstatkit.results import (
    EffectValues,
    EnsembleResults,
    Growth,
    ModelInfo,
    resolved,
)
from vstatkit.scores import Scores, score
from vstatkit.streams import resolve_seed
from vstatkit.subsample import (
    DESIGN_OPTIONS,
    CompleteDesign,
    GivenDesign,
    SubsampleDesign,
    TwoLevelDesign,
    make_design,
)
from vstatkit.variance import (
    ESTIMATORS,
    VarianceComponents,
    estimate_components,
    moment_components,
)

DesignName = Literal["iid", "balanced", "two-level", "little-bags", "matched"]
KernelLike = str | BaseEstimator | Callable[..., Any]

TOL = 0.1
"""Relative Monte Carlo error of the standard error that `B="auto"` aims at."""

MAX_B = 10_000
"""Learners at which `B="auto"` gives up."""


def fit(
    formula: str,
    data: DataLike,
    *,
    kernel: KernelLike = "forest",
    k: int | float | None = None,
    B: int | str = "auto",
    replace: bool = True,
    design: DesignName = "iid",
    variance: str = "corrected",
    at: DataLike | None = None,
    groups: Any = None,
    weights: Any = None,
    missing: Missing = "drop",
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    tol: float = TOL,
    max_B: int = MAX_B,
    eval_env: int | Literal["restricted"] = 0,
    **kernel_options: Any,
) -> EnsembleResults:
    """Fit an ensemble of base learners, with standard errors.

    Parameters
    ----------
    formula : str
        A patsy formula; `y ~ .` stands for all other columns. A numeric response
        is regression, a categorical one gives class probabilities.
    data : DataFrame, dict of columns, polars frame or Arrow table
        Observations in rows.
    kernel : str, scikit-learn estimator or callable
        "forest" (randomised trees), "tree", "ols", "logit"; any scikit-learn
        regressor or classifier; or a function of a subsample: of the data frame,
        or of (y, X) if it takes two arguments.
    k : int or float, optional
        Subsample size, or a fraction of n; `ceil(n**0.8)` by default.
    B : int, "auto" or "complete"
        Number of base learners. "auto" grows until the Monte Carlo error of the
        standard errors at the query points is below `tol`.
    replace : bool
        Subsample with replacement (a V-statistic) or without (a U-statistic).
    design : {"iid", "balanced", "two-level", "little-bags", "matched"}
        How subsamples are drawn. Its options (`block`; `n_out` and `n_in`;
        `group_size`) are given as keywords.
    variance : str
        Variance estimator; "corrected" is the one that fits the sampling.
    at : DataFrame or dict of columns, optional
        Query points; the typical row (medians, most frequent levels) by default.
    groups : str or array-like, optional
        Clusters, resampled whole; `k` counts clusters then.
    weights : str or array-like, optional
        Observation weights, handed to the learners.
    missing : {"drop", "raise", "pass"}
        What to do with missing values.
    rng : int, Generator or None
        Seed. The same seed gives the same numbers for any `n_jobs`.
    n_jobs : int, optional
        Workers, as joblib counts them.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over a second.
    tol, max_B
        When "auto" is content, and when it gives up.
    eval_env : int or "restricted"
        Where the formula finds names that are not columns: 0 is the caller, 1
        the caller's caller. "restricted" is for formulas of strangers: only
        columns, patsy's built-ins and numpy's elementwise functions evaluate.
    **kernel_options
        `max_features`, `min_samples_split`, `min_samples_leaf`, `max_depth` of
        the tree kernels, and the options of the design.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
    >>> res.params.round(1)
    typical    15.0
    Name: params, dtype: float64
    """
    restricted = eval_env == "restricted"
    environment = None if restricted else caller_environment(1 + int(eval_env))
    frame = as_frame(data)
    parsed = parse(
        formula,
        frame,
        environment=environment,
        intercept=_keeps_intercept(kernel),
        missing=missing,
    )
    _warn_if_constant(parsed)
    clusters = take_column("groups", groups, parsed.data, parsed.rows, len(frame))
    column = take_column("weights", weights, parsed.data, parsed.rows, len(frame))
    design_options, options = split_options(kernel_options, _ALL_DESIGN_OPTIONS)
    built = _build_kernel(kernel, parsed, observation_weights(column), options)
    members, units = _units(clusters, parsed)
    scheme, size = _build_design(
        design,
        len(units),
        k,
        ensemble_size(B),
        replace=replace,
        seed=resolve_seed(rng),
        options=design_options,
    )
    method = resolved(variance, scheme)
    query = _query(built, parsed, at)
    task = Task(built, scheme, query.rows, members, keep=isinstance(built, Predictive))
    if isinstance(built, FunctionKernel):
        task, query = _probe(task, built)
    scheme, evaluation = grow(
        task,
        size,
        method=method,
        n_query=len(query.labels),
        tol=tol,
        max_B=max_B,
        n_jobs=n_jobs,
        progress=progress,
    )
    info = ModelInfo(
        title=_TITLES.get(str(kernel), "Ensemble Results"),
        response=parsed.response,
        formula=formula,
        kernel=_kernel_name(kernel),
        nobs=len(parsed.y),
        n_dropped=parsed.n_dropped,
        units="observations" if members is None else "clusters",
        coefficients=query.rows is None,
        growth=Growth(tol, max_B) if size == "auto" else Growth(),
        typical=parsed.coding.typical(parsed.frame),
        ranges=parsed.coding.ranges(parsed.frame),
    )
    return EnsembleResults(
        design=scheme,
        values=evaluation.values[:, : len(query.labels)],
        labels=query.labels,
        variance=method,
        info=info,
        units=units,
        effect_values=_effect_values(query, evaluation, parsed.classes),
        predictor=_predictor(built, evaluation, parsed, n_jobs),
        scores=_scores(built, evaluation, parsed),
    )


def statistic(
    h: str | Callable[..., Any],
    data: Any,
    *,
    k: int | float,
    B: int | str = "auto",
    replace: bool = True,
    design: DesignName = "iid",
    variance: str = "corrected",
    groups: Any = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    tol: float = TOL,
    max_B: int = MAX_B,
    **design_options: Any,
) -> EnsembleResults:
    """Evaluate a V- or U-statistic of any kernel, with standard errors.

    Parameters
    ----------
    h : str or callable
        A function of a subsample that returns a number, an array, a Series or a
        dict; or "mean", "variance", "gini", "kendall", "moment3".
    data : array-like, Series or DataFrame
        Observations in rows; the function is given rows of it.
    k : int or float
        Subsample size (the degree of the kernel), or a fraction of n.
    B : int, "auto" or "complete"
        Number of subsamples; "complete" evaluates all there are.
    replace, design, variance, groups, rng, n_jobs, progress, tol, max_B
        See `fit`.
    **design_options
        `block`; `n_out` and `n_in`; `group_size`.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> import numpy as np, vstatkit as vs
    >>> x = np.array([1.0, 2.0, 4.0, 7.0])
    >>> u = vs.statistic("variance", x, k=2, B="complete", replace=False)
    >>> bool(np.isclose(u.params.item(), x.var(ddof=1)))
    True
    """
    table = data if isinstance(data, pd.DataFrame | pd.Series) else np.asarray(data)
    n = len(table)
    check_units(n)
    _check_observations(table)
    check_options(design_options, _ALL_DESIGN_OPTIONS, "`statistic`")
    clusters = take_column("groups", groups, pd.DataFrame(table), np.arange(n), n)
    index = (
        table.index
        if isinstance(table, pd.DataFrame | pd.Series)
        else (pd.RangeIndex(n))
    )
    members, units = _unit_codes(clusters, index)
    scheme, size = _build_design(
        design,
        len(units),
        k,
        ensemble_size(B),
        replace=replace,
        seed=resolve_seed(rng),
        options=design_options,
    )
    function = h
    if isinstance(h, str):
        function, table = classical_kernel(h, table, scheme.k)
    elif not callable(h):
        raise TypeError(
            f"`h` must be a function or the name of a kernel; got {type(h).__name__}."
        )
    method = resolved(variance, scheme)
    task, query = _probe(
        Task(FunctionKernel(function, (table,)), scheme, None, members, keep=False),
        FunctionKernel(function, (table,)),
    )
    scheme, evaluation = grow(
        task,
        size,
        method=method,
        n_query=None,
        tol=tol,
        max_B=max_B,
        n_jobs=n_jobs,
        progress=progress,
    )
    name = h if isinstance(h, str) else _kernel_name(h)
    labels = pd.Index([name]) if list(query.labels) == ["statistic"] else query.labels
    info = ModelInfo(
        title="V-statistic Results" if replace else "U-statistic Results",
        response=name,
        kernel=name,
        nobs=n,
        units="observations" if members is None else "clusters",
        coefficients=True,
        growth=Growth(tol, max_B) if size == "auto" else Growth(),
    )
    return EnsembleResults(
        design=scheme,
        values=evaluation.values,
        labels=labels,
        variance=method,
        info=info,
        units=units,
    )


def from_arrays(
    counts: Any,
    values: Any,
    *,
    replace: bool,
    variance: str = "corrected",
    groups: Any = None,
    labels: Any = None,
    units: Any = None,
    name: str = "ensemble",
) -> EnsembleResults:
    """Wrap an ensemble made elsewhere.

    Parameters
    ----------
    counts : array-like or sparse of shape (B, n)
        Times each observation occurs in each subsample.
    values : array-like of shape (B, m)
        Each learner's values.
    replace : bool
        Whether the subsamples were drawn with replacement.
    variance : str
        Variance estimator.
    groups : array-like, optional
        Group of every learner (length B), for "im", "little_bags" and "matched";
        otherwise cluster of every observation (length n).
    labels : sequence, optional
        Names of the m values.
    units : sequence, optional
        Names of the n observations.
    name : str
        What the summary calls the ensemble.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> import numpy as np, vstatkit as vs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=30)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), size=500)
    >>> res = vs.from_arrays(counts, counts @ x / 30, replace=True)
    >>> res.labels.to_list()
    ['h0']
    """
    design, h = _given_ensemble(counts, values, variance, replace, groups)
    names = [f"h{j}" for j in range(h.shape[1])] if labels is None else labels
    info = ModelInfo(
        title="Ensemble Results",
        response=name,
        kernel=name,
        nobs=design.n,
        coefficients=True,
    )
    return EnsembleResults(
        design=design,
        values=h,
        labels=_sized_index(names, h.shape[1], "labels"),
        variance=resolved(variance, design),
        info=info,
        units=pd.RangeIndex(design.n)
        if units is None
        else _sized_index(units, design.n, "units"),
    )


def from_sklearn(
    forest: BaseEstimator,
    X: Any,
    y: Any,
    at: Any,
    *,
    variance: str = "corrected",
    n_jobs: int | None = None,
) -> EnsembleResults:
    """Give a fitted scikit-learn forest or bagging ensemble standard errors.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* (with bootstrap=True) or Bagging*
        Fitted to (X, y); its subsamples are read from `estimators_samples_`.
    X : array-like of shape (n, p)
        Training data.
    y : array-like of shape (n,)
        Training response, for the out-of-bag scores.
    at : array-like of shape (q, p)
        Query points.
    variance : str
        Variance estimator.
    n_jobs : int, optional
        Workers of later predictions.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> X, y = data.drop(columns="y"), data["y"]
    >>> forest = RandomForestRegressor(200, max_samples=40, random_state=1).fit(X, y)
    >>> vs.from_sklearn(forest, X, y, X.iloc[:2]).variance
    'corrected_v'
    """
    adopted = adopt(forest, X, y)
    predictor = Predictor(
        adopted.kernel, adopted.learners, None, adopted.classes, n_jobs
    )
    rows, index = predictor.rows(at)
    results = from_arrays(
        adopted.counts,
        predictor.values(rows),
        replace=adopted.replace,
        variance=variance,
        labels=predictor.labels(index),
        units=X.index if isinstance(X, pd.DataFrame) else None,
        name=type(forest).__name__,
    )
    info = changed(
        results.info, title="Forest Results", response=adopted.name, coefficients=False
    )
    return changed(results, info=info, predictor=predictor, scores=adopted.scores())


def variance_components(
    counts: Any,
    values: Any,
    *,
    method: str = "corrected",
    replace: bool = True,
    groups: Any = None,
) -> VarianceComponents:
    """Estimate the variance components of any ensemble.

    Parameters
    ----------
    counts : array-like or sparse of shape (B, n)
        Times each observation occurs in each subsample.
    values : array-like of shape (B, m)
        Each learner's values.
    method : str
        "im", "bm", "ij", "ij_u", "jackknife", "corrected", "corrected_v",
        "corrected_v_simple", "corrected_u", "little_bags" or "matched".
    replace : bool
        Whether the subsamples were drawn with replacement.
    groups : array-like, optional
        Group of every learner (length B), for "im", "little_bags" and "matched";
        otherwise cluster of every observation (length n).

    Returns
    -------
    VarianceComponents

    Examples
    --------
    >>> import numpy as np, vstatkit as vs
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> parts = vs.variance_components(counts, counts @ np.arange(20.0))
    >>> parts.method
    'corrected_v'
    """
    design, h = _given_ensemble(counts, values, method, replace, groups)
    method = resolved(method, design)
    uses_moments = ESTIMATORS[method].source == "moments"
    if uses_moments and gram_is_cheaper(design.n, *h.shape):
        moments = moments_by_gram(design.table, h, size=design.k)
        return moment_components(method, moments, replace=replace)
    return estimate_components(method, design, h)


_ALL_DESIGN_OPTIONS = tuple(name for names in DESIGN_OPTIONS.values() for name in names)

_TITLES = {
    "forest": "Forest Results",
    "tree": "Bagged Tree Results",
    "ols": "Bagged OLS Results",
    "logit": "Bagged Logit Results",
}


@dataclass(frozen=True)
class _Query:
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


def _is_function(kernel: KernelLike) -> bool:
    return not isinstance(kernel, str | BaseEstimator) and callable(kernel)


def _keeps_intercept(kernel: KernelLike) -> bool:
    return _is_function(kernel) or str(kernel) in ("ols", "logit")


def _kernel_name(kernel: KernelLike) -> str:
    if isinstance(kernel, str):
        return kernel
    return getattr(kernel, "__name__", type(kernel).__name__)


def _warn_if_constant(parsed: Design) -> None:
    check_units(len(parsed.y))
    if np.all(parsed.y == parsed.y[0]):
        warnings.warn(
            f"the response {parsed.response!r} is constant, so every estimate is exact "
            "and every standard error zero.",
            ConstantResponseWarning,
            stacklevel=3,
        )


def _build_kernel(
    kernel: KernelLike, parsed: Design, weights: Floats | None, options: dict[str, Any]
) -> Kernel:
    X, y = parsed.X, parsed.y
    n_classes = None if parsed.classes is None else len(parsed.classes)
    known = TREE_OPTIONS if kernel in ("forest", "tree") else ()
    check_options(options, known, f"kernel {_kernel_name(kernel)!r}")
    if not isinstance(kernel, str) and np.isnan(X).any() and _is_function(kernel):
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


def _units(clusters: pd.Series | None, parsed: Design) -> tuple[Ints | None, pd.Index]:
    return _unit_codes(clusters, parsed.data.index)


def _unit_codes(
    clusters: pd.Series | None, index: pd.Index
) -> tuple[Ints | None, pd.Index]:
    """Code clusters; without them every observation is its own unit."""
    if clusters is None:
        return None, index
    codes, levels = pd.factorize(clusters, sort=True)
    check_units(len(levels), "clusters")
    return codes.astype(np.int64), pd.Index(levels)


def _build_design(
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
    halves = name == "matched" or (name == "little-bags" and not replace)
    size = subsample_size(k, n, at_most=n // 2 if halves else None)
    if B == "complete":
        if name != "iid":
            raise ValueError(
                f"`B='complete'` takes every subsample, so design={name!r} does not "
                "apply. Leave `design` out."
            )
        return CompleteDesign(n, size, replace, seed), B
    options = dict(options)
    n_out = options.pop("n_out", None)
    design = make_design(name, n, size, replace=replace, seed=seed, **options)
    if n_out is not None and isinstance(design, TwoLevelDesign):
        implied = int(n_out) * design.n_in
        if isinstance(B, int) and implied != B:
            raise ValueError(
                f"`B` must be n_out * n_in = {implied}; got {B}. Leave `B` out."
            )
        B = implied
    if isinstance(B, int):
        design.sized(B)
    return design, B


def _query(kernel: Kernel, parsed: Design, at: DataLike | None) -> _Query:
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        if at is not None:
            raise ValueError(
                "`at` is for kernels that predict; the estimates of this kernel are "
                "coefficients or statistics. Use get_prediction(at) on the results."
            )
        return _Query(pd.Index(parsed.names), None, None)
    points = parsed.coding.typical(parsed.frame) if at is None else as_frame(at)
    rows = parsed.coding.matrix(points)
    labels = output_labels(points.index, parsed.classes)
    settings = effect_settings(parsed.coding, parsed.frame)
    if settings is not None:
        rows = np.concatenate([rows, settings.start, settings.end])
    return _Query(labels, rows, settings)


def _probe(task: Task, kernel: FunctionKernel) -> tuple[Task, _Query]:
    """Call the function once, to learn the names and number of its values."""
    first = evaluate(changed(task, kernel=kernel, keep=True), 0, 1, progress=False)
    names, value = name_values(first.learners[0])
    known = changed(kernel, length=value.size)
    return changed(task, kernel=known), _Query(pd.Index(names), None, None)


def _effect_values(
    query: _Query, evaluation: Evaluation, classes: tuple[Any, ...] | None
) -> EffectValues | None:
    if query.settings is None:
        return None
    start, end = np.split(evaluation.values[:, len(query.labels) :], 2, axis=1)
    return EffectValues(end - start, effect_frame(query.settings, classes))


def _predictor(
    kernel: Kernel, evaluation: Evaluation, parsed: Design, n_jobs: int | None
) -> Predictor | None:
    if not isinstance(kernel, Predictive):
        return None
    return Predictor(kernel, evaluation.learners, parsed.coding, parsed.classes, n_jobs)


def _scores(kernel: Kernel, evaluation: Evaluation, parsed: Design) -> Scores | None:
    if not isinstance(kernel, Predictive) or evaluation.oob is None:
        return None
    return score(parsed.y, evaluation.oob.mean, kernel.n_classes)


def _check_observations(table: Any) -> None:
    numbers = (
        table.select_dtypes("number") if hasattr(table, "select_dtypes") else table
    )
    array = np.asarray(numbers)
    if np.issubdtype(array.dtype, np.number) and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(
            f"`data` must be finite; row {row} is missing or infinite. Drop such rows."
        )


def _given_ensemble(
    counts: Any, values: Any, method: str, replace: bool, groups: Any
) -> tuple[GivenDesign, Floats]:
    """Check an ensemble made elsewhere; `groups` are of learners or of rows."""
    table, h, k = check_ensemble(counts, values)
    labels = None
    if groups is not None:
        if method in ESTIMATORS and ESTIMATORS[method].source == "groups":
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


def _sized_index(names: Any, length: int, argument: str) -> pd.Index:
    index = names if isinstance(names, pd.Index) else pd.Index(list(names))
    if len(index) != length:
        raise ValueError(f"`{argument}` must have {length} names; got {len(index)}.")
    return index
