"""The laws that the validity study draws its data sets from.

They were chosen before any estimator was tried on them. Those with `held=True`
are set aside while estimators are developed: nothing is tuned on them.
"""

from collections.abc import Sequence

from vstatkit.studies import law_parts as parts
from vstatkit.studies.law import Law

NO_YES = ("no", "yes")

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law(
            "mars",
            "Friedman's function of five uniform predictors, all at work",
            parts.uniform(5),
            parts.friedman,
            parts.gauss,
            parts.inside(5),
            n=250,
        ),
        Law(
            "friedman10",
            "the same function, five more predictors do nothing",
            parts.uniform(10),
            parts.friedman,
            parts.gauss,
            parts.inside(10),
            dead=("x6", "x7", "x8", "x9", "x10"),
        ),
        Law(
            "noise",
            "five predictors, none of which does anything",
            parts.uniform(5),
            parts.nothing,
            parts.gauss,
            parts.inside(5),
            dead=("x1", "x2", "x3", "x4", "x5"),
        ),
        Law(
            "linear20",
            "twenty normal predictors, ten with the slopes 1, 1/2, ..., 1/10",
            parts.normal(20),
            parts.linear,
            parts.gauss,
            parts.inside(20, gaussian=True),
            dead=tuple(parts.names(20)[10:]),
        ),
        Law(
            "heavy",
            "a line and a wave, errors by Student's t with 3 degrees of freedom",
            parts.uniform(4),
            parts.wave,
            parts.heavy,
            parts.inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "spread",
            "a line and a wave, errors whose spread grows elevenfold with x1",
            parts.uniform(4),
            parts.wave,
            parts.fanned,
            parts.inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "correlated",
            "a chain of five normal predictors correlated at 0.9, two of them at work",
            parts.chain,
            parts.ends,
            parts.gauss,
            parts.chain_points(),
            dead=("x6", "x7"),
            shadows=("x2", "x3", "x5"),
        ),
        Law(
            "levels",
            "a factor of twelve levels and a slope; a factor of four does nothing",
            parts.factors,
            parts.by_level,
            parts.gauss,
            parts.factor_points(),
            n=240,
            dead=("h", "x2"),
        ),
        Law(
            "binary",
            "two classes in balance",
            parts.uniform(4),
            parts.two(parts.balanced),
            parts.choose,
            parts.inside(4),
            dead=("x3", "x4"),
            classes=NO_YES,
        ),
        Law(
            "rare",
            "two classes, one of them in 5 % of the rows",
            parts.uniform(4),
            parts.two(parts.rare),
            parts.choose,
            parts.inside(4),
            n=300,
            dead=("x3", "x4"),
            classes=NO_YES,
        ),
        Law(
            "three",
            "three classes",
            parts.uniform(4),
            parts.three,
            parts.choose,
            parts.inside(4),
            n=240,
            dead=("x3", "x4"),
            classes=("a", "b", "c"),
        ),
        Law(
            "clusters",
            "forty clusters of six rows, random effects as large as the noise",
            parts.clustered,
            parts.slope,
            parts.random_effects,
            parts.inside(4),
            n=240,
            dead=("x3", "x4"),
            groups="cluster",
        ),
        Law(
            "missing",
            "a line and a wave; 10 to 30 % of three predictors missing at random",
            parts.uniform(4),
            parts.wave,
            parts.gauss,
            parts.points_with_a_hole(),
            dead=("x3", "x4"),
            hide=parts.holes,
        ),
        Law(
            "jumps",
            "steps in three predictors",
            parts.uniform(5),
            parts.jumps,
            parts.gauss,
            parts.off_the_edges(5),
            dead=("x4", "x5"),
            held=True,
        ),
        Law(
            "counts",
            "Poisson counts with a mean of 1.3 to 8",
            parts.uniform(4),
            parts.rates,
            parts.counts,
            parts.inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "exclusive",
            "the exclusive or of two predictors, neither of which acts alone",
            parts.uniform(4),
            parts.exclusive,
            parts.gauss,
            parts.off_the_edges(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "lognormal",
            "a positive, skewed response",
            parts.uniform(4),
            parts.log_mean,
            parts.lognormal,
            parts.inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
    )
}
"""Laws by name, in the order of the report; those set aside come last."""


def chosen_laws(wanted: Sequence[str] | None) -> list[Law]:
    """Look laws up by name; all of them by default."""
    for name in wanted or ():
        if name not in LAWS:
            raise ValueError(f"laws must be some of {', '.join(LAWS)}; got {name!r}.")
    return [law for law in LAWS.values() if wanted is None or law.name in wanted]
