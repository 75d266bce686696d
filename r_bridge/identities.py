"""Exact relations between our estimates and the numbers that ranger prints.

ranger leaves rows out that every tree has seen, inflates by the share of the rows
left, and corrects the jackknife after bootstrap by a constant that fits bootstrap
samples of size n only. Each function here gives what ranger would print, from our
estimate and the exact difference of the formulas; nothing is fitted.
"""

import math

import numpy as np

import vstatkit as vs
from vstatkit._typing import Bools, Floats, Ints


def rows_ranger_keeps(counts: Ints) -> Bools:
    """Find rows that are out of bag for at least one tree, shape (n,)."""
    return np.asarray((counts == 0).any(axis=0))


def rangers_ij_u(counts: Ints, values: Floats, *, replace: bool, rows: Bools) -> Floats:
    """Convert our `ij_u` to ranger's infinitesimal jackknife.

    The counts have shape (B, n) and the values of the trees (B, m); `rows`, shape
    (n,), are those that enter, as from `rows_ranger_keeps`.

    Notes
    -----
    Our inflation is undone, the share of the rows left out taken off, and
    ranger's inflation put on: `1 / (1 - mean(N))**2` over the rows kept, whenever
    no count exceeds one.
    """
    n, k = counts.shape[1], int(counts[0].sum())
    ours = vs.variance_components(counts, values, method="ij_u", replace=replace)
    plain = ours.sampling * (1.0 if replace else (1 - k / n) ** 2)
    kept = counts[:, rows]
    inflation = 1 / (1 - kept.mean()) ** 2 if kept.max() == 1 else 1.0
    return np.asarray(inflation * (plain - _share_of_rows(counts[:, ~rows], values)))


def _share_of_rows(counts: Ints, values: Floats) -> Floats:
    """Sum the squared influences of some rows, minus their Monte Carlo bias."""
    B = len(values)
    centred = values - values.mean(axis=0)
    influence = (counts - counts.mean(axis=0)).T @ centred / B
    bias = counts.var(axis=0).sum() * centred.var(axis=0) / B
    return np.asarray((influence**2).sum(axis=0) - bias)


def rangers_jackknife(counts: Ints, values: Floats, *, replace: bool) -> Floats:
    """Convert our `jackknife` to the square of ranger's `se.method = "jack"`.

    Notes
    -----
    ranger compares the trees without an observation with all, takes off
    `(e - 1) n v / B` whatever the subsamples, and sets what is negative to zero. We
    add up products of different trees with the known chance p of an observation,
    which has no Monte Carlo bias at any number of trees. The difference between the
    two is computed here from the trees, and added to our estimate.
    """
    B, n = counts.shape
    centred = values - values.mean(axis=0)
    rows = rows_ranger_keeps(counts)
    absent = (counts == 0)[:, rows]
    raw = ((absent.T @ centred / absent.sum(axis=0)[:, None]) ** 2).sum(axis=0)
    kept = int(rows.sum())
    theirs = (kept - 1) / kept * raw - (math.e - 1) * kept * values.var(axis=0) / B
    q = (1 - 1 / n) ** counts[0].sum() if replace else 1 - counts[0].sum() / n
    d = ((counts > 0) - (1 - q)) / q
    pairs = ((d.T @ centred) ** 2).sum(axis=0) - (d**2).sum(axis=1) @ centred**2
    unbiased = (n - 1) / n * B / ((B - 1) * (B**2 - 2 * B + 2)) * pairs
    ours = vs.variance_components(counts, values, method="jackknife", replace=replace)
    return np.asarray(np.maximum(ours.sampling + (theirs - unbiased), 0.0))


def is_balanced(counts: Ints) -> bool:
    """Whether every observation occurs equally often."""
    return bool(np.ptp(counts.sum(axis=0)) == 0)


def corrected_from_ij_u(
    ij_u: Floats, counts: Ints, values: Floats, *, method: str
) -> Floats:
    """Compute corrected estimates of a balanced design from an IJ-U without inflation.

    `ij_u`, shape (m,), is the infinitesimal jackknife minus its Monte Carlo bias, not
    inflated; the counts have shape (B, n) and the values of the trees (B, m).

    Notes
    -----
    With `IJ` the raw jackknife and `v` the variance of the trees (divisor B), a
    balanced design has `BM = (n/k)**2 IJ / (n-1)`, so that the corrected
    estimators are linear in `IJ` and `v`, with known factors.
    """
    B, n = counts.shape
    k = int(counts[0].sum())
    C = B * k
    v: Floats = values.var(axis=0)
    raw: Floats = ij_u + counts.var(axis=0).sum() * v / B
    if method == "corrected_v_simple":
        return np.asarray(n / (n - 1) * raw - k / (B - 1) * v)
    if method == "corrected_u":
        bias = (n - 1) * k * (n - k) / (n**2 * (B - 1)) * v
        return np.asarray((n / (n - k)) ** 2 * (raw - bias))
    between = C * n / k**2 * raw
    within = (C * v - between) / (C - n)
    return np.asarray(k**2 / n * (between - (n - 1) * within) / (C - C / n))
