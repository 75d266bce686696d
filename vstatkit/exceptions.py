"""Errors and warnings, one base each."""

import sys
import warnings
from types import FrameType


class VstatkitError(Exception):
    """Base of the errors that are not plain argument errors."""


class FormulaError(VstatkitError, ValueError):
    """A formula, or the data it is applied to, cannot be used."""


class DataError(VstatkitError, ValueError):
    """Data that are read from files or batch after batch cannot be used."""


class MissingPackageError(VstatkitError, ImportError):
    """A package that is needed only for some things is not installed."""


class KernelError(VstatkitError):
    """A base learner could not be evaluated."""


class WorkerError(VstatkitError):
    """Workers of a cluster were lost so often that the work was given up."""


class FileError(VstatkitError):
    """A file does not hold saved results, or holds them damaged."""


class CheckpointError(VstatkitError):
    """A directory of checkpoints cannot be used."""


class MemoryLimitError(VstatkitError, MemoryError):
    """A fit would need more memory than there is, or than it may use."""


class VstatkitWarning(UserWarning):
    """Base of the warnings."""


class ConstantResponseWarning(VstatkitWarning):
    """The response does not vary, so every estimate is exact."""


class MonteCarloWarning(VstatkitWarning):
    """The ensemble stopped growing before its tolerance was reached."""


class FewUnitsWarning(VstatkitWarning):
    """There are too few units to bound a new observation at the level asked for."""


class DataWarning(VstatkitWarning):
    """The data are probably not what the standard errors assume, or not as meant."""


class DuplicateRowsWarning(DataWarning):
    """Rows are exact copies of other rows, so that they are not independent."""


class SerialDependenceWarning(DataWarning):
    """Residuals of neighbouring rows are correlated."""


class ExtrapolationWarning(DataWarning):
    """New rows lie far outside the training data."""


class UnobservedLevelWarning(DataWarning):
    """New rows have a level of a factor that no training row has."""


class TextNumbersWarning(DataWarning):
    """A column of text looks like numbers, and is taken for categories."""


class IdentifierWarning(DataWarning):
    """A category has almost as many levels as there are rows."""


class LeakageWarning(DataWarning):
    """A predictor is almost a copy of the response."""


def warn_caller(message: str, category: type[VstatkitWarning]) -> None:
    """Warn at the line of the user's code that called the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in ("vstatkit", "r_bridge")
