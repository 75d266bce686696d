"""Plots of results; each function takes results and axes, and returns the axes.

The functions are imported on demand, because they load matplotlib.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vstatkit.plots.estimates import (
        plot_bias,
        plot_comparison,
        plot_convergence,
        plot_effects,
        plot_estimates,
        plot_influence,
        plot_misses,
        plot_prediction,
        plot_quantiles,
    )
    from vstatkit.plots.marginal import (
        plot_average_effects,
        plot_partial_dependence,
        plot_profile,
    )

__all__ = [
    "plot_average_effects",
    "plot_bias",
    "plot_comparison",
    "plot_convergence",
    "plot_effects",
    "plot_estimates",
    "plot_influence",
    "plot_misses",
    "plot_partial_dependence",
    "plot_prediction",
    "plot_profile",
    "plot_quantiles",
]


def __getattr__(name: str) -> Any:
    """Import a function from its module."""
    if name in __all__:
        for module in ("estimates", "marginal"):
            functions = importlib.import_module(f"vstatkit.plots.{module}")
            if hasattr(functions, name):
                return getattr(functions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the functions before they are imported."""
    return sorted({*globals(), *__all__})
