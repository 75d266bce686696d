"""The only importer of rpy2: start R, convert arrays, call functions."""

from typing import Any

import rpy2.robjects as ro
from rpy2.robjects import default_converter, numpy2ri

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
