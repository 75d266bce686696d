// Learners of several stages, all inside one subsample: a linear trend, a tree on its
// residuals, and a second tree on residuals that the first tree did not see.

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
    const int32_t* unit_of_row;  // halves hold whole units; null if every row is a unit
};

class StagedGrower : public AnyGrower {
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
          grower_(make_grower(table, target_.get(), options)),
          ridge_(table.n_features) {}

    void grow(const double* weight, uint64_t seed, const Sink& sink) override {
        listed_.clear();
        for (int32_t i = 0; i < table_.n_rows; ++i)
            if (weight[i] > 0) listed_.push_back({i, weight[i]});
        grow(listed_, seed, sink);
    }

    void grow(const std::vector<Member>& members, uint64_t seed,
              const Sink& sink) override {
        if (members.empty())
            throw std::invalid_argument(
                "a subsample has no row of positive weight; use larger subsamples, or "
                "leave out the rows of weight zero.");
        sink_ = sink;
        list_absent(members);
        gather_points(members);
        if (stages_.trend) subtract_trend();
        if (stages_.boost && halve(members, mix(seed ^ kHalvesKey)))
            grow_two(members, seed);
        else
            grow_one(members, seed);
        write_predictions();
    }

  private:
    // List the rows to predict that are not in the subsample.
    void list_absent(const std::vector<Member>& members) {
        absent_.clear();
        size_t j = 0;
        for (int q = 0; sink_.oob && q < sink_.n_oob; ++q) {
            while (j < members.size() && members[j].row < sink_.oob_rows[q]) ++j;
            if (j == members.size() || members[j].row != sink_.oob_rows[q])
                absent_.push_back(q);
        }
        n_predicted_ = sink_.n_at + static_cast<int>(absent_.size());
    }

    // Collect the points of the learner, column-major: the query points, the rows outside
    // the subsample, and its members; and the members' responses and weights.
    void gather_points(const std::vector<Member>& members) {
        const size_t m = members.size();
        step_ = n_predicted_ + m;
        points_.resize(step_ * p_);
        for (int f = 0; f < p_; ++f) {
            const double* x = sink_.points + static_cast<size_t>(f) * sink_.n_points;
            double* to = points_.data() + f * step_;
            to = std::copy_n(x, sink_.n_at, to);
            for (const int q : absent_) *to++ = x[sink_.n_at + q];
            for (const Member& member : members) *to++ = value(member.row, f);
        }
        residual_.resize(m);
        weights_.resize(m);
        for (size_t j = 0; j < m; ++j) {
            residual_[j] = y_[members[j].row];
            weights_[j] = members[j].weight;
        }
        sum_.assign(n_predicted_, 0.0);
    }

    double value(int32_t row, int f) const {
        if (table_.x) return table_.x[row * table_.row_step + f * table_.feature_step];
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        return table_.sorted[base + table_.rank[base + row]];
    }

    // Fit the linear trend and keep its residuals.
    void subtract_trend() {
        const int m = static_cast<int>(residual_.size());
        ridge_.fit(points_.data() + n_predicted_, step_, residual_.data(), weights_.data(),
                   m, sink_.line);
        evaluate_line();
        for (int j = 0; j < m; ++j) residual_[j] -= trend_[n_predicted_ + j];
    }

    // Evaluate the line at all points, in the order of summation of `predict_line`.
    void evaluate_line() {
        trend_.assign(step_, sink_.line[0]);
        for (int f = 0; f < p_; ++f) {
            const double* x = points_.data() + f * step_;
            const double centre = sink_.line[1 + f], slope = sink_.line[1 + p_ + f];
            for (size_t q = 0; q < step_; ++q) trend_[q] += line_step(slope, x[q], centre);
        }
    }

    // Divide the subsample's units into two halves. Returns false if there is only member.
    bool halve(const std::vector<Member>& members, uint64_t key) {
        units_.clear();
        for (const Member& member : members) units_.push_back(unit_of(member));
        if (stages_.unit_of_row) {
            std::sort(units_.begin(), units_.end());
            units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
        }
        const size_t count = units_.size();
        if (count < 2) return false;
        draw_half(count, key);
        for (int side = 0; side < 2; ++side) {
            half_[side].clear();
            place_[side].clear();
        }
        for (size_t j = 0; j < members.size(); ++j) {
            size_t unit = j;
            if (stages_.unit_of_row)
                unit = std::lower_bound(units_.begin(), units_.end(), unit_of(members[j])) -
                       units_.begin();
            half_[side_[unit]].push_back(members[j]);
            place_[side_[unit]].push_back(j);
        }
        return true;
    }

    // Draw half of `count` units for the first side.
    void draw_half(size_t count, uint64_t key) {
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

    int32_t unit_of(const Member& member) const {
        return stages_.unit_of_row ? stages_.unit_of_row[member.row] : member.row;
    }

    // Grow a single tree on all members.
    void grow_one(const std::vector<Member>& members, uint64_t seed) {
        set_target(members);
        grow_tree(members, seed, n_predicted_);
        add(prediction_, 1.0);
    }

    // Average two trees, each on one half, and grow a third one on their errors in the
    // other half.
    void grow_two(const std::vector<Member>& members, uint64_t seed) {
        set_target(members);
        for (int side = 0; side < 2; ++side) {
            const size_t first = sink_.nodes->size();
            grow_tree(half_[side], mix(seed ^ (kHalfKey + side)), static_cast<int>(step_));
            add(prediction_, 0.5);
            for (const size_t j : place_[1 - side])
                residual_[j] -= prediction_[n_predicted_ + j];
            for (size_t i = first; i < sink_.nodes->size(); ++i)
                if ((*sink_.nodes)[i].feature < 0) (*sink_.nodes)[i].value /= 2;
        }
        set_target(members);
        grow_tree(members, mix(seed ^ kSecondKey), n_predicted_);
        add(prediction_, 1.0);
    }

    void set_target(const std::vector<Member>& members) {
        for (size_t j = 0; j < members.size(); ++j) target_[members[j].row] = residual_[j];
    }

    // Grow a tree, and predict the first `count` points.
    void grow_tree(const std::vector<Member>& members, uint64_t seed, int count) {
        prediction_.resize(step_);
        Sink sink = sink_;
        sink.points = points_.data();
        sink.n_points = static_cast<int>(step_);
        sink.n_at = count;
        sink.out = prediction_.data();
        sink.oob = nullptr;
        if (table_.x) {
            grower_->grow(members, seed, sink);
        } else {
            for (const Member& member : members) weight_[member.row] = member.weight;
            grower_->grow(weight_.data(), seed, sink);
            for (const Member& member : members) weight_[member.row] = 0;
        }
        sink_.tree_ends->push_back(sink_.nodes->size());
    }

    void add(const std::vector<double>& part, double share) {
        for (int q = 0; q < n_predicted_; ++q) sum_[q] += share * part[q];
    }

    // Write the predictions at the query points, and add those of the other rows.
    void write_predictions() {
        if (stages_.trend) add(trend_, 1.0);
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
    std::unique_ptr<double[]> target_;  // of the next tree; filled in for members only
    std::vector<double> weight_;        // zero except for the rows of the next tree
    std::unique_ptr<AnyGrower> grower_;
    Ridge ridge_;

    Sink sink_ = {};
    std::vector<Member> listed_, half_[2];
    std::vector<size_t> place_[2];  // places of the halves' rows among the members
    std::vector<int32_t> units_;
    std::vector<size_t> order_;
    std::vector<uint8_t> side_;  // of every unit
    std::vector<int> absent_;
    int n_predicted_ = 0;  // query points, and rows outside the subsample
    size_t step_ = 0;  // all points: those, and the members
    std::vector<double> points_, trend_, sum_;
    std::vector<double> prediction_;          // of the last tree
    std::vector<double> residual_, weights_;  // of the members
};

}  // namespace vstatkit

#endif
