"""Data that many calls share, sent to every worker once.

A parcel is a pickle (cloudpickle's, which takes functions that nobody can import) with
its large arrays kept apart, so that they can be sent, or mapped from a file, without
a copy. Arrays in files (`numpy.memmap`) travel as the name of the file.
"""

import io
import mmap
import os
import pickle
import struct
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from vstatkit.scratch import remove_with, scratch_file

try:
    import cloudpickle  # knows what users have registered with it
except ImportError:  # pragma: no cover
    from joblib.externals import cloudpickle

ALIGNMENT = 64  # arrays begin at multiples of it in a file, in bytes
ARRAY_ALIGNMENT = 16  # numpy's own arrays begin at multiples of it
SMALL = 4096  # smaller arrays, in bytes, are not kept apart
OPENED = 4  # parcels that a worker process keeps: those of one piece of work, or two


class Parcel:
    """A packed value: a pickle, its arrays' memory, and its name in all processes."""

    def __init__(self, key: str, body: Any, buffers: Sequence[Any]) -> None:
        self.key, self.body, self.buffers = key, body, buffers
        self._lock = threading.Lock()
        self._value: tuple[Any] | None = None

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        buffers: list[Any] = [pickle.PickleBuffer(buffer) for buffer in self.buffers]
        if int(protocol) < 5:
            buffers = [buffer.raw().tobytes() for buffer in buffers]
        return Parcel, (self.key, bytes(self.body), buffers)

    def __sizeof__(self) -> int:
        return sum(self._sizes())

    def _sizes(self) -> list[int]:
        return [memoryview(part).nbytes for part in (self.body, *self.buffers)]

    def open(self, parts: Sequence["Parcel"] = ()) -> Any:
        """Unpack the value, once; `parts` are parcels that it refers to."""
        with self._lock:
            if self._value is None:
                self.buffers = [_align(buffer) for buffer in self.buffers]
                known = {part.key: part for part in parts}
                reader = _Unpickler(self.body, self.buffers, known)
                self._value = (reader.load(),)
            return self._value[0]

    def take(self) -> Any:
        """Unpack the value into memory of its own, to keep it."""
        buffers = [_copy_buffer(buffer) for buffer in self.buffers]
        return _Unpickler(self.body, buffers, {}).load()

    def write(self, path: Path) -> None:
        """Write the parcel to a file that `read` maps into memory."""
        sizes = self._sizes()
        with path.open("wb") as file:
            file.write(struct.pack(f"<{len(sizes) + 1}q", len(sizes), *sizes))
            for part in (self.body, *self.buffers):
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(memoryview(part).cast("B") if len(part) else b"")

    @staticmethod
    def read(key: str, path: Path) -> "Parcel":
        """Map the file of a parcel."""
        with path.open("rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        (count,) = struct.unpack_from("<q", memory)
        place, parts = 8 * (count + 1), []
        for size in struct.unpack_from(f"<{count}q", memory, 8):
            place += -place % ALIGNMENT
            parts.append(memory[place : place + size])
            place += size
        return Parcel(key, parts[0], parts[1:])


def _align(buffer: Any) -> Any:
    """Copy a buffer to an address where arrays may begin, unless it is at one.

    Matrix products of arrays that begin elsewhere differ in the last bit.
    """
    place = np.frombuffer(buffer, np.uint8).ctypes.data
    return buffer if place % ARRAY_ALIGNMENT == 0 else _copy_buffer(buffer)


def _copy_buffer(buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8).copy()  # where numpy lets arrays begin


def pack(
    value: Any, parts: Mapping[int, str] | None = None, key: str | None = None
) -> Parcel:
    """Pack a value; `parts` has the keys of objects with own parcels, by their `id`."""
    body = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    try:
        _Pickler(body, buffers, parts or {}).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(
            f"the work cannot be sent to other processes: {error}. Kernels, estimators "
            "and data must be picklable there; threads (n_jobs=1, or "
            "joblib.parallel_config('threading')) take everything."
        ) from error
    return Parcel(key or uuid4().hex, body.getvalue(), [part.raw() for part in buffers])


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def __init__(self, file: Any, buffers: list[Any], parts: Mapping[int, str]) -> None:
        def keep_apart(buffer: pickle.PickleBuffer) -> bool:
            small = buffer.raw().nbytes < SMALL
            if not small:
                buffers.append(buffer)
            return small

        super().__init__(file, protocol=5, buffer_callback=keep_apart)
        self._parts = parts

    def persistent_id(self, value: Any) -> str | None:
        return self._parts.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and type(value) in (np.ndarray, np.memmap):
            in_file = _place_in_file(value)
            if in_file is not None:
                return _open_array, (in_file,)
            if type(value) is np.memmap or not (
                value.flags.c_contiguous or value.flags.f_contiguous
            ):
                # Kept in the order of the original: sums depend on it in the last bit.
                return np.array(value, order="K").__reduce_ex__(5)
        return super().reducer_override(value)


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, body: Any, buffers: Sequence[Any], parts: Mapping[str, Parcel]
    ) -> None:
        super().__init__(io.BytesIO(body), buffers=buffers)
        self._parts = parts

    def persistent_load(self, key: str) -> Any:
        return self._parts[key].open()


class InFile(NamedTuple):
    """Where an array is in a file."""

    path: str
    size: int  # bytes of the file
    first: int  # first byte of the array
    length: int  # its number of bytes
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


def _place_in_file(array: NDArray[Any]) -> InFile | None:
    """Find the file of an array; None if it has none, or may differ from it."""
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    if not isinstance(root, np.memmap) or root.mode == "c" or root.filename is None:
        return None
    path = os.path.abspath(os.fspath(root.filename))
    backwards = min(array.strides, default=0) < 0
    if not array.size or array.dtype.hasobject or backwards or not os.path.isfile(path):
        return None
    if root.mode != "r":
        root.flush()
    steps = zip(array.shape, array.strides, strict=True)
    first = root.offset + array.ctypes.data - root.ctypes.data
    length = array.itemsize + sum((size - 1) * stride for size, stride in steps)
    geometry = array.shape, array.strides, array.dtype
    return InFile(path, os.path.getsize(path), first, length, *geometry)


def _open_array(place: InFile) -> NDArray[Any]:
    """Map an array from its file again, in another process."""
    try:
        size = os.path.getsize(place.path)
    except OSError as error:
        raise FileNotFoundError(
            f"the data are in the file {place.path}, which this worker cannot read. "
            "Put it on a disk that all workers see, under the same name."
        ) from error
    if size != place.size:
        raise ValueError(
            f"the file {place.path} has {place.size} bytes where the work was handed "
            f"out, and {size} bytes where a worker reads it. All must see one file."
        )
    memory = np.memmap(
        place.path, np.uint8, "r", offset=place.first, shape=(place.length,)
    )
    return np.ndarray(place.shape, place.dtype, buffer=memory, strides=place.strides)


class Sent:
    """Where an object that lives longer than one piece of work was sent.

    `places` has its future, file or reference for each backend. They are released when
    the object is.
    """

    def __init__(self) -> None:
        self.key = uuid4().hex  # of its parcels
        self.places: dict[Any, Any] = {}


_SENT: dict[int, tuple[weakref.ref[Any], Sent]] = {}
_SENT_LOCK = threading.RLock()


def sent(value: Any) -> Sent | None:
    """Return where an object was sent; None if it has no weak references."""
    number = id(value)

    def forget(ended: weakref.ref[Any]) -> None:
        with _SENT_LOCK:
            if number in _SENT and _SENT[number][0] is ended:
                del _SENT[number]

    with _SENT_LOCK:
        if number not in _SENT or _SENT[number][0]() is not value:
            try:
                _SENT[number] = weakref.ref(value, forget), Sent()
            except TypeError:
                return None
        return _SENT[number][1]


class ParcelFile:
    """A parcel in a temporary file, which is removed with this object."""

    def __init__(self, parcel: Parcel) -> None:
        base = os.environ.get("JOBLIB_TEMP_FOLDER")
        self.key, self.path = parcel.key, scratch_file(".parcel", base)
        remove_with(self, self.path)
        parcel.write(self.path)


_OPENED: OrderedDict[str, Parcel] = OrderedDict()


def recall(key: str, fetch: Any) -> Parcel:
    """Return a parcel that this process has opened lately, or fetch it."""
    parcel: Parcel = _OPENED.pop(key) if key in _OPENED else fetch()
    _OPENED[key] = parcel  # the latest one
    while len(_OPENED) > OPENED:
        _OPENED.popitem(last=False)
    return parcel
