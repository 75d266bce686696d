// Sort ranks: many of them in a bitmap, a node's digit by digit, a few by counting.

#ifndef VSTATKIT_SORT_HPP
#define VSTATKIT_SORT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "portable.hpp"

namespace vstatkit {

// Sorts many unique numbers below a bound: one bit each in a two-level bitmap.
class BitSorter {
  public:
    explicit BitSorter(int bound)
        : words_((bound >> 6) + 1, 0), summary_((bound >> 12) + 1, 0) {}

    void insert(int32_t number) {
        words_[number >> 6] |= 1ULL << (number & 63);
        summary_[number >> 12] |= 1ULL << ((number >> 6) & 63);
    }

    // Visit the numbers in ascending order and leave the bitmap empty.
    template <class Visit>
    void drain(Visit visit) {
        for (size_t s = 0; s < summary_.size(); ++s) {
            uint64_t outer = summary_[s];
            summary_[s] = 0;
            while (outer) {
                const size_t w = (s << 6) + lowest_bit(outer);
                outer &= outer - 1;
                uint64_t inner = words_[w];
                words_[w] = 0;
                const int32_t base = static_cast<int32_t>(w << 6);
                while (inner) {
                    visit(base + lowest_bit(inner));
                    inner &= inner - 1;
                }
            }
        }
    }

  private:
    std::vector<uint64_t> words_;
    std::vector<uint64_t> summary_;
};

// Sorts some whole numbers below a bound by their lower digit, then by their upper one.
class DigitSorter {
  public:
    // Begin anew with numbers below `bound`.
    void set_bound(size_t bound) {
        bits_ = 1;
        while ((size_t{1} << (2 * bits_)) < bound) ++bits_;
        lower_.assign(size_t{1} << bits_, 0);
        upper_.assign(size_t{1} << bits_, 0);
        if (numbers_.size() < bound) {
            numbers_.resize(bound);
            half_sorted_.resize(bound);
        }
    }

    // Sort those of `size` numbers that are below `known` and call
    // `emit(place, number)` for each. Returns how many there are.
    template <class Number, class Emit>
    int sort(int size, int32_t known, Number number, Emit emit) {
        const int bits = bits_;
        const int32_t mask = (1 << bits) - 1;
        int32_t *lower = lower_.data(), *upper = upper_.data();
        int32_t *numbers = numbers_.data(), *half_sorted = half_sorted_.data();
        const size_t n_digits = lower_.size();
        std::fill(lower, lower + n_digits, 0);
        std::fill(upper, upper + n_digits, 0);
        int count = 0;
        for (int j = 0; j < size; ++j) {
            const int32_t r = number(j);
            const bool counts = r < known;
            numbers[count] = r;
            count += counts;
            lower[r & mask] += counts;
            upper[r >> bits] += counts;
        }
        int32_t below_lower = 0, below_upper = 0;
        for (size_t d = 0; d < n_digits; ++d) {
            below_lower += std::exchange(lower[d], below_lower);
            below_upper += std::exchange(upper[d], below_upper);
        }
        for (int j = 0; j < count; ++j) half_sorted[lower[numbers[j] & mask]++] = numbers[j];
        for (int j = 0; j < count; ++j)
            emit(upper[half_sorted[j] >> bits]++, half_sorted[j]);
        return count;
    }

  private:
    int bits_ = 1;
    std::vector<int32_t> lower_, upper_;  // where the next number of a digit goes
    std::vector<int32_t> numbers_, half_sorted_;
};

constexpr int kTiny = 8;
constexpr int kSmall = 32;  // most rows that are placed by counting

// Sort those of at most `kSmall` rows whose rank is below `known`. The place of a row
// is the number of rows that rank lower. Returns how many there are.
inline int place_by_counting(const int32_t* rows, int size, const int32_t* rank, int known,
                             int32_t* sorted) {
    int32_t keys[kSmall], own[kSmall];
    int count = 0;
    for (int j = 0; j < size; ++j) {
        const int32_t r = rank[rows[j]];
        keys[count] = r;
        own[count] = rows[j];
        count += r < known;
    }
    if (count <= kTiny) {
        int place[kTiny] = {0};
        for (int j = 1; j < count; ++j)
            for (int i = 0; i < j; ++i) {
                const int lower = keys[i] < keys[j];
                place[j] += lower;
                place[i] += 1 - lower;
            }
        for (int j = 0; j < count; ++j) sorted[place[j]] = own[j];
        return count;
    }
    for (int j = 0; j < count; ++j) {
        int place = 0;
        for (int i = 0; i < count; ++i) place += keys[i] < keys[j];
        sorted[place] = own[j];
    }
    return count;
}

}  // namespace vstatkit

#endif
