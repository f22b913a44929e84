/// Times on the GPU of NCCL's operations, where NCCL itself did not tell them (level api): NCCL
/// tells when it launches a kernel, the next thing it does is the call of CUDA that does, and that
/// has the correlation id of the kernel.
///
///     NCCL      |launch of plan 1           |launch of plan 2
///     CUDA        |cuLaunchKernelEx 17|       |cuLaunchKernelEx 18|
///     GPU                    |== kernel 17 ====|      |== kernel 18 ==|
///
/// Operations of one group share a plan, so a kernel, and its times. Threads of one process that
/// launch for several devices do so at the same time: each device is joined by itself, and then
/// communicators whose device is not known with the kernels that are left.
/// Thread: one.   Cost: 64 bytes per operation of a process, at most kMaxOperations, and 32 per
/// kernel; a sort.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::devices {

/// A kernel of NCCL whose call is known.
struct NcclKernel {
  uint64_t call_ns;  ///< begin of the call that launched it
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
};

struct TimedOperation {
  uint32_t communicator;  ///< local
  uint32_t region;        ///< local
  uint64_t call;
  uint32_t device;
  uint64_t sequence;
  uint64_t bytes;
  uint64_t called_ns;  ///< begin of the operation's call
  uint64_t launch_ns;
  uint64_t start_ns;
  uint64_t gpu_ns;
  uint32_t shared_by;  ///< operations of the same kernel
  int32_t peer;        ///< of a transfer, else kNoPeer
  NcclType type;
  bool is_told;  ///< NCCL's own timers told what it took
};

class NcclKernels {
 public:
  static constexpr size_t kMaxOperations = 1u << 19;
  static constexpr uint64_t kSlackNs = 5'000;          ///< between the two clocks
  static constexpr uint64_t kFarthestNs = 10'000'000;  ///< of a call behind its launch

  void clear();
  bool is_empty() const { return operations_.empty(); }
  /// `device`: of its communicator; kNoDevice unknown.
  void add_operation(const NcclOperation& operation, uint32_t device = kNoDevice);
  void add_kernel(const NcclKernel& kernel);

  using Sink = std::function<Status(const TimedOperation&)>;
  /// Gives `sink` all that can be joined, by device in order of their launch, or up to its first
  /// error. Ends with nothing to join.
  Status join(const Sink& sink);
  /// Operations with a launch that got no kernel; valid after join().
  uint64_t unmatched_count() const { return unmatched_count_; }
  /// Operations beyond kMaxOperations.
  uint64_t left_out_count() const { return left_out_count_; }

 private:
  struct Operation {
    uint64_t called_ns;
    uint64_t launch_ns;
    uint64_t sequence;
    uint64_t bytes;
    uint32_t communicator;
    uint32_t region;
    uint64_t call;
    uint32_t device;
    int32_t peer;
    NcclType type;
    bool is_told;
  };
  using Operations = std::span<const Operation>;
  using Kernels = std::span<const NcclKernel>;

  Status join_device(Operations operations, Kernels kernels, std::vector<NcclKernel>* left,
                     const Sink& sink);
  static Status join_plan(Operations plan, const NcclKernel& kernel, const Sink& sink);

  std::vector<Operation> operations_;
  std::vector<NcclKernel> kernels_;
  uint64_t unmatched_count_ = 0;
  uint64_t left_out_count_ = 0;
};

}  // namespace aon::writers::devices
