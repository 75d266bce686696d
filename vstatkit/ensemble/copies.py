"""Copies of predictors: what they would be if the response did not depend on them."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.explained import Explained, Others, explain
from vstatkit.formula.frames import is_number
from vstatkit.sampling.streams import Purpose, stream

How = Literal["conditional", "permute"]
"""What takes the place of a predictor."""


@dataclass(frozen=True)
class Copier:
    """Makes copies of predictors, from the data and the seed alone.

    Attributes
    ----------
    frame : DataFrame with n rows
        All predictors.
    seed : int
        Seed of the copies.
    members : ndarray of shape (n,) or None
        Cluster of every row.
    n_jobs : int or None
        Workers.
    """

    frame: pd.DataFrame
    seed: int
    members: Ints | None = None
    n_jobs: int | None = None

    def others(self, names: Sequence[str]) -> Others:
        """Take all predictors but some."""
        rest = [name for name in self.frame.columns if name not in names]
        return Others(self.frame[rest], self.members, self.n_jobs)

    def copies(
        self,
        names: Sequence[str],
        how: How,
        number: int,
        others: Others | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yield the data, time after time, with other values of some predictors.

        Parameters
        ----------
        names : sequence of str
            Predictors that are replaced, together.
        how : {"conditional", "permute"}
            "conditional": what the other predictors say of it, plus what they leave
            unexplained, taken from another row. "permute": its value in another row.
        number : int
            How many copies.
        others : Others, optional
            All other predictors, so that what was computed of them is used again.

        Notes
        -----
        Several predictors are taken from the same row, so that they stay related to
        each other. Where rows come in clusters, the clusters' means and the rows'
        deviations from them change places separately, and a predictor that is
        constant within clusters stays so. Rows where a value is missing keep theirs.
        """
        check_how(how)
        names = list(names)
        live = self.frame[names].notna().all(axis=1).to_numpy()
        key = zlib.crc32("\0".join([how, *names]).encode())
        rng = stream(self.seed, key, Purpose.COPY)
        if others is None or how != "conditional":
            others = self.others(names)
        known = self._explained(names, how, live, others, rng)
        for _ in range(number):
            yield self.frame.assign(**known.drawn(self.frame, live, rng))

    def _explained(
        self,
        names: list[str],
        how: How,
        live: Bools,
        others: Others,
        rng: np.random.Generator,
    ) -> "_Known":
        frame = self.frame[live]
        members = None if self.members is None else self.members[live]
        spread = None
        if members is not None:
            # Clusters that lost all their rows to missing values are not counted.
            members = np.unique(members, return_inverse=True)[1]
            if _constant_within(frame[names], members):
                frame, spread, members = _per_cluster(frame, members), members, None
        rest = list(others.frame.columns) if how == "conditional" else []
        if rest != list(others.frame.columns) or spread is not None or not live.all():
            others = Others(frame[rest], members, self.n_jobs)
        found = {name: explain(frame[name], others, rng) for name in names}
        return _Known(found, members, spread)


@dataclass(frozen=True)
class _Known:
    """Predictors that are explained, and how their residuals change places.

    Attributes
    ----------
    found : dict
        The predictors.
    members : ndarray or None
        Cluster of every row, if these matter.
    spread : ndarray or None
        Cluster of every row, if the predictors have one value for each.
    """

    found: dict[str, Explained]
    members: Ints | None
    spread: Ints | None

    def drawn(
        self, frame: pd.DataFrame, live: Bools, rng: np.random.Generator
    ) -> dict[str, pd.Series]:
        """Draw copies of all of them."""
        table = np.column_stack([one.residual for one in self.found.values()])
        moved = shuffled(table, self.members, rng)
        made = {}
        for (name, one), residual in zip(self.found.items(), moved.T, strict=True):
            copy = one.redrawn(residual)
            if self.spread is not None:
                copy = copy.iloc[self.spread]
            column = frame[name].copy()
            column[live] = copy.to_numpy() if is_number(column) else copy.array
            made[name] = column
        return made


def shuffled(
    residuals: Floats, members: Ints | None, rng: np.random.Generator
) -> Floats:
    """Let the rows of residuals change places.

    Parameters
    ----------
    residuals : ndarray of shape (n, q)
        One column for each predictor.
    members : ndarray of shape (n,) or None
        Cluster of every row: clusters' means and rows' deviations from them change
        places separately.
    rng : Generator
        Draws the order.
    """
    n = len(residuals)
    if members is None:
        return np.asarray(residuals[rng.permutation(n)])
    sizes = np.bincount(members)
    sums = [np.bincount(members, column) for column in residuals.T]
    means = np.column_stack(sums) / sizes[:, None]
    away = residuals - means[members]
    other = rng.permutation(len(sizes))
    return np.asarray(means[other][members] + away[rng.permutation(n)])


def _constant_within(columns: pd.DataFrame, members: Ints) -> bool:
    """Whether columns have one value in each cluster."""
    values = columns.groupby(members, observed=True).nunique()
    return int(values.to_numpy().max()) <= 1


def _per_cluster(frame: pd.DataFrame, members: Ints) -> pd.DataFrame:
    """Make one row of each cluster: means of numbers, first levels of categories."""
    grouped = frame.groupby(members)
    first = grouped.first()
    means = {
        name: grouped[name].mean()
        for name in frame.columns
        if is_number(frame[name]) and grouped[name].nunique().max() > 1
    }
    return first.assign(**means)


def check_how(how: str) -> None:
    """Refuse other ways to replace a predictor."""
    if how not in get_args(How):
        names = ", ".join(map(repr, get_args(How)))
        raise ValueError(f"`how` must be one of {names}; got {how!r}.")
