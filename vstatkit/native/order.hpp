// A node's rows in ascending order of one feature.

#ifndef VSTATKIT_ORDER_HPP
#define VSTATKIT_ORDER_HPP

#include <cstdint>
#include <vector>

#include "sort.hpp"
#include "subsample.hpp"

namespace vstatkit {

// Rows of a node, numbered in its subsample.
struct Rows {
    const int32_t* first;
    int size;
};

// A node's rows sorted by one feature, without those that miss it.
struct Order {
    const int32_t* rows;
    int count;
    int missing;
};

// The rows of a node that miss a feature.
struct Missing {
    Rows node;
    const int32_t* rank;
    int32_t known;

    template <class Visit>
    void for_each(Visit visit) const {
        for (int j = 0; j < node.size; ++j)
            if (rank[node.first[j]] >= known) visit(node.first[j]);
    }
};

// Sorts a node's rows by their ranks, and keeps the last order for the children, in case
// that feature is split.
class RowSorter {
  public:
    // Start with a subsample of `size` rows.
    void start(int size) {
        sorter_.set_bound(size);
        if (sorted_.size() < static_cast<size_t>(size)) sorted_.resize(size);
    }

    // Feature by which the node's rows are sorted, or -1.
    int ordered_by() const { return ordered_by_; }
    void set_ordered_by(int f) { ordered_by_ = f; }

    // `begin` is the node's place among all rows: every node writes to its own part,
    // which its ancestors no longer need.
    Order sort(const Subsample& subsample, int f, Rows node, int begin) {
        const int32_t known = subsample.n_known(f);
        const int32_t* order = subsample.order(f);
        if (node.size == subsample.size())  // the root
            return {order, known, node.size - known};
        int32_t* sorted = sorted_.data() + begin;
        if (ordered_by_ == f) return {sorted, node.size, 0};
        const int32_t* rank = subsample.rank(f);
        int count = 0;
        if (node.size <= kSmall) {
            count = place_by_counting(node.first, node.size, rank, known, sorted);
        } else {
            count = sorter_.sort(
                node.size, known, [&](int j) { return rank[node.first[j]]; },
                [&](int place, int32_t r) { sorted[place] = order[r]; });
        }
        ordered_by_ = count == node.size ? f : -1;
        return {sorted, count, node.size - count};
    }

  private:
    DigitSorter sorter_;           // of a node's ranks in the subsample
    std::vector<int32_t> sorted_;  // rows of all pending nodes
    int ordered_by_ = -1;
};

}  // namespace vstatkit

#endif
