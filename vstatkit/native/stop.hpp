// Call off work that goes on in other threads.

#ifndef VSTATKIT_STOP_HPP
#define VSTATKIT_STOP_HPP

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace vstatkit {

// Set by one thread and read by others. What stops the parent stops the child.
class StopFlag {
  public:
    explicit StopFlag(const StopFlag* parent) : parent_(parent) {}

    void set() { set_.store(true, std::memory_order_relaxed); }

    bool is_set() const {
        for (const StopFlag* flag = this; flag; flag = flag->parent_)
            if (flag->set_.load(std::memory_order_relaxed)) return true;
        return false;
    }

  private:
    std::atomic<bool> set_{false};
    const StopFlag* const parent_;
};

// Counts what is done and asks now and then whether to go on.
class Watch {
  public:
    // `flag` and `interrupted` (a pending signal) may be null.
    Watch(const StopFlag* flag, bool (*interrupted)())
        : flag_(flag), interrupted_(interrupted) {}

    void count(int64_t steps) {
        since_asked_ += steps;
        if (since_asked_ > kStepsPerAsking) ask();
    }

  private:
    void ask() {
        since_asked_ = 0;
        if ((flag_ && flag_->is_set()) || (interrupted_ && interrupted_()))
            throw std::runtime_error("the work was called off.");
    }

    static constexpr int64_t kStepsPerAsking = 1000000;

    const StopFlag* flag_;
    bool (*interrupted_)();
    int64_t since_asked_ = 0;
};

}  // namespace vstatkit

#endif
