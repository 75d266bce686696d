// Absolute error: leaves predict the weighted median.

#ifndef VSTATKIT_ABSOLUTE_HPP
#define VSTATKIT_ABSOLUTE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "criterion.hpp"
#include "deviations.hpp"

namespace vstatkit {

class AbsoluteError {
  public:
    explicit AbsoluteError(const Options&) {}

    void start(const Subsample& subsample) {
        data_ = subsample.data();
        const size_t m = subsample.size();
        row_of_.resize(m);
        std::iota(row_of_.begin(), row_of_.end(), 0);
        std::sort(row_of_.begin(), row_of_.end(), [&](int32_t a, int32_t b) {
            return data_[a].y != data_[b].y ? data_[a].y < data_[b].y : a < b;
        });
        for (auto* column : {&rank_, &place_, &sorted_}) column->resize(m);
        values_.resize(m);
        right_.resize(m);
        for (size_t r = 0; r < m; ++r) rank_[row_of_[r]] = static_cast<int32_t>(r);
    }

    void reset(Rows rows) {
        size_ = rows.size;
        for (int j = 0; j < size_; ++j) sorted_[j] = rank_[rows.first[j]];
        std::sort(sorted_.begin(), sorted_.begin() + size_);
        double whole = 0;
        for (int j = 0; j < size_; ++j) {
            sorted_[j] = row_of_[sorted_[j]];
            place_[sorted_[j]] = j;
            whole += data_[sorted_[j]].weight;
        }
        median_ = find_median(whole);
        before_ = 0;
        for (int j = 0; j < size_; ++j) {
            values_[j] = data_[sorted_[j]].y - median_;
            before_ += data_[sorted_[j]].weight * std::abs(values_[j]);
        }
    }

    bool is_pure() const { return data_[sorted_[0]].y == data_[sorted_[size_ - 1]].y; }
    static constexpr int width() { return 1; }
    void write_leaf(double* out) const { out[0] = median_; }
    static constexpr int only_class() { return -1; }

    void score_levels(LevelRows levels, double* score) const {
        compute_level_means(data_, levels, score);
    }

    class Walk {
      public:
        explicit Walk(AbsoluteError& node) : node_(node) {}

        void add(int32_t row, int j) {
            node_.add(row);
            right_ = node_.right_[j];
        }

        double gain() const {
            const double gain = node_.before_ - node_.side_.sum() - right_;
            return gain > kRounding * node_.before_ ? gain : 0;
        }

      private:
        AbsoluteError& node_;
        double right_ = 0;
    };

    // Rows are added from the right end first, for the deviations to the right of each.
    Walk walk(const Order& order, const Missing& missing, bool missing_left) {
        side_.start(values_.data(), size_);
        if (!missing_left && order.missing)
            missing.for_each([&](int32_t row) { add(row); });
        for (int j = order.count; j-- > 0;) {
            right_[j] = order.missing || j + 1 < order.count ? side_.sum() : 0;
            add(order.rows[j]);
        }
        side_.start(values_.data(), size_);
        if (missing_left) missing.for_each([&](int32_t row) { add(row); });
        return Walk(*this);
    }

    Walk careful_walk(const Order& order, const Missing& missing, bool missing_left) {
        return walk(order, missing, missing_left);
    }

  private:
    void add(int32_t row) { side_.add(place_[row], data_[row].weight); }

    // The weighted median; halfway between two values if they halve the weight exactly.
    double find_median(double whole) const {
        double below = 0;
        for (int j = 0; j < size_; ++j) {
            const double y = data_[sorted_[j]].y;
            below += data_[sorted_[j]].weight;
            if (j + 1 < size_ && std::abs(2 * below - whole) <= kRounding * whole)
                return y / 2 + data_[sorted_[j + 1]].y / 2;
            if (2 * below > whole) return y;
        }
        return data_[sorted_[size_ - 1]].y;
    }

    const Datum* data_ = nullptr;
    std::vector<int32_t> row_of_, rank_;  // rows of the subsample by response
    int size_ = 0;
    std::vector<int32_t> sorted_, place_;  // the node's rows by response
    std::vector<double> values_;           // their responses minus the median
    std::vector<double> right_;            // deviations on the right of each row
    double median_ = 0, before_ = 0;
    Deviations side_;
};

}  // namespace vstatkit

#endif
