#include "nccl/refused.h"

#include <aon/writer.h>

#include <algorithm>

#include "nccl/gpu_clock.h"

namespace aon::nccl {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kSizeBits = 6;   ///< log2 of the bytes, below the function
constexpr uint32_t kMaxTries = 16;  ///< rows that are looked at: in a table that is full, too

uint32_t log2_of(uint64_t value) {
  return value < 2 ? 0 : 63 - static_cast<uint32_t>(__builtin_clzll(value));
}

/// A communicator of NCCL is never 0, so no key is.
uint64_t key_of(const RefusedOperation& operation) {
  return uint64_t{operation.communicator} << 32 |
         (static_cast<uint32_t>(operation.function) << kSizeBits | log2_of(operation.bytes));
}

/// The row of a key, or null without room.
RefusedSums* row_of(State& state, uint64_t key) {
  uint64_t at = key * 0x9e3779b97f4a7c15u >> 40;
  for (uint32_t i = 0; i < kMaxTries; ++i, ++at) {
    RefusedSums& row = state.refused_sums[at % kMaxRefusedSums];
    uint64_t known = row.key.load(kRelaxed);
    if (known == key) return &row;
    if (known != 0) continue;
    if (row.key.compare_exchange_strong(known, key, kRelaxed) || known == key) return &row;
  }
  return nullptr;
}

void raise(std::atomic<uint64_t>& most, uint64_t value) {
  uint64_t known = most.load(kRelaxed);
  while (known < value && !most.compare_exchange_weak(known, value, kRelaxed)) {
  }
}

void tell(RefusedSums& row, uint64_t key, double ticks_per_ns) {
  struct {
    NcclSumsDefinition head;
    uint64_t counts[kNcclDurationBuckets];
  } told = {};
  NcclSumsDefinition& head = told.head;
  head.communicator_id = static_cast<uint32_t>(key >> 32);
  head.region_id = region_of(static_cast<Function>(static_cast<uint32_t>(key) >> kSizeBits))->id;
  head.log2_bytes = key & ((1u << kSizeBits) - 1);
  head.count = row.count.load(kRelaxed);
  head.in_flight_count =
      static_cast<uint32_t>(std::min(row.in_flight_count.load(kRelaxed), uint64_t{UINT32_MAX}));
  head.bytes = row.bytes.load(kRelaxed);
  head.host_ns =
      static_cast<uint64_t>(static_cast<double>(row.host_ticks.load(kRelaxed)) / ticks_per_ns);
  head.timed_count = row.timed_count.load(kRelaxed);
  head.timed_bytes = row.timed_bytes.load(kRelaxed);
  head.gpu_ns = row.gpu_ns.load(kRelaxed);
  head.max_ns = row.max_ns.load(kRelaxed);
  head.min_ns = head.timed_count == 0 ? 0 : ~row.max_of_inverse.load(kRelaxed);
  if (head.count == row.told_count) return;
  for (uint32_t b = 0; b < kNcclDurationBuckets; ++b) {
    const uint64_t count = row.by_duration[b].load(kRelaxed);
    if (count == 0 && head.bucket_count == 0) continue;  // below the first one
    if (head.bucket_count == 0) head.first_bucket = static_cast<uint8_t>(b);
    told.counts[head.bucket_count++] = count;
  }
  while (head.bucket_count != 0 && told.counts[head.bucket_count - 1] == 0) --head.bucket_count;
  const auto bytes = static_cast<uint32_t>(sizeof head + head.bucket_count * sizeof(uint64_t));
  if (aon_define(static_cast<uint32_t>(DefinitionType::kNcclSums), &told, bytes, nullptr, 0))
    row.told_count = head.count;
}

}  // namespace

void add_refused(State& state, const RefusedOperation& operation) {
  if (!state.has_refused.load(kRelaxed)) state.has_refused.store(true, kRelaxed);
  RefusedSums* row = row_of(state, key_of(operation));
  if (row == nullptr) {
    state.refused_unsummed.fetch_add(1, kRelaxed);
    return;
  }
  row->bytes.fetch_add(operation.bytes, kRelaxed);
  row->host_ticks.fetch_add(operation.host_ticks, kRelaxed);
  if (operation.gpu_ns != kNoGpuTime) {
    const uint32_t bucket = log2_of(operation.gpu_ns);
    row->by_duration[bucket < kNcclDurationBuckets ? bucket : kNcclDurationBuckets - 1].fetch_add(
        1, kRelaxed);
    row->timed_bytes.fetch_add(operation.bytes, kRelaxed);
    row->gpu_ns.fetch_add(operation.gpu_ns, kRelaxed);
    raise(row->max_ns, operation.gpu_ns);
    raise(row->max_of_inverse, ~operation.gpu_ns);
    row->timed_count.fetch_add(1, kRelaxed);
  }
  if (operation.is_told_in_flight) row->in_flight_count.fetch_add(1, kRelaxed);
  row->count.fetch_add(1, kRelaxed);
}

void tell_refused(State& state, uint32_t communicator) {
  if (!state.has_refused.load(kRelaxed)) return;
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  double ticks_per_ns = 0;
  for (RefusedSums& row : state.refused_sums) {
    const uint64_t key = row.key.load(kRelaxed);
    if (key == 0 || (communicator != 0 && key >> 32 != communicator)) continue;
    if (ticks_per_ns == 0) ticks_per_ns = measure_rate(state, w);
    tell(row, key, ticks_per_ns);
  }
}

}  // namespace aon::nccl
