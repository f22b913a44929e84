#include "core/agent/series.h"

#include <bit>
#include <iterator>

#include "core/spool/format.h"

namespace aon::agent {

Series::Series(const State* state) : state_(state) {
  const uint32_t count = state->header().metric_count;
  for (uint32_t i = 0; i < count; ++i) {
    const MetricCell& cell = state->metric(i);
    if (cell.in_use != 0 && is_wanted(cell.process))
      inherited_[{cell.process, cell.metric}] = i;
    else
      release(i);
  }
}

/// False: its end was seen before the last worker was killed.
bool Series::is_wanted(uint32_t process) const {
  const uint32_t index = process - state_->header().first_process;
  if (process == spool::kNodeProcess || index >= state_->sizes().processes) return true;
  const uint32_t phase =
      state_->process(index).phase.load(std::memory_order_acquire);  // pairs with agent:phase
  return phase < static_cast<uint32_t>(ProcessPhase::kDrained);
}

void Series::release(uint32_t cell) {
  state_->metric(cell).in_use = 0;
  free_cells_.push_back(cell);
}

uint32_t Series::take_cell() {
  if (!free_cells_.empty()) {
    const uint32_t index = free_cells_.back();
    free_cells_.pop_back();
    return index;
  }
  uint32_t& count = state_->header().metric_count;
  return count < state_->sizes().metrics ? count++ : kNoCell;
}

bool Series::add_accumulated(uint32_t process, uint32_t metric) {
  const Key key{process, metric};
  if (const auto found = inherited_.find(key); found != inherited_.end()) {
    const MetricCell& cell = state_->metric(found->second);
    bases_[key] = {found->second, cell.value, cell.enabled_ns, cell.running_ns};
    inherited_.erase(found);
    return true;
  }
  const uint32_t index = take_cell();
  if (index == kNoCell) return false;  // it counts from 0 after a restart
  MetricCell& cell = state_->metric(index);
  cell = {};
  cell.process = process;
  cell.metric = metric;
  cell.in_use = 1;
  bases_[key] = {index, 0, 0, 0};
  return false;
}

void Series::forget(uint32_t process) {
  std::erase_if(inherited_, [&](const auto& entry) {
    if (entry.first.first == process) release(entry.second);
    return entry.first.first == process;
  });
  std::erase_if(bases_, [&](const auto& entry) {
    if (entry.first.first == process) release(entry.second.cell);
    return entry.first.first == process;
  });
}

bool Series::put(uint32_t process, uint32_t metric, uint64_t ticks, double value,
                 uint64_t enabled_ns, uint64_t running_ns) {
  if (const auto found = bases_.find({process, metric}); found != bases_.end()) {
    const Base& base = found->second;
    value += base.value;
    enabled_ns += base.enabled_ns;
    running_ns += base.running_ns;
    // Before the sample: if a kill comes between, the next worker does not begin below it.
    MetricCell& cell = state_->metric(base.cell);
    cell.value = value;
    cell.enabled_ns = enabled_ns;
    cell.running_ns = running_ns;
  }
  SampleCell sample{};
  sample.process = process;
  sample.slot = spool::kSeriesSlot;
  sample.head.start_ticks = ticks;
  sample.head.kind = RecordKind::kSample;
  sample.head.slot_count = 2;
  sample.head.id = metric;
  sample.head.a64 = std::bit_cast<uint64_t>(value);
  sample.words[0] = enabled_ns;
  sample.words[1] = running_ns;
  return push(sample);
}

bool Series::push(const SampleCell& sample) {
  StateHeader& header = state_->header();
  const uint64_t head = header.sample_head.load(std::memory_order_relaxed);
  const uint64_t tail =
      header.sample_tail.load(std::memory_order_acquire);  // pairs with agent:sampled
  // All are written: it begins anew, in memory that has been used before.
  if (head == tail) header.sample_base.store(head, std::memory_order_relaxed);
  if (head - tail < state_->sizes().samples) {
    state_->sample(head) = sample;
    header.sample_head.store(head + 1, std::memory_order_release);  // pairs with agent:samples
    return true;
  }
  const uint64_t ticks = sample.head.start_ticks;
  if (is_counted(sample.head.kind)) add_refused(sample.process, sample.slot, 1, ticks, ticks);
  return false;
}

bool Series::put_record(uint32_t process, uint16_t slot, const Record& record) {
  SampleCell sample{};
  sample.process = process;
  sample.slot = slot;
  sample.head = record.head;
  for (uint32_t i = 0; i < std::size(sample.words); ++i) sample.words[i] = record.words[i];
  return push(sample);
}

void Series::add_refused(uint32_t process, uint16_t slot, uint64_t count, uint64_t first_ticks,
                         uint64_t last_ticks) {
  RefusedSamples& refused = state_->refused_samples(process, slot);
  refused.last_ticks.store(last_ticks, std::memory_order_relaxed);
  if (refused.count.fetch_add(count, std::memory_order_relaxed) == 0)
    refused.first_ticks.store(first_ticks, std::memory_order_relaxed);
}

}  // namespace aon::agent
