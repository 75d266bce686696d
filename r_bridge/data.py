"""R's data sets as data frames."""

import pandas as pd

from r_bridge import session
from r_bridge.convert import from_r_frame
from r_bridge.exceptions import RError
from vstatkit.formula.frames import nearest

_HAS_PACKAGE = "function(package) nzchar(system.file(package = package))"

_FIND = """
function(package, name, file) {
  shelf <- new.env()
  utils::data(list = file, package = package, envir = shelf)
  found <- get(name, envir = shelf, inherits = FALSE)
  made <- as.data.frame(found)
  if (is.null(dim(found)) && ncol(made) == 1) names(made) <- name
  made
}
"""

# A file may hold several data sets; it is then listed as "lung (cancer)".
_FILES = r"""
function(package) {
  items <- utils::data(package = package)$results[, "Item"]
  files <- sub("^.* \\((.*)\\)$", "\\1", items)
  as.list(setNames(files, sub(" .*", "", items)))
}
"""


def dataset(package: str, name: str) -> pd.DataFrame:
    """Load a data set that comes with an R package.

    Parameters
    ----------
    package : str
        An R package, such as "MASS", or "datasets" for R's own.
    name : str
        Name of the data set.

    Returns
    -------
    DataFrame
        Factors are categories, dates are dates, NA is missing. Row names, where R
        has any, are the index. A vector is a column with the name of the data set.

    Examples
    --------
    >>> import r_bridge
    >>> r_bridge.dataset("MASS", "Boston").shape  # doctest: +SKIP
    (506, 14)
    """
    for argument, given in (("package", package), ("name", name)):
        if not isinstance(given, str):
            raise TypeError(f"`{argument}` must be text; got {given!r}.")
    if not session.call(_HAS_PACKAGE, package)[0]:
        raise RError(
            f"R has no package {package!r}. In R: install.packages({package!r}); "
            f"Debian has many as r-cran-{package.lower()}."
        )
    files = session.call(_FILES, package)
    if name not in files:
        names = list(files)
        raise RError(
            f"R's package {package!r} has no data set {name!r}{nearest(name, names)} "
            f"It has {', '.join(names[:12])}{', ...' if len(names) > 12 else '.'}"
        )
    return from_r_frame(session.keep(_FIND, package, name, str(files[name][0])))
