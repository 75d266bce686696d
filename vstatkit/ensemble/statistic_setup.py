"""The task of a statistic: its kernel, and the names of its values."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from vstatkit._typing import Ints
from vstatkit.classical import classical_kernel
from vstatkit.ensemble.evaluation import Task, fit_learner
from vstatkit.ensemble.query import Query
from vstatkit.kernels.base import ArrayKernel
from vstatkit.kernels.registry import kernel_name
from vstatkit.kernels.user_defined import FunctionKernel, name_values
from vstatkit.sampling.design import SubsampleDesign


def probe_function(task: Task, kernel: FunctionKernel) -> tuple[Task, Query]:
    """Call the function once, for the names and the number of its values."""
    names, _ = name_values(fit_learner(replace(task, kernel=kernel), 0))
    known = replace(kernel, names=tuple(names))
    return replace(task, kernel=known), Query(pd.Index(names), None, None)


def statistic_task(
    h: str | Callable[..., Any],
    table: Any,
    design: SubsampleDesign,
    unit_of_row: Ints | None,
) -> tuple[Task, Query]:
    """Build the task of a statistic, and the labels of its values."""
    if isinstance(h, str):
        named = ArrayKernel(*classical_kernel(h, table, design.k))
        task = Task(named, design, None, unit_of_row, keep=False)
        return task, Query(pd.Index([h]), None, None)
    if not callable(h):
        raise TypeError(
            f"`h` must be a function or the name of a kernel; got {type(h).__name__}."
        )
    kernel = FunctionKernel(h, (table,))
    task = Task(kernel, design, None, unit_of_row, keep=False)
    task, query = probe_function(task, kernel)
    if list(query.labels) == ["statistic"]:
        query = replace(query, labels=pd.Index([kernel_name(h)]))
    return task, query
