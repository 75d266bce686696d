"""Record forests from R: `python -m r_bridge.record --out FOLDER`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from r_bridge.availability import available
from r_bridge.forests import FORESTS
from r_bridge.recording import write_json


def main(arguments: Sequence[str] | None = None) -> int:
    """Record forests of the installed packages; return 2 if there are none."""
    parser = argparse.ArgumentParser(
        prog="python -m r_bridge.record",
        description="Record forests of ranger and grf, where they are installed.",
    )
    parser.add_argument("--out", metavar="FOLDER", default=".", help="where to write")
    folder = Path(parser.parse_args(arguments).out)
    found = available()
    written = 0
    for forest in FORESTS.values():
        if forest.record is None:
            continue
        package = forest.package
        missing = [name for name in ("R", "rpy2", package) if found[name] is None]
        if missing:
            print(f"{package}: not recorded; {', '.join(missing)} is not installed")
            continue
        path = folder / f"{package}.json.gz"
        write_json(forest.record(), path)
        print(f"{package}: {path}, {path.stat().st_size / 1000:.0f} kB")
        written += 1
    return 0 if written else 2


if __name__ == "__main__":
    sys.exit(main())
