"""Functions that the R package in `r_bridge/vstatkit` calls.

Errors and warnings go over as text, so that they are conditions of R's there.
"""

import numbers
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge.forests import from_forest
from r_bridge.formula import KNOWN_FUNCTIONS, translate_formula
from vstatkit import EnsembleResults
from vstatkit._typing import Floats, Labels
from vstatkit.results.labels import label_texts

MAX_MESSAGE = 2000  # characters of an error that are handed on

# Calls up where no Python code is: formulas find columns there, and nothing else
NOBODY = 100_000


@dataclass(frozen=True)
class Answer:
    """Result of a call, or its error."""

    value: Any  # what was returned; None where the call failed
    failed: str | None  # why it failed
    kind: str  # name of the exception
    warned: list[str]  # warnings on the way


def ask(name: str, *arguments: Any) -> Answer:
    """Call one of the functions below, and catch its warnings and errors.

    Examples
    --------
    >>> ask("method", "text", "upper", None).value
    'TEXT'
    >>> ask("method", "text", "index", {"sub": "b"}).kind
    'TypeError'
    """
    value, failed, kind = None, None, ""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", vs.VstatkitWarning)
        try:
            with _interrupts_without_r():
                value = _FUNCTIONS[name](*arguments)
        except Exception as error:  # all of them are R's to handle
            if _interrupted(error):
                raise KeyboardInterrupt from error
            kind = type(error).__name__
            failed = (str(error) or kind)[:MAX_MESSAGE]
    texts = [str(one.message) for one in noted if _is_news(one.category)]
    return Answer(value, failed, kind, list(dict.fromkeys(texts)))


@contextmanager
def _interrupts_without_r() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, without evaluating R code in the handler.

    reticulate's handler asks R whether an interrupt is pending. R may handle it while
    it answers, and jump over the frames of Python and of compiled code, which then wait
    forever for a lock that they hold. reticulate clears R's flag when it receives the
    exception.
    """
    signals = sys.modules.get("rpytools.signals")
    callback = getattr(signals, "_callback", None)
    if signals is None or callback is None:  # another host, or another reticulate
        yield
        return
    setattr(signals, "_callback", lambda reset: True)  # noqa: B010 not in its stubs
    try:
        yield
    finally:
        setattr(signals, "_callback", callback)  # noqa: B010


def _interrupted(error: Exception) -> bool:
    """Return whether an error was caused by an interrupt."""
    frames = traceback.walk_tb(error.__traceback__)
    names = (frame.f_globals.get("__name__") for frame, _ in frames)
    return "rpytools.signals" in names


def _is_news(category: type[Warning]) -> bool:
    """Return whether a warning is for users: not for developers, not from numpy."""
    others = (DeprecationWarning, PendingDeprecationWarning, RuntimeWarning)
    return not issubclass(category, others)


def known_functions() -> list[str]:
    """List functions that formulas support; R computes others as columns."""
    return sorted(KNOWN_FUNCTIONS)


def fit(
    formula: str, data: pd.DataFrame, options: Mapping[str, Any] | None
) -> EnsembleResults:
    """Fit an R formula, given as text."""
    text = translate_formula(formula)
    made = vs.fit(text, data, eval_env=NOBODY, **dict(options or {}))
    return made if made.info.groups is not None else _with_row_names(made)


def _with_row_names(results: EnsembleResults) -> EnsembleResults:
    """Label observations by R's row names."""
    return replace(results, units=pd.Index(_row_names(results.units)))


def adopt(
    model: Any,
    data: pd.DataFrame,
    newdata: pd.DataFrame,
    options: Mapping[str, Any] | None,
) -> EnsembleResults:
    """Compute standard errors for a forest fitted in R."""
    made = from_forest(model, data, newdata, **dict(options or {}))
    return _with_row_names(made) if made.units.equals(data.index) else made


def method(value: Any, name: str, options: Mapping[str, Any] | None) -> Any:
    """Call a method by its name."""
    return getattr(value, name)(**dict(options or {}))


def texts(value: Any) -> str:
    """Return the printed text of an object."""
    return str(value)


def out_of_bag(results: EnsembleResults) -> dict[str, Any]:
    """Return out-of-bag predictions and the response of every row used.

    Returns
    -------
    dict
        `rows`, names of the rows; `fitted`, a list of columns, one or one for each of
        more than two classes, NaN where a row was never out of bag; `y`, numbers, or
        places of the classes from 1; `classes`, their names, or None.
    """
    recipe = results.recipe
    if recipe is None or recipe.oob is None or recipe.y is None:
        raise ValueError(
            "there are no out-of-bag predictions: the model was fitted with "
            "oob = FALSE, elsewhere, or its kernel does not predict. "
            "predict(fit, data) gives predictions by all learners."
        )
    predictor, oob = results.predictor, recipe.oob
    classes = None if predictor is None else predictor.classes
    fitted: Floats = np.full((len(recipe.y), oob.mean.shape[1]), np.nan)
    fitted[slice(None) if oob.rows is None else oob.rows] = oob.mean
    return {
        "rows": None if recipe.data is None else _row_names(recipe.data.index),
        "fitted": [column.tolist() for column in fitted.T],
        "y": (recipe.y + (classes is not None)).tolist(),
        "classes": None if classes is None else [_class_name(one) for one in classes],
    }


def _class_name(label: Any) -> str:
    """Write a class name in R's style: TRUE, and 4 for 4.0."""
    if isinstance(label, bool | np.bool_):
        return str(label).upper()
    return f"{label:.15g}" if isinstance(label, float) else str(label)


def _row_names(index: Labels) -> list[str]:
    """Return R's row names; numbered rows count from 1."""
    counted = pd.api.types.is_integer_dtype(index.dtype)
    return label_texts(index + 1 if counted else index)


def effects(results: EnsembleResults, alpha: float) -> pd.DataFrame | None:
    """Tabulate the effects, with unique names in `term`.

    Those of a factor are named by its levels, `g (a -> b)`.
    """
    found = results.effects_frame(alpha)
    if found is None:
        return None
    labels, ends = pd.Series(label_texts(found.index)), found[["from", "to"]]
    # Levels may be numbers too; those of two have one effect.
    named = labels.duplicated(keep=False) | ~ends["from"].map(_is_number).to_numpy()
    moves = [f" ({_end(start)} -> {_end(end)})" for start, end in ends.to_numpy()]
    terms = labels.where(~named, labels + moves)
    columns = {name: found[name].to_numpy() for name in found.columns}
    return pd.DataFrame({"term": terms, **columns})


def _is_number(end: Any) -> bool:
    return isinstance(end, numbers.Real)


def _end(end: Any) -> str:
    return f"{end:g}" if _is_number(end) else str(end)


def about(results: EnsembleResults) -> dict[str, Any]:
    """Return the header of printed results."""
    predictor = results.predictor
    classes = None if predictor is None else predictor.classes
    return {
        "kernel": results.info.kernel,
        "response": results.info.response,
        "nobs": int(results.nobs),
        "n_dropped": int(results.info.n_dropped),
        "n_units": int(results.design.n),
        "units": results.info.units,
        "k": int(results.k),
        "B": int(results.B),
        "replace": bool(results.replace),
        "variance": results.variance,
        "seed": str(results.seed),
        "predicts": predictor is not None,
        "classes": None if classes is None else [_class_name(one) for one in classes],
        "scores": {} if results.scores is None else dict(results.scores.table),
    }


def load(path: str) -> Any:
    """Load saved results."""
    return vs.load(path)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        about,
        adopt,
        effects,
        fit,
        known_functions,
        load,
        method,
        out_of_bag,
        texts,
    )
}
