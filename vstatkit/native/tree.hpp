// The input of the growers of trees, and their output: nodes.

#ifndef VSTATKIT_TREE_HPP
#define VSTATKIT_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "stop.hpp"

namespace vstatkit {

// Classes have `squared_error` for Gini impurity, which is one.
enum class Loss { squared_error, poisson, absolute_error, entropy };

struct Options {
    int max_features;
    int min_samples_split;
    int min_samples_leaf;
    int max_depth;
    int max_leaf_nodes;               // 0 for no limit
    double min_weight_fraction_leaf;  // of the weight of all rows that define the splits
    int n_classes;                    // 0 for regression
    Loss loss;
    bool random;        // one random split of each feature that is tried
    bool honest;        // split with one half of the rows, estimate with the other
    bool only_queried;  // skip subtrees without a query point
};

// Features, shared by all trees: in ranked form, missing values last, or as they are.
struct Table {
    int n_rows;
    int n_features;
    const double* x;        // null for ranked features; else where the first value is,
    int64_t row_step, feature_step;  // and how far the next row and the next feature are
    const double* sorted;   // (n_features, n_rows) values in ascending order
    const int32_t* order;   // (n_features, n_rows) row of every rank
    const int32_t* rank;    // (n_features, n_rows) rank of every row
    const int32_t* n_known; // (n_features) rows that are not missing
    const int32_t* levels;  // (n_features) levels of unordered factors, 0 for numbers
};

constexpr int kMostLevels = 64;
constexpr int32_t kLevelsFlag = 1 << 30;  // of the feature, where levels are split

// 16 bytes. The left child follows its parent; `feature` is negative in leaves.
// In an inner node the lowest bit of `right` says where missing values go. A leaf has the
// code of its rows (see `Sink`) where nothing else is stored: in `right`, or in `value` if
// there are three or more classes.
struct Node {
    int32_t feature;
    int32_t right;  // index of the right child, shifted by one; class row in leaves
    double value;   // threshold, or the leaf's mean (regression, two classes); the bits
                    // of the levels that go left, where levels are split
};

inline double bits_as_value(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint64_t value_as_bits(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Whether a level goes left; values that are not levels count as missing.
inline bool level_goes_left(double level, uint64_t left, bool missing_left) {
    if (!(level >= 0 && level < kMostLevels)) return missing_left;
    return (left >> static_cast<int>(level)) & 1;
}

// Where a learner's predictions and nodes go. `points` is column-major: `n_at` query
// points, whose predictions are written to `out` (n_at, width), then, if `oob` is not
// null, the rows `oob_rows` of the table, in ascending order. Rows outside the subsample
// add their prediction to `oob` (n_oob, width) and one to `times`. Nodes are appended to
// `nodes`, unless it is null, and the leaf shares of three or more classes to `shares`;
// `gains` (n_features) sums the gains of the splits of each feature. Learners of several
// stages write their linear trend to `line` (2 n_features + 1) and append the end of each
// of their trees among the nodes to `tree_ends`.
//
// Unless `leaf_rows` is null, leaves have a code of the rows of the table that they are
// estimated from: the row itself if there is one, otherwise minus one minus the place of
// their list. A list is the number of rows, and the rows; `leaf_shares` has their shares of
// the leaf's weight at the same places.
struct Sink {
    const double* points;
    int n_points;
    int n_at;
    double* out;
    const int32_t* oob_rows;
    int n_oob;
    double* oob;
    double* times;
    double* gains;
    std::vector<Node>* nodes;
    std::vector<double>* shares;
    std::vector<int32_t>* leaf_rows;
    std::vector<float>* leaf_shares;
    double* line;
    std::vector<size_t>* tree_ends;
    Watch* watch;  // interrupts the work
};

}  // namespace vstatkit

#endif
