"""R's data sets as data frames."""

import pandas as pd

from r_bridge import session
from r_bridge.convert import from_r_frame
from r_bridge.exceptions import RError
from vstatkit.text import suggest_name

OWN_PACKAGE = "datasets"  # where R has its own data sets

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

_ELSEWHERE = " Data of other packages are named with them: dataset('MASS', 'Boston')."


def dataset(package: str, name: str | None = None) -> pd.DataFrame:
    """Load a data set that comes with R, or with one of its packages.

    Parameters
    ----------
    package : str
        An R package, such as "MASS". Without a second argument it is the name of one
        of R's own data sets, such as "mtcars", or has both, as in "MASS::Boston".
    name : str, optional
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
    >>> r_bridge.dataset("mtcars").shape  # doctest: +SKIP
    (32, 11)
    """
    if not isinstance(package, str):
        raise TypeError(f"`package` must be text; got {package!r}.")
    if name is None:
        home, _, named = package.rpartition("::")
        package, name = home or OWN_PACKAGE, named
    if not isinstance(name, str):
        raise TypeError(f"`name` must be text; got {name!r}.")
    if not session.call(_HAS_PACKAGE, package)[0]:
        raise RError(
            f"R has no package {package!r}. In R: install.packages({package!r}); "
            f"Debian has many as r-cran-{package.lower()}."
        )
    files = session.call(_FILES, package)
    if name not in files:
        names = list(files)
        raise RError(
            f"R's package {package!r} has no data set {name!r}"
            f"{suggest_name(name, names)} It has "
            f"{', '.join(names[:12])}{', ...' if len(names) > 12 else '.'}"
            f"{_ELSEWHERE if package == OWN_PACKAGE else ''}"
        )
    return from_r_frame(session.keep(_FIND, package, name, str(files[name][0])))
