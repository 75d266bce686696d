"""Memory that the operating system leaves to this process."""

import os
import sys
from pathlib import Path

ROOT = Path("/")  # root of the file system
# Bytes from which a limit counts as none; old kernels write a huge number.
UNLIMITED = 2**60


def available_memory(root: Path = ROOT) -> int | None:
    """Return the bytes that can still be allocated; None if this is unknown.

    The least of what the machine has left (without taking memory from others, swap
    space included), what the control groups of this process leave, and its limit on
    addresses; the physical memory if nothing else is known.
    """
    known = [size for size in (*_groups(root), _addresses(root)) if size is not None]
    machine = _table(root / "proc/meminfo")
    if "MemAvailable" in machine:
        known.append(1024 * (machine["MemAvailable"] + machine.get("SwapFree", 0)))
    if known:
        return max(0, min(known))
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _table(path: Path) -> dict[str, int]:
    """Read lines such as `MemFree: 12 kB` and `inactive_file 12`."""
    table = {}
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


def _groups(root: Path) -> list[int | None]:
    """Read the limits of the control groups of the process and their parents."""
    sizes: list[int | None] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, place = line.split(":", 2)
        if kinds == "":
            top = root / "sys/fs/cgroup"
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            top = root / "sys/fs/cgroup/memory"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
            names = (limit, used, "total_inactive_file")
        else:
            continue
        # Within a container the group may be at the top, whatever its place.
        parts = Path(place.lstrip("/")).parts
        places = [top.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
        sizes += [_left(folder, *names) for folder in places]
    return sizes


def _left(folder: Path, limit: str, used: str, inactive: str) -> int | None:
    """Return the bytes that a control group leaves; cached files count as free."""
    most, now = _number(folder / limit), _number(folder / used)
    if most is None or now is None:
        return None
    return most - now + _table(folder / "memory.stat").get(inactive, 0)


def _addresses(root: Path) -> int | None:
    """Return the bytes that a limit on addresses (`ulimit -v`) leaves."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 not everywhere

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or most >= UNLIMITED:
        return None
    used = _table(root / "proc/self/status").get("VmSize", 0)
    return int(most) - 1024 * used
