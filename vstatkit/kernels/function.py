"""Functions of a subsample as kernels."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import KernelKind, RowKernel


@dataclass(frozen=True)
class FunctionKernel(RowKernel):
    """A user's function of a subsample."""

    # Takes the subsample (see `arguments`) and returns a number, an array, a Series or
    # a dict
    function: Callable[..., Any]
    # Data sets whose rows are subsampled together, one positional argument each: arrays
    # or data frames with observations in rows
    arguments: tuple[Any, ...]
    # Components that every value must have; None before the first call
    names: tuple[str, ...] | None = None

    # Statistics are smooth functions of the counts, as a rule.
    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Any:
        """Evaluate the function on the literal subsample."""
        rows = np.repeat(rows, times)
        return self.function(*(take_rows(data, rows) for data in self.arguments))

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Flatten the function's answer, components in the order of the first."""
        names, value = name_values(learner)
        if value.size == 0:
            raise ValueError("it returned no numbers.")
        if self.names is None or tuple(names) == self.names:
            return value
        if len(names) != len(self.names):
            raise ValueError(
                f"it returned {value.size} numbers, but {len(self.names)} on the first "
                "subsample. A kernel must return the same components every time."
            )
        if set(names) != set(self.names):
            raise ValueError(
                f"it returned the components {', '.join(names)}, but "
                f"{', '.join(self.names)} on the first subsample."
            )
        return value[[names.index(name) for name in self.names]]


def take_rows(data: Any, rows: Ints) -> Any:
    """Take rows of a frame, a Series or an array, in that order."""
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def name_values(result: Any) -> tuple[list[str], Floats]:
    """Name the components of what a kernel returned."""
    if isinstance(result, Mapping):
        result = pd.Series(result)
    if isinstance(result, pd.Series):
        return [str(name) for name in result.index], result.to_numpy(np.float64)
    value = np.asarray(result, dtype=np.float64)
    names = ["statistic"] if value.size == 1 else [f"h{j}" for j in range(value.size)]
    return names, value.ravel()


def n_positional(function: Callable[..., Any]) -> int:
    """Count the positional arguments that a kernel requires; 1 where unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return max(1, len(required))
