// Grow classification and regression trees on weighted rows.
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
          own_(table, y),
          criterion_(options),
          finder_(own_, options_),
          leaf_(criterion_.width()) {}

    void grow(const double* weight, uint64_t seed, const Sink& sink) override {
        own_.take(weight);
        grow_own(seed, sink);
    }

    void grow(const std::vector<Member>& members, uint64_t seed,
              const Sink& sink) override {
        own_.take(members);
        grow_own(seed, sink);
    }

  private:
    void grow_own(uint64_t seed, const Sink& sink) {
        sink_ = sink;
        base_ = sink.nodes ? sink.nodes->size() : 0;
        share_base_ = sink.shares ? sink.shares->size() : 0;
        if (own_.size() == 0)
            throw std::invalid_argument(
                "a subsample has no row of positive weight; use larger subsamples, or "
                "leave out the rows of weight zero.");
        criterion_.start(own_);
        list_queries();
        rows_.resize(own_.size());
        scratch_.resize(own_.size());
        for (size_t j = 0; j < rows_.size(); ++j) rows_[j] = static_cast<int32_t>(j);
        held_.clear();
        uint64_t key = mix(seed);
        if (options_.honest && rows_.size() > 1) key = hold_out_half(key);
        finder_.start({rows_.data(), static_cast<int>(rows_.size())});
        Span span;
        span.rows_end = static_cast<int>(rows_.size());
        span.held_end = static_cast<int>(held_.size());
        span.queries_end = static_cast<int>(queries_.size());
        Pending root{span, key, -1, 0, -1};
        if (options_.max_leaf_nodes > 0) root.plan = plan(root);
        build(root);
    }

    // A node's share of the rows, of the rows held out, and of the query points.
    struct Span {
        int rows_begin = 0, rows_end = 0;
        int held_begin = 0, held_end = 0;
        int queries_begin = 0, queries_end = 0;
    };

    // A node that waits to be grown.
    struct Pending {
        Span span;
        uint64_t key;
        int64_t parent;  // place of the node whose right child it is, or -1
        int depth;
        int ordered_by;  // feature in whose order its rows are kept, or -1
        int plan = -1;   // its place in the plan, if there is one
    };

    // A node of a tree that is planned before it is built: its best split, and the nodes
    // below it once that is made. Without a right one the left one stands in its place.
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
        queries_.resize(n_at + own_.list_absent(sink_.oob_rows, n_oob, n_at,
                                                queries_.data() + n_at));
        query_scratch_.resize(queries_.size());
    }

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

    // Nodes are grown, and numbered, from left to right.
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
        Split split = best_split(node);
        if (split.feature < 0) {
            if (!held_.empty()) reset_leaf(node.span);
            leaf(node.span.queries_begin, node.span.queries_end);
            return;
        }
        const int ordered_by = ordered(split);
        Pending left = child(node, kLeftKey, ordered_by);
        Pending right = child(node, kRightKey, ordered_by);
        const Sides sides = part(node.span, split, left.span, right.span);
        if (sides == Sides::both)
            branch(node.span, split, left, right);
        else
            pending_.push_back(sides == Sides::left ? left : right);
    }

    Split best_split(const Pending& node) {
        const Span& span = node.span;
        const Rows rows{rows_.data() + span.rows_begin, span.rows_end - span.rows_begin};
        criterion_.reset(rows);
        if (!may_split(node, rows.size)) return {};
        return finder_.best(criterion_, rows, span.rows_begin, node.key, node.ordered_by,
                            *sink_.watch);
    }

    bool may_split(const Pending& node, int size) const {
        return size >= std::max(2, options_.min_samples_split) &&
               (options_.max_depth <= 0 || node.depth < options_.max_depth) &&
               !criterion_.pure();
    }

    // The feature of the split just found, if the rows are in its order.
    int ordered(const Split& split) const {
        return finder_.ordered_by() == split.feature ? split.feature : -1;
    }

    static Pending child(const Pending& node, uint64_t side, int ordered_by) {
        return {node.span, mix(node.key ^ side), -1, node.depth + 1, ordered_by};
    }

    enum class Sides { both, left, right };

    // Give the children their shares of the rows. A side without rows to estimate from is
    // pruned: the other one stands.
    Sides part(const Span& span, Split& split, Span& left, Span& right) {
        left.rows_end = right.rows_begin =
            partition_rows(span.rows_begin, span.rows_end, split);
        // Levels that the node did not see follow the majority, and so do missing values.
        const bool more_left =
            left.rows_end - left.rows_begin > right.rows_end - right.rows_begin;
        if (!split.saw_missing) split.missing_left = more_left;
        if (more_left) split.levels_left |= ~split.levels_seen;
        if (held_.empty()) return Sides::both;
        const int middle = partition_held(span.held_begin, span.held_end, split);
        left.held_end = right.held_begin = middle;
        if (middle == span.held_begin) return Sides::right;
        return middle == span.held_end ? Sides::left : Sides::both;
    }

    // Put a split down, and let those children wait that are asked for.
    void branch(const Span& span, const Split& split, Pending& left, Pending& right) {
        sink_.gains[split.feature] += split.gain;
        left.span.queries_begin = span.queries_begin;
        right.span.queries_end = span.queries_end;
        left.span.queries_end = right.span.queries_begin =
            partition_queries(span.queries_begin, span.queries_end, split);
        if (sink_.nodes) {
            right.parent = static_cast<int64_t>(sink_.nodes->size());
            sink_.nodes->push_back(node_of(split));
        }
        if (is_asked_for(right.span)) pending_.push_back(right);
        if (is_asked_for(left.span)) pending_.push_back(left);
    }

    // Plan a tree of at most `max_leaf_nodes` leaves: what gains most is split first.
    // Returns the place of the root.
    int plan(const Pending& root) {
        planned_.clear();
        waiting_.clear();
        add_planned(root);
        for (int leaves = 1; !waiting_.empty() && leaves < options_.max_leaf_nodes;) {
            const int place = next_planned();
            const Planned chosen = planned_[place];
            Split split = chosen.split;
            Pending left = child(chosen.node, kLeftKey, chosen.ordered_by);
            Pending right = child(chosen.node, kRightKey, chosen.ordered_by);
            const Sides sides = part(chosen.node.span, split, left.span, right.span);
            const int first = add_planned(sides == Sides::right ? right : left);
            const int second = sides == Sides::both ? add_planned(right) : -1;
            planned_[place].split = split;
            planned_[place].left = first;
            planned_[place].right = second;
            leaves += second >= 0;
        }
        return 0;
    }

    // Find a node's split, and let the node wait if there is one.
    int add_planned(const Pending& node) {
        const Split split = best_split(node);
        const int place = static_cast<int>(planned_.size());
        planned_.push_back({node, split, ordered(split)});
        if (split.feature >= 0) {
            waiting_.push_back({split.gain, -place});
            std::push_heap(waiting_.begin(), waiting_.end());
        }
        return place;
    }

    // Take the node whose split gains most; of equal ones the first.
    int next_planned() {
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
            leaf(node.span.queries_begin, node.span.queries_end);
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
        branch(node.span, here.split, left, right);
    }

    // Take the rows that a leaf is estimated from.
    void reset_leaf(const Span& span) {
        if (held_.empty())
            criterion_.reset(
                {rows_.data() + span.rows_begin, span.rows_end - span.rows_begin});
        else
            criterion_.reset(
                {held_.data() + span.held_begin, span.held_end - span.held_begin});
    }

    static Node node_of(const Split& split) {
        const int32_t missing_left = split.missing_left ? 1 : 0;
        if (split.by_levels)
            return {split.feature | kLevelsFlag, missing_left,
                    bits_as_value(split.levels_left)};
        return {split.feature, missing_left, split.threshold};
    }

    bool is_asked_for(const Span& span) const {
        return !options_.only_queried || span.queries_end > span.queries_begin;
    }

    void leaf(int q_begin, int q_end) {
        const int width = criterion_.width();
        criterion_.leaf(leaf_.data());
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
        if (width > 1)
            leaf_of_classes();
        else
            sink_.nodes->push_back({-1, 0, leaf_[0]});
    }

    // Pure leaves name their class; only mixed ones keep a row of shares.
    void leaf_of_classes() {
        const int only = criterion_.only_class();
        if (only >= 0) {
            sink_.nodes->push_back({-2, only, 0.0});
            return;
        }
        const size_t place = (sink_.shares->size() - share_base_) / leaf_.size();
        sink_.nodes->push_back({-3, static_cast<int32_t>(place), 0.0});
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
            rows[middle] = i;  // both are written: which one counts is not predictable
            scratch[spare] = i;
            middle += left;
            spare += !left;
        }
        std::copy(scratch.begin(), scratch.begin() + spare, rows.begin() + middle);
        return middle;
    }

    // Values of rows or query points tell where levels are split.
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
                return own_.value(split.feature, i);
            });
        const int32_t* rank = own_.rank(split.feature);
        const int known = own_.known(split.feature);
        return partition(rows_, scratch_, begin, end, [&](int32_t i) {
            const int32_t r = rank[i];
            return (r < split.cut) | ((r >= known) & split.missing_left);
        });
    }

    // Rows held out lie anywhere between those that made the split: only the
    // threshold tells.
    int partition_held(int begin, int end, const Split& split) {
        if (split.by_levels)
            return partition_levels(held_, scratch_, begin, end, split, [&](int32_t i) {
                return own_.value(split.feature, i);
            });
        const int32_t* rank = own_.rank(split.feature);
        const int known = own_.known(split.feature);
        return partition(held_, scratch_, begin, end, [&](int32_t i) {
            return rank[i] >= known ? split.missing_left
                                    : own_.value(split.feature, i) <= split.threshold;
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
    Subsample own_;
    Criterion criterion_;
    SplitFinder<Criterion> finder_;
    std::vector<int32_t> scratch_;
    std::vector<double> leaf_;  // what it predicts

    Sink sink_ = {};
    size_t base_ = 0, share_base_ = 0;  // where this tree's nodes and shares start
    std::vector<int32_t> rows_;
    std::vector<int32_t> held_;  // rows that honest leaves are estimated from
    std::vector<int32_t> queries_, query_scratch_;
    std::vector<Pending> pending_;
    std::vector<Planned> planned_;
    std::vector<std::pair<double, int>> waiting_;  // gains and (negative) places: a heap
};

}  // namespace vstatkit

#endif
