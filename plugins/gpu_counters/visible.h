/// Which GPUs the processes of the job may see by their CUDA_VISIBLE_DEVICES. The helper samples
/// all GPUs that the job's control group leaves; on a node without one these are other jobs' as
/// well, and the ledger says so. Nothing is left out for it: a program may set the variable itself.
/// Owner: the provider.   Thread: its.   Cost: a file read per process that starts.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace aon::gpu_counters {

class VisibleDevices {
 public:
  /// Reads the variable of process `pid`, as it was started.
  void add_process(int32_t pid);
  /// The same with the value; null: not set.
  void add(const char* value);

  /// True when the job has processes and none of them may see the GPU.
  bool is_hidden(uint32_t ordinal, const std::string& uuid) const;

 private:
  static constexpr size_t kMaxNames = 1024;

  bool is_known_ = false;
  bool has_all_ = false;         ///< a process may see every GPU
  std::set<std::string> names_;  ///< ordinals, or UUIDs or how they begin
};

}  // namespace aon::gpu_counters
