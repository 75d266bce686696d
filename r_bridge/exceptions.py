"""Errors and warnings that come from R."""

from vstatkit import VstatkitError, VstatkitWarning


class RUnavailableError(VstatkitError):
    """R, rpy2 or an R package is missing; the message says how to install it."""


class RError(VstatkitError):
    """R stopped with an error; its message is shown, and R keeps running."""


class RWarning(VstatkitWarning):
    """R warned."""


class ROutputWarning(RWarning):
    """R printed something, or sent a message."""
