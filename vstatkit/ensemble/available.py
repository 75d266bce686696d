"""How much memory this process can still have, as far as the system says."""

import os
import sys
from pathlib import Path

ROOT = Path("/")
"""Where the files of the system are."""

UNLIMITED = 2**60
"""Bytes from which a limit is none; old kernels write a huge number instead."""


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes that can still be allocated; None where nothing is known.

    The least of what the machine has left (without taking memory from others, swap
    space included), what the control groups of this process leave, and its limit on
    addresses. Where a system tells only how large it is, that is the answer.
    """
    found = [_machine(root), *_groups(root), _addresses(root)]
    known = [size for size in found if size is not None]
    return max(0, min(known)) if known else _physical()


def _machine(root: Path) -> int | None:
    sizes = _table(root / "proc/meminfo")
    if "MemAvailable" not in sizes:
        return None
    return 1024 * (sizes["MemAvailable"] + sizes.get("SwapFree", 0))


def _table(path: Path) -> dict[str, int]:
    """Read lines such as `MemFree: 12 kB` and `inactive_file 12`."""
    found = {}
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            found[words[0].rstrip(":")] = int(words[1])
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


def _groups(root: Path) -> list[int | None]:
    """Ask the control groups that the process is in, and those around them."""
    found: list[int | None] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, place = line.split(":", 2)
        if kinds == "":
            top = root / "sys/fs/cgroup"
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = (
                *("memory.limit_in_bytes", "memory.usage_in_bytes"),
                "total_inactive_file",
            )
        else:
            continue
        # Within a container the group may be at the top, whatever its place.
        parts = Path(place.lstrip("/")).parts
        places = [top.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
        found += [_left(folder, *names) for folder in places]
    return found


def _left(folder: Path, limit: str, used: str, inactive: str) -> int | None:
    """Count what a control group leaves; cached files give way."""
    most, now = _number(folder / limit), _number(folder / used)
    if most is None or now is None:
        return None
    return most - now + _table(folder / "memory.stat").get(inactive, 0)


def _addresses(root: Path) -> int | None:
    """Count what a limit on addresses (`ulimit -v`) leaves."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 not everywhere

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or most >= UNLIMITED:
        return None
    used = _table(root / "proc/self/status").get("VmSize", 0)
    return int(most) - 1024 * used


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
