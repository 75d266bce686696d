"""The kernels by name, and how one is built from arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import KernelLike
from vstatkit.formula.factor_coding import FactorCoding
from vstatkit.kernels.base import AnyKernel, KernelCodec, Training
from vstatkit.kernels.linear import LINEAR_CODEC, linear_kernel
from vstatkit.kernels.residual_trees import STAGE_OPTIONS, with_stages
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.kernels.tree_files import STAGED_CODEC, TREE_CODEC
from vstatkit.kernels.tree_options import TREE_OPTIONS
from vstatkit.kernels.user_defined import FunctionKernel, estimator_kernel, n_positional
from vstatkit.validation import check_options


@dataclass(frozen=True)
class NamedKernel:
    """A kernel with a name.

    Attributes
    ----------
    name : str
        Its name in `kernel=`.
    build : callable
        `(training, options) -> kernel`: something that follows the protocol
        `Kernel` of vstatkit.kernels.base, and `PredictiveKernel` if its
        learners predict.
    title : str
        Title of the summary.
    options : tuple of str
        Keywords of `fit` that `build` reads.
    intercept : bool
        Whether the design matrix has the formula's intercept.
    takes_missing : bool
        Whether predictors may be missing.
    coefficients : bool
        Whether its values are coefficients, without query points.
    codec : KernelCodec or None
        How its learners are saved; without it, results are saved without learners.
    """

    name: str
    build: Callable[[Training, Mapping[str, Any]], AnyKernel]
    title: str = "Ensemble Results"
    options: tuple[str, ...] = ()
    intercept: bool = False
    takes_missing: bool = False
    coefficients: bool = False
    codec: KernelCodec | None = None


# Option of kernels that split sets of levels without indicators.
CATEGORICAL_SPLITS = "categorical_splits"
KERNELS: dict[str, NamedKernel] = {}  # kernels by the name that `kernel=` takes
CODECS: dict[str, KernelCodec] = {}  # codecs of learners, by their name in files


def register_kernel(kernel: NamedKernel) -> None:
    """Register a kernel under its name.

    Parameters
    ----------
    kernel : NamedKernel
        `kernel=name` then selects it in `fit`, in files and on the command line.
    """
    if not isinstance(kernel, NamedKernel):
        raise TypeError(
            "`kernel` must be a NamedKernel of vstatkit.kernels.registry; got "
            f"{type(kernel).__name__}."
        )
    if kernel.name in KERNELS:
        raise ValueError(
            f"there is a kernel {kernel.name!r} already; choose another name."
        )
    codec = kernel.codec
    if codec is not None and CODECS.setdefault(codec.name, codec) is not codec:
        raise ValueError(
            f"files have learners {codec.name!r} of another kernel already; choose "
            "another name for the codec."
        )
    KERNELS[kernel.name] = kernel


def _tree_kernel(
    name: str, training: Training, options: Mapping[str, Any]
) -> TreeKernel:
    trees = tree_kernel(
        *(name, training.X, training.y),
        n_classes=training.n_classes,
        weights=training.weights,
        options=options,
        levels=training.levels,
    )
    return with_stages(trees, options)


for _name, _title in (("forest", "Forest Results"), ("tree", "Bagged Tree Results")):
    register_kernel(
        NamedKernel(
            *(_name, partial(_tree_kernel, _name), _title),
            options=(*TREE_OPTIONS, *STAGE_OPTIONS, CATEGORICAL_SPLITS),
            takes_missing=True,
            codec=TREE_CODEC,
        )
    )
for _name, _title in (("ols", "Bagged OLS Results"), ("logit", "Bagged Logit Results")):
    register_kernel(
        NamedKernel(
            *(_name, partial(linear_kernel, _name), _title),
            intercept=True,
            coefficients=True,
            codec=LINEAR_CODEC,
        )
    )
CODECS[STAGED_CODEC.name] = STAGED_CODEC


def codec_of(kernel: Any) -> KernelCodec | None:
    """Find the codec that writes the learners of a kernel to a file."""
    codecs = [codec for codec in CODECS.values() if isinstance(kernel, codec.kernel)]
    # A subclass has learners of its own kind.
    return max(codecs, key=lambda codec: len(codec.kernel.__mro__), default=None)


def keeps_intercept(kernel: KernelLike) -> bool:
    """Return whether the kernel uses the formula's intercept column."""
    if isinstance(kernel, str):
        return kernel in KERNELS and KERNELS[kernel].intercept
    return callable(kernel) and not isinstance(kernel, BaseEstimator)


def factor_coding(
    kernel: KernelLike, options: Mapping[str, Any], target: str = "mean"
) -> FactorCoding:
    """Choose how the factors of a formula are coded for a kernel.

    Kernels with an intercept have a reference level. Others have columns that treat
    all levels alike; a linear trend, which `target="truth"` tries, has indicators.
    """
    choice = options.get(CATEGORICAL_SPLITS)
    if choice is not None and not isinstance(choice, bool | np.bool_):
        raise TypeError(
            f"`{CATEGORICAL_SPLITS}` must be True, False or None; got {choice!r}."
        )
    if keeps_intercept(kernel):
        return "treatment"
    known = KERNELS.get(kernel) if isinstance(kernel, str) else None
    if known is None or CATEGORICAL_SPLITS not in known.options:
        return "indicators"
    if choice is None:
        linear = options.get("trend") is not None or target != "mean"
        return "indicators" if linear else "trees"
    return "splits" if choice else "indicators"


def kernel_name(kernel: KernelLike) -> str:
    """Name the kernel for printed tables."""
    if isinstance(kernel, str):
        return kernel
    return getattr(kernel, "__name__", type(kernel).__name__)


def kernel_title(kernel: KernelLike) -> str:
    """Give the title of the kernel's summary."""
    known = KERNELS.get(kernel) if isinstance(kernel, str) else None
    return NamedKernel.title if known is None else known.title


def build_kernel(
    kernel: KernelLike, training: Training, options: Mapping[str, Any]
) -> AnyKernel:
    """Build the kernel that `kernel=` specifies, after checking its options."""
    if isinstance(kernel, str):
        return _build_named(kernel, training, options)
    check_options(options, (), f"kernel {kernel_name(kernel)!r}")
    if isinstance(kernel, type):
        raise TypeError(
            f"`kernel` must be an estimator, not its class; write {kernel.__name__}()."
        )
    if isinstance(kernel, BaseEstimator):
        return estimator_kernel(kernel, training)
    if not callable(kernel):
        raise TypeError(
            "`kernel` must be a name, a scikit-learn estimator or a function; got "
            f"{type(kernel).__name__}."
        )
    if np.isnan(training.X).any():
        raise ValueError("`missing='pass'` is not for functions as kernels.")
    if training.weights is not None:
        raise ValueError("`weights` are not for functions as kernels.")
    if n_positional(kernel) == 1:
        return FunctionKernel(kernel, (training.data,))
    columns = pd.DataFrame(training.X, columns=training.names)
    return FunctionKernel(kernel, (training.response, columns))


def _build_named(
    name: str, training: Training, options: Mapping[str, Any]
) -> AnyKernel:
    known = KERNELS.get(name)
    check_options(options, () if known is None else known.options, f"kernel {name!r}")
    if known is None:
        names = ", ".join(map(repr, KERNELS))
        raise ValueError(
            f"`kernel` must be {names}, a scikit-learn estimator or a function; "
            f"got {name!r}."
        )
    if not known.takes_missing and np.isnan(training.X).any():
        raise ValueError(
            f"kernel={name!r} does not take missing values; use missing='drop'."
        )
    return known.build(training, options)
