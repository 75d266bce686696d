"""Independent subsamples."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vstatkit._typing import Ints
from vstatkit.native._engine import draw_members
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys


@dataclass(frozen=True)
class IidDesign(SubsampleDesign):
    """Independent subsamples: learner b depends on (seed, b) alone."""

    name: ClassVar[str] = "iid"

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        return np.asarray(draw_members(keys, self.n, self.k, self.replace))
