// The levels of an unordered factor among the rows of a node.

#ifndef VSTATKIT_LEVELS_HPP
#define VSTATKIT_LEVELS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "order.hpp"
#include "portable.hpp"
#include "subsample.hpp"
#include "tree.hpp"

namespace vstatkit {

// Rows with their levels, and the levels in the order of their first rows.
struct LevelRows {
    const int32_t* rows;
    const uint8_t* codes;
    int count;
    const uint8_t* levels;
    int n_levels;
};

class NodeLevels {
  public:
    // Read the levels of a node's known rows.
    void read(const Subsample& subsample, int f, Rows node) {
        const size_t size = node.size;
        for (auto* rows : {&rows_, &arranged_})
            if (rows->size() < size) rows->resize(size);
        for (auto* codes : {&codes_, &arranged_codes_})
            if (codes->size() < size) codes->resize(size);
        const int32_t* rank = subsample.rank(f);
        const double* sorted = subsample.sorted(f);
        count_ = 0;
        present_ = 0;
        for (int j = 0; j < node.size; ++j) {
            const int32_t r = rank[node.first[j]];
            if (r >= subsample.n_known(f)) continue;
            const int code = static_cast<int>(sorted[r]);
            const int32_t row = node.first[j];
            const uint64_t bit = 1ULL << code;
            first_[code] = present_ & bit ? std::min(first_[code], row) : row;
            rows_[count_] = row;
            codes_[count_++] = static_cast<uint8_t>(code);
            present_ |= bit;
        }
        missing_ = node.size - count_;
        n_present_ = 0;
        for (uint64_t left = present_; left; left &= left - 1)
            levels_[n_present_++] = static_cast<uint8_t>(lowest_bit(left));
        sort_by_first_row(levels_, levels_ + n_present_);
    }

    uint64_t present_set() const { return present_; }
    int n_present() const { return n_present_; }
    int n_missing() const { return missing_; }
    LevelRows rows() const {
        return {rows_.data(), codes_.data(), count_, levels_, n_present_};
    }

    // Arrange the rows by the scores of their levels. Levels with the same score, up to
    // rounding, stay in the order of their first rows.
    Order arrange_by(const double* score) {
        uint8_t* end = levels_ + n_present_;
        std::sort(levels_, end, [&](uint8_t a, uint8_t b) {
            return score[a] != score[b] ? score[a] < score[b] : first_[a] < first_[b];
        });
        const double least = kTied * (score[end[-1]] - score[levels_[0]]);
        for (uint8_t *first = levels_, *next; first < end; first = next) {
            next = first + 1;
            while (next < end && score[*next] - score[*first] <= least) ++next;
            sort_by_first_row(first, next);
        }
        return arrange();
    }

    // Arrange the rows of the levels in `left` before the others.
    Order arrange_sides(uint64_t left) {
        std::stable_partition(levels_, levels_ + n_present_,
                              [&](uint8_t level) { return (left >> level) & 1; });
        return arrange();
    }

    // Choose a nontrivial set of levels by random bits.
    uint64_t draw_set(uint64_t bits) const {
        if (n_present_ < 2) return present_;
        const uint64_t n_sets = (n_present_ < kMostLevels ? 1ULL << n_present_ : 0) - 2;
        const uint64_t chosen = 1 + upper_product(bits, n_sets);
        uint64_t set = 0;
        for (int i = 0; i < n_present_; ++i) set |= ((chosen >> i) & 1) << levels_[i];
        return set;
    }

    // Whether a level ends with the j-th of the arranged rows.
    bool is_level_end(int j) const {
        return j + 1 == count_ || arranged_codes_[j] != arranged_codes_[j + 1];
    }

    // Levels of the arranged rows up to the j-th.
    uint64_t levels_up_to(int j) const {
        uint64_t set = 0;
        for (int i = 0; i <= j; ++i) set |= 1ULL << arranged_codes_[i];
        return set;
    }

  private:
    // No choice may depend on the codes, so that levels may be renamed.
    void sort_by_first_row(uint8_t* begin, uint8_t* end) const {
        std::sort(begin, end,
                  [&](uint8_t a, uint8_t b) { return first_[a] < first_[b]; });
    }

    Order arrange() {
        int start[kMostLevels] = {0}, size[kMostLevels] = {0};
        for (int j = 0; j < count_; ++j) ++size[codes_[j]];
        for (int i = 0, next = 0; i < n_present_; ++i) {
            start[levels_[i]] = next;
            next += size[levels_[i]];
        }
        for (int j = 0; j < count_; ++j) {
            const int place = start[codes_[j]]++;
            arranged_[place] = rows_[j];
            arranged_codes_[place] = codes_[j];
        }
        return {arranged_.data(), count_, missing_};
    }

    static constexpr double kTied = 1e-10;

    std::vector<int32_t> rows_, arranged_;
    std::vector<uint8_t> codes_, arranged_codes_;
    int count_ = 0, missing_ = 0;
    uint64_t present_ = 0;
    int n_present_ = 0;
    uint8_t levels_[kMostLevels];  // those present, in order
    int32_t first_[kMostLevels];   // the least row of each that is present
};

// Compute the mean response of every level.
inline void compute_level_means(const Datum* data, LevelRows level_rows, double* score) {
    double weight[kMostLevels] = {0};
    std::fill(score, score + kMostLevels, 0.0);
    for (int j = 0; j < level_rows.count; ++j) {
        const Datum& datum = data[level_rows.rows[j]];
        score[level_rows.codes[j]] += datum.weight * datum.y;
        weight[level_rows.codes[j]] += datum.weight;
    }
    for (int level = 0; level < kMostLevels; ++level)
        if (weight[level] > 0) score[level] /= weight[level];
}

// First principal component of the levels' class shares, weighted by the levels' weights.
class LevelComponent {
  public:
    void compute_scores(const Datum* data, LevelRows level_rows, int n_classes,
                        double* score) {
        n_classes_ = n_classes;
        levels_ = level_rows.levels;
        n_levels_ = level_rows.n_levels;
        centre_shares(data, level_rows);
        start_direction();
        for (int step = 0; step < kSteps && improve(); ++step) {
        }
        for (int i = 0; i < n_levels_; ++i) score[levels_[i]] = project(levels_[i]);
    }

  private:
    double* share(int level) {
        return shares_.data() + static_cast<size_t>(level) * n_classes_;
    }

    double project(int level) {
        const double* value = share(level);
        double sum = 0;
        for (int c = 0; c < n_classes_; ++c) sum += value[c] * direction_[c];
        return sum;
    }

    // Compute the shares of the classes in every level minus those in the node.
    void centre_shares(const Datum* data, LevelRows level_rows) {
        shares_.assign(static_cast<size_t>(kMostLevels) * n_classes_, 0.0);
        std::fill(weight_, weight_ + kMostLevels, 0.0);
        std::vector<double> mean(n_classes_, 0.0);
        double whole = 0;
        for (int j = 0; j < level_rows.count; ++j) {
            const Datum& datum = data[level_rows.rows[j]];
            const int c = static_cast<int>(datum.y);
            share(level_rows.codes[j])[c] += datum.weight;
            mean[c] += datum.weight;
            weight_[level_rows.codes[j]] += datum.weight;
            whole += datum.weight;
        }
        for (int i = 0; i < n_levels_; ++i) {
            const int level = levels_[i];
            for (int c = 0; c < n_classes_; ++c)
                share(level)[c] = share(level)[c] / weight_[level] - mean[c] / whole;
            weight_[level] /= whole;
        }
    }

    // Start with the level that is farthest from the others.
    void start_direction() {
        int farthest = levels_[0];
        double top = 0;
        for (int i = 0; i < n_levels_; ++i) {
            const int level = levels_[i];
            double square = 0;
            for (int c = 0; c < n_classes_; ++c) square += share(level)[c] * share(level)[c];
            if (weight_[level] * square <= top) continue;
            top = weight_[level] * square;
            farthest = level;
        }
        direction_.assign(share(farthest), share(farthest) + n_classes_);
        scale(direction_);
    }

    // Take one step of the power method. Returns whether the direction changed.
    bool improve() {
        next_.assign(n_classes_, 0.0);
        for (int i = 0; i < n_levels_; ++i) {
            const int level = levels_[i];
            const double step = weight_[level] * project(level);
            for (int c = 0; c < n_classes_; ++c) next_[c] += step * share(level)[c];
        }
        scale(next_);
        double moved = 0;
        for (int c = 0; c < n_classes_; ++c)
            moved = std::max(moved, std::abs(next_[c] - direction_[c]));
        direction_.swap(next_);
        return moved > kTolerance;
    }

    static void scale(std::vector<double>& vector) {
        double square = 0;
        for (double value : vector) square += value * value;
        if (square > 0)
            for (double& value : vector) value /= std::sqrt(square);
    }

    static constexpr int kSteps = 200;
    static constexpr double kTolerance = 1e-12;

    int n_classes_ = 0, n_levels_ = 0;
    const uint8_t* levels_ = nullptr;
    std::vector<double> shares_, direction_, next_;
    double weight_[kMostLevels];
};

}  // namespace vstatkit

#endif
