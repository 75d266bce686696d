"""Ensembles whose subsamples and values are given as arrays."""

from typing import Any, Literal

import pandas as pd

from vstatkit.kernels.base import kernel_kind
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_description import ModelInfo
from vstatkit.sampling.given import given_ensemble, index_of_length
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.moments import gram_is_cheaper, moments_by_gram, value_units
from vstatkit.variance.registry import (
    ESTIMATORS,
    compares_groups,
    estimate_components,
    moment_estimator,
    resolve_for_design,
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
    """Make results of an ensemble that was fitted elsewhere.

    Parameters
    ----------
    counts : array-like or sparse of shape (B, n)
        Number of times each observation occurs in each subsample.
    values : array-like of shape (B, m)
        Values of each learner.
    replace : bool
        Whether the subsamples were drawn with replacement.
    variance : str
        Variance estimator; see `fit`.
    groups : array-like, optional
        Group of every learner (length B), for "im", "little_bags" and "matched", which
        require learners drawn in groups; otherwise cluster of every observation
        (length n).
    labels : sequence, optional
        Names of the m values.
    units : sequence, optional
        Names of the n observations.
    name : str
        Name of the ensemble in summaries.
    kind : {"unknown", "trees", "smooth"}
        Kind of the learners; "smooth" are means, regressions and other statistics that
        are nearly linear in the counts.

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
    kernel = kernel_kind(kind)
    design, h = given_ensemble(
        counts,
        values,
        replace=replace,
        groups=groups,
        compares_groups=compares_groups(variance),
    )
    names = [f"h{j}" for j in range(h.shape[1])] if labels is None else labels
    return EnsembleResults(
        design=design,
        values=h,
        labels=index_of_length(names, h.shape[1], "labels"),
        variance=resolve_for_design(variance, design, kernel),
        info=ModelInfo("Ensemble Results", name, name, design.n, coefficients=True),
        units=pd.RangeIndex(design.n)
        if units is None
        else index_of_length(units, design.n, "units"),
        kind=kernel,
    ).with_variance(variance)


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
    counts, values, replace, groups
        See `from_arrays`.
    method : str
        "auto", "corrected", or the name of an estimator: "im", "bm", "ij", "ij_u",
        "jackknife", "hoeffding", "corrected_v", "corrected_v_simple",
        "corrected_u", "little_bags" or "matched".

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
    method = resolve_for_design(method, design)
    unit = value_units(h)
    uses_moments = ESTIMATORS[method].source == "moments"
    if uses_moments and gram_is_cheaper(design.n, *h.shape):
        moments = moments_by_gram(design.table, h / unit, size=design.k)
        parts = moment_estimator(method).from_moments(moments, replace=replace)
    else:
        parts = estimate_components(method, design, h / unit)
    return parts.in_units(unit)
