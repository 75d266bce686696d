"""Build the compiled tree grower; everything else is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = [
    Extension(
        "vstatkit.forest._engine",
        ["vstatkit/forest/_engine.pyx"],
        include_dirs=["vstatkit/forest"],
        depends=[f"vstatkit/forest/{name}.hpp" for name in ("counts", "draw", "grow")],
        language="c++",
        extra_compile_args=["-O3", "-std=c++17"],
    )
]

setup(ext_modules=cythonize(EXTENSIONS, language_level=3))
