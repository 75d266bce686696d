"""Pickle what a formula names besides columns: functions, modules, numbers."""

import inspect
import pickle
from collections.abc import Mapping
from typing import Any

import joblib

from vstatkit.exceptions import FormulaError

REMEDY = "Put what it computes into a column of the data, and fit again."


def pack_names(names: Mapping[str, Any]) -> dict[str, bytes]:
    """Pickle every name by itself; functions of the session with their code.

    Raises
    ------
    FormulaError
        When something cannot be pickled.
    """
    packed = {}
    for name, value in names.items():
        # joblib pickles functions that cannot be imported, and modules.
        carried = (
            value
            if inspect.isclass(value)
            else joblib.wrap_non_picklable_objects(value, keep_wrapper=False)
        )
        try:
            packed[name] = pickle.dumps(carried)
        except Exception as error:
            raise FormulaError(
                f"the formula uses {name!r}, which cannot be pickled ({error}). "
                f"{REMEDY}"
            ) from error
    return packed


def unpack_names(packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Read what `pack_names` wrote.

    Raises
    ------
    FormulaError
        When something is not available here, such as the module of a function.
    """
    names = {}
    for name, value in packed.items():
        try:
            names[name] = pickle.loads(value)
        except Exception as error:
            raise FormulaError(
                f"the formula uses {name!r}, which is not available here ({error}). "
                f"Make it importable, or where it is: {REMEDY}"
            ) from error
    return names
