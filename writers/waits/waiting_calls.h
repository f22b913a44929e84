/// The waits of the whole job, one per call.
/// Thread: one.   Cost: that of the reader.
#pragma once

#include <optional>
#include <utility>

#include "writers/waits/match.h"
#include "writers/waits/sorted_store.h"
#include "writers/waits/waits.h"

namespace aon::writers {

/// Calls that waited, in order. Of the waits of one call the longest counts: they are the same
/// time. An upper bound that says up to a tenth more than one that is none does not: who sends and
/// then receives comes late with both.
class WaitingCalls {
 public:
  explicit WaitingCalls(SortedStore<Wait>::Reader reader) : reader_(std::move(reader)) {}

  /// Nothing behind the last one.
  Result<std::optional<Wait>> next() {
    if (!has_begun_) {
      Status status = look_ahead();
      if (!status) return status.error();
      has_begun_ = true;
    }
    if (!ahead_) return std::optional<Wait>();
    std::optional<Wait> told;
    for (;;) {
      const Wait wait = *ahead_;
      if (!told || !hardly_exceeds(wait, *told)) told = wait;
      Status status = look_ahead();
      if (!status) return status.error();
      if (!ahead_ || ahead_->call() != wait.call()) return told;
    }
  }

 private:
  static bool hardly_exceeds(const Wait& longer, const Wait& shorter) {
    return is_upper_bound(longer.kind) && !is_upper_bound(shorter.kind) &&
           longer.wait_ns - shorter.wait_ns <= shorter.wait_ns / 10;
  }

  Status look_ahead() {
    Result<const Wait*> next = reader_.next();
    if (!next) return next.error();
    ahead_ = *next != nullptr ? std::optional<Wait>(**next) : std::nullopt;
    return {};
  }

  SortedStore<Wait>::Reader reader_;
  std::optional<Wait> ahead_;
  bool has_begun_ = false;
};

/// CallWaits over them.
class CallWaitReader : public CallWaits {
 public:
  explicit CallWaitReader(SortedStore<Wait>::Reader reader) : calls_(std::move(reader)) {}

  Result<std::optional<CallWait>> next(uint32_t location) override {
    const auto is_wanted = [&](const Wait& wait) {
      return wait.location >= location && wait.wait_ns >= kLeastCallWaitNs && !wait.is_polled;
    };
    while (ahead_ && !is_wanted(*ahead_)) {
      Result<std::optional<Wait>> next = calls_.next();
      if (!next) return next.error();
      ahead_ = *next;
    }
    if (!ahead_ || ahead_->location != location) return std::optional<CallWait>();
    const CallWait call{ahead_->enter_ns, ahead_->leave_ns, ahead_->wait_ns};
    ahead_ = Wait{};
    return std::optional<CallWait>(call);
  }

 private:
  WaitingCalls calls_;
  std::optional<Wait> ahead_ = Wait{};  ///< one that waits for nothing is not wanted
};

}  // namespace aon::writers
