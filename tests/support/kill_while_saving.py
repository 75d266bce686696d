"""Save two results to one file in turns, in processes that are killed at any time.

Prints, for every kill, which of the two the file then held.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import vstatkit as vs


def save_forever(path, both):
    while True:
        for results in both:
            results.save(path)


def main(path, kills):
    warnings.simplefilter("ignore")
    data = vs.datasets.mars(100, rng=1)
    both = [vs.fit("y ~ x1 + x2", data, B=200, rng=seed) for seed in (1, 2)]
    both[0].save(path)
    found = []
    for delay in np.random.default_rng(1).uniform(0, 0.4, kills):
        child = os.fork()
        if child == 0:
            save_forever(path, both)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        values = vs.load(path).values
        found.append([bool(np.array_equal(values, one.values)) for one in both])
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
