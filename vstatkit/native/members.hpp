// The rows of subsamples, listed: for subsamples much smaller than the table.

#ifndef VSTATKIT_MEMBERS_HPP
#define VSTATKIT_MEMBERS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vstatkit {

// A row of the table and its weight in the subsample.
struct Member {
    int32_t row;
    double weight;
};

// Units that were drawn, learner after learner, and how often.
struct Draws {
    const int64_t* bounds;  // (learners + 1)
    const int32_t* units;
    const double* times;
    const int64_t* unit_bounds;  // rows of every unit; null if a unit is a row
    const int32_t* unit_rows;
    const double* weights;  // of the rows; null for ones
};

class MemberLister {
  public:
    explicit MemberLister(const Draws& draws) : draws_(draws) {}

    // List the rows of positive weight of one learner, in ascending order.
    const std::vector<Member>& list(int64_t learner) {
        members_.clear();
        for (int64_t e = draws_.bounds[learner]; e < draws_.bounds[learner + 1]; ++e) {
            const int32_t unit = draws_.units[e];
            if (!draws_.unit_bounds) {
                add(unit, draws_.times[e]);
                continue;
            }
            for (int64_t r = draws_.unit_bounds[unit]; r < draws_.unit_bounds[unit + 1]; ++r)
                add(draws_.unit_rows[r], draws_.times[e]);
        }
        std::sort(members_.begin(), members_.end(),
                  [](const Member& a, const Member& b) { return a.row < b.row; });
        return members_;
    }

  private:
    void add(int32_t row, double times) {
        const double weight = draws_.weights ? times * draws_.weights[row] : times;
        if (weight > 0) members_.push_back({row, weight});
    }

    const Draws draws_;
    std::vector<Member> members_;
};

}  // namespace vstatkit

#endif
