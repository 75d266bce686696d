// A tree's own rows, numbered anew: their table is small enough to stay in the cache.

#ifndef VSTATKIT_SUBSAMPLE_HPP
#define VSTATKIT_SUBSAMPLE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

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
          table_sorter_(table.n_rows),
          place_(table.n_rows),
          known_(table.n_features),
          tied_(table.n_features),
          compact_(table.n_features) {}

    // Take the rows with positive weight.
    void take(const double* weight) {
        const int n = table_.n_rows;
        own_.resize(n);
        int32_t count = 0;
        for (int i = 0; i < n; ++i) {
            const bool in = weight[i] > 0;
            own_[count] = i;
            place_[i] = in ? count : -1;
            count += in;
        }
        own_.resize(count);
        take_data(weight);
        const size_t size = own_.size() * table_.n_features;
        if (rank_.size() < size) {
            rank_.resize(size);
            order_.resize(size);
            sorted_.resize(size);
        }
        std::fill(compact_.begin(), compact_.end(), 0);
    }

    int size() const { return static_cast<int>(own_.size()); }
    bool has_levels(int f) const { return table_.levels[f] > 0; }
    int n_features() const { return table_.n_features; }
    const Datum* data() const { return data_.data(); }

    // Whether weights differ by many orders of magnitude.
    bool uneven() const { return uneven_; }

    // Whether row `i` of the table is in the subsample.
    bool holds(int i) const { return place_[i] >= 0; }

    // A feature's columns are filled when the feature is first tried.
    void need(int f) {
        if (!compact_[f]) compact(f);
    }

    const int32_t* rank(int f) const { return rank_.data() + first(f); }
    const int32_t* order(int f) const { return order_.data() + first(f); }
    const double* sorted(int f) const { return sorted_.data() + first(f); }
    int32_t known(int f) const { return known_[f]; }
    bool tied(int f) const { return tied_[f]; }

    double value(int f, int32_t row) const {
        const size_t base = first(f);
        return sorted_[base + rank_[base + row]];
    }

  private:
    size_t first(int f) const { return static_cast<size_t>(f) * own_.size(); }

    void take_data(const double* weight) {
        const size_t m = own_.size();
        data_.resize(m);
        double least = INFINITY, total = 0;
        for (size_t j = 0; j < m; ++j) {
            const int i = own_[j];
            data_[j] = {y_[i], weight[i]};
            least = std::min(least, weight[i]);
            total += weight[i];
        }
        uneven_ = least < kEven * total || total < kRange || total > 1 / kRange;
    }

    void compact(int f) {
        const size_t m = own_.size();
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        const int32_t* table_rank = table_.rank + base;
        const int32_t* table_order = table_.order + base;
        const double* value = table_.sorted + base;
        int32_t* rank = rank_.data() + first(f);
        int32_t* order = order_.data() + first(f);
        double* sorted = sorted_.data() + first(f);
        size_t r = 0;
        if (2 * m > static_cast<size_t>(table_.n_rows)) {
            // Most rows are in the subsample: pass over the others.
            for (size_t global = 0; r < m; ++global) {
                const int32_t j = place_[table_order[global]];
                order[r] = j;
                sorted[r] = value[global];
                r += j >= 0;
            }
        } else {
            for (size_t j = 0; j < m; ++j) table_sorter_.insert(table_rank[own_[j]]);
            table_sorter_.drain([&](int32_t global) {
                order[r] = place_[table_order[global]];
                sorted[r] = value[global];
                ++r;
            });
        }
        bool tied = false;
        for (r = 1; r < m; ++r) tied |= sorted[r] == sorted[r - 1];
        int32_t known = static_cast<int32_t>(m);
        while (known > 0 && std::isnan(sorted[known - 1])) --known;
        for (r = 0; r < m; ++r) rank[order[r]] = static_cast<int32_t>(r);
        known_[f] = known;
        tied_[f] = tied;
        compact_[f] = 1;
    }

    static constexpr double kEven = 1e-10;   // least weight of a row, of all weight
    static constexpr double kRange = 1e-60;  // cubes of sums stay in range above it

    const Table& table_;
    const double* y_;
    BitSorter table_sorter_;      // of the subsample's ranks in the table
    std::vector<int32_t> place_;  // row of the table -> row of the subsample, or -1
    std::vector<int32_t> known_;  // values that are not missing
    std::vector<char> tied_;      // features with equal values
    std::vector<char> compact_;   // features whose columns are filled
    std::vector<int32_t> own_;    // rows of the table in the subsample
    std::vector<Datum> data_;     // their responses and weights
    std::vector<int32_t> rank_, order_;  // as in `Table`
    std::vector<double> sorted_;
    bool uneven_ = false;
};

}  // namespace vstatkit

#endif
