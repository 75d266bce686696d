// Poisson deviance: leaves predict the mean of responses that are not negative.

#ifndef VSTATKIT_POISSON_HPP
#define VSTATKIT_POISSON_HPP

#include <cmath>

#include "criterion.hpp"

namespace vstatkit {

class Poisson : public MeanNode {
  public:
    explicit Poisson(const Options&) : ends_(1) {}

    // Half the fall in deviance. A side without any event has no rate: its split is no
    // split.
    struct Part {
        double mean;
        static constexpr size_t place(const Datum&) { return 0; }
        static double share(const Datum& datum) { return datum.weight * datum.y; }

        double gain(const Ends& ends) const {
            if (ends.left[0] <= 0 || ends.right[0] <= 0) return -1;
            const double left = side(ends.left[0], ends.left_weight);
            const double right = side(ends.right[0], ends.right_weight);
            const double sum = ends.left[0] + ends.right[0];
            return left + right > kNothing * sum ? left + right : 0;
        }

        // The logarithm's linear part adds up to zero over both sides; without it no
        // side is negative.
        double side(double sum, double weight) const {
            const double ratio = sum / (weight * mean);
            return weight * mean * (ratio * std::log(ratio) - ratio + 1);
        }
    };

    EndsWalk<Part> walk(const Order& order, const Missing& missing, bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{mean_}};
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
