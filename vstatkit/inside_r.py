"""Under reticulate, ask R to read the file that lets its missing values cross."""

import sys
import warnings
from typing import Any

from vstatkit.exceptions import VstatkitWarning

ASK_R = "{ source(reticulate::import('r_bridge')$r_file()); NULL }"
"""R code; the conversion is R's to register, so that it is R that looks it up."""


def register() -> None:
    """Have R convert its values for us, where R is what runs this Python.

    reticulate writes R's missing whole numbers as -2147483648, missing truth values
    as True and missing text as "NA"; once here, they cannot be told from values.
    """
    if "rpytools" not in sys.modules:  # reticulate's own
        return
    r: Any = getattr(sys.modules.get("__main__"), "r", None)
    try:
        r[ASK_R]
    except Exception as error:
        warnings.warn(
            f"R could not be asked to convert its missing values for vstatkit "
            f"({error}); NA in whole numbers, truth values and text would arrive as "
            "values. In R, run: source(reticulate::import('r_bridge')$r_file())",
            VstatkitWarning,
            stacklevel=2,
        )
