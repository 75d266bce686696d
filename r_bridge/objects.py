"""Objects that stay in R, and what R answers to a call."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RObject:
    """An object that stays in R, such as a fitted forest.

    Attributes
    ----------
    sexp : Any
        rpy2's handle of it, or its number in R's own process.
    classes : tuple of str
        Its classes in R.
    """

    sexp: Any
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<R object of class {' '.join(self.classes)}>"


@dataclass(frozen=True)
class Answer:
    """A value, and all that R said on the way to it.

    Attributes
    ----------
    value : Any
        What the function gave.
    failed : str or None
        R's message where it stopped.
    warned, printed : list of str
        R's warnings, and what it printed.
    interrupted : bool
        Whether Ctrl-C stopped it.
    """

    value: Any
    failed: str | None
    warned: list[str]
    printed: list[str]
    interrupted: bool
