"""Keyword options that are handed on to kernels and designs."""

from collections.abc import Mapping
from typing import Any

from vstatkit.formula.frames import nearest


def split_options(
    options: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword options into those of the design and the rest."""
    ours = {name: value for name, value in options.items() if name in known}
    rest = {name: value for name, value in options.items() if name not in known}
    return ours, rest


def check_options(options: Mapping[str, Any], known: tuple[str, ...], of: str) -> None:
    """Refuse unknown options."""
    for name in options:
        if name not in known:
            listed = ", ".join(known) if known else "none"
            raise TypeError(
                f"{of} has no option {name!r}{nearest(name, known)} "
                f"Its options are: {listed}."
            )
