// A node whose leaf predicts the shares of the classes.

#ifndef VSTATKIT_CLASSES_HPP
#define VSTATKIT_CLASSES_HPP

#include <algorithm>
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

    void start(const Subsample& own) { data_ = own.data(); }

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

    bool pure() const { return pure_; }

    // Of two classes the second tells all.
    int width() const { return total_.size() > 2 ? static_cast<int>(total_.size()) : 1; }

    void leaf(double* out) const {
        if (total_.size() == 2) {
            out[0] = total_[1] / whole_;
            return;
        }
        for (size_t c = 0; c < total_.size(); ++c) out[c] = total_[c] / whole_;
    }

    int only_class() const { return pure_ ? class_ : -1; }

    void level_scores(LevelRows found, double* score) {
        if (total_.size() > 2)
            component_.find(data_, found, static_cast<int>(total_.size()), score);
        else
            level_means(data_, found, score);
    }

  protected:
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
    ClassSides(const Datum* data, std::vector<double>& left, std::vector<double>& right,
               const std::vector<double>& total, double whole, const Order& order,
               bool missing_left)
        : data_(data), left_(left.data()), right_(right.data()), whole_(whole) {
        std::fill(left.begin(), left.end(), 0.0);
        std::copy(total.begin(), total.end(), right_);
        if (missing_left) take_missing(total, order);
    }

  protected:
    const Datum* data_;
    double *left_, *right_;  // weights of the classes on both sides
    double whole_, weight_ = 0;

  private:
    // Start with all rows on the left, and move the known ones to the right.
    void take_missing(const std::vector<double>& total, const Order& order) {
        std::swap_ranges(left_, left_ + total.size(), right_);
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

// Where rows add to sums of both sides.
struct ClassPart {
    static size_t place(const Datum& datum) { return static_cast<size_t>(datum.y); }
    static double share(const Datum& datum) { return datum.weight; }
};

}  // namespace vstatkit

#endif
