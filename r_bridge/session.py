"""The only importer of rpy2: start R, convert arrays, call functions."""

import os
from typing import Any

_LIBRARY_PATH = os.environ.get("LD_LIBRARY_PATH")

import rpy2.robjects as ro  # noqa: E402 R starts here and changes the environment
from rpy2.robjects import default_converter, numpy2ri  # noqa: E402

# R puts its own folders first on the library path. The loader of this process has
# read the path already; children would find another libpython there.
if _LIBRARY_PATH is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = _LIBRARY_PATH

_CONVERTER = default_converter + numpy2ri.converter


def call(function: str, *arguments: Any, **options: Any) -> Any:
    """Call an R function on numpy arrays.

    Parameters
    ----------
    function : str
        An R expression that gives a function, such as `ranger:::rInfJack`.
    *arguments, **options
        Arrays and scalars.

    Returns
    -------
    numpy array; an R data frame becomes a record array

    Notes
    -----
    rpy2's global conversion rules are lost in threads, so the converter is set
    for this call alone.
    """
    with _CONVERTER.context():
        return ro.r(function)(*arguments, **options)
