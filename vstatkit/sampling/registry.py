"""The designs by name, and how one is built from arguments."""

from vstatkit.sampling.balanced import BalancedDesign
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.grouped import LittleBagsDesign, MatchedDesign, TwoLevelDesign
from vstatkit.sampling.iid import IidDesign

DESIGNS: dict[str, type[SubsampleDesign]] = {
    design.name: design
    for design in (
        IidDesign,
        BalancedDesign,
        TwoLevelDesign,
        LittleBagsDesign,
        MatchedDesign,
    )
}
"""Designs by the name that `design=` takes."""


DESIGN_OPTIONS = {
    "balanced": ("block",),
    "two-level": ("n_in", "n_out"),
    "little-bags": ("group_size",),
}
"""Options that `fit` hands on to a design."""


def make_design(
    name: str, n: int, k: int, *, replace: bool, seed: int, **options: int
) -> SubsampleDesign:
    """Build a design by name.

    Parameters
    ----------
    name : {"iid", "balanced", "two-level", "little-bags", "matched"}
        Scheme.
    n, k : int
        Units, and units in each subsample.
    replace : bool
        With replacement or without.
    seed : int
        Seed of all streams.
    **options : int
        `block` of "balanced", `n_in` of "two-level", `group_size` of
        "little-bags".

    Returns
    -------
    SubsampleDesign

    Examples
    --------
    >>> design = make_design("balanced", 4, 2, replace=False, seed=1).sized(6)
    >>> design.counts(0, 6).sum(axis=0)
    array([3., 3., 3., 3.])
    """
    if name not in DESIGNS:
        raise ValueError(
            f"`design` must be one of {', '.join(map(repr, DESIGNS))}; got {name!r}."
        )
    return DESIGNS[name](n=n, k=k, replace=replace, seed=seed, **options)
