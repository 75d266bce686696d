// Squared error: leaves predict the mean.

#ifndef VSTATKIT_VARIANCE_HPP
#define VSTATKIT_VARIANCE_HPP

#include "criterion.hpp"

namespace vstatkit {

class Variance : public MeanNode {
  public:
    explicit Variance(const Options&) : ends_(1) {}

    class Walk {
      public:
        Walk(const Datum* data, double mean, double whole, const Order& order,
             bool missing_left)
            : data_(data), mean_(mean), whole_(whole) {
            if (!missing_left) return;
            double sum = 0, weight = 0;
            for (int j = 0; j < order.count; ++j) {
                const Datum& datum = data[order.rows[j]];
                sum += datum.weight * (datum.y - mean);
                weight += datum.weight;
            }
            sum_ = -sum;
            weight_ = whole - weight;
        }

        void add(int32_t row, int) {
            const Datum& datum = data_[row];
            sum_ += datum.weight * (datum.y - mean_);
            weight_ += datum.weight;
        }

        double gain() const {
            return sum_ * sum_ * whole_ / (weight_ * (whole_ - weight_));
        }

      private:
        const Datum* data_;
        double mean_, whole_;
        double sum_ = 0, weight_ = 0;  // centred responses, and weights, on the left
    };

    Walk walk(const Order& order, const Missing&, bool missing_left) const {
        return {data_, mean_, whole_, order, missing_left};
    }

    struct Part : MeanPart {
        static double gain(const Ends& ends) { return ends.squares(); }
    };

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{{mean_}}};
    }

  private:
    Ends ends_;
};

}  // namespace vstatkit

#endif
