"""The command line, without its script on the path: `python -m vstatkit`."""

import sys

from vstatkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
