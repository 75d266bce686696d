"""The groups of learners that estimators compare."""

import numpy as np

from vstatkit._typing import Ints
from vstatkit.sampling.design import SubsampleDesign


def checked_groups(
    name: str,
    design: SubsampleDesign,
    B: int,
    *,
    least_size: int = 1,
    paired: bool = False,
) -> Ints:
    """Return the groups of B learners, checked for the estimator `name`.

    Parameters
    ----------
    name : str
        Of the estimator, for messages.
    design : SubsampleDesign
        The design that the learners were drawn by.
    B : int
        Number of learners.
    least_size : int
        Learners that a group needs.
    paired : bool
        Whether groups must have exactly two learners.
    """
    labels = design.groups(B)
    if labels is None:
        raise ValueError(
            f"{name!r} compares groups of learners; give the group of every "
            "learner as `groups`."
        )
    sizes = np.unique(labels, return_counts=True)[1]
    if sizes.size < 2:
        raise ValueError(f"{name!r} needs at least two groups of learners; got 1.")
    if paired and np.any(sizes != 2):
        raise ValueError(f"{name!r} needs groups of exactly two learners.")
    if np.any(sizes != sizes[0]) or sizes[0] < least_size:
        raise ValueError(
            f"{name!r} needs groups of one size, at least two learners for "
            f"'little_bags' and 'shards'; got sizes {sizes.min()} to {sizes.max()}."
        )
    return labels
