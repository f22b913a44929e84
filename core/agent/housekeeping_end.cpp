/// Housekeeping at the end of a launch, where a provider may hold its thread.
#include <algorithm>
#include <chrono>

#include "core/agent/housekeeping.h"

namespace aon::agent {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMomentNs = kSecondNs / 10;  ///< at which call is waited for
static_assert(Housekeeping::kEndNs == 10 * kSecondNs, "the texts say it");

}  // namespace

/// Of what providers have for the end of the launch. Where one has used it up a call of another is
/// not the one that hangs: each has a moment.
uint64_t Housekeeping::end_left_ns(const ProviderCall::Running& call) {
  const uint64_t lasts_ns = monotonic_ns() - call.begin_ns;
  const uint64_t used_ns = call.ended_ns - *before_end_ns_ + lasts_ns;
  return std::max(kEndNs - std::min(used_ns, kEndNs), kMomentNs - std::min(lasts_ns, kMomentNs));
}

/// What the agent itself does, much for many processes, is waited for as long as it takes.
template <class Predicate>
bool Housekeeping::wait_at_end(MutexLock* lock, Predicate is_over) {
  if (!before_end_ns_) before_end_ns_ = providers_.call().ended_ns();
  while (!is_over()) {
    const auto call = providers_.call().running();
    const uint64_t left_ns = call ? end_left_ns(*call) : kMomentNs;
    if (left_ns == 0) return false;
    lock->wait_for(&settled_, std::chrono::nanoseconds(std::min(left_ns, kMomentNs)), is_over);
  }
  return true;
}

void Housekeeping::settle() {
  MutexLock lock(&m_);
  is_hurried_ = true;
  wake_.notify_one();
  wait_at_end(&lock, [&]() AON_REQUIRES(m_) {
    return events_.is_empty() && fresh_notes_.empty() && (!refusal_ || is_refusal_told_) &&
           !is_busy_;
  });
  is_hurried_ = false;
}

bool Housekeeping::stop() {
  if (!thread_.joinable()) return true;
  bool has_ended = false;
  {
    MutexLock lock(&m_);
    is_stopping_ = true;
    wake_.notify_one();
    has_ended = wait_at_end(&lock, [&]() AON_REQUIRES(m_) { return has_ended_; });
  }
  if (has_ended) {
    thread_.join();
    if (unseen_.wants_mpi()) unseen_.report(*state_, inbox_);
    return true;
  }
  thread_.detach();
  if (const auto call = providers_.call().running(); call)
    tell_held(call->provider,
              std::string(call->function) +
                  " had not returned at the end of the job, which waits 10 s for "
                  "providers: what those of this node had still to tell is missing");
  report_clock();
  // Not the thread's own one, which it may come back to.
  UnseenPrograms unseen(config_.arguments.options);
  if (unseen.wants_mpi()) unseen.report(*state_, inbox_);
  return false;
}

void Housekeeping::look_at_providers() {
  const auto call = providers_.call().running();
  if (!call || call->begin_ns == told_call_ns_ || monotonic_ns() - call->begin_ns < kEndNs) return;
  told_call_ns_ = call->begin_ns;
  tell_held(call->provider, std::string(call->function) +
                                " has not returned for 10 s: until it does, no provider of this "
                                "node is called, and the budget is not held");
}

void Housekeeping::tell_held(const std::string& provider, const std::string& reason) {
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {provider, reason, "aon-run --without " + provider});
}

}  // namespace aon::agent
