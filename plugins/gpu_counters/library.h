/// libcupti, loaded and asked by name, in the helper process and in tests.
/// Thread: one.   Cost: 120 MB with its data base, once a chip is asked for.
#pragma once

#include <string>

#include "gpu_counters/interface.h"

namespace aon::gpu_counters {

/// Why something does not work, and what helps; an empty reason: it works.
struct Problem {
  std::string reason;
  std::string remedy;

  explicit operator bool() const { return !reason.empty(); }
};

/// What CUPTI answered to `call`; nothing when it worked.
Problem problem_of(const char* call, int code);

class Library {
 public:
  /// Opens what open_cupti() finds.
  Problem open();
  const Functions& call() const { return functions_; }
  /// Of a library that works: it is not the one that AON_CUPTI_LIB says. Empty: it is.
  const Problem& remark() const { return remark_; }

 private:
  Functions functions_;
  Problem remark_;
};

}  // namespace aon::gpu_counters
