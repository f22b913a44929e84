#include "writers/devices/nccl_kernels.h"

#include <algorithm>
#include <tuple>

namespace aon::writers::devices {
namespace {

/// By more than `slack_ns`. Times of a spool may be anything.
bool is_before(uint64_t a_ns, uint64_t b_ns, uint64_t slack_ns) {
  return a_ns < b_ns && b_ns - a_ns > slack_ns;
}

/// `next_ns`: the launch behind it. A kernel that seems to come a moment behind that one is of it,
/// unless it has one of its own.
bool is_of_launch(uint64_t launch_ns, uint64_t next_ns, std::vector<NcclKernel>::const_iterator it,
                  std::vector<NcclKernel>::const_iterator end) {
  if (it == end || is_before(launch_ns, it->call_ns, NcclKernels::kFarthestNs)) return false;
  if (it->call_ns < next_ns) return true;
  if (is_before(next_ns, it->call_ns, NcclKernels::kSlackNs)) return false;
  const auto behind = std::next(it);
  return behind != end && !is_before(next_ns, behind->call_ns, NcclKernels::kFarthestNs);
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
                         device, operation.peer, (operation.flags & kNcclGpuTimed) != 0});
}

void NcclKernels::add_kernel(const NcclKernel& kernel) {
  if (kernels_.size() < kMaxOperations) kernels_.push_back(kernel);
}

/// Both in order of time; `left` gets the kernels of no operation.
void NcclKernels::join_device(Operations operations, std::vector<NcclKernel>* kernels,
                              std::vector<NcclKernel>* left, std::vector<TimedOperation>* joined) {
  const auto is_same_plan = [](const Operation& a, const Operation& b) {
    return a.launch_ns == b.launch_ns && a.communicator == b.communicator;
  };
  auto kernel = kernels->cbegin();
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last = std::find_if(first, operations.end(), [&](const Operation& operation) {
      return !is_same_plan(operation, *first);
    });
    const uint64_t launch_ns = first->launch_ns;
    for (; kernel != kernels->cend() && is_before(kernel->call_ns, launch_ns, kSlackNs); ++kernel)
      left->push_back(*kernel);
    const uint64_t next_ns = last != operations.end() ? last->launch_ns : UINT64_MAX;
    if (is_of_launch(launch_ns, next_ns, kernel, kernels->cend())) {
      const auto count = static_cast<uint32_t>(last - first);
      for (auto one = first; one != last; ++one) {
        joined->push_back({.communicator = one->communicator,
                           .region = one->region,
                           .call = one->call,
                           .device = kernel->device,
                           .sequence = one->sequence,
                           .bytes = one->bytes,
                           .called_ns = one->called_ns,
                           .launch_ns = launch_ns,
                           .start_ns = kernel->start_ns,
                           .gpu_ns = kernel->end_ns - kernel->start_ns,
                           .shared_by = count,
                           .peer = one->peer,
                           .is_told = one->is_told});
      }
      ++kernel;
    } else {
      unmatched_count_ += static_cast<uint64_t>(last - first);
    }
    first = last;
  }
  left->insert(left->end(), kernel, kernels->cend());
}

std::vector<TimedOperation> NcclKernels::join() {
  std::sort(operations_.begin(), operations_.end(), [](const Operation& a, const Operation& b) {
    return std::tuple(a.device, a.launch_ns, a.communicator, a.call) <
           std::tuple(b.device, b.launch_ns, b.communicator, b.call);
  });
  std::sort(kernels_.begin(), kernels_.end(), [](const NcclKernel& a, const NcclKernel& b) {
    return std::tuple(a.device, a.call_ns) < std::tuple(b.device, b.call_ns);
  });
  std::vector<TimedOperation> joined;
  joined.reserve(operations_.size());
  std::vector<NcclKernel> left;
  const auto by_call = [](const NcclKernel& a, const NcclKernel& b) {
    return a.call_ns < b.call_ns;
  };
  // kNoDevice is the last one.
  auto kernel = kernels_.cbegin();
  for (auto first = operations_.cbegin(); first != operations_.cend();) {
    const uint32_t device = first->device;
    const auto last = std::find_if(first, operations_.cend(),
                                   [&](const Operation& one) { return one.device != device; });
    std::vector<NcclKernel> own;
    for (; kernel != kernels_.cend() && (kernel->device <= device); ++kernel)
      (kernel->device == device || device == kNoDevice ? own : left).push_back(*kernel);
    if (device == kNoDevice) {
      own.insert(own.end(), left.begin(), left.end());
      left.clear();
      std::sort(own.begin(), own.end(), by_call);
    }
    join_device({first, last}, &own, &left, &joined);
    first = last;
  }
  operations_ = {};
  kernels_ = {};
  return joined;
}

}  // namespace aon::writers::devices
