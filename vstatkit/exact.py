"""Complete statistics by enumeration: the oracle for small samples."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Kernel = Callable[[Sequence[Any]], float]


def complete_u(h: Kernel, data: Sequence[Any], k: int) -> float:
    """Average a symmetric kernel of k observations over all subsets of size k.

    Examples
    --------
    >>> complete_u(lambda z: (z[0] - z[1]) ** 2 / 2, [1.0, 2.0, 4.0], 2)
    2.3333333333333335
    """
    return _mean(h(list(z)) for z in itertools.combinations(data, k))


def complete_v(h: Kernel, data: Sequence[Any], k: int) -> float:
    """Average a kernel over all n**k ordered draws with replacement.

    Examples
    --------
    >>> complete_v(lambda z: (z[0] - z[1]) ** 2 / 2, [1.0, 2.0, 4.0], 2)
    1.5555555555555556
    """
    return _mean(h(list(z)) for z in itertools.product(data, repeat=k))


def stirling2(k: int, j: int) -> int:
    """Stirling number of the second kind: partitions of k items into j blocks."""
    signed = sum((-1) ** (j - i) * math.comb(j, i) * i**k for i in range(j + 1))
    return int(signed) // math.factorial(j)


def stirling_weights(n: int, k: int) -> list[float]:
    """Share of the draws from n that have exactly j = 1..k distinct members.

    It is `j! S(k, j) C(n, j) / n**k`; the weights of Lemma 3.1.
    """
    return [
        math.factorial(j) * stirling2(k, j) * math.comb(n, j) / n**k
        for j in range(1, k + 1)
    ]


def stirling_kernel(h: Kernel, j: int, k: int) -> Kernel:
    """Kernel of degree j in the decomposition of a V-statistic of degree k.

    The average of h over all k-tuples of j observations that use every one.
    """

    def phi(z: Sequence[Any]) -> float:
        tuples = (t for t in itertools.product(range(j), repeat=k) if len({*t}) == j)
        return _mean(h([z[i] for i in t]) for t in tuples)

    return phi


def stirling_decomposition(
    h: Kernel, data: Sequence[Any], k: int
) -> list[tuple[float, float]]:
    """Decompose a complete V-statistic into weights and U-statistics of degree 1..k.

    Their products sum to the V-statistic.

    References
    ----------
    Zhou, Mentch and Hooker, Lemma 3.1; Lee (1990), p. 183.
    """
    n = len(data)
    return [
        (weight, complete_u(stirling_kernel(h, j, k), data, j) if j <= n else 0.0)
        for j, weight in enumerate(stirling_weights(n, k), start=1)
    ]


def composite_weight(n: int, k: int, distinct: int) -> float:
    """Weight of a draw with `distinct` members in the composite kernel.

    One over the number of k-subsets that contain all of them.
    """
    return 1 / math.comb(n - distinct, k - distinct)


def composite_kernel(h: Kernel, n: int, k: int) -> Kernel:
    """Kernel whose U-statistic is the V-statistic of h (Zhou et al., section 3.2)."""
    scale = math.comb(n, k) / n**k

    def phi(z: Sequence[Any]) -> float:
        terms = [
            composite_weight(n, k, len({*b})) * h([z[i] for i in b])
            for b in itertools.product(range(k), repeat=k)
        ]
        return float(scale * math.fsum(terms))

    return phi


def exact_zeta(h: Kernel, population: Sequence[Any], k: int, c: int) -> float:
    """Variance of a kernel's mean given c of its k observations.

    Observations are drawn independently and uniformly from a finite population;
    `c = 1` gives `zeta_1`, `c = k` gives `zeta_k`.

    Examples
    --------
    >>> exact_zeta(lambda z: sum(z) / 2, [0.0, 2.0], 2, 1)
    0.25
    """
    if not 1 <= c <= k:
        raise ValueError(f"`c` must lie between 1 and k = {k}; got {c}.")
    means = [
        _mean(
            h([*fixed, *free]) for free in itertools.product(population, repeat=k - c)
        )
        for fixed in itertools.product(population, repeat=c)
    ]
    return float(np.var(np.array(means)))


def _mean(values: Iterator[float]) -> float:
    evaluated = list(values)
    return math.fsum(evaluated) / len(evaluated)
