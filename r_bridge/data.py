"""R's data sets as data frames."""

import pandas as pd

from r_bridge import session
from r_bridge.convert import from_r_frame
from r_bridge.exceptions import RError
from vstatkit.frames import nearest

_HAS_PACKAGE = "function(package) nzchar(system.file(package = package))"

_FIND = """
function(package, name) {
  shelf <- new.env()
  found <- utils::data(list = name, package = package, envir = shelf)
  as.data.frame(get(name, envir = shelf))
}
"""

_NAMES = """
function(package) {
  items <- utils::data(package = package)$results[, "Item"]
  sub(" .*", "", items)
}
"""


def dataset(package: str, name: str) -> pd.DataFrame:
    """Load a data set that comes with a package of R.

    Parameters
    ----------
    package : str
        A package of R, such as "MASS", or "datasets" for R's own.
    name : str
        Name of the data set.

    Returns
    -------
    DataFrame
        Factors are categories, dates are dates, NA is missing. Row names, where R
        has any, are the index.

    Examples
    --------
    >>> import r_bridge
    >>> r_bridge.dataset("MASS", "Boston").shape  # doctest: +SKIP
    (506, 14)
    """
    if not session.call(_HAS_PACKAGE, package)[0]:
        raise RError(
            f"R has no package {package!r}. In R: install.packages({package!r}); "
            f"Debian has many as r-cran-{package.lower()}."
        )
    names = [str(one) for one in session.call(_NAMES, package)]
    if name not in names:
        raise RError(
            f"R's package {package!r} has no data set {name!r}{nearest(name, names)} "
            f"It has {', '.join(names[:12])}{', ...' if len(names) > 12 else '.'}"
        )
    return from_r_frame(session.keep(_FIND, package, name))
