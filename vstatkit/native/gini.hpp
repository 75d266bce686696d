// Gini impurity: leaves predict the shares of the classes.

#ifndef VSTATKIT_GINI_HPP
#define VSTATKIT_GINI_HPP

#include <algorithm>
#include <vector>

#include "criterion.hpp"

namespace vstatkit {

class Gini {
  public:
    explicit Gini(const Options& options)
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

    class Walk {
      public:
        Walk(Gini& node, const Order& order, bool missing_left)
            : data_(node.data_),
              left_(node.left_.data()),
              right_(node.right_.data()),
              whole_(node.whole_) {
            const std::vector<double>& total = node.total_;
            std::fill(node.left_.begin(), node.left_.end(), 0.0);
            std::copy(total.begin(), total.end(), right_);
            if (missing_left) take_missing(total, order);
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

        const Datum* data_;
        double *left_, *right_;  // weights of the classes on both sides
        double whole_, before_ = 0;
        double weight_ = 0, square_left_ = 0, square_right_ = 0;
    };

    Walk walk(const Order& order, const Missing&, bool missing_left) {
        return {*this, order, missing_left};
    }

    struct Part {
        static size_t place(const Datum& datum) { return static_cast<size_t>(datum.y); }
        static double share(const Datum& datum) { return datum.weight; }
        static double gain(const Ends& ends) { return ends.squares(); }
    };

    EndsWalk<Part> careful_walk(const Order& order, const Missing& missing,
                                bool missing_left) {
        return {ends_, data_, order, missing, missing_left, Part{}};
    }

  private:
    const Datum* data_ = nullptr;
    std::vector<double> left_, right_, total_;
    double whole_ = 0;
    bool pure_ = false;
    int class_ = 0;
    LevelComponent component_;
    Ends ends_;
};

}  // namespace vstatkit

#endif
