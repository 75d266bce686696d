// Counts of many units in few subsamples: gathered, and multiplied, in sparse form.

#ifndef VSTATKIT_COUNTS_HPP
#define VSTATKIT_COUNTS_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

namespace vstatkit {

// Count how often each unit occurs in every row of `members` (n_rows, k). Writes the
// units that occur and their counts, row after row, and where each row ends.
inline void count_sparse(const int64_t* members, int64_t n_rows, int64_t k, int64_t n,
                         int32_t* units, double* counts, int64_t* ends) {
    std::vector<int64_t> slot(n, -1);
    int64_t end = 0;
    for (int64_t b = 0; b < n_rows; ++b) {
        const int64_t begin = end;
        for (int64_t j = 0; j < k; ++j) {
            const int64_t unit = members[b * k + j];
            if (slot[unit] >= begin) {
                counts[slot[unit]] += 1;
                continue;
            }
            slot[unit] = end;
            units[end] = static_cast<int32_t>(unit);
            counts[end++] = 1;
        }
        ends[b] = end;
    }
}

// A learner that a unit occurs in, and how often it does.
struct Entry {
    int32_t learner;
    int32_t count;
};

// Four at a time, so that the row is read and written once for four of them.
inline void add_four(const Entry* entry, const double* values, int64_t m, double* row) {
    const double* first = values + entry[0].learner * m;
    const double* second = values + entry[1].learner * m;
    const double* third = values + entry[2].learner * m;
    const double* fourth = values + entry[3].learner * m;
    const double n1 = entry[0].count, n2 = entry[1].count;
    const double n3 = entry[2].count, n4 = entry[3].count;
    for (int64_t c = 0; c < m; ++c)
        row[c] += (n1 * first[c] + n2 * second[c]) + (n3 * third[c] + n4 * fourth[c]);
}

// Add the transposed counts (n, L) times `values` (L, m) to `table` (n, m). A unit's
// learners are brought together first, so that its row is added up in registers
// while the values stay in the cache.
inline void add_product(const int64_t* ends, const int32_t* units, const double* counts,
                        int64_t n_rows, const double* values, int64_t m, int64_t n,
                        double* table) {
    const int64_t n_entries = n_rows ? ends[n_rows - 1] : 0;
    std::vector<int64_t> next(n + 1, 0);
    for (int64_t e = 0; e < n_entries; ++e) ++next[units[e] + 1];
    for (int64_t i = 0; i < n; ++i) next[i + 1] += next[i];
    std::vector<Entry> entries(n_entries);
    for (int64_t b = 0, e = 0; b < n_rows; ++b)
        for (; e < ends[b]; ++e)
            entries[next[units[e]]++] = {static_cast<int32_t>(b),
                                         static_cast<int32_t>(counts[e])};
    for (int64_t i = 0; i < n; ++i) {
        const int64_t end = next[i];
        int64_t e = i ? next[i - 1] : 0;
        double* row = table + i * m;
        for (; e + 4 <= end; e += 4) add_four(&entries[e], values, m, row);
        for (; e < end; ++e) {
            const double* value = values + entries[e].learner * m;
            for (int64_t c = 0; c < m; ++c) row[c] += entries[e].count * value[c];
        }
    }
}

}  // namespace vstatkit

#endif
