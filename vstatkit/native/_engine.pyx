# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Bind the tree grower: batches of trees, without the interpreter's lock."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import threading

import numpy as np


cdef extern from "Python.h":
    # Declared without an exception value: what it raises stays pending.
    int PyErr_CheckSignals_raw "PyErr_CheckSignals"() noexcept


cdef extern from "stop.hpp" namespace "vstatkit" nogil:
    cdef cppclass StopFlag:
        StopFlag(const StopFlag*)
        void set()
        cbool is_set()

    cdef cppclass Watch:
        Watch(const StopFlag*, cbool (*)() noexcept)


cdef extern from "tree.hpp" namespace "vstatkit" nogil:
    cdef cppclass Loss:
        pass

    struct Options:
        int max_features
        int min_samples_split
        int min_samples_leaf
        int max_depth
        int n_classes
        Loss loss
        cbool random
        cbool honest
        cbool only_queried

    struct Table:
        int n_rows
        int n_features
        const double* sorted
        const int32_t* order
        const int32_t* rank
        const int32_t* n_known
        const int32_t* levels

    const int kMostLevels
    const int32_t kLevelsFlag

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
        double* gains
        vector[Node]* nodes
        vector[double]* shares
        Watch* watch


cdef extern from "growers.hpp" namespace "vstatkit" nogil:
    cdef cppclass AnyGrower:
        void grow(const double*, uint64_t, const Sink&) except +

    AnyGrower* make_grower(const Table&, const double*, const Options&) except +


cdef extern from "predict.hpp" namespace "vstatkit" nogil:
    void predict_tree(const Node*, const double*, int, cbool, const double*, int,
                      double*, Watch&) except +


cdef extern from "portable.hpp" namespace "vstatkit" nogil:
    uint64_t c_upper_product "vstatkit::upper_product"(uint64_t, uint64_t)
    uint64_t upper_product_of_halves(uint64_t, uint64_t)
    int c_lowest_bit "vstatkit::lowest_bit"(uint64_t)
    int lowest_bit_by_table(uint64_t)


cdef extern from "draw.hpp" namespace "vstatkit" nogil:
    void c_draw_members "vstatkit::draw_members"(
        const uint64_t*, int64_t, int64_t, int64_t, cbool, int64_t*) except +


cdef extern from "counts.hpp" namespace "vstatkit" nogil:
    void c_count_sparse "vstatkit::count_sparse"(
        const int64_t*, int64_t, int64_t, int64_t, int32_t*, double*, int64_t*) except +
    void c_add_product "vstatkit::add_product"(
        const int64_t*, const int32_t*, const double*, int64_t, const double*, int64_t,
        int64_t, double*) except +


NODE = np.dtype([("feature", np.int32), ("right", np.int32), ("value", np.float64)])


MOST_LEVELS = kMostLevels
"""Levels of an unordered factor: one bit each in a node."""

LEVELS_FLAG = kLevelsFlag
"""Added to the feature of a node that splits levels."""

MOST = 2**31 - 1
"""The largest number that the compiled code counts rows, points and learners with."""


def refuse_beyond(str what, size, most=MOST):
    """Refuse sizes that the compiled code has no numbers for."""
    if size > most:
        raise ValueError(
            f"the number of {what} must be at most {most}; got {size}. Use fewer, or "
            "divide the work."
        )


cdef const StopFlag* _flag(Stop stop) noexcept:
    if stop is None:
        return NULL
    return stop.flag


cdef class Stop:
    """Tells compiled code in other threads to stop; what stops `parent` stops this."""

    cdef StopFlag* flag
    cdef Stop parent

    def __cinit__(self, Stop parent=None):
        self.parent = parent  # kept alive: the flag points to it
        self.flag = new StopFlag(_flag(parent))

    def __dealloc__(self):
        del self.flag

    def __reduce__(self):
        return Stop, ()

    def set(self):
        """Stop the work."""
        self.flag.set()

    def is_set(self):
        """Whether the work is to stop."""
        return self.flag.is_set()


cdef cbool _interrupted() noexcept with gil:
    """Whether Ctrl-C was pressed; the exception is left pending, to be raised."""
    return PyErr_CheckSignals_raw() != 0


cdef Watch* _watch(Stop stop) except NULL:
    """Ask the flag; and in the main thread, the only one that hears them, signals."""
    if threading.current_thread() is threading.main_thread():
        return new Watch(_flag(stop), _interrupted)
    return new Watch(_flag(stop), NULL)


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
    double[:, ::1] gains,
    oob_total,
    oob_times,
    dict options,
    bint keep,
    Stop stop=None,
    levels=None,
):
    """Grow one tree for each row of `weights`.

    Predictions at the first `n_at` points are written to `out`, and what each
    feature's splits gained to `gains`; with `oob_total` the points go on with the
    training rows, and rows with weight zero add their predictions to it. `stop`
    ends the work early, with an error. `levels` counts the levels of features that
    are unordered factors, whose values must lie below; it is zero for the others.

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
    choice.loss = <Loss> <int> options["loss"]
    choice.random = options["random"]
    choice.honest = options["honest"]
    choice.only_queried = oob_total is None and not keep
    cdef Table table
    table.n_rows = order.shape[1]
    table.n_features = order.shape[0]
    table.sorted = &ranked_values[0, 0]
    table.order = &order[0, 0]
    table.rank = &rank[0, 0]
    table.n_known = &n_known[0]
    if levels is None:
        levels = np.zeros(order.shape[0], dtype=np.int32)
    cdef const int32_t[::1] level_view = levels
    table.levels = &level_view[0]
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
    if keep and weights.shape[0]:
        # Full trees have about twice as many nodes as rows: one allocation.
        nodes.reserve(2 * <size_t> weights.shape[0] * _rows_of(weights))
    cdef AnyGrower* grower = make_grower(table, &y[0], choice)
    sink.watch = _watch(stop)
    cdef Py_ssize_t b, n_trees = weights.shape[0]
    cdef bint has_out = out.shape[1] > 0
    cdef vector[size_t] node_ends, share_ends
    try:
        with nogil:
            for b in range(n_trees):
                sink.out = &out[b, 0] if has_out else NULL
                sink.gains = &gains[b, 0]
                grower.grow(&weights[b, 0], seeds[b], sink)
                node_ends.push_back(nodes.size())
                share_ends.push_back(shares.size())
    finally:
        del grower
        del sink.watch
    return _split_trees(nodes, node_ends, shares, share_ends) if keep else None


cdef size_t _rows_of(const double[:, ::1] weights):
    """Rows of the first subsample."""
    cdef size_t count = 0
    cdef Py_ssize_t i
    for i in range(weights.shape[1]):
        count += weights[0, i] > 0
    return count


cdef list _split_trees(vector[Node]& nodes, vector[size_t]& node_ends,
                       vector[double]& shares, vector[size_t]& share_ends):
    """Copy every tree's nodes and shares into arrays of their own."""
    cdef list trees = []
    cdef size_t first = 0, first_share = 0, count, b
    cdef char[::1] view
    cdef double[::1] share_view
    for b in range(node_ends.size()):
        count = node_ends[b] - first
        tree = np.empty(count, dtype=NODE)
        view = tree.view(np.int8)
        memcpy(&view[0], nodes.data() + first, count * sizeof(Node))
        first = node_ends[b]
        count = share_ends[b] - first_share
        share = np.empty(count)
        if count:
            share_view = share
            memcpy(&share_view[0], shares.data() + first_share, count * sizeof(double))
        first_share = share_ends[b]
        trees.append((tree, share))
    return trees


def predict_tree_at(nodes, const double[::1] shares, int n_classes,
                    const double[::1, :] points, double[:, ::1] out, Stop stop=None,
                    bint by_levels=False):
    """Predict with one stored tree at column-major points, unless `stop` is set.

    `by_levels` says whether nodes may split levels.
    """
    cdef const char[::1] view = nodes.view(np.int8)
    cdef const Node* first = <const Node*> &view[0]
    cdef const double* share = &shares[0] if shares.shape[0] else NULL
    cdef int n_points = points.shape[0]
    if n_points == 0:
        return
    cdef Watch* watch = _watch(stop)
    try:
        with nogil:
            predict_tree(first, share, n_classes, by_levels, &points[0, 0], n_points,
                         &out[0, 0], watch[0])
    finally:
        del watch


def draw_members(const uint64_t[::1] keys, int64_t n, int64_t k, bint replace):
    """Draw k of n units for every key, shape (keys, k)."""
    drawn = np.empty((keys.shape[0], k), dtype=np.int64)
    cdef int64_t[:, ::1] view = drawn
    if keys.shape[0]:
        with nogil:
            c_draw_members(&keys[0], keys.shape[0], n, k, replace, &view[0, 0])
    return drawn


def count_dense(const int64_t[:, ::1] members, double[:, ::1] out):
    """Count how often each unit occurs in every row of `members`."""
    cdef Py_ssize_t b, j, L = members.shape[0], k = members.shape[1]
    with nogil:
        for b in range(L):
            out[b, :] = 0
            for j in range(k):
                out[b, members[b, j]] += 1


def count_sparse(const int64_t[:, ::1] members, int64_t n):
    """Count how often each unit occurs in every row of `members`.

    Returns
    -------
    units, counts : ndarray
        Units that occur and how often, row after row.
    bounds : ndarray of shape (L + 1,)
        Where the rows begin and end.
    """
    cdef int64_t L = members.shape[0], k = members.shape[1]
    refuse_beyond("units", n)
    units, counts = np.empty(L * k, dtype=np.int32), np.empty(L * k)
    bounds = np.zeros(L + 1, dtype=np.int64)
    cdef int32_t[::1] unit_view = units
    cdef double[::1] count_view = counts
    cdef int64_t[::1] bound_view = bounds
    if L:
        with nogil:
            c_count_sparse(&members[0, 0], L, k, n, &unit_view[0], &count_view[0],
                           &bound_view[1])
    return units[: bounds[L]], counts[: bounds[L]], bounds


def add_product(const int64_t[::1] bounds, const int32_t[::1] units,
                const double[::1] counts, const double[:, ::1] values,
                double[:, ::1] table):
    """Add the transposed sparse counts times `values` to `table`."""
    cdef int64_t L = values.shape[0], m = values.shape[1], n = table.shape[0]
    refuse_beyond("learners", L)
    if L and m and units.shape[0]:
        with nogil:
            c_add_product(&bounds[1], &units[0], &counts[0], L, &values[0, 0], m, n,
                          &table[0, 0])


def upper_products(uint64_t a, uint64_t b):
    """Upper halves of a product, as this compiler and as portable code has them."""
    return c_upper_product(a, b), upper_product_of_halves(a, b)


def lowest_bits(uint64_t bits):
    """Place of the lowest bit, as this compiler and as portable code has it."""
    return c_lowest_bit(bits), lowest_bit_by_table(bits)
