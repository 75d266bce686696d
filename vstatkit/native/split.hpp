// Find the best split of a node.
//
// Only the features that a node tries are ever sorted. The inner loops avoid branches on
// the data: a branch that cannot be predicted costs more than the work for a row.

#ifndef VSTATKIT_SPLIT_HPP
#define VSTATKIT_SPLIT_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "levels.hpp"
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
    bool by_levels = false;
    uint64_t levels_left = 0, levels_seen = 0;  // in place of a threshold
};

template <class Criterion>
class SplitFinder {
  public:
    SplitFinder(Subsample& subsample, const Options& options)
        : subsample_(subsample), options_(options), features_(subsample.n_features()) {}

    // Start with a subsample; splits are defined by its rows `rows`.
    void start(Rows rows) {
        least_weight_ = 0;
        if (options_.min_weight_fraction_leaf > 0)
            least_weight_ = options_.min_weight_fraction_leaf * weight_of(rows);
        sorter_.start(subsample_.size());
        if (gain_.size() < static_cast<size_t>(subsample_.size()))
            gain_.resize(subsample_.size());
    }

    int ordered_by() const { return sorter_.ordered_by(); }

    // Try features in random order, at least `max_features` of them, and more until one
    // can be split. `begin` is the node's place among all rows.
    Split find_best(Criterion& criterion, Rows node, int begin, uint64_t key,
                    int ordered_by, Watch& watch) {
        const int p = subsample_.n_features();
        sorter_.set_ordered_by(ordered_by);
        for (int f = 0; f < p; ++f) features_[f] = f;
        if (least_weight_ > 0) node_weight_ = weight_of(node);
        Split best;
        for (int tried = 0; tried < p; ++tried) {
            // Two rows can be split in only one way, so the first such feature is taken.
            if (best.feature >= 0 && (tried >= options_.max_features || node.size == 2))
                break;
            key = mix(key);
            const int pick = tried + static_cast<int>(upper_product(key, p - tried));
            std::swap(features_[tried], features_[pick]);
            watch.count(node.size);
            subsample_.prepare(features_[tried]);
            try_feature(criterion, node, begin, features_[tried], key, best);
        }
        return best;
    }

  private:
    void try_feature(Criterion& criterion, Rows node, int begin, int f, uint64_t key,
                     Split& best) {
        if (subsample_.has_levels(f))
            try_levels(criterion, node, f, mix(key ^ kThresholdKey), best);
        else if (options_.random)
            try_random(criterion, node, f, mix(key ^ kThresholdKey), best);
        else
            try_all(criterion, node, begin, f, best);
    }

    // Call `work(walk, missing_left)` with missing values on the right, and on the left.
    template <class Work>
    void walk_both_sides(Criterion& criterion, Rows node, int f, const Order& order,
                       Work work) {
        const Missing missing{node, subsample_.rank(f), subsample_.n_known(f)};
        for (int side = 0; side < (order.missing ? 2 : 1); ++side) {
            const bool left = side == 1;
            if (subsample_.has_uneven_weights())
                work(criterion.careful_walk(order, missing, left), left);
            else
                work(criterion.walk(order, missing, left), left);
        }
    }

    // Try all thresholds of a feature.
    void try_all(Criterion& criterion, Rows node, int begin, int f, Split& best) {
        const Order order = sorter_.sort(subsample_, f, node, begin);
        if (order.count == 0) return;
        if (!order.missing && subsample_.has_ties(f) &&
            subsample_.value(f, order.rows[0]) ==
                subsample_.value(f, order.rows[order.count - 1]))
            return;
        // Nearly always all splits are allowed, so this case has its own loop.
        const bool all =
            !subsample_.has_ties(f) && options_.min_samples_leaf <= 1 && least_weight_ <= 0;
        walk_both_sides(criterion, node, f, order, [&](auto walk, bool left) {
            double weight = left ? missing_weight(order) : 0;
            const int j = all ? scan(order, left, walk, best, [](int) { return true; })
                              : scan(order, left, walk, best, [&](int at) {
                                    weight += subsample_.data()[order.rows[at]].weight;
                                    return leaves_enough(order, at + 1, left) &&
                                           weighs_enough(weight) &&
                                           separates_values(f, order, at);
                                });
            if (j >= 0) set_threshold(f, order, j, left, best);
        });
    }

    // Walk over the splits after each row in turn. Returns the first of the best ones,
    // if it beats those of other features, or -1. Splits that divide a node's rows in the
    // same way tie up to rounding; the first one is kept, so that trees do not depend on
    // the units of y.
    template <class Walk, class Allowed>
    int scan(const Order& order, bool missing_left, Walk walk, const Split& best,
             Allowed allowed) {
        // With missing values on the right even "all known left" is a split.
        const int last =
            order.missing && !missing_left ? order.count : order.count - 1;
        double* gains = gain_.data();
        double top = 0;
        for (int j = 0; j < last; ++j) {
            walk.add(order.rows[j], j);
            double gain = walk.gain();
            if (!allowed(j)) gain = -1;
            gains[j] = gain;
            top = gain > top ? gain : top;
        }
        if (!beats(top, best)) return -1;
        int j = 0;
        while (j < last && (gains[j] < 0 || gains[j] * (1 + kTie) < top)) ++j;
        return j < last ? j : -1;  // or no split is allowed
    }

    static bool beats(double gain, const Split& best) {
        return best.feature < 0 || gain > best.gain * (1 + kTie);
    }

    // Whether `n_known` known rows on the left leave enough rows on both sides.
    bool leaves_enough(const Order& order, int n_known, bool missing_left) const {
        const int n_left = n_known + (missing_left ? order.missing : 0);
        const int least = options_.min_samples_leaf;
        return n_left >= least && order.count + order.missing - n_left >= least;
    }

    // Whether `weight` on the left leaves enough weight on both sides.
    bool weighs_enough(double weight) const {
        return least_weight_ <= 0 ||
               (weight >= least_weight_ && node_weight_ - weight >= least_weight_);
    }

    double weight_of(Rows rows) const {
        double sum = 0;
        for (int j = 0; j < rows.size; ++j) sum += subsample_.data()[rows.first[j]].weight;
        return sum;
    }

    // Weight of the node's rows that miss the feature; zero if there is no limit on it.
    double missing_weight(const Order& order) const {
        if (least_weight_ <= 0 || !order.missing) return 0;
        return node_weight_ - weight_of({order.rows, order.count});
    }

    // Whether the split after the j-th row keeps equal values together.
    bool separates_values(int f, const Order& order, int j) const {
        return !subsample_.has_ties(f) || j + 1 == order.count ||
               subsample_.value(f, order.rows[j]) != subsample_.value(f, order.rows[j + 1]);
    }

    void set_split(int f, double gain, const Order& order, bool missing_left, Split& best) {
        best = Split();
        best.gain = gain;
        best.feature = f;
        best.missing_left = missing_left;
        best.saw_missing = order.missing > 0;
    }

    void set_threshold(int f, const Order& order, int j, bool missing_left, Split& best) {
        set_split(f, gain_[j], order, missing_left, best);
        if (j + 1 == order.count) {
            best.threshold = INFINITY;
            best.cut = subsample_.n_known(f);
            return;
        }
        const double low = subsample_.value(f, order.rows[j]);
        const double high = subsample_.value(f, order.rows[j + 1]);
        const double middle = low / 2 + high / 2;
        best.threshold = middle < high ? middle : low;
        best.cut = subsample_.rank(f)[order.rows[j + 1]];
    }

    // Try one threshold, uniform between the smallest and the largest known value. If
    // these are equal, split known rows from missing ones.
    void try_random(Criterion& criterion, Rows node, int f, uint64_t bits, Split& best) {
        const int32_t* rank = subsample_.rank(f);
        const int32_t known = subsample_.n_known(f);
        int32_t low = known, high = -1;
        for (int j = 0; j < node.size; ++j) {
            const int32_t r = rank[node.first[j]];
            low = std::min(low, r);
            high = r < known ? std::max(high, r) : high;
        }
        if (high < 0) return;
        const double* sorted = subsample_.sorted(f);
        double threshold = INFINITY;
        int32_t cut = known;
        if (sorted[low] < sorted[high]) {
            threshold = interpolate(sorted[low], sorted[high], unit_number(bits));
            cut = static_cast<int32_t>(
                std::upper_bound(sorted + low, sorted + high, threshold) - sorted);
        }
        int n_left = 0;
        const Order order = arrange(
            node, [&](int32_t row) { return rank[row] < known; },
            [&](int32_t row) { return rank[row] < cut; }, n_left);
        if (n_left == order.count && !order.missing) return;
        walk_both_sides(criterion, node, f, order, [&](auto walk, bool left) {
            if (!try_split(order, n_left, left, walk, f, best)) return;
            best.threshold = threshold;
            best.cut = cut;
        });
    }

    // Try sets of levels in the order of their scores, or one set at random.
    void try_levels(Criterion& criterion, Rows node, int f, uint64_t bits, Split& best) {
        levels_.read(subsample_, f, node);
        const int n_present = levels_.n_present();
        if (n_present == 0 || (n_present == 1 && levels_.n_missing() == 0)) return;
        if (options_.random) {
            const uint64_t set = levels_.draw_set(bits);
            const Order order = levels_.arrange_sides(set);
            const LevelRows level_rows = levels_.rows();
            const int n_left = static_cast<int>(
                std::count_if(level_rows.codes, level_rows.codes + level_rows.count,
                              [&](uint8_t level) { return (set >> level) & 1; }));
            walk_both_sides(criterion, node, f, order, [&](auto walk, bool left) {
                if (try_split(order, n_left, left, walk, f, best)) set_levels(set, best);
            });
            return;
        }
        double score[kMostLevels];
        criterion.score_levels(levels_.rows(), score);
        const Order order = levels_.arrange_by(score);
        walk_both_sides(criterion, node, f, order, [&](auto walk, bool left) {
            double weight = left ? missing_weight(order) : 0;
            const int j = scan(order, left, walk, best, [&](int at) {
                weight += subsample_.data()[order.rows[at]].weight;
                return levels_.is_level_end(at) && leaves_enough(order, at + 1, left) &&
                       weighs_enough(weight);
            });
            if (j < 0) return;
            set_split(f, gain_[j], order, left, best);
            set_levels(levels_.levels_up_to(j), best);
        });
    }

    void set_levels(uint64_t left, Split& best) const {
        best.by_levels = true;
        best.levels_left = left;
        best.levels_seen = levels_.present_set();
    }

    // A number in [low, high), `part` of the way up.
    static double interpolate(double low, double high, double part) {
        const double there = low * (1 - part) + high * part;
        return there < high ? std::max(there, low) : low;
    }

    // Put the known rows that go left before those that go right.
    template <class Known, class GoesLeft>
    Order arrange(Rows node, Known is_known, GoesLeft goes_left, int& n_left) {
        if (arranged_.size() < gain_.size()) arranged_.resize(gain_.size());
        int count = 0;
        for (int j = 0; j < node.size; ++j) {
            arranged_[count] = node.first[j];
            count += is_known(node.first[j]);
        }
        const auto middle =
            std::stable_partition(arranged_.begin(), arranged_.begin() + count, goes_left);
        n_left = static_cast<int>(middle - arranged_.begin());
        return {arranged_.data(), count, node.size - count};
    }

    // Take the split after the first `n_left` known rows, if it is allowed and beats
    // those before it.
    template <class Walk>
    bool try_split(const Order& order, int n_left, bool missing_left, Walk walk, int f,
               Split& best) {
        if (n_left == order.count && missing_left) return false;
        if (!leaves_enough(order, n_left, missing_left)) return false;
        if (!weighs_enough(weight_of({order.rows, n_left}) +
                           (missing_left ? missing_weight(order) : 0)))
            return false;
        for (int j = 0; j < n_left; ++j) walk.add(order.rows[j], j);
        const double gain = walk.gain();
        if (gain < 0 || !beats(gain, best)) return false;
        set_split(f, gain, order, missing_left, best);
        return true;
    }

    static constexpr double kTie = 1e-10;
    static constexpr uint64_t kThresholdKey = 0x7468726573680003ULL;

    Subsample& subsample_;
    const Options& options_;
    RowSorter sorter_;
    NodeLevels levels_;
    std::vector<int> features_;
    double least_weight_ = 0, node_weight_ = 0;  // of a leaf, and of the node
    std::vector<double> gain_;  // of the split after each row
    std::vector<int32_t> arranged_;  // a node's known rows, those that go left first
};

}  // namespace vstatkit

#endif
