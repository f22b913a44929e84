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
  const uint64_t longest_ns = kEndNs + stopped_ns_;
  return std::max(longest_ns - std::min(used_ns, longest_ns),
                  kMomentNs - std::min(lasts_ns, kMomentNs));
}

/// What the agent itself does, much for many processes, is waited for as long as it takes. A job
/// that is suspended meanwhile suspends its agent, too: that time is not the providers'.
template <class Predicate>
std::optional<ProviderCall::Running> Housekeeping::wait_at_end(MutexLock* lock, Predicate is_over) {
  if (!before_end_ns_) {
    before_end_ns_ = providers_.call().ended_ns();
    stopped_ns_ = 0;
  }
  while (!is_over()) {
    auto call = providers_.call().running();
    const uint64_t left_ns = call ? end_left_ns(*call) : kMomentNs;
    if (left_ns == 0) return call;
    const uint64_t step_ns = std::min(left_ns, kMomentNs);
    const uint64_t begin_ns = monotonic_ns();
    lock->wait_for(&settled_, std::chrono::nanoseconds(step_ns), is_over);
    const uint64_t took_ns = monotonic_ns() - begin_ns;
    stopped_ns_ += took_ns - std::min(took_ns, step_ns);
  }
  return std::nullopt;
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
  std::optional<ProviderCall::Running> held;
  {
    MutexLock lock(&m_);
    is_stopping_ = true;
    wake_.notify_one();
    held = wait_at_end(&lock, [&]() AON_REQUIRES(m_) { return has_ended_; });
  }
  if (!held) {
    thread_.join();
    if (unseen_.wants_mpi()) unseen_.report(*state_, inbox_);
    return true;
  }
  thread_.detach();
  // Not which one runs now: it may have come back just after.
  tell_held(held->provider, std::string(held->function) +
                                " had not returned at the end of the job, which waits 10 s for "
                                "providers: what those of this node had still to tell is missing");
  tell_for_held();
  report_clock();
  // Not the thread's own one, which it may come back to.
  UnseenPrograms unseen(config_.arguments.options);
  if (unseen.wants_mpi()) unseen.report(*state_, inbox_);
  return false;
}

/// What waits for the thread, as which programs are not recorded.
void Housekeeping::tell_for_held() {
  std::vector<std::pair<RecordingNote, std::string>> notes;
  std::optional<Error> refusal;
  {
    const MutexLock lock(&m_);
    notes.swap(fresh_notes_);
    if (!std::exchange(is_refusal_told_, true)) refusal = refusal_;
  }
  if (refusal) tell_refusal(*refusal);
  // They go on from what the thread has told; it may come back to its own ones.
  RecordingNotes all(inbox_, &state_->header().notes);
  for (const auto& [note, program] : notes) all.add(note, program);
}

/// The clock alone would accuse one that a suspended job has kept from its end.
void Housekeeping::look_at_providers() {
  const auto call = providers_.call().running();
  const uint64_t begin_ns = call ? call->begin_ns : 0;
  look_count_ = begin_ns == seen_call_ns_ ? look_count_ + 1 : 0;
  seen_call_ns_ = begin_ns;
  if (!call || begin_ns == told_call_ns_ || look_count_ < kEndNs / kSecondNs ||
      monotonic_ns() - begin_ns < kEndNs)
    return;
  told_call_ns_ = begin_ns;
  providers_.call().tell_held(*call, [&] {
    tell_held(call->provider,
              std::string(call->function) +
                  " has not returned for 10 s: until it does, no provider of this "
                  "node is called, no stack of a hung rank is taken, and the budget "
                  "is not held");
  });
}

void Housekeeping::tell_held(const std::string& provider, const std::string& reason) {
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {provider, reason, "aon-run --without " + provider});
}

}  // namespace aon::agent
