"""Small random ensembles for tests of the estimators."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from vstatkit.sampling.design import to_dense
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import make_design

SAME_ALGEBRA = {"rtol": 1e-10, "atol": 1e-12}
"""The two sides differ in the order of summation only."""


@dataclass(frozen=True)
class Ensemble:
    design: object
    counts: np.ndarray
    values: np.ndarray

    @property
    def shape(self):
        return self.design.n, self.design.k, len(self.values)


def make_ensemble(name="iid", *, n=12, k=5, B=60, m=3, replace=True, seed=1, **options):
    """Counts of a design, and values that depend on them and on noise."""
    design = make_design(name, n, k, replace=replace, seed=seed, **options).with_size(B)
    counts = to_dense(design.counts(0, B))
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, m))
    values = counts @ z / k + rng.normal(size=(B, m))
    return Ensemble(design, counts, values)


@st.composite
def ensembles(draw, name="iid", replace=None):
    """Ensembles of any small shape; balanced ones have exactly equal counts."""
    n = draw(st.integers(3, 15))
    with_replacement = draw(st.booleans()) if replace is None else replace
    k = draw(st.integers(1, 2 * n if with_replacement else n - 1))
    B = draw(st.integers(3, 6)) * n
    return make_ensemble(
        name,
        n=n,
        k=k,
        B=B,
        m=2,
        replace=with_replacement,
        seed=draw(st.integers(0, 2**32)),
    )


def with_columns(counts, *columns):
    """Append observations with the same count in every subsample."""
    return np.column_stack([counts, *(np.full(len(counts), c) for c in columns)])


def unseen_ensemble(*, replace=True, n=9, k=4, B=30, m=2, seed=3):
    """An ensemble in which the last two observations were never drawn."""
    case = make_ensemble(n=n, k=k, B=B, m=m, replace=replace, seed=seed)
    counts = with_columns(case.counts, 0.0, 0.0)
    design = GivenDesign(n + 2, k, replace=replace, seed=seed, table=counts)
    return Ensemble(design, counts, case.values)


def secant_ends(x, h, observed):
    """Observed values on both sides of windows of width h that end with the data."""
    values = np.unique(observed)
    ends = []
    for centre in x:
        left = centre - h / 2
        left = min(left, values.max() - h)
        left = max(left, values.min())
        below = [value for value in values if value <= left + 1e-9]
        above = [value for value in values if value >= left + h - 1e-9]
        ends.append((max(below), min(above, default=values.max())))
    return np.transpose(ends)
