// A tree's own rows, renumbered: their table is small enough to stay in the cache.

#ifndef VSTATKIT_SUBSAMPLE_HPP
#define VSTATKIT_SUBSAMPLE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "members.hpp"
#include "rank.hpp"
#include "sort.hpp"
#include "tree.hpp"

namespace vstatkit {

struct Datum {
    double y, weight;
};

class Subsample {
  public:
    Subsample(const Table& table, const double* y)
        : table_(table),
          y_(y),
          table_sorter_(table.x ? 0 : table.n_rows),
          place_(table.x ? 0 : table.n_rows),
          known_(table.n_features),
          tied_(table.n_features),
          is_ready_(table.n_features) {}

    // Take the rows with positive weight.
    void take(const double* weight) {
        const int n = table_.n_rows;
        rows_.resize(n);
        int32_t count = 0;
        for (int i = 0; i < n; ++i) {
            const bool in = weight[i] > 0;
            rows_[count] = i;
            place_[i] = in ? count : -1;
            count += in;
        }
        rows_.resize(count);
        take_data([&](size_t j) { return weight[rows_[j]]; });
        reserve_columns();
    }

    // Take rows of a table that is not ranked, in ascending order, without touching
    // anything of the size of the table.
    void take(const std::vector<Member>& members) {
        rows_.resize(members.size());
        for (size_t j = 0; j < members.size(); ++j) rows_[j] = members[j].row;
        take_data([&](size_t j) { return members[j].weight; });
        reserve_columns();
    }

    int size() const { return static_cast<int>(rows_.size()); }
    int32_t table_row(int32_t row) const { return rows_[row]; }
    bool has_levels(int f) const { return table_.levels[f] > 0; }
    int n_features() const { return table_.n_features; }
    const Datum* data() const { return data_.data(); }

    // Whether weights differ by many orders of magnitude.
    bool has_uneven_weights() const { return uneven_; }

    // Write `base` plus the places of those of `count` ascending rows that are not in the
    // subsample to `places`; there is room for all. Returns how many there are.
    int list_absent(const int32_t* rows, int count, int base, int32_t* places) const {
        int absent = 0;
        if (!table_.x) {
            for (int q = 0; q < count; ++q) {
                places[absent] = base + q;
                absent += place_[rows[q]] < 0;
            }
            return absent;
        }
        size_t j = 0;
        for (int q = 0; q < count; ++q) {
            while (j < rows_.size() && rows_[j] < rows[q]) ++j;
            places[absent] = base + q;
            absent += j == rows_.size() || rows_[j] != rows[q];
        }
        return absent;
    }

    // Fill a feature's columns when the feature is first tried.
    void prepare(int f) {
        if (is_ready_[f]) return;
        if (table_.x)
            rank_values(f);
        else
            compact_column(f);
        finish_column(f);
    }

    const int32_t* rank(int f) const { return rank_.data() + first(f); }
    const int32_t* order(int f) const { return order_.data() + first(f); }
    const double* sorted(int f) const { return sorted_.data() + first(f); }
    int32_t n_known(int f) const { return known_[f]; }
    bool has_ties(int f) const { return tied_[f]; }

    double value(int f, int32_t row) const {
        const size_t base = first(f);
        return sorted_[base + rank_[base + row]];
    }

  private:
    size_t first(int f) const { return static_cast<size_t>(f) * rows_.size(); }

    void reserve_columns() {
        const size_t size = rows_.size() * table_.n_features;
        if (rank_.size() < size) {
            rank_.resize(size);
            order_.resize(size);
            sorted_.resize(size);
        }
        std::fill(is_ready_.begin(), is_ready_.end(), 0);
    }

    template <class Weight>
    void take_data(Weight weight) {
        const size_t m = rows_.size();
        data_.resize(m);
        double least = INFINITY, total = 0;
        for (size_t j = 0; j < m; ++j) {
            const int i = rows_[j];
            const double w = weight(j);
            data_[j] = {y_[i], w};
            least = std::min(least, w);
            total += w;
        }
        uneven_ = least < kEven * total || total < kRange || total > 1 / kRange;
    }

    void compact_column(int f) {
        const size_t m = rows_.size();
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        const int32_t* table_rank = table_.rank + base;
        const int32_t* table_order = table_.order + base;
        const double* value = table_.sorted + base;
        int32_t* order = order_.data() + first(f);
        double* sorted = sorted_.data() + first(f);
        size_t r = 0;
        if (2 * m > static_cast<size_t>(table_.n_rows)) {
            // Most rows are in the subsample: skip the others.
            for (size_t global = 0; r < m; ++global) {
                const int32_t j = place_[table_order[global]];
                order[r] = j;
                sorted[r] = value[global];
                r += j >= 0;
            }
        } else {
            for (size_t j = 0; j < m; ++j) table_sorter_.insert(table_rank[rows_[j]]);
            table_sorter_.drain([&](int32_t global) {
                order[r] = place_[table_order[global]];
                sorted[r] = value[global];
                ++r;
            });
        }
    }

    // Rank the subsample's own values. Equal ones keep the order of the rows, as they do
    // in a ranked table.
    void rank_values(int f) {
        const size_t m = rows_.size();
        const double* x = table_.x + f * table_.feature_step;
        value_.resize(m);
        for (size_t j = 0; j < m; ++j) value_[j] = x[rows_[j] * table_.row_step];
        int32_t* order = order_.data() + first(f);
        double* sorted = sorted_.data() + first(f);
        value_sorter_.sort(value_.data(), m, order);
        for (size_t r = 0; r < m; ++r) sorted[r] = value_[order[r]];
    }

    // Invert the order, and look for ties and missing values.
    void finish_column(int f) {
        const size_t m = rows_.size();
        const int32_t* order = order_.data() + first(f);
        const double* sorted = sorted_.data() + first(f);
        int32_t* rank = rank_.data() + first(f);
        bool tied = false;
        size_t r;
        for (r = 1; r < m; ++r) tied |= sorted[r] == sorted[r - 1];
        int32_t known = static_cast<int32_t>(m);
        while (known > 0 && std::isnan(sorted[known - 1])) --known;
        for (r = 0; r < m; ++r) rank[order[r]] = static_cast<int32_t>(r);
        known_[f] = known;
        tied_[f] = tied;
        is_ready_[f] = 1;
    }

    static constexpr double kEven = 1e-10;   // smallest weight of a row, relative to the sum
    static constexpr double kRange = 1e-60;  // cubes of sums stay in range above it

    const Table& table_;
    const double* y_;
    BitSorter table_sorter_;      // of the subsample's ranks in the table
    ValueSorter value_sorter_;    // of the values of a table that is not ranked
    std::vector<int32_t> place_;  // row of the table -> row of the subsample, or -1
    std::vector<int32_t> known_;  // values that are not missing
    std::vector<char> tied_;      // features with equal values
    std::vector<char> is_ready_;  // features whose columns are filled
    std::vector<int32_t> rows_;   // rows of the table in the subsample
    std::vector<Datum> data_;     // their responses and weights
    std::vector<int32_t> rank_, order_;  // as in `Table`
    std::vector<double> sorted_;
    std::vector<double> value_;  // of one feature
    bool uneven_ = false;
};

}  // namespace vstatkit

#endif
