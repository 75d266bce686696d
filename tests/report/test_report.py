"""Reports: numbers are those of the results, names are escaped, pages stand alone."""

import itertools
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import vstatkit as vs
from vstatkit.report import figures
from vstatkit.report.contents import describe_fit, report_page
from vstatkit.report.html_page import show_unseen

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&amp; $\\frac{1$",
    "</table></style>",
    "a\ttab",
    "\u202egnihton",
    "漢字 🌲 " + "long" * 60,
]


@pytest.fixture(scope="module", autouse=True)
def _coarse():
    """Draw few points: numbers and names are looked at here, not pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "DPI", 30)
        yield


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(120, rng=1)
    group = np.repeat([f"clinic {j}" for j in range(30)], 4)
    return frame.assign(group=group, high=np.where(frame["y"] > 14, "yes", "no"))


@pytest.fixture(scope="module")
def forest(data):
    return vs.fit("y ~ x1 + x2 + x4", data, B=300, rng=7)


@pytest.fixture(scope="module")
def written(forest):
    """Compose the page of the forest, once for all tests that read it."""
    return report_page(forest)


@pytest.fixture(scope="module")
def hostile():
    """Results whose every name is an attack, and whose level is one too."""
    columns = vs.datasets.mars(80, rng=2)
    numbers = {name: columns[f"x{j % 5 + 1}"] for j, name in enumerate(HOSTILE)}
    level = np.where(columns["x1"] > 0.5, "<b>", "</tr>&")
    frame = pd.DataFrame({**numbers, "<i>": level, "$\\frac{<h1>$": columns["y"]})
    return vs.fit('Q(r"$\\frac{<h1>$") ~ .', frame, B=200, rng=1)


def given_ensemble():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(20, np.full(40, 1 / 40), size=100)
    return vs.from_arrays(counts, counts @ rng.normal(size=(40, 2)), replace=True)


FORMULA = "y ~ x1 + x2"
FEW = {"B": 200, "rng": 1}

KINDS = {
    "classes": lambda data: vs.fit(
        "species ~ petal_length + petal_width", vs.datasets.iris(), **FEW
    ),
    "two classes": lambda data: vs.fit("high ~ x1 + x4", data, **FEW),
    "ols": lambda data: vs.fit(FORMULA, data, kernel="ols", **FEW),
    "statistic": lambda data: vs.statistic("kendall", data[["x1", "y"]], k=2, **FEW),
    "complete": lambda data: vs.statistic(
        "gini", data["y"].head(12), k=2, B="complete", replace=False
    ),
    "clusters": lambda data: vs.fit(FORMULA, data, groups="group", **FEW),
    "points": lambda data: vs.fit(FORMULA, data, at=data.head(50), **FEW),
    "without learners": lambda data: vs.fit(FORMULA, data, keep_learners=False, **FEW),
    "shards": lambda data: vs.fit(
        FORMULA, data, k=3, design="shards", n_shards=20, **FEW
    ),
    "arrays": lambda data: given_ensemble(),
}

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """What a page holds: tags in order, texts of cells, and whether tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.tables = []
        self.feed(text)
        assert self.open == [], "tags are left open"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        self.texts.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]

    def table(self, caption):
        """Find a table by its caption, as a dict of rows."""
        places = [j for j, one in enumerate(self.tables) if self.captions[j] == caption]
        head, *rows = self.tables[places[0]]
        return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}

    @property
    def captions(self):
        regions = [one for one in self.all("div") if one.get("class") == "scroll"]
        return [one["aria-label"] for one in regions]


def number(text):
    return float(text.replace(",", "").replace("%", ""))


def check(text):
    """Hold a page to what every page has to be, without a browser."""
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert any(one.get("name") == "viewport" for one in page.all("meta"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    for one in page.all("img"):
        assert len(one["alt"]) > 20
        assert one["src"].startswith("data:image/png;base64,iVBOR")
    assert len(page.all("caption")) == len(page.tables) > 2
    assert all(one["scope"] in ("row", "col") for one in page.all("th"))
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "link", "style", "body", "header", "h1", "p",
        "main", "section", "h2", "ul", "ol", "li", "div", "table", "caption", "thead",
        "tbody", "tr", "th", "td", "figure", "img", "figcaption", "footer",
    }  # fmt: skip
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert attributes.get(name, "data:").startswith("data:")
    assert "url(" not in text
    assert "@import" not in text
    return page


def test_the_numbers_are_those_of_the_results(forest, tmp_path):
    assert forest.report(tmp_path / "fit.html", alpha=0.1) is None
    page = check((tmp_path / "fit.html").read_text(encoding="utf-8"))
    effects, found = page.table("Effects"), forest.effects_frame(0.1)
    assert list(effects) == list(found.index)
    names = {"From": "from", "To": "to", "Change": "estimate", "t": "t",
             "Std. error": "std_error", "df": "df", "Lower (90%)": "ci_lower",
             "Upper (90%)": "ci_upper"}  # fmt: skip
    for label, row in effects.items():
        for ours, theirs in names.items():
            expected = found.loc[label, theirs]
            assert number(row[ours]) == pytest.approx(expected, rel=6e-3, abs=0.06)
    estimates = page.table("Estimates")["typical"]
    bounds = forest.conf_int(0.1).iloc[0]
    assert number(estimates["Estimate"]) == pytest.approx(forest.params.iloc[0], 1e-3)
    assert number(estimates["Std. error"]) == pytest.approx(forest.bse.iloc[0], 1e-3)
    assert number(estimates["Lower (90%)"]) == pytest.approx(bounds["lower"], 1e-3)
    assert number(estimates["Upper (90%)"]) == pytest.approx(bounds["upper"], 1e-3)
    assert "p" not in estimates, "nobody asks whether a prediction is zero"
    typical = page.table("The typical row")
    assert number(typical["x4"]["Value"]) == pytest.approx(
        forest.typical["x4"].iloc[0], abs=1e-4
    )
    parts = page.table("Parts of the variance")["typical"]
    expected = forest.components.to_frame(forest.labels).iloc[0]
    assert number(parts["Sampling variance"]) == pytest.approx(
        expected["sampling"], 1e-3
    )
    needed = forest.diagnostics["learners_needed"].iloc[0]
    assert number(parts["Learners needed"]) == needed
    influence = page.table("Influence of single units")["typical"]
    assert number(influence["Kurtosis"]) == pytest.approx(
        forest.normality["kurtosis"].iloc[0], abs=0.006
    )


def test_settings_seed_versions_and_notes_are_there(forest, written):
    page = check(written)
    settings = page.table("Settings")
    assert settings["Seed (rng)"]["Value"] == "7"
    assert settings["Learners B"]["Value"] == "300"
    assert settings["Formula"]["Value"] == "y ~ x1 + x2 + x4"
    assert settings["Observations used"]["Value"] == "120"
    assert page.table("Versions")["numpy"]["Version"] == np.__version__
    assert page.table("Versions")["vstatkit"]["Version"] == vs.__version__
    said = " ".join(page.texts)
    *notes, more = forest.summary().notes
    assert "summary(full=True)" in more
    assert "summary(full=True)" not in said, "a page has no such thing, and all tables"
    for note in notes:
        assert note.split("] ", 1)[1] in said
    assert "x4 from" in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::vstatkit.VstatkitWarning")
def test_all_kinds_of_results_have_a_report(kind, data):
    results = KINDS[kind](data)
    page = check(report_page(results))
    said = " ".join(page.texts)
    assert ("Effects" in page.captions) == (results.effects is not None)
    if kind == "clusters":
        assert page.table("Settings")["Clusters"]["Value"] == "30"
    if kind == "classes":
        assert "the probability of virginica changes by" in said
        assert "At the typical row the probability of setosa is" in said
    if kind == "two classes":
        assert "the probability of yes changes by" in said
        mean = results.params.iloc[0]
        assert f"At the typical row the probability of yes is {mean:.4f} (95%" in said
    if kind == "complete":
        assert "no Monte Carlo error" in said
    if kind in ("ols", "statistic"):
        first = next(iter(page.table("Estimates").values()))
        assert number(first["t"]) == pytest.approx(results.zvalues.iloc[0], abs=0.006)
    if kind == "points":
        assert "Estimates (first and last 20 of 50)" in page.captions
    if kind == "arrays":
        assert "Seed (rng)" not in page.table("Settings")


def test_loaded_results_have_the_report_of_the_saved(forest, written, tmp_path):
    forest.save(tmp_path / "fit.npz")
    loaded = report_page(vs.load(tmp_path / "fit.npz"))
    rows = re.compile(r'<tr><th scope="row">[^<]*samples_|.*max_features.*')
    # Marks below the curves say where the training rows are, which files do not hold.
    pixels = re.compile('src="data:[^"]*"')
    kept = [line for line in written.splitlines() if not rows.match(line)]
    assert pixels.sub("", loaded).splitlines() == [pixels.sub("", one) for one in kept]


def test_names_are_escaped(hostile):
    text = report_page(hostile, title="<title> & more")
    page = check(text)
    assert "<script" not in text
    assert "onerror=alert(1)>" not in text
    assert "\u202e" not in text
    said = "".join(page.texts)
    assert "<title> & more" in said
    assert set(map(show_unseen, HOSTILE)) < set(page.table("Effects"))
    effect = page.table("Effects")["<i>"]
    assert {effect["From"], effect["To"]} == {"<b>", "</tr>&"}


def test_long_names_leave_room_for_the_picture():
    ax = Figure().subplots()
    ax.set(xlabel="x" * 200, ylabel="y" * 200)
    ax.set_yticks([0, 1], ["a" * 100 + "z", "short"])
    figures._shorten_names(ax)
    assert ax.get_xlabel() == "x" * 27 + "…" + "x" * 27
    assert ax.get_ylabel() == "y" * 19 + "…" + "y" * 19
    names = [one.get_text() for one in ax.get_yticklabels()]
    assert names == ["a" * 19 + "…" + "a" * 18 + "z", "short"]


def test_pages_hold_letters_that_utf8_does_not():
    assert show_unseen("a\ud800b\x00\x85") == "a\\ud800b\\x00\\x85"
    assert show_unseen("naïve 漢字\n🌲") == "naïve 漢字\n🌲"


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("fit.pdf", ValueError, "must end with .html; got .*prints the page to PDF"),
        ("no/fit.html", FileNotFoundError, "there is no directory .*make it first"),
        ("folder.html", IsADirectoryError, "folder.html is a directory"),
    ],
)
def test_the_path_is_checked_first(name, error, message, tmp_path):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(error, match=message):
        vs.EnsembleResults.report(None, tmp_path / name)  # nothing is looked at yet


def test_the_precision_is_the_worst_of_all_that_is_shown(data):
    res = vs.fit("y ~ x1 + x2 + x4", data, B=100, rng=7)
    shown = [res.estimates.relative_mc_error.max()]
    shown.append(res.effects["relative_mc_error"].max())
    assert shown[1] > shown[0], "the effects are the worse ones here"
    text = f"change the standard errors by about {shown[1]:.1%} at most"
    assert text in report_page(res)


def test_other_arguments_are_checked(forest, tmp_path):
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1"):
        forest.report(tmp_path / "fit.html", alpha=95)
    with pytest.raises(TypeError, match="`title` must be a text; got int"):
        forest.report(tmp_path / "fit.html", title=3)
    assert list(tmp_path.iterdir()) == []


def test_the_same_results_give_the_same_page_in_any_session(forest, written):
    figures = plt.get_fignums()
    with plt.style.context(["dark_background", {"font.size": 30}]):
        assert report_page(forest) == written
    assert plt.get_fignums() == figures, "no figure is left open"


@pytest.mark.parametrize("classes", [False, True])
def test_a_forest_from_elsewhere_is_called_one(data, classes):
    X = data[["x1", "x4"]]
    y = np.where(data["y"] > 15, "high", "low") if classes else data["y"]
    kind = RandomForestClassifier if classes else RandomForestRegressor
    forest = kind(60, max_samples=30, random_state=1).fit(X, y)
    said = describe_fit(vs.from_sklearn(forest, X, y))
    assert said.startswith(f"The mean of 60 learners ({kind.__name__}), each fitted to")
    response = "P(y = low)" if classes else "y"
    assert said.endswith(f", drawn with replacement, predicts {response}.")


def test_a_statistic_is_called_one(data):
    said = describe_fit(vs.statistic("kendall", data[["x1", "y"]], k=2, B=50, rng=1))
    assert said.startswith("kendall: the mean of its values on 50 subsamples")
