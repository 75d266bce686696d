"""Build the compiled tree grower; everything else is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ARGUMENTS = {"msvc": ["/O2", "/std:c++17"]}
"""How the compilers are told; those not named here understand GCC's arguments."""


class BuildExtensions(build_ext):
    """Speak to the compiler at hand."""

    def build_extensions(self):
        """Set the arguments once the compiler is known."""
        arguments = ARGUMENTS.get(self.compiler.compiler_type, ["-O3", "-std=c++17"])
        for extension in self.extensions:
            extension.extra_compile_args = arguments
        super().build_extensions()


EXTENSIONS = [
    Extension(
        "vstatkit.native._engine",
        ["vstatkit/native/_engine.pyx"],
        include_dirs=["vstatkit/native"],
        depends=[str(path) for path in sorted(Path("vstatkit/native").glob("*.hpp"))],
        language="c++",
    )
]

setup(
    ext_modules=cythonize(EXTENSIONS, language_level=3),
    cmdclass={"build_ext": BuildExtensions},
)
