"""Functions of several estimates, by the delta method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.gradients import gradient
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import EstimateTable, derive_table
from vstatkit.results.labels import label_texts
from vstatkit.results.model_description import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary


Function = Callable[[Any], Any]

LINEAR = 1e-8  # bend below which a function is linear, up to rounding
BENT = 0.5  # bend above which the table warns of the delta method


class NamedEstimates(np.ndarray):
    """Array of estimates that can also be indexed by name."""

    names: dict[str, int]

    def __getitem__(self, key: Any) -> Any:
        """Return an estimate by its name, or a part of the array."""
        if isinstance(key, str):
            if key not in self.names:
                listed = ", ".join(self.names)
                raise KeyError(f"there is no estimate {key!r}; the names are {listed}.")
            return float(np.asarray(self)[self.names[key]])
        return np.asarray(self)[key]


def _name_estimates(values: Floats, texts: list[str]) -> NamedEstimates:
    estimates = np.array(values, dtype=np.float64).view(NamedEstimates)
    estimates.names = {text: place for place, text in enumerate(texts)}
    return estimates


@pickled_plainly
@dataclass(frozen=True, repr=False)
class Transformed(EstimateTable):
    """Functions of estimates, with their uncertainty.

    Attributes
    ----------
    value : ndarray of shape (r,)
        The functions at the estimates.
    bend : ndarray of shape (r,)
        Departure of each function from a line at a distance of one standard error,
        relative to the change of the line. If it is large, the delta method may be
        inaccurate.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> ratio = res.avg_effects().transform(lambda p: {"x1/x4": p["x1"] / p["x4"]})
    >>> [text.get_text() for text in ratio.plot().get_yticklabels()]
    ['x1/x4']
    """

    value: Floats = field(default_factory=lambda: np.empty(0))
    bend: Floats = field(default_factory=lambda: np.empty(0))

    def _estimate(self) -> Estimates:
        """Estimate the functions; `values` are their linear approximations."""
        line = super()._estimate()
        support, tails = line.support, line.tails
        linear, shift = (self.bend < LINEAR).all(), self.value - line.estimate
        if support is not None:
            low, high = support.low + shift, support.high + shift
            support = replace(support, low=low, high=high) if linear else None
        if tails is not None and linear:
            tails = tails.shift(shift)
        elif tails is not None:
            tails = replace(tails, low=-np.inf, high=np.inf)
        return replace(
            line, estimate=self.value, null=0.0, support=support, tails=tails
        )

    @property
    def _named_table(self) -> EstimateTable:
        """The functions, with the values of learners shifted to their estimates."""
        shift = self.value - super()._estimate().estimate
        influence = self.leaf_influence
        return derive_table(
            self, EstimateTable, values=self.values + shift, leaf_influence=influence
        )

    def summary(self, alpha: float = 0.05) -> "Summary":  # type: ignore[override]
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_transformed  # noqa: PLC0415 slow import

        return summarise_transformed(self, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the functions with their intervals."""
        from vstatkit.plots.marginal import plot_transformed  # noqa: PLC0415 loads on demand

        return plot_transformed(self, alpha=alpha, ax=ax)

    def _column(self, alpha: float = 0.05) -> Column:
        names = label_texts(self.labels)
        frame = self.summary_frame(alpha)
        return self._make_column(frame, names, "functions", "by the delta method")

    def __repr__(self) -> str:
        return f"<Transformed: {len(self.value)} functions of estimates>"


def transform_estimates(table: EstimateTable, f: Function) -> Transformed:
    """Compute `EstimateTable.transform`.

    Near the estimates the function is a linear combination of them, so its standard
    error comes from the learners, as in `t_test`.
    """
    if not callable(f):
        raise TypeError(
            f"`f` must be a function of the estimates; got {type(f).__name__}."
        )
    texts = label_texts(table.labels)
    first, names = _read(f(_name_estimates(table.estimates.estimate, texts)))

    def function(at: Floats) -> Floats:
        value, again = _read(f(_name_estimates(at, texts)))
        if again != names or value.shape != first.shape:
            raise ValueError(
                "`f` must return the same names each time; it returned "
                f"{names}, then {again}."
            )
        return value

    local = gradient(function, table.estimates.estimate, table.estimates.bse)
    line = table.t_test(local.slopes)
    return derive_table(
        line,
        Transformed,
        labels=pd.Index(names),
        null=0.0,
        info=line.info.derive(line.info.title, other_units=True),
        value=local.value,
        bend=local.bend,
    )


def _read(answer: Any) -> tuple[Floats, list[Any]]:
    """Read the numbers that a function returned, and their names."""
    numbers: Any
    if isinstance(answer, pd.Series):
        names, numbers = list(answer.index), answer.to_numpy()
    elif isinstance(answer, Mapping):
        names, numbers = list(answer), list(answer.values())
    else:
        numbers = np.atleast_1d(np.asarray(answer))
        names = [f"f{j}" for j in range(len(numbers))] if np.ndim(answer) else ["f"]
    try:
        value = np.array([float(number) for number in numbers])
    except (TypeError, ValueError) as error:
        raise TypeError(
            "`f` must return a number, a one-dimensional array, a dict or a Series of "
            f"numbers; got {type(answer).__name__}."
        ) from error
    if value.size == 0:
        raise ValueError("`f` must return at least one number; it returned none.")
    return value, names
