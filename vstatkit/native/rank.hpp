// Rank values, missing ones last; equal values keep their order.

#ifndef VSTATKIT_RANK_HPP
#define VSTATKIT_RANK_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace vstatkit {

// Sorts by the upper half of the values' bits, digit by digit, and then the few that
// agree there by the lower half.
class ValueSorter {
  public:
    // Write the places of `count` values in ascending order to `order`.
    void sort(const double* values, size_t count, int32_t* order) {
        if (keyed_.size() < count) {
            keyed_.resize(count);
            spare_.resize(count);
        }
        std::fill(first_, first_ + kDigits * kBuckets, 0);
        for (size_t j = 0; j < count; ++j) {
            const uint64_t key = key_of(values[j]);
            keyed_[j] = {key, static_cast<int32_t>(j)};
            for (int d = 0; d < kDigits; ++d) ++first_[d * kBuckets + digit(key, d)];
        }
        for (int d = 0; d < kDigits; ++d) spread(d, count);
        sort_runs(count);
        for (size_t j = 0; j < count; ++j) order[j] = keyed_[j].place;
    }

  private:
    struct Keyed {
        uint64_t key;
        int32_t place;
    };

    static constexpr int kDigits = 3, kBits = 11, kBuckets = 1 << kBits, kLower = 31;

    // Unsigned numbers in the order of the values: both zeros alike, missing ones last.
    static uint64_t key_of(double value) {
        if (value != value) return ~uint64_t{0};
        if (value == 0) value = 0;  // of either sign
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        const uint64_t sign = uint64_t{1} << 63;
        return bits & sign ? ~bits : bits | sign;
    }

    static size_t digit(uint64_t key, int d) {
        return (key >> (kLower + d * kBits)) & (kBuckets - 1);
    }

    void spread(int d, size_t count) {
        uint32_t* first = first_ + d * kBuckets;
        uint32_t sum = 0;
        for (int b = 0; b < kBuckets; ++b) {
            const uint32_t size = first[b];
            if (size == count) return;  // all have the same digit
            first[b] = sum;
            sum += size;
        }
        for (size_t j = 0; j < count; ++j)
            spare_[first[digit(keyed_[j].key, d)]++] = keyed_[j];
        keyed_.swap(spare_);
    }

    void sort_runs(size_t count) {
        for (size_t begin = 0, end = 0; begin < count; begin = end) {
            const uint64_t upper = keyed_[begin].key >> kLower;
            bool sorted = true;
            for (end = begin + 1; end < count && keyed_[end].key >> kLower == upper; ++end)
                sorted &= keyed_[end - 1].key <= keyed_[end].key;
            if (!sorted)
                std::stable_sort(
                    keyed_.begin() + begin, keyed_.begin() + end,
                    [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
        }
    }

    std::vector<Keyed> keyed_, spare_;
    uint32_t first_[kDigits * kBuckets];
};

}  // namespace vstatkit

#endif
