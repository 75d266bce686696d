"""Fit the same forest in ranger, and compare quantity by quantity."""

from dataclasses import replace as changed
from typing import Any

import numpy as np

import vstatkit as vs
from r_bridge.availability import require
from r_bridge.columns import options_of_r, read_columns, seed_of_r
from r_bridge.compare import TOLERANCE, Comparison, Quantity
from r_bridge.identities import (
    corrected_from_ij_u,
    is_balanced,
    rangers_ij_u,
    rangers_jackknife,
    rows_ranger_keeps,
)
from r_bridge.ranger import CALIBRATED_ABOVE, RangerNumbers, grow
from vstatkit._typing import DataLike, Floats, Ints
from vstatkit.sampling.design import check_units, to_dense
from vstatkit.sampling.registry import ensemble_size, make_design, subsample_size
from vstatkit.variance.registry import ESTIMATORS

# Options of ranger that have arguments of their own here
OWN_OPTIONS = {
    "num.trees": "B",
    "sample.fraction": "k",
    "inbag": "design",
    "keep.inbag": "design",
    "replace": "replace",
    "probability": "formula",
    "seed": "rng",
    "num.threads": "threads",
}

# Ways to draw subsamples for which ranger's formulas hold
DESIGNS = ("balanced", "iid")

# Spread of trees' predictions, relative to their size, that is rounding
AGREEMENT = 1e-12

WHY_CALIBRATED_DIFFERS = (
    "above 20 points ranger replaces each variance by an empirical Bayes estimate from "
    "all points of the call and a random half of the trees, so its answer changes with "
    "the other points, the random numbers and the unit of the response; there is no "
    "such number here."
)

WHY_JACKKNIFE = (
    "ranger takes off (e - 1) n v/B, which is biased with few trees, and sets negative "
    "values to 0; ours adds up products of different trees, which has no Monte Carlo "
    "bias. Compared after adding the difference of the two formulas."
)

WHY_FILTER = (
    "ranger leaves out rows that every tree has seen; compared after taking off their "
    "share of ours."
)

WHY_CORRECTED = (
    "in a balanced design it is a linear function of ranger's number and of the trees' "
    "variance, with known factors."
)


def compare_ranger(
    formula: str,
    data: DataLike,
    newdata: DataLike | None = None,
    *,
    k: int | float | None = None,
    B: int = 200,
    replace: bool = True,
    design: str = "balanced",
    rng: int = 0,
    threads: int = 1,
    tolerance: float = TOLERANCE,
    **options: Any,
) -> Comparison:
    """Compare vstatkit with R's ranger on one forest.

    ranger grows a forest on subsamples drawn here (its `inbag` argument); its
    trees' predictions are read back, and every quantity is computed on both sides.

    Parameters
    ----------
    formula : str
        Response and columns, as in R or as in patsy. A numeric response is a
        regression forest, any other a probability forest.
    data : DataFrame or dict of columns
        Training data; rows with missing values are dropped, and counted.
    newdata : DataFrame or dict of columns, optional
        Query points; the first 20 rows of the training data by default. Above 20
        points ranger calibrates, and its calibrated values are information.
    k : int or float, optional
        Subsample size, or a fraction of n; `ceil(n**0.8)` by default.
    B : int
        Trees.
    replace : bool
        Subsample with replacement or without.
    design : {"balanced", "iid"}
        How subsamples are drawn. Corrected-V and corrected-U are compared where
        every observation occurs equally often: balanced, and n divides B k.
    rng : int
        Seed of the design and, one more, of ranger: from 0 to 2**31 - 2.
    threads : int
        Threads that R uses.
    tolerance : float
        Largest relative difference that counts as equal.
    **options
        Options of ranger, such as `mtry` or `max_depth`; an underscore stands
        for R's dot.

    Returns
    -------
    Comparison
        Printed, a table: quantity, points, largest relative difference,
        tolerance, verdict.

    Examples
    --------
    >>> import r_bridge, vstatkit as vs
    >>> data = vs.datasets.mars(60, rng=1)
    >>> r_bridge.compare_ranger("y ~ .", data, k=0.5).ok  # doctest: +SKIP
    True
    """
    if design not in DESIGNS:
        raise ValueError(
            f"`design` must be one of {', '.join(map(repr, DESIGNS))}; got {design!r}."
        )
    seed = seed_of_r(rng)
    found = require("R", "rpy2", "ranger")
    columns = read_columns(formula, data, newdata)
    n = len(columns.x)
    counts = draw_counts(design, n, k, B, replace=replace, seed=seed)
    size = int(counts[0].sum())
    r_options = options_of_r(options, OWN_OPTIONS)
    forest = grow(columns, counts, seed=seed + 1, threads=threads, options=r_options)
    quantities = compared(
        forest,
        counts,
        replace=replace,
        regression=columns.parsed.classes is None,
        calibrated=len(columns.new) > CALIBRATED_ABOVE,
        tolerance=tolerance,
    )
    way = "with" if replace else "without"
    dropped = columns.parsed.n_dropped
    left_out = f", {dropped} with missing values dropped" if dropped else ""
    kind = "regression" if columns.parsed.classes is None else "probability"
    return Comparison(
        title=f"vstatkit and ranger: {formula}",
        setting=(
            f"{kind}, {way} replacement, n = {n}{left_out}, k = {size}, B = {B}, "
            f"{design} design"
        ),
        quantities=tuple(quantities),
        versions={
            "vstatkit": vs.__version__,
            "R": str(found["R"]),
            "ranger": str(found["ranger"]),
        },
    )


def draw_counts(
    design: str, n: int, k: int | float | None, B: int, *, replace: bool, seed: int
) -> Ints:
    """Draw subsamples as `vstatkit.fit` does, and count their rows, (B, n)."""
    check_units(n)
    if ensemble_size(B) in ("auto", "complete"):
        raise ValueError(f"`B` must be a number of trees; got {B!r}.")
    size = subsample_size(k, n)
    scheme = make_design(design, n, size, replace=replace, seed=seed).with_size(B)
    return to_dense(scheme.counts(0, B)).astype(np.int64)


def compared(
    forest: RangerNumbers,
    counts: Ints,
    *,
    replace: bool,
    regression: bool,
    calibrated: bool = False,
    tolerance: float = TOLERANCE,
) -> list[Quantity]:
    """Compute every quantity on our side, and compare it with ranger's.

    The counts, shape (B, n), are the design that ranger was given. Regression forests
    have ranger's jackknife after bootstrap too; ranger calibrates for more than 20
    query points.
    """
    values = forest.tree_values()
    everything = np.ones(counts.shape[1], dtype=bool)
    plain = vs.from_arrays(counts, values, replace=replace, variance="ij_u")
    ours = rangers_ij_u(counts, values, replace=replace, rows=everything)
    theirs = forest.uncalibrated()
    first = [
        Quantity(
            "in-bag counts", counts.astype(float), forest.counts().astype(float), 0.0
        ),
        Quantity("ensemble mean", plain.params.to_numpy(), forest.mean(), tolerance),
    ]
    variances = [Quantity("IJ-U, rInfJack", ours, theirs, tolerance)]
    name, squares = "IJ-U, calibrated", forest.squared_se("infjack")
    if calibrated:
        ours, reason = plain.components.sampling, WHY_CALIBRATED_DIFFERS
        variances.append(Quantity(name, ours, squares, None, reason))
    else:  # `predict(type = "se")` is missing for negative variances
        rows = rows_ranger_keeps(counts)
        ours = rangers_ij_u(counts, values, replace=replace, rows=rows)
        ours = np.where(ours < 0, np.nan, ours)
        name, reason = "IJ-U, predict(se)^2", "" if rows.all() else WHY_FILTER
        variances.append(Quantity(name, ours, squares, tolerance, reason))
    if regression:
        jackknife = rangers_jackknife(counts, values, replace=replace)
        squares = forest.squared_se("jack")
        name = "J-U, predict(se)^2"
        variances.append(Quantity(name, jackknife, squares, tolerance, WHY_JACKKNIFE))
    if is_balanced(counts):
        variances += _corrected(theirs, counts, values, replace, tolerance)
    return first + [_without_rounding(one, values) for one in variances]


def _without_rounding(quantity: Quantity, values: Floats) -> Quantity:
    """Set a variance to zero if all trees agree up to rounding."""
    size = np.abs(values).max(axis=0)
    agree = np.ptp(values, axis=0) <= AGREEMENT * size
    bound = (AGREEMENT * size) ** 2
    ours, theirs = (
        np.where(agree & ~(np.abs(side) > bound), 0.0, side)
        for side in (quantity.ours, quantity.theirs)
    )
    return changed(quantity, ours=ours, theirs=theirs)


def _corrected(
    theirs: Floats, counts: Ints, values: Floats, replace: bool, tolerance: float
) -> list[Quantity]:
    """Compare the corrected estimators by their factors in a balanced design."""
    repeated = counts.max() > 1
    plain = theirs * (1.0 if repeated else (1 - counts.mean()) ** 2)
    methods = ("corrected_v", "corrected_v_simple") if replace else ("corrected_u",)
    return [
        Quantity(
            ESTIMATORS[method].label,
            vs.variance_components(
                counts, values, method=method, replace=replace
            ).sampling,
            corrected_from_ij_u(plain, counts, values, method=method),
            tolerance,
            WHY_CORRECTED,
        )
        for method in methods
    ]
