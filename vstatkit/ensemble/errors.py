"""Out-of-bag errors of single observations, by which new ones are bounded."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.scores import Scores
from vstatkit.ensemble.spread import Spread, learn_spread
from vstatkit.inference.conformal import unit_masses
from vstatkit.showing import short_repr


@dataclass(frozen=True)
class Errors:
    """Out-of-bag errors of the observations that have one.

    Attributes
    ----------
    sizes : ndarray of shape (s,)
        Residuals; for classes one minus the probability of the observed class.
    units : ndarray of shape (s,)
        Unit of the design (observation or cluster) that each belongs to.
    masses : ndarray of shape (s,)
        How much each counts; a unit one on average.
    codes : ndarray of shape (s,) or None
        Observed classes, as codes; None for numbers.
    expected : ndarray of shape (s,) or None
        Absolute errors that were to be expected, by trees that did not see the unit.
    spread : Spread or None
        Expects errors elsewhere.
    """

    sizes: Floats
    units: Ints
    masses: Floats
    codes: Ints | None = None
    expected: Floats | None = None
    spread: Spread | None = None

    __repr__ = short_repr

    @property
    def n_units(self) -> int:
        """Number of units that the errors belong to."""
        return int(np.unique(self.units).size)


def collect_errors(
    scores: Scores,
    kernel: Any,
    clusters: Ints | None,
    *,
    seed: int,
    n_jobs: int | None,
) -> Errors | None:
    """Put errors together, and learn how large they are where.

    Parameters
    ----------
    scores : Scores
        Out-of-bag scores.
    kernel : object
        Its design matrix `X`, `weights` and `levels` are used, as far as there are
        any: without a matrix nothing is learnt.
    clusters : ndarray of shape (n,) or None
        Unit of every observation.
    seed : int
        Seed of the ensemble.
    n_jobs : int or None
        Workers.

    Returns
    -------
    Errors or None
        None where it is not known whose they are. Observations without weight are
        left out.
    """
    rows = scores.rows
    if rows is None or rows.size == 0:
        return None
    given = getattr(kernel, "weights", None)
    all_weights: Floats | None = given if isinstance(given, np.ndarray) else None
    sizes = scores.residuals if scores.shares is None else 1 - scores.shares
    codes, weights = scores.codes, None
    if all_weights is not None:
        counts = all_weights[rows] > 0
        rows, sizes = rows[counts], sizes[counts]
        codes = None if codes is None else codes[counts]
        weights = all_weights[rows]
        if rows.size == 0:
            return None
    units = rows if clusters is None else clusters[rows]
    errors = Errors(sizes, units, unit_masses(units, weights), codes)
    X = getattr(kernel, "X", None)
    if codes is not None or not isinstance(X, np.ndarray):
        return errors
    spread, expected = learn_spread(
        np.asarray(X[rows], dtype=np.float64),
        np.abs(sizes),
        units,
        weights=weights,
        levels=getattr(kernel, "levels", None),
        seed=seed,
        n_jobs=n_jobs,
    )
    return Errors(sizes, units, errors.masses, None, expected, spread)
