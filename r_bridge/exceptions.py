"""Errors and warnings that come from R."""

from vstatkit import VstatkitError, VstatkitWarning


class RUnavailableError(VstatkitError):
    """R, rpy2 or an R package is missing; the message has the install command."""


class RError(VstatkitError):
    """R raised an error; the message is R's."""


class RWarning(VstatkitWarning):
    """R issued a warning."""


class ROutputWarning(RWarning):
    """R printed output or a message."""
