// Random numbers from keys.

#ifndef VSTATKIT_RANDOM_HPP
#define VSTATKIT_RANDOM_HPP

#include <cstdint>

namespace vstatkit {

// One step of splitmix64.
inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// A number in [0, 1) from the upper 53 bits.
inline double unit_number(uint64_t bits) {
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace vstatkit

#endif
