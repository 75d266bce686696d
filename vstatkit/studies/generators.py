"""The paper's two distributions of data, as functions of a stream."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit import datasets


@dataclass(frozen=True)
class Mars:
    """Friedman's function with the constant 0.05 that the paper prints.

    Attributes
    ----------
    n : int
        Observations.
    offset : float
        Centre of the quadratic term.
    """

    n: int = 500
    offset: float = 0.05

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        return datasets.mars(self.n, rng=rng, offset=self.offset)


@dataclass(frozen=True)
class Line:
    """`y = 2 x + e`, with x uniform on (0, 20) and standard normal noise.

    Attributes
    ----------
    n : int
        Observations.
    """

    n: int = 500

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        x = 20 * rng.uniform(size=self.n)
        return pd.DataFrame({"x": x, "y": 2 * x + rng.standard_normal(self.n)})
