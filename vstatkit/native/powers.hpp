// Powers of the contributions of single units, summed over the units. The table of all
// contributions (units x columns) is never made: a unit's row stays in registers.

#ifndef VSTATKIT_POWERS_HPP
#define VSTATKIT_POWERS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// Compiled for wider registers too, where the compiler can choose at run time.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define VSTATKIT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define VSTATKIT_WIDE
#endif

// A row of sums in registers: compilers other than GCC and Clang find them themselves.
#if defined(__GNUC__)
#define VSTATKIT_INLINE inline __attribute__((always_inline))
#else
#define VSTATKIT_INLINE inline
#endif

namespace vstatkit {

// Learners that drew each unit.
struct UnitDraws {
    int64_t n_units;
    const int32_t* bounds;    // (n_units + 1)
    const int32_t* learners;  // unit after unit
    const float* counts;      // how often; null where it counts as once
    const double* scale;      // (n_units) what a unit's sum is multiplied by
    const double* tilt;       // (n_units) a second weight; null if plain powers are enough
};

constexpr int kBytes = 256;  // of a block's row: it fits into registers
constexpr size_t kLine = 64;  // of the cache, in bytes
constexpr int kPowers = 6;

#if defined(__GNUC__)
template <class Real>
struct Row {
    typedef Real Lane __attribute__((vector_size(32)));
    typedef Real Loose __attribute__((vector_size(32), aligned(sizeof(Real)), may_alias));
    static constexpr int kLanes = kBytes / 32;
    Lane lane[kLanes];

    VSTATKIT_INLINE void add(const Real* row) {
        const Loose* from = reinterpret_cast<const Loose*>(row);
#pragma GCC unroll 8
        for (int v = 0; v < kLanes; ++v) lane[v] += from[v];
    }

    VSTATKIT_INLINE void add(const Real* row, Real count) {
        const Loose* from = reinterpret_cast<const Loose*>(row);
#pragma GCC unroll 8
        for (int v = 0; v < kLanes; ++v) lane[v] += count * from[v];
    }
};
#else
template <class Real>
struct Row {
    static constexpr int kColumns = kBytes / sizeof(Real);
    Real column[kColumns];

    void add(const Real* row) {
        for (int c = 0; c < kColumns; ++c) column[c] += row[c];
    }

    void add(const Real* row, Real count) {
        for (int c = 0; c < kColumns; ++c) column[c] += count * row[c];
    }
};
#endif

// Add the powers of all units to `powers` (kPowers, columns). `block` (learners, columns)
// holds centred values. For t = scale * sum of count * value these are t^2, t^3, t^4,
// tilt * t, (tilt * t)^2 and tilt * t^2, in double precision whatever the values have.
template <class Real>
VSTATKIT_INLINE void add_block(const UnitDraws& draws, const Real* block, double* powers) {
    constexpr int kColumns = kBytes / sizeof(Real);
    for (int64_t i = 0; i < draws.n_units; ++i) {
        const int32_t begin = draws.bounds[i], end = draws.bounds[i + 1];
        if (begin == end) continue;
        Row<Real> sum = {};
        if (draws.counts) {
            for (int32_t e = begin; e < end; ++e)
                sum.add(block + static_cast<size_t>(draws.learners[e]) * kColumns,
                        static_cast<Real>(draws.counts[e]));
        } else {
            for (int32_t e = begin; e < end; ++e)
                sum.add(block + static_cast<size_t>(draws.learners[e]) * kColumns);
        }
        Real total[kColumns];
        std::memcpy(total, &sum, sizeof sum);
        const double scale = draws.scale[i];
        double* p = powers;
        if (!draws.tilt) {
            for (int c = 0; c < kColumns; ++c) {
                const double t = scale * total[c], square = t * t;
                p[c] += square;
                p[kColumns + c] += square * t;
                p[2 * kColumns + c] += square * square;
            }
            continue;
        }
        const double tilt = draws.tilt[i];
        for (int c = 0; c < kColumns; ++c) {
            const double t = scale * total[c], square = t * t, tilted = tilt * t;
            p[c] += square;
            p[kColumns + c] += square * t;
            p[2 * kColumns + c] += square * square;
            p[3 * kColumns + c] += tilted;
            p[4 * kColumns + c] += tilted * tilted;
            p[5 * kColumns + c] += tilted * t;
        }
    }
}

VSTATKIT_WIDE inline void add_block_powers(const UnitDraws& draws, const double* block,
                                           double* powers) {
    add_block(draws, block, powers);
}

VSTATKIT_WIDE inline void add_block_powers(const UnitDraws& draws, const float* block,
                                           double* powers) {
    add_block(draws, block, powers);
}

// Numbers that begin with a line of the cache: rows that straddle lines cost half as much
// again to add up.
template <class Real>
class Aligned {
public:
    explicit Aligned(size_t size) : space_(size + kLine / sizeof(Real)) {
        const size_t past = reinterpret_cast<uintptr_t>(space_.data()) % kLine;
        first_ = space_.data() + (past ? (kLine - past) / sizeof(Real) : 0);
    }
    Real& operator[](size_t j) { return first_[j]; }

private:
    std::vector<Real> space_;
    Real* first_;
};

// Add the powers of columns `first` to `last` of values (n_learners, m), from which
// `origin` (m) is subtracted, to `powers` (kPowers, m). `Real` is the precision of the
// sums over learners.
template <class Real>
void add_powers(const UnitDraws& draws, const double* values, int64_t n_learners, int64_t m,
                const double* origin, int64_t first, int64_t last, double* powers) {
    constexpr int kColumns = kBytes / sizeof(Real);
    Aligned<Real> block(static_cast<size_t>(n_learners) * kColumns);
    for (int64_t begin = first; begin < last; begin += kColumns) {
        const int64_t width = std::min<int64_t>(last - begin, kColumns);
        for (int64_t b = 0; b < n_learners; ++b)
            for (int64_t c = 0; c < width; ++c)
                block[b * kColumns + c] =
                    static_cast<Real>(values[b * m + begin + c] - origin[begin + c]);
        double sums[kPowers * kColumns] = {0};
        add_block_powers(draws, &block[0], sums);
        for (int q = 0; q < kPowers; ++q)
            for (int64_t c = 0; c < width; ++c)
                powers[q * m + begin + c] += sums[q * kColumns + c];
    }
}

}  // namespace vstatkit

#endif
