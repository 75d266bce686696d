"""Deal units at random, without holding a permutation of all of them.

A permutation of a billion units takes eight gigabytes. Here the unit at any place
is computed from the place alone, so every process deals the same cards and none holds
the pack.
"""

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Ints
from vstatkit.sampling.streams import Purpose, learner_keys

ROUNDS = 8
"""Rounds of mixing; with four, pairs of a dozen units are not dealt uniformly."""


def dealt(places: Ints, n: int, seed: int) -> Ints:
    """Units at places of a random order of `n` units.

    Parameters
    ----------
    places : ndarray of int
        Places, from 0 to n - 1.
    n : int
        Number of units.
    seed : int
        Seed of the order.

    Returns
    -------
    ndarray of int
        Units, of the shape of `places`; each occurs at exactly one place.

    Notes
    -----
    A place is a pair (a, b) in a table of about sqrt(n) rows and columns. Each
    round moves it within its column, by a hash of the column, then within its row, by a
    hash of the row: every move can be undone, so pairs stay distinct. Few pairs
    lie beyond n; they are moved on until they do not.

    References
    ----------
    Black and Rogaway (2002), Ciphers with arbitrary finite domains.
    doi:10.1007/3-540-45760-7_9

    Examples
    --------
    >>> sorted(dealt(np.arange(5), 5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    rows = int(np.ceil(np.sqrt(n)))
    table = (np.uint64(rows), np.uint64(-(-n // rows)))
    keys = learner_keys(seed, 0, 2 * ROUNDS, Purpose.DEALING)
    flat = places.ravel().astype(np.uint64)
    units = _mixed(flat, table, keys)
    beyond = np.flatnonzero(units >= n)
    while beyond.size:
        units[beyond] = _mixed(units[beyond], table, keys)
        beyond = beyond[units[beyond] >= n]
    return units.astype(np.int64).reshape(places.shape)


def _mixed(
    places: NDArray[np.uint64],
    table: tuple[np.uint64, np.uint64],
    keys: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    rows, columns = table
    row, column = np.divmod(places, columns)
    for first, second in keys.reshape(-1, 2):
        row = (row + _hashed(column + first) % rows) % rows
        column = (column + _hashed(row + second) % columns) % columns
    return row * columns + column


def _hashed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers, by the finaliser of murmur3."""
    z = (z ^ (z >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    z = (z ^ (z >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return z ^ (z >> np.uint64(33))
