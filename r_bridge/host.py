"""Python inside R: detection, and access to that R."""

import ctypes
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any


def inside_r() -> bool:
    """Return whether R runs this process, so that rpy2 must not start another.

    An R that rpy2 has started does not show its functions to the whole process.
    """
    if "rpytools" in sys.modules:  # reticulate's own
        return True
    try:
        return hasattr(ctypes.CDLL(None), "Rf_initEmbeddedR")
    except (OSError, TypeError):  # Windows has no such list of functions
        return False


def rscript() -> str | None:
    """Return the path of Rscript: of the R around this Python, or the first found."""
    own = Path(os.environ.get("R_HOME", ""), "bin", "Rscript")
    if inside_r() and own.exists():
        return str(own)
    return shutil.which("Rscript")


def ask_host(code: str) -> Any:
    """Evaluate code in the R around this Python, through reticulate."""
    r: Any = getattr(sys.modules.get("__main__"), "r", None)
    if r is None or "rpytools" not in sys.modules:
        raise LookupError("the R around this Python cannot be asked.")
    return r[code]


def host_has(name: str) -> bool:
    """Return whether the R around this Python has an object of this name."""
    code = f"exists({json.dumps(name)}, globalenv(), inherits = FALSE)"
    try:
        return bool(ask_host(code))
    except LookupError:
        return False


def save_from_host(name: str, path: Path) -> None:
    """Write an object of the R around this Python to an `.rds` file."""
    named, file = json.dumps(name), json.dumps(str(path))
    ask_host(f"{{ saveRDS(get({named}, globalenv()), {file}); NULL }}")


def host_libraries() -> list[str]:
    """List the library paths of the R around this Python."""
    try:
        found = ask_host(".libPaths()")
    except LookupError:
        return []
    return [found] if isinstance(found, str) else [str(one) for one in found]
