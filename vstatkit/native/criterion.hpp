// The interface of criteria, and their common parts.
//
// A criterion holds the rows of one node at a time. It computes the gains of splits and
// the prediction of a leaf. The grower is a template over it:
//
//     Criterion(const Options&)
//     start(subsample)       take a subsample
//     reset(rows)            take the rows of a node
//     is_pure()              whether their responses are all equal
//     walk(order, missing, missing_left), careful_walk(...)
//                            a walk over the splits of one feature: `add(row, j)` moves
//                            the j-th row from right to left, `gain()` computes the
//                            gain of the split, or -1 if it is not allowed
//     width(), write_leaf(out)
//                            the number of values of a leaf, and the values
//     only_class()           class of all rows, or -1, for several classes
//     score_levels(levels, score)
//                            scores that order the levels of an unordered factor
//
// The careful walk is for weights that differ by many orders of magnitude. Walks are
// small and passed by value, so that they stay in registers.

#ifndef VSTATKIT_CRITERION_HPP
#define VSTATKIT_CRITERION_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "levels.hpp"
#include "order.hpp"
#include "subsample.hpp"

namespace vstatkit {

// Relative gains below this are rounding errors.
constexpr double kRounding = 1e-12;

// A node whose leaf predicts the mean.
class MeanNode {
  public:
    void start(const Subsample& subsample) { data_ = subsample.data(); }

    void reset(Rows rows) {
        const Datum first = data_[rows.first[0]];
        double sum = 0, weight = 0;
        bool pure = true;
        for (int j = 0; j < rows.size; ++j) {
            const Datum& datum = data_[rows.first[j]];
            sum += datum.weight * datum.y;
            weight += datum.weight;
            pure &= datum.y == first.y;
        }
        whole_ = weight;
        pure_ = pure;
        mean_ = pure ? first.y : sum / weight;
    }

    bool is_pure() const { return pure_; }
    static constexpr int width() { return 1; }
    void write_leaf(double* out) const { out[0] = mean_; }
    static constexpr int only_class() { return -1; }

    void score_levels(LevelRows levels, double* score) const {
        compute_level_means(data_, levels, score);
    }

  protected:
    const Datum* data_ = nullptr;
    double mean_ = 0, whole_ = 0;
    bool pure_ = false;
};

// Sums over both sides of a split, each added up from its own end: if weights differ
// much, subtracting one side from the total would lose digits.
struct Ends {
    explicit Ends(int width) : left(width), right(width) {}

    // Weighted squares between the two sides.
    double squares() const {
        double apart = 0;
        for (size_t c = 0; c < left.size(); ++c) {
            const double step = left[c] / left_weight - right[c] / right_weight;
            apart += step * step;
        }
        return left_weight * (right_weight / (left_weight + right_weight)) * apart;
    }

    std::vector<double> left, right;
    double left_weight = 0, right_weight = 0;
    std::vector<double> right_sum, right_sum_weight;  // after each row
};

// A walk over sums of both sides. A part defines to which sum a row adds (`place`), how
// much (`share`), and the gain of the sums (`gain`).
template <class Part>
class EndsWalk {
  public:
    EndsWalk(Ends& ends, const Datum* data, const Order& order, const Missing& missing,
             bool missing_left, Part part)
        : ends_(ends), data_(data), part_(part) {
        std::fill(ends.left.begin(), ends.left.end(), 0.0);
        std::fill(ends.right.begin(), ends.right.end(), 0.0);
        ends.left_weight = ends.right_weight = 0;
        const size_t count = order.count;
        if (ends.right_sum.size() < count) {
            ends.right_sum.resize(count);
            ends.right_sum_weight.resize(count);
        }
        std::vector<double>& sums = missing_left ? ends.left : ends.right;
        double& weight = missing_left ? ends.left_weight : ends.right_weight;
        if (order.missing)
            missing.for_each([&](int32_t row) {
                sums[part.place(data[row])] += part.share(data[row]);
                weight += data[row].weight;
            });
        for (int j = order.count; j-- > 0;) {
            const Datum& datum = data[order.rows[j]];
            double& sum = ends.right[part.place(datum)];
            ends.right_sum[j] = sum;
            ends.right_sum_weight[j] = ends.right_weight;
            sum += part.share(datum);
            ends.right_weight += datum.weight;
        }
    }

    void add(int32_t row, int j) {
        const Datum& datum = data_[row];
        const size_t place = part_.place(datum);
        ends_.left[place] += part_.share(datum);
        ends_.right[place] = ends_.right_sum[j];
        ends_.left_weight += datum.weight;
        ends_.right_weight = ends_.right_sum_weight[j];
    }

    double gain() const { return part_.gain(ends_); }

  private:
    Ends& ends_;
    const Datum* data_;
    Part part_;
};

// The part of criteria whose leaves predict the mean: sums of centred responses.
struct MeanPart {
    double mean;
    static constexpr size_t place(const Datum&) { return 0; }
    double share(const Datum& datum) const { return datum.weight * (datum.y - mean); }
};

}  // namespace vstatkit

#endif
