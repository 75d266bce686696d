// Weights that the leaves of stored trees give to the rows they are estimated from.

#ifndef VSTATKIT_LEAF_WEIGHTS_HPP
#define VSTATKIT_LEAF_WEIGHTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "predict.hpp"
#include "tree.hpp"

namespace vstatkit {

// A stored tree with the lists of its leaves' rows; see `Sink`.
struct LeafTree {
    const Node* nodes;
    const int32_t* rows;
    const float* shares;
};

// Weights of rows in sparse form: entry `bounds[j]` to `bounds[j + 1]` belong to j.
struct SparseWeights {
    std::vector<int64_t> bounds;
    std::vector<int32_t> rows;
    std::vector<double> weights;
};

// Sum the weights over the trees of each group, at row-major points of p features each.
// Tree b is in group b modulo `n_groups`, and group g of point q has the place
// `q * n_groups + g`. Unless `used` (n_points, trees) is null, a tree counts only where it
// is not zero. `by_class` is whether there are three or more classes.
inline void sum_leaf_weights(const std::vector<LeafTree>& trees, bool by_class,
                             const double* points, int n_points, int p,
                             const uint8_t* used, int n_groups, int64_t n_rows,
                             SparseWeights& out, Watch& watch) {
    constexpr int kWalkers = 16;
    const size_t B = trees.size();
    std::vector<double> weight(n_rows, 0.0);
    std::vector<int32_t> touched;
    std::vector<size_t> leaves(B * kWalkers);
    const auto add = [&](int32_t row, double share) {
        if (weight[row] == 0) touched.push_back(row);
        weight[row] += share;
    };
    out.bounds.assign(1, 0);
    for (int first = 0; first < n_points; first += kWalkers) {
        const int count = std::min(kWalkers, n_points - first);
        const double* x = points + static_cast<size_t>(first) * p;
        for (size_t b = 0; b < B; ++b)
            watch.count(find_leaves<true>(trees[b].nodes, x, p, count,
                                          leaves.data() + b * kWalkers));
        for (int j = 0; j < count; ++j) {
            const uint8_t* use = used ? used + static_cast<size_t>(first + j) * B : nullptr;
            for (int g = 0; g < n_groups; ++g) {
                for (size_t b = g; b < B; b += n_groups) {
                    if (use && !use[b]) continue;
                    const LeafTree& tree = trees[b];
                    const Node& leaf = tree.nodes[leaves[b * kWalkers + j]];
                    const int32_t code =
                        by_class ? static_cast<int32_t>(leaf.value) : leaf.right;
                    if (code >= 0) {
                        add(code, 1.0);
                        continue;
                    }
                    const size_t list = -1 - static_cast<int64_t>(code);
                    for (int32_t i = 1; i <= tree.rows[list]; ++i)
                        add(tree.rows[list + i], tree.shares[list + i]);
                }
                std::sort(touched.begin(), touched.end());
                for (const int32_t row : touched) {
                    out.rows.push_back(row);
                    out.weights.push_back(weight[row]);
                    weight[row] = 0;
                }
                touched.clear();
                out.bounds.push_back(static_cast<int64_t>(out.rows.size()));
            }
        }
    }
}

}  // namespace vstatkit

#endif
