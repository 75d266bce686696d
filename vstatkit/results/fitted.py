"""What users of statsmodels look for: fitted values, residuals, the model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from vstatkit.kernels.base import OutOfBag
    from vstatkit.results.continuation import Continuation
    from vstatkit.results.ensemble_results import EnsembleResults

R_SQUARED = "OOB R-squared"
"""Name of the score, as the summary has it."""


@dataclass(frozen=True)
class ModelData:
    """Names of what was estimated, where statsmodels' tables look for them.

    Attributes
    ----------
    param_names : list of str
        Names of `params`.
    ynames : str
        Name of the response.
    """

    param_names: list[str]
    ynames: str


@dataclass(frozen=True)
class FittedModel:
    """What was fitted, by statsmodels' names.

    Attributes
    ----------
    formula : str or None
        As written; None for a statistic or learners that were fitted elsewhere.
    endog_names : str
        Response.
    exog_names : list of str
        Columns of the design matrix; names of the estimates where there is none.
    kernel : str
        What was evaluated on each subsample.
    data : ModelData
        Names of the estimates.
    """

    formula: str | None
    endog_names: str
    exog_names: list[str]
    kernel: str
    data: ModelData


def _results(fitted: "Fitted") -> "EnsembleResults":
    """Tell the type checker what has these properties."""
    return cast("EnsembleResults", fitted)


class Fitted:
    """Properties of results that statsmodels' have too."""

    @property
    def formula(self) -> str | None:
        """The formula as written; None where there was none."""
        return _results(self).info.formula

    @property
    def model(self) -> FittedModel:
        """What was fitted, by statsmodels' names."""
        results = _results(self)
        info, names = results.info, label_texts(results.labels)
        coding = None if results.predictor is None else results.predictor.coding
        columns = names if coding is None else coding.names
        data = ModelData(names, info.response)
        return FittedModel(info.formula, info.response, columns, info.kernel, data)

    @property
    def fittedvalues(self) -> pd.Series | pd.DataFrame:
        """Out-of-bag predictions of the training rows.

        Each row is predicted by the learners that have not seen it, so that residuals
        are honest; `predict()` without data takes all learners. A row that every
        learner has seen has a missing value. Of classes these are probabilities: of
        the second class of two, or a column for each of more.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> bool(((res.fittedvalues + res.resid - data["y"]).abs() < 1e-9).all())
        True
        """
        results = _results(self)
        recipe, oob = _out_of_bag(results)
        return _labelled(results, oob.mean, _row_labels(results, recipe, oob))

    @property
    def resid(self) -> pd.Series | pd.DataFrame:
        """Out-of-bag residuals: response less `fittedvalues`.

        Of classes the response is one for the class that a row has, zero for others.
        """
        results = _results(self)
        recipe, oob = _out_of_bag(results)
        observed = oob.of(np.asarray(recipe.y))
        seen = observed[:, None] if oob.total.shape[1] == 1 else _coded(observed, oob)
        labels = _row_labels(results, recipe, oob)
        return _labelled(results, seen - oob.mean, labels)

    @property
    def rsquared(self) -> float:
        """Out-of-bag R-squared of a numeric response."""
        scores = _results(self).scores
        if scores is None or R_SQUARED not in scores.table:
            raise AttributeError(
                "`rsquared` is for a numeric response that varies, predicted out of "
                "bag; `glance()` has the scores that there are."
            )
        return scores.table[R_SQUARED]


def _out_of_bag(results: "EnsembleResults") -> "tuple[Continuation, OutOfBag]":
    """Give the out-of-bag sums, and what they belong to, or say why there are none."""
    recipe = results.recipe
    if recipe is not None and recipe.oob is not None and recipe.y is not None:
        return recipe, recipe.oob
    reason = (
        "they were loaded from a file or a pickle, or made of learners fitted elsewhere"
        if recipe is None
        else "nothing was predicted out of bag (a statistic, or oob=False)"
    )
    raise ValueError(
        f"these results hold no out-of-bag predictions of the training rows: {reason}."
    )


def _coded(codes: Floats, oob: "OutOfBag") -> Floats:
    """Write classes as ones and zeros, a column for each."""
    return np.asarray(np.equal.outer(codes, np.arange(oob.total.shape[1])), dtype=float)


def _row_labels(
    results: "EnsembleResults", recipe: "Continuation", oob: "OutOfBag"
) -> Labels:
    """Label the training rows that were predicted."""
    if recipe.data is not None:
        labels = recipe.data.index
    else:
        labels = pd.RangeIndex(results.nobs)
    return labels if oob.rows is None else labels[oob.rows]


def _labelled(
    results: "EnsembleResults", values: Floats, labels: Labels
) -> pd.Series | pd.DataFrame:
    if values.shape[1] == 1:
        return pd.Series(values[:, 0], labels, name=results.info.response)
    predictor = results.predictor
    classes: Any = None if predictor is None else list(predictor.classes or ())
    return pd.DataFrame(values, labels, classes)
