"""The estimators as they are printed: loops over learners b and observations i.

Every function takes the counts N, shape (B, n), and one value h of each learner,
shape (B,). With the values g of a second quantity it gives their covariance.
`sampling_*` are variances of the ensemble, `zeta_*` the variance components.
"""

import math


def mean(h):
    return sum(h) / len(h)


def size(N):
    """Draws in each subsample."""
    return sum(N[0])


def appearances(N):
    B, n = N.shape
    return [sum(N[b, i] for b in range(B)) for i in range(n)]


def zeta_k(h, g=None):
    g = h if g is None else g
    a, b = mean(h), mean(g)
    return sum((x - a) * (y - b) for x, y in zip(h, g, strict=True)) / (len(h) - 1)


def influence(N, h):
    """`cov_b(N[b, i], h_b)` with divisor B, for every observation."""
    B, n = N.shape
    hbar, times = mean(h), appearances(N)
    return [
        sum((N[b, i] - times[i] / B) * (h[b] - hbar) for b in range(B)) / B
        for i in range(n)
    ]


def count_variance(N):
    """Mean over observations of the variance of their counts."""
    B, n = N.shape
    times = appearances(N)
    squares = [(N[b, i] - times[i] / B) ** 2 for i in range(n) for b in range(B)]
    return sum(squares) / B / n


def conditional_means(N, h):
    """`m_i` of the observations that were drawn at all."""
    B, n = N.shape
    times = appearances(N)
    drawn = [i for i in range(n) if times[i] > 0]
    return {i: sum(N[b, i] * h[b] for b in range(B)) / times[i] for i in drawn}


def between(N, h, g=None):
    """Sum over the observations drawn of `(m_i - mbar)**2`."""
    m = conditional_means(N, h)
    w = m if g is None else conditional_means(N, g)
    a, b = mean(m.values()), mean(w.values())
    return sum((m[i] - a) * (w[i] - b) for i in m)


def between_weighted(N, h, g=None):
    """Sum of `N_i (m_i - m_w)**2` about the weighted mean."""
    m = conditional_means(N, h)
    w = m if g is None else conditional_means(N, g)
    times = appearances(N)
    C = sum(times)
    a = sum(times[i] * m[i] for i in m) / C
    b = sum(times[i] * w[i] for i in w) / C
    return sum(times[i] * (m[i] - a) * (w[i] - b) for i in m)


def zeta_1_bm(N, h, g=None):
    return between(N, h, g) / (len(conditional_means(N, h)) - 1)


def sampling_ij(N, h, g=None):
    c = influence(N, h)
    d = c if g is None else influence(N, g)
    return sum(x * y for x, y in zip(c, d, strict=True))


def sampling_ij_u(N, h, g=None, *, replace=True):
    (B, n), k = N.shape, size(N)
    population = zeta_k(h, g) * (B - 1) / B
    debiased = sampling_ij(N, h, g) - n * count_variance(N) * population / B
    return debiased if replace else (n / (n - k)) ** 2 * debiased


def zeta_1_corrected_v(N, h, g=None):
    """Section 5.2 with the weighted mean of appendix C, over the units drawn."""
    g = h if g is None else g
    m, w = conditional_means(N, h), conditional_means(N, g)
    times, B, n = appearances(N), len(h), len(m)
    C = sum(times)
    ss_tau = between_weighted(N, h, g)
    ss_eps = sum(N[b, i] * (h[b] - m[i]) * (g[b] - w[i]) for i in m for b in range(B))
    lost = sum(t**2 for t in times) / C
    return (ss_tau - (n - 1) * ss_eps / (C - n)) / (C - lost)


def zeta_1_corrected_v_simple(N, h, g=None):
    (B, n), k = N.shape, size(N)
    return zeta_1_bm(N, h, g) - n / (k * B) * zeta_k(h, g)


def zeta_1_corrected_u(N, h, g=None):
    (B, n), k = N.shape, size(N)
    bias = (n - k) / (k * B) * zeta_k(h, g)
    return n * (n - 1) / (n - k) ** 2 * (zeta_1_bm(N, h, g) - bias)


def left_out_means(N, h):
    """`t_i`, the mean of the learners without observation i, where there are any."""
    B, n = N.shape
    without = {i: [h[b] for b in range(B) if N[b, i] == 0] for i in range(n)}
    return {i: mean(values) for i, values in without.items() if values}


def share_left_out(N, units):
    """Share of the learners that left a unit out, on average over the units."""
    return mean([sum(N[:, i] == 0) / len(N) for i in units])


def chance_absent(N, *, replace):
    """Chance that a subsample leaves a unit out, by its size; None if they differ."""
    (B, n), k = N.shape, size(N)
    q = (1 - 1 / n) ** k if replace else 1 - k / n
    held = [sum(N[:, i] > 0) for i in range(n)]
    dispersion = sum((one - B * (1 - q)) ** 2 for one in held) / (B * q * (1 - q))
    return (
        q if dispersion <= n + 6 * math.sqrt(n * (2 + 1 / (B * q * (1 - q)))) else None
    )


def deletions(N, h, *, replace):
    """`t_i - hbar` of the units left out, and their mean odds of being present."""
    (B, n), q = N.shape, chance_absent(N, replace=replace)
    a = mean(h)
    if q is None:
        t = left_out_means(N, h)
        absent = [sum(N[:, i] == 0) / B for i in t]
        return [t[i] - a for i in t], mean([(1 - one) / one for one in absent])
    without = [sum(h[b] - a for b in range(B) if N[b, i] == 0) for i in range(n)]
    return [one / (B * q) for one in without], (1 - q) / q


def sampling_jackknife(N, h, g=None, *, replace=True, q=None):
    """Jackknife after bootstrap: products of different learners."""
    g = h if g is None else g
    B, n = N.shape
    q = chance_absent(N, replace=replace) if q is None else q
    a, b = mean(h), mean(g)
    if q is None:
        first, odds = deletions(N, h, replace=replace)
        second, _ = deletions(N, g, replace=replace)
        n = len(first)
        squares = sum(x * y for x, y in zip(first, second, strict=True))
        return (n - 1) / n * (squares - n * odds * zeta_k(h, g) / B)
    d = (N > 0) - (1 - q)
    products = d @ d.T  # sums over observations, for every pair of learners
    for one in range(B):
        products[one, one] = 0.0
    pairs = (h - a) @ products @ (g - b)
    return (n - 1) / n * B / ((B - 1) * (B**2 - 2 * B + 2)) * pairs / q**2


SAMPLING = {
    "bm": lambda N, h, g=None: factor(N) * zeta_1_bm(N, h, g),
    "ij": sampling_ij,
    "ij_u": sampling_ij_u,
    "jackknife": sampling_jackknife,
    "corrected_v": lambda N, h, g=None: factor(N) * zeta_1_corrected_v(N, h, g),
    "corrected_v_simple": lambda N, h, g=None: (
        factor(N) * zeta_1_corrected_v_simple(N, h, g)
    ),
}
"""Sampling variances with replacement."""

SAMPLING_WITHOUT = {
    **{name: SAMPLING[name] for name in ("bm", "ij")},
    "jackknife": lambda N, h, g=None: sampling_jackknife(N, h, g, replace=False),
    "ij_u": lambda N, h, g=None: sampling_ij_u(N, h, g, replace=False),
    "corrected_u": lambda N, h, g=None: factor(N) * zeta_1_corrected_u(N, h, g),
}
"""Sampling variances without replacement."""


def factor(N):
    """`k**2 / n`, from the component `zeta_1` to a variance."""
    return size(N) ** 2 / N.shape[1]


def group_means(h, groups):
    members = {a: [x for x, b in zip(h, groups, strict=True) if a == b] for a in groups}
    return {a: mean(values) for a, values in members.items()}


def zeta_1_im(h, groups, g=None):
    """Covariance of the pins' means, with divisor n_out - 1."""
    means = list(group_means(h, groups).values())
    other = means if g is None else list(group_means(g, groups).values())
    return zeta_k(means, other)


def bag_parts(h, groups, g=None):
    """Mean square of the bags' means, and the noise within bags that it holds."""
    g = h if g is None else g
    centred = [x - mean(h) for x in h], [x - mean(g) for x in g]
    bags = [group_means(x, groups) for x in centred]
    G = len(bags[0])
    vb = sum(bags[0][a] * bags[1][a] for a in bags[0]) / G
    vt = sum(x * y for x, y in zip(*centred, strict=True)) / len(h)
    return vb, (vt - vb) / (len(h) / G - 1), G


def sampling_little_bags(h, groups):
    """What grf computes, with exact constants."""
    vb, noise, _ = bag_parts(h, groups)
    first, scale = vb - noise, little_bags_scale(h, groups)
    r = first / scale
    density = math.exp(-(r**2) / 2) / math.sqrt(2 * math.pi)
    return first + scale * density / (math.erfc(-r / math.sqrt(2)) / 2)


def little_bags_scale(h, groups):
    vb, noise, G = bag_parts(h, groups)
    return max(vb, noise) * math.sqrt(2 / G)


def sampling_matched(h, g=None):
    """`Vh - Vs` of neighbouring learners: the pairs' variance above the whole's."""
    g = h if g is None else g
    B = len(h)
    within = [
        (h[b] - h[b + 1]) * (g[b] - g[b + 1]) / 2 for b in range(0, len(h) - 1, 2)
    ]
    return mean(within) - zeta_k(h, g) * (B - 1) / B


def matched_products(h):
    """Product of the two centred values of every pair."""
    a = mean(h)
    return [(h[b] - a) * (h[b + 1] - a) for b in range(0, len(h) - 1, 2)]


def noise_variance(V, s2, n):
    """Monte Carlo variance of a sum of n squares, each influence with noise s2."""
    return 2 * n * s2**2 + 4 * s2 * max(V, 0.0)


def positive_mean(V, s):
    """Posterior mean given that it is positive."""
    r = V / s
    density = math.exp(-(r**2) / 2) / math.sqrt(2 * math.pi)
    return V + s * density / (math.erfc(-r / math.sqrt(2)) / 2)


def concentration(N, h):
    """Fourth powers of the influences over their squared squares, noise taken out."""
    return _concentration(influence(N, h), count_variance(N) * zeta_k(h) / len(h), N)


def presence_concentration(N, h, *, replace=True):
    """The same of what the learners without a unit differ by."""
    c, odds = deletions(N, h, replace=replace)
    return _concentration(c, odds * zeta_k(h) / len(h), N)


def _concentration(c, s2, N):
    n = len(N[0])
    V = sum(x**2 for x in c) - n * s2
    plus = positive_mean(V, math.sqrt(noise_variance(V, s2, n)))
    q = sum(x**4 for x in c) - 6 * s2 * V - 3 * n * s2**2
    return min(max(q / plus**2, 1 / n), 1.0)


def data_variance(share, n):
    """Relative variance of a sample variance, by the unbiased excess kurtosis."""
    g = n * share - 3
    if n > 3:
        g = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * g + 6)
    return max(2 / max(n - 1, 1) + g / n, 0.0)


def stabilised(V, s2, zeta_over_B, share, n, *, nonnegative=False):
    """`V+`, the posterior mean given that it is positive, and degrees of freedom."""
    plus = V if nonnegative else positive_mean(V, math.sqrt(noise_variance(V, s2, n)))
    data = plus**2 * data_variance(share, n)
    df = 2 * (plus + zeta_over_B) ** 2 / (noise_variance(plus, s2, n) + data)
    return plus, min(max(df, 3.0), max(n - 1, 1))
