# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Bind the compiled code: growers of trees, without the interpreter's lock; and sums."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

import threading

import numpy as np


cdef extern from "Python.h":
    # Declared without an exception value: its exception stays pending.
    int PyErr_CheckSignals_raw "PyErr_CheckSignals"() noexcept


cdef extern from "stop.hpp" namespace "vstatkit" nogil:
    cdef cppclass StopFlag:
        StopFlag(const StopFlag*)
        void set()
        cbool is_set()

    cdef cppclass Watch:
        Watch()
        Watch(const StopFlag*, cbool (*)() noexcept)


cdef extern from "tree.hpp" namespace "vstatkit" nogil:
    cdef cppclass Loss:
        pass

    struct Options:
        int max_features
        int min_samples_split
        int min_samples_leaf
        int max_depth
        int max_leaf_nodes
        double min_weight_fraction_leaf
        int n_classes
        Loss loss
        cbool random
        cbool honest
        cbool only_queried

    struct Table:
        int n_rows
        int n_features
        const double* x
        int64_t row_step
        int64_t feature_step
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
        const int32_t* oob_rows
        int n_oob
        double* oob
        double* times
        double* gains
        vector[Node]* nodes
        vector[double]* shares
        vector[int32_t]* leaf_rows
        vector[float]* leaf_shares
        double* line
        vector[size_t]* tree_ends
        Watch* watch


cdef extern from "members.hpp" namespace "vstatkit" nogil:
    cdef cppclass Member:
        pass

    struct Draws:
        const int64_t* bounds
        const int32_t* units
        const double* times
        const int64_t* unit_bounds
        const int32_t* unit_rows
        const double* weights

    cdef cppclass MemberLister:
        MemberLister(const Draws&)
        const vector[Member]& list(int64_t) except +


cdef extern from "growers.hpp" namespace "vstatkit" nogil:
    cdef cppclass AnyGrower:
        void grow(const double*, uint64_t, const Sink&) except +
        void grow(const vector[Member]&, uint64_t, const Sink&) except +

    AnyGrower* make_grower(const Table&, const double*, const Options&) except +


cdef extern from "stages.hpp" namespace "vstatkit" nogil:
    struct Stages:
        cbool trend
        cbool boost
        const int32_t* unit_of_row

    cdef cppclass StagedGrower(AnyGrower):
        StagedGrower(const Table&, const double*, const Options&, const Stages&) except +

    double predict_line(const double*, const double*, int)


cdef extern from "predict.hpp" namespace "vstatkit" nogil:
    void predict_tree(const Node*, size_t, const double*, int, cbool, const double*,
                      int, int, double*, Watch&) except +

    struct StoredTree:
        const Node* nodes
        size_t n_nodes
        const double* shares

    void c_add_trees "vstatkit::add_trees"(
        const vector[StoredTree]&, int, cbool, const double*, int, int, double, double,
        const double*, double*, Watch&) except +
    void c_predict_trees "vstatkit::predict_trees"(
        const vector[StoredTree]&, int, cbool, const double*, int, int, double, double,
        double*, Watch&) except +
    void find_tree_leaves(const Node*, const double*, int, int, int32_t*,
                          Watch&) except +


cdef extern from "leaf_weights.hpp" namespace "vstatkit" nogil:
    struct LeafTree:
        const Node* nodes
        const int32_t* rows
        const float* shares

    cdef cppclass SparseWeights:
        vector[int64_t] bounds
        vector[int32_t] rows
        vector[double] weights

    void c_sum_leaf_weights "vstatkit::sum_leaf_weights"(
        const vector[LeafTree]&, cbool, const double*, int, int, const uint8_t*, int,
        int64_t, SparseWeights&, Watch&) except +

    struct RowErrors:
        const double* residuals
        const int32_t* unit_of_row
        int64_t n_units
        int width

    void c_sum_influence_powers "vstatkit::sum_influence_powers"(
        const vector[LeafTree]&, cbool, const double*, int, int, const RowErrors&, int,
        double*, double*, Watch&) except +


cdef extern from "dependence.hpp" namespace "vstatkit" nogil:
    struct Setting:
        const double* rows
        const double* weights
        int32_t n_rows
        int32_t sizes[2]
        const int32_t* place
        const int32_t* axis
        const double* values
        int64_t step

    cdef cppclass Dependence:
        Dependence(const Setting&) except +
        void add_numbers "add<false>"(
            const Node*, const double*, int, double*, Watch&) except +
        void add_levels "add<true>"(
            const Node*, const double*, int, double*, Watch&) except +


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


cdef extern from "powers.hpp" namespace "vstatkit" nogil:
    struct UnitDraws:
        int64_t n_units
        const int32_t* bounds
        const int32_t* learners
        const float* counts
        const double* scale
        const double* tilt

    const int kPowers
    void add_powers_double "vstatkit::add_powers<double>"(
        const UnitDraws&, const double*, int64_t, int64_t, const double*, int64_t,
        int64_t, double*) except +
    void add_powers_float "vstatkit::add_powers<float>"(
        const UnitDraws&, const double*, int64_t, int64_t, const double*, int64_t,
        int64_t, double*) except +


NODE = np.dtype([("feature", np.int32), ("right", np.int32), ("value", np.float64)])


MOST_LEVELS = kMostLevels
"""Levels of an unordered factor: one bit each in a node."""

LEVELS_FLAG = kLevelsFlag
"""Added to the feature of a node that splits levels."""

MOST = 2**31 - 1
"""The largest number of rows, points and learners in the compiled code."""


def refuse_beyond(str what, size, most=MOST):
    """Raise an error if a size exceeds the range of the compiled code."""
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
    """Interrupt compiled code in other threads; also set if `parent` is."""

    cdef StopFlag* flag
    cdef Stop parent

    def __cinit__(self, Stop parent=None):
        self.parent = parent  # the flag points to it
        self.flag = new StopFlag(_flag(parent))

    def __dealloc__(self):
        del self.flag

    def __reduce__(self):
        return Stop, ()

    def set(self):
        """Stop the work."""
        self.flag.set()

    def is_set(self):
        """Return whether the work is to stop."""
        return self.flag.is_set()


cdef cbool _interrupted() noexcept with gil:
    """Return whether Ctrl-C was pressed; the exception stays pending."""
    return PyErr_CheckSignals_raw() != 0


cdef Watch _watch(Stop stop) except *:
    """Watch the flag; and signals in the main thread, the only one that receives them."""
    if threading.current_thread() is threading.main_thread():
        return Watch(_flag(stop), _interrupted)
    return Watch(_flag(stop), NULL)


cdef Options _read_options(dict given) except *:
    cdef Options options
    options.max_features = given["max_features"]
    options.min_samples_split = given["min_samples_split"]
    options.min_samples_leaf = given["min_samples_leaf"]
    options.max_depth = given["max_depth"]
    options.max_leaf_nodes = given["max_leaf_nodes"]
    options.min_weight_fraction_leaf = given["min_weight_fraction_leaf"]
    options.n_classes = given["n_classes"]
    options.loss = <Loss> <int> given["loss"]
    options.random = given["random"]
    options.honest = given["honest"]
    options.only_queried = False
    return options


cdef class TreeGrower:
    """Grow trees, and write their predictions to arrays.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Responses.
    seeds : ndarray of shape (L,)
        One for each tree.
    points : ndarray of shape (n_at + r, p), column-major
        Points to predict: `n_at` query points, then the rows of `oob`.
    out : ndarray of shape (L, n_at * width)
        Predictions at the query points.
    gains : ndarray of shape (L, p)
        Sum of the gains of each feature's splits.
    oob : tuple of ndarray or None
        Rows of the table, ascending, shape (r,); the sums (r, width) to which trees
        that did not see them add their predictions; and the number of such trees (r,).
    options : dict
        Of the grower.
    keep : bool
        Whether nodes are kept. Without it, and without `oob`, only those on the paths
        of the query points are grown.
    stop : Stop, optional
        Ends the work early, with an error.
    levels : ndarray of shape (p,), optional
        Levels of features that are unordered factors, whose values must be smaller;
        zero for the others.
    """

    cdef Options options
    cdef Table table
    cdef Sink sink
    cdef bint keep
    cdef int nodes_per_row  # about, of a learner that is grown in full
    cdef Stop stop
    cdef const double[::1] y
    cdef const uint64_t[::1] seeds
    cdef const double[::1, :] points
    cdef double[:, ::1] out, gains, total
    cdef double[::1] times
    cdef const int32_t[::1] rows, levels
    cdef vector[Node] nodes
    cdef vector[double] shares
    cdef vector[int32_t] leaf_rows
    cdef vector[float] leaf_shares
    cdef vector[size_t] node_ends, share_ends, list_ends

    def __init__(self, y, seeds, points, int n_at, out, gains, oob, dict options,
                 bint keep, Stop stop=None, levels=None):
        self.y, self.seeds, self.points = y, seeds, points
        self.out, self.gains = out, gains
        self.keep, self.stop = keep, stop
        self.options = _read_options(options)
        self.options.only_queried = oob is None and not keep
        self.nodes_per_row = 2
        self.table.n_features = self.gains.shape[1]
        if levels is None:
            levels = np.zeros(self.gains.shape[1], dtype=np.int32)
        self.levels = levels
        self.table.levels = &self.levels[0]
        self.sink.points = &self.points[0, 0] if self.points.shape[0] else NULL
        self.sink.n_points = self.points.shape[0]
        self.sink.n_at = n_at
        self.sink.nodes = &self.nodes if keep else NULL
        self.sink.shares = &self.shares
        self.sink.leaf_rows = &self.leaf_rows if keep else NULL
        self.sink.leaf_shares = &self.leaf_shares
        self.sink.line = NULL
        self.sink.tree_ends = NULL
        self.sink.oob = self.sink.times = NULL
        self.sink.oob_rows = NULL
        self.sink.n_oob = 0
        if oob is not None:
            self.rows, self.total, self.times = oob
            self.sink.n_oob = self.rows.shape[0]
            self.sink.oob_rows = &self.rows[0]
            self.sink.oob = &self.total[0, 0]
            self.sink.times = &self.times[0]

    cdef AnyGrower* _make_grower(self) except NULL:
        return make_grower(self.table, &self.y[0], self.options)

    cdef void _begin(self, Py_ssize_t b) noexcept nogil:
        self.sink.out = &self.out[b, 0] if self.out.shape[1] else NULL
        self.sink.gains = &self.gains[b, 0]

    cdef void _end(self) noexcept nogil:
        self.node_ends.push_back(self.nodes.size())
        self.share_ends.push_back(self.shares.size())
        self.list_ends.push_back(self.leaf_rows.size())

    cdef list _learners(self):
        """Copy the arrays of every tree into their own arrays."""
        cdef list learners = []
        cdef size_t first = 0, first_share = 0, first_list = 0, count, b
        cdef char[::1] view
        cdef double[::1] share_view
        cdef int32_t[::1] row_view
        cdef float[::1] row_share_view
        for b in range(self.node_ends.size()):
            count = self.node_ends[b] - first
            nodes = np.empty(count, dtype=NODE)
            view = nodes.view(np.int8)
            memcpy(&view[0], self.nodes.data() + first, count * sizeof(Node))
            first = self.node_ends[b]
            count = self.share_ends[b] - first_share
            shares = np.empty(count)
            if count:
                share_view = shares
                memcpy(&share_view[0], self.shares.data() + first_share,
                       count * sizeof(double))
            first_share = self.share_ends[b]
            count = self.list_ends[b] - first_list
            rows = np.empty(count, dtype=np.int32)
            row_shares = np.empty(count, dtype=np.float32)
            if count:
                row_view, row_share_view = rows, row_shares
                memcpy(&row_view[0], self.leaf_rows.data() + first_list,
                       count * sizeof(int32_t))
                memcpy(&row_share_view[0], self.leaf_shares.data() + first_list,
                       count * sizeof(float))
            first_list = self.list_ends[b]
            learners.append((nodes, shares, rows, row_shares))
        return learners

    def grow_on_counts(self, const double[:, ::1] ranked_values,
                       const int32_t[:, ::1] order, const int32_t[:, ::1] rank,
                       const int32_t[::1] n_known, const double[:, ::1] weights):
        """Grow one learner for each row of `weights`, on a ranked table.

        Returns
        -------
        list of (nodes, shares, rows, row_shares), or None
            The arrays of each tree, if they are kept.
        """
        cdef Py_ssize_t b, L = weights.shape[0]
        self.table.x = NULL
        self.table.n_rows = order.shape[1]
        self.table.sorted = &ranked_values[0, 0]
        self.table.order = &order[0, 0]
        self.table.rank = &rank[0, 0]
        self.table.n_known = &n_known[0]
        if self.keep and L:
            self._reserve(np.count_nonzero(weights[0]))
        cdef unique_ptr[AnyGrower] grower
        grower.reset(self._make_grower())
        cdef Watch watch = _watch(self.stop)
        self.sink.watch = &watch
        with nogil:
            for b in range(L):
                self._begin(b)
                grower.get().grow(&weights[b, 0], self.seeds[b], self.sink)
                self._end()
        return self._learners() if self.keep else None

    def grow_on_rows(self, const double[:, :] X, const int64_t[::1] bounds,
                     const int32_t[::1] units, const double[::1] times, index=None,
                     weights=None):
        """Grow one learner on each of the listed subsamples, from their own rows alone.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Features, in any order of memory, or on disk.
        bounds, units, times : ndarray
            Units that were drawn and how often, as `count_sparse` gives them.
        index : tuple of ndarray, optional
            Where the rows of each unit begin and end, and the rows; by default a unit
            is a row.
        weights : ndarray of shape (n,), optional
            Of the rows.

        Returns
        -------
        list of (nodes, shares, rows, row_shares), or None
            See `grow_on_counts`.
        """
        cdef Py_ssize_t b, L = bounds.shape[0] - 1
        cdef const int64_t[::1] unit_bounds
        cdef const int32_t[::1] unit_rows
        cdef const double[::1] row_weights
        cdef Draws draws
        if units.shape[0] == 0:
            raise ValueError("every subsample needs at least one unit; these have none.")
        draws.bounds, draws.units, draws.times = &bounds[0], &units[0], &times[0]
        draws.unit_bounds = NULL
        draws.unit_rows = NULL
        draws.weights = NULL
        if index is not None:
            unit_bounds, unit_rows = index
            draws.unit_bounds, draws.unit_rows = &unit_bounds[0], &unit_rows[0]
        if weights is not None:
            row_weights = weights
            draws.weights = &row_weights[0]
        self.table.n_rows = X.shape[0]
        self.table.x = &X[0, 0]
        self.table.row_step = X.strides[0] // <Py_ssize_t> sizeof(double)
        self.table.feature_step = X.strides[1] // <Py_ssize_t> sizeof(double)
        cdef unique_ptr[MemberLister] lister
        lister.reset(new MemberLister(draws))
        if self.keep:
            self._reserve(lister.get().list(0).size())
        cdef unique_ptr[AnyGrower] grower
        grower.reset(self._make_grower())
        cdef Watch watch = _watch(self.stop)
        self.sink.watch = &watch
        with nogil:
            for b in range(L):
                self._begin(b)
                grower.get().grow(lister.get().list(b), self.seeds[b], self.sink)
                self._end()
        return self._learners() if self.keep else None

    cdef void _reserve(self, size_t n_rows) except *:
        """Make room for all nodes at once, from the rows of the first subsample."""
        self.nodes.reserve(self.nodes_per_row * self.seeds.shape[0] * n_rows)


cdef class StageGrower(TreeGrower):
    """Grow learners of several stages, and write their predictions to arrays.

    They are kept as pairs of their nodes and the number of nodes of each of their trees.

    Parameters
    ----------
    *common
        See `TreeGrower`; for regression, so that predictions have one column.
    lines : ndarray of shape (L, 2 p + 1)
        The linear trends: intercept, centres, slopes; not written without `trend`.
    trend, boost : bool
        The stages.
    unit_of_row : ndarray of shape (n,) or None
        Unit of every row: halves of subsamples hold whole units.
    """

    cdef Stages stages
    cdef double[:, ::1] lines
    cdef const int32_t[::1] unit_of_row
    cdef vector[size_t] tree_ends, learner_ends

    def __init__(self, *common, lines, bint trend, bint boost, unit_of_row=None):
        super().__init__(*common)
        self.options.only_queried = False
        self.nodes_per_row = 4 if boost else 2
        self.lines = lines
        self.stages.trend, self.stages.boost = trend, boost
        self.stages.unit_of_row = NULL
        if unit_of_row is not None:
            self.unit_of_row = unit_of_row
            self.stages.unit_of_row = &self.unit_of_row[0]
        self.sink.nodes, self.sink.tree_ends = &self.nodes, &self.tree_ends
        self.sink.leaf_rows = NULL

    cdef AnyGrower* _make_grower(self) except NULL:
        return new StagedGrower(self.table, &self.y[0], self.options, self.stages)

    cdef void _begin(self, Py_ssize_t b) noexcept nogil:
        TreeGrower._begin(self, b)
        self.sink.line = &self.lines[b, 0]
        if not self.keep:
            self.nodes.clear()
            self.tree_ends.clear()

    cdef void _end(self) noexcept nogil:
        TreeGrower._end(self)
        self.learner_ends.push_back(self.tree_ends.size())

    cdef list _learners(self):
        sizes = np.diff(np.array(self.tree_ends, dtype=np.int64), prepend=0)
        ends = np.array(self.learner_ends, dtype=np.int64)
        parts = np.split(sizes, ends[: ends.size - 1])
        pairs = zip(TreeGrower._learners(self), parts)
        return [(nodes, part) for (nodes, *_), part in pairs]


def predict_stages_at(nodes, const int64_t[::1] sizes, const double[::1] line,
                      const double[:, ::1] points, double[:, ::1] out, Stop stop=None,
                      bint by_levels=False):
    """Predict at row-major points with a stored learner of several stages.

    `sizes` counts the nodes of each of its trees; `line` is empty without a trend.
    """
    cdef const char[::1] view = nodes.view(np.int8)
    cdef const Node* first = <const Node*> &view[0]
    cdef int n_points = points.shape[0], p = points.shape[1]
    cdef Py_ssize_t q, t
    cdef vector[double] part
    if n_points == 0:
        return
    part.resize(n_points)
    cdef Watch watch = _watch(stop)
    with nogil:
        out[:, 0] = 0
        for t in range(sizes.shape[0]):
            predict_tree(first, sizes[t], NULL, 0, by_levels, &points[0, 0],
                         n_points, p, part.data(), watch)
            first += sizes[t]
            for q in range(n_points):
                out[q, 0] += part[q]
        if line.shape[0]:
            for q in range(n_points):
                out[q, 0] += predict_line(&line[0], &points[q, 0], p)


def predict_tree_at(nodes, const double[::1] shares, int n_classes,
                    const double[:, ::1] points, double[:, ::1] out, Stop stop=None,
                    bint by_levels=False):
    """Predict with one stored tree at the rows of `points`, unless `stop` is set.

    `by_levels` is whether nodes may split levels.
    """
    cdef const char[::1] view = nodes.view(np.int8)
    cdef const Node* first = <const Node*> &view[0]
    cdef const double* share = &shares[0] if shares.shape[0] else NULL
    cdef int n_points = points.shape[0]
    cdef size_t n_nodes = view.shape[0] // sizeof(Node)
    if n_points == 0:
        return
    cdef Watch watch = _watch(stop)
    with nogil:
        predict_tree(first, n_nodes, share, n_classes, by_levels, &points[0, 0],
                     n_points, points.shape[1], &out[0, 0], watch)


cdef void _store_trees(list trees, vector[StoredTree]& stored) except *:
    """Read the nodes and shares of trees, which the list keeps alive."""
    cdef StoredTree tree
    cdef const char[::1] view
    cdef const double[::1] share
    for nodes, shares in trees:
        view, share = nodes.view(np.int8), shares
        tree.nodes = <const Node*> &view[0]
        tree.n_nodes = view.shape[0] // sizeof(Node)
        tree.shares = &share[0] if share.shape[0] else NULL
        stored.push_back(tree)


def predict_trees_at(list trees, int n_classes, const double[:, ::1] points,
                     double centre, double scale, double[:, ::1] out, Stop stop=None,
                     bint by_levels=False):
    """Predict with stored trees, pairs of nodes and shares, at row-major points.

    `out`, of shape (trees, points * width), is `centre` plus `scale` times the values.
    """
    cdef vector[StoredTree] stored
    cdef int n_points = points.shape[0]
    if n_points == 0 or not trees:
        return
    _store_trees(trees, stored)
    cdef Watch watch = _watch(stop)
    with nogil:
        c_predict_trees(stored, n_classes, by_levels, &points[0, 0], n_points,
                        points.shape[1], centre, scale, &out[0, 0], watch)


def add_trees_at(list trees, int n_classes, const double[:, ::1] points, double centre,
                 double scale, const double[::1] origin, double[::1] total,
                 Stop stop=None, bint by_levels=False):
    """Sum the predictions of stored trees, pairs of nodes and shares, at row-major points.

    Predictions are `centre` plus `scale` times the stored values; their differences from
    `origin` are added to `total`.
    """
    cdef vector[StoredTree] stored
    cdef int n_points = points.shape[0]
    if n_points == 0:
        return
    _store_trees(trees, stored)
    cdef Watch watch = _watch(stop)
    with nogil:
        c_add_trees(stored, n_classes, by_levels, &points[0, 0], n_points,
                    points.shape[1], centre, scale, &origin[0], &total[0], watch)


def add_dependence(list learners, const double[::1, :] rows, weights,
                   const int32_t[::1] place, const int32_t[::1] axis,
                   const double[:, ::1] values, sizes, double[:, :, ::1] out,
                   Stop stop=None, bint by_levels=False):
    """Sum the predictions of learners over rows, with some features set to a grid.

    Parameters
    ----------
    learners : list
        Trees of every learner, pairs of nodes and shares, whose predictions are added.
    rows : ndarray of shape (n, p), column-major
        Rows.
    weights : ndarray of shape (n,) or None
        Of the rows; None for one each.
    place : ndarray of shape (p,)
        Place of every feature among those that are set; -1 for the others.
    axis : ndarray of shape (q,)
        Axis of the grid, 0 or 1, of each of these q features.
    values : ndarray of shape (q, points)
        Their values along this axis; values beyond its size are not read.
    sizes : tuple of int
        Points on each of the two axes.
    out : ndarray of shape (learners, points of the grid, width)
        The sums are added here, the first axis outermost.
    """
    cdef Setting setting
    cdef const double[::1] given
    setting.rows, setting.n_rows = &rows[0, 0], rows.shape[0]
    setting.weights = NULL
    if weights is not None:
        given = weights
        setting.weights = &given[0]
    setting.sizes[0], setting.sizes[1] = sizes
    setting.place, setting.axis = &place[0], &axis[0]
    setting.values, setting.step = &values[0, 0], values.shape[1]
    cdef unique_ptr[Dependence] dependence
    dependence.reset(new Dependence(setting))
    cdef Watch watch = _watch(stop)
    cdef const char[::1] view
    cdef const double[::1] share
    cdef const Node* first
    cdef const double* shares_at
    cdef int width = out.shape[2]
    cdef Py_ssize_t b
    for b, trees in enumerate(learners):
        for nodes, shares in trees:
            view, share = nodes.view(np.int8), shares
            first = <const Node*> &view[0]
            shares_at = &share[0] if share.shape[0] else NULL
            with nogil:
                if by_levels:
                    dependence.get().add_levels(first, shares_at, width, &out[b, 0, 0], watch)
                else:
                    dependence.get().add_numbers(first, shares_at, width, &out[b, 0, 0],
                                     watch)


def find_leaves_at(nodes, const double[:, ::1] points, int32_t[::1] out,
                   Stop stop=None):
    """Find the leaf of one stored tree that each row of `points` falls into."""
    cdef const char[::1] view = nodes.view(np.int8)
    cdef int n_points = points.shape[0]
    if n_points == 0:
        return
    cdef Watch watch = _watch(stop)
    with nogil:
        find_tree_leaves(<const Node*> &view[0], &points[0, 0], n_points,
                         points.shape[1], &out[0], watch)


cdef void _store_leaf_trees(list trees, vector[LeafTree]& stored) except *:
    """Read the arrays of trees, which the list keeps alive."""
    cdef LeafTree tree
    cdef const char[::1] view
    cdef const int32_t[::1] row
    cdef const float[::1] share
    for nodes, rows, shares in trees:
        view, row, share = nodes.view(np.int8), rows, shares
        tree.nodes = <const Node*> &view[0]
        tree.rows = &row[0] if row.shape[0] else NULL
        tree.shares = &share[0] if share.shape[0] else NULL
        stored.push_back(tree)


def sum_influence_powers(list trees, bint by_class, const double[:, ::1] points,
                         const double[:, ::1] residuals, unit_of_row, int64_t n_units,
                         int n_groups, Stop stop=None):
    """Sum squares and fourth powers of the units' influences at row-major points.

    Trees are their nodes, rows and shares of rows. Returns two arrays of shape
    (points, columns of the residuals), products of sums over trees; see
    `native/leaf_weights.hpp`.
    """
    cdef vector[LeafTree] stored
    cdef RowErrors errors
    cdef const int32_t[::1] units
    cdef int n_points = points.shape[0]
    _store_leaf_trees(trees, stored)
    errors.residuals, errors.width = &residuals[0, 0], residuals.shape[1]
    errors.unit_of_row = NULL
    errors.n_units = n_units
    if unit_of_row is not None:
        units = unit_of_row
        errors.unit_of_row = &units[0]
    squares, fourths = np.zeros((2, n_points, residuals.shape[1]))
    cdef double[:, ::1] square_view = squares, fourth_view = fourths
    if n_points == 0:
        return squares, fourths
    cdef Watch watch = _watch(stop)
    with nogil:
        c_sum_influence_powers(stored, by_class, &points[0, 0], n_points,
                               points.shape[1], errors, n_groups, &square_view[0, 0],
                               &fourth_view[0, 0], watch)
    return squares, fourths


def sum_leaf_weights(list trees, bint by_class, const double[:, ::1] points, used,
                     int n_groups, int64_t n_rows, Stop stop=None):
    """Sum the weights of rows over the trees of each group, at row-major points.

    Trees are their nodes, rows and shares of rows. Returns bounds, rows and weights of a
    sparse array of shape (points * n_groups, n_rows). `used`, of shape (points, trees) or
    None, marks the trees that count at each point.
    """
    cdef vector[LeafTree] stored
    cdef const uint8_t[:, ::1] marks
    cdef const uint8_t* use = NULL
    cdef int n_points = points.shape[0]
    cdef SparseWeights sums
    _store_leaf_trees(trees, stored)
    if used is not None and n_points:
        marks = used
        use = &marks[0, 0]
    cdef Watch watch = _watch(stop)
    cdef const double* first = &points[0, 0] if n_points else NULL
    with nogil:
        c_sum_leaf_weights(stored, by_class, first, n_points, points.shape[1], use,
                           n_groups, n_rows, sums, watch)
    cdef size_t count = sums.rows.size()
    bounds = np.empty(sums.bounds.size(), dtype=np.int64)
    out_rows, weights = np.empty(count, dtype=np.int32), np.empty(count)
    cdef int64_t[::1] bound_view = bounds
    cdef int32_t[::1] row_view = out_rows
    cdef double[::1] weight_view = weights
    memcpy(&bound_view[0], sums.bounds.data(), bounds.size * sizeof(int64_t))
    if count:
        memcpy(&row_view[0], sums.rows.data(), count * sizeof(int32_t))
        memcpy(&weight_view[0], sums.weights.data(), count * sizeof(double))
    return bounds, out_rows, weights


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
        Units that occur and their counts, row after row.
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


def add_powers(const int32_t[::1] bounds, const int32_t[::1] learners, counts,
               const double[::1] scale, tilt,
               const double[:, ::1] values, const double[::1] origin,
               int64_t first, int64_t last, double[:, ::1] powers, bint single=False):
    """Add powers of the units' contributions to columns `first` to `last` of `powers`.

    A unit contributes `t`, its `scale` times the sum of its learners' counts (ones, if
    `counts` is None) times their values minus `origin`. Rows of `powers` are the sums
    over units of `t**2`, `t**3`, `t**4`, `tilt * t`, `(tilt * t)**2`, `tilt * t**2`.
    Without `tilt` only the first three are computed. `single` sums learners, but not
    powers, in single precision.
    """
    cdef UnitDraws draws
    cdef const float[::1] count_view
    cdef const double[::1] tilt_view
    draws.n_units = scale.shape[0]
    if powers.shape[0] != kPowers or not learners.shape[0] or last <= first:
        return
    draws.bounds, draws.learners = &bounds[0], &learners[0]
    draws.scale = &scale[0]
    draws.tilt = NULL
    if tilt is not None:
        tilt_view = tilt
        draws.tilt = &tilt_view[0]
    draws.counts = NULL
    if counts is not None:
        count_view = counts
        draws.counts = &count_view[0]
    with nogil:
        if single:
            add_powers_float(draws, &values[0, 0], values.shape[0], values.shape[1],
                             &origin[0], first, last, &powers[0, 0])
        else:
            add_powers_double(draws, &values[0, 0], values.shape[0], values.shape[1],
                              &origin[0], first, last, &powers[0, 0])


def upper_products(uint64_t a, uint64_t b):
    """Return upper halves of a product, by this compiler and by portable code."""
    return c_upper_product(a, b), upper_product_of_halves(a, b)


def lowest_bits(uint64_t bits):
    """Return the place of the lowest bit, by this compiler and by portable code."""
    return c_lowest_bit(bits), lowest_bit_by_table(bits)
