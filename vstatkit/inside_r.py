"""Conversion of R's values under reticulate: missing values stay missing."""

import sys
import warnings
from typing import Any

from vstatkit.exceptions import VstatkitWarning

ASK_R = "{ reticulate::import('r_bridge'); NULL }"
"""R code; the conversion is the bridge's, so it is R that looks the bridge up."""


def register() -> None:
    """Have R load its side of the bridge, where R is what runs this Python.

    reticulate writes R's missing whole numbers as -2147483648, missing truth values
    as True and missing text as "NA"; once here, they cannot be told from values.
    """
    if "r_bridge" not in sys.modules:  # else it registers itself
        ask(ASK_R)


def ask(code: str) -> None:
    """Evaluate code in the R that runs this Python; warn where that fails."""
    if "rpytools" not in sys.modules:  # reticulate's own
        return
    r: Any = getattr(sys.modules.get("__main__"), "r", None)
    try:
        r[code]
    except Exception as error:
        warnings.warn(
            f"R could not be asked to convert its missing values for vstatkit "
            f"({error}); NA in whole numbers, truth values and text would arrive as "
            "values. In R, run: source(reticulate::import('r_bridge')$r_file())",
            VstatkitWarning,
            stacklevel=3,
        )
