"""Linear restrictions on named parameters."""

from collections.abc import Sequence

import numpy as np

from vstatkit._typing import Floats, Restrictions
from vstatkit.formula.engine import read_constraint

MAX_NAMES = 30
"""Names that an error lists."""


def one_text(R: Restrictions) -> Restrictions:
    """Join a list of restrictions in words; leave all else as it is.

    Examples
    --------
    >>> one_text(["x1 = 0", "x2 = 0"])
    'x1 = 0, x2 = 0'
    """
    if not isinstance(R, list | tuple) or not R:
        return R
    texts = [one for one in R if isinstance(one, str)]
    return ", ".join(texts) if len(texts) == len(R) else R


def linear_constraint(
    R: Restrictions, names: Sequence[str]
) -> tuple[Floats, Floats, list[str]]:
    """Read linear restrictions on named parameters.

    Parameters
    ----------
    R : str or matrix
        "x1 = x2, x3 = 0", or a matrix with a column for each parameter.
    names : sequence of str
        Parameters.

    Returns
    -------
    coefs, constants, labels
        `coefs @ params = constants`, shapes (r, m) and (r,), and a text for each.
    """
    if not isinstance(R, str):
        coefs = np.atleast_2d(np.asarray(R, dtype=np.float64))
        if coefs.shape[1] != len(names):
            raise ValueError(
                f"`R` must have a column for each of the {len(names)} estimates; "
                f"got {coefs.shape[1]}."
            )
        constants = np.zeros(len(coefs))
    else:
        if len(set(names)) < len(names):
            raise ValueError(
                "restrictions in words need estimates with different names; give a "
                "matrix with a column for each estimate."
            )
        coefs, constants = read_constraint(R, names, hint=_names_hint(names))
    texts = [part.strip() for part in R.split(",")] if isinstance(R, str) else []
    if len(texts) != len(coefs):
        texts = [f"c{j}" for j in range(len(coefs))]
    return coefs, constants, texts


def _names_hint(names: Sequence[str]) -> str:
    """Say which names there are."""
    shown = ", ".join(names[:MAX_NAMES])
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return f"\nThe names are: {shown}{more}."
