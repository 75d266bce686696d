"""Results as a model of the package marginaleffects, which is loaded on demand.

The package computes standard errors from derivatives of an estimate with respect to
coefficients, and their covariance matrix. An ensemble has no coefficients, but its
predictions are linear in the weights of its learners, which take their place: the
derivatives with respect to the weights are the learners' own values of the estimate,
from which we compute the standard error. The weights have no covariance matrix.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates, ensemble_mean, estimate
from vstatkit.kernels.base import KernelKind, kind_of
from vstatkit.results.learners import predictor_of
from vstatkit.results.marginal_effects import (
    average_orders,
    observed_values,
    predictor_names,
    training_rows,
)

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults

STEP = 1024.0
"""Change of a prediction, in units of a learner's distance from it, per unit of the
learner's weight. The package differentiates with steps of 1e-8; with this factor,
neither rounding nor the curvature of ratios matters."""

SHORT = 0.01
"""Shortest step of a slope, in standard deviations of the predictor."""


class ErrorRule(np.ndarray[Any, np.dtype[np.float64]]):
    """Replacement of a covariance matrix: `J @ rule` gives our standard errors.

    All entries are NaN, so that any other use as a matrix gives NaN.
    """

    model: "EnsembleModel | None"

    @classmethod
    def of(cls, model: "EnsembleModel") -> "ErrorRule":
        """Make the rule for a model."""
        size = model.ensemble.B
        rule = np.broadcast_to(np.float64(np.nan), (size, size)).view(cls)
        rule.model = model
        return rule

    def __array_finalize__(self, other: Any) -> None:
        self.model = getattr(other, "model", None)

    def __rmatmul__(self, jacobian: Any) -> Any:
        """Return a matrix whose row-wise products with the jacobian are variances."""
        J = np.asarray(jacobian, dtype=np.float64)
        if self.model is None:
            return J @ np.asarray(self)
        variance = self.model.variances(J / STEP)
        squares = (J**2).sum(axis=1)
        shares = np.divide(
            variance, squares, out=np.zeros_like(squares), where=squares > 0
        )
        return J * shares[:, None]


class EnsembleModel:
    """The methods of a model that marginaleffects calls.

    Attributes
    ----------
    ensemble : EnsembleResults
        The results.
    df_resid : float
        Smallest degrees of freedom of the last estimates; the package has one number
        for all of them.
    """

    ensemble: "EnsembleResults"
    df_resid: float = np.inf
    _n_predictions: int = 0
    _before: pd.DataFrame | None = None

    def get_coef(self) -> Floats:
        """Return the weights of the learners, all one."""
        return np.ones(self.ensemble.B)

    def get_coefnames(self) -> Any:
        """Raise an error: there are no coefficients to test."""
        raise ValueError(
            "an ensemble has no coefficients to test. Use the argument `hypothesis` of "
            "predictions(), comparisons() or slopes(); or t_test() of the results."
        )

    def get_vcov(self, vcov: Any = True) -> ErrorRule | None:
        """Return the rule for our standard errors, or None."""
        if vcov is None or vcov is False:
            return None
        if vcov is not True:
            raise ValueError(
                "`vcov` must be True or False: standard errors come from the learners. "
                f"Got {vcov!r}; use with_variance() of the results for another "
                "estimator."
            )
        return ErrorRule.of(self)

    def get_exog(self, newdata: Any) -> Floats:
        """Predict with every learner.

        Returns
        -------
        ndarray of shape (rows, 1 + B, outputs)
            The ensemble's prediction, and the distance of every learner from it.
        """
        predictor, design = predictor_of(self.ensemble), self.ensemble.design
        frame = _convert_rows(newdata, training_rows(self.ensemble))
        self._check_step(frame)
        rows = predictor.rows(frame)[0]
        values = predictor.values(rows)
        mean = ensemble_mean(design, values)
        table = np.concatenate([mean[None], values - mean])
        return table.reshape(len(table), len(rows), -1).swapaxes(0, 1)

    def _check_step(self, frame: pd.DataFrame) -> None:
        """Raise an error for slopes of trees over steps that are too short.

        The package asks for both ends of a step in turn, in frames with a `term`.
        """
        before, self._before = self._before, frame if "term" in frame else None
        if before is None or self._before is None or len(before) != len(frame):
            return
        if kind_of(predictor_of(self.ensemble).kernel) is not KernelKind.TREES:
            return
        training = training_rows(self.ensemble)
        for name in training.select_dtypes("number").columns:
            steps = (frame[name] - before[name]).abs()
            if not steps.max() > 0:
                continue
            values = observed_values(training, name)
            ends = np.concatenate([before[name], frame[name]])
            if values.size == 2 and not np.isin(ends, values).all():
                raise ValueError(
                    f"{name!r} has two values, {values[0]:g} and {values[1]:g}; slopes "
                    "of trees need observed values. Compare these two with "
                    "comparisons(), or use avg_slopes() of the results."
                )
            spread = float(training[name].std())
            least = max(SHORT * spread, float(np.diff(values).min(initial=spread)))
            if steps.max() < least:
                raise ValueError(
                    f"a step of {steps.max():.2g} in {name!r} is too short for a slope "
                    "of trees, which are step functions: use a larger step, such as "
                    f"eps={max(spread, least):.2g}, or avg_slopes() of the results."
                )

    def get_predict(self, params: Floats, newdata: Floats) -> Any:
        """Predict from the weights of the learners and the output of `get_exog`."""
        import polars as pl  # noqa: PLC0415 a dependency of marginaleffects

        changed = np.flatnonzero(params != 1)
        steps = STEP * (params[changed] - 1)
        estimates = newdata[:, 0] + np.einsum(
            "rbc,b->rc", newdata[:, 1 + changed], steps
        )
        self._n_predictions = estimates.size
        rows = np.arange(len(estimates), dtype=np.int32)
        classes = predictor_of(self.ensemble).classes or ()
        if estimates.shape[1] == 1:
            return pl.DataFrame({"rowid": rows, "estimate": estimates[:, 0]})
        return pl.DataFrame(
            {
                "rowid": np.tile(rows, len(classes)),
                "group": np.repeat([str(level) for level in classes], len(rows)),
                "estimate": estimates.T.ravel(),
            }
        )

    def variances(self, jacobian: Floats) -> Floats:
        """Estimate variances from the derivatives by every learner, (estimates, B)."""
        # Averages have fewer rows than there were predictions.
        of_points = len(jacobian) == self._n_predictions
        estimates = learner_estimates(self.ensemble, jacobian.T, of_points=of_points)
        self.df_resid = float(estimates.df.min())
        return np.asarray(estimates.bse**2)


def learner_estimates(
    results: "EnsembleResults", values: Floats, *, of_points: bool
) -> Estimates:
    """Estimate from values of shape (B, m): predictions, or averages of them."""
    orders = results.orders
    if orders is not None and not of_points:
        orders = average_orders(orders)
    values = np.ascontiguousarray(values)
    return estimate(results.design, values, results.variance, None, orders)


def marginal_model(results: "EnsembleResults") -> Any:
    """Compute `EnsembleResults.to_marginaleffects`."""
    try:
        import polars as pl  # noqa: PLC0415 optional
        from marginaleffects.classes import ModelAbstract, ModelVault  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "the package marginaleffects is needed: pip install "
            '"vstatkit[marginaleffects]".'
        ) from error
    kind = type("MarginalModel", (EnsembleModel, ModelAbstract), {"ensemble": results})
    predictor = predictor_of(results)
    try:
        vault = ModelVault(
            formula=lambda data: (data, data),  # the package codes nothing
            modeldata=_with_levels(pl, training_rows(results)),
            package="vstatkit",
            variable_names=[results.info.response, *predictor_names(predictor)],
        )
        return kind(results, vault)
    except pl.exceptions.PolarsError as error:
        raise ImportError(
            f"this marginaleffects does not work with polars {pl.__version__}; "
            'versions below 2 do: pip install "polars<2".'
        ) from error


def _with_levels(pl: Any, training: pd.DataFrame) -> Any:
    """Convert training rows to polars, factors with their levels."""
    columns = {}
    for name, column in training.items():
        kind = getattr(column.dtype, "categories", column).dtype
        if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_numeric_dtype(kind):
            columns[name] = pl.Series(name, column.to_numpy())
            continue
        levels = [str(level) for level in pd.Categorical(column).categories]
        pairs = zip(column, column.isna(), strict=True)
        texts = [None if missing else str(value) for value, missing in pairs]
        columns[name] = pl.Series(name, texts, dtype=pl.Enum(levels))
    return pl.DataFrame(columns)


def _convert_rows(newdata: Any, training: pd.DataFrame) -> pd.DataFrame:
    """Convert rows of the package to the dtypes of the training rows."""
    frame: pd.DataFrame = newdata.to_pandas()
    converted: dict[Any, Any] = {}
    for name in training.columns.intersection(frame.columns):
        kind, column = training[name].dtype, frame[name]
        if isinstance(kind, pd.CategoricalDtype):
            known = {str(level): level for level in kind.categories}
            values = [known.get(text, text) for text in column]
            converted[name] = pd.Categorical(values, dtype=kind)
        elif isinstance(column.dtype, pd.CategoricalDtype):
            converted[name] = column.astype(object)
    return frame.assign(**converted)
