// What the grower takes, and the nodes that it gives.

#ifndef VSTATKIT_TREE_HPP
#define VSTATKIT_TREE_HPP

#include <cstdint>
#include <vector>

#include "stop.hpp"

namespace vstatkit {

struct Options {
    int max_features;
    int min_samples_split;
    int min_samples_leaf;
    int max_depth;
    int n_classes;      // 0 for regression
    bool honest;        // split with one half of the rows, estimate with the other
    bool only_queried;  // leave out subtrees without a query point
};

// Features in ranked form, shared by all trees. Missing values rank last.
struct Table {
    int n_rows;
    int n_features;
    const double* sorted;   // (n_features, n_rows) values in ascending order
    const int32_t* order;   // (n_features, n_rows) row of every rank
    const int32_t* rank;    // (n_features, n_rows) rank of every row
    const int32_t* n_known; // (n_features) rows that are not missing
};

// 16 bytes. The left child follows its parent; `feature` is negative in leaves.
// In an inner node the lowest bit of `right` says where missing values go.
struct Node {
    int32_t feature;
    int32_t right;  // index of the right child, shifted by one; class row in leaves
    double value;   // threshold, or the leaf's mean (regression, two classes)
};

// Where a tree's predictions and nodes go. `points` is column-major: `n_at` query points,
// whose predictions are written to `out` (n_at, width), then, if `oob` is not null, the
// rows of the table. Rows out of the subsample add their prediction to `oob` (n_rows,
// width) and one to `times`. Nodes are appended to `nodes`, unless it is null, and the
// leaf shares of three or more classes to `shares`; `gains` (n_features) adds up what
// the splits of each feature gained.
struct Sink {
    const double* points;
    int n_points;
    int n_at;
    double* out;
    double* oob;
    double* times;
    double* gains;
    std::vector<Node>* nodes;
    std::vector<double>* shares;
    Watch* watch;  // asked now and then whether to go on
};

}  // namespace vstatkit

#endif
