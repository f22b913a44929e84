/// The reads and writes of one process that have begun and are not complete. A thread may complete
/// what another has begun, and its location may come first: both ends wait here for the other.
/// Owner: the assembler.   Thread: one.   Cost: one hash operation per end; memory bounded by
/// kMaxOpenIo, above which operations are not followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kMaxOpenIo = size_t{1} << 20;

class OpenIo {
 public:
  void begin(uint64_t request) { meet(request, &ended_, &begun_); }
  void end(uint64_t request) { meet(request, &begun_, &ended_); }

  /// All locations of the process have been read: what is left is counted and forgotten.
  void settle(Outcome* outcome) {
    outcome->open_io_count += begun_.size();
    outcome->unmatched_io_count += ended_.size();
    begun_.clear();
    ended_.clear();
  }

 private:
  using Requests = std::unordered_set<uint64_t>;

  static void meet(uint64_t request, Requests* others, Requests* own) {
    if (others->erase(request) == 0 && own->size() < kMaxOpenIo) own->insert(request);
  }

  Requests begun_;
  Requests ended_;
};

}  // namespace aon::writers
