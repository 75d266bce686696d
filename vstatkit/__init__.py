"""Believable standard errors for ensembles, from V- and U-statistics."""

import importlib
from typing import TYPE_CHECKING, Any

from vstatkit import classical, datasets, exact, inside_r, studies
from vstatkit.adopting import from_arrays, from_sklearn, variance_components
from vstatkit.api import fit, statistic
from vstatkit.exceptions import (
    CheckpointError,
    ConstantResponseWarning,
    DataWarning,
    DuplicateRowsWarning,
    ExtrapolationWarning,
    FewUnitsWarning,
    FileError,
    FormulaError,
    IdentifierWarning,
    KernelError,
    LeakageWarning,
    MemoryLimitError,
    MonteCarloWarning,
    SerialDependenceWarning,
    TextNumbersWarning,
    UnobservedLevelWarning,
    VstatkitError,
    VstatkitWarning,
    WorkerError,
)
from vstatkit.forest import ForestClassifier, ForestRegressor
from vstatkit.inference.normality import normality_tests
from vstatkit.kernels.registry import register_kernel
from vstatkit.results.drawing import register_plot
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.fit_comparison import compare
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.results.tabular import table
from vstatkit.sampling.registry import register_design
from vstatkit.storage.results_file import load
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.registry import register_variance

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "ConstantResponseWarning",
    "DataWarning",
    "DuplicateRowsWarning",
    "EnsembleResults",
    "ExtrapolationWarning",
    "FewUnitsWarning",
    "FileError",
    "ForestClassifier",
    "ForestRegressor",
    "FormulaError",
    "IdentifierWarning",
    "KernelError",
    "LeakageWarning",
    "MemoryLimitError",
    "MonteCarloWarning",
    "PredictionResults",
    "SerialDependenceWarning",
    "TextNumbersWarning",
    "UnobservedLevelWarning",
    "VarianceComponents",
    "VstatkitError",
    "VstatkitWarning",
    "WorkerError",
    "__version__",
    "classical",
    "compare",
    "datasets",
    "exact",
    "fit",
    "from_arrays",
    "from_sklearn",
    "load",
    "normality_tests",
    "plots",
    "register_design",
    "register_kernel",
    "register_plot",
    "register_variance",
    "statistic",
    "studies",
    "table",
    "variance_components",
]

inside_r.register()

if TYPE_CHECKING:
    from vstatkit import plots
else:

    def __getattr__(name: str) -> Any:
        """Import `plots` when it is asked for: it takes matplotlib along."""
        if name == "plots":
            return importlib.import_module("vstatkit.plots")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List `plots` too, before it is imported."""
        return sorted({*globals(), "plots"})
