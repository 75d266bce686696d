// Average the predictions of a stored tree over rows, with some features set to a grid.

#ifndef VSTATKIT_DEPENDENCE_HPP
#define VSTATKIT_DEPENDENCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "predict.hpp"

namespace vstatkit {

constexpr int kAxes = 2;

// Rows, and the free features, which take the values of an axis of the grid instead of
// those of the rows; all features of an axis move together.
struct Setting {
    const double* rows;       // (n_rows, n_features), column-major
    const double* weights;    // (n_rows), null for one each
    int32_t n_rows;
    int32_t sizes[kAxes];     // points of each axis; one where there is no axis
    const int32_t* place;     // (n_features) place among the free ones, -1 for the others
    const int32_t* axis;      // (free) axis of each
    const double* values;     // (free, step) its values along the axis
    int64_t step;
};

// A tree is walked once, with all rows and all points of the grid. A node receives a set of
// rows times a set of points on each axis: a split of a free feature divides the points, any
// other split the rows. Sets are stretches of lists that are partitioned in place; one child
// never changes the set of the other.
class Dependence {
  public:
    explicit Dependence(const Setting& setting) : setting_(setting) {
        const int32_t counts[] = {setting.n_rows, setting.sizes[0], setting.sizes[1]};
        for (int j = 0; j <= kAxes; ++j) {
            lists_[j].resize(counts[j]);
            std::iota(lists_[j].begin(), lists_[j].end(), 0);
        }
        scratch_.resize(*std::max_element(counts, counts + kAxes + 1));
    }

    // Add the sums over rows of a tree's predictions to `out` (points, width), the points
    // of the first axis outermost.
    template <bool kByLevels>
    void add(const Node* nodes, const double* shares, int width, double* out,
             Watch& watch) {
        pending_.assign(1, make_root_visit());
        while (!pending_.empty()) {
            Visit visit = pending_.back();
            pending_.pop_back();
            while (nodes[visit.node].feature >= 0)
                visit = descend<kByLevels>(nodes[visit.node], visit, watch);
            add_leaf(nodes[visit.node], shares, width, visit, out, watch);
        }
    }

  private:
    struct Stretch {
        int32_t first, last;
        int32_t size() const { return last - first; }
    };

    struct Visit {
        size_t node;
        Stretch sets[1 + kAxes];  // of rows, and of points on each axis
    };

    Visit make_root_visit() const {
        Visit all{0, {}};
        for (int j = 0; j <= kAxes; ++j)
            all.sets[j] = {0, static_cast<int32_t>(lists_[j].size())};
        return all;
    }

    // Go to a child whose sets are not empty; if neither is, queue the right one.
    template <bool kByLevels>
    Visit descend(const Node& node, const Visit& visit, Watch& watch) {
        const int32_t feature = kByLevels ? node.feature & ~kLevelsFlag : node.feature;
        const int32_t free = setting_.place[feature];
        const int which = free < 0 ? 0 : 1 + setting_.axis[free];
        const double* x = free < 0
            ? setting_.rows + static_cast<size_t>(feature) * setting_.n_rows
            : setting_.values + free * setting_.step;
        const Stretch all = visit.sets[which];
        watch.count(all.size());
        const int32_t middle = kByLevels && (node.feature & kLevelsFlag)
            ? divide(lists_[which].data(), all, LeftLevels{x, node})
            : divide(lists_[which].data(), all, Below{x, node});
        Visit left = visit, right = visit;
        left.node = visit.node + 1;
        left.sets[which].last = middle;
        right.node = static_cast<size_t>(node.right >> 1);
        right.sets[which].first = middle;
        if (middle == all.first) return right;
        if (middle < all.last) pending_.push_back(right);
        return left;
    }

    struct Below {
        const double* x;
        const Node& node;
        bool operator()(int32_t i) const {
            return (x[i] <= node.value) | ((x[i] != x[i]) & (node.right & 1));
        }
    };

    struct LeftLevels {
        const double* x;
        const Node& node;
        bool operator()(int32_t i) const {
            return level_goes_left(x[i], value_as_bits(node.value), node.right & 1);
        }
    };

    // Move those that go left to the front, without a branch. Returns where they end.
    template <class GoesLeft>
    int32_t divide(int32_t* list, Stretch all, const GoesLeft& goes_left) {
        int32_t n_left = all.first, n_right = 0;
        for (int32_t j = all.first; j < all.last; ++j) {
            const int32_t item = list[j];
            const int32_t left = goes_left(item);
            list[n_left] = item;
            scratch_[n_right] = item;
            n_left += left;
            n_right += 1 - left;
        }
        std::copy_n(scratch_.begin(), n_right, list + n_left);
        return n_left;
    }

    double sum_weights(Stretch rows) const {
        if (!setting_.weights) return rows.size();
        double sum = 0;
        for (int32_t j = rows.first; j < rows.last; ++j)
            sum += setting_.weights[lists_[0][j]];
        return sum;
    }

    void add_leaf(const Node& leaf, const double* shares, int width, const Visit& visit,
                  double* out, Watch& watch) {
        leaf_.resize(width);
        read_leaf(leaf, shares, width, leaf_.data());
        const double rows = sum_weights(visit.sets[0]);
        for (double& value : leaf_) value *= rows;
        const Stretch outer = visit.sets[1], inner = visit.sets[2];
        watch.count(static_cast<int64_t>(outer.size()) * inner.size());
        const int32_t* points = lists_[2].data() + inner.first;
        const bool side_by_side = are_consecutive(points, inner.size());
        for (int32_t a = outer.first; a < outer.last; ++a) {
            const size_t line = static_cast<size_t>(lists_[1][a]) * setting_.sizes[1];
            if (side_by_side && width == 1)
                add_to_all(out + line + points[0], inner.size(), leaf_[0]);
            else
                add_to_some(out + line * width, points, inner.size(), width);
        }
    }

    // Whether points follow each other, as they do along an axis that ascends.
    static bool are_consecutive(const int32_t* points, int32_t size) {
        int32_t gaps = 0;
        for (int32_t j = 0; j < size; ++j) gaps |= points[j] - points[0] - j;
        return gaps == 0;
    }

    static void add_to_all(double* at, int32_t size, double value) {
        for (int32_t j = 0; j < size; ++j) at[j] += value;
    }

    void add_to_some(double* line, const int32_t* points, int32_t size, int width) const {
        for (int32_t j = 0; j < size; ++j) {
            double* at = line + static_cast<size_t>(points[j]) * width;
            for (int c = 0; c < width; ++c) at[c] += leaf_[c];
        }
    }

    const Setting setting_;
    std::vector<int32_t> lists_[1 + kAxes];  // rows, and the points of each axis
    std::vector<int32_t> scratch_;
    std::vector<Visit> pending_;
    std::vector<double> leaf_;
};

}  // namespace vstatkit

#endif
