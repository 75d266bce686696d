r"""Standard errors of forests with few trees: the variance in use, and a candidate.

Forests of `ForestRegressor(B)` with all other options at their defaults, so k = n, on
many data sets; the variance of their predictions over data sets is compared with the
mean of the estimated variances, at twenty points that do not change. Criteria, written
before the candidate was measured on the designs that are kept aside: the median ratio
over points in .85 to 1.25, 10 % to 90 % of the points in .65 to 1.6, and coverage of
the expectation of the forest of 92 to 98 %.

The candidate treats the sampling variance as linear in two quantities that are well
known with few trees. With the weight :math:`w_{bi}(x)` that tree b gives observation
i at x, means over pairs of different trees and out-of-bag residuals :math:`e_i`,

.. math::

    V(x) = \frac{\alpha A(x) + \beta \zeta_k(x)}{1 + \rho}, \qquad
    A(x) = \sum_i \overline{w_{bi}(x) w_{b'i}(x)} \, e_i^2 .

A is the variance of the prediction if the trees' splits were fixed, so that
:math:`\alpha` is near one if leaves are small; :math:`\beta` is the part of the splits.
Both are estimated by weighted least squares from the unbiased jackknife at reference
points, near to the data and far from them, with a weak prior. At every point the
result is averaged with the jackknife there, weighted by their precisions, so that many
trees lead to the jackknife.

`python -m benchmarks.few_trees --n 500 2000 --trees 100 500` measures the designs that
the candidate was developed on, and with `--aside` the others.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import vstatkit as vs
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import to_dense
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.formulas import noise_variance
from vstatkit.variance.higher_orders import HigherOrders, measure_orders
from vstatkit.variance.registry import estimate_components

N_POINTS = 20
N_REFERENCE = 500  # reference points of each of three kinds
# The prior of alpha, and of beta relative to A / zeta_k far from the data: medians, and
# standard deviations of the logarithms.
PRIOR_MEDIANS, PRIOR_SPREADS = (1.1, 1.8), (0.5, 0.6)
SPREAD = 0.25  # of the variance about the line, relative to it
CLUSTERING = 3.0  # the noise of this many reference points is as if it were one's


def friedman(X: Any) -> Any:
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )


def uniform(n: int, rng: np.random.Generator) -> Any:
    return rng.uniform(size=(n, 10))


def correlated(n: int, rng: np.random.Generator) -> Any:
    return 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 10))


def mixed(n: int, rng: np.random.Generator) -> Any:
    X = rng.uniform(size=(n, 10))
    X[:, :6] = X[:, :6] < 0.4
    return X


def skewed(n: int, rng: np.random.Generator) -> Any:
    return np.exp(rng.normal(size=(n, 10)))


def counts(n: int, rng: np.random.Generator) -> Any:
    return rng.poisson(2, size=(n, 10)).astype(np.float64)


Draw = Callable[[int, np.random.Generator], Any]
Respond = Callable[[Any, np.random.Generator], Any]

DEVELOPMENT: dict[str, tuple[Draw, Respond]] = {
    "Friedman": (uniform, lambda X, rng: friedman(X) + rng.normal(size=len(X))),
    "heteroscedastic": (
        uniform,
        lambda X, rng: friedman(X) + rng.normal(size=len(X)) * (0.5 + 6 * X[:, 5] ** 2),
    ),
    "noise": (uniform, lambda X, rng: rng.normal(size=len(X))),
    "linear, correlated": (
        correlated,
        lambda X, rng: X[:, 0] + X[:, 1] / 2 + X[:, 2] / 4 + rng.normal(size=len(X)),
    ),
}
ASIDE: dict[str, tuple[Draw, Respond]] = {
    "binary predictors": (
        mixed,
        lambda X, rng: (
            2 * X[:, 0] + 3 * X[:, 1] * X[:, 6] - X[:, 2] + rng.normal(size=len(X))
        ),
    ),
    "skewed, heavy tails": (
        skewed,
        lambda X, rng: (
            2 * np.log(X[:, 0]) + np.minimum(X[:, 1], 4) + rng.standard_t(4, len(X))
        ),
    ),
    "steps, skewed noise": (
        uniform,
        lambda X, rng: (
            3 * (X[:, 0] > 0.5)
            + 2 * (X[:, 1] > 0.3) * (X[:, 2] > 0.6)
            + rng.exponential(size=len(X))
        ),
    ),
    "counts": (
        counts,
        lambda X, rng: rng.poisson(
            np.exp(0.2 * X[:, 0] + 0.1 * X[:, 1] * (X[:, 2] > 1))
        ).astype(np.float64),
    ),
}


def reference_points(X: Any, rng: np.random.Generator) -> Any:
    """Draw training rows, and rows whose features come from two, and from four rows."""
    kinds = []
    for parents in (1, 2, 4):
        rows = rng.integers(len(X), size=(N_REFERENCE, parents))
        chosen = rng.integers(parents, size=(N_REFERENCE, X.shape[1]))
        kinds.append(
            np.take_along_axis(X, np.take_along_axis(rows, chosen, axis=1), axis=0)
        )
    return np.concatenate(kinds)


@dataclass(frozen=True)
class LeafWeights:
    """The weights that every tree gives the training rows, leaf by leaf."""

    forest: Any
    matrix: Any  # (trees * leaves, rows): weights of the rows in every leaf
    leaves: int  # most leaves of a tree

    @classmethod
    def of(cls, forest: Any, X: Any, drawn: Any) -> "LeafWeights":
        """Find the leaves of the rows, which each tree has drawn so many times."""
        leaf_of_row = forest.apply(X)
        leaves = int(leaf_of_row.max()) + 1
        tree, row = np.nonzero(drawn)
        place = tree * leaves + leaf_of_row[row, tree]
        size = np.bincount(place, weights=drawn[tree, row])
        shape = leaf_of_row.shape[1] * leaves, len(X)
        share = drawn[tree, row] / size[place]
        return cls(forest, sparse.csr_array((share, (place, row)), shape=shape), leaves)

    def fixed_split_variance(self, points: Any, B: int, squares: Any) -> Any:
        """Compute A at points from the first B trees and squared residuals."""
        place = self.forest.apply(points)[:, :B] + np.arange(B) * self.leaves
        entries = np.ones(place.size), place.ravel(), np.arange(0, place.size + 1, B)
        shape = len(points), self.matrix.shape[0]
        total = sparse.csr_array(entries, shape=shape) @ self.matrix
        own = (self.matrix**2 @ squares)[place].sum(axis=1)
        return (total**2 @ squares - own) / (B * (B - 1))


def fit_line(jackknife: VarianceComponents, A: Any) -> tuple[float, float]:
    """Estimate alpha and beta at the reference points, with their prior."""
    Q, zeta = jackknife.sampling, jackknife.zeta_k
    far = slice(2 * N_REFERENCE, None)
    scale = A[far].sum() / zeta[far].sum()
    typical = PRIOR_MEDIANS[0] * A + PRIOR_MEDIANS[1] * scale * zeta
    weight = np.empty_like(Q)
    for first in range(0, len(Q), N_REFERENCE):  # one weight for points of one kind
        kind = slice(first, first + N_REFERENCE)
        level = typical[kind].mean()
        noise = np.sqrt(np.mean(jackknife.noise[kind] ** 2))
        spread = noise_variance(level, noise, jackknife.n) + (SPREAD * level) ** 2
        weight[kind] = 1 / (CLUSTERING * spread)
    a, b = np.meshgrid(*[np.geomspace(0.05, 30, 81)] * 2, indexing="ij")
    fitted = np.stack([A, scale * zeta])
    gram, target = (fitted * weight) @ fitted.T, (fitted * weight) @ Q
    log = a * target[0] + b * target[1] - a * b * gram[0, 1]
    log -= (a**2 * gram[0, 0] + b**2 * gram[1, 1]) / 2
    for value, middle, width in zip((a, b), PRIOR_MEDIANS, PRIOR_SPREADS, strict=True):
        log -= (np.log(value / middle) / width) ** 2 / 2
    posterior = np.exp(log - log.max())
    posterior /= posterior.sum()
    return float((posterior * a).sum()), float((posterior * b).sum() * scale)


def posterior_mean(raw: Any, noise: Any, n: int, centre: Any) -> Any:
    """Average a lognormal prior about the line and the jackknife at every point."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    V = centre[:, None] * np.exp(SPREAD * nodes - SPREAD**2 / 2)
    spread = noise_variance(V, noise[:, None], n)
    log = -((raw[:, None] - V) ** 2) / (2 * spread) - np.log(spread) / 2
    posterior = np.exp(log - log.max(axis=1, keepdims=True)) * weights
    return (posterior * V).sum(axis=1) / posterior.sum(axis=1)


def one_data_set(
    draw: Draw, respond: Respond, n: int, sizes: list[int], seed: int
) -> list[tuple[Any, Any, Any]]:
    """Fit, and return estimates, variances in use and candidates for each B."""
    rng = np.random.default_rng([seed, n])
    X = draw(n, rng)
    y = respond(X, rng)
    points = draw(N_POINTS, np.random.default_rng(999))
    rows = np.ascontiguousarray(np.concatenate([points, reference_points(X, rng)]))
    answers = []
    for B in sizes:
        forest = vs.ForestRegressor(B, random_state=seed, oob_score=True).fit(X, y)
        squares = (y - forest.oob_prediction_) ** 2
        design, values = forest._estimation().design, forest._predictor.values(rows)
        raw = estimate_components("jackknife", design, values)
        weights = LeafWeights.of(forest, X, to_dense(design.counts(0, B)))
        A = weights.fixed_split_variance(rows, B, squares)
        far = values[:, -N_REFERENCE::2]
        orders: HigherOrders = measure_orders(
            design, B, lambda L, far=far: far[:L], KernelKind.TREES
        )
        here, there = slice(0, N_POINTS), slice(N_POINTS, None)
        reference = VarianceComponents(
            **{
                name: part[there] if isinstance(part, np.ndarray) else part
                for name in VarianceComponents.__slots__
                for part in [getattr(raw, name)]
            }
        )
        alpha, beta = fit_line(reference, A[there])
        f, zeta = orders.factor, raw.zeta_k[here]
        line = f * (alpha * A[here] + beta * zeta)
        V = posterior_mean(f * raw.sampling[here], f * raw.noise[here], n, line)
        estimate, error = forest.predict(points, return_std=True)
        answers.append((estimate, error**2, V + zeta / B))
    return answers


def summarise(estimates: Any, variances: Any) -> dict[str, float]:
    """Compare estimated variances, (data sets, points), with that of the estimates."""
    ratio = variances.mean(axis=0) / estimates.var(axis=0, ddof=1)
    distance = np.abs(estimates - estimates.mean(axis=0))
    low, median, high = np.quantile(ratio, [0.1, 0.5, 0.9])
    covered = (distance < 1.96 * np.sqrt(variances)).mean()
    return {"median": median, "10 %": low, "90 %": high, "coverage": covered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--data-sets", type=int, default=50)
    parser.add_argument("--aside", action="store_true", help="the designs kept aside")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    designs = ASIDE if options.aside else DEVELOPMENT
    columns = "".join(f"{name:>9}" for name in ("median", "10 %", "90 %", "cover"))
    print(f"{'design':22}{'n':>7}{'B':>6}  {'variance':10}{columns}")
    for name, (draw, respond) in designs.items():
        for n in options.n:
            fits = [
                one_data_set(draw, respond, n, options.trees, seed)
                for seed in range(options.data_sets)
            ]
            for place, B in enumerate(options.trees):
                parts = zip(*[fit[place] for fit in fits], strict=True)
                estimates, *variances = (np.array(part) for part in parts)
                for label, part in zip(("in use", "candidate"), variances, strict=True):
                    row = summarise(estimates, part)
                    numbers = "".join(f"{value:9.3f}" for value in row.values())
                    print(f"{name:22}{n:7}{B:6}  {label:10}{numbers}", flush=True)


if __name__ == "__main__":
    main()
