/// What the ledger is told of this provider: all that is known to be wrong, one remark behind the
/// other, for its last word is the one that counts there.
/// Thread: any; a mutex.   Signal: no.   Cost: a definition where anything has changed.
#pragma once

#include <aon/definition.h>
#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <cstddef>

namespace aon::nccl {

constexpr int kMaxReasonBytes = 640;  ///< of a remark, and of all
constexpr int kMaxRemedyBytes = 320;

enum class Topic : uint8_t { kMemory, kLevel, kMembers, kChain, kRoom, kLosses };
constexpr int kTopicCount = 6;

/// Takes the place of what was said of `topic`; kOn with "": nothing is wrong there.
void remark(Topic topic, ProviderState state, const char* reason, const char* remedy);

/// Clauses, each behind "; ". What has no room is cut off.
class Clauses {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!is_empty()) append("; ", arguments);  // which takes none of them
    append(format, arguments);
    va_end(arguments);
  }
  const char* text() const { return text_; }
  bool is_empty() const { return length_ == 0; }

 private:
  [[gnu::format(printf, 2, 0)]] void append(const char* format, va_list arguments) {
    const int bytes = vsnprintf(text_ + length_, sizeof text_ - length_, format, arguments);
    length_ = std::min(length_ + static_cast<size_t>(std::max(bytes, 0)), sizeof text_ - 1);
  }

  char text_[kMaxReasonBytes + 1] = "";
  size_t length_ = 0;
};

}  // namespace aon::nccl
