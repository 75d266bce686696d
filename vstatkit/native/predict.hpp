// Predict with stored trees.

#ifndef VSTATKIT_PREDICT_HPP
#define VSTATKIT_PREDICT_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"

namespace vstatkit {

// Find the leaves of `count` query points of p features each. The points walk down in
// parallel, so that the next node of one is fetched while the others are compared. There
// are no branches on the data; points in a leaf stay there. Returns the steps.
template <bool kByLevels>
int64_t find_leaves(const Node* nodes, const double* points, size_t p, int count,
                    size_t* at) {
    std::fill(at, at + count, 0);
    int64_t steps = 0;
    bool walking = true;
    while (walking) {
        walking = false;
        steps += count;
        for (int j = 0; j < count; ++j) {
            const Node& node = nodes[at[j]];
            const bool inner = node.feature >= 0;
            const int32_t masked = kByLevels ? node.feature & ~kLevelsFlag : node.feature;
            const size_t feature = inner ? static_cast<size_t>(masked) : 0;
            const double x = points[j * p + feature];
            bool left = (x <= node.value) | ((x != x) & (node.right & 1));
            if (kByLevels && inner && (node.feature & kLevelsFlag))
                left = level_goes_left(x, value_as_bits(node.value), node.right & 1);
            const size_t mask = -static_cast<size_t>(left);
            const size_t child =
                (mask & (at[j] + 1)) | (~mask & static_cast<size_t>(node.right >> 1));
            const size_t moves = -static_cast<size_t>(inner);
            at[j] = (moves & child) | (~moves & at[j]);
            walking |= inner;
        }
    }
    return steps;
}

inline void read_leaf(const Node& leaf, const double* shares, int width, double* row) {
    if (width == 1) {
        row[0] = leaf.value;
    } else if (leaf.feature == -2) {
        std::fill(row, row + width, 0.0);
        row[leaf.right] = 1.0;
    } else {
        const double* share = shares + static_cast<size_t>(leaf.right) * width;
        std::copy(share, share + width, row);
    }
}

// Predict with a stored tree at row-major points of p features each.
template <bool kByLevels>
void predict_at(const Node* nodes, const double* shares, int n_classes,
                const double* points, int n_points, int p, double* out, Watch& watch) {
    constexpr int kWalkers = 16;
    const int width = n_classes > 2 ? n_classes : 1;
    size_t at[kWalkers];
    for (int q = 0; q < n_points; q += kWalkers) {
        const int count = std::min(kWalkers, n_points - q);
        const double* first = points + static_cast<size_t>(q) * p;
        watch.count(find_leaves<kByLevels>(nodes, first, p, count, at));
        for (int j = 0; j < count; ++j)
            read_leaf(nodes[at[j]], shares, width,
                      out + static_cast<size_t>(q + j) * width);
    }
}

// Find the leaf of every point in a tree of any kind.
inline void find_tree_leaves(const Node* nodes, const double* points, int n_points, int p,
                             int32_t* leaves, Watch& watch) {
    constexpr int kWalkers = 16;
    size_t at[kWalkers];
    for (int q = 0; q < n_points; q += kWalkers) {
        const int count = std::min(kWalkers, n_points - q);
        const double* first = points + static_cast<size_t>(q) * p;
        watch.count(find_leaves<true>(nodes, first, p, count, at));
        std::copy(at, at + count, leaves + q);
    }
}

// A node in a form for many points: `right` is the distance to the right child. A leaf leads
// to itself, since nothing is below its threshold, which is NaN.
struct Step {
    double threshold;
    int32_t feature;
    int32_t right;
};

inline std::vector<Step> make_path(const Node* nodes, size_t n_nodes) {
    std::vector<Step> path(n_nodes);
    for (size_t i = 0; i < n_nodes; ++i) {
        if (nodes[i].feature < 0)
            path[i] = {NAN, 0, 0};
        else
            path[i] = {nodes[i].value, nodes[i].feature,
                       (nodes[i].right >> 1) - static_cast<int32_t>(i)};
    }
    return path;
}

inline bool any_missing(const double* points, size_t size) {
    bool missing = false;
    for (size_t j = 0; j < size; ++j) missing |= points[j] != points[j];
    return missing;
}

// Do the same for many points without missing values and a tree that splits no levels:
// only thresholds are compared, without a test for leaves.
inline void predict_many(const Node* nodes, size_t n_nodes, const double* shares,
                         int n_classes, const double* points, int n_points, int p,
                         double* out, Watch& watch) {
    constexpr int kWalkers = 8;
    const int width = n_classes > 2 ? n_classes : 1;
    const std::vector<Step> path = make_path(nodes, n_nodes);
    for (int q = 0; q < n_points; q += kWalkers) {
        // The last batch overlaps the one before it.
        const int start = std::max(0, std::min(q, n_points - kWalkers));
        const double* first = points + static_cast<size_t>(start) * p;
        int32_t at[kWalkers] = {0};
        int64_t rounds = 0;
        for (int32_t moved = 1; moved; ++rounds) {
            moved = 0;
            for (int j = 0; j < kWalkers; ++j) {
                const Step& step = path[at[j]];
                const double x = first[static_cast<size_t>(j) * p + step.feature];
                const int32_t left = -static_cast<int32_t>(x <= step.threshold);
                const int32_t by = (left & 1) | (~left & step.right);
                at[j] += by;
                moved |= by;
            }
        }
        watch.count(rounds * kWalkers);
        for (int j = 0; j < kWalkers; ++j)
            read_leaf(nodes[at[j]], shares, width,
                      out + static_cast<size_t>(start + j) * width);
    }
}

constexpr int kMany = 64;  // points from which a path is worth its preparation

// `by_levels` is whether some node may split levels; trees without are faster.
inline void predict_tree(const Node* nodes, size_t n_nodes, const double* shares,
                         int n_classes, bool by_levels, const double* points, int n_points,
                         int p, double* out, Watch& watch) {
    const size_t size = static_cast<size_t>(n_points) * p;
    if (!by_levels && n_points >= kMany && !any_missing(points, size))
        predict_many(nodes, n_nodes, shares, n_classes, points, n_points, p, out, watch);
    else if (by_levels)
        predict_at<true>(nodes, shares, n_classes, points, n_points, p, out, watch);
    else
        predict_at<false>(nodes, shares, n_classes, points, n_points, p, out, watch);
}

// A stored tree of plain arrays.
struct StoredTree {
    const Node* nodes;
    size_t n_nodes;
    const double* shares;
};

// Add the predictions of trees, in the unit of the response and minus `origin`, to `total`;
// both have as many numbers as the points times the width.
inline void add_trees(const std::vector<StoredTree>& trees, int n_classes, bool by_levels,
                      const double* points, int n_points, int p, double centre,
                      double scale, const double* origin, double* total, Watch& watch) {
    const size_t size = static_cast<size_t>(n_points) * (n_classes > 2 ? n_classes : 1);
    std::vector<double> part(size);
    for (const StoredTree& tree : trees) {
        predict_tree(tree.nodes, tree.n_nodes, tree.shares, n_classes, by_levels, points,
                     n_points, p, part.data(), watch);
        for (size_t j = 0; j < size; ++j)
            total[j] += (centre + scale * part[j]) - origin[j];
    }
}

// Write the predictions of every tree, in the unit of the response, to `out`, which has a
// row for each tree.
inline void predict_trees(const std::vector<StoredTree>& trees, int n_classes,
                          bool by_levels, const double* points, int n_points, int p,
                          double centre, double scale, double* out, Watch& watch) {
    const size_t size = static_cast<size_t>(n_points) * (n_classes > 2 ? n_classes : 1);
    for (const StoredTree& tree : trees) {
        predict_tree(tree.nodes, tree.n_nodes, tree.shares, n_classes, by_levels, points,
                     n_points, p, out, watch);
        for (size_t j = 0; j < size; ++j) out[j] = centre + scale * out[j];
        out += size;
    }
}

}  // namespace vstatkit

#endif
