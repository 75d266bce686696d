"""How the learners of a kernel are written to files, and read again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from vstatkit.kernels.protocol import Predictive

Fields = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class KernelCodec:
    """Learners as plain fields and arrays, there and back.

    Attributes
    ----------
    name : str
        What a file calls such learners.
    kernel : type
        Class of the kernels whose learners it writes.
    fields, arrays : tuple of str
        Names of the fields, and of the arrays, that it writes and reads.
    pack : callable
        `(kernel, learners) -> (fields, arrays)`; fields hold what JSON can.
    unpack : callable
        `(fields, arrays, B, p) -> (kernel, learners)` of B learners that predict
        from p columns. What a file says is checked (`vstatkit.packing.check`): it
        may be damaged, or made to do harm.
    """

    name: str
    kernel: type
    fields: tuple[str, ...]
    arrays: tuple[str, ...]
    pack: Callable[[Any, list[Any]], tuple[Fields, Arrays]]
    unpack: Callable[
        [Mapping[str, Any], Arrays, int, int], tuple[Predictive, list[Any]]
    ]
