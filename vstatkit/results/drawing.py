"""Pictures of results by name; what draws them loads matplotlib, this does not."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults

Draw = Callable[..., Any]


def draw_importance(
    results: "EnsembleResults", *, ax: "Axes | None" = None, **options: Any
) -> "Axes":
    """Draw what each predictor saves; options are those of `importance`."""
    return results.importance(**options).plot(ax)


PLOTS: dict[str, Draw | str] = {
    "estimates": "plot_estimates",
    "effects": "plot_effects",
    "profile": "plot_profile",
    "importance": draw_importance,
    "influence": "plot_influence",
    "average effects": "vstatkit.results.pictures:plot_average_effects",
    "partial dependence": "vstatkit.results.pictures:plot_partial_dependence",
    "bias": "vstatkit.results.bias_plots:plot_bias",
    "convergence": "plot_convergence",
}
"""Pictures by the name that `EnsembleResults.plot` takes.

Texts are functions of `vstatkit.plots`, or of the module before the colon, which is
imported on demand.
"""


def register_plot(name: str, draw: Draw) -> None:
    """Make a picture known by a name.

    Parameters
    ----------
    name : str
        `results.plot(kind=name)` draws it from then on.
    draw : callable
        `(results, *, ax=None, **options) -> Axes`; draws on `ax`, or on axes of its
        own.
    """
    if not callable(draw):
        raise TypeError(f"`draw` must be a function; got {type(draw).__name__}.")
    if name in PLOTS:
        raise ValueError(f"there is a plot {name!r} already; choose another name.")
    PLOTS[name] = draw


def draw(
    results: "EnsembleResults", kind: str | None, ax: "Axes | None", options: Any
) -> "Axes":
    """Draw a picture; by default the effects, or the estimates where there are none."""
    if kind is None:
        kind = "estimates" if results.effects is None else "effects"
    if kind not in PLOTS:
        names = ", ".join(map(repr, PLOTS))
        raise ValueError(f"`kind` must be one of {names}; got {kind!r}.")
    found = PLOTS[kind]
    if isinstance(found, str):
        module, _, function = found.rpartition(":")
        found = getattr(importlib.import_module(module or "vstatkit.plots"), function)
    axes: Axes = found(results, ax=ax, **options)
    return axes
