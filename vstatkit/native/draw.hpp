// Draw subsamples: one stream of random numbers for each learner.

#ifndef VSTATKIT_DRAW_HPP
#define VSTATKIT_DRAW_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include "grow.hpp"
#include "portable.hpp"

namespace vstatkit {

// splitmix64: a counter and a mixer, as good as independent for different keys.
class Stream {
  public:
    explicit Stream(uint64_t key) : state_(key) {}

    // A whole number below `bound`, every one equally likely (Lemire 2019).
    uint64_t below(uint64_t bound) {
        uint64_t drawn = next();
        if (drawn * bound < bound) {
            const uint64_t least = (0 - bound) % bound;
            while (drawn * bound < least) drawn = next();
        }
        return upper_product(drawn, bound);
    }

  private:
    uint64_t next() {
        const uint64_t drawn = mix(state_);
        state_ += 0x9e3779b97f4a7c15ULL;
        return drawn;
    }

    uint64_t state_;
};

// Draw k of n units for every key, with replacement or without.
inline void draw_members(const uint64_t* keys, int64_t n_keys, int64_t n, int64_t k,
                         bool replace, int64_t* out) {
    std::vector<int64_t> units;
    std::vector<int64_t> picks(replace ? 0 : k);
    if (!replace) {
        units.resize(n);
        for (int64_t i = 0; i < n; ++i) units[i] = i;
    }
    for (int64_t b = 0; b < n_keys; ++b) {
        Stream stream(keys[b]);
        int64_t* row = out + b * k;
        if (replace) {
            for (int64_t j = 0; j < k; ++j) row[j] = stream.below(n);
            continue;
        }
        for (int64_t j = 0; j < k; ++j) {
            picks[j] = j + stream.below(n - j);
            std::swap(units[j], units[picks[j]]);
            row[j] = units[j];
        }
        for (int64_t j = k; j-- > 0;) std::swap(units[j], units[picks[j]]);  // undo
    }
}

}  // namespace vstatkit

#endif
