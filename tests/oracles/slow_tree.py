"""A tree grower in a few lines of exact arithmetic: the compiled grower's oracle.

Gains are fractions, so that equal gains are equal: the first split of the first feature
that reaches the best gain is taken, and nothing depends on rounding.
"""

import decimal
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

WORD = 2**64 - 1
LEFT, RIGHT = 0x6C65667400000001, 0x7269676874000002
THRESHOLD = 0x7468726573680003
ALL_LEVELS = range(64)


def mix(z):
    """One step of splitmix64."""
    z = (z + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def shuffled(items, count, key):
    """Draw the first `count` items at random; the rest follows in its order."""
    items = list(items)
    for j in range(count):
        key = mix(key)
        pick = j + (key * (len(items) - j) >> 64)
        items[j], items[pick] = items[pick], items[j]
    return items, key


def unit_number(bits):
    """A number in [0, 1) from the upper 53 bits."""
    return (bits >> 11) * 2.0**-53


def logarithm(x):
    """Logarithm of a fraction, to forty digits."""
    with decimal.localcontext(prec=50):
        found = (decimal.Decimal(x.numerator) / x.denominator).ln()
        return Fraction(round(found, 40))


def median(values, weights):
    """Weighted median, halfway where two values part the weight evenly."""
    pairs = sorted(zip(values, weights, strict=True))
    half, below = sum(weights) / 2, 0
    for place, (value, weight) in enumerate(pairs):
        below += weight
        if below == half:
            return (value + pairs[place + 1][0]) / 2
        if below > half:
            return value
    raise AssertionError


@dataclass(frozen=True)
class Split:
    gain: Fraction
    feature: int
    threshold: float
    missing_left: bool
    saw_missing: bool
    levels: frozenset | None = None  # those that go left, where levels are split


@dataclass
class SlowTree:
    """Grow one tree; the arguments are those of the compiled grower."""

    X: list
    y: list
    weights: list
    n_classes: int | None
    max_features: int
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_depth: int | None = None
    honest: bool = False
    criterion: str = "squared_error"
    splitter: str = "best"
    levels: list | None = None
    nodes: list = field(default_factory=list)
    gains: dict = field(default_factory=dict)
    settled_by_rounding: bool = False  # a node where several splits gain nothing

    def grow(self, seed):
        rows = [i for i, weight in enumerate(self.weights) if weight > 0]
        key, held = mix(seed), None
        if self.honest and len(rows) > 1:
            half = len(rows) // 2
            drawn, key = shuffled(rows, half, key)
            held, rows = sorted(drawn[:half]), sorted(drawn[half:])
        self.node(rows, held, key, 0)
        return self

    def node(self, rows, held, key, depth):
        split = None
        deep = self.max_depth is not None and depth >= self.max_depth
        pure = len({self.y[i] for i in rows}) == 1
        if len(rows) >= self.min_samples_split and not deep and not pure:
            split = self.best_split(rows, key)
        if split is None:
            self.nodes.append(("leaf", self.leaf(rows if held is None else held)))
            return
        left = [i for i in rows if self.goes_left(i, split, split.missing_left)]
        right = [i for i in rows if i not in left]
        majority = len(left) > len(right)
        side = split.missing_left if split.saw_missing else majority
        if split.levels is not None and majority:
            seen = {self.X[i][split.feature] for i in rows}
            new = {level for level in ALL_LEVELS if level not in seen}
            split = replace(split, levels=split.levels | new)
        children = [(left, mix(key ^ LEFT)), (right, mix(key ^ RIGHT))]
        halves = [None, None]
        if held is not None:
            halves[0] = [i for i in held if self.goes_left(i, split, side)]
            halves[1] = [i for i in held if i not in halves[0]]
            for here, there in ((0, 1), (1, 0)):
                if not halves[here]:
                    self.node(*self.child(children, halves, there), depth + 1)
                    return
        self.gains[split.feature] = self.gains.get(split.feature, 0) + split.gain
        place = len(self.nodes)
        self.nodes.append(None)
        self.node(*self.child(children, halves, 0), depth + 1)
        cut = split.threshold if split.levels is None else split.levels
        self.nodes[place] = (split.feature, cut, side, len(self.nodes))
        self.node(*self.child(children, halves, 1), depth + 1)

    @staticmethod
    def child(children, halves, side):
        rows, key = children[side]
        return rows, halves[side], key

    def goes_left(self, i, split, missing_left):
        x = self.X[i][split.feature]
        if split.levels is not None and not math.isnan(x):
            return x in split.levels
        return missing_left if math.isnan(x) else x <= split.threshold

    def leaf(self, rows):
        if self.criterion == "absolute_error":
            return [median(*self.responses(rows))]
        return self.mean(rows)

    def responses(self, rows):
        return [self.y[i] for i in rows], [self.weights[i] for i in rows]

    def mean(self, rows):
        """Share of every class, or the mean response."""
        total = sum(self.weights[i] for i in rows)
        if self.n_classes is None:
            return [sum(self.weights[i] * self.y[i] for i in rows) / total]
        return [
            sum(self.weights[i] for i in rows if self.y[i] == c) / total
            for c in range(self.n_classes)
        ]

    def merit(self, rows):
        """What a split is to make large; None where there can be no such side.

        Weight times the squared mean (or shares), the sum times the logarithm of the
        mean, or the absolute deviations from the median, with their sign changed.
        """
        values, weights = self.responses(rows)
        if self.criterion == "absolute_error":
            middle = median(values, weights)
            return -sum(
                w * abs(y - middle) for y, w in zip(values, weights, strict=True)
            )
        total, mean = sum(weights), self.mean(rows)
        if self.criterion == "poisson":
            return total * mean[0] * logarithm(mean[0]) if mean[0] > 0 else None
        return total * sum(one**2 for one in mean)

    def best_split(self, rows, key):
        best, before = None, self.settled_by_rounding
        p = len(self.X[0])
        features, _ = shuffled(range(p), p, key)
        exact_zeros = self.criterion in ("poisson", "absolute_error")
        for tried, f in enumerate(features):
            if best is not None and tried >= self.max_features:
                break
            key = mix(key)
            for split in self.allowed(rows, f, mix(key ^ THRESHOLD)):
                if best is not None and best.gain == split.gain == 0:
                    self.settled_by_rounding = not exact_zeros
                if best is None or split.gain > best.gain:
                    best = split
            if best is not None and best.gain > 0:
                self.settled_by_rounding = before
        return best

    def allowed(self, rows, f, bits):
        """Splits of a feature that are allowed, missing values right, then left."""
        missing = [i for i in rows if math.isnan(self.X[i][f])]
        known = [i for i in rows if i not in missing]
        before = self.merit(rows)
        for missing_left in (False, True) if missing else (False,):
            for cut in self.cuts(known, f, bits):
                split = replace(
                    cut, missing_left=missing_left, saw_missing=bool(missing)
                )
                left = [i for i in rows if self.goes_left(i, split, missing_left)]
                right = [i for i in rows if i not in left]
                if not right or min(len(left), len(right)) < self.min_samples_leaf:
                    continue
                sides = self.merit(left), self.merit(right)
                if None not in sides:
                    yield replace(split, gain=clean(sum(sides) - before))

    def cuts(self, known, f, bits):
        """All cuts between known rows, and the one after all of them."""
        values = sorted({self.X[i][f] for i in known})
        if self.levels is not None and self.levels[f]:
            for chosen in self.level_sets(known, f, bits):
                yield Split(0, f, math.nan, False, False, frozenset(chosen))
        elif self.splitter == "random" and len(values) > 1:
            low, high, u = values[0], values[-1], unit_number(bits)
            yield Split(0, f, min(low * (1 - u) + high * u, high), False, False)
        else:
            for place, low in enumerate(values):
                cut = threshold(low, values[place + 1 :])
                yield Split(0, f, cut, False, False)

    def level_sets(self, known, f, bits):
        """Levels in the order of their means, or one set of them at random.

        Levels come in the order of their first rows, whatever their codes are.
        """
        values = list(dict.fromkeys(self.X[i][f] for i in sorted(known)))
        if self.splitter == "random" and len(values) > 1:
            chosen = 1 + (bits * (2 ** len(values) - 2) >> 64)
            yield [level for i, level in enumerate(values) if chosen >> i & 1]
            return
        means = {
            level: self.mean([i for i in known if self.X[i][f] == level])[-1]
            for level in values
        }
        values = sorted(values, key=means.__getitem__)
        for place in range(len(values)):
            yield values[: place + 1]


def clean(gain):
    """Logarithms leave a rest where nothing is gained."""
    return 0 if abs(gain) < Fraction(1, 10**30) else gain


def threshold(low, above):
    """Halfway to the next value, but below it."""
    if not above:
        return math.inf
    middle = low / 2 + above[0] / 2
    return middle if middle < above[0] else low
