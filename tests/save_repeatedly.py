"""Save two results to one file, in turns, until killed."""

import sys
from pathlib import Path

import vstatkit as vs

if __name__ == "__main__":
    path = Path(sys.argv[1])
    both = [vs.load(path.parent / name) for name in ("one.npz", "two.npz")]
    print("ready", flush=True)
    while True:
        for results in both:
            results.save(path)
