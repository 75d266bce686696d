"""What intervals aim at: the mean of a learner, or E[y|x]."""

from collections.abc import Mapping
from typing import Any

from vstatkit.ensemble.aiming import Choice, checked_trees, choose_learner
from vstatkit.ensemble.candidates import larger
from vstatkit.kernels.protocol import AnyKernel
from vstatkit.kernels.staged import STAGE_OPTIONS
from vstatkit.sampling.design import SubsampleDesign

TARGETS = ("mean", "truth")


def aimed_design(
    design: SubsampleDesign, target: str, k: int | float | None
) -> SubsampleDesign:
    """Draw larger subsamples for E[y|x], unless their size was given."""
    return larger(design) if target == "truth" and k is None else design


def chosen(
    target: str,
    kernel: AnyKernel,
    options: Mapping[str, Any],
    *drawn: Any,
) -> Choice | None:
    """Choose what learners are made of, if intervals are to aim at E[y|x].

    Parameters
    ----------
    target : {"mean", "truth"}
        What intervals aim at.
    kernel : AnyKernel
        Trees, if they are to aim at E[y|x].
    options : mapping
        Options of the kernel that were given: these are not chosen.
    *drawn
        How pilot ensembles are drawn; see `choose_learner`.
    """
    if target not in TARGETS:
        names = " or ".join(map(repr, TARGETS))
        raise ValueError(f"`target` must be {names}; got {target!r}.")
    if target == "mean":
        return None
    given = [name for name in STAGE_OPTIONS if name in options]
    if given:
        raise ValueError(
            f"target='truth' chooses `trend` and `boost` itself; leave `{given[0]}` "
            "out, or use target='mean'."
        )
    return choose_learner(checked_trees(kernel), set(options), *drawn)
