/// Which call into a provider runs just now, and how long all have taken: for those who must not
/// wait for ever for their end.
/// Thread: one makes the calls, any asks.   Cost: two short locks and a clock read for each call.
#pragma once

#include <aon/mutex.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/time.h"

namespace aon::agent {

class ProviderCall {
 public:
  struct Running {
    std::string provider;
    const char* function;
    uint64_t begin_ns;  ///< CLOCK_MONOTONIC
    uint64_t ended_ns;  ///< all calls before it together
  };

  /// `function` of `provider` is called as long as it lives.
  class Scope {
   public:
    Scope(ProviderCall* call, std::string provider, const char* function) : call_(call) {
      const MutexLock lock(&call_->m_);
      call_->running_ = {std::move(provider), function, monotonic_ns(), call_->ended_ns_};
    }
    ~Scope() {
      const MutexLock lock(&call_->m_);
      call_->ended_ns_ += monotonic_ns() - call_->running_->begin_ns;
      if (std::exchange(call_->is_told_, false))
        call_->returned_.push_back(std::move(*call_->running_));
      call_->running_.reset();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProviderCall* call_;
  };

  /// Nothing: none runs.
  std::optional<Running> running() const {
    const MutexLock lock(&m_);
    return running_;
  }
  /// Has `tell` say that `call` does not return, if that is so still. What is said of its end comes
  /// later.
  template <class Tell>
  void tell_held(const Running& call, const Tell& tell) {
    const MutexLock lock(&m_);
    if (!running_ || running_->begin_ns != call.begin_ns) return;
    is_told_ = true;
    tell();
  }
  /// Of which that was said, and which have returned since.
  std::vector<Running> take_returned() {
    const MutexLock lock(&m_);
    return std::exchange(returned_, {});
  }
  /// All calls that have ended, together.
  uint64_t ended_ns() const {
    const MutexLock lock(&m_);
    return ended_ns_;
  }

 private:
  mutable Mutex m_;
  std::optional<Running> running_ AON_GUARDED_BY(m_);
  uint64_t ended_ns_ AON_GUARDED_BY(m_) = 0;
  bool is_told_ AON_GUARDED_BY(m_) = false;  ///< that the running one does not return
  std::vector<Running> returned_ AON_GUARDED_BY(m_);
};

}  // namespace aon::agent
