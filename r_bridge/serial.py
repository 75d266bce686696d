"""Exact serialization of values in R's binary format.

R writes and reads it by `serialize` and `unserialize` (version 2, big-endian).
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from r_bridge.exceptions import RError

_HEAD = b"X\n" + struct.pack(">iii", 2, 0x040000, 0x020300)

_NULL, _SYMBOL, _PAIRS, _CHARS = 254, 1, 2, 9
_LOGICAL, _INTEGER, _REAL, _TEXT, _LIST, _REFERENCE = 10, 13, 14, 16, 19, 255

_IS_OBJECT, _HAS_ATTRIBUTES, _HAS_TAG = 0x100, 0x200, 0x400

_UTF8 = 0x8000

# How R writes a missing whole number or truth value
NA_INTEGER = np.iinfo(np.int32).min

# Class of the numbers that stand for objects in the other process
HANDLE = "vstatkit_handle"


class Handle(int):
    """Number of an object that stays in R."""


class GenericList(list[Any]):
    """A list that stays a list in R, even if all its entries are text."""


def _int(value: int) -> bytes:
    return struct.pack(">i", value)


def _chars(text: str | None) -> bytes:
    if text is None:
        return _int(_CHARS) + _int(-1)
    coded = text.encode()
    return _int(_CHARS | _UTF8) + _int(len(coded)) + coded


def _attributes(named: Mapping[str, bytes]) -> bytes:
    parts = [
        _int(_PAIRS | _HAS_TAG) + _int(_SYMBOL) + _chars(name) + value
        for name, value in named.items()
    ]
    return b"".join([*parts, _int(_NULL)])


def _vector(kind: int, length: int, body: bytes, **named: bytes) -> bytes:
    flags = kind | (_HAS_ATTRIBUTES if named else 0)
    flags |= _IS_OBJECT if "class" in named else 0
    tail = _attributes(named) if named else b""
    return _int(flags) + _int(length) + body + tail


def _texts(values: Any) -> bytes:
    return _vector(_TEXT, len(values), b"".join(map(_chars, values)))


def _array(array: Any) -> bytes:
    kind = array.dtype.kind
    code, width = (_REAL, ">f8") if kind == "f" else (_INTEGER, ">i4")
    code = _LOGICAL if kind == "b" else code
    if kind in "iu" and array.size and np.abs(array).max() >= 2**31:
        raise TypeError("R's whole numbers have 32 bits; give floats.")
    body = array.astype(width).tobytes(order="F")
    named = {"dim": _array(np.array(array.shape))} if array.ndim > 1 else {}
    return _vector(code, array.size, body, **named)


def _list(values: Any) -> bytes:
    if isinstance(values, Mapping):
        body = b"".join(map(_item, values.values()))
        return _vector(_LIST, len(values), body, names=_texts(list(values)))
    texts = all(one is None or isinstance(one, str) for one in values)
    if texts and not isinstance(values, GenericList):
        return _texts(values)
    return _vector(_LIST, len(values), b"".join(map(_item, values)))


def _item(value: Any) -> bytes:
    if value is None:
        return _int(_NULL)
    if isinstance(value, Handle):
        return _vector(_INTEGER, 1, _int(value), **{"class": _texts([HANDLE])})
    if isinstance(value, str):
        return _texts([value])
    if isinstance(value, bool | int | float | np.generic):
        value = np.atleast_1d(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return _array(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OU":
        raise TypeError(f"R has no place for {value.dtype}: {value!r}.")
    return _list(value)


def dumps(value: Any) -> bytes:
    """Serialize a value: numbers, text, arrays, lists, dicts, handles and None."""
    return _HEAD + _item(value)


class _Reader:
    """Sequential reader of items."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, len(_HEAD)
        self.symbols: list[str] = []

    def number(self) -> int:
        (value,) = struct.unpack_from(">i", self.data, self.place)
        self.place += 4
        return int(value)

    def take(self, kind: str, count: int) -> Any:
        found = np.frombuffer(self.data, kind, count, self.place)
        self.place += found.nbytes
        return found

    def chars(self) -> str | None:
        self.number()
        length = self.number()
        return None if length < 0 else bytes(self.take("u1", length)).decode()

    def length(self) -> int:
        short = self.number()
        return short if short >= 0 else self.number() * 2**32 + self.number()

    def item(self) -> Any:
        flags = self.number()
        kind = flags & 0xFF
        if kind == _NULL:
            return None
        read = _READERS.get(kind)
        if read is None:
            raise RError(f"R answered with what cannot be read here (type {kind}).")
        value = read(self, self.length())
        named = dict(self.pairs()) if flags & _HAS_ATTRIBUTES else {}
        return _dressed(value, named)

    def pairs(self) -> Iterator[tuple[str, Any]]:
        while self.number() & 0xFF == _PAIRS:
            yield self.symbol(), self.item()

    def symbol(self) -> str:
        flags = self.number()
        if flags & 0xFF == _REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        self.symbols.append(str(self.chars()))
        return self.symbols[-1]


def _whole(reader: _Reader, count: int, kind: Any) -> Any:
    raw = reader.take(">i4", count).astype(np.int64)
    missing = raw == NA_INTEGER
    return np.where(missing, np.nan, raw) if missing.any() else raw.astype(kind)


_READERS: dict[int, Any] = {
    _LOGICAL: lambda reader, count: _whole(reader, count, np.bool_),
    _INTEGER: lambda reader, count: _whole(reader, count, np.int64),
    _REAL: lambda reader, count: reader.take(">f8", count).astype(np.float64),
    _TEXT: lambda reader, count: np.array(
        [reader.chars() for _ in range(count)], dtype=object
    ),
    _LIST: lambda reader, count: [reader.item() for _ in range(count)],
}


def _dressed(value: Any, named: Mapping[str, Any]) -> Any:
    """Apply attributes to a value: names, a shape, or a handle."""
    if HANDLE in list(named.get("class", ())):
        return Handle(value[0])
    if isinstance(value, list) and "names" in named:
        return dict(zip(named["names"], value, strict=True))
    if "dim" in named and not isinstance(value, list):
        return value.reshape(tuple(named["dim"]), order="F")
    return value


def loads(data: bytes) -> Any:
    """Read a value written by R's `serialize(xdr = TRUE, version = 2)`."""
    return _Reader(data).item()
