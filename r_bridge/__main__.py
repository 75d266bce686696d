"""Print the certificate of equivalence with R: `python -m r_bridge`."""

import argparse
import sys
from collections.abc import Sequence

from r_bridge.availability import available
from r_bridge.certificate import check, check_arguments
from r_bridge.exceptions import RUnavailableError


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the certificate; return 0 if it passes, 1 if not, 2 if it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m r_bridge",
        description="Compare vstatkit with R's ranger and grf, and print what agrees.",
    )
    parser.add_argument("--out", metavar="FILE", help="write it as Markdown as well")
    parser.add_argument(
        "--seeds", type=int, default=10, help="data sets for each setting (10)"
    )
    given = parser.parse_args(arguments)
    try:
        check_arguments(given.seeds, given.out)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    try:
        certificate = check(seeds=given.seeds, out=given.out)
    except RUnavailableError as error:
        print(f"{error}\n\n{available()}", file=sys.stderr)
        return 2
    print(certificate)
    return 0 if certificate.ok else 1


if __name__ == "__main__":
    sys.exit(main())
