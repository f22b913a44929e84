/// Which call into a provider runs just now, and how long all have taken: for those who must not
/// wait for ever for their end.
/// Thread: one makes the calls, any asks.   Cost: two short locks and a clock read for each call.
#pragma once

#include <aon/mutex.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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
  /// All calls that have ended, together.
  uint64_t ended_ns() const {
    const MutexLock lock(&m_);
    return ended_ns_;
  }

 private:
  mutable Mutex m_;
  std::optional<Running> running_ AON_GUARDED_BY(m_);
  uint64_t ended_ns_ AON_GUARDED_BY(m_) = 0;
};

}  // namespace aon::agent
