// Interrupt work in other threads.

#ifndef VSTATKIT_STOP_HPP
#define VSTATKIT_STOP_HPP

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace vstatkit {

// Set by one thread and read by others. A flag is also set if its parent is.
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

// Counts steps, and checks at intervals whether the work was interrupted.
class Watch {
  public:
    // `interrupted` looks for a pending signal; both may be null.
    explicit Watch(const StopFlag* flag = nullptr, bool (*interrupted)() = nullptr)
        : flag_(flag), interrupted_(interrupted) {}

    void count(int64_t steps) {
        steps_ += steps;
        if (steps_ > kStepsPerCheck) check();
    }

  private:
    void check() {
        steps_ = 0;
        if ((flag_ && flag_->is_set()) || (interrupted_ && interrupted_()))
            throw std::runtime_error("the work was called off.");
    }

    static constexpr int64_t kStepsPerCheck = 1000000;

    const StopFlag* flag_;
    bool (*interrupted_)();
    int64_t steps_ = 0;  // since the last check
};

}  // namespace vstatkit

#endif
