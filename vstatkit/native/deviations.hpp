// The sum of absolute deviations from the median, while rows are added.

#ifndef VSTATKIT_DEVIATIONS_HPP
#define VSTATKIT_DEVIATIONS_HPP

#include <cstdint>
#include <vector>

namespace vstatkit {

// Sums over the places before any place, in logarithmic time (a Fenwick tree).
class RunningSums {
  public:
    struct Sums {
        double weight = 0, product = 0;
    };

    void start(int size) {
        sums_.assign(size + 1, Sums{});
        top_ = 1;
        while (2 * top_ <= size) top_ *= 2;
    }

    void add(int place, double weight, double product) {
        const int end = static_cast<int>(sums_.size());
        for (int i = place + 1; i < end; i += i & -i) {
            sums_[i].weight += weight;
            sums_[i].product += product;
        }
    }

    Sums sum_before(int place) const {
        Sums sum;
        for (int i = place; i > 0; i -= i & -i) {
            sum.weight += sums_[i].weight;
            sum.product += sums_[i].product;
        }
        return sum;
    }

    // Find the first place up to which the weights add up to `weight`.
    int find_place(double weight) const {
        const int last = static_cast<int>(sums_.size()) - 1;
        int place = 0;
        for (int step = top_; step > 0; step /= 2) {
            if (place + step > last || sums_[place + step].weight >= weight) continue;
            place += step;
            weight -= sums_[place].weight;
        }
        return place < last ? place : last - 1;
    }

  private:
    int top_ = 1;  // largest power of two up to the size
    std::vector<Sums> sums_;
};

// Rows are identified by their places in the order of the response. Rows below and above
// the median are summed separately, so that a row that outweighs all others costs no
// digits.
class Deviations {
  public:
    // `values` are the responses by place.
    void start(const double* values, int size) {
        values_ = values;
        size_ = size;
        whole_ = 0;
        below_.start(size);
        above_.start(size);
    }

    void add(int place, double weight) {
        const double product = weight * values_[place];
        below_.add(place, weight, product);
        above_.add(size_ - 1 - place, weight, product);
        whole_ += weight;
    }

    double sum() const {
        const int middle = below_.find_place(whole_ / 2);
        const double median = values_[middle];
        const RunningSums::Sums below = below_.sum_before(middle);
        const RunningSums::Sums above = above_.sum_before(size_ - 1 - middle);
        return (above.product - median * above.weight) +
               (median * below.weight - below.product);
    }

  private:
    const double* values_ = nullptr;
    int size_ = 0;
    double whole_ = 0;
    RunningSums below_, above_;
};

}  // namespace vstatkit

#endif
