"""Build the compiled tree grower; everything else is in pyproject.toml."""

import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ARGUMENTS = {"msvc": ["/O2", "/std:c++17"]}
"""How the compilers are told; those not named here understand GCC's arguments."""

STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether a build serves all later versions; Python without a lock has no such ABI."""

OLDEST = (3, 11)
"""The oldest Python that is served, as `requires-python` says."""


class BuildExtensions(build_ext):
    """Speak to the compiler at hand."""

    def build_extensions(self):
        """Set the arguments once the compiler is known."""
        arguments = ARGUMENTS.get(self.compiler.compiler_type, ["-O3", "-std=c++17"])
        for extension in self.extensions:
            extension.extra_compile_args = arguments
        super().build_extensions()

    def copy_extensions_to_source(self):
        """Leave no builds under another name, which Python would import instead."""
        super().copy_extensions_to_source()
        for extension in self.extensions:
            built = Path(self.get_ext_fullpath(extension.name))
            name = extension.name.rpartition(".")[2]
            for other in built.parent.glob(f"{name}.*{built.suffix}"):
                if other.name != built.name:
                    other.unlink()


EXTENSIONS = [
    Extension(
        "vstatkit.native._engine",
        ["vstatkit/native/_engine.pyx"],
        include_dirs=["vstatkit/native"],
        depends=[str(path) for path in sorted(Path("vstatkit/native").glob("*.hpp"))],
        language="c++",
        define_macros=[("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*OLDEST))]
        if STABLE
        else [],
        py_limited_api=STABLE,
    )
]

setup(
    ext_modules=cythonize(EXTENSIONS, language_level=3),
    cmdclass={"build_ext": BuildExtensions},
    options={"bdist_wheel": {"py_limited_api": "cp{}{}".format(*OLDEST)}}
    if STABLE
    else {},
)
