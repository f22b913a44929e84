/// Xid events: what the driver reports of a GPU in trouble, from a page fault of a kernel to a GPU
/// that is gone. They are asked for without waiting.
/// Thread: the poller's.   Cost: one call per look and GPU; none where there are no such events.
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

/// One set of events per GPU: a wait that fails for a GPU that is lost, or three times in a row for
/// another reason, ends the watching of this one alone.
class Events {
 public:
  explicit Events(const Functions& call) : call_(call) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Watches these GPUs.   Returns NVML's code for each; parts (MIG) are told by the whole one.
  std::vector<uint32_t> watch(const std::vector<Gpu>& gpus);
  /// Whether events of this GPU would be seen now.
  bool is_watching(size_t gpu) const;
  /// What happened since the last call, at most 16 of each GPU.
  std::vector<Xid> take();

  /// A GPU whose watching ended in mid-run, and NVML's code.
  struct End {
    uint32_t gpu;
    uint32_t code;
  };
  const std::vector<End>& ends() const { return ends_; }

 private:
  struct Watch {
    uint32_t gpu;
    EventSet set;
    bool is_on;
    uint32_t errors_in_a_row = 0;
  };

  uint32_t watch_one(uint32_t index, const Gpu& gpu);
  void take_from(Watch* watch, std::vector<Xid>* found);

  const Functions& call_;
  std::vector<Watch> watches_;
  std::vector<End> ends_;
};

/// "Xid 79 (the GPU has fallen off the bus)".
std::string xid_text(uint32_t number);

}  // namespace aon::nvml
