// Predict with stored trees.

#ifndef VSTATKIT_PREDICT_HPP
#define VSTATKIT_PREDICT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tree.hpp"

namespace vstatkit {

// Find the leaves of `count` query points, from `first` on. Several walk down side by
// side: the next node of one is fetched while the others compare. Returns the steps.
template <bool kByLevels>
int64_t find_leaves(const Node* nodes, const double* points, size_t n_points, size_t first,
                    int count, size_t* at) {
    std::fill(at, at + count, 0);
    int64_t steps = 0;
    bool walking = true;
    while (walking) {
        walking = false;
        steps += count;
        for (int j = 0; j < count; ++j) {
            const Node& node = nodes[at[j]];
            if (node.feature < 0) continue;
            const size_t feature = kByLevels ? node.feature & ~kLevelsFlag : node.feature;
            const double x = points[feature * n_points + first + j];
            bool left = (x <= node.value) | ((x != x) & (node.right & 1));
            if (kByLevels && (node.feature & kLevelsFlag))
                left = level_goes_left(x, value_as_bits(node.value), node.right & 1);
            const size_t mask = -static_cast<size_t>(left);  // no branch to mispredict
            at[j] = (mask & (at[j] + 1)) | (~mask & static_cast<size_t>(node.right >> 1));
            walking = true;
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

// Predict with a stored tree at column-major points.
template <bool kByLevels>
void predict_at(const Node* nodes, const double* shares, int n_classes,
                const double* points, int n_points, double* out, Watch& watch) {
    constexpr int kWalkers = 8;
    const int width = n_classes > 2 ? n_classes : 1;
    size_t at[kWalkers];
    for (int q = 0; q < n_points; q += kWalkers) {
        const int count = std::min(kWalkers, n_points - q);
        watch.count(find_leaves<kByLevels>(nodes, points, n_points, q, count, at));
        for (int j = 0; j < count; ++j)
            read_leaf(nodes[at[j]], shares, width,
                      out + static_cast<size_t>(q + j) * width);
    }
}

// `by_levels` says whether some node may split levels; trees without are faster.
inline void predict_tree(const Node* nodes, const double* shares, int n_classes,
                         bool by_levels, const double* points, int n_points, double* out,
                         Watch& watch) {
    if (by_levels)
        predict_at<true>(nodes, shares, n_classes, points, n_points, out, watch);
    else
        predict_at<false>(nodes, shares, n_classes, points, n_points, out, watch);
}

}  // namespace vstatkit

#endif
