"""Input files of the command: bytes of tables, decompressed, and other files."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vstatkit.exceptions import DataError
from vstatkit.sources.recognition import PARQUET
from vstatkit.sources.source import import_optional

STDIN = "-"  # stands for standard input, as in other programs
# What unpacking raises.
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# First bytes of other kinds of files, what they are, and what reads them.
_FOREIGN = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "pd.read_excel"),
    (b"<stata_dta>", "a Stata file", "pd.read_stata"),
    (b"$FL2", "an SPSS file", "pd.read_spss"),
    (b"$FL3", "an SPSS file", "pd.read_spss"),
    (b"ARROW1", "a Feather file", "pd.read_feather"),
    (b"\x89HDF", "an HDF5 file", "pd.read_hdf"),
    (b"{", "JSON", "pd.read_json"),
    (b"[", "JSON", "pd.read_json"),
)
_SAVED_BY_R = "data saved by R; in R, write.csv(data, 'data.csv') writes a table"
_WEB_PAGE = "a web page, perhaps one that asks for a login"
_WITHOUT_READER = (
    (b"RDX", _SAVED_BY_R),
    (b"X\n\0", _SAVED_BY_R),
    (b"SQLite format 3", "a database; write the table of a query to a CSV file"),
    (b"%PDF", "a PDF document; it has to be a table as text"),
    (b"<!doctype html", _WEB_PAGE),
    (b"<html", _WEB_PAGE),
)


@dataclass(frozen=True)
class Content:
    """What a file or a pipe holds."""

    name: str  # what messages call it
    data: bytes  # its bytes, unpacked


def read_content(path: str) -> Content:
    """Read a file, or standard input where the path is `-`."""
    if path == STDIN:
        name, packed = "standard input", sys.stdin.buffer.read()
    else:
        name, packed = path, _file_bytes(Path(path))
    unpack = next((f for mark, f in _PACKED if packed.startswith(mark)), None)
    try:
        data = packed if unpack is None else unpack(packed, name)
    except _DAMAGED as error:
        raise DataError(
            f"{name} is packed, and cannot be unpacked: {error}. It may be cut off."
        ) from error
    if not data.strip():
        raise DataError(f"{name} is empty; it needs a header row and rows of data.")
    return Content(name, data)


def check_text(content: Content) -> None:
    """Refuse what is no text, and say what to do with it."""
    start = content.data[:64].lstrip().lower()
    for mark, what, reader in _FOREIGN:
        if start.startswith(mark.lower()):
            raise DataError(_read_elsewhere(content.name, what, reader))
    for mark, what in _WITHOUT_READER:
        if start.startswith(mark.lower()):
            raise DataError(f"{content.name} is no table as text: it is {what}.")


def _read_elsewhere(name: str, what: str, reader: str) -> str:
    return (
        f"{name} is {what}. Save it as CSV, or in Python use "
        f'vs.fit(formula, {reader}("{name}")).'
    )


def check_folder(path: Path) -> None:
    """Refuse folders without Parquet files."""
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    if any(file.name.lower().endswith(PARQUET) for file in inside):
        return
    example = f", such as {inside[0]}" if inside else ""
    raise DataError(
        f"{path} is a folder without Parquet files; give the name of a file{example}."
    )


def _file_bytes(path: Path) -> bytes:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}{_suggest_file(path)}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{path} may not be read: see its permissions.")
    return path.read_bytes()


def _suggest_file(path: Path) -> str:
    """Name the file that was probably meant: the same name, another ending."""
    folder = path.parent
    if not folder.is_dir():
        return f"; there is no folder {folder} either."
    same = sorted(folder.glob(f"{path.stem}.*")) if path.stem.isidentifier() else []
    return f"; did you mean {same[0]}?" if same else "."


def _from_zip(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        for mark, what in (
            ("[Content_Types].xml", "an Excel workbook"),
            ("mimetype", "an OpenDocument file"),
        ):
            if mark in files:
                raise DataError(_read_elsewhere(name, what, "pd.read_excel"))
        if len(files) != 1:
            raise DataError(
                f"{name} is an archive of {len(files)} files; unpack it, and give one "
                "of them."
            )
        return archive.read(files[0])


def _from_zstd(data: bytes, name: str) -> bytes:
    pyarrow = import_optional("pyarrow", f"unpacking {name}")
    unpacked: bytes = pyarrow.CompressedInputStream(io.BytesIO(data), "zstd").read()
    return unpacked


# First bytes of packed data, and what unpacks them.
_PACKED: tuple[tuple[bytes, Callable[[bytes, str], bytes]], ...] = (
    (b"\x1f\x8b", lambda data, name: gzip.decompress(data)),
    (b"BZh", lambda data, name: bz2.decompress(data)),
    (b"\xfd7zXZ\x00", lambda data, name: lzma.decompress(data)),
    (b"\x28\xb5\x2f\xfd", _from_zstd),
    (b"PK\x03\x04", _from_zip),
)
