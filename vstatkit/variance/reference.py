"""Where learners are compared beyond the first order."""

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.streams import Purpose, stream

MOST_REFERENCES = 300
"""Most reference values that are pooled."""


def spread_columns(m: int) -> Ints:
    """Choose reference values among m, evenly."""
    return np.unique(np.linspace(0, m - 1, min(m, MOST_REFERENCES)).astype(np.int64))


def reference_rows(X: Floats, seed: int, n_outputs: int = 1) -> Floats:
    """Draw rows that are like those of the data, but not in it, from the seed alone.

    A learner that holds a row fits it, but what counts is how it predicts others. Each
    reference row takes every feature from one or the other of two rows.
    """
    rows = reference_places(len(X), X.shape[1], seed, n_outputs)
    return np.asarray(np.take_along_axis(X, rows, axis=0))


def reference_places(n: int, p: int, seed: int, n_outputs: int = 1) -> Ints:
    """Draw the row that each feature of every reference row is taken from, (m, p)."""
    rng = stream(seed, 0, Purpose.REFERENCE)
    m = max(1, MOST_REFERENCES // n_outputs)
    first, second = rng.integers(n, size=(2, m, 1))
    return np.asarray(np.where(rng.random((m, p)) < 0.5, first, second))
