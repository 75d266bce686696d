// Learners of several stages, all of them inside one subsample: a linear trend, a tree on
// what it leaves, and a second tree on what the first did not foresee.

#ifndef VSTATKIT_STAGES_HPP
#define VSTATKIT_STAGES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "growers.hpp"
#include "members.hpp"
#include "portable.hpp"
#include "random.hpp"
#include "ridge.hpp"
#include "tree.hpp"

namespace vstatkit {

struct Stages {
    bool trend;
    bool boost;
    const int32_t* units;  // of the rows, halves hold whole ones; null where a row is one
};

// Where a learner's predictions go; see `Sink`. Nodes of all trees are appended to
// `nodes`, and where each tree ends to `ends`.
struct StagedSink {
    const double* points;
    int n_points;
    int n_at;
    double* out;
    const int32_t* oob_rows;
    int n_oob;
    double* oob;
    double* times;
    double* gains;
    double* line;  // (2 n_features + 1)
    std::vector<Node>* nodes;
    std::vector<size_t>* ends;
    Watch* watch;
};

class StagedGrower {
  public:
    // `table` and `y` must outlive the grower.
    StagedGrower(const Table& table, const double* y, const Options& options,
                 const Stages& stages)
        : table_(table),
          p_(table.n_features),
          y_(y),
          stages_(stages),
          target_(new double[table.n_rows]),
          weight_(table.x ? 0 : table.n_rows),
          grower_(make_grower(table, target_.get(), whole(options))),
          ridge_(table.n_features) {}

    void grow(const double* weight, uint64_t seed, const StagedSink& sink) {
        listed_.clear();
        for (int32_t i = 0; i < table_.n_rows; ++i)
            if (weight[i] > 0) listed_.push_back({i, weight[i]});
        grow(listed_, seed, sink);
    }

    void grow(const std::vector<Member>& members, uint64_t seed, const StagedSink& sink) {
        if (members.empty())
            throw std::invalid_argument(
                "a subsample has no row of positive weight; use larger subsamples, or "
                "leave out the rows of weight zero.");
        sink_ = sink;
        list_absent(members);
        gather(members);
        if (stages_.trend) take_out_trend();
        if (stages_.boost && halve(members, mix(seed ^ kHalvesKey)))
            grow_two(members, seed);
        else
            grow_one(members, seed);
        hand_over();
    }

  private:
    static Options whole(Options options) {
        options.only_queried = false;
        return options;
    }

    // List the rows to predict that the subsample leaves out.
    void list_absent(const std::vector<Member>& members) {
        absent_.clear();
        size_t j = 0;
        for (int q = 0; sink_.oob && q < sink_.n_oob; ++q) {
            while (j < members.size() && members[j].row < sink_.oob_rows[q]) ++j;
            if (j == members.size() || members[j].row != sink_.oob_rows[q])
                absent_.push_back(q);
        }
        n_asked_ = sink_.n_at + static_cast<int>(absent_.size());
    }

    // Points of the learner, column-major: the query points, the rows that it leaves out,
    // and its members; and the members' responses and weights.
    void gather(const std::vector<Member>& members) {
        const size_t m = members.size();
        step_ = n_asked_ + m;
        points_.resize(step_ * p_);
        for (int f = 0; f < p_; ++f) {
            const double* x = sink_.points + static_cast<size_t>(f) * sink_.n_points;
            double* to = points_.data() + f * step_;
            to = std::copy_n(x, sink_.n_at, to);
            for (const int q : absent_) *to++ = x[sink_.n_at + q];
            for (const Member& one : members) *to++ = value(one.row, f);
        }
        left_.resize(m);
        weights_.resize(m);
        for (size_t j = 0; j < m; ++j) {
            left_[j] = y_[members[j].row];
            weights_[j] = members[j].weight;
        }
        sum_.assign(n_asked_, 0.0);
    }

    double value(int32_t row, int f) const {
        if (table_.x) return table_.x[row * table_.row_step + f * table_.feature_step];
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        return table_.sorted[base + table_.rank[base + row]];
    }

    void take_out_trend() {
        const int m = static_cast<int>(left_.size());
        ridge_.fit(points_.data() + n_asked_, step_, left_.data(), weights_.data(), m,
                   sink_.line);
        along_line();
        for (int j = 0; j < m; ++j) left_[j] -= along_[n_asked_ + j];
    }

    // The line at all points, in the order of sums of `on_line`.
    void along_line() {
        along_.assign(step_, sink_.line[0]);
        for (int f = 0; f < p_; ++f) {
            const double* x = points_.data() + f * step_;
            const double centre = sink_.line[1 + f], slope = sink_.line[1 + p_ + f];
            for (size_t q = 0; q < step_; ++q) along_[q] += along(slope, x[q], centre);
        }
    }

    // Deal the subsample's units to two halves. Returns false if there is only one.
    bool halve(const std::vector<Member>& members, uint64_t key) {
        units_.clear();
        for (const Member& one : members) units_.push_back(unit_of(one));
        if (stages_.units) {
            std::sort(units_.begin(), units_.end());
            units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
        }
        const size_t count = units_.size();
        if (count < 2) return false;
        deal(count, key);
        for (int side = 0; side < 2; ++side) {
            half_[side].clear();
            place_[side].clear();
        }
        for (size_t j = 0; j < members.size(); ++j) {
            size_t unit = j;
            if (stages_.units)
                unit = std::lower_bound(units_.begin(), units_.end(), unit_of(members[j])) -
                       units_.begin();
            half_[side_[unit]].push_back(members[j]);
            place_[side_[unit]].push_back(j);
        }
        return true;
    }

    // Draw half of `count` units for the first side.
    void deal(size_t count, uint64_t key) {
        order_.resize(count);
        for (size_t j = 0; j < count; ++j) order_[j] = j;
        side_.assign(count, 1);
        for (size_t j = 0; j < count / 2; ++j) {
            key = mix(key);
            const size_t pick = j + static_cast<size_t>(upper_product(key, count - j));
            std::swap(order_[j], order_[pick]);
            side_[order_[j]] = 0;
        }
    }

    int32_t unit_of(const Member& one) const {
        return stages_.units ? stages_.units[one.row] : one.row;
    }

    void grow_one(const std::vector<Member>& members, uint64_t seed) {
        aim(members);
        plant(members, seed, n_asked_);
        add(found_, 1.0);
    }

    // The mean of two trees, each on one half; and a third on their errors in the other.
    void grow_two(const std::vector<Member>& members, uint64_t seed) {
        aim(members);
        for (int side = 0; side < 2; ++side) {
            const size_t first = sink_.nodes->size();
            plant(half_[side], mix(seed ^ (kHalfKey + side)), static_cast<int>(step_));
            add(found_, 0.5);
            for (const size_t j : place_[1 - side]) left_[j] -= found_[n_asked_ + j];
            for (size_t i = first; i < sink_.nodes->size(); ++i)
                if ((*sink_.nodes)[i].feature < 0) (*sink_.nodes)[i].value /= 2;
        }
        aim(members);
        plant(members, mix(seed ^ kSecondKey), n_asked_);
        add(found_, 1.0);
    }

    void aim(const std::vector<Member>& members) {
        for (size_t j = 0; j < members.size(); ++j) target_[members[j].row] = left_[j];
    }

    // Grow a tree, and predict the first `count` points.
    void plant(const std::vector<Member>& members, uint64_t seed, int count) {
        found_.resize(step_);
        Sink sink = {};
        sink.points = points_.data();
        sink.n_points = static_cast<int>(step_);
        sink.n_at = count;
        sink.out = found_.data();
        sink.gains = sink_.gains;
        sink.nodes = sink_.nodes;
        sink.shares = &shares_;
        sink.watch = sink_.watch;
        if (table_.x) {
            grower_->grow(members, seed, sink);
        } else {
            for (const Member& one : members) weight_[one.row] = one.weight;
            grower_->grow(weight_.data(), seed, sink);
            for (const Member& one : members) weight_[one.row] = 0;
        }
        sink_.ends->push_back(sink_.nodes->size());
    }

    void add(const std::vector<double>& part, double share) {
        for (int q = 0; q < n_asked_; ++q) sum_[q] += share * part[q];
    }

    // Write the predictions of the query points, and add those of the rows left out.
    void hand_over() {
        if (stages_.trend) add(along_, 1.0);
        std::copy_n(sum_.begin(), sink_.n_at, sink_.out);
        for (size_t q = 0; q < absent_.size(); ++q) {
            sink_.oob[absent_[q]] += sum_[sink_.n_at + q];
            sink_.times[absent_[q]] += 1;
        }
    }

    static constexpr uint64_t kHalvesKey = 0x68616c7665730004ULL;
    static constexpr uint64_t kHalfKey = 0x68616c6600000005ULL;
    static constexpr uint64_t kSecondKey = 0x7365636f6e640007ULL;

    const Table& table_;
    const int p_;
    const double* y_;
    const Stages stages_;
    std::unique_ptr<double[]> target_;  // of the next tree; only members' are filled in
    std::vector<double> weight_;        // zero but for the rows of the next tree
    std::unique_ptr<AnyGrower> grower_;
    Ridge ridge_;

    StagedSink sink_ = {};
    std::vector<Member> listed_, half_[2];
    std::vector<size_t> place_[2];  // of the halves' rows among the members
    std::vector<int32_t> units_;
    std::vector<size_t> order_;
    std::vector<char> side_;  // of every unit
    std::vector<int> absent_;
    int n_asked_ = 0;   // query points, and rows left out
    size_t step_ = 0;   // all points: those, and the members
    std::vector<double> points_, along_, found_, sum_;  // the line, and the last tree
    std::vector<double> left_, weights_, shares_;  // of the members
};

}  // namespace vstatkit

#endif
