#include "writers/nccl/network_late.h"

#include <algorithm>
#include <utility>

#include "writers/nccl/send_waits.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 20;
constexpr uint32_t kLeastOthers = 3;  ///< to say from one operation what is usual

/// Null: there was no room for one.
const TrueTimes* row_of(std::span<const TrueTimes> rows, const SentOperation& operation) {
  const auto key_of = [](const auto& one) {
    return std::tuple(one.communicator, one.region, one.bytes);
  };
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), key_of(operation),
                       [&](const TrueTimes& row, const auto& key) { return key_of(row) < key; });
  return found != rows.end() && key_of(*found) == key_of(operation) ? &*found : nullptr;
}

double ns(uint64_t time_ns) { return static_cast<double>(time_ns); }

bool stands_out(const SentOperation& operation) {
  return operation.others_count == 0 ||
         ns(operation.network_ns) >= kSlowOperationRatio * ns(operation.others_ns);
}

/// Of the excess, what is explained by a wait beyond the usual. Sums of steps side by side differ
/// by more than the operation is longer, for no reason.
uint64_t explained_ns(uint64_t wait_ns, uint64_t usual_ns, uint64_t excess_ns) {
  if (ns(wait_ns) < kSlowOperationRatio * ns(usual_ns)) return 0;
  return std::min(excess_ns, wait_ns - std::min(wait_ns, usual_ns));
}

/// What the network held up each member; 0: nothing, as far as is told.
uint64_t network_ns_of(const SentOperation& operation, uint64_t excess_ns, uint64_t usual_ns) {
  if (!is_most(operation.network_ns, operation.all_ns) || operation.late_ns >= excess_ns / 2)
    return 0;
  if (operation.others_count >= kLeastOthers && stands_out(operation))
    usual_ns = std::min(usual_ns, operation.others_ns);
  return explained_ns(operation.network_ns, usual_ns, excess_ns);
}

/// The same of one GPU.
uint64_t gpu_ns_of(const HeldMember& gpu, uint64_t excess_ns, uint64_t usual_ns) {
  if (gpu.others_count == 0 || ns(gpu.held_ns) < kSlowOperationRatio * ns(gpu.others_ns) ||
      gpu.late_ns >= excess_ns / 2)
    return 0;
  if (gpu.others_count >= kLeastOthers) usual_ns = std::min(usual_ns, gpu.others_ns);
  return explained_ns(gpu.held_ns, usual_ns, excess_ns);
}

void add_to(NetworkLate* late, uint64_t lost_ns) {
  ++late->count;
  late->lost_ns += lost_ns;
}

}  // namespace

NetworkLateness::NetworkLateness(std::filesystem::path folder)
    : store_(std::move(folder), kMemoryBytes) {}

Status NetworkLateness::add(const SentOperation& operation) {
  const auto& [communicator, region, bytes] =
      std::tie(operation.communicator, operation.region, operation.bytes);
  // Without a row of its own it is not judged.
  static_cast<void>(waits_.add(communicator, region, bytes, operation.longest_ns));
  static_cast<void>(gpu_waits_.add(communicator, region, bytes, operation.gpu.held_ns));
  return store_.add(operation);
}

Status NetworkLateness::judge(std::span<const TrueTimes> times, NetworkSummary* to) {
  const std::vector<TrueTimes> waits = waits_.take();
  const std::vector<TrueTimes> gpu_waits = gpu_waits_.take();
  Result<SortedStore<SentOperation>::Reader> reader = store_.read();
  if (!reader) return reader.error();
  for (;;) {
    const Result<const SentOperation*> next = reader->next();
    if (!next) return next.error();
    if (*next == nullptr) return {};
    const SentOperation& operation = **next;
    const TrueTimes* time = row_of(times, operation);
    const TrueTimes* wait = row_of(waits, operation);
    const TrueTimes* gpu_wait = row_of(gpu_waits, operation);
    if (time == nullptr || wait == nullptr || gpu_wait == nullptr) {
      ++to->left_out_count;
      continue;
    }
    ++to->told_count;
    if (ns(operation.time_ns) < kSlowOperationRatio * ns(time->usual_ns)) continue;
    const uint64_t excess_ns = operation.time_ns - time->usual_ns;
    const uint64_t network_ns = network_ns_of(operation, excess_ns, wait->usual_ns);
    if (network_ns != 0) {
      note(operation, network_ns, to);
      continue;
    }
    const uint64_t gpu_ns = gpu_ns_of(operation.gpu, excess_ns, gpu_wait->usual_ns);
    if (gpu_ns != 0) note_gpu(operation, gpu_ns, to);
  }
}

void NetworkLateness::note(const SentOperation& operation, uint64_t network_ns,
                           NetworkSummary* to) {
  const uint64_t lost_ns = network_ns * operation.member_count;
  add_to(&to->all, lost_ns);
  to->excess_ns[{operation.communicator, operation.region, operation.bytes}] += network_ns;
  if (!stands_out(operation)) return add_to(&to->even, lost_ns);
  const auto key =
      std::tuple(operation.communicator, operation.region, operation.source, operation.peer);
  if (to->links.size() >= kMaxRows && to->links.count(key) == 0) {
    ++to->left_out_count;
    return;
  }
  NetworkLate& link = to->links[key];
  add_to(&link, lost_ns);
  link.destination = operation.destination;
}

void NetworkLateness::note_gpu(const SentOperation& operation, uint64_t gpu_ns,
                               NetworkSummary* to) {
  const uint64_t lost_ns = gpu_ns * operation.member_count;
  add_to(&to->all_gpus, lost_ns);
  to->excess_ns[{operation.communicator, operation.region, operation.bytes}] += gpu_ns;
  const auto key = std::tuple(operation.communicator, operation.region, operation.gpu.member);
  if (to->gpus.size() < kMaxRows || to->gpus.count(key) != 0) {
    add_to(&to->gpus[key], lost_ns);
  } else {
    ++to->left_out_count;
  }
}

}  // namespace aon::writers::nccl
