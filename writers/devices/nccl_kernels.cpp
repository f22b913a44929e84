#include "writers/devices/nccl_kernels.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace aon::writers::devices {
namespace {

/// By more than `slack_ns`. Times of a spool may be anything.
bool is_before(uint64_t a_ns, uint64_t b_ns, uint64_t slack_ns) {
  return a_ns < b_ns && b_ns - a_ns > slack_ns;
}

/// `next_ns`: the launch behind it. A kernel that seems to come a moment behind that one is of it,
/// unless it has one of its own.
bool is_of_launch(uint64_t launch_ns, uint64_t next_ns, std::span<const NcclKernel> kernels) {
  if (kernels.empty() || is_before(launch_ns, kernels[0].call_ns, NcclKernels::kFarthestNs))
    return false;
  if (kernels[0].call_ns < next_ns) return true;
  if (is_before(next_ns, kernels[0].call_ns, NcclKernels::kSlackNs)) return false;
  return kernels.size() > 1 && !is_before(next_ns, kernels[1].call_ns, NcclKernels::kFarthestNs);
}

}  // namespace

void NcclKernels::clear() {
  operations_.clear();
  kernels_.clear();
  unmatched_count_ = 0;
  left_out_count_ = 0;
}

/// What is in flight has another record when it ends.
void NcclKernels::add_operation(const NcclOperation& operation, uint32_t device) {
  const bool is_of_kernel =
      operation.launch_ns != 0 && (operation.flags & (kNcclInFlight | kNcclCopyEngines)) == 0;
  if (!is_of_kernel) return;
  if (operations_.size() == kMaxOperations) {
    ++left_out_count_;
    return;
  }
  operations_.push_back({operation.start_ns, operation.launch_ns, operation.sequence,
                         operation.bytes, operation.communicator, operation.region, operation.call,
                         device, operation.peer, operation.type,
                         (operation.flags & kNcclGpuTimed) != 0});
}

void NcclKernels::add_kernel(const NcclKernel& kernel) {
  if (kernels_.size() < kMaxOperations) kernels_.push_back(kernel);
}

/// All operations of one launch have its kernel's times.
Status NcclKernels::join_plan(Operations plan, const NcclKernel& kernel, const Sink& sink) {
  for (const Operation& one : plan) {
    Status status = sink({.communicator = one.communicator,
                          .region = one.region,
                          .call = one.call,
                          .device = kernel.device,
                          .sequence = one.sequence,
                          .bytes = one.bytes,
                          .called_ns = one.called_ns,
                          .launch_ns = one.launch_ns,
                          .start_ns = kernel.start_ns,
                          .gpu_ns = kernel.end_ns - kernel.start_ns,
                          .shared_by = static_cast<uint32_t>(plan.size()),
                          .peer = one.peer,
                          .type = one.type,
                          .is_told = one.is_told});
    if (!status) return status;
  }
  return {};
}

/// Both in order of time; `left` gets the kernels of no operation.
Status NcclKernels::join_device(Operations operations, Kernels kernels,
                                std::vector<NcclKernel>* left, const Sink& sink) {
  auto kernel = kernels.begin();
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last = std::find_if(first, operations.end(), [&](const Operation& operation) {
      return operation.launch_ns != first->launch_ns ||
             operation.communicator != first->communicator;
    });
    const Operations plan(first, last);
    const uint64_t launch_ns = first->launch_ns;
    for (; kernel != kernels.end() && is_before(kernel->call_ns, launch_ns, kSlackNs); ++kernel)
      left->push_back(*kernel);
    const uint64_t next_ns = last != operations.end() ? last->launch_ns : UINT64_MAX;
    if (is_of_launch(launch_ns, next_ns, {kernel, kernels.end()})) {
      if (Status status = join_plan(plan, *kernel, sink); !status) return status;
      ++kernel;
    } else {
      unmatched_count_ += plan.size();
    }
    first = last;
  }
  left->insert(left->end(), kernel, kernels.end());
  return {};
}

Status NcclKernels::join(const Sink& sink) {
  std::sort(operations_.begin(), operations_.end(), [](const Operation& a, const Operation& b) {
    return std::tuple(a.device, a.launch_ns, a.communicator, a.call) <
           std::tuple(b.device, b.launch_ns, b.communicator, b.call);
  });
  const auto by_call = [](const NcclKernel& a, const NcclKernel& b) {
    return std::tuple(a.device, a.call_ns) < std::tuple(b.device, b.call_ns);
  };
  std::sort(kernels_.begin(), kernels_.end(), by_call);
  const Operations operations(operations_);
  std::vector<NcclKernel> left;
  Status status;
  auto kernel = kernels_.cbegin();
  for (auto first = operations.begin(); status && first != operations.end();) {
    const uint32_t device = first->device;
    const auto last = std::find_if(first, operations.end(),
                                   [&](const Operation& one) { return one.device != device; });
    for (; kernel != kernels_.cend() && kernel->device < device; ++kernel) left.push_back(*kernel);
    const auto own = kernel;
    for (; kernel != kernels_.cend() && kernel->device == device; ++kernel) {
    }
    Kernels kernels(own, kernel);
    std::vector<NcclKernel> all;
    if (device == kNoDevice) {  // the last one
      all = std::exchange(left, {});
      all.insert(all.end(), own, kernel);
      std::sort(all.begin(), all.end(),
                [](const NcclKernel& a, const NcclKernel& b) { return a.call_ns < b.call_ns; });
      kernels = all;
    }
    status = join_device({first, last}, kernels, &left, sink);
    first = last;
  }
  std::exchange(operations_, {});  // gives their memory back
  std::exchange(kernels_, {});
  return status;
}

}  // namespace aon::writers::devices
