// Find the best split of a node.
//
// Only the features that a node tries are ever sorted. The inner loops avoid branches on
// the data: a branch that cannot be predicted costs more than the work for a row.

#ifndef VSTATKIT_SPLIT_HPP
#define VSTATKIT_SPLIT_HPP

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "order.hpp"
#include "portable.hpp"
#include "random.hpp"
#include "subsample.hpp"
#include "tree.hpp"

namespace vstatkit {

struct Split {
    double gain = 0.0;
    int feature = -1;
    bool missing_left = false;
    bool saw_missing = false;
    double threshold = 0.0;
    int32_t cut = 0;  // first rank on the right
};

template <class Criterion>
class SplitFinder {
  public:
    SplitFinder(Subsample& own, const Options& options)
        : own_(own), options_(options), features_(own.n_features()) {}

    // Begin anew with the rows of `own`.
    void start() {
        sorter_.start(own_.size());
        if (gain_.size() < static_cast<size_t>(own_.size())) gain_.resize(own_.size());
    }

    int ordered_by() const { return sorter_.ordered_by(); }

    // Try features in random order, at least `max_features` of them, and on until one
    // can be split. `begin` is the node's place among all rows.
    Split best(Criterion& criterion, Rows node, int begin, uint64_t key, int ordered_by,
               Watch& watch) {
        const int p = own_.n_features();
        sorter_.set_ordered_by(ordered_by);
        for (int f = 0; f < p; ++f) features_[f] = f;
        Split best;
        for (int tried = 0; tried < p; ++tried) {
            // Two rows can be parted in one way only: the first feature to do so wins.
            if (best.feature >= 0 && (tried >= options_.max_features || node.size == 2))
                break;
            key = mix(key);
            const int pick = tried + static_cast<int>(upper_product(key, p - tried));
            std::swap(features_[tried], features_[pick]);
            watch.count(node.size);
            own_.need(features_[tried]);
            try_feature(criterion, node, begin, features_[tried], best);
        }
        return best;
    }

  private:
    void try_feature(Criterion& criterion, Rows node, int begin, int f, Split& best) {
        const Order order = sorter_.sort(own_, f, node, begin);
        if (order.count == 0) return;
        if (!order.missing && own_.tied(f) &&
            own_.value(f, order.rows[0]) == own_.value(f, order.rows[order.count - 1]))
            return;
        const Missing missing{node, own_.rank(f), own_.known(f)};
        for (int side = 0; side < (order.missing ? 2 : 1); ++side) {
            const bool left = side == 1;
            if (own_.uneven())
                scan(f, order, left, criterion.careful_walk(order, missing, left), best);
            else
                scan(f, order, left, criterion.walk(order, missing, left), best);
        }
    }

    // Walk over all splits of a feature.
    template <class Walk>
    void scan(int f, const Order& order, bool missing_left, Walk walk, Split& best) {
        const int last = n_splits(order, missing_left);
        const bool all = !own_.tied(f) && options_.min_samples_leaf <= 1;
        double* gains = gain_.data();
        double top = 0;
        for (int j = 0; j < last; ++j) {
            walk.add(order.rows[j], j);
            double gain = walk.gain();
            if (!all && !allowed(f, order, j, missing_left)) gain = -1;
            gains[j] = gain;
            top = gain > top ? gain : top;
        }
        take_first(f, order, missing_left, last, top, best);
    }

    // With missing values on the right even "all known left" is a split.
    static int n_splits(const Order& order, bool missing_left) {
        return order.missing && !missing_left ? order.count : order.count - 1;
    }

    // Whether the split after the j-th known row leaves enough rows on both sides and
    // parts no equal values.
    bool allowed(int f, const Order& order, int j, bool missing_left) const {
        const int n_left = j + 1 + (missing_left ? order.missing : 0);
        const int least = options_.min_samples_leaf;
        if (n_left < least || order.count + order.missing - n_left < least) return false;
        return !own_.tied(f) || j + 1 == order.count ||
               own_.value(f, order.rows[j]) != own_.value(f, order.rows[j + 1]);
    }

    // Take the first of the best splits of a feature, if it beats those before it.
    // Splits that part a node's rows alike tie but for rounding; the first one keeps
    // its place, so that trees do not depend on the units of y.
    void take_first(int f, const Order& order, bool missing_left, int last, double top,
                    Split& best) {
        if (best.feature >= 0 && top <= best.gain * (1 + kTie)) return;
        int j = 0;
        while (j < last && (gain_[j] < 0 || gain_[j] * (1 + kTie) < top)) ++j;
        if (j == last) return;  // no split is allowed
        best.gain = gain_[j];
        best.feature = f;
        best.missing_left = missing_left;
        best.saw_missing = order.missing > 0;
        if (j + 1 == order.count) {
            best.threshold = INFINITY;
            best.cut = own_.known(f);
            return;
        }
        const double low = own_.value(f, order.rows[j]);
        const double high = own_.value(f, order.rows[j + 1]);
        const double middle = low / 2 + high / 2;
        best.threshold = middle < high ? middle : low;
        best.cut = own_.rank(f)[order.rows[j + 1]];
    }

    static constexpr double kTie = 1e-10;

    Subsample& own_;
    const Options& options_;
    RowSorter sorter_;
    std::vector<int> features_;
    std::vector<double> gain_;  // what the split after each row gains
};

}  // namespace vstatkit

#endif
