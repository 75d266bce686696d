// Learners of several stages, all of them inside one subsample: a linear trend, a tree on
// what it leaves, and a second tree on what the first did not foresee.

#ifndef VSTATKIT_STAGES_HPP
#define VSTATKIT_STAGES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "growers.hpp"
#include "members.hpp"
#include "portable.hpp"
#include "predict.hpp"
#include "random.hpp"
#include "ridge.hpp"
#include "tree.hpp"

namespace vstatkit {

struct Stages {
    bool trend;
    bool boost;
    const int32_t* units;  // of the rows, halves hold whole ones; null where a row is one
};

// Where a learner's predictions go; see `Sink`. Points are row-major. Nodes of all trees
// are appended to `nodes`, and where each tree ends to `ends`.
struct StagedSink {
    const double* points;  // (n_at + n_oob, n_features)
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
          by_levels_(std::any_of(table.levels, table.levels + table.n_features,
                                 [](int32_t count) { return count > 0; })),
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
        start_ = sink.nodes->size();
        first_end_ = sink.ends->size();
        gather(members);
        if (stages_.trend) take_out_trend();
        if (stages_.boost && halve(members, mix(seed ^ kHalvesKey)))
            grow_two(members, seed);
        else
            grow_one(members, seed);
        predict(members);
    }

  private:
    static Options whole(Options options) {
        options.only_queried = false;
        return options;
    }

    // The subsample's rows, as points, and their responses.
    void gather(const std::vector<Member>& members) {
        const size_t m = members.size();
        points_.resize(m * p_);
        left_.resize(m);
        for (size_t j = 0; j < m; ++j) {
            const int32_t row = members[j].row;
            left_[j] = y_[row];
            for (int f = 0; f < p_; ++f) points_[j * p_ + f] = value(row, f);
        }
        weights_.resize(m);
        for (size_t j = 0; j < m; ++j) weights_[j] = members[j].weight;
    }

    double value(int32_t row, int f) const {
        if (table_.x) return table_.x[row * table_.row_step + f * table_.feature_step];
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        return table_.sorted[base + table_.rank[base + row]];
    }

    void take_out_trend() {
        const int m = static_cast<int>(left_.size());
        ridge_.fit(points_.data(), left_.data(), weights_.data(), m, sink_.line);
        for (int j = 0; j < m; ++j)
            left_[j] -= on_line(sink_.line, points_.data() + static_cast<size_t>(j) * p_, p_);
    }

    // Deal the subsample's units to two halves. Returns false if there is only one.
    bool halve(const std::vector<Member>& members, uint64_t key) {
        units_.clear();
        for (const Member& one : members) units_.push_back(unit_of(one));
        std::sort(units_.begin(), units_.end());
        units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
        const size_t count = units_.size();
        if (count < 2) return false;
        for (size_t j = 0; j < count / 2; ++j) {
            key = mix(key);
            const size_t pick = j + static_cast<size_t>(upper_product(key, count - j));
            std::swap(units_[j], units_[pick]);
        }
        std::sort(units_.begin(), units_.begin() + count / 2);
        for (int side = 0; side < 2; ++side) {
            half_[side].clear();
            place_[side].clear();
        }
        for (size_t j = 0; j < members.size(); ++j) {
            const bool first = std::binary_search(
                units_.begin(), units_.begin() + count / 2, unit_of(members[j]));
            half_[first ? 0 : 1].push_back(members[j]);
            place_[first ? 0 : 1].push_back(j);
        }
        return true;
    }

    int32_t unit_of(const Member& one) const {
        return stages_.units ? stages_.units[one.row] : one.row;
    }

    void grow_one(const std::vector<Member>& members, uint64_t seed) {
        aim(members, left_);
        plant(members, seed);
    }

    // The mean of two trees, each on one half; and a third on their errors in the other.
    void grow_two(const std::vector<Member>& members, uint64_t seed) {
        aim(members, left_);
        for (int side = 0; side < 2; ++side) {
            const size_t first = sink_.nodes->size();
            plant(half_[side], mix(seed ^ (kHalfKey + side)));
            foresee(first, place_[1 - side]);
            for (size_t i = first; i < sink_.nodes->size(); ++i)
                if ((*sink_.nodes)[i].feature < 0) (*sink_.nodes)[i].value /= 2;
        }
        aim(members, left_);
        plant(members, mix(seed ^ kSecondKey));
    }

    // Take what the last tree predicts for some of the members out of their responses.
    void foresee(size_t first, const std::vector<size_t>& places) {
        const size_t m = places.size();
        asked_.resize(m * p_);
        for (size_t j = 0; j < m; ++j)
            std::copy_n(points_.data() + places[j] * p_, p_, asked_.data() + j * p_);
        walk(first, sink_.nodes->size(), asked_.data(), static_cast<int>(m));
        for (size_t j = 0; j < m; ++j) left_[places[j]] -= found_[j];
    }

    void aim(const std::vector<Member>& members, const std::vector<double>& response) {
        for (size_t j = 0; j < members.size(); ++j) target_[members[j].row] = response[j];
    }

    void plant(const std::vector<Member>& members, uint64_t seed) {
        Sink sink = {};
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

    // Predict with the nodes from `first` to `last`.
    void walk(size_t first, size_t last, const double* points, int count) {
        found_.resize(count);
        if (count)
            predict_tree(sink_.nodes->data() + first, last - first, nullptr, 0, by_levels_,
                         points, count, p_, found_.data(), *sink_.watch);
    }

    // Predict the query points, and the rows that the subsample leaves out.
    void predict(const std::vector<Member>& members) {
        absent_.clear();
        size_t j = 0;
        for (int q = 0; sink_.oob && q < sink_.n_oob; ++q) {
            while (j < members.size() && members[j].row < sink_.oob_rows[q]) ++j;
            if (j == members.size() || members[j].row != sink_.oob_rows[q])
                absent_.push_back(q);
        }
        add_up(sink_.points, sink_.n_at);
        std::copy(sum_.begin(), sum_.end(), sink_.out);
        asked_.resize(absent_.size() * p_);
        for (size_t q = 0; q < absent_.size(); ++q)
            std::copy_n(sink_.points + (static_cast<size_t>(sink_.n_at) + absent_[q]) * p_,
                        p_, asked_.data() + q * p_);
        add_up(asked_.data(), static_cast<int>(absent_.size()));
        for (size_t q = 0; q < absent_.size(); ++q) {
            sink_.oob[absent_[q]] += sum_[q];
            sink_.times[absent_[q]] += 1;
        }
    }

    void add_up(const double* points, int count) {
        sum_.assign(count, 0.0);
        size_t first = start_;
        for (size_t t = first_end_; t < sink_.ends->size(); ++t) {
            walk(first, (*sink_.ends)[t], points, count);
            for (int q = 0; q < count; ++q) sum_[q] += found_[q];
            first = (*sink_.ends)[t];
        }
        if (!stages_.trend) return;
        for (int q = 0; q < count; ++q)
            sum_[q] += on_line(sink_.line, points + static_cast<size_t>(q) * p_, p_);
    }

    static constexpr uint64_t kHalvesKey = 0x68616c7665730004ULL;
    static constexpr uint64_t kHalfKey = 0x68616c6600000005ULL;
    static constexpr uint64_t kSecondKey = 0x7365636f6e640007ULL;

    const Table& table_;
    const int p_;
    const double* y_;
    const Stages stages_;
    const bool by_levels_;
    std::unique_ptr<double[]> target_;  // of the next tree; only members' are filled in
    std::vector<double> weight_;        // zero but for the rows of the next tree
    std::unique_ptr<AnyGrower> grower_;
    Ridge ridge_;

    StagedSink sink_ = {};
    size_t start_ = 0, first_end_ = 0;  // where this learner's nodes and trees start
    std::vector<Member> listed_, half_[2];
    std::vector<size_t> place_[2];  // of the halves' rows among the members
    std::vector<int32_t> units_;
    std::vector<double> points_, left_, weights_;  // of the members
    std::vector<int> absent_;
    std::vector<double> asked_, found_, sum_, shares_;
};

}  // namespace vstatkit

#endif
