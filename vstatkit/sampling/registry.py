"""Registry of designs, and the arguments that describe one."""

import warnings
from typing import Any, Literal, cast

import numpy as np

from vstatkit.exceptions import VstatkitWarning
from vstatkit.sampling.design import (
    BalancedDesign,
    CompleteDesign,
    IidDesign,
    SubsampleDesign,
)
from vstatkit.sampling.grouped_learners import (
    LittleBagsDesign,
    MatchedDesign,
    ShardsDesign,
    TwoLevelDesign,
)
from vstatkit.text import suggest_name
from vstatkit.validation import check_options


def subsample_size(k: int | float | None, n: int, *, at_most: int | None = None) -> int:
    """Convert `k`, a number or a fraction, to a number of n units.

    A fraction is in (0, 1]; a float above 1 is a number if it is whole. None is
    `ceil(n**0.8)`, or `at_most` if that is less.
    """
    if k is None:
        default = int(np.ceil(n**0.8))
        return default if at_most is None else max(1, min(default, at_most))
    if isinstance(k, bool) or not isinstance(k, int | float | np.number):
        raise TypeError(
            f"`k` must be a number of observations or a fraction of them; got {k!r}."
        )
    if k > 1:
        k = _to_integer(k)
    if isinstance(k, float | np.floating):
        if not 0 < k <= 1:
            raise ValueError(
                f"`k` as a fraction of n must lie in (0, 1]; got {k}. Give an integer "
                "for a number of observations."
            )
        return max(1, round(float(k) * n))
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}.")
    return int(k)


def ensemble_size(B: int | str) -> int | Literal["auto", "complete"]:
    """Check `B`: a number of learners (whole, if a float), "auto" or "complete"."""
    B = _to_integer(B)
    if isinstance(B, str) and B in ("auto", "complete"):
        return cast('Literal["auto", "complete"]', B)
    if isinstance(B, bool) or not isinstance(B, int | np.integer):
        raise TypeError(
            f"`B` must be a number of learners, 'auto' or 'complete'; got {B!r}."
        )
    if B < 2:
        raise ValueError(f"`B` must be at least 2, to see how learners vary; got {B}.")
    return int(B)


def _to_integer(size: Any) -> Any:
    """Convert a whole float, such as 1e3, to an integer; return other values as is."""
    whole = isinstance(size, float | np.floating) and float(size).is_integer()
    return int(size) if whole else size


def warn_of_single_rows(k: Any) -> None:
    """Warn when k is the integer 1, which is easily confused with the fraction."""
    if isinstance(k, int | np.integer) and not isinstance(k, bool) and k == 1:
        warnings.warn(
            "k=1 is one observation a subsample; k=1.0, the fraction, is all of them.",
            VstatkitWarning,
            stacklevel=3,
        )


# Designs by the name that `design=` takes.
DESIGNS: dict[str, type[SubsampleDesign]] = {}


def register_design(design: type[SubsampleDesign]) -> None:
    """Register a design under its name.

    Parameters
    ----------
    design : subclass of SubsampleDesign
        A frozen data class with a `name`, for `design=name`; its `options` become
        keywords of `fit`.
    """
    if not (isinstance(design, type) and issubclass(design, SubsampleDesign)):
        raise TypeError(
            "`design` must be a subclass of SubsampleDesign of "
            f"vstatkit.sampling.design; got {design!r}."
        )
    if design.name in (*DESIGNS, "auto", "complete", "given"):
        raise ValueError(
            f"the name {design.name!r} is taken already; choose another name."
        )
    DESIGNS[design.name] = design


for _design in (
    *(IidDesign, BalancedDesign),
    *(TwoLevelDesign, LittleBagsDesign, MatchedDesign, ShardsDesign),
):
    register_design(_design)


def design_options() -> tuple[str, ...]:
    """List the keywords of `fit` that belong to some design."""
    return tuple(name for design in DESIGNS.values() for name in design.options)


def find_design(name: str) -> type[SubsampleDesign]:
    """Find a design by its name."""
    if name not in DESIGNS:
        raise ValueError(
            f"`design` must be one of {', '.join(map(repr, DESIGNS))}, or 'auto'; "
            f"got {name!r}{suggest_name(str(name), [*DESIGNS, 'auto'])}"
        )
    return DESIGNS[name]


def make_design(
    name: str, n: int, k: int, *, replace: bool, seed: int, **options: int
) -> SubsampleDesign:
    """Build a design by name; `options` are those of the design, such as `block`."""
    return find_design(name)(n=n, k=k, replace=replace, seed=seed, **options)


def build_design(
    name: str,
    n: int,
    k: int | float | None,
    B: int | Literal["auto", "complete"],
    *,
    replace: bool,
    seed: int,
    options: dict[str, Any],
) -> tuple[SubsampleDesign, int | Literal["auto", "complete"]]:
    """Build the design; return it and B, which its options may imply."""
    scheme = find_design(name)
    if not isinstance(replace, bool | np.bool_):
        raise TypeError(
            "`replace` must be True (with replacement, a V-statistic) or False "
            f"(without, a U-statistic); got {replace!r}."
        )
    check_options(options, scheme.options, f"design {name!r}")
    for option, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"`{option}` must be a whole number; got {value!r}.")
    numbers = {option: int(value) for option, value in options.items()}
    bound = scheme.largest_default(n, replace=replace, **numbers)
    size = subsample_size(k, n, at_most=bound)
    if B == "complete":
        if name != IidDesign.name:
            raise ValueError(
                f"`B='complete'` takes every subsample, so design={name!r} does not "
                "apply. Leave `design` out."
            )
        return CompleteDesign(n, size, replace, seed), B
    design, implied = scheme.create(n, size, replace=replace, seed=seed, **numbers)
    if implied is not None:
        if isinstance(B, int) and implied != B:
            raise ValueError(
                f"`B` must be n_out * n_in = {implied}; got {B}. Leave `B` out."
            )
        B = implied
    if isinstance(B, int):
        design.with_size(B)
    return design, B
