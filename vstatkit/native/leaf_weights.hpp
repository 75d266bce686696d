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

// Visit the weights of the rows of a leaf.
template <class Visit>
void visit_leaf(const LeafTree& tree, const Node& leaf, bool by_class, Visit visit) {
    const int32_t code = by_class ? static_cast<int32_t>(leaf.value) : leaf.right;
    if (code >= 0) {
        visit(code, 1.0);
        return;
    }
    const size_t list = -1 - static_cast<int64_t>(code);
    for (int32_t i = 1; i <= tree.rows[list]; ++i)
        visit(tree.rows[list + i], static_cast<double>(tree.shares[list + i]));
}

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
                    const Node& leaf = trees[b].nodes[leaves[b * kWalkers + j]];
                    visit_leaf(trees[b], leaf, by_class, add);
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

// Residuals of rows, whose influence is added up over the rows of a unit.
struct RowErrors {
    const double* residuals;     // (n_rows, width)
    const int32_t* unit_of_row;  // null if every row is its own unit
    int64_t n_units;
    int width;
};

// Sum the squares and the fourth powers of the units' influences, which are sums over trees
// of weight times residual. Trees are dealt out to `n_groups` groups, a multiple of four,
// and only products of different groups count: of two for squares, of four sets of groups
// for fourth powers. Both are written to (n_points, width).
inline void sum_influence_powers(const std::vector<LeafTree>& trees, bool by_class,
                                 const double* points, int n_points, int p,
                                 const RowErrors& errors, int n_groups, double* squares,
                                 double* fourths, Watch& watch) {
    constexpr int kWalkers = 16;
    const size_t B = trees.size();
    const int width = errors.width;
    const size_t slot = static_cast<size_t>(n_groups) * width;
    std::vector<int32_t> place(errors.n_units, -1);
    std::vector<int32_t> touched;
    std::vector<double> sums;  // of each touched unit: (groups, width)
    std::vector<size_t> leaves(B * kWalkers);
    for (int first = 0; first < n_points; first += kWalkers) {
        const int count = std::min(kWalkers, n_points - first);
        const double* x = points + static_cast<size_t>(first) * p;
        for (size_t b = 0; b < B; ++b)
            watch.count(find_leaves<true>(trees[b].nodes, x, p, count,
                                          leaves.data() + b * kWalkers));
        for (int j = 0; j < count; ++j) {
            for (size_t b = 0; b < B; ++b) {
                const int g = static_cast<int>(b % n_groups);
                const Node& leaf = trees[b].nodes[leaves[b * kWalkers + j]];
                visit_leaf(trees[b], leaf, by_class, [&](int32_t row, double share) {
                    const int32_t unit = errors.unit_of_row ? errors.unit_of_row[row] : row;
                    if (place[unit] < 0) {
                        place[unit] = static_cast<int32_t>(touched.size());
                        touched.push_back(unit);
                        sums.resize(touched.size() * slot, 0.0);
                    }
                    double* sum = sums.data() + place[unit] * slot + g * width;
                    const double* e = errors.residuals + static_cast<size_t>(row) * width;
                    for (int c = 0; c < width; ++c) sum[c] += share * e[c];
                });
            }
            for (int c = 0; c < width; ++c) {
                double square = 0, fourth = 0;
                for (size_t u = 0; u < touched.size(); ++u) {
                    const double* sum = sums.data() + u * slot + c;
                    double total = 0, own = 0, quarter[4] = {0, 0, 0, 0};
                    for (int g = 0; g < n_groups; ++g) {
                        const double part = sum[static_cast<size_t>(g) * width];
                        total += part;
                        own += part * part;
                        quarter[g % 4] += part;
                    }
                    square += total * total - own;
                    fourth += quarter[0] * quarter[1] * quarter[2] * quarter[3];
                }
                const size_t at = static_cast<size_t>(first + j) * width + c;
                squares[at] = square;
                fourths[at] = fourth;
            }
            for (const int32_t unit : touched) place[unit] = -1;
            touched.clear();
            sums.clear();
        }
    }
}

}  // namespace vstatkit

#endif
