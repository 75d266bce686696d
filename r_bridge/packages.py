"""R packages that the bridge can use, and the commands that install them."""

# Packages used for their data only, with the commands that install them
DATA_PACKAGES = {
    "MASS": "apt-get install r-cran-mass, or in R: install.packages('MASS')"
}

# Packages whose forests are registered, with the commands that install them
FOREST_PACKAGES: dict[str, str] = {}


def r_packages() -> dict[str, str]:
    """Map every package that the bridge can use to the command that installs it."""
    return {**FOREST_PACKAGES, **DATA_PACKAGES}
