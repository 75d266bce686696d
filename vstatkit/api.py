"""The public functions `fit` and `statistic`."""

from collections.abc import Callable
from dataclasses import replace as changed
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, KernelLike, Seed
from vstatkit.ensemble.bias_reduction import choose_if_truth
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.growth import MAX_B
from vstatkit.ensemble.memory import memory_bytes
from vstatkit.ensemble.query import build_query
from vstatkit.ensemble.retention import keep_budget
from vstatkit.ensemble.sampling_plan import plan_sampling
from vstatkit.ensemble.serial_dependence_check import find_serial_dependence
from vstatkit.fit_steps import (
    GrowthOptions,
    grow_results,
    probe_function,
    read_fit_data,
    statistic_task,
)
from vstatkit.formula.data_warnings import find_leaks, warn_of, warn_of_new_rows
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.duplicate_rows import find_copies
from vstatkit.formula.parse import read_observations, response_name
from vstatkit.formula.patsy_engine import caller_environment
from vstatkit.formula.weights_and_groups import column_name, take_column
from vstatkit.inference.stopping import TOL
from vstatkit.kernels.base import KernelKind, PredictiveModel, Training, kind_of
from vstatkit.kernels.registry import (
    build_kernel,
    factor_coding,
    keeps_intercept,
    kernel_name,
    kernel_title,
)
from vstatkit.kernels.user_defined import FunctionKernel
from vstatkit.results.bias import aim_of
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_description import ModelInfo
from vstatkit.sampling.design import check_units, unit_codes
from vstatkit.sampling.registry import design_options, warn_of_single_rows
from vstatkit.sources.recognition import find_source, read_few
from vstatkit.storage.checkpoint import Checkpoint, describe, recorded_seed
from vstatkit.validation import check_statistic_options, check_workers, split_options


def fit(
    formula: str,
    data: DataLike,
    *,
    kernel: KernelLike = "forest",
    k: int | float | None = None,
    B: int | str = "auto",
    replace: bool = True,
    design: str = "auto",
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
    checkpoint: str | PathLike[str] | None = None,
    memory_limit: int | str | None = None,
    oob: bool = True,
    keep_learners: bool | Literal["auto"] = "auto",
    eval_env: int | Literal["restricted"] = 0,
    target: Literal["mean", "truth"] = "mean",
    **kernel_options: Any,
) -> EnsembleResults:
    """Fit an ensemble of base learners, with standard errors.

    Parameters
    ----------
    formula : str
        A patsy formula; in `y ~ .` the dot is all other columns, except those named
        by `groups` and `weights`. A numeric response gives a regression, a categorical
        one class probabilities.
    data : DataFrame, dict of columns, polars frame, Arrow table, or path
        Observations in rows. A path (to a Parquet or CSV file, or a folder of Parquet
        files), an Arrow dataset, a Dask data frame or a polars LazyFrame is read batch
        after batch, only the columns that are named; the coded rows are kept on disk.
    kernel : str, scikit-learn estimator or callable
        "forest" (randomised trees), "tree", "ols", "logit"; any scikit-learn
        regressor or classifier; or a function of a subsample: of the data frame,
        or of (y, X) if it takes two arguments.
    k : int or float, optional
        Subsample size, or a fraction of n; `ceil(n**0.8)` by default (0.9 with
        `target="truth"`), or what the design allows.
    B : int, "auto" or "complete"
        Number of base learners. "auto" grows until the Monte Carlo error of the
        standard errors of estimates and effects is below `tol`, or `atol`.
    replace : bool
        Subsample with replacement (a V-statistic) or without (a U-statistic).
    design : str
        How subsamples are drawn: "auto", "iid", "balanced", "two-level",
        "little-bags", "matched", "shards", or a registered design. "auto" is
        "iid", independent subsamples, unless there are so many observations that
        standard errors would need many more than 10,000 learners. Then it is
        "shards", disjoint parts of the data, if a `k` of at most n / 20 is given; with
        the default `k` a warning says that there are no reliable standard errors.
        Options (`block`; `n_out` and `n_in`; `group_size`; `n_shards`) are given as
        keywords.
    variance : str
        Variance estimator. "auto" depends on the kernel and k: "hoeffding", which
        includes interactions between rows, for trees and other learners; "corrected",
        the paper's estimator for the sampling used, for regressions and statistics.
    at : DataFrame or dict of columns, or path, optional
        Query points; the typical row (medians, most frequent levels) by default.
    groups : str or array-like, optional
        Clusters, resampled whole; `k` counts clusters then.
    weights : str or array-like, optional
        Sampling weights: how many units of the population a row stands for, up to
        a constant factor. They multiply the row's loss in every learner that draws
        it; subsamples are drawn without regard to them. Averages over rows and
        out-of-bag scores are weighted; the typical row and the quantiles between which
        predictors move are not. Standard errors count rows, whatever their weights:
        these are not frequencies. Weights that are the inverse of an error variance
        (precision weights) give valid fits too, but averages and scores are then
        weighted by precision.
    missing : {"drop", "raise", "pass"}
        What to do with missing values.
    rng : int, Generator or None
        Seed. The same seed gives the same numbers for any `n_jobs`.
    n_jobs : int, optional
        Workers, as joblib counts them; an active Dask client is used unless this is 1.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over a second.
    tol, atol, max_B
        "auto" stops when the Monte Carlo error of every standard error is below
        `tol` times the standard error, or below `atol`, in the unit of the
        estimates (allowing for the noise in its own estimate of the error). By
        default `atol` is `tol` times a fiftieth of the scale of the response, which is
        half its range or three robust standard deviations, whichever is less: 0.001
        for probabilities; 0 if the range of a kernel's values is unknown. "auto" never
        exceeds `max_B` learners.
    checkpoint : str or path, optional
        A directory where learners are saved as they are grown. If an interrupted fit
        is called again with the same arguments, or a larger `B`, it resumes from there
        and gives the same numbers. Other data, settings or seeds raise an error, and so
        does a second process at the same time.
    memory_limit : int or str, optional
        Bytes that the fit may use, or a text such as "2GB"; by default the available
        memory. A fit that needs more raises an error before it begins, and "auto" stops
        at the number of learners that fit into it.
    oob : bool
        Whether to compute out-of-bag scores, for up to 20,000 observations, drawn at
        random if there are more. For a numeric response 64 trees are then fitted to the
        size of the residuals, for the prediction intervals of `get_prediction`.
    keep_learners : "auto" or bool
        Whether to keep the learners, to predict new data later and for averages over
        rows. "auto" keeps them up to a size of 1 GiB in all, or a quarter of the
        available memory (and of the disk, for temporary files) if that is more, and as
        much again for the stacked ensemble of `target="truth"`; a warning says if it
        did not. False keeps only those that "hoeffding" compares with each other.
    eval_env : int or "restricted"
        Where the formula finds names that are not columns: 0 is the caller, 1
        the caller's caller. "restricted" is for formulas from untrusted sources: it
        allows only columns, patsy's built-ins and numpy's elementwise functions.
    target : "mean" or "truth"
        What intervals cover: the expectation of this ensemble over data sets of this
        size; or, for trees and a numeric response, E[y|x] itself. "truth" tries plain
        trees, `trend`, `boost` and both, with several `min_samples_leaf` and
        `max_features` unless they are given, in small pilot ensembles. Estimates come
        from a stacked ensemble of those with a small out-of-bag error, standard errors
        from one with less bias; the summary describes both, and the remaining bias.
    **kernel_options
        Of the tree kernels: `max_features`, `min_samples_split`, `min_samples_leaf`,
        `max_depth`, `max_leaf_nodes`, `min_weight_fraction_leaf`, `criterion`
        ("squared_error", "poisson", "absolute_error"; "gini", "entropy"),
        `splitter` ("best", "random"), `honest` (split with one half of the
        subsample, estimate with the other), `trend` ("linear": a ridge regression on
        the subsample, and the tree on its residuals), `boost` (1: a second tree on
        residuals that the first did not see) and `categorical_splits` (True: split
        sets of levels of unordered factors, up to 64 levels; False: one indicator for
        each level; by default sets of 3 levels, and indicators of more). Also the
        options of the design.

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
    observed = read_fit_data(
        formula,
        data,
        environment=None if restricted else caller_environment(1 + int(eval_env)),
        intercept=keeps_intercept(kernel),
        missing=missing,
        factors=factor_coding(kernel, kernel_options, target),
        groups=groups,
        weights=weights,
        n_jobs=n_jobs,
    )
    parsed, unit_of_row = observed.parsed, observed.unit_of_row
    warn_of_single_rows(k)
    of_design, of_kernel = split_options(kernel_options, design_options())
    training = Training.of(parsed, observed.weights)
    built = build_kernel(kernel, training, of_kernel)
    plan = plan_sampling(
        len(observed.units),
        kind_of(built),
        design=design,
        k=k,
        B=B,
        replace=replace,
        rng=recorded_seed(checkpoint, rng),
        variance=variance,
        max_B=max_B,
        options=of_design,
        larger_k=target != "mean",
    )
    choice = choose_if_truth(
        *(target, built, of_kernel, plan.design, unit_of_row),
        n_jobs=n_jobs,
        progress=progress,
    )
    if choice is not None:
        built = choice.kernel
    source = find_source(at)  # query points may be in a file, if they are few
    advice = "Fit without `at`, and use get_prediction(..., out=...) on the results."
    points = at if source is None else read_few(source, None, advice)
    query = build_query(built, parsed, points)
    limit = memory_bytes(memory_limit)
    task = Task(
        built,
        plan.design,
        query.rows,
        unit_of_row,
        keep=isinstance(built, PredictiveModel),
        oob=oob,
        keep_bytes=keep_budget(keep_learners, limit),
    )
    if isinstance(built, FunctionKernel):
        task, query = probe_function(task, built)
    tables = {
        # A function may read any column.
        "data": training.data if isinstance(built, FunctionKernel) else None,
        "predictors": training.X,
        "response": training.y,
        "weights": training.weights,
        "groups": task.unit_of_row,
        "points": task.at,
    }
    settings = {"formula": formula, "kernel": describe(kernel), "options": of_kernel}
    if choice is not None:
        settings["target"] = "truth"
    options = GrowthOptions(
        tol=tol,
        max_B=max_B,
        atol=atol,
        n_jobs=n_jobs,
        progress=progress,
        checkpoint=Checkpoint.of(checkpoint, task, settings, tables),
        memory_limit=limit,
        stack=None if choice is None else choice.stack,
    )
    info = ModelInfo(
        title=kernel_title(kernel),
        response=response_name(parsed),
        formula=formula,
        kernel=kernel_name(kernel),
        nobs=len(parsed.y),
        n_dropped=parsed.n_dropped,
        units="observations" if unit_of_row is None else "clusters",
        coefficients=query.rows is None,
        typical=parsed.typical_row,
        ranges=parsed.coding.ranges(parsed.frame),
        unused_levels=tuple(map(str, parsed.unused_levels)),
        aim=aim_of(built, choice),
        groups=observed.groups_name,
        weights=observed.weights_name,
        weights_in_column=observed.weights_in_column,
    )
    # Warn of data that are probably not as meant, before learners are grown.
    frame = parsed.data if isinstance(parsed.data, pd.DataFrame) else None
    copies = () if frame is None else warn_of([find_copies(parsed, unit_of_row)])
    notes = [*copies]
    if frame is not None:
        notes += warn_of([find_leaks(parsed)])
    if points is not None:
        notes += warn_of_new_rows(points, parsed.coding, info.ranges)
    results = grow_results(
        *(task, plan, query, options), info=info, units=observed.units, parsed=parsed
    )
    if not copies:  # those that lie next to each other are correlated too
        finding = find_serial_dependence(
            results.scores, parsed.y, frame, unit_of_row, training.n_classes
        )
        notes += warn_of([finding])
    if not notes:
        return results
    return changed(results, info=changed(results.info, data_notes=tuple(notes)))


def statistic(
    h: str | Callable[..., Any],
    data: Any,
    *,
    k: int | float,
    B: int | str = "auto",
    replace: bool = True,
    design: str = "auto",
    variance: str = "auto",
    groups: Any = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    tol: float = TOL,
    atol: float | None = None,
    max_B: int = MAX_B,
    checkpoint: str | PathLike[str] | None = None,
    **options: Any,
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
    replace, design, variance, groups, rng, n_jobs, progress
        See `fit`.
    tol, atol, max_B, checkpoint
        See `fit`.
    **options
        Of the design: `block`; `n_out` and `n_in`; `group_size`; `n_shards`.

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
    check_workers(n_jobs)
    table, index = read_observations(data)
    n = len(table)
    check_units(n)
    own = ("k", *(statistic.__kwdefaults__ or ()))
    check_statistic_options(options, design_options(), own)
    columns = table if isinstance(table, pd.DataFrame) else pd.DataFrame(index=index)
    clusters = take_column("groups", groups, columns, np.arange(n), columns.index)
    unit_of_row, units = unit_codes(clusters, index)
    plan = plan_sampling(
        len(units),
        KernelKind.SMOOTH,
        design=design,
        k=k,
        B=B,
        replace=replace,
        rng=recorded_seed(checkpoint, rng),
        variance=variance,
        max_B=max_B,
        options=options,
    )
    task, query = statistic_task(h, table, plan.design, unit_of_row)
    name = kernel_name(h)
    info = ModelInfo(
        title="V-statistic Results" if replace else "U-statistic Results",
        response=name,
        kernel=name,
        nobs=n,
        units="observations" if unit_of_row is None else "clusters",
        coefficients=True,
        groups=column_name(groups),
    )
    settings, tables = {"kernel": describe(h)}, {"data": table, "groups": unit_of_row}
    saved = Checkpoint.of(checkpoint, task, settings, tables)
    growth = GrowthOptions(tol, max_B, atol, n_jobs, progress, saved)
    return grow_results(task, plan, query, growth, info=info, units=units)
