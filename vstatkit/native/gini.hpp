// Gini impurity: leaves predict the shares of the classes.

#ifndef VSTATKIT_GINI_HPP
#define VSTATKIT_GINI_HPP

#include <vector>

#include "classes.hpp"

namespace vstatkit {

class Gini : public ClassNode {
  public:
    using ClassNode::ClassNode;

    class Walk : public ClassSides {
      public:
        Walk(Gini& node, const Order& order, bool missing_left)
            : ClassSides(node.data_, node.left_, node.right_, node.total_, node.whole_,
                         order, missing_left) {
            const std::vector<double>& total = node.total_;
            double square_total = 0;
            for (size_t c = 0; c < total.size(); ++c) {
                square_left_ += left_[c] * left_[c];
                square_right_ += right_[c] * right_[c];
                square_total += total[c] * total[c];
            }
            before_ = square_total / whole_;
        }

        void add(int32_t row, int) {
            const Datum& datum = data_[row];
            const int c = static_cast<int>(datum.y);
            const double w = datum.weight;
            square_left_ += w * (2 * left_[c] + w);
            square_right_ -= w * (2 * right_[c] - w);
            left_[c] += w;
            right_[c] -= w;
            weight_ += w;
        }

        double gain() const {
            const double gain =
                square_left_ / weight_ + square_right_ / (whole_ - weight_) - before_;
            return gain > 0 ? gain : 0;  // below zero by rounding only
        }

      private:
        double before_ = 0, square_left_ = 0, square_right_ = 0;
    };

    Walk walk(const Order& order, const Missing&, bool missing_left) {
        return {*this, order, missing_left};
    }

    struct Part : ClassPart {
        static double gain(const Ends& ends) { return ends.squares(); }
    };

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{}};
    }
};

}  // namespace vstatkit

#endif
