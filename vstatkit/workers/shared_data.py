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

ALIGNMENT = 64  # bytes at whose multiples arrays begin in a file
ARRAY_ALIGNMENT = 16  # bytes at whose multiples numpy's own arrays begin
SMALL = 4096  # bytes of an array below which it is not kept apart
OPENED = 4  # parcels that a worker process keeps: those of one piece of work, or two


class Parcel:
    """A packed value.

    Attributes
    ----------
    key : str
        Name, the same in all processes.
    body : bytes
        The pickle.
    buffers : sequence of buffers
        Memory of its arrays.
    """

    def __init__(self, key: str, body: Any, buffers: Sequence[Any]) -> None:
        self.key = key
        self.body = body
        self.buffers = buffers
        self._lock = threading.Lock()
        self._value: tuple[Any] | None = None

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        buffers: list[Any] = [pickle.PickleBuffer(buffer) for buffer in self.buffers]
        if int(protocol) < 5:
            buffers = [one.raw().tobytes() for one in buffers]
        return Parcel, (self.key, bytes(self.body), buffers)

    def __sizeof__(self) -> int:
        return len(self.body) + sum(memoryview(one).nbytes for one in self.buffers)

    def open(self, parts: Sequence["Parcel"] = ()) -> Any:
        """Unpack the value, once; `parts` are parcels that it refers to."""
        with self._lock:
            if self._value is None:
                self.buffers = [_align(one) for one in self.buffers]
                known = {part.key: part for part in parts}
                reader = _Unpickler(self.body, self.buffers, known)
                self._value = (reader.load(),)
            return self._value[0]

    def take(self) -> Any:
        """Unpack the value into memory of its own, to keep it."""
        buffers = [_copy_buffer(one) for one in self.buffers]
        return _Unpickler(self.body, buffers, {}).load()

    def write(self, path: Path) -> None:
        """Write the parcel to a file that `read` maps into memory."""
        sizes = [len(self.body), *(memoryview(one).nbytes for one in self.buffers)]
        with path.open("wb") as file:
            file.write(struct.pack(f"<{len(sizes) + 1}q", len(sizes), *sizes))
            for one in (self.body, *self.buffers):
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(memoryview(one).cast("B") if len(one) else b"")

    @staticmethod
    def read(key: str, path: Path) -> "Parcel":
        """Map what `write` wrote."""
        with path.open("rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        (count,) = struct.unpack_from("<q", memory)
        sizes = struct.unpack_from(f"<{count}q", memory, 8)
        place, found = 8 * (count + 1), []
        for size in sizes:
            place += -place % ALIGNMENT
            found.append(memory[place : place + size])
            place += size
        return Parcel(key, found[0], found[1:])


def _align(buffer: Any) -> Any:
    """Copy what a network has left anywhere in memory to where arrays may begin.

    Matrix products of arrays that begin elsewhere differ in the last bit.
    """
    place = np.frombuffer(buffer, np.uint8).ctypes.data
    return buffer if place % ARRAY_ALIGNMENT == 0 else _copy_buffer(buffer)


def _copy_buffer(buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8).copy()  # where numpy lets arrays begin


def pack(
    value: Any, parts: Mapping[int, str] | None = None, key: str | None = None
) -> Parcel:
    """Pack a value.

    Parameters
    ----------
    value : object
        What to pack.
    parts : dict of int to str, optional
        Objects, by their `id`, that have parcels of their own, and those parcels' keys.
    key : str, optional
        Name of the parcel; by default a new one.
    """
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
    return Parcel(key or uuid4().hex, body.getvalue(), [one.raw() for one in buffers])


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
            in_file = place_in_file(value)
            if in_file is not None:
                return open_array, (in_file,)
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

    path: str  # the file
    size: int  # its bytes
    # first, length: First byte of the array, and number of bytes
    first: int
    length: int
    # shape, strides: Of the array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]  # of the array


def place_in_file(array: NDArray[Any]) -> InFile | None:
    """Find an array in the file that it is mapped from.

    None for an array that is not in a file, or may differ from it.
    """
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
    return InFile(
        path=path,
        size=os.path.getsize(path),
        first=root.offset + array.ctypes.data - root.ctypes.data,
        length=array.itemsize + sum((size - 1) * stride for size, stride in steps),
        shape=array.shape,
        strides=array.strides,
        dtype=array.dtype,
    )


def open_array(place: InFile) -> NDArray[Any]:
    """Map an array from its file again, in another process."""
    try:
        found = os.path.getsize(place.path)
    except OSError as error:
        raise FileNotFoundError(
            f"the data are in the file {place.path}, which this worker cannot read. "
            "Put it on a disk that all workers see, under the same name."
        ) from error
    if found != place.size:
        raise ValueError(
            f"the file {place.path} has {place.size} bytes where the work was handed "
            f"out, and {found} bytes where a worker reads it. All must see one file."
        )
    memory = np.memmap(
        place.path, np.uint8, "r", offset=place.first, shape=(place.length,)
    )
    return np.ndarray(place.shape, place.dtype, buffer=memory, strides=place.strides)


class Sent:
    """An object that lives longer than one piece of work, and where it was sent.

    Attributes
    ----------
    key : str
        Key of its parcels.
    places : dict
        What each engine knows it by: a future, a file, a reference. They are released
        when the object is.
    """

    def __init__(self) -> None:
        self.key = uuid4().hex
        self.places: dict[Any, Any] = {}


_SENT: dict[int, tuple[weakref.ref[Any], Sent]] = {}

_SENT_LOCK = threading.RLock()


def sent(value: Any) -> Sent | None:
    """Say where an object was sent; None for one whose end nobody would hear of."""
    with _SENT_LOCK:
        known = _SENT.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        number = id(value)

        def forget(ended: weakref.ref[Any]) -> None:
            with _SENT_LOCK:
                if number in _SENT and _SENT[number][0] is ended:
                    del _SENT[number]

        try:
            reference = weakref.ref(value, forget)
        except TypeError:
            return None
        fresh = Sent()
        _SENT[number] = reference, fresh
        return fresh


class ParcelFile:
    """A parcel in a temporary file, which goes when this object does."""

    def __init__(self, parcel: Parcel) -> None:
        base = os.environ.get("JOBLIB_TEMP_FOLDER")
        self.key, self.path = parcel.key, scratch_file(".parcel", base)
        remove_with(self, self.path)
        parcel.write(self.path)


_OPENED: OrderedDict[str, Parcel] = OrderedDict()


def recall(key: str, fetch: Any) -> Parcel:
    """Give a parcel that this process has opened lately, or fetch it."""
    if key in _OPENED:
        _OPENED.move_to_end(key)
        return _OPENED[key]
    parcel: Parcel = fetch()
    _OPENED[key] = parcel
    while len(_OPENED) > OPENED:
        _OPENED.popitem(last=False)
    return parcel
