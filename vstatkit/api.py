"""The public functions: check arguments, wire the stages; no arithmetic."""

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import DataLike, KernelLike, Seed
from vstatkit._validation import (
    check_options,
    check_units,
    ensemble_size,
    observation_weights,
    split_options,
    take_column,
)
from vstatkit.assemble import (
    ALL_DESIGN_OPTIONS,
    TITLES,
    build_design,
    build_kernel,
    build_predictor,
    build_query,
    build_reference,
    effect_values,
    given_ensemble,
    keeps_intercept,
    kernel_name,
    out_of_bag_scores,
    probe,
    read_observations,
    response_name,
    sized_index,
    statistic_task,
    unit_codes,
    warn_if_constant,
    warn_of_single_rows,
)
from vstatkit.ensemble.evaluate import Task
from vstatkit.ensemble.growth import MAX_B, grow
from vstatkit.ensemble.prediction import Predictor
from vstatkit.formula.frames import as_frame
from vstatkit.formula.parse import Missing, caller_environment, parse
from vstatkit.inference.estimates import value_units
from vstatkit.inference.precision import TOL
from vstatkit.kernels.adopted import adopt
from vstatkit.kernels.protocol import (
    FunctionKernel,
    Predictive,
    kind_of,
    prediction_support,
    value_limit,
    value_support,
)
from vstatkit.results.continuation import Recipe
from vstatkit.results.ensemble_results import EnsembleResults, resolved
from vstatkit.results.info import Growth, ModelInfo
from vstatkit.sampling.streams import resolve_seed
from vstatkit.variance.components import (
    ESTIMATORS,
    VarianceComponents,
    estimate_components,
    moment_components,
)
from vstatkit.variance.moments import gram_is_cheaper, moments_by_gram
from vstatkit.variance.orders import KernelKind, kernel_kind, reference_rows

DesignName = Literal["iid", "balanced", "two-level", "little-bags", "matched"]


def fit(
    formula: str,
    data: DataLike,
    *,
    kernel: KernelLike = "forest",
    k: int | float | None = None,
    B: int | str = "auto",
    replace: bool = True,
    design: DesignName = "iid",
    variance: str = "auto",
    at: DataLike | None = None,
    groups: Any = None,
    weights: Any = None,
    missing: Missing = "drop",
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    tol: float = TOL,
    atol: float | None = None,
    max_B: int = MAX_B,
    eval_env: int | Literal["restricted"] = 0,
    **kernel_options: Any,
) -> EnsembleResults:
    """Fit an ensemble of base learners, with standard errors.

    Parameters
    ----------
    formula : str
        A patsy formula; `y ~ .` stands for all other columns, but for those named
        by `groups` and `weights`. A numeric response is regression, a categorical
        one gives class probabilities.
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
        standard errors at the query points is below `tol`, or `atol`.
    replace : bool
        Subsample with replacement (a V-statistic) or without (a U-statistic).
    design : {"iid", "balanced", "two-level", "little-bags", "matched"}
        How subsamples are drawn. Its options (`block`; `n_out` and `n_in`;
        `group_size`) are given as keywords.
    variance : str
        Variance estimator. "auto" is what holds for the kernel and k: "hoeffding",
        beyond the first order, for trees and other learners; "corrected", the
        paper's estimator that fits the sampling, for regressions and statistics.
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
    tol, atol, max_B
        "auto" is content where the Monte Carlo error of a standard error is below
        `tol` times the standard error, or below `atol`, in the unit of the
        estimates (allowing for the noise in its own estimate of the error). By
        default `atol` is `tol` times a hundredth of the range of the response, so
        0.001 for probabilities; 0 where the range of what a kernel gives is
        unknown. At `max_B` learners "auto" gives up.
    eval_env : int or "restricted"
        Where the formula finds names that are not columns: 0 is the caller, 1
        the caller's caller. "restricted" is for formulas of strangers: only
        columns, patsy's built-ins and numpy's elementwise functions evaluate.
    **kernel_options
        `max_features`, `min_samples_split`, `min_samples_leaf`, `max_depth`,
        `splitter` ("best" or "random"), `criterion` ("squared_error", "poisson" or
        "absolute_error"; "gini" for classes) and `honest` (split with one half of the
        subsample, estimate with the other) of the tree kernels, and the options of the
        design.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
    >>> list(res.effects.index), res.B, res.k
    (['x1', 'x2', 'x4'], 200, 70)
    """
    restricted = eval_env == "restricted"
    environment = None if restricted else caller_environment(1 + int(eval_env))
    frame = as_frame(data)
    parsed = parse(
        formula,
        frame,
        environment=environment,
        intercept=keeps_intercept(kernel),
        missing=missing,
        not_in_dot=tuple(one for one in (groups, weights) if isinstance(one, str)),
    )
    warn_if_constant(parsed)
    warn_of_single_rows(k)
    clusters = take_column("groups", groups, parsed.data, parsed.rows, frame.index)
    column = take_column("weights", weights, parsed.data, parsed.rows, frame.index)
    design_options, options = split_options(kernel_options, ALL_DESIGN_OPTIONS)
    built = build_kernel(kernel, parsed, observation_weights(column), options)
    members, units = unit_codes(clusters, parsed.data.index)
    scheme, size = build_design(
        design,
        len(units),
        k,
        ensemble_size(B),
        replace=replace,
        seed=resolve_seed(rng),
        options=design_options,
    )
    kind = kind_of(built)
    method = resolved(variance, scheme, kind)
    query = build_query(built, parsed, at)
    task = Task(built, scheme, query.rows, members, keep=isinstance(built, Predictive))
    if isinstance(built, FunctionKernel):
        task, query = probe(task, built)
    scheme, evaluation = grow(
        task,
        size,
        method=method,
        n_query=len(query.labels),
        tol=tol,
        atol=atol,
        max_B=max_B,
        n_jobs=n_jobs,
        progress=progress,
    )
    info = ModelInfo(
        title=TITLES.get(str(kernel), "Ensemble Results"),
        response=response_name(parsed),
        formula=formula,
        kernel=kernel_name(kernel),
        nobs=len(parsed.y),
        n_dropped=parsed.n_dropped,
        units="observations" if members is None else "clusters",
        coefficients=query.rows is None,
        growth=Growth(tol, max_B, atol) if size == "auto" else Growth(),
        typical=parsed.coding.typical(parsed.frame),
        ranges=parsed.coding.ranges(parsed.frame),
        unused_levels=tuple(map(str, parsed.unused_levels)),
    )
    return EnsembleResults(
        design=scheme,
        values=evaluation.values[:, : len(query.labels)],
        labels=query.labels,
        variance=method,
        info=info,
        units=units,
        effect_values=effect_values(query, evaluation, parsed.classes),
        predictor=build_predictor(built, evaluation, parsed, n_jobs),
        scores=out_of_bag_scores(built, evaluation, parsed),
        limit=value_limit(built),
        support=value_support(built, len(parsed.y)),
        kind=kind,
        reference=build_reference(built, parsed, scheme.seed),
        recipe=Recipe(task, evaluation.oob, parsed.y, n_jobs, progress),
    ).with_variance(method)


def statistic(
    h: str | Callable[..., Any],
    data: Any,
    *,
    k: int | float,
    B: int | str = "auto",
    replace: bool = True,
    design: DesignName = "iid",
    variance: str = "auto",
    groups: Any = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    tol: float = TOL,
    atol: float | None = None,
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
    replace, design, variance, groups, rng, n_jobs, progress, tol, atol, max_B
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
    table = read_observations(data)
    n = len(table)
    check_units(n)
    check_options(design_options, ALL_DESIGN_OPTIONS, "`statistic`")
    columns = table if isinstance(table, pd.DataFrame) else pd.DataFrame(index=range(n))
    clusters = take_column("groups", groups, columns, np.arange(n), columns.index)
    index = (
        table.index
        if isinstance(table, pd.DataFrame | pd.Series)
        else (pd.RangeIndex(n))
    )
    members, units = unit_codes(clusters, index)
    scheme, size = build_design(
        design,
        len(units),
        k,
        ensemble_size(B),
        replace=replace,
        seed=resolve_seed(rng),
        options=design_options,
    )
    method = resolved(variance, scheme, KernelKind.SMOOTH)
    task, labels = statistic_task(h, table, scheme, members)
    scheme, evaluation = grow(
        task,
        size,
        method=method,
        n_query=None,
        tol=tol,
        atol=atol,
        max_B=max_B,
        n_jobs=n_jobs,
        progress=progress,
    )
    name = kernel_name(h)
    info = ModelInfo(
        title="V-statistic Results" if replace else "U-statistic Results",
        response=name,
        kernel=name,
        nobs=n,
        units="observations" if members is None else "clusters",
        coefficients=True,
        growth=Growth(tol, max_B, atol) if size == "auto" else Growth(),
    )
    return EnsembleResults(
        design=scheme,
        values=evaluation.values,
        labels=labels,
        variance=method,
        info=info,
        units=units,
        kind=KernelKind.SMOOTH,
        recipe=Recipe(task, n_jobs=n_jobs, progress=progress),
    ).with_variance(method)


def from_arrays(
    counts: Any,
    values: Any,
    *,
    replace: bool,
    variance: str = "auto",
    groups: Any = None,
    labels: Any = None,
    units: Any = None,
    name: str = "ensemble",
    kind: Literal["unknown", "trees", "smooth"] = "unknown",
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
        otherwise cluster of every observation (length n). Learners that were drawn
        in groups depend on each other, and the other estimators are refused for
        them.
    labels : sequence, optional
        Names of the m values.
    units : sequence, optional
        Names of the n observations.
    name : str
        What the summary calls the ensemble.
    kind : {"unknown", "trees", "smooth"}
        What the learners are, where it is known; "smooth" are means, regressions
        and other statistics that are nearly linear in the counts.

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
    sort = kernel_kind(kind)
    design, h = given_ensemble(counts, values, variance, replace, groups)
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
        labels=sized_index(names, h.shape[1], "labels"),
        variance=resolved(variance, design, sort),
        info=info,
        units=pd.RangeIndex(design.n)
        if units is None
        else sized_index(units, design.n, "units"),
        kind=sort,
    ).with_variance(variance)


def from_sklearn(
    forest: BaseEstimator,
    X: Any,
    y: Any,
    at: Any,
    *,
    variance: str = "auto",
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
    'hoeffding'
    """
    adopted = adopt(forest, X, y)
    predictor = Predictor(
        adopted.kernel,
        adopted.learners,
        None,
        adopted.classes,
        n_jobs,
        adopted.columns,
    )
    rows, index = predictor.rows(at)
    results = from_arrays(
        adopted.counts,
        predictor.values(rows),
        replace=adopted.replace,
        variance="bm",  # settled below, where there are learners to compare
        labels=predictor.labels(index),
        units=X.index if isinstance(X, pd.DataFrame) else None,
        name=type(forest).__name__,
    )
    info = changed(
        results.info, title="Forest Results", response=adopted.name, coefficients=False
    )
    made = changed(
        results,
        info=info,
        predictor=predictor,
        scores=adopted.scores(),
        limit=adopted.limit,
        kind=adopted.kind,
        reference=reference_rows(adopted.kernel.X, 0, adopted.kernel.n_outputs),
        support=prediction_support(adopted.kernel, results.nobs),
    )
    return made.with_variance(variance)


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
        "auto", "corrected", or the name of an estimator: "im", "bm", "ij", "ij_u",
        "jackknife", "hoeffding", "corrected_v", "corrected_v_simple",
        "corrected_u", "little_bags" or "matched".
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
    design, h = given_ensemble(counts, values, method, replace, groups)
    method = resolved(method, design)
    unit = value_units(h)
    uses_moments = ESTIMATORS[method].source == "moments"
    if uses_moments and gram_is_cheaper(design.n, *h.shape):
        moments = moments_by_gram(design.table, h / unit, size=design.k)
        parts = moment_components(method, moments, replace=replace)
    else:
        parts = estimate_components(method, design, h / unit)
    return parts.in_units(unit)
