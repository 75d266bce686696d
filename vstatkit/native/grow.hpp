// Grow classification and regression trees on weighted rows.
//
// Trees may be as deep as they have rows, so nodes wait on a stack and not in recursive
// calls. All gains depend on the node's mean, so every level of a chain costs its rows.
//
// All random choices of a node come from a key that depends on the tree's seed and
// on the path to the node. The order of growth is free, and subtrees without a query
// point can be skipped without changing any other.

#ifndef VSTATKIT_GROW_HPP
#define VSTATKIT_GROW_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "members.hpp"
#include "portable.hpp"
#include "random.hpp"
#include "split.hpp"
#include "subsample.hpp"
#include "tree.hpp"

namespace vstatkit {

// A grower of trees by some criterion.
class AnyGrower {
  public:
    virtual ~AnyGrower() = default;

    // Grow one tree. Rows with positive weight are in the subsample.
    virtual void grow(const double* weight, uint64_t seed, const Sink& sink) = 0;

    // Grow one tree on the rows of a table that is not ranked.
    virtual void grow(const std::vector<Member>& members, uint64_t seed,
                      const Sink& sink) = 0;
};

template <class Criterion>
class Grower : public AnyGrower {
  public:
    Grower(const Table& table, const double* y, const Options& options)
        : options_(options),
          subsample_(table, y),
          criterion_(options),
          finder_(subsample_, options_),
          leaf_(criterion_.width()) {}

    void grow(const double* weight, uint64_t seed, const Sink& sink) override {
        subsample_.take(weight);
        grow_tree(seed, sink);
    }

    void grow(const std::vector<Member>& members, uint64_t seed,
              const Sink& sink) override {
        subsample_.take(members);
        grow_tree(seed, sink);
    }

  private:
    void grow_tree(uint64_t seed, const Sink& sink) {
        sink_ = sink;
        base_ = sink.nodes ? sink.nodes->size() : 0;
        share_base_ = sink.shares ? sink.shares->size() : 0;
        list_base_ = sink.leaf_rows ? sink.leaf_rows->size() : 0;
        if (subsample_.size() == 0)
            throw std::invalid_argument(
                "a subsample has no row of positive weight; use larger subsamples, or "
                "leave out the rows of weight zero.");
        criterion_.start(subsample_);
        list_queries();
        rows_.resize(subsample_.size());
        scratch_.resize(subsample_.size());
        for (size_t j = 0; j < rows_.size(); ++j) rows_[j] = static_cast<int32_t>(j);
        leaf_rows_.clear();
        uint64_t key = mix(seed);
        if (options_.honest && rows_.size() > 1) key = hold_out_half(key);
        finder_.start({rows_.data(), static_cast<int>(rows_.size())});
        Span span;
        span.rows_end = static_cast<int>(rows_.size());
        span.leaf_end = static_cast<int>(leaf_rows_.size());
        span.queries_end = static_cast<int>(queries_.size());
        Pending root{span, key, -1, 0, -1};
        if (options_.max_leaf_nodes > 0) root.plan = plan_tree(root);
        build(root);
    }

    // A node's share of the rows, of the rows of honest leaves, and of the query points.
    struct Span {
        int rows_begin = 0, rows_end = 0;
        int leaf_begin = 0, leaf_end = 0;
        int queries_begin = 0, queries_end = 0;
    };

    // A node that is not grown yet.
    struct Pending {
        Span span;
        uint64_t key;
        int64_t parent;  // place of the node whose right child it is, or -1
        int depth;
        int ordered_by;  // feature by which its rows are sorted, or -1
        int plan = -1;   // its place in the plan, if there is one
    };

    // A node of a tree that is planned before it is built: its best split, and its
    // children once that is made. Without a right child, the left one replaces the node.
    struct Planned {
        Pending node;
        Split split;
        int ordered_by;  // by the split's feature, or -1
        int left = -1, right = -1;
    };

    // List the points to predict.
    void list_queries() {
        const int n_at = sink_.n_at, n_oob = sink_.oob ? sink_.n_oob : 0;
        queries_.resize(static_cast<size_t>(n_at) + n_oob);
        for (int q = 0; q < n_at; ++q) queries_[q] = q;
        queries_.resize(n_at + subsample_.list_absent(sink_.oob_rows, n_oob, n_at,
                                                queries_.data() + n_at));
        query_scratch_.resize(queries_.size());
    }

    // Move a random half of the rows, each with its whole weight, to `leaf_rows_`.
    uint64_t hold_out_half(uint64_t key) {
        const size_t m = rows_.size();
        for (size_t j = 0; j < m / 2; ++j) {
            key = mix(key);
            const size_t pick = j + static_cast<size_t>(upper_product(key, m - j));
            std::swap(rows_[j], rows_[pick]);
        }
        leaf_rows_.assign(rows_.begin(), rows_.begin() + m / 2);
        rows_.erase(rows_.begin(), rows_.begin() + m / 2);
        std::sort(rows_.begin(), rows_.end());
        std::sort(leaf_rows_.begin(), leaf_rows_.end());
        return key;
    }

    // Grow and number the nodes from left to right.
    void build(const Pending& root) {
        pending_.assign(1, root);
        while (!pending_.empty()) {
            const Pending node = pending_.back();
            pending_.pop_back();
            if (node.parent >= 0)
                (*sink_.nodes)[node.parent].right |=
                    static_cast<int32_t>((sink_.nodes->size() - base_) << 1);
            if (node.plan >= 0)
                grow_planned(node);
            else
                grow_node(node);
        }
    }

    void grow_node(const Pending& node) {
        Split split = find_best_split(node);
        if (split.feature < 0) {
            if (!leaf_rows_.empty()) reset_leaf(node.span);
            add_leaf(node.span, node.span.queries_begin, node.span.queries_end);
            return;
        }
        const int ordered_by = find_order(split);
        Pending left = make_child(node, kLeftKey, ordered_by);
        Pending right = make_child(node, kRightKey, ordered_by);
        const Sides sides = divide(node.span, split, left.span, right.span);
        if (sides == Sides::both)
            add_split(node.span, split, left, right);
        else
            pending_.push_back(sides == Sides::left ? left : right);
    }

    Split find_best_split(const Pending& node) {
        const Span& span = node.span;
        const Rows rows{rows_.data() + span.rows_begin, span.rows_end - span.rows_begin};
        criterion_.reset(rows);
        if (!may_split(node, rows.size)) return {};
        return finder_.find_best(criterion_, rows, span.rows_begin, node.key,
                                 node.ordered_by, *sink_.watch);
    }

    bool may_split(const Pending& node, int size) const {
        return size >= std::max(2, options_.min_samples_split) &&
               (options_.max_depth <= 0 || node.depth < options_.max_depth) &&
               !criterion_.is_pure();
    }

    // Return the feature of the split just found, if the rows are sorted by it, or -1.
    int find_order(const Split& split) const {
        return finder_.ordered_by() == split.feature ? split.feature : -1;
    }

    static Pending make_child(const Pending& node, uint64_t side, int ordered_by) {
        return {node.span, mix(node.key ^ side), -1, node.depth + 1, ordered_by};
    }

    enum class Sides { both, left, right };

    // Give the children their shares of the rows. A side without rows to estimate from is
    // pruned, and the other one replaces the node.
    Sides divide(const Span& span, Split& split, Span& left, Span& right) {
        left.rows_end = right.rows_begin =
            partition_rows(span.rows_begin, span.rows_end, split);
        // Unseen levels follow the majority, and so do missing values.
        const bool more_left =
            left.rows_end - left.rows_begin > right.rows_end - right.rows_begin;
        if (!split.saw_missing) split.missing_left = more_left;
        if (more_left) split.levels_left |= ~split.levels_seen;
        if (leaf_rows_.empty()) return Sides::both;
        const int middle = partition_leaf_rows(span.leaf_begin, span.leaf_end, split);
        left.leaf_end = right.leaf_begin = middle;
        if (middle == span.leaf_begin) return Sides::right;
        return middle == span.leaf_end ? Sides::left : Sides::both;
    }

    // Write a split, and queue the children that are needed.
    void add_split(const Span& span, const Split& split, Pending& left, Pending& right) {
        sink_.gains[split.feature] += split.gain;
        left.span.queries_begin = span.queries_begin;
        right.span.queries_end = span.queries_end;
        left.span.queries_end = right.span.queries_begin =
            partition_queries(span.queries_begin, span.queries_end, split);
        if (sink_.nodes) {
            right.parent = static_cast<int64_t>(sink_.nodes->size());
            sink_.nodes->push_back(make_node(split));
        }
        if (is_needed(right.span)) pending_.push_back(right);
        if (is_needed(left.span)) pending_.push_back(left);
    }

    // Plan a tree of at most `max_leaf_nodes` leaves; the node with the largest gain is
    // split first. Returns the place of the root.
    int plan_tree(const Pending& root) {
        planned_.clear();
        waiting_.clear();
        add_planned(root);
        for (int leaves = 1; !waiting_.empty() && leaves < options_.max_leaf_nodes;) {
            const int place = pop_planned();
            const Planned chosen = planned_[place];
            Split split = chosen.split;
            Pending left = make_child(chosen.node, kLeftKey, chosen.ordered_by);
            Pending right = make_child(chosen.node, kRightKey, chosen.ordered_by);
            const Sides sides = divide(chosen.node.span, split, left.span, right.span);
            const int first = add_planned(sides == Sides::right ? right : left);
            const int second = sides == Sides::both ? add_planned(right) : -1;
            planned_[place].split = split;
            planned_[place].left = first;
            planned_[place].right = second;
            leaves += second >= 0;
        }
        return 0;
    }

    // Find a node's split, and queue the node if there is one.
    int add_planned(const Pending& node) {
        const Split split = find_best_split(node);
        const int place = static_cast<int>(planned_.size());
        planned_.push_back({node, split, find_order(split)});
        if (split.feature >= 0) {
            waiting_.push_back({split.gain, -place});
            std::push_heap(waiting_.begin(), waiting_.end());
        }
        return place;
    }

    // Take the node with the largest gain; the first of equal ones.
    int pop_planned() {
        std::pop_heap(waiting_.begin(), waiting_.end());
        const int place = -waiting_.back().second;
        waiting_.pop_back();
        return place;
    }

    // Grow a node as planned.
    void grow_planned(const Pending& node) {
        const Planned& here = planned_[node.plan];
        if (here.left < 0) {
            reset_leaf(here.node.span);
            add_leaf(here.node.span, node.span.queries_begin, node.span.queries_end);
            return;
        }
        Pending left = planned_[here.left].node;
        left.plan = here.left;
        if (here.right < 0) {
            left.span.queries_begin = node.span.queries_begin;
            left.span.queries_end = node.span.queries_end;
            pending_.push_back(left);
            return;
        }
        Pending right = planned_[here.right].node;
        right.plan = here.right;
        add_split(node.span, here.split, left, right);
    }

    // Return the rows that a leaf is estimated from.
    Rows rows_of_leaf(const Span& span) const {
        if (leaf_rows_.empty())
            return {rows_.data() + span.rows_begin, span.rows_end - span.rows_begin};
        return {leaf_rows_.data() + span.leaf_begin, span.leaf_end - span.leaf_begin};
    }

    // Give the criterion the rows that a leaf is estimated from.
    void reset_leaf(const Span& span) { criterion_.reset(rows_of_leaf(span)); }

    // Return the code of a leaf's rows, and list them if there are several; see `Sink`.
    int32_t list_leaf_rows(const Span& span) {
        if (!sink_.leaf_rows) return 0;
        const Rows rows = rows_of_leaf(span);
        if (rows.size == 1) return subsample_.table_row(rows.first[0]);
        const size_t place = sink_.leaf_rows->size() - list_base_;
        if (place >= INT32_MAX)
            throw std::length_error("the leaves of a tree have too many rows to be listed.");
        double total = 0;
        for (int j = 0; j < rows.size; ++j) total += subsample_.data()[rows.first[j]].weight;
        sink_.leaf_rows->push_back(rows.size);
        sink_.leaf_shares->push_back(0);
        for (int j = 0; j < rows.size; ++j) {
            const int32_t row = rows.first[j];
            sink_.leaf_rows->push_back(subsample_.table_row(row));
            sink_.leaf_shares->push_back(
                static_cast<float>(subsample_.data()[row].weight / total));
        }
        return -1 - static_cast<int32_t>(place);
    }

    static Node make_node(const Split& split) {
        const int32_t missing_left = split.missing_left ? 1 : 0;
        if (split.by_levels)
            return {split.feature | kLevelsFlag, missing_left,
                    bits_as_value(split.levels_left)};
        return {split.feature, missing_left, split.threshold};
    }

    bool is_needed(const Span& span) const {
        return !options_.only_queried || span.queries_end > span.queries_begin;
    }

    void add_leaf(const Span& span, int q_begin, int q_end) {
        const int width = criterion_.width();
        criterion_.write_leaf(leaf_.data());
        for (int q = q_begin; q < q_end; ++q) {
            const size_t at = queries_[q];
            if (at < static_cast<size_t>(sink_.n_at)) {
                for (int c = 0; c < width; ++c) sink_.out[at * width + c] = leaf_[c];
                continue;
            }
            const size_t row = at - sink_.n_at;
            for (int c = 0; c < width; ++c) sink_.oob[row * width + c] += leaf_[c];
            sink_.times[row] += 1;
        }
        if (!sink_.nodes) return;
        const int32_t code = list_leaf_rows(span);
        if (width > 1)
            add_class_leaf(code);
        else
            sink_.nodes->push_back({-1, code, leaf_[0]});
    }

    // Pure leaves store their class, mixed leaves a row of shares.
    void add_class_leaf(int32_t code) {
        const int only = criterion_.only_class();
        if (only >= 0) {
            sink_.nodes->push_back({-2, only, static_cast<double>(code)});
            return;
        }
        const size_t place = (sink_.shares->size() - share_base_) / leaf_.size();
        sink_.nodes->push_back({-3, static_cast<int32_t>(place), static_cast<double>(code)});
        sink_.shares->insert(sink_.shares->end(), leaf_.begin(), leaf_.end());
    }

    // Stable on both sides, so that a node's rows stay in ascending order.
    template <class GoesLeft>
    static int partition(std::vector<int32_t>& rows, std::vector<int32_t>& scratch,
                         int begin, int end, GoesLeft goes_left) {
        int middle = begin, spare = 0;
        for (int j = begin; j < end; ++j) {
            const int32_t i = rows[j];
            const bool left = goes_left(i);
            rows[middle] = i;  // both are written: a branch would be unpredictable
            scratch[spare] = i;
            middle += left;
            spare += !left;
        }
        std::copy(scratch.begin(), scratch.begin() + spare, rows.begin() + middle);
        return middle;
    }

    // Partition by the levels of rows or query points.
    template <class Value>
    static int partition_levels(std::vector<int32_t>& rows, std::vector<int32_t>& scratch,
                                int begin, int end, const Split& split, Value value) {
        return partition(rows, scratch, begin, end, [&](int32_t i) {
            return level_goes_left(value(i), split.levels_left, split.missing_left);
        });
    }

    int partition_rows(int begin, int end, const Split& split) {
        if (split.by_levels)
            return partition_levels(rows_, scratch_, begin, end, split, [&](int32_t i) {
                return subsample_.value(split.feature, i);
            });
        const int32_t* rank = subsample_.rank(split.feature);
        const int known = subsample_.n_known(split.feature);
        return partition(rows_, scratch_, begin, end, [&](int32_t i) {
            const int32_t r = rank[i];
            return (r < split.cut) | ((r >= known) & split.missing_left);
        });
    }

    // Rows of honest leaves lie anywhere between those that define the split, so they are
    // compared with the threshold.
    int partition_leaf_rows(int begin, int end, const Split& split) {
        if (split.by_levels)
            return partition_levels(
                leaf_rows_, scratch_, begin, end, split,
                [&](int32_t i) { return subsample_.value(split.feature, i); });
        const int32_t* rank = subsample_.rank(split.feature);
        const int known = subsample_.n_known(split.feature);
        return partition(leaf_rows_, scratch_, begin, end, [&](int32_t i) {
            return rank[i] >= known ? split.missing_left
                                    : subsample_.value(split.feature, i) <= split.threshold;
        });
    }

    int partition_queries(int begin, int end, const Split& split) {
        const double* x =
            sink_.points + static_cast<size_t>(split.feature) * sink_.n_points;
        if (split.by_levels)
            return partition_levels(queries_, query_scratch_, begin, end, split,
                                    [&](int32_t q) { return x[q]; });
        return partition(queries_, query_scratch_, begin, end, [&](int32_t q) {
            return std::isnan(x[q]) ? split.missing_left : x[q] <= split.threshold;
        });
    }

    static constexpr uint64_t kLeftKey = 0x6c65667400000001ULL;
    static constexpr uint64_t kRightKey = 0x7269676874000002ULL;

    const Options options_;
    Subsample subsample_;
    Criterion criterion_;
    SplitFinder<Criterion> finder_;
    std::vector<int32_t> scratch_;
    std::vector<double> leaf_;  // prediction of the last leaf

    Sink sink_ = {};
    // Where this tree's nodes, shares and lists of rows start
    size_t base_ = 0, share_base_ = 0, list_base_ = 0;
    std::vector<int32_t> rows_;
    std::vector<int32_t> leaf_rows_;  // rows that honest leaves are estimated from
    std::vector<int32_t> queries_, query_scratch_;
    std::vector<Pending> pending_;
    std::vector<Planned> planned_;
    std::vector<std::pair<double, int>> waiting_;  // gains and (negative) places: a heap
};

}  // namespace vstatkit

#endif
