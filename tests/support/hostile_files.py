"""Files of saved results, edited to do harm; run as a program it loads each.

`HOSTILE` are edits of a good file: each is given its bytes and gives those of the
hostile one. Those that edit arrays or the document write a right checksum, so that
the checks behind it are what refuses them.
"""

import io
import json
import resource
import struct
import sys
import time
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
from vstatkit.native._engine import LEVELS_FLAG

import vstatkit as vs
from vstatkit.storage import atomic_files

TREES, CLASSES, LINEAR, GIVEN = "trees.npz", "classes.npz", "linear.npz", "given.npz"
BALANCED, COMPLETE, TEST = "balanced.npz", "complete.npz", "test.npz"
POOLED = "pooled.npz"


def make(place):
    """Save one good file of every kind."""
    data = vs.datasets.mars(40, rng=1).assign(g=list("abcd") * 10)
    data["g"] = data["g"].astype("category")
    fits = {
        TREES: vs.fit("y ~ x1 + log(x2) + g", data, B=12, rng=1),
        CLASSES: vs.fit("g ~ x1 + x2", data, B=12, rng=1),
        LINEAR: vs.fit("y ~ x1 + x2", data, kernel="ols", B=12, rng=1),
        BALANCED: vs.fit("y ~ x1", data, B=12, rng=1, design="balanced"),
        COMPLETE: vs.statistic("gini", data["y"], k=2, B="complete"),
    }
    large = vs.datasets.mars(120, rng=1)
    options = {"k": 120, "B": 20, "rng": 1, "min_samples_leaf": 2}
    fits[POOLED] = vs.fit("y ~ x1 + x2", large, **options)
    assert fits[POOLED].pooled is not None
    rng = np.random.default_rng(1)
    counts = rng.multinomial(5, np.full(9, 1 / 9), size=12)
    options = {"variance": "little_bags", "groups": np.arange(12) // 2}
    fits[GIVEN] = vs.from_arrays(counts, rng.normal(size=12), replace=True, **options)
    fits[TEST] = fits[LINEAR].t_test("x1 = 2")
    for name, results in fits.items():
        results.save(place / name)


def parts_of(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        return {
            name.removesuffix(".npy"): np.load(io.BytesIO(opened.read(name)))
            for name in opened.namelist()
        }


def packed(parts):
    """Write arrays as a file, with the checksum that fits them."""
    raw = {
        name: array if isinstance(array, bytes) else atomic_files._array_bytes(array)
        for name, array in parts.items()
        if name != "checksum"
    }
    told = np.frombuffer(atomic_files._digest(raw), dtype=np.uint8)
    raw["checksum"] = atomic_files._array_bytes(told)
    return zipped(raw)


def zipped(raw, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, **options) as opened:
        for name, part in raw.items():
            opened.writestr(f"{name}.npy", part)
    return file.getvalue()


def raw_of(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        return {n.removesuffix(".npy"): opened.read(n) for n in opened.namelist()}


def array(name, change):
    """Edit one array, with a right checksum."""

    def edit(whole):
        parts = parts_of(whole)
        made = parts[name].copy()
        given = change(made)
        parts[name] = made if given is None else given
        return packed(parts)

    return edit


def node(field, value, *, leaf=False, at=0):
    """Set a field of a split of numbers, or of a leaf."""

    def change(nodes):
        numbers = nodes["feature"] < LEVELS_FLAG
        chosen = np.flatnonzero(((nodes["feature"] < 0) == leaf) & numbers)[at]
        nodes[field][chosen] = value(nodes, chosen) if callable(value) else value

    return array("tree_nodes", change)


def document(change):
    """Edit the document, with a right checksum."""

    def edit(whole):
        parts = parts_of(whole)
        made = json.loads(parts["document"].tobytes())
        given = change(made)
        text = json.dumps(made) if given is None else given
        parts["document"] = np.frombuffer(text.encode(), dtype=np.uint8)
        return packed(parts)

    return edit


def field(*path, value):
    def change(made):
        for step in path[:-1]:
            made = made[step]
        made[path[-1]] = value

    return document(change)


def without(*path):
    def change(made):
        for step in path[:-1]:
            made = made[step]
        del made[path[-1]]

    return document(change)


def dropped(name):
    return lambda whole: packed({n: a for n, a in parts_of(whole).items() if n != name})


def added(name, part):
    return lambda whole: packed({**parts_of(whole), name: part})


def flipped(share):
    def edit(whole):
        made = bytearray(whole)
        made[int(share * (len(made) - 1))] ^= 0x10
        return bytes(made)

    return edit


def bomb(whole):
    """Add five gigabytes of nothing that nobody asks for."""
    file = io.BytesIO(zipped(raw_of(whole)))
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = squeezed.compress(bytes(2**20)) + squeezed.flush()
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("unused.npy", body)
        opened.infolist()[-1].file_size = 5 * 2**30
    return file.getvalue()


def swollen(name):
    """Let a member say that it holds five gigabytes."""

    def edit(whole):
        file = io.BytesIO(zipped(raw_of(whole)))
        with zipfile.ZipFile(file, "a") as opened:
            opened.getinfo(f"{name}.npy").file_size = 2**32 - 2
            opened.writestr("x", b"")  # so that the list of members is written
            opened.filelist.pop()
        return file.getvalue()

    return edit


def zeros(whole):
    """Hide a hundred megabytes behind a known name."""
    raw = raw_of(whole)
    raw["values"] = atomic_files._array_bytes(np.zeros((12, 10**6)))
    del raw["checksum"]
    told = np.frombuffer(atomic_files._digest(raw), dtype=np.uint8)
    return zipped({**raw, "checksum": atomic_files._array_bytes(told)})


def header(name, text):
    """Write another description of an array."""

    def edit(whole):
        body = parts_of(whole)[name].tobytes()
        line = text.encode() + b" " * 20 + b"\n"
        part = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line + body
        return packed({**parts_of(whole), name: part})

    return edit


def first_right(nodes, chosen):
    return 2 * chosen


def _lzma(raw):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as opened:
        for name, part in raw.items():
            opened.writestr(f"{name}.npy", part)
    return file.getvalue()


def _set(made, at, value):
    made = made.copy()
    made[at] = value
    return made


def _swap(made, one, other):
    made[[one, other]] = made[[other, one]]


def _all(made, name, value):
    made[name] = value


def _wrap(sizes):
    """Give sizes whose sum, in 64 bits, is the right one."""
    sizes[1] += sizes[0] + 2
    sizes[0] = -2
    sizes[2] = sizes[2] - 2**62
    sizes[3:6] += 2**62 // 2
    sizes[5] -= 2**62 // 2


def _move(sizes):
    sizes[0] += 1
    sizes[1] -= 1


def _little_bags(design):
    fields = {**design["fields"], "group_size": 5}
    return {"name": "little-bags", "fields": fields}


def _made_column(kind, item=1.0):
    return {"name": "g", "items": [item] * 40, "dtype": kind}


BIG = np.iinfo(np.int64).max
NESTED = "[" * 100_000 + "]" * 100_000

HOSTILE = {
    "empty": (TREES, lambda whole: b""),
    "text": (TREES, lambda whole: b"not results"),
    "half": (TREES, lambda whole: whole[: len(whole) // 2]),
    "without its end": (TREES, lambda whole: whole[:-10]),
    "with a head": (TREES, lambda whole: b"x" * 100 + whole[100:]),
    "bomb": (TREES, bomb),
    "swollen": (TREES, swollen("values")),
    "a hundred megabytes": (TREES, zeros),
    "encrypted": (TREES, lambda whole: whole.replace(b"PK\x01\x02", b"PK\x01\x03")),
    "unknown member": (TREES, added("other", np.arange(3))),
    "a pickle": (
        TREES,
        header("values", "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"),
    ),
    "a shape that is too large": (
        TREES,
        header(
            "values",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999), }",
        ),
    ),
    "a negative shape": (
        TREES,
        header(
            "values", "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 6), }"
        ),
    ),
    "a header that is code": (TREES, header("values", "__import__('os').system('x')")),
    "a deep header": (TREES, header("values", "(" * 3000)),
    "a long header": (TREES, header("values", "9" * 60000)),
    "no array": (TREES, lambda whole: packed({**parts_of(whole), "values": b"abc"})),
    "other checksum": (
        TREES,
        lambda whole: zipped({**raw_of(whole), "checksum": raw_of(whole)["document"]}),
    ),
    "changed without the checksum": (
        TREES,
        lambda whole: zipped(
            {**raw_of(whole), "values": atomic_files._array_bytes(np.ones((12, 1)))}
        ),
    ),
    "no checksum": (
        TREES,
        lambda w: zipped({n: p for n, p in raw_of(w).items() if n != "checksum"}),
    ),
    "lzma": (TREES, lambda whole: _lzma(raw_of(whole))),
    "no document": (TREES, dropped("document")),
    "deep json": (TREES, document(lambda made: NESTED)),
    "huge number": (TREES, document(lambda made: '{"format": ' + "9" * 10**6 + "}")),
    "no json": (TREES, document(lambda made: "{")),
    "a list": (TREES, document(lambda made: "[]")),
    "layout 1": (TREES, field("format", value=1)),
    "layout 11": (TREES, field("format", value=11)),
    "unknown type": (TREES, field("type", value="Averages")),
    "type not text": (TREES, field("type", value=3)),
    "tests without values": (TREES, field("type", value="ContrastResults")),
    "values without tests": (TEST, field("type", value="EstimateTable")),
    "layout true": (TREES, field("format", value=True)),
    "layout text": (TREES, field("format", value="2")),
    "extra field": (TREES, field("more", value=1)),
    **{
        f"no {name}": (TREES, without(name))
        for name in ("format", "variance", "labels", "units", "info", "design")
    },
    **{f"no {name}": (TREES, without(name)) for name in ("effects", "predictor")},
    **{
        f"without {name}": (TREES, dropped(name))
        for name in ("values", "effects", "residuals", "frame_numbers", "tree_nodes")
    },
    **{
        f"without tree_{name}": (TREES, dropped(f"tree_{name}"))
        for name in ("sizes", "shares", "share_sizes", "gains")
    },
    "values of another kind": (TREES, array("values", lambda a: a.astype("f4"))),
    "values in a row": (TREES, array("values", lambda a: a[:, 0])),
    "values that are not finite": (TREES, array("values", lambda a: a * np.nan)),
    "one learner": (TREES, array("values", lambda a: a[:1])),
    "no estimate": (TREES, array("values", lambda a: a[:, :0])),
    "more values than labels": (TREES, array("values", lambda a: np.tile(a, 2))),
    "effects of fewer learners": (TREES, array("effects", lambda a: a[:-1])),
    "infinite effects": (TREES, array("effects", lambda a: a + np.inf)),
    "more effects": (TREES, array("effects", lambda a: np.tile(a, 2))),
    "more residuals": (TREES, array("residuals", lambda a: np.tile(a, 2))),
    "residuals not finite": (TREES, array("residuals", lambda a: a * np.inf)),
    "infinite column": (TREES, array("frame_numbers", lambda a: a + np.inf)),
    "fewer columns": (TREES, array("frame_numbers", lambda a: a[1:])),
    "fewer rows": (TREES, array("frame_numbers", lambda a: a[:, 1:])),
    "typical of two rows": (TREES, array("typical_numbers", lambda a: np.tile(a, 2))),
    "null of another length": (TEST, array("null", lambda a: np.tile(a, 2))),
    "null not finite": (TEST, array("null", lambda a: a * np.nan)),
    "scores that are text": (TREES, field("scores", "table", value={"R": "x"})),
    "scores not finite": (TREES, field("scores", "table", value={"R": float("nan")})),
    "scored more than there are": (TREES, field("scores", "n_scored", value=10**6)),
    "unknown variance": (TREES, field("variance", value="__class__")),
    "variance of another design": (TREES, field("variance", value="little_bags")),
    "variance not settled": (TREES, field("variance", value="corrected")),
    "labels nested": (TREES, field("labels", "items", value=[{}])),
    "labels of a kind": (TREES, field("labels", "items", value=[{"code": "x"}])),
    "labels as text": (TREES, field("labels", "items", value="typical")),
    "a date that is none": (
        TREES,
        field("labels", "items", value=[{"timestamp": "never"}]),
    ),
    "an interval turned": (
        TREES,
        field("labels", "items", value=[{"interval": [2, 1, "left"]}]),
    ),
    "an interval of another kind": (
        TREES,
        field("labels", "items", value=[{"interval": [1, 2, "sideways"]}]),
    ),
    "deep label": (
        TREES,
        field(
            "labels",
            "items",
            value=[
                {
                    "tuple": [
                        {
                            "tuple": [
                                {"tuple": [{"tuple": [{"tuple": [{"tuple": [1]}]}]}]}
                            ]
                        }
                    ]
                }
            ],
        ),
    ),
    "fewer units": (TREES, field("units", "items", value=[1, 2])),
    "rows of several lengths": (
        CLASSES,
        field("labels", "rows", value=[{"tuple": [1] * j} for j in range(1, 5)]),
    ),
    "factors of another coding": (TREES, field("predictor", "factors", value="none")),
    "columns that are text": (TREES, field("predictor", "columns", value=["0"])),
    "no columns": (TREES, field("predictor", "columns", value=[])),
    "a column twice": (TREES, field("predictor", "columns", value=[0, 0])),
    "a huge column": (TREES, field("predictor", "columns", value=[10**30])),
    "info of another kind": (TREES, field("info", "nobs", value="40")),
    "no observations": (TREES, field("info", "nobs", value=0)),
    "other observations": (TREES, field("info", "nobs", value=41)),
    "fewer observations": (TREES, field("info", "nobs", value=39)),
    "fewer rows than clusters": (
        TREES,
        document(lambda d: d["info"].update(units="clusters", nobs=39)),
    ),
    "other units": (TREES, field("info", "units", value="atoms")),
    "range turned": (TREES, field("info", "ranges", "x1", value=[2.0, 1.0])),
    "range of text": (TREES, field("info", "ranges", "x1", value=["a", "b"])),
    "tolerance": (TREES, field("info", "growth", "tol", value=7.0)),
    "info with more": (TREES, field("info", "more", value=7)),
    "unused levels": (TREES, field("info", "unused_levels", value=[1])),
    "unknown design": (TREES, field("design", "name", value="__init__")),
    "design of no rows": (TREES, field("design", "fields", "n", value=0)),
    "design of more rows": (TREES, field("design", "fields", "n", value=41)),
    "negative n": (TREES, field("design", "fields", "n", value=-40)),
    "huge k": (TREES, field("design", "fields", "k", value=10**12)),
    "k of zero": (TREES, field("design", "fields", "k", value=0)),
    "k above n": (
        TREES,
        document(lambda d: d["design"]["fields"].update(replace=False, k=50)),
    ),
    "replace of another kind": (TREES, field("design", "fields", "replace", value=1)),
    "negative seed": (TREES, field("design", "fields", "seed", value=-1)),
    "huge seed": (TREES, field("design", "fields", "seed", value=2**64)),
    "design with more": (TREES, field("design", "fields", "more", value=1)),
    "balanced for others": (
        BALANCED,
        field("design", "fields", "n_learners", value=13),
    ),
    "a block of one": (BALANCED, field("design", "fields", "block", value=1)),
    "complete and huge": (
        COMPLETE,
        document(lambda d: d["design"]["fields"].update(n=10**6, k=5 * 10**5)),
    ),
    "complete for others": (COMPLETE, field("design", "fields", "k", value=3)),
    "groups of others": (
        TREES,
        document(lambda d: d["design"].update(_little_bags(d["design"]))),
    ),
    "counts not whole": (GIVEN, array("counts_data", lambda a: a * 1.5)),
    "negative counts": (GIVEN, array("counts_data", lambda a: -a)),
    "counts not finite": (GIVEN, array("counts_data", lambda a: a * np.inf)),
    "counts of text": (GIVEN, array("counts_data", lambda a: a.astype("U3"))),
    "counts of another sum": (GIVEN, array("counts_data", lambda a: a * 2)),
    "fewer counts": (GIVEN, array("counts_data", lambda a: a[:-1])),
    "index outside": (GIVEN, array("counts_indices", lambda a: a + 1)),
    "index far outside": (GIVEN, array("counts_indices", lambda a: a + 2**30)),
    "negative index": (GIVEN, array("counts_indices", lambda a: a - 1)),
    "index of floats": (GIVEN, array("counts_indices", lambda a: a * 1.0)),
    "bounds out of order": (GIVEN, array("counts_indptr", lambda a: _swap(a, 3, 4))),
    "bounds outside": (GIVEN, array("counts_indptr", lambda a: _set(a, -1, 2**30))),
    "bounds from one": (GIVEN, array("counts_indptr", lambda a: _set(a, 0, 1))),
    "fewer bounds": (GIVEN, array("counts_indptr", lambda a: a[:-1])),
    "a count twice": (GIVEN, array("counts_indices", lambda a: _set(a, 1, a[0]))),
    "no indptr": (GIVEN, dropped("counts_indptr")),
    "twice without replacement": (
        GIVEN,
        field("design", "fields", "replace", value=False),
    ),
    "fewer groups": (GIVEN, array("counts_groups", lambda a: a[:-1])),
    "negative groups": (GIVEN, array("counts_groups", lambda a: a - 1)),
    "groups of floats": (GIVEN, array("counts_groups", lambda a: a * 1.0)),
    "groups for nobody": (TREES, added("counts_groups", np.zeros(12, dtype=np.int64))),
    "dense and huge": (
        GIVEN,
        document(lambda d: d["design"]["fields"].update(n=2**31 - 1)),
    ),
    "a kind that is none": (TREES, field("kind", value="LEAVES")),
    "a kind that is a number": (TREES, field("kind", value=3)),
    "orders of others": (TREES, array("orders", lambda a: a[:-1])),
    "a negative rho": (TREES, array("orders", lambda a: -a)),
    "an infinite rho": (TREES, array("orders", lambda a: a + np.inf)),
    "no reference rows": (TREES, array("reference", lambda a: a[:0])),
    "reference rows of others": (TREES, array("reference", lambda a: a[:, :-1])),
    "limits of others": (TREES, array("limit", lambda a: np.ones(7))),
    "a negative limit": (TREES, array("limit", lambda a: -a)),
    "a limit that is none": (TREES, array("limit", lambda a: a * np.nan)),
    "four rows of others": (TREES, added("support", np.ones((4, 7)))),
    "none behind a share": (TREES, added("support", np.array([[0.0], [1], [0], [0]]))),
    "too many of them": (TREES, added("support", np.array([[0.0], [1], [9e9], [0]]))),
    "half an average": (TREES, added("support", np.array([[0.0], [1], [5], [0.5]]))),
    "tails of others": (TREES, added("tails", np.zeros((4, 7)))),
    "three tails": (TREES, added("tails", np.zeros((3, 1)))),
    "a negative error": (TREES, added("tails", np.array([[-1.0], [0], [0], [1]]))),
    "skewed beyond one": (TREES, added("tails", np.array([[1.0], [2], [0], [1]]))),
    "tails in disorder": (TREES, added("tails", np.array([[1.0], [0], [1], [0]]))),
    "an infinite tail": (TREES, added("tails", np.array([[np.inf], [0], [0], [1]]))),
    "ends of others": (TREES, added("support", np.ones((2, 7)))),
    "ends in disorder": (TREES, added("support", np.array([[1.0], [0.0]]))),
    "one end": (TREES, added("support", np.ones((1, 1)))),
    "an end that is none": (TREES, added("support", np.array([[0.0], [np.inf]]))),
    "two typical rows": (
        TREES,
        array("typical_numbers", lambda a: np.repeat(a, 2, axis=1)),
    ),
    "fewer settings": (TREES, document(lambda d: d["effects"]["from"].pop())),
    "growth is a list": (TREES, field("info", "growth", value=[0.1, 100])),
    "a date of numbers": (TREES, field("labels", "items", value=[{"timestamp": 5}])),
    "an interval of one": (
        TREES,
        field("labels", "items", value=[{"interval": [1.0]}]),
    ),
    "part of a row of shares": (
        CLASSES,
        array("tree_share_sizes", lambda a: _set(_set(a, 0, a[0] + 1), 1, a[1] - 1)),
    ),
    "a leaf of a row outside": (POOLED, node("right", 120, leaf=True)),
    "a list outside its tree": (POOLED, node("right", -(2**30), leaf=True)),
    "a list from its middle": (POOLED, node("right", -3, leaf=True)),
    "rows outside": (POOLED, array("tree_leaf_rows", lambda a: a + 120)),
    "negative rows": (POOLED, array("tree_leaf_rows", lambda a: a - 200)),
    "rows of floats": (POOLED, array("tree_leaf_rows", lambda a: a * 1.0)),
    "fewer rows of leaves": (POOLED, array("tree_leaf_rows", lambda a: a[:-1])),
    "no lengths of lists": (POOLED, array("tree_leaf_rows", lambda a: a * 0)),
    "shares of leaves above one": (POOLED, array("tree_leaf_shares", lambda a: a + 1)),
    "no shares of leaves": (POOLED, dropped("tree_leaf_shares")),
    "fewer lists": (POOLED, array("tree_list_sizes", lambda a: a[:-1])),
    "lists moved": (POOLED, array("tree_list_sizes", _move)),
    "a negative pooled variance": (POOLED, array("pooled", lambda a: -a)),
    "a pooled variance of others": (POOLED, array("pooled", lambda a: a[:-1])),
    "residuals of fewer rows": (POOLED, array("row_residuals", lambda a: a[:-1])),
    "infinite residuals": (POOLED, array("row_residuals", lambda a: a + np.inf)),
    "a unit of zero": (POOLED, array("residual_unit", lambda a: a * 0)),
    "units for rows": (POOLED, added("row_units", np.full(120, 120))),
    "influences outside": (POOLED, array("leaf_indices", lambda a: a + 120)),
    "influences of fewer": (POOLED, array("leaf_data", lambda a: a[:-1])),
    "influences without bounds": (POOLED, dropped("effect_leaf_indptr")),
    "cycle": (TREES, node("right", 0)),
    "child is itself": (TREES, node("right", first_right)),
    "child is the left one": (TREES, node("right", lambda n, at: 2 * (at + 1))),
    "child outside": (TREES, node("right", 2**30)),
    "negative child": (TREES, node("right", -2)),
    "feature outside": (TREES, node("feature", 6)),
    "feature far outside": (TREES, node("feature", 2**31 - 1)),
    "threshold no number": (TREES, node("value", np.nan)),
    "leaf not finite": (TREES, node("value", np.inf, leaf=True)),
    "leaf becomes a split": (TREES, node("feature", 0, leaf=True, at=-1)),
    "no leaf": (TREES, array("tree_nodes", lambda a: _all(a, "feature", 0))),
    "split becomes a leaf": (TREES, node("feature", -1)),
    "sizes of zero": (TREES, array("tree_sizes", lambda a: a * 0)),
    "negative sizes": (TREES, array("tree_sizes", lambda a: -a)),
    "huge sizes": (TREES, array("tree_sizes", lambda a: a * 0 + BIG)),
    "sizes that wrap round": (TREES, array("tree_sizes", _wrap)),
    "sizes moved": (TREES, array("tree_sizes", _move)),
    "fewer sizes": (TREES, array("tree_sizes", lambda a: a[:-1])),
    "sizes of floats": (TREES, array("tree_sizes", lambda a: a * 1.0)),
    "nodes of another kind": (TREES, array("tree_nodes", lambda a: a["value"].copy())),
    "fewer nodes": (TREES, array("tree_nodes", lambda a: a[:-1].copy())),
    "gains of others": (TREES, array("tree_gains", lambda a: a[:, :-1].copy())),
    "share index outside": (CLASSES, node("right", 10**6, leaf=True)),
    "negative share index": (CLASSES, node("right", -1, leaf=True)),
    "leaf of no kind": (CLASSES, node("feature", -4, leaf=True)),
    "leaf of a mean among classes": (CLASSES, node("feature", -1, leaf=True)),
    "leaf of shares that are not there": (CLASSES, node("feature", -3, leaf=True)),
    "shares above one": (
        CLASSES,
        array("tree_shares", lambda a: np.append(a, [9.0] * 4)),
    ),
    "more shares": (CLASSES, array("tree_shares", lambda a: np.append(a, [0.5] * 4))),
    "share sizes not whole": (
        CLASSES,
        lambda w: packed(
            {
                **parts_of(w),
                "tree_shares": np.append(parts_of(w)["tree_shares"], 0.5),
                "tree_share_sizes": _set(parts_of(w)["tree_share_sizes"], 0, 1),
            }
        ),
    ),
    "negative share sizes": (CLASSES, array("tree_share_sizes", lambda a: a - 4)),
    "fewer classes": (CLASSES, field("predictor", "classes", value=["a", "b"])),
    "a class twice": (CLASSES, field("predictor", "classes", value=list("aabc"))),
    "other classes": (CLASSES, field("predictor", "n_classes", value=3)),
    "many classes": (CLASSES, field("predictor", "n_classes", value=2**30)),
    "two classes of means": (
        TREES,
        document(lambda d: d["predictor"].update(n_classes=2, classes=["a", "b"])),
    ),
    "scale of zero": (TREES, field("predictor", "scale", value=0.0)),
    "infinite scale": (TREES, field("predictor", "scale", value=float("inf"))),
    "centre no number": (TREES, field("predictor", "centre", value=float("nan"))),
    "unknown learners": (TREES, field("predictor", "kind", value="pickle")),
    "coefficients of others": (
        LINEAR,
        array("coefficients", lambda a: a[:, :-1].copy()),
    ),
    "coefficients of fewer": (LINEAR, array("coefficients", lambda a: a[:-1])),
    "coefficients not finite": (LINEAR, array("coefficients", lambda a: a * np.nan)),
    "logit without classes": (LINEAR, field("predictor", "logit", value=True)),
    "classes without logit": (LINEAR, field("predictor", "classes", value=["a", "b"])),
    "logit of three": (
        LINEAR,
        document(lambda d: d["predictor"].update(logit=True, classes=list("abc"))),
    ),
    "unknown missing": (TREES, field("predictor", "missing", value="hide")),
    "intercept": (TREES, field("predictor", "intercept", value=True)),
    **{
        f"formula {j}": (TREES, field("predictor", "formula", value=f"y ~ {right}"))
        for j, right in enumerate(
            (
                "I(9**9**9)",
                "I(x1 * 9**9**9) + log(x2) + g",
                "__import__('os').system('touch executed')",
                "bs(x1, df=10**7)",
                "x1 ** 2 : poly(x2, 10**8, raw=True)",
                "absent",
                "I(g * 10**9)",
                "(" * 10**5,
            )
        )
    },
    "formula of no text": (TREES, field("predictor", "formula", value=7)),
    "column of another kind": (
        TREES,
        document(
            lambda d: d["predictor"]["frame"]["others"][0].update(items=[[]] * 40)
        ),
    ),
    "column of another length": (
        TREES,
        document(lambda d: d["predictor"]["frame"]["others"][0].update(items=["a"])),
    ),
    "column of no level": (
        TREES,
        document(
            lambda d: d["predictor"]["frame"]["others"][0].update(items=["z"] * 40)
        ),
    ),
    "levels twice": (
        TREES,
        document(
            lambda d: d["predictor"]["frame"]["others"][0].update(
                categories=list("aabc")
            )
        ),
    ),
    "ordered of another kind": (
        TREES,
        document(lambda d: d["predictor"]["frame"]["others"][0].update(ordered="no")),
    ),
    "columns not listed": (TREES, field("predictor", "frame", "names", value=["y"])),
    "kind of a column": (
        TREES,
        field("predictor", "frame", "others", 0, value=_made_column("O8")),
    ),
    "infinite item": (
        TREES,
        field("predictor", "frame", "others", 0, value=_made_column("object", 1e999)),
    ),
}


def outcome(path):
    """Load a file and use what comes; tell how it ended."""
    before = time.process_time()
    try:
        results = vs.load(path)
        str(results.summary())
        if isinstance(results, vs.EnsembleResults) and results.predictor is not None:
            results.predict({"x1": [0.5], "x2": [0.5], "g": ["a"], "y": [1.0]})
        found = "accepted"
    except vs.FileError as error:
        one_line = path.name in str(error) and len(str(error)) < 1000
        found = "refused" if one_line else f"says {str(error)[:200]}"
    except BaseException as error:
        found = f"{type(error).__name__}: {error}"[:200]
    return found, time.process_time() - before


def main():
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    make(place)
    names = (TREES, CLASSES, LINEAR, GIVEN, BALANCED, COMPLETE, TEST, POOLED)
    good = {name: (place / name).read_bytes() for name in names}
    rows = [[name, *outcome(place / name)] for name in names]
    for name, (of, edit) in HOSTILE.items():
        path = place / "hostile.npz"
        path.write_bytes(edit(good[of]))
        rows.append([name, *outcome(path)])
    print(json.dumps({"good": rows[: len(names)], "hostile": rows[len(names) :]}))


if __name__ == "__main__":
    main()
