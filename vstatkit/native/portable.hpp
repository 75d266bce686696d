// Operations that compilers spell differently: the upper half of a product, the lowest bit.

#ifndef VSTATKIT_PORTABLE_HPP
#define VSTATKIT_PORTABLE_HPP

#include <cstdint>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

namespace vstatkit {

// The upper 64 of the 128 bits of a product, from products of halves.
inline uint64_t upper_product_of_halves(uint64_t a, uint64_t b) {
    const uint64_t mask = 0xffffffffULL;
    const uint64_t a_low = a & mask, a_high = a >> 32;
    const uint64_t b_low = b & mask, b_high = b >> 32;
    const uint64_t first = a_low * b_low;
    const uint64_t second = a_high * b_low + (first >> 32);
    const uint64_t third = a_low * b_high + (second & mask);
    return a_high * b_high + (second >> 32) + (third >> 32);
}

inline uint64_t upper_product(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#elif defined(_MSC_VER) && defined(_M_X64)
    return __umulh(a, b);
#else
    return upper_product_of_halves(a, b);
#endif
}

// The place of the lowest bit of a number above zero, by de Bruijn's sequence: its
// shifts by 0 to 63 places begin with 64 different groups of six bits.
inline int lowest_bit_by_table(uint64_t bits) {
    static constexpr int8_t kPlace[64] = {
        0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28,
        62, 5,  39, 46, 44, 42, 22, 9,  24, 35, 59, 56, 49, 18, 29, 11,
        63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
        51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12};
    return kPlace[((bits & (~bits + 1)) * 0x022fdd63cc95386dULL) >> 58];
}

inline int lowest_bit(uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#elif defined(_MSC_VER) && defined(_M_X64)
    unsigned long place;
    _BitScanForward64(&place, bits);
    return static_cast<int>(place);
#else
    return lowest_bit_by_table(bits);
#endif
}

}  // namespace vstatkit

#endif
