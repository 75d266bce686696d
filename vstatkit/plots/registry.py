"""Registry of plots by name; it does not import matplotlib."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from vstatkit import plots
from vstatkit.text import suggest_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults

Draw = Callable[..., Any]


def draw_importance(
    results: "EnsembleResults",
    *,
    alpha: float = 0.05,
    ax: "Axes | None" = None,
    **options: Any,
) -> "Axes":
    """Draw the importances; options are those of `importance`."""
    return results.importance(**options).plot(ax, alpha=alpha)


# Plots by the name that `EnsembleResults.plot` takes. A text is a function of
# `vstatkit.plots`, which is imported on demand.
PLOTS: dict[str, Draw | str] = {
    "estimates": "plot_estimates",
    "effects": "plot_effects",
    "profile": "plot_profile",
    "importance": draw_importance,
    "influence": "plot_influence",
    "average effects": "plot_average_effects",
    "partial dependence": "plot_partial_dependence",
    "bias": "plot_bias",
    "convergence": "plot_convergence",
}

# Methods of results that take the other options of a plot.
PASSED_ON = {
    "importance": "importance",
    "average effects": "avg_effects",
    "partial dependence": "partial_dependence",
}


def register_plot(name: str, draw: Draw) -> None:
    """Register a plot by name.

    Parameters
    ----------
    name : str
        Name of the plot: `results.plot(kind=name)`.
    draw : callable
        `(results, *, ax=None, **options) -> Axes`; draws on `ax`, or on new axes.
    """
    if not callable(draw):
        raise TypeError(f"`draw` must be a function; got {type(draw).__name__}.")
    if name in PLOTS:
        raise ValueError(f"there is a plot {name!r} already; choose another name.")
    PLOTS[name] = draw


def draw(
    results: "EnsembleResults", kind: str | None, ax: "Axes | None", options: Any
) -> "Axes":
    """Draw a plot; by default the effects, or the estimates if there are none."""
    if kind is None:
        kind = "estimates" if results.effects is None else "effects"
    if kind not in PLOTS:
        names = ", ".join(map(repr, PLOTS))
        raise ValueError(f"`kind` must be one of {names}; got {kind!r}.")
    _check_options(results, kind, options)
    axes: Axes = _plot_function(kind)(results, ax=ax, **options)
    return axes


def _plot_function(kind: str) -> Draw:
    entry = PLOTS[kind]
    return getattr(plots, entry) if isinstance(entry, str) else entry


def _check_options(results: "EnsembleResults", kind: str, options: Any) -> None:
    """Raise an error for unknown options of a plot."""
    known = _options_of(results, kind)
    for name in options:
        if known is None or name in known:
            continue
        others = [
            repr(other)
            for other in PLOTS
            if name in (_options_of(results, other) or ())
        ]
        there = f" kind={' and kind='.join(others)} has {name!r}." if others else ""
        raise TypeError(
            f"the plot {kind!r} has no option {name!r}{suggest_name(name, known)} Its "
            f"options are: {', '.join(known) or 'none'}.{there}"
        )


def _options_of(results: "EnsembleResults", kind: str) -> list[str] | None:
    """List the options of a plot; None if it takes any."""
    _, *given = signature(_plot_function(kind)).parameters.values()
    if any(option.kind is option.VAR_KEYWORD for option in given):
        if kind not in PASSED_ON:
            return None
        given += signature(getattr(results, PASSED_ON[kind])).parameters.values()
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [
        option.name for option in given if option.kind in named and option.name != "ax"
    ]
