"""Out-of-bag errors in files, and the trees that say how large they are where."""

from typing import Any, cast

import numpy as np

from vstatkit.ensemble.errors import Errors
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.spread import Spread
from vstatkit.exceptions import FileError
from vstatkit.kernels.stored_trees import TREE_CODEC
from vstatkit.kernels.trees import StoredTreeKernel
from vstatkit.packing import check, only, take, take_floats, take_size
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.storage.archive import Arrays

PREFIX = "spread_"
"""What the names of the arrays of these trees begin with."""

ERROR_ARRAYS = ("errors", *(PREFIX + name for name in TREE_CODEC.arrays))
"""Arrays of errors in a file."""

FIELDS = ("n_trees", "least", *TREE_CODEC.fields)


def pack_errors(results: EnsembleResults, arrays: Arrays) -> dict[str, Any] | None:
    """Write errors: sizes, units, masses, and classes or expected sizes, in rows.

    Of no use without learners, for which limits of new observations would be.
    """
    errors = results.out_of_bag_errors
    if errors is None or (errors.codes is None and errors.spread is None):
        return None
    last = errors.expected if errors.codes is None else errors.codes
    table = (errors.sizes, errors.units, errors.masses, last)
    arrays["errors"] = np.array(table, dtype=np.float64)
    spread = errors.spread
    if spread is None:
        return {"spread": None}
    trees: dict[str, Any] = {name: None for name in TREE_CODEC.fields}
    if spread.trees:
        trees, stacked = TREE_CODEC.pack(spread.kernel, spread.trees)
        arrays.update({PREFIX + name: one for name, one in stacked.items()})
    return {"spread": {"n_trees": len(spread.trees), "least": spread.least, **trees}}


def unpack_errors(
    packed: Any, arrays: Arrays, n: int, predictor: Predictor | None
) -> Errors | None:
    """Read what `pack_errors` wrote, for a design of n units."""
    if packed is None:
        return None
    only(packed, ("spread",), "`errors`")
    if predictor is None:
        raise FileError("it has errors, but no learners.")
    table = take_floats(arrays, "errors", 2)
    check(table.shape[0] == 4 and table.shape[1] > 0, "errors are missing.")
    sizes, units, masses, last = table
    whole = (units == np.floor(units)) & (units >= 0) & (units < n)
    check(whole.all(), "an error belongs to no unit.")
    check((masses > 0).all(), "an error has no mass.")
    kernel, numbers = predictor.kernel, units.astype(np.int64)
    if kernel.n_classes is not None:
        check(packed["spread"] is None, "errors of classes have no spread.")
        codes = np.isin(last, np.arange(kernel.n_classes))
        check(codes.all(), "an error is of no class.")
        check(((sizes >= 0) & (sizes <= 1)).all(), "an error is no probability.")
        return Errors(sizes, numbers, masses, last.astype(np.int64))
    check((last > 0).all(), "an expected error is not positive.")
    spread = _unpack_spread(packed["spread"], arrays, kernel.n_features)
    return Errors(sizes, numbers, masses, None, last, spread)


def _unpack_spread(packed: Any, arrays: Arrays, p: int) -> Spread:
    only(packed, FIELDS, "`spread`")
    T, least = take_size(packed, "n_trees", 0), take(packed, "least", float)
    check(0 < least < np.inf, "the least expected error is not positive.")
    if T == 0:
        return Spread(StoredTreeKernel(p, None, 0.0, 1.0), [], least)
    check(packed["n_classes"] is None, "expected errors are no classes.")
    own = {name: arrays.pop(PREFIX + name, None) for name in TREE_CODEC.arrays}
    found = {name: array for name, array in own.items() if array is not None}
    kernel, trees = TREE_CODEC.unpack(packed, found, T, p)
    return Spread(cast("StoredTreeKernel", kernel), trees, least)
