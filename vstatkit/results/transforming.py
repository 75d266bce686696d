"""Functions of several estimates, by the delta method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.inference.delta import gradient
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.intervals import Support
from vstatkit.results.tables import estimates_frame, label_texts
from vstatkit.results.tabular import Tabular

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults

Function = Callable[[Any], Any]

LINEAR = 1e-8
"""Bend below which a function is linear, up to rounding."""

BENT = 0.5
"""Bend from which the table says that the delta method may not hold."""


class Named(np.ndarray):
    """Estimates by their places, as an array has them, or by their names."""

    names: dict[str, int]

    def __getitem__(self, key: Any) -> Any:
        """Take an estimate by its name, or any part of an array."""
        if isinstance(key, str):
            if key not in self.names:
                listed = ", ".join(self.names)
                raise KeyError(f"there is no estimate {key!r}; the names are {listed}.")
            return float(np.asarray(self)[self.names[key]])
        return np.asarray(self)[key]


def _named(values: Floats, texts: list[str]) -> Named:
    made = np.array(values, dtype=np.float64).view(Named)
    made.names = {text: place for place, text in enumerate(texts)}
    return made


@dataclass(frozen=True)
class Transformed(Tabular):
    """Functions of estimates, with their uncertainty.

    Attributes
    ----------
    linear : EnsembleResults
        The linear combinations of the estimates that the functions are near them.
    value : ndarray of shape (r,)
        The functions at the estimates.
    bend : ndarray of shape (r,)
        How much each function departs from a line one standard error away, relative
        to what the line changes by. Where it is large the delta method may not hold.
    """

    linear: "EnsembleResults"
    value: Floats
    bend: Floats

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays."""
        found = self.linear.estimates
        support = None
        if found.support is not None and (self.bend < LINEAR).all():
            shift, known = self.value - found.estimate, found.support
            support = Support(known.low + shift, known.high + shift, known.nobs)
        return replace(found, estimate=self.value, null=0.0, support=support)

    def _series(self, values: Floats, name: str) -> pd.Series:
        return pd.Series(values, self.linear.labels, name=name)

    @property
    def params(self) -> pd.Series:
        """The functions at the estimates."""
        return self._series(self.value, "params")

    @property
    def bse(self) -> pd.Series:
        """Standard errors."""
        return self._series(self.estimates.bse, "bse")

    @property
    def df(self) -> pd.Series:
        """Degrees of freedom of the variances."""
        return self._series(self.estimates.df, "df")

    @property
    def zvalues(self) -> pd.Series:
        """Functions over their standard errors."""
        return self._series(self.estimates.zvalues, "zvalues")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values for the null of zero."""
        return self._series(self.estimates.pvalues, "pvalues")

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, with intervals of 95 %."""
        return self.summary_frame()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate estimates, tests and intervals of coverage 1 - alpha."""
        return estimates_frame(self.estimates, self.linear.labels, alpha)

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals, one by one or all at once."""
        critical = self.linear.band_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self.linear.labels, ["lower", "upper"])

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the functions, positive semi-definite."""
        return self.linear.cov_params()

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.average_tables import (  # noqa: PLC0415 slow import
            summarise_transformed,
        )

        return summarise_transformed(self, alpha)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return f"<Transformed: {len(self.value)} functions of estimates>"

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


def transformed(results: "EnsembleResults", f: Function) -> Transformed:
    """Apply a function to the estimates; see `EnsembleResults.transform`.

    Near the estimates the function is a linear combination of them, and that of
    kernels is a kernel: its standard error comes from the learners, as in `t_test`.
    """
    if not callable(f):
        raise TypeError(
            f"`f` must be a function of the estimates; got {type(f).__name__}."
        )
    texts = label_texts(results.labels)
    first, names = _read(f(_named(results.estimates.estimate, texts)))

    def function(at: Floats) -> Floats:
        value, again = _read(f(_named(at, texts)))
        if again != names or value.shape != first.shape:
            raise ValueError(
                "the function must return the same names each time; it returned "
                f"{names}, then {again}."
            )
        return value

    found = results.estimates
    made = gradient(function, found.estimate, found.bse)
    linear = replace(results.t_test(made.slopes), labels=pd.Index(names), null=None)
    return Transformed(linear, made.value, made.bend)


def _read(answer: Any) -> tuple[Floats, list[Any]]:
    """Read what a function returned: numbers and their names."""
    numbers: Any
    if isinstance(answer, pd.Series):
        names, numbers = list(answer.index), answer.to_numpy()
    elif isinstance(answer, Mapping):
        names, numbers = list(answer), list(answer.values())
    else:
        numbers = np.atleast_1d(np.asarray(answer))
        names = (
            ["f"] if np.ndim(answer) == 0 else [f"f{j}" for j in range(len(numbers))]
        )
    try:
        value = np.array([float(one) for one in numbers], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "the function must return a number, a one-dimensional array, a dict or a "
            f"Series of numbers; got {type(answer).__name__}."
        ) from error
    if value.size == 0:
        raise ValueError(
            "the function must return at least one number; it returned none."
        )
    return value, names
