"""The classes that new observations may have."""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ClassSets(pd.DataFrame):
    """Which classes new observations may have; a data frame that has a picture.

    A row for each point and a column for each class: whether it is in the set.
    `attrs["least_probability"]` has the probability from which a class is in a set.
    Rows and classes that are chosen from it, as by `head()`, have the picture too; what
    is computed from it is a data frame like any other.

    Attributes
    ----------
    probabilities : DataFrame
        Of all rows and classes.
    alpha : float
        One minus the coverage.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.iris()
    >>> res = vs.fit("species ~ petal_length", data, B=200, rng=1)
    >>> sets = res.get_prediction({"petal_length": [1.4, 4.9]}).class_sets(0.05)
    >>> sets.probabilities.shape
    (2, 3)
    >>> sets.plot().get_xlabel()
    'class, in a set from a probability of 0.34 on'
    """

    _metadata: ClassVar[list[str]] = ["probabilities", "alpha"]
    probabilities: pd.DataFrame
    alpha: float

    @property
    def _constructor(self) -> Callable[..., Any]:
        return _sets_or_frame

    def plot(self, ax: "Axes | None" = None) -> "Axes":  # type: ignore[override]
        """Draw the sets, probabilities as shades; the first 40 rows of more."""
        from vstatkit.results.set_pictures import draw_sets  # noqa: PLC0415 on demand

        return draw_sets(shown_shares(self), self, ax)


def _sets_or_frame(*args: Any, **options: Any) -> pd.DataFrame:
    """Make what pandas computes from sets: sets, or another table where it is none."""
    frame = pd.DataFrame(*args, **options)
    sets = len(frame.columns) > 0 and all(kind.kind == "b" for kind in frame.dtypes)
    return ClassSets(frame) if sets else frame


def shown_shares(sets: ClassSets) -> pd.DataFrame:
    """Probabilities of the rows and classes that are left, found by their labels."""
    whole = getattr(sets, "probabilities", None)
    if isinstance(whole, pd.DataFrame):
        names = [name for name in whole.columns if name in sets.columns]
        rows = _rows_of(whole, sets.index)
        if names and rows is not None:
            least = np.array([sets.attrs["least_probability"][name] for name in names])
            made = members(rows[names].to_numpy(), least)
            if np.array_equal(made, sets[names].to_numpy()):
                return rows[names]
    raise ValueError(
        "these are not rows of sets as `class_sets` gives them, or rows whose labels "
        "repeat. Draw the sets before you change them, or predict the rows by "
        "themselves: get_prediction(rows).class_sets().plot()."
    )


def _rows_of(whole: pd.DataFrame, labels: Labels) -> pd.DataFrame | None:
    if labels.equals(whole.index):
        return whole
    found = whole.loc[labels] if labels.isin(whole.index).all() else None
    return found if found is not None and len(found) == len(labels) else None


def members(shares: Floats, least: Floats) -> Bools:
    """Say which classes are probable enough.

    Errors are compared, as they were when the thresholds were found: rounding must
    not put out the row that a threshold comes from.
    """
    return 1 - shares <= 1 - least


def probable_classes(
    shares: Floats,
    least: Floats,
    index: Labels,
    classes: Sequence[Hashable],
    alpha: float,
) -> ClassSets:
    """Put the classes that are probable enough into sets.

    Parameters
    ----------
    shares : ndarray of shape (q, K)
        Probabilities of the classes.
    least : ndarray of shape (K,)
        Probability from which a class is in a set.
    index : Index of length q
        Labels of the points.
    classes : sequence of length K
        Names of the classes.
    alpha : float
        One minus the coverage.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> shares, least = np.array([[0.7, 0.3]]), np.array([0.4, 0.2])
    >>> probable_classes(shares, least, pd.Index([0]), ["a", "b"], 0.1).loc[0].all()
    np.True_
    """
    sets = ClassSets(members(shares, least), index, list(classes))
    sets.attrs["least_probability"] = dict(
        zip(classes, np.asarray(least).tolist(), strict=True)
    )
    sets.probabilities = pd.DataFrame(shares, index, list(classes))
    sets.alpha = alpha
    return sets
