"""Believable standard errors for ensembles, from V- and U-statistics."""

from vstatkit import classical, datasets, exact, plots, reticulate_hook, studies
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
from vstatkit.interop.from_arrays import from_arrays, variance_components
from vstatkit.interop.from_sklearn import from_sklearn
from vstatkit.interop.multi_model_table import table
from vstatkit.kernels.registry import register_kernel
from vstatkit.plots.registry import register_plot
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import ContrastResults, EstimateTable
from vstatkit.results.model_comparison import compare
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.sampling.registry import register_design
from vstatkit.storage.results_file import load
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.registry import register_variance

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "ConstantResponseWarning",
    "ContrastResults",
    "DataWarning",
    "DuplicateRowsWarning",
    "EnsembleResults",
    "EstimateTable",
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

reticulate_hook.register()
