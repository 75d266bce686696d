# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Bind the tree grower: batches of trees, without the interpreter's lock."""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import numpy as np


cdef extern from "grow.hpp" namespace "vstatkit" nogil:
    struct Options:
        int max_features
        int min_samples_split
        int min_samples_leaf
        int max_depth
        int n_classes
        cbool only_queried

    struct Table:
        int n_rows
        int n_features
        const double* sorted
        const int32_t* order
        const int32_t* rank
        const int32_t* n_known

    struct Node:
        int32_t feature
        int32_t right
        double value

    struct Sink:
        const double* points
        int n_points
        int n_at
        double* out
        double* oob
        double* times
        vector[Node]* nodes
        vector[double]* shares

    cdef cppclass Grower:
        Grower(const Table&, const double*, const Options&) except +
        void grow(const double*, uint64_t, const Sink&) except +

    void predict_tree(const Node*, const double*, int, const double*, int, double*)


NODE = np.dtype([("feature", np.int32), ("right", np.int32), ("value", np.float64)])


def grow_trees(
    const double[:, ::1] ranked_values,
    const int32_t[:, ::1] order,
    const int32_t[:, ::1] rank,
    const int32_t[::1] n_known,
    const double[::1] y,
    const double[:, ::1] weights,
    const uint64_t[::1] seeds,
    const double[::1, :] points,
    int n_at,
    double[:, ::1] out,
    oob_total,
    oob_times,
    dict options,
    bint keep,
):
    """Grow one tree for each row of `weights`.

    Predictions at the first `n_at` points are written to `out`; with `oob_total`
    the points go on with the training rows, and rows with weight zero add their
    predictions to it.

    Returns
    -------
    list of (nodes, shares), or None
        One pair a tree, if `keep`.
    """
    cdef Options choice
    choice.max_features = options["max_features"]
    choice.min_samples_split = options["min_samples_split"]
    choice.min_samples_leaf = options["min_samples_leaf"]
    choice.max_depth = options["max_depth"]
    choice.n_classes = options["n_classes"]
    choice.only_queried = oob_total is None and not keep
    cdef Table table
    table.n_rows = order.shape[1]
    table.n_features = order.shape[0]
    table.sorted = &ranked_values[0, 0]
    table.order = &order[0, 0]
    table.rank = &rank[0, 0]
    table.n_known = &n_known[0]
    cdef vector[Node] nodes
    cdef vector[double] shares
    cdef Sink sink
    sink.points = &points[0, 0] if points.shape[0] else NULL
    sink.n_points = points.shape[0]
    sink.n_at = n_at
    sink.nodes = &nodes if keep else NULL
    sink.shares = &shares
    cdef double[:, ::1] total
    cdef double[::1] times
    sink.oob = NULL
    sink.times = NULL
    if oob_total is not None:
        total = oob_total
        times = oob_times
        sink.oob = &total[0, 0]
        sink.times = &times[0]
    cdef Grower* grower = new Grower(table, &y[0], choice)
    cdef Py_ssize_t b
    cdef list kept = []
    try:
        for b in range(weights.shape[0]):
            sink.out = &out[b, 0] if out.shape[1] else NULL
            nodes.clear()
            shares.clear()
            with nogil:
                grower.grow(&weights[b, 0], seeds[b], sink)
            if keep:
                kept.append((_copy_nodes(nodes), _copy_shares(shares)))
    finally:
        del grower
    return kept if keep else None


cdef _copy_nodes(vector[Node]& nodes):
    copied = np.empty(nodes.size(), dtype=NODE)
    cdef char[::1] view = copied.view(np.int8)
    memcpy(&view[0], nodes.data(), nodes.size() * sizeof(Node))
    return copied


cdef _copy_shares(vector[double]& shares):
    copied = np.empty(shares.size())
    cdef double[::1] view = copied
    if shares.size():
        memcpy(&view[0], shares.data(), shares.size() * sizeof(double))
    return copied


def predict_tree_at(nodes, const double[::1] shares, int n_classes,
                    const double[::1, :] points, double[:, ::1] out):
    """Predict with one stored tree at column-major points."""
    cdef const char[::1] view = nodes.view(np.int8)
    cdef const Node* first = <const Node*> &view[0]
    cdef const double* share = &shares[0] if shares.shape[0] else NULL
    cdef int n_points = points.shape[0]
    if n_points == 0:
        return
    with nogil:
        predict_tree(first, share, n_classes, &points[0, 0], n_points, &out[0, 0])
