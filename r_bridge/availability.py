"""What of R is installed, found out without starting R in this process."""

import importlib.metadata
import shutil
import subprocess

R_PACKAGES = ("ranger", "grf", "randomForest", "MASS")
"""Packages of R that the bridge can use."""

_ASK = """
cat("R", format(getRversion()), "\\n")
for (name in commandArgs(trailingOnly = TRUE)) {
  path <- suppressWarnings(system.file(package = name))
  if (nzchar(path)) cat(name, format(packageVersion(name)), "\\n")
}
"""


def available() -> dict[str, str | None]:
    """Say which parts of the bridge are installed.

    Returns
    -------
    dict
        Version of R, rpy2 and each R package, or None where it is missing.
    """
    found: dict[str, str | None] = dict.fromkeys(("R", "rpy2", *R_PACKAGES))
    try:
        found["rpy2"] = importlib.metadata.version("rpy2")
    except importlib.metadata.PackageNotFoundError:
        found["rpy2"] = None
    rscript = shutil.which("Rscript")
    if rscript is None:
        return found
    answer = subprocess.run(
        [rscript, "--vanilla", "-e", _ASK, *R_PACKAGES],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in answer.stdout.splitlines():
        name, version = line.split()
        found[name] = version
    return found
