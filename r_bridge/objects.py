"""Objects that stay in R, and results of calls."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RObject:
    """An object that stays in R, such as a fitted forest."""

    sexp: Any  # rpy2's handle of it, or its number in R's own process
    classes: tuple[str, ...]  # its classes in R

    def __repr__(self) -> str:
        return f"<R object of class {' '.join(self.classes)}>"


@dataclass(frozen=True)
class Answer:
    """Result of a call: its value, and R's output, messages and warnings."""

    value: Any  # what the function returned
    failed: str | None  # R's message if it raised an error
    warned: list[str]  # R's warnings
    printed: list[str]  # R's output
    interrupted: bool  # whether Ctrl-C stopped it
