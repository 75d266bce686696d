"""Detect installed parts of R, without starting R in this process."""

import importlib.metadata
import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from r_bridge.exceptions import RUnavailableError
from r_bridge.host import inside_r, rscript
from r_bridge.packages import r_packages

# Parts that are always needed, with their install commands on Debian and Ubuntu
BASICS = {
    "R": "apt-get install r-base-core",
    "rpy2": 'pip install "rpy2>=3.6,<3.7" "rpy2-rinterface<3.6.6"',
}

RPY2_FOR_OLDER_R = (
    "rpy2-rinterface {rinterface} needs R 4.5 or newer; this is R {r}. Run "
    '`pip install "rpy2-rinterface<3.6.6"`, or install a newer R.'
)

# First version of rpy2-rinterface that does not load with R before 4.5
_NEEDS_NEWER_R = (3, 6, 6)

_ASK = """
cat("R", format(getRversion()), "\\n")
for (name in commandArgs(trailingOnly = TRUE)) {
  path <- suppressWarnings(system.file(package = name))
  if (nzchar(path)) cat(name, format(packageVersion(name)), "\\n")
}
"""


@dataclass(frozen=True)
class Availability(Mapping[str, str | None]):
    """Versions of R, rpy2 and R packages, by name; None if missing."""

    versions: dict[str, str | None]  # version, or None, of every part
    conflict: str | None = None  # why the parts do not work together, where they do not

    def __getitem__(self, name: str) -> str | None:
        return self.versions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the parts that are not installed."""
        return tuple(name for name, found in self.versions.items() if found is None)

    def require(self, *names: str) -> None:
        """Raise an error if one of `names` is missing, with the install command."""
        for name in names:
            if self.versions[name] is None:
                raise RUnavailableError(
                    f"{name} is needed and not installed. Install it by: "
                    f"{how_to_install(name)}. `r_bridge.available()` lists all parts."
                )
        if self.conflict is not None:
            raise RUnavailableError(self.conflict)

    def __str__(self) -> str:
        width = max(map(len, self.versions))
        rows = [
            f"{name:<{width}}  {found or f'missing; {how_to_install(name)}'}"
            for name, found in self.versions.items()
        ]
        return "\n".join([*rows, *([self.conflict] if self.conflict else [])])

    __repr__ = __str__


def how_to_install(name: str) -> str:
    """Look up the command that installs a part."""
    return {**BASICS, **r_packages()}[name]


def available() -> Availability:
    """List the installed parts of the bridge, with their versions.

    Returns
    -------
    Availability
        A mapping from "R", "rpy2", the packages of registered forests and "MASS" to
        versions, None where missing. Printed, it says how to install the rest.

    Examples
    --------
    >>> import r_bridge
    >>> list(r_bridge.available())
    ['R', 'rpy2', 'ranger', 'grf', 'randomForest', 'MASS']
    """
    found: dict[str, str | None] = dict.fromkeys((*BASICS, *r_packages()))
    found["rpy2"] = _distribution("rpy2")
    found |= _installed_in_r()
    return Availability(found, _conflict(found["R"], _distribution("rpy2-rinterface")))


def require(*names: str) -> Availability:
    """Check that parts are installed, using cached results."""
    asked = os.environ.get("PATH", ""), tuple(r_packages())
    if any(_remembered(*asked)[name] is None for name in names):
        _remembered.cache_clear()
    found = _remembered(*asked)
    if inside_r():  # R runs in a separate process, without rpy2
        found = replace(found, conflict=None)
        names = tuple(name for name in names if name != "rpy2")
    found.require(*names)
    return found


@lru_cache(maxsize=1)
def _remembered(path: str, packages: tuple[str, ...]) -> Availability:
    """Detect the parts once for each search path and list of packages."""
    del path, packages
    return available()


def _distribution(name: str) -> str | None:
    """Return the version of a Python package, or None."""
    if importlib.util.find_spec("rpy2") is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _installed_in_r() -> dict[str, str]:
    """Return the versions of R and of its installed packages."""
    program = rscript()
    if program is None:
        return {}
    answer = subprocess.run(
        [program, "--vanilla", "-e", _ASK, *r_packages()],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in answer.stdout.splitlines()]
    return {words[0]: words[1] for words in lines if len(words) == 2}


def _conflict(r: str | None, rinterface: str | None) -> str | None:
    """Explain why this rpy2 cannot load this R, or return None."""
    if r is None or rinterface is None:
        return None
    if _numbers(rinterface) >= _NEEDS_NEWER_R and _numbers(r) < (4, 5):
        return RPY2_FOR_OLDER_R.format(r=r, rinterface=rinterface)
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Parse `4.2.2` as (4, 2, 2), up to the first part that is not a number."""
    parts = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)
