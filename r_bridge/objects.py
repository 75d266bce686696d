"""Objects that stay in R, and results of calls."""

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
    """Result of a call: its value, and R's output, messages and warnings.

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
