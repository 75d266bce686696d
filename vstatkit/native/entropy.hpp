// Entropy, or log-loss: leaves predict the shares of the classes.

#ifndef VSTATKIT_ENTROPY_HPP
#define VSTATKIT_ENTROPY_HPP

#include <cmath>
#include <vector>

#include "classes.hpp"

namespace vstatkit {

// x log(x), zero at zero; what is below it is rounding.
inline double times_log(double x) { return x > 0 ? x * std::log(x) : 0; }

class Entropy : public ClassNode {
  public:
    using ClassNode::ClassNode;

    // A side of weight W, w_c of it in class c, is worth sum(w_c log w_c) - W log W.
    class Walk : public ClassSides {
      public:
        Walk(Entropy& node, const Order& order, bool missing_left)
            : ClassSides(node.data_, node.left_, node.right_, node.total_, node.whole_,
                         order, missing_left) {
            before_ = -times_log(whole_);
            for (size_t c = 0; c < node.total_.size(); ++c) {
                left_sum_ += times_log(left_[c]);
                right_sum_ += times_log(right_[c]);
                before_ += times_log(node.total_[c]);
            }
        }

        void add(int32_t row, int) {
            const Datum& datum = data_[row];
            const int c = static_cast<int>(datum.y);
            left_sum_ -= times_log(left_[c]);
            right_sum_ -= times_log(right_[c]);
            left_[c] += datum.weight;
            right_[c] -= datum.weight;
            left_sum_ += times_log(left_[c]);
            right_sum_ += times_log(right_[c]);
            weight_ += datum.weight;
        }

        double gain() const {
            const double gain = left_sum_ - times_log(weight_) + right_sum_ -
                                times_log(whole_ - weight_) - before_;
            return gain > kNothing * whole_ ? gain : 0;
        }

      private:
        double before_ = 0, left_sum_ = 0, right_sum_ = 0;
    };

    Walk walk(const Order& order, const Missing&, bool missing_left) {
        return {*this, order, missing_left};
    }

    struct Part : ClassPart {
        // Shares of the classes on each side, compared with those on both.
        static double gain(const Ends& ends) {
            const double left = ends.left_weight, right = ends.right_weight;
            double sum = 0;
            for (size_t c = 0; c < ends.left.size(); ++c) {
                const double all = (ends.left[c] + ends.right[c]) / (left + right);
                sum += divergence(ends.left[c], ends.left[c] / left / all) +
                       divergence(ends.right[c], ends.right[c] / right / all);
            }
            return sum > 0 ? sum : 0;
        }

        static double divergence(double weight, double ratio) {
            return weight > 0 ? weight * std::log(ratio) : 0;
        }
    };

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{}};
    }
};

}  // namespace vstatkit

#endif
