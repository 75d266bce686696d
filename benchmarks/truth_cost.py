"""What do the stages of a learner cost? Processor time, relative to a plain tree.

`python -m benchmarks.truth_cost [turns] [columns ...]` grows learners of every kind on
the same subsamples and predicts out of bag, in turns, so that a busy machine slows all
of them; the least time of each is compared.
"""

import sys
import time

import numpy as np

from vstatkit.ensemble.bias_reduction import STAGES
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.kernels.residual_trees import replace_stages
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.design import IidDesign
from vstatkit.studies import dgps as parts

N, K, LEARNERS = 500, 145, 100


def tasks(p: int) -> dict[str, Task]:
    """Learners of every kind, for Friedman's function of the first five columns."""
    rng = np.random.default_rng(p)
    X = parts.uniform_predictors(p)(rng, N)
    y = parts.add_normal_noise(rng, X, parts.friedman_mean(X))
    trees = tree_kernel(
        "forest", X.to_numpy(), y, n_classes=None, weights=None, options={}
    )
    drawn = IidDesign(N, K, True, 1)
    nowhere = np.empty((0, p))
    return {
        name: Task(replace_stages(trees, stages), drawn, nowhere, None, keep=False)
        for name, stages in STAGES.items()
    }


def seconds(task: Task) -> float:
    """Processor time of growing and predicting."""
    start = time.process_time()
    evaluate(task, 0, LEARNERS, n_jobs=1, progress=False)
    return time.process_time() - start


def main() -> None:
    """Print the ratios for every number of columns."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for p in [int(one) for one in sys.argv[2:]] or [5, 20]:
        kinds = tasks(p)
        least = dict.fromkeys(kinds, np.inf)
        for _ in range(turns):
            for name, task in kinds.items():
                least[name] = min(least[name], seconds(task))
        ratios = {name: least[name] / least["plain"] for name in kinds}
        print(p, "columns:", {name: round(one, 2) for name, one in ratios.items()})


if __name__ == "__main__":
    main()
