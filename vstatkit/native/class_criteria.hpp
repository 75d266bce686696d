// Criteria of classes, Gini impurity and entropy: leaves predict the shares of the classes.

#ifndef VSTATKIT_CLASS_CRITERIA_HPP
#define VSTATKIT_CLASS_CRITERIA_HPP

#include <algorithm>
#include <cmath>
#include <vector>

#include "criterion.hpp"

namespace vstatkit {

class ClassNode {
  public:
    explicit ClassNode(const Options& options)
        : left_(options.n_classes),
          right_(options.n_classes),
          total_(options.n_classes),
          ends_(options.n_classes) {}

    void start(const Subsample& subsample) { data_ = subsample.data(); }

    void reset(Rows rows) {
        const double first = data_[rows.first[0]].y;
        double whole = 0;
        bool pure = true;
        std::fill(total_.begin(), total_.end(), 0.0);
        for (int j = 0; j < rows.size; ++j) {
            const Datum& datum = data_[rows.first[j]];
            total_[static_cast<int>(datum.y)] += datum.weight;
            whole += datum.weight;
            pure &= datum.y == first;
        }
        whole_ = whole;
        pure_ = pure;
        class_ = static_cast<int>(first);
    }

    bool is_pure() const { return pure_; }

    // Of two classes only the share of the second is predicted.
    int width() const { return total_.size() > 2 ? static_cast<int>(total_.size()) : 1; }

    void write_leaf(double* out) const {
        if (total_.size() == 2) {
            out[0] = total_[1] / whole_;
            return;
        }
        for (size_t c = 0; c < total_.size(); ++c) out[c] = total_[c] / whole_;
    }

    int only_class() const { return pure_ ? class_ : -1; }

    void score_levels(LevelRows levels, double* score) {
        if (total_.size() > 2)
            component_.compute_scores(data_, levels, static_cast<int>(total_.size()),
                                      score);
        else
            compute_level_means(data_, levels, score);
    }

  protected:
    friend class ClassSides;
    const Datum* data_ = nullptr;
    std::vector<double> left_, right_, total_;
    double whole_ = 0;
    bool pure_ = false;
    int class_ = 0;
    LevelComponent component_;
    Ends ends_;
};

// Weights of the classes on both sides of a split, as rows go from right to left.
class ClassSides {
  public:
    ClassSides(ClassNode& node, const Order& order, bool missing_left)
        : data_(node.data_),
          left_(node.left_.data()),
          right_(node.right_.data()),
          total_(node.total_),
          whole_(node.whole_) {
        std::fill(node.left_.begin(), node.left_.end(), 0.0);
        std::copy(total_.begin(), total_.end(), right_);
        if (missing_left) take_missing(order);
    }

  protected:
    const Datum* data_;
    double *left_, *right_;  // weights of the classes on both sides
    const std::vector<double>& total_;
    double whole_, weight_ = 0;

  private:
    // Start with all rows on the left, and move the known ones to the right.
    void take_missing(const Order& order) {
        std::swap_ranges(left_, left_ + total_.size(), right_);
        weight_ = whole_;
        for (int j = 0; j < order.count; ++j) {
            const Datum& datum = data_[order.rows[j]];
            const int c = static_cast<int>(datum.y);
            left_[c] -= datum.weight;
            right_[c] += datum.weight;
            weight_ -= datum.weight;
        }
    }
};

// The sums of a careful walk: one weight for each class.
struct ClassPart {
    static size_t place(const Datum& datum) { return static_cast<size_t>(datum.y); }
    static double share(const Datum& datum) { return datum.weight; }
};

template <class Walk, class Part>
class ClassCriterion : public ClassNode {
  public:
    using ClassNode::ClassNode;

    Walk walk(const Order& order, const Missing&, bool missing_left) {
        return {*this, order, missing_left};
    }

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{}};
    }
};

class GiniWalk : public ClassSides {
  public:
    GiniWalk(ClassNode& node, const Order& order, bool missing_left)
        : ClassSides(node, order, missing_left) {
        double square_total = 0;
        for (size_t c = 0; c < total_.size(); ++c) {
            square_left_ += left_[c] * left_[c];
            square_right_ += right_[c] * right_[c];
            square_total += total_[c] * total_[c];
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

struct GiniPart : ClassPart {
    static double gain(const Ends& ends) { return ends.squares(); }
};

using Gini = ClassCriterion<GiniWalk, GiniPart>;

// x log(x), zero at zero; smaller values are rounding errors.
inline double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0; }

// A side of weight W, w_c of it in class c, is worth sum(w_c log w_c) - W log W.
class EntropyWalk : public ClassSides {
  public:
    EntropyWalk(ClassNode& node, const Order& order, bool missing_left)
        : ClassSides(node, order, missing_left) {
        before_ = -x_log_x(whole_);
        for (size_t c = 0; c < total_.size(); ++c) {
            left_sum_ += x_log_x(left_[c]);
            right_sum_ += x_log_x(right_[c]);
            before_ += x_log_x(total_[c]);
        }
    }

    void add(int32_t row, int) {
        const Datum& datum = data_[row];
        const int c = static_cast<int>(datum.y);
        left_sum_ -= x_log_x(left_[c]);
        right_sum_ -= x_log_x(right_[c]);
        left_[c] += datum.weight;
        right_[c] -= datum.weight;
        left_sum_ += x_log_x(left_[c]);
        right_sum_ += x_log_x(right_[c]);
        weight_ += datum.weight;
    }

    double gain() const {
        const double gain = left_sum_ - x_log_x(weight_) + right_sum_ -
                            x_log_x(whole_ - weight_) - before_;
        return gain > kRounding * whole_ ? gain : 0;
    }

  private:
    double before_ = 0, left_sum_ = 0, right_sum_ = 0;
};

struct EntropyPart : ClassPart {
    // Compare the shares of the classes on each side with those on both.
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

using Entropy = ClassCriterion<EntropyWalk, EntropyPart>;

}  // namespace vstatkit

#endif
