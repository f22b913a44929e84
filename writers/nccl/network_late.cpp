#include "writers/nccl/network_late.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace aon::writers::nccl {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 20;
constexpr double kMostly = 2.0 / 3;   ///< of a link's waiting is for the network
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

/// What the network held up each member; 0: nothing, as far as is told.
uint64_t network_ns_of(const SentOperation& operation, uint64_t usual_time_ns,
                       uint64_t usual_wait_ns) {
  if (ns(operation.time_ns) < kSlowOperationRatio * ns(usual_time_ns) ||
      ns(operation.network_ns) < kMostly * ns(operation.all_ns))
    return 0;
  const uint64_t excess_ns = operation.time_ns - usual_time_ns;
  if (operation.late_ns >= excess_ns / 2) return 0;
  if (operation.others_count >= kLeastOthers && stands_out(operation))
    usual_wait_ns = std::min(usual_wait_ns, operation.others_ns);
  // Sums of steps side by side differ by more than the operation is longer, for no reason.
  if (ns(operation.network_ns) < kSlowOperationRatio * ns(usual_wait_ns)) return 0;
  const uint64_t beyond_ns = operation.network_ns - std::min(operation.network_ns, usual_wait_ns);
  return std::min(excess_ns, beyond_ns);
}

}  // namespace

NetworkLateness::NetworkLateness(std::filesystem::path folder)
    : store_(std::move(folder), kMemoryBytes) {}

Status NetworkLateness::add(const SentOperation& operation) {
  // Without a row of its own it is not judged.
  static_cast<void>(
      waits_.add(operation.communicator, operation.region, operation.bytes, operation.network_ns));
  return store_.add(operation);
}

Status NetworkLateness::judge(std::span<const TrueTimes> times, NetworkSummary* to) {
  const std::vector<TrueTimes> waits = waits_.take();
  Result<SortedStore<SentOperation>::Reader> reader = store_.read();
  if (!reader) return reader.error();
  for (;;) {
    const Result<const SentOperation*> next = reader->next();
    if (!next) return next.error();
    if (*next == nullptr) return {};
    const SentOperation& operation = **next;
    const TrueTimes* time = row_of(times, operation);
    const TrueTimes* wait = row_of(waits, operation);
    if (time == nullptr || wait == nullptr) {
      ++to->left_out_count;
      continue;
    }
    ++to->told_count;
    const uint64_t network_ns = network_ns_of(operation, time->usual_ns, wait->usual_ns);
    if (network_ns != 0) note(operation, network_ns, to);
  }
}

void NetworkLateness::note(const SentOperation& operation, uint64_t network_ns,
                           NetworkSummary* to) {
  const auto add = [&](NetworkLate* late) {
    ++late->count;
    late->lost_ns += network_ns * operation.member_count;
  };
  add(&to->all);
  to->excess_ns[{operation.communicator, operation.region, operation.bytes}] += network_ns;
  if (!stands_out(operation)) return add(&to->even);
  const auto key =
      std::tuple(operation.communicator, operation.region, operation.source, operation.peer);
  if (to->links.size() >= kMaxRows && to->links.count(key) == 0) {
    ++to->left_out_count;
    return;
  }
  NetworkLate& link = to->links[key];
  add(&link);
  link.destination = operation.destination;
}

}  // namespace aon::writers::nccl
