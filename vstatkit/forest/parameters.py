"""Parameters of the forests, checked when they are fitted."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Floats, Ints
from vstatkit.formula.frames import nearest
from vstatkit.sampling.design import check_size
from vstatkit.sampling.registry import subsample_size

BALANCED = ("balanced", "balanced_subsample")
"""Weights of classes that are made from their shares: of all rows, or of a tree's."""


OTHER_NAMES = {
    "B": "n_estimators",
    "k": "max_samples",
    "mtry": "max_features",
    "n_trees": "n_estimators",
    "ntree": "n_estimators",
    "num_trees": "n_estimators",
    "replace": "bootstrap",
    "rng": "random_state",
    "seed": "random_state",
}
"""What other libraries, and `fit`, call some parameters."""


def check_names(kind: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuse parameters that there are not.

    Examples
    --------
    >>> check_names("Forest", ["n_estimators"], {"n_estimators": 5})
    """
    for name in given:
        if name in known:
            continue
        other = OTHER_NAMES.get(name)
        meant = f"; here it is called {other!r}." if other else nearest(name, known)
        raise TypeError(
            f"{kind} has no parameter {name!r}{meant} It takes {', '.join(known)}."
        )


def check_tree_number(given: Any) -> None:
    """Refuse what is no number of trees."""
    if given != "auto" and not (is_whole(given) and int(given) >= 1):
        raise ValueError(
            "`n_estimators` must be 'auto' or a whole number, at least 1; got "
            f"{given!r}."
        )


def check_flag(name: str, given: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(given, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False; got {given!r}.")


def check_workers(n_jobs: Any) -> None:
    """Refuse what joblib cannot count."""
    if n_jobs is not None and not (is_whole(n_jobs) and int(n_jobs) != 0):
        raise ValueError(
            "`n_jobs` must be None or a whole number other than 0 (-1 for all "
            f"processors); got {n_jobs!r}."
        )


def is_whole(given: Any) -> bool:
    """Tell whole numbers; True and False are none.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def rows_per_tree(max_samples: Any, n: int, *, replace: bool) -> int:
    """Count the rows that a tree sees."""
    if max_samples is None:
        return n
    try:
        size = subsample_size(max_samples, n)
        check_size(n, size, replace=replace)
    except (TypeError, ValueError) as error:
        bound = "" if replace else f" that is at most {n}"
        raise type(error)(
            "`max_samples` must be None, a number of rows of at least 1"
            f"{bound}, or a fraction of them in (0, 1]; got {max_samples!r}."
        ) from error
    return size


def weights_of_classes(
    class_weight: Any, classes: Sequence[Any] | NDArray[Any], codes: Ints
) -> Floats | None:
    """Weigh every row by its class; None where all weigh the same.

    Parameters
    ----------
    class_weight : mapping, "balanced", "balanced_subsample" or None
        Weights by label, classes that are not named having one; or n / (K n_c) for
        the n_c rows of each of K classes. Those of a tree's own rows are left to the
        tree.
    classes : sequence of length K
        Labels.
    codes : ndarray of shape (n,)
        Class of every row.

    Examples
    --------
    >>> weights_of_classes({"a": 2}, ["a", "b"], np.array([0, 1, 1]))
    array([2., 1., 1.])
    >>> weights_of_classes("balanced", ["a", "b"], np.array([0, 1, 1]))
    array([1.5 , 0.75, 0.75])
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight in BALANCED:
        if class_weight != "balanced":
            return None
        counts = np.bincount(codes, minlength=len(classes))
        return np.asarray((codes.size / (len(classes) * counts))[codes])
    if not isinstance(class_weight, Mapping):
        raise TypeError(
            "`class_weight` must be 'balanced', 'balanced_subsample', a dict of "
            f"weights by label, or None; got {class_weight!r}."
        )
    known = list(classes)
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(
                f"`class_weight` names {label!r}, which is no class of `y`"
                f"{nearest(str(label), [str(one) for one in known])} They are "
                f"{', '.join(repr(one) for one in np.asarray(classes).tolist())}."
            )
        number = isinstance(weight, float | int | np.number)
        if not (number and 0 <= weight < np.inf):
            raise ValueError(
                "`class_weight` must hold finite numbers of at least 0; got "
                f"{weight!r} for {label!r}."
            )
    by_class = np.array([float(class_weight.get(one, 1.0)) for one in known])
    return np.asarray(by_class[codes])
