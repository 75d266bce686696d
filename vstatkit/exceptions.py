"""Errors and warnings, one base each."""


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
