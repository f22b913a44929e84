#include "writers/assemble/record_load.h"

#include <aon/record.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "core/spool/indexed_block.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

/// Where a window begins is looked for in runs of so many records, then in the one run.
constexpr size_t kRunLengths[] = {128, 1};

/// The load of a job around the start of a window, in runs of `run_length` records.
class NarrowLoad {
 public:
  NarrowLoad(const JobModel& parts, RecordLoad::Bounds bounds, size_t run_length)
      : parts_(parts), bounds_(bounds), run_(run_length) {}

  Status add(const Group& group);
  RecordLoad take() {
    load_.add(bounds_.latest_ns, bounds_.latest_ns, inside_count_);
    return std::move(load_);
  }

 private:
  Status add_block(const spool::BlockEntry& block, const clock::ClockMap& clock,
                   spool::IndexedBlockReader* reader);
  void add_run(std::span<const Record> records, const clock::ClockMap& clock);

  const JobModel& parts_;
  const RecordLoad::Bounds bounds_;
  std::vector<Record> run_;
  RecordLoad load_;
  uint64_t inside_count_ = 0;  ///< are in the window wherever it begins
};

Status NarrowLoad::add(const Group& group) {
  if (group.process == nullptr) return {};
  const uint32_t number = group.process->start.process;
  const auto found = parts_.segments[group.node].find(number);
  if (found == parts_.segments[group.node].end()) return {};
  const Result<spool::ProcessIndex> index =
      spool::ProcessIndex::build(parts_.job.nodes[group.node].folder, number, found->second);
  if (!index) return index.error();
  spool::IndexedBlockReader reader(*index);
  for (const uint16_t slot : index->slots()) {
    if (slot == spool::kSeriesSlot) continue;
    for (const uint16_t context : {0, 1}) {
      for (const spool::BlockEntry& block : index->blocks(slot, context)) {
        Status status = add_block(block, parts_.clocks[group.node], &reader);
        if (!status) return status;
      }
    }
  }
  return {};
}

Status NarrowLoad::add_block(const spool::BlockEntry& block, const clock::ClockMap& clock,
                             spool::IndexedBlockReader* reader) {
  if (clock.to_ns(block.first_ticks) >= bounds_.latest_ns) {
    inside_count_ += block.record_count;
    return {};
  }
  const uint64_t end_ns = clock.to_ns(block.last_ticks);
  if (end_ns < bounds_.earliest_ns) return {};
  const auto opened = reader->open(block);
  if (!opened) return opened.error();
  uint32_t count = 0;
  while (*opened == spool::IndexedBlockReader::Opened::kYes) {
    const Result<size_t> got = reader->next(run_);
    if (!got || *got == 0) break;
    add_run({run_.data(), *got}, clock);
    count += static_cast<uint32_t>(*got);
  }
  if (count < block.record_count) load_.add(end_ns, end_ns, block.record_count - count);
  return {};
}

void NarrowLoad::add_run(std::span<const Record> records, const clock::ClockMap& clock) {
  const auto [first, last] = std::minmax_element(
      records.begin(), records.end(),
      [](const Record& a, const Record& b) { return end_ticks(a) < end_ticks(b); });
  const uint64_t begin_ns = clock.to_ns(end_ticks(*first));
  const uint64_t end_ns = clock.to_ns(end_ticks(*last));
  if (begin_ns >= bounds_.latest_ns) {
    inside_count_ += records.size();
  } else if (end_ns >= bounds_.earliest_ns) {
    load_.add(begin_ns, end_ns, records.size());
  }
}

}  // namespace

uint64_t RecordLoad::record_count() const noexcept {
  uint64_t sum = 0;
  for (const Run& run : runs_) sum += run.record_count;
  return sum;
}

/// The first time from which on, by `time`, runs have at most `record_count` records.
uint64_t RecordLoad::first_that_fits(uint64_t record_count, uint64_t Run::*time) const {
  std::vector<Run> runs = runs_;
  std::sort(runs.begin(), runs.end(),
            [time](const Run& a, const Run& b) { return a.*time > b.*time; });
  uint64_t sum = 0;
  for (const Run& run : runs) {
    sum += run.record_count;
    if (sum > record_count) return std::min(run.*time, UINT64_MAX - 1) + 1;
  }
  return 0;
}

RecordLoad::Bounds RecordLoad::window_start(uint64_t record_count) const {
  return {first_that_fits(record_count, &Run::begin_ns),
          first_that_fits(record_count, &Run::end_ns)};
}

Result<uint64_t> window_start_ns(const JobModel& parts, uint64_t record_count,
                                 const std::function<void()>& beat) {
  if (parts.load.record_count() <= record_count) return uint64_t{0};
  RecordLoad::Bounds bounds = parts.load.window_start(record_count);
  for (const size_t run_length : kRunLengths) {
    if (bounds.earliest_ns == bounds.latest_ns) break;
    NarrowLoad narrow(parts, bounds, run_length);
    for (const Group& group : parts.model.groups) {
      Status status = narrow.add(group);
      if (!status) return status.error();
      beat();
    }
    const RecordLoad::Bounds found = narrow.take().window_start(record_count);
    // What ends before the earliest time is not in there: what is may all fit.
    bounds = {std::max(found.earliest_ns, bounds.earliest_ns),
              std::max(found.latest_ns, bounds.earliest_ns)};
  }
  return bounds.latest_ns;
}

}  // namespace aon::writers
