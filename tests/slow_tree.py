"""A tree grower in a few lines of exact arithmetic: the compiled grower's oracle.

Gains are fractions, so that equal gains are equal: the first split of the first feature
that reaches the best gain is taken, and nothing depends on rounding.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

WORD = 2**64 - 1
LEFT, RIGHT = 0x6C65667400000001, 0x7269676874000002


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


@dataclass(frozen=True)
class Split:
    gain: Fraction
    feature: int
    threshold: float
    missing_left: bool
    saw_missing: bool


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
            self.nodes.append(("leaf", self.mean(rows if held is None else held)))
            return
        left = [i for i in rows if self.goes_left(i, split, split.missing_left)]
        right = [i for i in rows if i not in left]
        side = split.missing_left if split.saw_missing else len(left) > len(right)
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
        self.nodes[place] = (split.feature, split.threshold, side, len(self.nodes))
        self.node(*self.child(children, halves, 1), depth + 1)

    @staticmethod
    def child(children, halves, side):
        rows, key = children[side]
        return rows, halves[side], key

    def goes_left(self, i, split, missing_left):
        x = self.X[i][split.feature]
        return missing_left if math.isnan(x) else x <= split.threshold

    def mean(self, rows):
        """Share of every class, or the mean response."""
        total = sum(self.weights[i] for i in rows)
        if self.n_classes is None:
            return [sum(self.weights[i] * self.y[i] for i in rows) / total]
        return [
            sum(self.weights[i] for i in rows if self.y[i] == c) / total
            for c in range(self.n_classes)
        ]

    def squares(self, rows):
        """Weight times the squared mean: what a split is to make large."""
        total = sum(self.weights[i] for i in rows)
        return total * sum(one**2 for one in self.mean(rows))

    def best_split(self, rows, key):
        best, before = None, self.settled_by_rounding
        p = len(self.X[0])
        features, _ = shuffled(range(p), p, key)
        for tried, f in enumerate(features):
            if best is not None and tried >= self.max_features:
                break
            for split in self.splits(rows, f):
                if best is not None and best.gain == split.gain == 0:
                    self.settled_by_rounding = True
                if best is None or split.gain > best.gain:
                    best = split
            if best is not None and best.gain > 0:
                self.settled_by_rounding = before
        return best

    def splits(self, rows, f):
        """All splits of a feature that are allowed, missing values right, then left."""
        missing = [i for i in rows if math.isnan(self.X[i][f])]
        values = sorted({self.X[i][f] for i in rows if i not in missing})
        before = self.squares(rows)
        for missing_left in (False, True) if missing else (False,):
            for place, low in enumerate(values):
                left = [i for i in rows if i not in missing and self.X[i][f] <= low]
                left += missing if missing_left else []
                right = [i for i in rows if i not in left]
                if not right or min(len(left), len(right)) < self.min_samples_leaf:
                    continue
                if place + 1 == len(values) and missing_left:
                    continue
                gain = self.squares(left) + self.squares(right) - before
                cut = threshold(low, values[place + 1 :])
                yield Split(gain, f, cut, missing_left, bool(missing))


def threshold(low, above):
    """Halfway to the next value, but below it."""
    if not above:
        return math.inf
    middle = low / 2 + above[0] / 2
    return middle if middle < above[0] else low
