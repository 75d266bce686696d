// Grow classification and regression trees on weighted rows.
//
// A node's rows are sorted by one feature at a time through their ranks, digit by
// digit; a few rows are placed by counting those that rank lower. Only the features
// that a node tries are ever sorted. The order by the feature tried last is kept, and
// serves the children if that feature is split. The inner loops avoid branches on the
// data: a branch that cannot be predicted costs more than the work for a row.
//
// Trees may be as deep as they have rows: nodes wait on a stack, not in calls. Gains of
// all splits of a node change with the node's mean, so that a level of a chain costs its
// rows, and a chain rows times levels.
//
// All random choices of a node come from a key that depends on the tree's seed and
// on the path to the node. The order of growth is free, and subtrees that hold no
// query point can be left out without changing any other.

#ifndef VSTATKIT_GROW_HPP
#define VSTATKIT_GROW_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "portable.hpp"
#include "sort.hpp"
#include "tree.hpp"

namespace vstatkit {

inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

struct Split {
    double gain = 0.0;
    int feature = -1;
    bool missing_left = false;
    bool saw_missing = false;
    double threshold = 0.0;
    int32_t cut = 0;  // first local rank on the right
};

class Grower {
  public:
    Grower(const Table& table, const double* y, const Options& options)
        : table_(table),
          y_(y),
          options_(options),
          table_sorter_(table.n_rows),
          sorted_(table.n_rows),
          gain_(table.n_rows),
          scratch_(table.n_rows),
          features_(table.n_features),
          place_(table.n_rows),
          local_known_(table.n_features),
          tied_(table.n_features),
          compact_(table.n_features),
          classes_(std::max(1, options.n_classes)) {
        left_.resize(classes_);
        right_.resize(classes_);
        total_.resize(classes_);
    }

    // Grow one tree. Rows with positive weight are in the subsample. `points` is
    // column-major: `n_at` query points, whose predictions are written to `out`
    // (n_at, n_outputs), then, if `oob` is not null, the rows of the table. Rows out
    // of the subsample add their prediction to `oob` (n_rows, n_outputs) and one to
    // `times`. Nodes are appended to `nodes`, and the leaf shares of three or more
    // classes to `shares`, unless `nodes` is null; `gains` (n_features) adds up what
    // the splits of each feature gained.
    void grow(const double* weight, uint64_t seed, const Sink& sink) {
        weight_ = weight;
        sink_ = sink;
        base_ = sink.nodes ? sink.nodes->size() : 0;
        share_base_ = sink.shares ? sink.shares->size() : 0;
        held_.clear();
        divide_rows();
        if (own_.empty())
            throw std::invalid_argument(
                "a subsample has no row of positive weight; use larger subsamples, or "
                "leave out the rows of weight zero.");
        start_local_table();
        uint64_t key = mix(seed);
        if (options_.honest && rows_.size() > 1) key = hold_out_half(key);
        query_scratch_.resize(queries_.size());
        Span span;
        span.rows_end = static_cast<int>(rows_.size());
        span.held_end = static_cast<int>(held_.size());
        span.queries_end = static_cast<int>(queries_.size());
        build(span, key);
    }

  private:
    // List the rows of the subsample, and the points to predict.
    void divide_rows() {
        const int n = table_.n_rows;
        own_.resize(n);
        queries_.resize(sink_.n_at + (sink_.oob ? n : 0));
        for (int q = 0; q < sink_.n_at; ++q) queries_[q] = q;
        int32_t count = 0;
        for (int i = 0; i < n; ++i) {
            const bool in = weight_[i] > 0;
            own_[count] = i;
            place_[i] = in ? count : -1;
            if (sink_.oob) queries_[sink_.n_at + i - count] = sink_.n_at + i;
            count += in;
        }
        own_.resize(count);
        if (sink_.oob) queries_.resize(sink_.n_at + n - count);
    }

    // Number the subsample's rows anew. Its own table is small enough to stay in the
    // cache; a feature's columns are filled when the feature is first tried.
    void start_local_table() {
        const size_t m = own_.size(), p = table_.n_features;
        data_.resize(m);
        rows_.resize(m);
        double least = INFINITY, total = 0;
        for (size_t j = 0; j < m; ++j) {
            const int i = own_[j];
            data_[j] = {y_[i], weight_[i]};
            rows_[j] = static_cast<int32_t>(j);
            least = std::min(least, weight_[i]);
            total += weight_[i];
        }
        uneven_ = least < kEven * total || total < kRange || total > 1 / kRange;
        if (uneven_) {
            right_sum_.resize(m);
            right_weight_.resize(m);
        }
        if (local_rank_.size() < m * p) {
            local_rank_.resize(m * p);
            local_order_.resize(m * p);
            local_sorted_.resize(m * p);
        }
        sorter_.set_bound(m);
        std::fill(compact_.begin(), compact_.end(), 0);
        local_ = {static_cast<int>(m), table_.n_features, local_sorted_.data(),
                  local_order_.data(), local_rank_.data(), local_known_.data()};
    }

    void compact(int f) {
        const size_t m = own_.size();
        const size_t base = static_cast<size_t>(f) * table_.n_rows;
        const int32_t* rank = table_.rank + base;
        const int32_t* order = table_.order + base;
        const double* value = table_.sorted + base;
        int32_t* local_rank = local_rank_.data() + f * m;
        int32_t* local_order = local_order_.data() + f * m;
        double* local_sorted = local_sorted_.data() + f * m;
        size_t r = 0;
        if (2 * m > static_cast<size_t>(table_.n_rows)) {
            // Most rows are in the subsample: pass over the others.
            for (size_t global = 0; r < m; ++global) {
                const int32_t j = place_[order[global]];
                local_order[r] = j;
                local_sorted[r] = value[global];
                r += j >= 0;
            }
        } else {
            for (size_t j = 0; j < m; ++j) table_sorter_.insert(rank[own_[j]]);
            table_sorter_.drain([&](int32_t global) {
                local_order[r] = place_[order[global]];
                local_sorted[r] = value[global];
                ++r;
            });
        }
        bool tied = false;
        for (r = 1; r < m; ++r) tied |= local_sorted[r] == local_sorted[r - 1];
        int32_t known = static_cast<int32_t>(m);
        while (known > 0 && std::isnan(local_sorted[known - 1])) --known;
        for (r = 0; r < m; ++r) local_rank[local_order[r]] = static_cast<int32_t>(r);
        local_known_[f] = known;
        tied_[f] = tied;
        compact_[f] = 1;
    }

    struct Datum {
        double y, weight;
    };

    // A node's share of the rows, of the rows held out, and of the query points.
    struct Span {
        int rows_begin = 0, rows_end = 0;
        int held_begin = 0, held_end = 0;
        int queries_begin = 0, queries_end = 0;
    };

    // Move a random half of the rows, each row with all its weight, to `held_`.
    uint64_t hold_out_half(uint64_t key) {
        const size_t m = rows_.size();
        for (size_t j = 0; j < m / 2; ++j) {
            key = mix(key);
            const size_t pick = j + static_cast<size_t>(upper_product(key, m - j));
            std::swap(rows_[j], rows_[pick]);
        }
        held_.assign(rows_.begin(), rows_.begin() + m / 2);
        rows_.erase(rows_.begin(), rows_.begin() + m / 2);
        std::sort(rows_.begin(), rows_.end());
        std::sort(held_.begin(), held_.end());
        return key;
    }

    // A node that waits to be grown.
    struct Pending {
        Span span;
        uint64_t key;
        int64_t parent;  // place of the node whose right child it is, or -1
        int depth;
        int ordered_by;  // feature in whose order `sorted_` holds its rows, or -1
    };

    // Nodes are grown, and numbered, from left to right.
    void build(const Span& root, uint64_t key) {
        pending_.assign(1, {root, key, -1, 0, -1});
        while (!pending_.empty()) {
            const Pending node = pending_.back();
            pending_.pop_back();
            if (node.parent >= 0)
                (*sink_.nodes)[node.parent].right |=
                    static_cast<int32_t>((sink_.nodes->size() - base_) << 1);
            grow_node(node);
        }
    }

    void grow_node(const Pending& node) {
        const Span& span = node.span;
        summarise(rows_, span.rows_begin, span.rows_end);
        Split split;
        if (may_split(node)) split = best_split(node);
        if (split.feature < 0) {
            if (!held_.empty()) summarise(held_, span.held_begin, span.held_end);
            leaf(span.queries_begin, span.queries_end);
            return;
        }
        const int ordered_by = ordered_by_ == split.feature ? ordered_by_ : -1;
        Pending left{span, mix(node.key ^ 0x6c65667400000001ULL), -1, node.depth + 1,
                     ordered_by};
        Pending right{span, mix(node.key ^ 0x7269676874000002ULL), -1, node.depth + 1,
                      ordered_by};
        divide(span, split, left, right);
    }

    bool may_split(const Pending& node) const {
        const int size = node.span.rows_end - node.span.rows_begin;
        return size >= std::max(2, options_.min_samples_split) &&
               (options_.max_depth <= 0 || node.depth < options_.max_depth) && !pure_;
    }

    // Give the children their shares, and let those wait that are asked for.
    void divide(const Span& span, Split& split, Pending& left, Pending& right) {
        left.span.rows_end = right.span.rows_begin =
            partition_rows(span.rows_begin, span.rows_end, split);
        // Where nothing was missing, later missing values follow the majority.
        if (!split.saw_missing)
            split.missing_left = left.span.rows_end - left.span.rows_begin >
                                 right.span.rows_end - right.span.rows_begin;
        if (!held_.empty()) {
            const int middle = partition_held(span.held_begin, span.held_end, split);
            left.span.held_end = right.span.held_begin = middle;
            // A side without rows to estimate from is pruned: the other one stands.
            if (middle == span.held_begin || middle == span.held_end) {
                pending_.push_back(middle == span.held_begin ? right : left);
                return;
            }
        }
        sink_.gains[split.feature] += split.gain;
        left.span.queries_end = right.span.queries_begin =
            partition_queries(span.queries_begin, span.queries_end, split);
        if (sink_.nodes) {
            right.parent = static_cast<int64_t>(sink_.nodes->size());
            sink_.nodes->push_back(
                {split.feature, split.missing_left ? 1 : 0, split.threshold});
        }
        if (is_asked_for(right.span)) pending_.push_back(right);
        if (is_asked_for(left.span)) pending_.push_back(left);
    }

    bool is_asked_for(const Span& span) const {
        return !options_.only_queried || span.queries_end > span.queries_begin;
    }

    void summarise(const std::vector<int32_t>& rows, int begin, int end) {
        weight_sum_ = 0;
        const int first = rows[begin];
        pure_ = true;
        if (options_.n_classes) {
            std::fill(total_.begin(), total_.end(), 0.0);
            for (int j = begin; j < end; ++j) {
                const int i = rows[j];
                total_[static_cast<int>(data_[i].y)] += data_[i].weight;
                weight_sum_ += data_[i].weight;
                pure_ &= data_[i].y == data_[first].y;
            }
            return;
        }
        double sum = 0;
        for (int j = begin; j < end; ++j) {
            const int i = rows[j];
            sum += data_[i].weight * data_[i].y;
            weight_sum_ += data_[i].weight;
            pure_ &= data_[i].y == data_[first].y;
        }
        mean_ = pure_ ? data_[first].y : sum / weight_sum_;
    }

    void leaf(int q_begin, int q_end) {
        const int K = options_.n_classes;
        const int width = K > 2 ? K : 1;
        if (K > 2)
            for (int c = 0; c < K; ++c) left_[c] = total_[c] / weight_sum_;
        else
            left_[0] = K == 2 ? total_[1] / weight_sum_ : mean_;
        for (int q = q_begin; q < q_end; ++q) {
            const size_t at = queries_[q];
            if (at < static_cast<size_t>(sink_.n_at)) {
                for (int c = 0; c < width; ++c) sink_.out[at * width + c] = left_[c];
                continue;
            }
            const size_t row = at - sink_.n_at;
            for (int c = 0; c < width; ++c) sink_.oob[row * width + c] += left_[c];
            sink_.times[row] += 1;
        }
        if (!sink_.nodes) return;
        if (K > 2)
            leaf_of_classes();
        else
            sink_.nodes->push_back({-1, 0, left_[0]});
    }

    // Pure leaves name their class; only mixed ones keep a row of shares.
    void leaf_of_classes() {
        if (pure_) {
            const auto it = std::max_element(total_.begin(), total_.end());
            sink_.nodes->push_back({-2, static_cast<int32_t>(it - total_.begin()), 0.0});
            return;
        }
        const int K = options_.n_classes;
        sink_.nodes->push_back({-3, static_cast<int32_t>((sink_.shares->size() - share_base_) / K), 0.0});
        for (int c = 0; c < K; ++c) sink_.shares->push_back(total_[c] / weight_sum_);
    }

    // Try features in random order, at least `max_features` of them, and on until
    // one can be split.
    Split best_split(const Pending& node) {
        const int begin = node.span.rows_begin, end = node.span.rows_end;
        const int p = table_.n_features;
        uint64_t key = node.key;
        ordered_by_ = node.ordered_by;
        for (int f = 0; f < p; ++f) features_[f] = f;
        Split best;
        for (int tried = 0; tried < p; ++tried) {
            // Two rows can be parted in one way only: the first feature to do so wins.
            if (best.feature >= 0 && (tried >= options_.max_features || end - begin == 2))
                break;
            key = mix(key);
            const int pick =
                tried + static_cast<int>(upper_product(key, p - tried));
            std::swap(features_[tried], features_[pick]);
            try_feature(begin, end, features_[tried], best);
        }
        return best;
    }

    // A node's rows in ascending order of one feature; missing ones are left out.
    struct Order {
        const int32_t* rows;
        int count;
        int missing;
    };

    Order sort_rows(int begin, int end, int f) {
        const int size = end - begin;
        const int known = local_.n_known[f];
        const int32_t* order = local_.order + static_cast<size_t>(f) * local_.n_rows;
        const int32_t* rank = local_.rank + static_cast<size_t>(f) * local_.n_rows;
        if (size == local_.n_rows) return {order, known, size - known};  // the root
        // Every node writes to its own part, which its ancestors need no longer.
        int32_t* sorted = sorted_.data() + begin;
        if (ordered_by_ == f) return {sorted, size, 0};
        const int32_t* rows = rows_.data() + begin;
        int count = 0;
        if (size <= kSmall) {
            count = place_by_counting(rows, size, rank, known, sorted);
        } else {
            count = sorter_.sort(
                size, known, [&](int j) { return rank[rows[j]]; },
                [&](int place, int32_t r) { sorted[place] = order[r]; });
        }
        ordered_by_ = count == size ? f : -1;
        return {sorted, count, size - count};
    }

    // The place of a row is the number of rows that rank lower.
    static int place_by_counting(const int32_t* rows, int size, const int32_t* rank,
                                 int known, int32_t* sorted) {
        int32_t keys[kSmall], own[kSmall];
        int count = 0;
        for (int j = 0; j < size; ++j) {
            const int32_t r = rank[rows[j]];
            keys[count] = r;
            own[count] = rows[j];
            count += r < known;
        }
        if (count <= kTiny) {
            int place[kTiny] = {0};
            for (int j = 1; j < count; ++j)
                for (int i = 0; i < j; ++i) {
                    const int lower = keys[i] < keys[j];
                    place[j] += lower;
                    place[i] += 1 - lower;
                }
            for (int j = 0; j < count; ++j) sorted[place[j]] = own[j];
            return count;
        }
        for (int j = 0; j < count; ++j) {
            int place = 0;
            for (int i = 0; i < count; ++i) place += keys[i] < keys[j];
            sorted[place] = own[j];
        }
        return count;
    }

    void try_feature(int begin, int end, int f, Split& best) {
        sink_.watch->count(end - begin);
        if (!compact_[f]) compact(f);
        const Order order = sort_rows(begin, end, f);
        if (order.count == 0) return;
        if (!order.missing && tied_[f] &&
            value_of(f, order.rows[0]) == value_of(f, order.rows[order.count - 1]))
            return;
        for (int side = 0; side < (order.missing ? 2 : 1); ++side) {
            if (uneven_)
                scan_uneven(begin, end, f, order, side == 1, best);
            else if (options_.n_classes)
                scan_classes(f, order, side == 1, best);
            else
                scan_means(f, order, side == 1, best);
        }
    }

    double value_of(int f, int32_t row) const {
        const size_t base = static_cast<size_t>(f) * local_.n_rows;
        return local_.sorted[base + local_.rank[base + row]];
    }

    // Whether the split after the j-th known row leaves enough rows on both sides and
    // parts no equal values.
    bool allowed(int f, const Order& order, int j, bool missing_left) const {
        const int n_left = j + 1 + (missing_left ? order.missing : 0);
        const int least = options_.min_samples_leaf;
        if (n_left < least || order.count + order.missing - n_left < least) return false;
        return !tied_[f] || j + 1 == order.count ||
               value_of(f, order.rows[j]) != value_of(f, order.rows[j + 1]);
    }

    // With missing values on the right even "all known left" is a split.
    static int n_splits(const Order& order, bool missing_left) {
        return order.missing && !missing_left ? order.count : order.count - 1;
    }

    // Sum of centred responses and of weights of the rows that are missing.
    void missing_sums(const Order& order, double& sum, double& weight) {
        double s = 0, w = 0;
        for (int j = 0; j < order.count; ++j) {
            const Datum& datum = data_[order.rows[j]];
            s += datum.weight * (datum.y - mean_);
            w += datum.weight;
        }
        sum = -s;
        weight = weight_sum_ - w;
    }

    void scan_means(int f, const Order& order, bool missing_left, Split& best) {
        double sum = 0, weight = 0;
        if (missing_left) missing_sums(order, sum, weight);
        const int last = n_splits(order, missing_left);
        const bool all = !tied_[f] && options_.min_samples_leaf <= 1;
        const double mean = mean_, whole = weight_sum_;
        double top = 0;
        for (int j = 0; j < last; ++j) {
            const Datum& datum = data_[order.rows[j]];
            sum += datum.weight * (datum.y - mean);
            weight += datum.weight;
            double gain = sum * sum * whole / (weight * (whole - weight));
            if (!all && !allowed(f, order, j, missing_left)) gain = -1;
            gain_[j] = gain;
            top = gain > top ? gain : top;
        }
        take_first(f, order, missing_left, last, top, best);
    }

    void scan_classes(int f, const Order& order, bool missing_left, Split& best) {
        std::fill(left_.begin(), left_.end(), 0.0);
        std::copy(total_.begin(), total_.end(), right_.begin());
        double weight = 0;
        if (missing_left) {
            std::swap(left_, right_);
            weight = weight_sum_;
            for (int j = 0; j < order.count; ++j) {
                const Datum& datum = data_[order.rows[j]];
                const int c = static_cast<int>(datum.y);
                left_[c] -= datum.weight;
                right_[c] += datum.weight;
                weight -= datum.weight;
            }
        }
        double square_left = 0, square_right = 0, square_total = 0;
        for (int c = 0; c < classes_; ++c) {
            square_left += left_[c] * left_[c];
            square_right += right_[c] * right_[c];
            square_total += total_[c] * total_[c];
        }
        const double before = square_total / weight_sum_;
        const int last = n_splits(order, missing_left);
        const bool all = !tied_[f] && options_.min_samples_leaf <= 1;
        double top = 0;
        for (int j = 0; j < last; ++j) {
            const Datum& datum = data_[order.rows[j]];
            const int c = static_cast<int>(datum.y);
            const double w = datum.weight;
            square_left += w * (2 * left_[c] + w);
            square_right -= w * (2 * right_[c] - w);
            left_[c] += w;
            right_[c] -= w;
            weight += w;
            double gain = square_left / weight + square_right / (weight_sum_ - weight) -
                          before;
            gain = gain > 0 ? gain : 0;  // below zero by rounding only
            if (!all && !allowed(f, order, j, missing_left)) gain = -1;
            gain_[j] = gain;
            top = gain > top ? gain : top;
        }
        take_first(f, order, missing_left, last, top, best);
    }

    // Where weights differ by many orders of magnitude, one side is not the whole without
    // the other: both are added up from their own ends.
    void scan_uneven(int begin, int end, int f, const Order& order, bool missing_left,
                     Split& best) {
        std::fill(left_.begin(), left_.end(), 0.0);
        std::fill(right_.begin(), right_.end(), 0.0);
        double left_weight = 0, right_weight = 0;
        add_missing(begin, end, f, missing_left ? left_ : right_,
                    missing_left ? left_weight : right_weight);
        for (int j = order.count; j-- > 0;) {
            const Datum& datum = data_[order.rows[j]];
            double& sum = right_[class_of(datum)];
            right_sum_[j] = sum;
            right_weight_[j] = right_weight;
            sum += share_of(datum);
            right_weight += datum.weight;
        }
        const int last = n_splits(order, missing_left);
        double top = 0;
        for (int j = 0; j < last; ++j) {
            const Datum& datum = data_[order.rows[j]];
            left_[class_of(datum)] += share_of(datum);
            right_[class_of(datum)] = right_sum_[j];
            left_weight += datum.weight;
            const double gain = allowed(f, order, j, missing_left)
                                    ? uneven_gain(left_weight, right_weight_[j])
                                    : -1;
            gain_[j] = gain;
            top = gain > top ? gain : top;
        }
        take_first(f, order, missing_left, last, top, best);
    }

    // Weighted squares between two sides with the sums `left_` and `right_`.
    double uneven_gain(double left_weight, double right_weight) const {
        double apart = 0;
        for (int c = 0; c < classes_; ++c) {
            const double step = left_[c] / left_weight - right_[c] / right_weight;
            apart += step * step;
        }
        return left_weight * (right_weight / (left_weight + right_weight)) * apart;
    }

    void add_missing(int begin, int end, int f, std::vector<double>& sums,
                     double& weight) const {
        const int32_t* rank = local_.rank + static_cast<size_t>(f) * local_.n_rows;
        for (int j = begin; j < end; ++j) {
            if (rank[rows_[j]] < local_.n_known[f]) continue;
            const Datum& datum = data_[rows_[j]];
            sums[class_of(datum)] += share_of(datum);
            weight += datum.weight;
        }
    }

    size_t class_of(const Datum& datum) const {
        return options_.n_classes ? static_cast<size_t>(datum.y) : 0;
    }

    // What a row adds to its class, or to the sum of centred responses.
    double share_of(const Datum& datum) const {
        return options_.n_classes ? datum.weight : datum.weight * (datum.y - mean_);
    }

    // Take the first of the best splits of a feature, if it beats those before it.
    // Splits that part a node's rows alike tie but for rounding; the first one keeps
    // its place, so that trees do not depend on the units of y.
    void take_first(int f, const Order& order, bool missing_left, int last, double top,
                    Split& best) {
        if (best.feature >= 0 && top <= best.gain * (1 + kTie)) return;
        int j = 0;
        while (j < last && (gain_[j] < 0 || gain_[j] * (1 + kTie) < top)) ++j;
        if (j == last) return;  // no split is allowed
        best.gain = gain_[j];
        best.feature = f;
        best.missing_left = missing_left;
        best.saw_missing = order.missing > 0;
        if (j + 1 == order.count) {
            best.threshold = INFINITY;
            best.cut = local_.n_known[f];
            return;
        }
        const double low = value_of(f, order.rows[j]);
        const double high = value_of(f, order.rows[j + 1]);
        const double middle = low / 2 + high / 2;
        best.threshold = middle < high ? middle : low;
        best.cut = local_.rank[static_cast<size_t>(f) * local_.n_rows + order.rows[j + 1]];
    }

    // Stable on both sides, so that a node's rows stay in ascending order.
    template <class GoesLeft>
    int partition(std::vector<int32_t>& rows, int begin, int end, GoesLeft goes_left) {
        int middle = begin, spare = 0;
        for (int j = begin; j < end; ++j) {
            const int32_t i = rows[j];
            const bool left = goes_left(i);
            rows[middle] = i;  // both are written: which one counts is not predictable
            scratch_[spare] = i;
            middle += left;
            spare += !left;
        }
        std::copy(scratch_.begin(), scratch_.begin() + spare, rows.begin() + middle);
        return middle;
    }

    int partition_rows(int begin, int end, const Split& split) {
        const int32_t* rank =
            local_.rank + static_cast<size_t>(split.feature) * local_.n_rows;
        const int known = local_.n_known[split.feature];
        return partition(rows_, begin, end, [&](int32_t i) {
            const int32_t r = rank[i];
            return (r < split.cut) | ((r >= known) & split.missing_left);
        });
    }

    // Rows held out lie anywhere between those that made the split: only the
    // threshold tells.
    int partition_held(int begin, int end, const Split& split) {
        const int32_t* rank =
            local_.rank + static_cast<size_t>(split.feature) * local_.n_rows;
        const int known = local_.n_known[split.feature];
        return partition(held_, begin, end, [&](int32_t i) {
            return rank[i] >= known ? split.missing_left
                                    : value_of(split.feature, i) <= split.threshold;
        });
    }

    int partition_queries(int begin, int end, const Split& split) {
        const double* x =
            sink_.points + static_cast<size_t>(split.feature) * sink_.n_points;
        int middle = begin, spare = 0;
        for (int j = begin; j < end; ++j) {
            const int q = queries_[j];
            const bool left =
                std::isnan(x[q]) ? split.missing_left : x[q] <= split.threshold;
            queries_[middle] = q;
            query_scratch_[spare] = q;
            middle += left;
            spare += !left;
        }
        std::copy(query_scratch_.begin(), query_scratch_.begin() + spare,
                  queries_.begin() + middle);
        return middle;
    }

    static constexpr int kTiny = 8;
    static constexpr int kSmall = 32;
    static constexpr double kTie = 1e-10;
    static constexpr double kEven = 1e-10;   // least weight of a row, of all weight
    static constexpr double kRange = 1e-60;  // cubes of sums stay in range above it

    const Table& table_;
    const double* y_;
    const Options options_;
    BitSorter table_sorter_;  // of the subsample's ranks in the table
    DigitSorter sorter_;      // of a node's ranks in the subsample
    std::vector<int32_t> sorted_;  // a node's rows in ascending order of a feature
    std::vector<double> gain_;     // what the split after each of them gains
    std::vector<int32_t> scratch_;
    std::vector<int> features_;
    std::vector<int32_t> place_;  // row of the table -> row of the subsample, or -1
    std::vector<int32_t> local_known_;
    std::vector<char> tied_;  // features with equal values in the subsample
    std::vector<char> compact_;  // features whose local columns are filled
    const int classes_;
    std::vector<double> left_, right_, total_;

    const double* weight_ = nullptr;
    Sink sink_ = {};
    size_t base_ = 0, share_base_ = 0;  // where this tree's nodes and shares start
    std::vector<int32_t> own_;  // rows of the table in the subsample
    std::vector<Datum> data_;   // their responses and weights
    std::vector<int32_t> local_rank_, local_order_;
    std::vector<double> local_sorted_;
    Table local_ = {};
    std::vector<int32_t> rows_;
    std::vector<int32_t> held_;  // rows that honest leaves are estimated from
    std::vector<int32_t> queries_, query_scratch_;
    double weight_sum_ = 0, mean_ = 0;
    bool pure_ = false;
    bool uneven_ = false;  // whether weights differ by many orders of magnitude
    std::vector<double> right_sum_, right_weight_;  // after each row; where uneven
    int ordered_by_ = -1;  // feature in whose order `sorted_` holds the node's rows
    std::vector<Pending> pending_;
};

}  // namespace vstatkit

#endif
