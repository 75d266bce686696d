"""Designs that come from a file, checked against the learners that they drew."""

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts
from vstatkit.packing import check, only, take, take_size
from vstatkit.sampling.complete import CompleteDesign
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import DESIGNS
from vstatkit.storage.archive import Arrays
from vstatkit.storage.saving import DESIGN_FIELDS

MAX_DRAWN = 10**8
"""Units in one subsample."""

MAX_CHOSEN = 20
"""Choices in a complete design: with more there are over a million subsamples."""

MAX_DENSE = 2**28
"""Entries of a table of counts that is written out."""


def unpack_design(packed: Any, arrays: Arrays, B: int) -> SubsampleDesign:
    """Read a design that fits B learners."""
    name = take(packed, "name", str)
    if name == GivenDesign.name:
        return _unpack_given(packed, arrays, B)
    kinds: dict[str, type[Any]] = {**DESIGNS, CompleteDesign.name: CompleteDesign}
    check(name in kinds, "its design is not known.")
    only(packed, ("name", "fields"), "`design`")
    fields = packed["fields"]
    options = [one.name for one in dataclasses.fields(kinds[name])]
    only(fields, options, "`design`")
    kept = {o: take_size(fields, o, 1) for o in options if o not in DESIGN_FIELDS}
    common = _common_fields(fields)
    if name == CompleteDesign.name:
        n, k, replace = common["n"], common["k"], common["replace"]
        chosen = min(k, n - 1) if replace else min(k, n - k)
        check(chosen <= MAX_CHOSEN, "a complete design would be too large.")
        complete = CompleteDesign(**common)
        check(complete.n_subsamples == B, "the design has more learners, or fewer.")
        return complete
    design: SubsampleDesign = kinds[name](**common, **kept)
    check(design.sized(B) == design, "the design has more learners, or fewer.")
    return design


def _common_fields(fields: Any) -> dict[str, Any]:
    return {
        "n": take_size(fields, "n", 2),
        "k": take_size(fields, "k", 1, MAX_DRAWN),
        "replace": take(fields, "replace", bool),
        "seed": take_size(fields, "seed", 0, 2**64 - 1),
    }


def _unpack_given(packed: Any, arrays: Arrays, B: int) -> GivenDesign:
    only(packed, ("name", "fields", "sparse"), "`design`")
    only(packed["fields"], DESIGN_FIELDS, "`design`")
    common = _common_fields(packed["fields"])
    table = _unpack_counts(arrays, B, common["n"])
    sums = np.asarray(table.sum(axis=1))
    check((sums == common["k"]).all(), "the counts do not add up to k.")
    repeats = common["replace"] or table.data.max() <= 1
    check(repeats, "a unit was drawn twice without replacement.")
    labels = arrays.pop("counts_groups", None)
    if labels is not None:
        fits = labels.dtype == np.int64 and labels.shape == (B,)
        check(fits and (labels >= 0).all(), "groups and learners differ.")
    if not take(packed, "sparse", bool):
        check(B * common["n"] <= MAX_DENSE, "the table of counts is too large.")
        return GivenDesign(**common, table=table.toarray(), labels=labels)
    return GivenDesign(**common, table=table, labels=labels)


def _unpack_counts(arrays: Arrays, B: int, n: int) -> Counts:
    """Read sparse counts; compiled code trusts their structure."""
    names = ("counts_data", "counts_indices", "counts_indptr")
    for name in names:
        check(name in arrays, f"the array {name!r} is missing.")
    data, indices, indptr = (arrays.pop(name) for name in names)
    check(data.dtype.kind in "biuf" and data.ndim == 1, "counts are no numbers.")
    whole = indices.dtype.kind == indptr.dtype.kind == "i"
    check(whole and indices.ndim == indptr.ndim == 1, "counts are at no places.")
    check(indptr.shape == (B + 1,), "counts and learners differ in number.")
    check(indptr[0] == 0 and (np.diff(indptr) >= 0).all(), "counts are out of order.")
    check(indptr[-1] == data.size == indices.size, "counts are missing.")
    check(((indices >= 0) & (indices < n)).all(), "a count is of no unit.")
    good = np.isfinite(data).all() and (data >= 0).all() and (data % 1 == 0).all()
    check(good, "counts must be whole numbers.")
    table = sparse.csr_array((data, indices, indptr), shape=(B, n))
    check(table.has_canonical_format, "a count is there twice.")
    return table
