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
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
class Transformed(EstimateTable):
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

    @property
    def joint(self) -> "EnsembleResults":
        """The linear combinations."""
        return self.linear

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays."""
        found = self.linear.estimates
        support, tails = None, found.tails
        linear, shift = (self.bend < LINEAR).all(), self.value - found.estimate
        if found.support is not None and linear:
            known = found.support
            ends = known.low + shift, known.high + shift
            support = Support(*ends, known.nobs, known.average)
        if tails is not None:
            moved = tails.moved(shift)
            tails = moved if linear else replace(tails, low=-np.inf, high=np.inf)
        return replace(
            found, estimate=self.value, null=0.0, support=support, tails=tails
        )

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.average_tables import (  # noqa: PLC0415 slow import
            summarise_transformed,
        )

        return summarise_transformed(self, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the functions with their intervals.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> ratio = res.avg_effects().transform(lambda p: {"x1/x4": p["x1"] / p["x4"]})
        >>> [text.get_text() for text in ratio.plot().get_yticklabels()]
        ['x1/x4']
        """
        from vstatkit.results import pictures  # noqa: PLC0415 loads on demand

        return pictures.plot_transformed(self, alpha=alpha, ax=ax)

    def __repr__(self) -> str:
        return f"<Transformed: {len(self.value)} functions of estimates>"


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
    near = results.t_test(made.slopes)
    info = replace(near.info, growth=near.info.growth.relative)
    linear = replace(near, labels=pd.Index(names), null=None, info=info)
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
