"""Designs on units that were drawn again."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.design import SubsampleDesign


@dataclass(frozen=True, eq=False)
class ResampledDesign(SubsampleDesign):
    """Another design, on units drawn with replacement: a data set of the bootstrap.

    A unit that was drawn twice is two units of the data set, of which the same
    subsample may hold both.

    Attributes
    ----------
    inner : SubsampleDesign
        Draws places in the data set.
    drawn : ndarray of shape (n,)
        The unit in each place.
    """

    inner: SubsampleDesign
    drawn: Ints = field(repr=False)

    name: ClassVar[str] = "resampled"

    def __post_init__(self) -> None:
        """Leave the checks to the inner design."""

    @classmethod
    def of(cls, inner: SubsampleDesign, drawn: Ints) -> "ResampledDesign":
        """Draw from some units by a design."""
        return cls(inner.n, inner.k, inner.replace, inner.seed, inner, drawn)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        return np.asarray(self.drawn[self.inner.members(start, stop)])

    def weights(self, start: int, stop: int) -> Floats | None:
        """Weigh learners as the inner design does."""
        return self.inner.weights(start, stop)

    def groups(self, B: int) -> Ints | None:
        """Group learners as the inner design does."""
        return self.inner.groups(B)

    @property
    def grouped(self) -> bool:
        """Whether the inner design draws learners in groups."""
        return self.inner.grouped
