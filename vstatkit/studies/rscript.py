"""What R has, asked of Rscript."""

import shutil
import subprocess


def has_r_package(name: str) -> bool:
    """Tell whether R is installed and loads a package."""
    if shutil.which("Rscript") is None:
        return False
    code = f"quit(status = !requireNamespace('{name}', quietly = TRUE))"
    asked = ["Rscript", "--vanilla", "-e", code]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
