/// Xid events: what the driver reports of a GPU in trouble, from a page fault of a kernel to a GPU
/// that is gone. They are asked for without waiting.
/// Thread: the poller's.   Cost: one call per look; none where the driver has no such events.
#pragma once

#include <string>
#include <vector>

#include "nvml/found.h"
#include "nvml/queries.h"

namespace aon::nvml {

struct Xid {
  uint32_t gpu;  ///< index in the list that it was made of
  uint32_t number;
};

class Events {
 public:
  explicit Events(const Functions& call) : call_(call) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Watches these GPUs.   Returns NVML's code for each; parts (MIG) are told by the whole one.
  std::vector<uint32_t> watch(const std::vector<Gpu>& gpus);
  /// Whether events of this GPU would be seen now.
  bool is_watching(size_t gpu) const { return is_watching_ && is_watched_[gpu]; }
  /// What happened since the last call, at most 16 of them.
  std::vector<Xid> take();
  /// NVML's code that ended the watching in mid-run; kSuccess: it goes on.
  uint32_t end_code() const { return end_code_; }

 private:
  const Functions& call_;
  EventSet set_ = nullptr;
  std::vector<Handle> handles_;
  std::vector<bool> is_watched_;  ///< by GPU
  bool is_watching_ = false;      ///< any; false after a wait has failed
  uint32_t end_code_ = kSuccess;
};

/// "Xid 79 (the GPU has fallen off the bus)".
std::string xid_text(uint32_t number);

}  // namespace aon::nvml
