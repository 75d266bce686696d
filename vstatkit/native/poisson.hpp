// Poisson deviance: leaves predict the mean of responses that are not negative.

#ifndef VSTATKIT_POISSON_HPP
#define VSTATKIT_POISSON_HPP

#include <cmath>

#include "criterion.hpp"

namespace vstatkit {

class Poisson : public MeanNode {
  public:
    explicit Poisson(const Options&) : ends_(1) {}

    // Half the reduction in deviance, from sums of centred responses, so that a row that
    // outweighs all others costs no digits. A split with a side without events is not
    // allowed.
    struct Part : MeanPart {
        double gain(const Ends& ends) const {
            const double left = ends.left[0] / (ends.left_weight * mean);
            const double right = ends.right[0] / (ends.right_weight * mean);
            if (1 + left <= kRounding || 1 + right <= kRounding) return -1;
            const double gain = mean * (ends.left_weight * side(left) +
                                        ends.right_weight * side(right));
            return gain > kRounding * std::abs(ends.left[0]) ? gain : 0;
        }

        // `excess` is that of the side's mean, relative to the node's. The linear part
        // adds up to zero over both sides; without it no side is negative.
        static double side(double excess) {
            return (1 + excess) * std::log1p(excess) - excess;
        }
    };

    EndsWalk<Part> walk(const Order& order, const Missing& missing, bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{{mean_}}};
    }

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return walk(order, missing, missing_left);
    }

  private:
    Ends ends_;
};

}  // namespace vstatkit

#endif
