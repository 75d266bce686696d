"""Keep missing values of R missing when reticulate converts data to Python."""

import sys
from typing import Any

from vstatkit.exceptions import VstatkitWarning, warn_caller

# R code that loads the bridge, which has the conversion.
LOAD_BRIDGE = "{ reticulate::import('r_bridge'); NULL }"


def register() -> None:
    """Load the R side of the bridge if Python runs inside R.

    reticulate converts missing integers of R to -2147483648, missing logicals to True
    and missing text to "NA", which cannot be distinguished from values in Python.
    """
    if "r_bridge" not in sys.modules:  # else it registers itself
        evaluate_in_r(LOAD_BRIDGE)


def evaluate_in_r(code: str) -> None:
    """Evaluate code in the R session that runs this Python; warn if that fails."""
    if "rpytools" not in sys.modules:  # reticulate's own
        return
    r: Any = getattr(sys.modules.get("__main__"), "r", None)
    try:
        r[code]
    except Exception as error:
        warn_caller(
            "R could not load the conversion of missing values for vstatkit "
            f"({error}); NA in integers, logicals and text would be converted to "
            "values. In R, run: source(reticulate::import('r_bridge')$r_file())",
            VstatkitWarning,
        )
