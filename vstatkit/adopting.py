"""Ensembles that were made elsewhere."""

from dataclasses import replace as changed
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.query import Query, build_query, effect_values
from vstatkit.ensemble.sklearn_ensembles import AdoptedEnsemble, adopt
from vstatkit.forest.base import Forest, check_response
from vstatkit.formula.parse import ParsedFormula, parsed_table, response_name
from vstatkit.inference.estimates import value_units
from vstatkit.inference.intervals import prediction_support
from vstatkit.inference.stopping import robust_share
from vstatkit.kernels.base import Evaluation, kernel_kind
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.learners import predictor_of
from vstatkit.results.model_info import ModelInfo
from vstatkit.results.rows import column_names
from vstatkit.sampling.given import given_ensemble, sized_index
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.hoeffding import reference_rows
from vstatkit.variance.moments import gram_is_cheaper, moments_by_gram
from vstatkit.variance.registry import (
    ESTIMATORS,
    compares_groups,
    estimate_components,
    moment_components,
    resolved,
)


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
    design, h = given_ensemble(
        counts,
        values,
        replace=replace,
        groups=groups,
        compares_groups=compares_groups(variance),
    )
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
    at: Any = None,
    *,
    variance: str = "auto",
    n_jobs: int | None = None,
) -> EnsembleResults:
    """Compute standard errors for a fitted scikit-learn forest or bagging ensemble.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* (with bootstrap=True) or Bagging*
        Fitted to (X, y); its subsamples are read from `estimators_samples_`. Or a
        `ForestRegressor` or `ForestClassifier`, whose `results_` these are.
    X : array-like of shape (n, p)
        Training data, in the order of the fit; others are refused where trees tell.
    y : array-like of shape (n,)
        Training response, for the out-of-bag scores, without missing values.
    at : array-like of shape (q, p), optional
        Query points; the typical row (medians) by default. Other points are predicted
        by `get_prediction`.
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
    >>> list(vs.from_sklearn(forest, X, y).effects.index)
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    if isinstance(forest, Forest):
        return _own_results(forest, X, at, variance, n_jobs)
    check_response(y, numeric=not hasattr(forest, "classes_"))
    adopted = adopt(forest, X, y)
    predictor = Predictor(
        adopted.kernel,
        adopted.learners,
        None,
        adopted.classes,
        n_jobs,
        adopted.columns,
    )
    units = X.index if isinstance(X, pd.DataFrame) else None
    parsed = _parsed(adopted, predictor)
    query = _query(parsed, predictor, at)
    assert query.rows is not None  # learners predict
    evaluation = Evaluation(
        predictor.values(query.rows), adopted.learners, None
    ).with_moves(len(query.labels))
    results = from_arrays(
        adopted.counts,
        evaluation.values[:, : len(query.labels)],
        replace=adopted.replace,
        variance="bm",  # settled below, where there are learners to compare
        labels=query.labels,
        units=units,
        name=type(forest).__name__,
    )
    info = changed(
        results.info,
        title="Forest Results",
        response=response_name(parsed),
        coefficients=False,
        typical=parsed.typical,
        ranges=parsed.coding.ranges(parsed.frame),
        scale_share=1.0 if adopted.classes is not None else robust_share(adopted.y),
    )
    made = changed(
        results,
        info=info,
        effect_values=effect_values(query, evaluation, adopted.classes),
        predictor=predictor,
        scores=adopted.scores(),
        limit=adopted.limit,
        kind=adopted.kind,
        reference=reference_rows(adopted.kernel.X, 0, adopted.kernel.n_outputs),
        support=prediction_support(adopted.kernel, results.design.n),
        tails=adopted.tails,
    )
    return made.with_variance(variance)


def _parsed(adopted: AdoptedEnsemble, predictor: Predictor) -> ParsedFormula:
    """Read the training data as a formula of all columns does."""
    features = pd.DataFrame(adopted.kernel.X, columns=column_names(predictor))
    return parsed_table(
        features, adopted.y, response=adopted.name, classes=adopted.classes
    )


def _query(parsed: ParsedFormula, predictor: Predictor, at: Any) -> Query:
    """Find the query points, and the settings of the effects after them."""
    kernel: Any = predictor.kernel
    query = build_query(kernel, parsed, None)
    if at is None or query.rows is None:
        return query
    rows, index = predictor.rows(at)
    moves = query.rows[1:]  # after the typical row
    return changed(
        query, rows=np.concatenate([rows, moves]), labels=predictor.labels(index)
    )


def _own_results(
    forest: Forest, X: Any, at: Any, variance: str, n_jobs: int | None
) -> EnsembleResults:
    """Give the results of a forest that has them, at other points if need be."""
    if len(X) != forest.design_.n:
        raise ValueError(
            f"`X` must be the {type(forest).__name__}'s training data, of "
            f"{forest.design_.n} rows; it has {len(X)}."
        )
    results = forest.results_
    predictor = predictor_of(results)
    if n_jobs is not None:
        predictor = changed(predictor, n_jobs=n_jobs)
        results = changed(results, predictor=predictor)
    if at is not None:
        rows, index = predictor.rows(at)
        results = changed(
            results, values=predictor.values(rows), labels=predictor.labels(index)
        )
    return results if variance == "auto" else results.with_variance(variance)


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
    design, h = given_ensemble(
        counts,
        values,
        replace=replace,
        groups=groups,
        compares_groups=compares_groups(method),
    )
    method = resolved(method, design)
    unit = value_units(h)
    uses_moments = ESTIMATORS[method].source == "moments"
    if uses_moments and gram_is_cheaper(design.n, *h.shape):
        moments = moments_by_gram(design.table, h / unit, size=design.k)
        parts = moment_components(method, moments, replace=replace)
    else:
        parts = estimate_components(method, design, h / unit)
    return parts.in_units(unit)
